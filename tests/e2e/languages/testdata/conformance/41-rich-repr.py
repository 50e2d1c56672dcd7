# Objects that say for themselves how they are shown, also wrongly.
# normalise: addresses

# %%
class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "plain", "text/html": "<i>html</i>", "application/vnd.own+json": {"a": 1}}, {"text/html": {"m": True}}


Bundle()

# %%
display(Bundle(), include=["text/html"])
[Bundle()]

# %%
class Many:
    def _repr_html_(self):
        return "<b>h</b>"

    def _repr_markdown_(self):
        return "**m**", {"meta": 1}

    def _repr_latex_(self):
        return "$l$"

    def _repr_json_(self):
        return {"j": [1]}

    def _repr_svg_(self):
        return "<svg xmlns='http://www.w3.org/2000/svg'/>"

    def _repr_png_(self):
        return b"\x89PNG\r\n\x1a\n"

    def _repr_javascript_(self):
        return "1"


Many()

# %%
class Broken:
    def _repr_html_(self):
        return 1 / 0


Broken()

# %%
class Wrong:
    def _repr_html_(self):
        return 5


Wrong()

# %%
class Shows:
    def _ipython_display_(self):
        print("shown by itself")
        display("and this")


Shows()

# %%
class Anything:
    def __getattr__(self, name):
        return lambda *a, **k: name


Anything()

# %%
class Nothing:
    def _repr_html_(self):
        return None

    def _repr_mimebundle_(self, **_):
        return None


Nothing()

# %%
class Pretty:
    def _repr_pretty_(self, p, cycle):
        with p.group(2, "Pretty(", ")"):
            for i in range(30):
                p.text(str(i))
                p.breakable()


Pretty()

# %%
from IPython import get_ipython

get_ipython().display_formatter.formatters["text/html"].for_type(complex, lambda c: f"<em>{c}</em>")
1 + 2j
