# A line of 2.5 MB, and many lines.

# %%
print("0123456789" * 250_000)

# %%
for i in range(10_000):
    print("line", i)

# %%
import sys

sys.stdout.write("ü🎉" * 300_000)
print("end")

# %%
print("\n" * 1000, end="")

# %%
for i in range(500):
    print(i, end=" ", flush=True)
