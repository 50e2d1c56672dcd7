# Lone surrogates, which are no Unicode text. Not printed, except for those that stand for
# bytes: of others ipykernel's own I/O thread fails, each time at another place.

# %%
"\udcff"

# %%
print("before \udc80 after")

# %%
print("three: \udc80\udc81\udcff, and the bytes of an é: \udcc3\udca9")

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
