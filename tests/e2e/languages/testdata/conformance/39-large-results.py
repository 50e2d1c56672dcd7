# Results that are large, deep or cut by IPython.

# %%
"x" * 1_000_000

# %%
list(range(5000))

# %%
{i: "v" * i for i in range(60)}

# %%
deep = []
for _ in range(50):
    deep = [deep]
deep

# %%
loop = [1]
loop.append(loop)
loop

# %%
2**4000

# %%
10**5000

# %%
import numpy as np

np.arange(10_000).reshape(100, 100)

# %%
display({"text/plain": "json", "application/json": {"list": list(range(20_000))}}, raw=True)

# %%
set(), frozenset(), {3, 1, 2}, {"k": {1}}
