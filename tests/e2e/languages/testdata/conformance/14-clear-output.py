# Output that is taken back, at once and with wait.

# %%
from IPython.display import clear_output

print("gone")
display("gone too")
clear_output()
print("stays")

# %%
print("replaced by the next")
clear_output(wait=True)
print("next")

# %%
print("nothing follows, so it stays")
clear_output(wait=True)

# %%
for i in range(5):
    clear_output(wait=True)
    print("step", i)
    display({"step": i})

# %%
clear_output()

# %%
import sys

print("gone", file=sys.stderr)
clear_output()
1 / 0

# %%
handle = display("shown", display_id="id")
clear_output()
handle.update("an update of what was cleared")
print("end")
