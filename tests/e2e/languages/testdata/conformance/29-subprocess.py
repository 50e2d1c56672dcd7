# What reaches the file descriptors 1 and 2 without Python's streams. Pauses, because
# ipykernel reads these descriptors on a thread of its own.

# %%
import os
import subprocess
import sys
import time

os.write(1, b"written to 1\n")
time.sleep(0.5)

# %%
os.write(2, b"written to 2\n")
time.sleep(0.5)

# %%
print("print")
time.sleep(0.5)
status = os.system("echo system; echo more")
time.sleep(0.5)
print("print again", status)

# %%
done = subprocess.run(["sh", "-c", "echo inherited; echo kept out of sight >/dev/null"])
time.sleep(0.5)
done

# %%
subprocess.run([sys.executable, "-c", "import sys; print('child'); sys.exit(2)"], capture_output=True, text=True)

# %%
subprocess.check_output("echo piped | tr a-z A-Z", shell=True)

# %%
subprocess.run(["no-such-program"])

# %%
with os.popen("echo popen") as pipe:
    print(pipe.read())

# %%
p = subprocess.Popen("echo out; sleep 0.6; echo err >&2", shell=True)
p.wait()
time.sleep(0.5)

# %%
import ctypes

libc = ctypes.CDLL(None)
libc.puts(b"from C")
libc.fflush(None)
time.sleep(0.5)

# %%
os.isatty(1), sys.stdout.isatty(), sys.stdout.encoding, sys.stdout.name, sys.stdout.fileno() > 0
