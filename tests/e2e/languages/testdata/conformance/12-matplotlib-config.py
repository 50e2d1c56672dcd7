# The inline backend's settings: retina, several formats, other sizes.
# normalise: pids

# %%
import os

os.environ["SOURCE_DATE_EPOCH"] = "0"
%matplotlib inline
import matplotlib.pyplot as plt

plt.rcParams["svg.hashsalt"] = "fixed"
%config InlineBackend.figure_format = 'retina'
plt.figure(figsize=(1, 1))
plt.plot([1, 2]);

# %%
%config InlineBackend.figure_formats = ['svg', 'png']
plt.figure(figsize=(1, 1))
plt.plot([2, 1]);

# %%
from matplotlib_inline.backend_inline import set_matplotlib_formats

set_matplotlib_formats("jpeg", pil_kwargs={"quality": 50})
plt.figure(figsize=(1, 1))
plt.plot([1, 1]);

# %%
%config InlineBackend.close_figures = False
set_matplotlib_formats("png")
plt.figure(figsize=(1, 1))

# %%
plt.gcf().get_size_inches()

# %%
%matplotlib agg
plt.close("all")
plt.plot([3, 2])
plt.show()

# %%
%matplotlib --list

# %%
%matplotlib nonsense
