# What a program can see of the interpreter it runs in. Left out is sys.orig_argv, which
# names the program that starts the kernel: ipykernel_launcher, or the harness's.
# normalise: pids, user-ids, as-a-script

# %%
import sys

__name__, sys.version, sys.flags

# %%
# as a script
sys.argv

# %%
sys.path

# %%
import os

os.getcwd(), os.path.expanduser("~"), os.listdir()

# %%
dict(sorted(os.environ.items()))

# %%
import locale

locale.getlocale(), locale.getpreferredencoding(), sys.getfilesystemencoding(), sys.stdout.encoding, sys.stdout.errors

# %%
sys.executable, sys.prefix, sys.base_prefix, sys.platform, sys.implementation.name

# %%
os.getuid(), os.getgid(), os.umask(0o022), os.nice(0), os.cpu_count(), os.uname().nodename

# %%
import getpass
import platform

getpass.getuser(), platform.python_version(), platform.node()

# %%
import resource
import signal

signal.getsignal(signal.SIGINT).__name__, signal.getsignal(signal.SIGTERM), resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_NOFILE)

# %%
sys.getrecursionlimit(), sys.dont_write_bytecode, sys.pycache_prefix, sys._xoptions, sys.warnoptions, sys.gettrace(), sys.getswitchinterval()

# %%
import __main__

__main__, "__file__" in globals(), __builtins__, __doc__, sorted(vars(__main__))[:10], sys.modules["__main__"] is __main__

# %%
import time
import tempfile

time.tzname, time.timezone, tempfile.gettempdir()

# %%
import threading

threading.current_thread() is threading.main_thread(), signal.sigpending(), signal.pthread_sigmask(signal.SIG_BLOCK, [])

# %%
sys.excepthook.__name__, sys.displayhook.__class__.__name__, type(sys.stdout).__module__, type(sys.stdout).__qualname__, type(sys.stdin)
