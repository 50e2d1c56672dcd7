# Files written by magics, run, imported, loaded; tracebacks through them.
# normalise: connection-file, as-a-script

# %%
%%writefile tool.py
"""A module."""
import sys

print("tool runs as", __name__, sys.argv[1:])


def fail(x):
    return 10 / x


value = 42

# %%
%run tool.py a "b c"

# %%
value, fail(5)

# %%
# as a script
import tool

tool.fail(0)

# %%
fail(0)

# %%
%%writefile -a tool.py
raise RuntimeError("at the module's end")

# %%
%run tool.py

# %%
# as a script
import importlib

importlib.reload(tool)

# %%
!cat tool.py | wc -l

# %%
%%writefile bad.py
def broken(:

# %%
import bad

# %%
%run bad.py

# %%
%run missing.py

# %%
%load tool.py

# %%
%pycat bad.py

# %%
%%file made/by/hand.txt
x

# %%
%load_ext autoreload
%autoreload 2

# %%
%%writefile live.py
def version():
    return 1

# %%
import live

live.version()

# %%
import os
import pathlib

pathlib.Path("live.py").write_text("def version():\n    return 'two, reloaded'\n")
os.utime("live.py", (2_000_000_000, 2_000_000_000))

# %%
live.version()
