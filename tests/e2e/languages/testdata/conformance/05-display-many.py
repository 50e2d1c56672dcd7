# display() of several objects and kinds, between prints.

# %%
print("first")
display(1, "two", [3.0, None], {"four": 4})
print("second")
display()
display({"a": {"b": [1, 2]}}, display_id=False)
5

# %%
display({"text/plain": "a bundle", "text/markdown": "*a bundle*", "application/x.custom+json": {"k": [1, None, 1.5]}}, raw=True)

# %%
display({"text/plain": "with metadata"}, raw=True, metadata={"text/plain": {"width": 3}, "isolated": True})

# %%
display("html left out", include=["text/plain"])
display("everything left out", exclude=["text/plain"])

# %%
from IPython.display import publish_display_data

publish_display_data({"text/plain": "published", "text/html": "<b>published</b>"}, {"m": 1})

# %%
for i in range(30):
    display(i)
