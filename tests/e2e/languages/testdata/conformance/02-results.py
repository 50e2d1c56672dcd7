# What a kernel remembers of cells: counts, In, Out, _ and its relatives.

# %%
6 * 7

# %%
_ + 1

# %%
_, __, ___

# %%
_1, Out[2], sorted(Out)

# %%
In[1], _i, _ii, len(In)

# %%
print(get_ipython().execution_count)
_

# %%
_ = "mine"

# %%
"new"

# %%
_, sorted(k for k in globals() if k.startswith("_"))

# %%
del _

# %%
dir()

# %%
y = [1, 2,
     3]; y

# %%
(a := 10)
# a comment is no expression
