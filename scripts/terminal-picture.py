"""Makes a page of what tmux capture-pane -e -p wrote, to be photographed by a browser."""

import argparse
import html
import io
import re
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

LINE_PX = 20
CHAR_PX = 8.43
PADDING_PX = 16
TITLE_PX = 34

THEME = TerminalTheme(
    (13, 17, 23),
    (201, 209, 217),
    [(72, 79, 88), (255, 123, 114), (86, 211, 100), (227, 179, 65), (121, 192, 255), (210, 168, 255), (86, 212, 221), (201, 209, 217)],
    [(110, 118, 129), (255, 161, 152), (126, 231, 135), (242, 204, 96), (165, 214, 255), (226, 197, 255), (179, 240, 255), (240, 246, 252)],
)

# In rich's own notation; @NAME@ is ours.
PAGE = """<!doctype html><meta charset="utf-8">
<!-- size @WIDTH@,@HEIGHT@ -->
<style>
body {{ margin: 0; background: {background}; color: {foreground}; width: @WIDTH@px; height: @HEIGHT@px; overflow: hidden }}
header {{ font: 13px/@TITLE@px "DejaVu Sans", sans-serif; color: #8b949e; text-align: center; background: #161b22 }}
pre {{ margin: @PADDING@px; font: 14px/@LINE@px "DejaVu Sans Mono", monospace }}
</style>
<header>@HEADING@</header><pre>{code}</pre>
"""


def page(ansi: str, columns: int, heading: str) -> str:
    # Links are as long as what they lead to; a picture has none.
    text = re.sub(r"\x1b]8;[^\x1b\x07]*(?:\x1b\\|\x07)", "", ansi).rstrip("\n")
    lines = text.count("\n") + 1
    console = Console(record=True, width=columns, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(Text.from_ansi(text), soft_wrap=True)
    form = PAGE
    for name, value in {
        "WIDTH": round(columns * CHAR_PX + 2 * PADDING_PX),
        "HEIGHT": lines * LINE_PX + 2 * PADDING_PX + TITLE_PX,
        "TITLE": TITLE_PX,
        "PADDING": PADDING_PX,
        "LINE": LINE_PX,
        "HEADING": html.escape(heading),
    }.items():
        form = form.replace(f"@{name}@", str(value))
    return console.export_html(theme=THEME, code_format=form, inline_styles=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--title", default="")
    parser.add_argument("--size", type=Path, help="print the size of a page that was made before")
    parser.add_argument("files", type=Path, nargs="*", help="the capture, and the page to be written")
    args = parser.parse_args()
    if args.size:
        found = re.search(r"<!-- size (\S+) -->", args.size.read_text())
        if not found:
            parser.error(f"{args.size} has no size")
        print(found[1])
        return
    capture, out = args.files
    out.write_text(page(capture.read_text(), args.columns, args.title))


if __name__ == "__main__":
    main()
