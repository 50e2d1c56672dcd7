"""Fonts of the image, for matplotlib: run while it is built.

fonts.py scripts    prints the families for what a chosen font lacks
fonts.py names      writes the font list, with the names that programs know fonts by
"""

from __future__ import annotations

import dataclasses
import json
import sys

# By readers; the last one has signs and symbols.
SCRIPTS = (
    *("CJK SC", "Devanagari", "Arabic", "Bengali", "Telugu", "Tamil", "Gujarati", "Kannada"),
    *("Malayalam", "Oriya", "Gurmukhi", "Thai", "Hebrew", "Myanmar", "Ethiopic", "Sinhala"),
    *("Khmer", "Lao", "Armenian", "Georgian"),
)
SYMBOLS = "Symbola"
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


def names() -> None:
    import matplotlib
    from matplotlib import font_manager

    fonts = font_manager.fontManager
    there = {entry.name for entry in fonts.ttflist}
    for family in [f"Noto Sans {script}" for script in SCRIPTS] + [SYMBOLS, *NAMES]:
        assert family in there, f"{family} is not installed"
    for family, others in NAMES.items():
        for entry in [e for e in fonts.ttflist if e.name == family]:
            fonts.ttflist += [dataclasses.replace(entry, name=o) for o in others if o not in there]
    cache = f"{matplotlib.get_cachedir()}/fontlist-v{font_manager.FontManager.__version__}.json"
    font_manager.json_dump(fonts, cache)


if __name__ == "__main__":
    if sys.argv[1] == "scripts":
        print(json.dumps([f"Noto Sans {script}" for script in SCRIPTS] + [SYMBOLS])[1:-1])
    else:
        names()
