# Random numbers from a seed, and a model fitted with them.

# %%
import random

random.seed(1)
[random.random() for _ in range(3)], random.sample(range(100), 5), random.choices("abc", k=4)

# %%
import numpy as np

np.random.seed(0)
np.random.rand(3), np.random.default_rng(7).integers(0, 10, 5)

# %%
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

X, y = make_classification(100, random_state=3)
cross_val_score(RandomForestClassifier(10, random_state=3), X, y, cv=3)

# %%
RandomForestClassifier(10, random_state=3).fit(X, y)

# %%
from scipy import stats

stats.norm.rvs(size=3, random_state=5), stats.ttest_ind([1, 2, 3], [2, 3, 4])
