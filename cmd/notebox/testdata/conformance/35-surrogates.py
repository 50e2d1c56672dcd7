# Lone surrogates, which are no Unicode text.

# %%
"\udcff"

# %%
print("before \udc80 after")

# %%
print("\ud800 high")

# %%
print("two: \ud83d\ude00 and apart: \ud83d \ude00")

# %%
"\ud83d in a result's repr"

# %%
class R:
    def __repr__(self):
        return "<\udcfe\ud801>"


R()

# %%
raise ValueError("\udcff in a message")

# %%
display({"text/plain": "p \udcff", "application/json": {"k\udcff": "v\ud800"}}, raw=True)

# %%
import os

os.fsdecode(b"file-\xff")

# %%
print("still alive")
