# There is nobody who could answer.

# %%
name = input("Your name? ")

# %%
print("name" in globals())

# %%
import getpass

getpass.getpass()

# %%
import sys

sys.stdin.read(), sys.stdin.isatty()

# %%
sys.stdin.readline()

# %%
breakpoint()
print("after the breakpoint")

# %%
%debug

# %%
import os

os.read(0, 10)

# %%
import subprocess

subprocess.run(["cat"], capture_output=True)
