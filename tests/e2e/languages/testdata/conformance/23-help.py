# Names that look like commands, help, and quit() as if it kept the kernel.

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

# %%
print("the end")
quit(keep_kernel=True)
