# Progress bars; their times are cut from the format, so that nothing is left to chance.
# normalise: stream-order

# %%
from tqdm import tqdm

bare = "{desc}{percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt}"
for _ in tqdm(range(20), bar_format=bare, ncols=60, mininterval=0, miniters=1):
    pass

# %%
for _ in tqdm(range(3), desc="outer ", bar_format=bare, ncols=60, mininterval=0, miniters=1, ascii=True):
    tqdm.write("a line between")

# %%
from tqdm.auto import trange

for _ in trange(3, bar_format=bare, ncols=60, mininterval=0, miniters=1, leave=False):
    pass
