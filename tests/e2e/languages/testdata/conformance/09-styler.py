# A styled table: its HTML has ids made at random.
# normalise: addresses, styler-ids

# %%
import pandas as pd

df = pd.DataFrame([[1.0, -2.5], [3.25, 4.0]], columns=["up", "down"])
df.style.format("{:.1f}").highlight_max(color="yellow").set_caption("styled")

# %%
df.style.bar().hide(axis="index")

# %%
df.style.background_gradient(cmap="viridis").set_uuid("fixed")
