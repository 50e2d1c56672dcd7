"""Opens the fonts of a figure's usual texts, when a sandbox imports this before its run.

matplotlib finds and opens the fonts of each size with the first text of that size. That takes
some milliseconds of a first figure. matplotlib remembers what it has found and opened.
"""

from matplotlib import font_manager

for size in ("medium", "large"):  # of labels, and of titles
    font_manager.get_font(
        font_manager.fontManager._find_fonts_by_props(font_manager.FontProperties(size=size))
    )
