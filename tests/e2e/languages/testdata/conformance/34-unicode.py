# Text beyond ASCII, in sources, outputs, results, names and errors.

# %%
print("äöü ß € ñ 日本語 العربية हिन्दी")
"ελληνικά"

# %%
print("🎉 👩‍👩‍👧‍👦 🇩🇪 e\u0301 é ﷽")
"👋🏽", "\U0001f9ff", "\u200b\ufeff\u2028\u2029"

# %%
größe = 3
größe

# %%
raise ValueError("größer als 日本 🎉")

# %%
print("\u202eright to left\u202c")
print("tab\there, vertical\x0btab, form\x0cfeed, bell\x07, escape\x1b, del\x7f, next line\x85")

# %%
print("".join(chr(c) for c in range(1, 32)))

# %%
"nul \x00 inside"

# %%
print("nul \x00 printed")
print("noncharacters \ufffe \uffff \U0010ffff, replacement \ufffd")

# %%
{"schlüssel": "ü", "b": b"\xff\x00", "raw": r"\n", "long": "🎉" * 50}

# %%
from IPython.display import HTML, JSON

display(HTML("<p>ü & < > \" ' 🎉</p>"), JSON({"ü": "\x00\x1f🎉"}))

# %%
open("ümläut 日本.txt", "w").write("inhalt ü")

# %%
!cat "ümläut 日本.txt"; printf 'caf\xc3\xa9 \xe9 not utf-8\n'

# %%
import unicodedata

unicodedata.name("🎉"), "ß".upper(), len("👩‍👩‍👧‍👦"), "İ".lower()
