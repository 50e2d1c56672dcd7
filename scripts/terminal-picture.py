"""Makes a page of what a terminal shows, to be photographed by a browser: of what tmux
capture-pane -e -p wrote, or with --xterm of a program's own output."""

import argparse
import base64
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
    [
        (72, 79, 88),
        (255, 123, 114),
        (86, 211, 100),
        (227, 179, 65),
        (121, 192, 255),
        (210, 168, 255),
        (86, 212, 221),
        (201, 209, 217),
    ],
    [
        (110, 118, 129),
        (255, 161, 152),
        (126, 231, 135),
        (242, 204, 96),
        (165, 214, 255),
        (226, 197, 255),
        (179, 240, 255),
        (240, 246, 252),
    ],
)

# In rich's own notation; @NAME@ is ours.
PAGE = """<!doctype html><meta charset="utf-8">
<!-- size @WIDTH@,@HEIGHT@ -->
<style>
body {{ margin: 0; background: {background}; color: {foreground}; overflow: hidden }}
header {{ font: 13px/@TITLE@px "DejaVu Sans"; color: #8b949e; background: #161b22 }}
header {{ text-align: center }}
pre {{ margin: @PADDING@px; font: 14px/@LINE@px "DejaVu Sans Mono", monospace }}
</style>
<header>@HEADING@</header><pre>{code}</pre>
"""


def page(ansi: str, columns: int, heading: str) -> str:
    # Links are as long as what they lead to; a picture has none.
    text = re.sub(r"\x1b]8;[^\x1b\x07]*(?:\x1b\\|\x07)", "", ansi).rstrip("\n")
    lines = text.count("\n") + 1
    console = Console(
        record=True,
        width=columns,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
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


# The terminal xterm.js with its addon for images. Its lines are XTERM_LINE_PX high.
XTERM_LINE_PX = 16
XTERM_PAGE = """<!doctype html><meta charset="utf-8">
<!-- size @WIDTH@,@HEIGHT@ -->
<link rel="stylesheet" href="file://@MODULES@/@xterm/xterm/css/xterm.css">
<style>
body { margin: 0; background: #0d1117; overflow: hidden }
header { font: 13px/@TITLE@px "DejaVu Sans"; color: #8b949e; background: #161b22 }
header { text-align: center }
#terminal { margin: @PADDING@px }
</style>
<header>@HEADING@</header><div id="terminal"></div>
<script src="file://@MODULES@/@xterm/xterm/lib/xterm.js"></script>
<script src="file://@MODULES@/@xterm/addon-image/lib/addon-image.js"></script>
<script>
const terminal = new Terminal({
  cols: @COLUMNS@, rows: @ROWS@, allowProposedApi: true,
  fontFamily: "DejaVu Sans Mono", fontSize: 14,
  theme: {
    background: "#0d1117", foreground: "#c9d1d9",
    cyan: "#56d4dd", green: "#56d364", red: "#ff7b72",
  },
});
terminal.loadAddon(new ImageAddon.ImageAddon());
terminal.open(document.getElementById("terminal"));
terminal.write(Uint8Array.from(atob("@BYTES@"), (c) => c.charCodeAt(0)));
</script>
"""


def xterm_page(output: bytes, modules: Path, columns: int, rows: int, heading: str) -> str:
    form = XTERM_PAGE
    for name, value in {
        "WIDTH": round(columns * CHAR_PX + 2 * PADDING_PX),
        "HEIGHT": rows * XTERM_LINE_PX + 2 * PADDING_PX + TITLE_PX,
        "TITLE": TITLE_PX,
        "PADDING": PADDING_PX,
        "HEADING": html.escape(heading),
        "MODULES": modules.resolve(),
        "COLUMNS": columns,
        "ROWS": rows,
        "BYTES": base64.b64encode(output).decode(),
    }.items():
        form = form.replace(f"@{name}@", str(value))
    return form


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--title", default="")
    parser.add_argument("--size", type=Path, help="print the size of a page that was made before")
    parser.add_argument(
        "--xterm",
        type=Path,
        metavar="NODE_MODULES",
        help="have xterm.js show the program's own output",
    )
    parser.add_argument("--rows", type=int, default=60, help="of xterm.js")
    parser.add_argument(
        "files", type=Path, nargs="*", help="the capture, and the page to be written"
    )
    args = parser.parse_args()
    if args.size:
        found = re.search(r"<!-- size (\S+) -->", args.size.read_text())
        if not found:
            parser.error(f"{args.size} has no size")
        print(found[1])
        return
    capture, out = args.files
    if args.xterm:
        out.write_text(
            xterm_page(capture.read_bytes(), args.xterm, args.columns, args.rows, args.title)
        )
        return
    out.write_text(page(capture.read_text(), args.columns, args.title))


if __name__ == "__main__":
    main()
