# Errors inside libraries: standard, frozen, compiled.

# %%
import json

json.loads('{"a": }')

# %%
import os

os.makedirs("/proc/nothing/here")

# %%
import importlib

importlib.import_module("no_such_module")

# %%
import no_such_package.sub

# %%
import numpy as np

np.ones((2, 3)) @ np.ones((2, 3))

# %%
import pandas as pd

pd.DataFrame({"a": [1]}).loc[5, "b"]

# %%
import subprocess

subprocess.run(["false"], check=True)

# %%
import codecs

codecs.lookup("no-such-codec")

# %%
import runpy

runpy.run_path("missing.py")

# %%
open("missing.txt")

# %%
b"\xff".decode()

# %%
import re

re.compile("(")
