# The text formats of IPython.display.
# normalise: addresses

# %%
from IPython.display import HTML, JSON, SVG, Code, FileLink, GeoJSON, IFrame, Javascript, Latex, Markdown, Math, Pretty, ProgressBar

HTML("<b>bold</b><script>alert(1)</script>")

# %%
display(Markdown("# title\n\n- *item*"), Latex(r"$$\int_0^1 x\,dx$$"), Math(r"\frac{1}{2}"), Pretty("pretty"))

# %%
JSON({"a": [1, 2.5, None, True], "ü": "é"}, expanded=True, root="r")

# %%
JSON([1, {"b": "c"}])

# %%
SVG('<?xml version="1.0"?><!-- c --><svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><circle cx="5" cy="5" r="4"/></svg>')

# %%
Javascript("console.log('hello')", lib="https://example.com/x.js")

# %%
GeoJSON({"type": "Point", "coordinates": [1, 2]})

# %%
display(IFrame("https://example.com", 300, 200), FileLink("missing.txt"), Code("def f():\n    return 1\n", language="python"))

# %%
ProgressBar(10)

# %%
%%html
<table><tr><td>1</td></tr></table>

# %%
%%latex
$a^2 + b^2$

# %%
%%markdown
**from** a magic

# %%
%%javascript
element.text("x")

# %%
%%svg
<svg xmlns="http://www.w3.org/2000/svg"><rect width="1" height="1"/></svg>
