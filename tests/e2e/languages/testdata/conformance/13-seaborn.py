# seaborn's themes, and a plot of a table.

# %%
import pandas as pd
import seaborn as sns

sns.set_theme(style="whitegrid")
df = pd.DataFrame({"x": [1, 2, 3, 4], "y": [2, 1, 4, 3], "g": list("abab")})
sns.lineplot(df, x="x", y="y", hue="g")

# %%
ax = sns.heatmap(df[["x", "y"]].corr(), annot=True)
ax.set_title("correlation")
