"""Run as a cell: programs that a filter of system calls, a bound or a mask could be in the way of."""
import json, os, subprocess, sys, tempfile

def run(*arguments, **options):
    return subprocess.run(arguments, check=True, capture_output=True, text=True, timeout=60, **options).stdout

def server_and_client():
    import http.server, threading, urllib.request
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_): pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for _ in range(20):
        assert urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").status == 200
    server.shutdown()

def asyncio_connections():
    code = """
import asyncio
async def main():
    async def answer(r, w):
        w.write(await r.readline()); await w.drain(); w.close()
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async def ask(n):
        r, w = await asyncio.open_connection("127.0.0.1", port)
        w.write(b"%d\\n" % n); assert await r.readline() == b"%d\\n" % n; w.close()
    await asyncio.gather(*map(ask, range(300)))
asyncio.run(main())
"""
    run(sys.executable, "-c", code)

def pools():
    import concurrent.futures, multiprocessing
    with concurrent.futures.ProcessPoolExecutor(4, multiprocessing.get_context("fork")) as pool:
        assert sum(pool.map(abs, range(-50, 0))) == 1275
    from joblib import Parallel, delayed
    assert Parallel(2)(delayed(abs)(-n) for n in range(20)) == list(range(20))

def sklearn_in_processes():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.datasets import load_iris
    from sklearn.model_selection import cross_val_score
    assert cross_val_score(RandomForestClassifier(10), *load_iris(return_X_y=True), n_jobs=2).mean() > 0.8

def terminals():
    assert run("script", "-qec", "tty", "/dev/null").startswith("/dev/pts/")
    import pty
    assert pty.spawn(["true"]) == 0

def shell_of_ipython():
    assert get_ipython().getoutput("echo a") == ["a"]
    assert get_ipython().system("true") is None

def psutil_looks_around():
    import psutil
    psutil.net_if_addrs(); psutil.virtual_memory(); psutil.swap_memory(); psutil.cpu_percent(); psutil.cpu_count(False)
    psutil.disk_usage("/tmp"); psutil.boot_time(); psutil.Process().as_dict(); os.getloadavg()

def git():
    with tempfile.TemporaryDirectory() as folder:
        run("git", "init", "-q", folder)
        run("git", "-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")

def sqlite():
    import sqlite3
    with sqlite3.connect("/tmp/x.db") as db:
        db.execute("create table t (x)")
        db.execute("insert into t values (1)")

def plots():
    import matplotlib.pyplot as plt
    plt.plot([1, 2])
    plt.savefig("/tmp/x.png")
    plt.close()

def udp():
    import socket
    with socket.socket(type=socket.SOCK_DGRAM) as a, socket.socket(type=socket.SOCK_DGRAM) as b:
        a.bind(("127.0.0.1", 0))
        b.sendto(b"x", a.getsockname())
        assert a.recv(1) == b"x"

def display():
    """Xvfb waits for five seconds where it takes its folder for somebody else's."""
    import time, tkinter
    begun = time.monotonic()
    tkinter.Tk().destroy()
    assert time.monotonic() - begun < 4

def outcome(f):
    try:
        f()
        return "ok"
    except BaseException as e:
        return repr(e)

print(json.dumps({f.__name__: outcome(f) for f in (
    server_and_client, asyncio_connections, pools, sklearn_in_processes, terminals, shell_of_ipython,
    psutil_looks_around, git, sqlite, plots, udp, display,
)}))
