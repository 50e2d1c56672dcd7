# exit() in the last cell; the kernel ends a moment after it.

# %%
import atexit

atexit.register(print, "printed too late for any cell")
print("before")

# %%
print("now")
exit()
