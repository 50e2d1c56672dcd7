# quit() that keeps the kernel, and names that look like commands.

# %%
quit

# %%
quit(keep_kernel=True)

# %%
help

# %%
copyright

# %%
help(len)

# %%
len?

# %%
len??

# %%
?undefined

# %%
import this
