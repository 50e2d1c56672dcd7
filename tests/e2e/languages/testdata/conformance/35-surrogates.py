# Lone surrogates that stand for bytes. With others Jupyter loses the whole message, and
# notebox does not: TestWhateverTheKernelSends.

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
        return "<\udcfe>"


R()

# %%
raise ValueError("\udcff in a message")

# %%
display({"text/plain": "p \udcff", "application/json": {"k\udcff": "v\udc80"}}, raw=True)

# %%
import os

os.fsdecode(b"file-\xff")

# %%
print("still alive")
