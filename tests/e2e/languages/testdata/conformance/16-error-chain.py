# Exceptions that have a cause or a context, and what cells after them see.

# %%
def parse(text):
    return int(text)


def load(text):
    try:
        return parse(text)
    except ValueError as e:
        raise RuntimeError("cannot load") from e

# %%
load("x")

# %%
try:
    {}["key"]
except KeyError:
    1 / 0

# %%
try:
    1 / 0
except ZeroDivisionError:
    raise TypeError("context left out") from None

# %%
print("cells after an error are run")

# %%
import sys

sys.last_value, sys.exc_info()

# %%
assert 1 == 2, "a message"

# %%
undefined_name

# %%
"abc".uper()

# %%
raise StopIteration

# %%
print("text before the error")
display("display before the error")
[1, 2][5]
