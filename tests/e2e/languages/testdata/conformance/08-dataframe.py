# Tables of pandas: html and plain, wide, long, empty, with a describe().

# %%
import numpy as np
import pandas as pd

df = pd.DataFrame({"a": [1, 2, 3], "b": list("xyz"), "c": pd.date_range("2024-01-01", periods=3)})
df

# %%
df["a"]

# %%
df.describe()

# %%
df.info()

# %%
pd.DataFrame(np.arange(2000).reshape(100, 20))

# %%
pd.DataFrame()

# %%
df.groupby("b").a.agg(["sum", "mean"]).T

# %%
pd.concat([df, df.assign(a=np.nan)]).pivot_table(index="b", columns="c", values="a")

# %%
print(df.to_markdown())
df.to_csv("t.csv", index=False)
pd.read_csv("t.csv").dtypes

# %%
pd.options.display.max_rows = 4
pd.Series(range(10), name="ten")

# %%
np.random.default_rng(1).normal(size=(3, 3))

# %%
df["missing"]
