# stdout and stderr in turn, half a second apart: here the order is the code's.

# %%
import sys
import time

for i in range(2):
    print("out", i)
    time.sleep(0.5)
    print("err", i, file=sys.stderr)
    time.sleep(0.5)

# %%
from IPython.display import display

print("out, then a display", end="")
display("shown")
print("err, then a display", file=sys.stderr)
display("shown too")
print("out again")
