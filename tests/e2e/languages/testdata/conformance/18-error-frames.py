# Tracebacks over the functions of several cells, generators, lambdas and recursion.

# %%
def outer(x):
    y = x + 1
    return inner(y)

# %%
def inner(z):
    values = [z, None]
    return combine(*values)


def combine(a, b):
    # a comment above the line
    total = (
        a
        + b
    )
    return total

# %%
outer(1)

# %%
def endless(n):
    return endless(n + 1)


endless(0)

# %%
list(1 / n for n in (1, 0))

# %%
sorted([1, "a"], key=lambda v: v + 1)

# %%
class Thing:
    @property
    def broken(self):
        raise AttributeError("inside a property")

    def __repr__(self):
        return 1 / 0


Thing().broken

# %%
Thing()

# %%
exec("def made():\n    raise KeyError('made by exec')\n\nmade()")

# %%
import functools


@functools.lru_cache
def cached(x):
    return x.missing


cached(1)

# %%
with open("/nowhere/at/all") as f:
    pass
