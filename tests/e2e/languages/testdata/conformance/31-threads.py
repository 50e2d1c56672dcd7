# Output and errors of threads.
# normalise: pids

# %%
import threading

def say(n):
    print("thread", n)


for n in range(5):
    t = threading.Thread(target=say, args=(n,))
    t.start()
    t.join()

# %%
from concurrent.futures import ThreadPoolExecutor

with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(lambda n: n * n, range(8))))

# %%
t = threading.Thread(target=lambda: 1 / 0, name="failing")
t.start()
t.join()

# %%
with ThreadPoolExecutor(1) as pool:
    pool.submit(lambda: {}["key"]).result()

# %%
lock = threading.Lock()
lines = []

def work(n):
    for i in range(100):
        with lock:
            lines.append((n, i))


threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]
[t.join() for t in threads]
len(lines), threading.current_thread().name

# %%
t = threading.Thread(target=display, args=("shown by a thread",))
t.start()
t.join()

# %%
done = threading.Event()

def later():
    done.wait()
    print("printed while the next cell runs")


t = threading.Thread(target=later)
t.start()

# %%
done.set()
t.join()
print("the next cell")
