# Warnings: shown with a file of a cell, once, as errors, from libraries.
# normalise: pids

# %%
import warnings

warnings.warn("a user warning")

# %%
def old():
    warnings.warn("old is going away", DeprecationWarning, stacklevel=2)


old()

# %%
for _i in range(3):
    warnings.warn("only once here")

# %%
warnings.simplefilter("error")
warnings.warn("now an error", RuntimeWarning)

# %%
import numpy as np  # adds filters of its own; in a warm kernel it has already

warnings.resetwarnings()
np.array([1.0]) / 0

# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.warn("caught")
str(caught[0].message)

# %%
warnings.simplefilter("ignore")
warnings.warn("not shown")

# %%
warnings.filters[:3]
