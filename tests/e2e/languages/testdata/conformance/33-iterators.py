# Iterators, generators and what has an address for its text.
# normalise: addresses

# %%
(n for n in range(3))

# %%
def count():
    print("starts")
    yield 1
    yield 2
    print("ends")


c = count()
next(c), c

# %%
list(c)

# %%
next(c)

# %%
object(), count, lambda: 0, iter([]), map(str, []), zip(), enumerate([])

# %%
range(10), reversed([1]), {}.keys(), {"a": 1}.items(), memoryview(b"abc")

# %%
import itertools

list(itertools.islice(itertools.count(), 5)), itertools.chain([1])

# %%
class Plain:
    pass


[Plain(), Plain], Plain().__init__

# %%
import re
import types

re.match("a", "abc"), types, print, str.join

# %%
match {"k": [1, 2]}:
    case {"k": [a, *rest]}:
        print(a, rest)
