# Displays that are updated, in their own cell and from later ones.
# normalise: display-ids

# %%
from IPython.display import HTML, display, update_display

handle = display("first", display_id=True)
type(handle).__name__

# %%
handle.update("second")
print("an update is no output of this cell")

# %%
named = display("a", display_id="named")
display("between")
named.display("b, the same id once more")

# %%
update_display(HTML("<b>c</b>"), display_id="named")

# %%
update_display("nobody shows this", display_id="unknown")

# %%
for i in range(20):
    named.update(i)
i

# %%
handle

# %%
display({"text/plain": "raw"}, raw=True, display_id="named", metadata={"k": 1})
1 / 0

# %%
update_display({"text/plain": "raw 2"}, raw=True, display_id="named", metadata={"k": 2})
