# Magics that measure; only what they measured may differ.
# normalise: durations

# %%
%%time
total = sum(range(1000))
print("inside")

# %%
%time 1 + 1

# %%
import time

start = time.perf_counter()
time.sleep(0.1)
0.1 <= time.perf_counter() - start < 5

# %%
%%time
raise ValueError("timed")
