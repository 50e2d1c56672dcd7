# Errors that nobody can catch: in __del__, at exit, in callbacks.
# normalise: addresses, pids, write-frame

# %%
class Dying:
    def __del__(self):
        raise RuntimeError("in __del__")


d = Dying()
del d

# %%
import gc
import weakref

class Target:
    pass


t = Target()
r = weakref.ref(t, lambda _: print("gone"))
del t
gc.collect() >= 0, r()

# %%
import asyncio

loop = asyncio.get_running_loop()
loop.call_soon(lambda: print("a callback"))
await asyncio.sleep(0.05)

# %%
import atexit

@atexit.register
def bye():
    open("/mnt/data/bye.txt", "w").write("bye")


# %%
import tempfile

temporary = tempfile.TemporaryDirectory()
len(temporary.name)

# %%
import faulthandler

faulthandler.is_enabled()

# %%
import contextlib
import io

buffer = io.StringIO()
with contextlib.redirect_stdout(buffer):
    print("redirected")
buffer.getvalue()

# %%
import sys

keep, sys.stdout = sys.stdout, io.StringIO()
print("not seen")
sys.stdout = keep
print("seen")

# %%
sys.stdout.close()
print("after a close")

# %%
print("next cell")
