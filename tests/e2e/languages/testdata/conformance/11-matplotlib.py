# Figures: two of one cell in order, one closed, one kept, one saved.
# normalise: addresses

# %%
import matplotlib.pyplot as plt
import numpy as np

plt.plot([1, 2, 3])

# %%
print("before")
plt.figure(figsize=(3, 2))
plt.bar(["a", "b"], [1, 2])
plt.title("first")
plt.show()
print("between")
plt.figure(figsize=(2, 2))
plt.scatter(range(5), range(5))
plt.title("second")
plt.show()
print("after")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(4, 2))
left.imshow(np.eye(3))
right.hist([1, 1, 2, 3])
fig.tight_layout()
plt.close(fig)
print("closed figures are not shown")

# %%
fig

# %%
for i in range(2):
    plt.figure(figsize=(1, 1))
    plt.plot([i, 1])
"two figures follow a result"

# %%
plt.figure(figsize=(2, 1))
plt.text(0.1, 0.5, "日本語 ü €")
plt.savefig("saved.png")
plt.show()

# %%
plt.figure(figsize=(2, 1))
plt.plot([1, 2], [1, 2, 3])

# %%
plt.get_backend(), plt.rcParams["figure.dpi"], plt.get_fignums()
