# Prints, and a result only if a cell's last statement is an expression.

# %%
print("one")
print("two", 3, None, sep=", ", end="!\n")

# %%
print("no newline", end="")

# %%
print("before a result", end="")
42

# %%
1
2
"the last one"

# %%
7;

# %%
x = 5

# %%
print()
print("", end="")
print("\n\n")
print(" leading and trailing ")

# %%
import sys

sys.stdout.write("written\n")

# %%
sys.stdout.writelines(["a\n", "b\n"])
sys.stdout.flush()
print("to stderr", file=sys.stderr, end="")

# %%
None

# %%
if x:
    x
