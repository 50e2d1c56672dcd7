# Images and sound as bytes: from memory, from a file, with a size.

# %%
import base64

from IPython.display import Audio, Image, Video

png = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
Image(png)

# %%
Image(png, width=30, height=20, alt="a dot")

# %%
from pathlib import Path

Path("dot.png").write_bytes(png)
Image("dot.png", retina=True)

# %%
Image(url="https://example.com/a.png")

# %%
import PIL.Image

red = PIL.Image.new("RGB", (8, 6), "red")
red.save("red.jpg")
red.save("red.gif")
display(red, Image("red.jpg"), Image("red.gif"))

# %%
red.convert("L")

# %%
Audio([0, 0.5, -0.5, 0.25] * 20, rate=8000)

# %%
Video(b"\x00\x01\x02", embed=True, mimetype="video/mp4")

# %%
display({"application/pdf": base64.b64encode(b"%PDF-1.4").decode(), "text/plain": "a pdf"}, raw=True)

# %%
Image("missing.png")

# %%
Image(b"not an image")
