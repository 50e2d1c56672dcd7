# stdout and stderr in turn, without a pause.
# normalise: stream-order

# %%
import sys

for i in range(100):
    print("out", i)
    print("err", i, file=sys.stderr)

# %%
print("out before a display")
print("err before a display", file=sys.stderr)
display(1)
print("err after it", file=sys.stderr)
print("out after it")
2

# %%
print("err, then an error", file=sys.stderr)
print("out, then an error")
raise ValueError("at the end")
