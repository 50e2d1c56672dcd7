# The logging module, unconfigured and configured.
# normalise: pids, start-frames

# %%
import logging

logging.warning("root, unconfigured")
logging.info("below the level")

# %%
logging.getLogger("app").error("an error of %s", "app")

# %%
logging.basicConfig(level=logging.DEBUG, format="%(levelname)s:%(name)s:%(funcName)s:%(message)s", force=True)
logging.debug("configured")

# %%
def work():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.exception("with a traceback")


work()

# %%
import sys

handler = logging.StreamHandler(sys.stdout)
log = logging.getLogger("own")
log.addHandler(handler)
log.propagate = False
log.info("to stdout")

# %%
logging.getLogger().handlers, logging.getLogger().level

# %%
log.info("wrong %d arguments", "x")
