"""Lists the public names of the modules that the page completes, as JSON.

TestThePagesMembers runs it in a sandbox of Python's image. MODULES is what people import most, of
what the image has. A module's value is its names, separated by spaces, without those that it has
imported from other packages. The versions are of the packages: the page gives no names of another.
"""

import importlib
import importlib.metadata
import json
import pkgutil
import types
import warnings

MODULES = """
base64 bisect calendar collections contextlib copy csv dataclasses datetime decimal enum fractions
functools glob gzip hashlib heapq html io itertools json logging math operator os os.path pathlib
pickle platform random re secrets shutil sqlite3 statistics string struct subprocess sys tempfile
textwrap threading time timeit traceback types typing unicodedata urllib urllib.parse
urllib.request uuid warnings zipfile zoneinfo
bs4 cv2 docx imageio IPython.display ipywidgets lxml.etree matplotlib matplotlib.pyplot networkx
nltk numpy numpy.fft numpy.linalg numpy.ma numpy.random openpyxl pandas pandas.api.types
pdfplumber PIL PIL.Image PIL.ImageDraw PIL.ImageFilter PIL.ImageFont plotly plotly.express
plotly.graph_objects plotly.subplots pptx pyarrow pyarrow.compute pyarrow.parquet pymupdf pypdf
reportlab.pdfgen.canvas requests scipy scipy.cluster.hierarchy scipy.fft scipy.integrate
scipy.interpolate scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse
scipy.spatial scipy.special scipy.stats seaborn skimage skimage.filters skimage.io
skimage.measure skimage.morphology skimage.transform sklearn sklearn.cluster
sklearn.datasets sklearn.decomposition sklearn.ensemble sklearn.linear_model sklearn.metrics
sklearn.model_selection sklearn.naive_bayes sklearn.neighbors sklearn.pipeline
sklearn.preprocessing sklearn.svm sklearn.tree sqlalchemy sqlalchemy.orm statsmodels.api
statsmodels.formula.api sympy tabulate textblob wordcloud xarray xlrd xlsxwriter yaml
"""

# Classes whose methods are called most.
CLASSES = """
datetime.date datetime.datetime datetime.timedelta matplotlib.axes.Axes matplotlib.figure.Figure
numpy.ndarray pandas.DataFrame pandas.Series pandas.Timestamp pathlib.Path
"""


def names_of(thing: object) -> list[str]:
    """Returns the public names of a module, or of a class."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {name for name in dir(thing) if is_member(thing, name)}
    if isinstance(thing, types.ModuleType):
        names.update(getattr(thing, "__all__", ()))
        # Which of its modules it has depends on what was imported before.
        names.update(module.name for module in pkgutil.iter_modules(getattr(thing, "__path__", ())))
    return sorted(name for name in names if not name.startswith("_") and name.isidentifier())


def is_member(thing: object, name: str) -> bool:
    """Reports whether a name is more than what a module has imported for itself."""
    if not isinstance(thing, types.ModuleType):
        return True
    value = getattr(thing, name, None)
    if isinstance(value, types.ModuleType):
        return False
    module = getattr(value, "__module__", None)
    return (
        not isinstance(module, str)
        or module.split(".")[0].lstrip("_") == thing.__name__.split(".")[0]
    )


def versions() -> dict[str, str]:
    """Returns the version of the package that each first name of MODULES comes from."""
    of = importlib.metadata.packages_distributions()
    roots = {name.partition(".")[0] for name in MODULES.split()}
    return {root: importlib.metadata.version(of[root][0]) for root in roots if root in of}


def main() -> None:
    """Prints the list."""
    members = {name: " ".join(names_of(importlib.import_module(name))) for name in MODULES.split()}
    for name in CLASSES.split():
        module, _, of = name.rpartition(".")
        members[name] = " ".join(names_of(getattr(importlib.import_module(module), of)))
    found = {"members": members, "versions": versions()}
    print(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False))


main()
