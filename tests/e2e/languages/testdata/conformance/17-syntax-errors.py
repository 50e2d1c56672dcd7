# Code that cannot be compiled.
# normalise: addresses, pids

# %%
print("not reached")
if True
    pass

# %%
def f():
return 1

# %%
x = (1,
y = 2

# %%
"unterminated

# %%
	tabs = 1
        mixed = 2

# %%
await = 3

# %%
return 5

# %%
f(a=1, 2)

# %%
print "python 2"

# %%
"\d is an invalid escape"

# %%
eval("1 +")

# %%
exec("def g(:\n  pass")

# %%
compile("a b", "named.py", "exec")

# %%
import ast

ast.literal_eval("open('x')")

# %%
'''never closed

# %%
break

# %%
print("fine again")
