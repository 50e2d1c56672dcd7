# Worker processes: forked ones with functions of the notebook, spawned ones with a module.
# normalise: as-a-script

# %%
import multiprocessing as mp


def square(n):
    return n * n


with mp.get_context("fork").Pool(2) as pool:
    print(pool.map(square, range(5)))

# %%
%%writefile worker.py
import os


def cube(n):
    return n**3


def fail(n):
    raise ValueError(f"worker {n}")

# %%
import worker

with mp.get_context("spawn").Pool(2) as pool:
    print(pool.map(worker.cube, range(4)))

# %%
from concurrent.futures import ProcessPoolExecutor

with ProcessPoolExecutor(1, mp_context=mp.get_context("fork")) as pool:
    print(list(pool.map(square, [7])))

# %%
q = mp.get_context("fork").Queue()
p = mp.get_context("fork").Process(target=q.put, args=("through a queue",))
p.start()
print(q.get())
p.join()
p.exitcode

# %%
# as a script
p = mp.get_context("fork").Process(target=exit, args=(3,))
p.start()
p.join()
p.exitcode

# %%
mp.get_start_method(), mp.current_process().name, mp.parent_process()

# %%
from joblib import Parallel, delayed

Parallel(n_jobs=2)(delayed(worker.cube)(i) for i in range(3))
