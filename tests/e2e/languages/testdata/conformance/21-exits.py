# What ends a program does not end a notebook. Not here: exits with code 0, which end a run of
# the service's; see TestAsInAScript.
# normalise: pids

# %%
raise KeyboardInterrupt

# %%
raise KeyboardInterrupt("by hand")

# %%
import sys

sys.exit(3)

# %%
sys.exit("a message")

# %%
raise SystemExit(3)

# %%
import signal

signal.raise_signal(signal.SIGINT)
print("not reached")

# %%
def on_alarm(*_):
    raise TimeoutError("alarm")


import time

signal.signal(signal.SIGALRM, on_alarm)
signal.setitimer(signal.ITIMER_REAL, 0.05)
time.sleep(5)

# %%
raise GeneratorExit

# %%
import os

pid = os.fork()
if pid == 0:
    os._exit(4)
os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

# %%
print("alive")
