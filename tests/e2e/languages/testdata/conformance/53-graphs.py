# Graphs, images and text of the other libraries.

# %%
import networkx as nx

g = nx.path_graph(4)
print(g, nx.shortest_path(g, 0, 3))
nx.draw(g, pos={n: (n, n % 2) for n in g})

# %%
import cv2
import numpy as np
from skimage import filters

image = np.zeros((20, 20), np.uint8)
cv2.circle(image, (10, 10), 5, 255, -1)
int(image.sum()), float(filters.threshold_otsu(image))

# %%
from bs4 import BeautifulSoup

BeautifulSoup("<p class=a>text <b>bold</b></p>", "lxml")

# %%
import xarray as xr

print(xr.DataArray([[1, 2], [3, 4]], dims=("x", "y"), coords={"x": [10, 20]}))

# %%
import yaml
from tabulate import tabulate

print(tabulate([["a", 1], ["b", 2]], headers=["k", "v"], tablefmt="grid"))
yaml.safe_load("a: [1, {b: c}]")

# %%
import pyarrow as pa

pa.table({"a": [1, 2]})
