"""Fonts of the image, for matplotlib: run while it is built.

fonts.py merge         makes one font, in two weights, of those of many scripts
fonts.py patch FILE    has FILE, matplotlib's font_manager.py, end each list of fonts alike
fonts.py names         writes the font list, with the names that programs know fonts by
"""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile

# By readers. matplotlib opens each font of a list with each text that is the first of its
# kind: twenty files are 7 ms of a run, and as many open descriptors.
SCRIPTS = (
    *("Devanagari", "Arabic", "Bengali", "Telugu", "Tamil", "Gujarati", "Kannada", "Malayalam"),
    *("Oriya", "Gurmukhi", "Thai", "Hebrew", "Myanmar", "Ethiopic", "Sinhala", "Khmer", "Lao"),
    *("Armenian", "Georgian"),
)
FILE = "/usr/share/fonts/truetype/noto/NotoSans%s-%s.ttf"
MERGED = "/opt/venv/share/fonts/scripts-%s.ttf"  # where nobody looks for fonts
# What shapes text, as matplotlib does not, and what only one font can have.
LEFT_OUT = ["GSUB", "GPOS", "GDEF", "MATH", "STAT", "gvar", "fvar", "avar", "HVAR", "MVAR"]
SEMIBOLD = 550
PATCH = {
    "for family in prop.get_family():": (
        "for family in [*prop.get_family(), 'Noto Sans CJK SC', 'Symbola']:"
    ),
    "        return fpaths\n": (
        f"        bold = _normalize_weight(prop.get_weight()) > {SEMIBOLD}\n"
        f"        return [*fpaths, {MERGED!r} % ('Bold' if bold else 'Regular')]\n"
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


def merge() -> None:
    from fontTools import merge, subset, ttLib

    os.makedirs(os.path.dirname(MERGED))
    options = subset.Options(layout_features=[], hinting=False, glyph_names=False)
    options.drop_tables += LEFT_OUT
    for face in ("Regular", "Bold"):
        with tempfile.TemporaryDirectory() as folder:
            for script in SCRIPTS:
                font = ttLib.TTFont(FILE % (script, face))
                needed = subset.Subsetter(options)
                needed.populate(unicodes=font.getBestCmap())
                needed.subset(font)
                font.save(f"{folder}/{script}")
            merge.Merger().merge([f"{folder}/{script}" for script in SCRIPTS]).save(MERGED % face)


def patch(path: str) -> None:
    with open(path, encoding="utf-8") as f:
        code = f.read()
    for old, new in PATCH.items():
        assert code.count(old) == 1, f"matplotlib has changed: {old}"
        code = code.replace(old, new)
    with open(path, "w", encoding="utf-8") as f:
        f.write(code)


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
    match sys.argv[1:]:
        case ["merge"]:
            merge()
        case ["patch", path]:
            patch(path)
        case ["names"]:
            names()
