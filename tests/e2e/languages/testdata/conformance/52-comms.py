# Comms, which widgets are made of, without anybody at the other end.
# normalise: comm-ids, pids

# %%
import ipywidgets

# %%
from ipykernel.comm import Comm

comm = Comm(target_name="nobody", data={"state": {"_model_name": "Own", "_model_module": "own", "value": 1}})
comm.target_name

# %%
comm.send({"method": "update", "state": {"value": 2}})
comm.on_msg(print)

# %%
comm.close()
print("closed")
