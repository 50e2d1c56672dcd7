"""Fonts of the image, for matplotlib: run while it is built.

fonts.py patch FILE    has FILE, matplotlib's font_manager.py, end each list of fonts alike
fonts.py names         writes the font list, with the names that programs know fonts by
"""

from __future__ import annotations

import dataclasses
import os
import sys

# By readers. They are found by their files, as a search for each takes a millisecond for
# each size of a text.
SCRIPTS = (
    *("Devanagari", "Arabic", "Bengali", "Telugu", "Tamil", "Gujarati", "Kannada", "Malayalam"),
    *("Oriya", "Gurmukhi", "Thai", "Hebrew", "Myanmar", "Ethiopic", "Sinhala", "Khmer", "Lao"),
    *("Armenian", "Georgian"),
)
FILE = "/usr/share/fonts/truetype/noto/NotoSans%s-%s.ttf"
SEMIBOLD = 550
PATCH = {
    "for family in prop.get_family():": (
        "for family in [*prop.get_family(), 'Noto Sans CJK SC', 'Symbola']:"
    ),
    "        return fpaths\n": (
        f"        bold = _normalize_weight(prop.get_weight()) > {SEMIBOLD}\n"
        "        face = 'Bold' if bold else 'Regular'\n"
        f"        return fpaths + [{FILE!r} % (script, face) for script in {SCRIPTS!r}]\n"
    ),
}
# What is drawn if a font is asked for that belongs to another system: one of the same
# widths, or of the same script.
NAMES = {
    "DejaVu Sans": ("Verdana", "Tahoma"),
    "Liberation Sans": ("Arial", "Helvetica"),
    "Liberation Serif": ("Times New Roman", "Times"),
    "Liberation Mono": ("Courier New", "Courier"),
    "Noto Sans CJK SC": ("SimHei", "Microsoft YaHei", "WenQuanYi Zen Hei", "Arial Unicode MS"),
    "Noto Sans CJK JP": ("MS Gothic", "Meiryo", "Yu Gothic", "IPAexGothic"),
    "Noto Sans CJK KR": ("Malgun Gothic", "NanumGothic", "AppleGothic"),
    "Noto Sans Devanagari": ("Mangal", "Nirmala UI", "Lohit Devanagari"),
    "Noto Sans Thai": ("Leelawadee UI", "TH Sarabun New"),
}


def patch(path: str) -> None:
    with open(path, encoding="utf-8") as f:
        code = f.read()
    for old, new in PATCH.items():
        assert code.count(old) == 1, f"matplotlib has changed: {old}"
        code = code.replace(old, new)
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)
    for script in SCRIPTS:
        assert os.path.exists(FILE % (script, "Regular")), script
        assert os.path.exists(FILE % (script, "Bold")), script


def names() -> None:
    import matplotlib
    from matplotlib import font_manager

    fonts = font_manager.fontManager
    there = {entry.name for entry in fonts.ttflist}
    for family, others in NAMES.items():
        assert family in there, f"{family} is not installed"
        for entry in [e for e in fonts.ttflist if e.name == family]:
            fonts.ttflist += [dataclasses.replace(entry, name=o) for o in others if o not in there]
    # It has one weight, of which each bold text would say so.
    for entry in [e for e in fonts.ttflist if e.name == "Symbola"]:
        fonts.ttflist.append(dataclasses.replace(entry, weight=700))
    cache = f"{matplotlib.get_cachedir()}/fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(fonts, cache)


if __name__ == "__main__":
    if sys.argv[1] == "patch":
        patch(sys.argv[2])
    else:
        names()
