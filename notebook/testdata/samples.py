"""Writes the executed notebooks that the tests of package notebook decode.

    python3 -m venv /tmp/samples
    /tmp/samples/bin/pip install nbconvert ipykernel matplotlib pandas tqdm sympy
    /tmp/samples/bin/python testdata/samples.py 9   # IPython's major version

With `pip install 'ipython<9'` and 8 it writes the errors of IPython 8 only.
Afterwards: go test ./notebook -update, and read the difference.
"""

import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

HERE = Path(__file__).parent

# Each cell raises; "line" is what Decode must find. The cells run in one kernel.
ERRORS: list[tuple[str, int]] = [
    ("a = 1\nb = 0\n\nprint('hi')\na / b\n", 5),
    ("def f(x):\n    y = 1\n    return x / 0\n\nprint(1)\n\nf(3)\n", 3),
    ("# f is from the cell before\n\nf(3)\n", 3),
    ("y = 2\nx = = 1\n", 2),
    ("if True:\nx = 1\n", 2),
    ("print((1\n", 1),
    ("import json\n\n\njson.loads('{')\n", 4),
    ("try:\n    1/0\nexcept Exception as e:\n    z = 1\n    raise ValueError('Cell In[6], line 99') from e\n", 5),
    ("import sys\nsys.exit(3)\n", 0),
    ("x = 1\nraise KeyboardInterrupt\n", 2),
    ("class E(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise E()\n", 2),
    ("raise ValueError('a\\nCell In[12], line 77\\nb')\n", 1),
    ("%%time\nx = 1\n1/0\n", 3),
    ("%%bash\necho hi\nexit 3\n", 1),
    ("undefined_thing\n", 1),
    ("g = lambda: [i/0 for i in range(3)]\nlist(map(lambda _: g(), [1]))\n", 1),
    ("exec('x=1\\n1/0')\n", 1),
    ("\n  \n\nassert 1 == 2, 'differs'\n", 4),
    ("\n\nx = (\n", 3),
    ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    1/0\nawait f()\n", 4),
    ("eval('1 +')\n", 1),
    ("e = ValueError('x')\ne.add_note('a note')\nraise e\n", 3),
    ("def deep(n):\n    return deep(n - 1) if n else 1/0\n\ndeep(20)\n", 2),
    ("try:\n    1/0\nexcept Exception:\n    get_ipython().showtraceback()\n\nraise KeyError('k')\n", 6),
]

RICH = [
    "import matplotlib.pyplot as plt\nimport pandas as pd\nfrom IPython.display import *\n",
    "for n in (2, 3):\n    plt.figure(figsize=(n, 1), dpi=40)\n    plt.plot([1, n])\n    plt.show()\n",
    "pd.DataFrame({'city': ['Oslo', 'Ōsaka'], 'people': [709_037, 2_753_862]})",
    "pd.DataFrame({'x': [1, 2]}).style.hide(axis='index').set_uuid('t')",
    "display(HTML('<h2>Title</h2><p>one &amp; two</p><script>alert(1)</script>'), Markdown('# head\\n*text*'), Latex('$x^2$'))",
    'display(SVG(\'<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"><rect width="9" height="9"/></svg>\'))',
    "display(JSON({'a': [1, 2.5, None, 'ü<>&'], 'n': float('nan')}), Javascript('1+1'))",
    "from sympy import symbols\nsymbols('x')**2 / 3",
    (
        "import base64\n"
        "display(Image(base64.b64decode('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7'), format='gif'))\n"
        "display({'application/pdf': base64.b64encode(b'%PDF-1.4\\n').decode(), 'text/plain': 'a report'}, raw=True)\n"
        "display({'image/png': 'bm90IGEgcG5n', 'text/plain': '<fake>'}, raw=True)"
    ),
    "fig, ax = plt.subplots(figsize=(1, 1), dpi=30)\nraise RuntimeError('the figure is still shown')",
]

STREAMS = [
    "import sys, time\nprint('out')\nprint('err', file=sys.stderr)\nprint('out again', end='')\n",
    "for i in range(5):\n    print(f'\\rstep {i} of 4' + '.' * (5 - i), end='', flush=True)\n    time.sleep(.3)\nprint()\n",
    "from tqdm import tqdm\nfor i in tqdm(range(3), ncols=60, bar_format='{desc}{percentage:3.0f}%|{bar}|'):\n    time.sleep(.3)\n",
    (
        "for i in tqdm(range(2), desc='outer', ncols=60, bar_format='{desc}{percentage:3.0f}%|{bar}|'):\n"
        "    for j in tqdm(range(3), desc='inner', leave=False, ncols=60, bar_format='{desc}{percentage:3.0f}%|{bar}|'):\n"
        "        time.sleep(.15)\n"
    ),
    "print('a\\x00b\\x1b[31mred\\x1b[0m \\u2028 \\x1b]8;;https://example.org\\x1b\\\\link\\x1b]8;;\\x1b\\\\ ab\\bc\\tz')\n",
    "import os\nos.write(1, b'\\xff\\xfe raw\\n')\nsys.stdout.flush(); time.sleep(.5)\nprint('\\udcff')\n",
    "from IPython.display import clear_output\nprint(1)\nclear_output(wait=True)\nprint(2)\n",
    "h = display('first', display_id=True)\nh.update('second')\n",
    "raise ValueError('expected')",
    "es = []\nfor i in (1, 2):\n    try: raise ValueError(i)\n    except Exception as e: es.append(e)\n\nraise ExceptionGroup('many', es)",
]


def execute(name: str, notebook: nbformat.NotebookNode) -> None:
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    path = HERE / f"{name}.ipynb"
    nbformat.write(notebook, path)
    jupyter = Path(sys.executable).with_name("jupyter")
    command = [jupyter, "nbconvert", "--to", "notebook", "--execute", "--allow-errors", "--inplace", path]
    subprocess.run([str(part) for part in command], check=True)


def errors(version: str) -> None:
    cells = [new_code_cell(code, metadata={"line": line}) for code, line in ERRORS]
    execute(f"errors-ipython{version}", new_notebook(cells=cells))


def main(version: str) -> None:
    errors(version)
    if version == "8":
        return
    rich = [new_markdown_cell("# Rich outputs")] + [new_code_cell(code) for code in RICH]
    execute("rich", new_notebook(cells=rich))
    streams = [new_code_cell(code) for code in STREAMS]
    streams[-2].metadata["tags"] = ["raises-exception"]
    execute("streams", new_notebook(cells=streams))


if __name__ == "__main__":
    main(sys.argv[1])
