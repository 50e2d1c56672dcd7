package runnertest

// The cells of the suite, in Python. A fake recognises them.
const (
	CellHello   = `print("hello")`
	CellDisplay = `from IPython.display import HTML, clear_output, display
handle = display(HTML("<b>1</b>"), display_id=True)
handle.update(HTML("<b>2</b>"))
clear_output()
print("end")`
	CellRaise       = `raise ValueError("boom")`
	CellInput       = `input()`
	CellMemoryError = `raise MemoryError`
	CellSleep       = `import time
print("started", flush=True)
time.sleep(600)`
	CellStubborn = `import time
started = False
while True:
    try:
        if not started:
            started = True
            print("started", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        pass`
	CellKill = `import os
os.kill(os.getpid(), 9)`
	CellAllocate = `hoard = []
while True:
    hoard.append(b"x" * (16 << 20))`
	CellFlood = `while True:
    print("x" * 999)`
	CellEnv = `import os
print(os.environ["NOTEBOX_TEST"])`
	CellFiles = `print(open("in.csv").read() + open("folder/deep.txt").read())
open("changed.txt", "a").write("new")
open("created.txt", "w").write("created")
os_name = 'odd "name"\n.txt'
open(os_name, "w").write("odd")`
	CellBigFiles = `import hashlib
content = open("big", "rb").read()
print(len(content), hashlib.sha256(content).hexdigest())
open("bigger", "wb").write(content * 2)`
	CellThreeFiles = `for name in "abc":
    open(name, "w").write("0123456789")`
	CellSpecialFiles = `import os
os.symlink("/etc/passwd", "link")
os.mkfifo("fifo")
open("kept", "w").write("kept")`
	// CellHide leaves a mark wherever something could be shared, and stays.
	CellHide = `import socket, time
for folder in "/mnt/data", "/tmp", "/dev/shm":
    open(folder + "/mark", "w").write("mark")
local = socket.socket(socket.AF_UNIX)
local.bind("\0mark")
local.listen()
net = socket.socket()
net.bind(("127.0.0.1", 4242))
net.listen()
print("started", flush=True)
time.sleep(600)`
	// CellSeek looks for the marks of CellHide.
	CellSeek = `import os, socket
found = [d for d in ("/mnt/data", "/tmp", "/dev/shm") if os.path.exists(d + "/mark")]
for family, address in (socket.AF_UNIX, "\0mark"), (socket.AF_INET, ("127.0.0.1", 4242)):
    try:
        socket.socket(family).connect(address)
        found.append(address)
    except ConnectionRefusedError:
        pass
print("found", found)`
)
