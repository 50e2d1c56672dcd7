"""The bound on sockets, in a network namespace that is the test's own."""

from __future__ import annotations

import os

import pytest
from programs import outcome

USER = 64000  # any but root's

# Prints what came of it. Runs as root until it says so, in a namespace without a network.
_PROGRAM = """
import ctypes, errno, fcntl, os, socket, struct
libc = ctypes.CDLL(None)
assert libc.unshare(0x40000000) == 0  # CLONE_NEWNET of sched.h
with socket.socket() as s:  # the loopback goes up
    fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
from harness.system import sockets
sockets.MAX_SOCKETS = 100
sockets.begin()
if os.fork():  # the harness stays root
    os.wait()
    raise SystemExit
def become(uid):
    os.setresuid(uid, uid, uid)
def word(make):
    try:
        return make() and "made"
    except OSError as e:
        return errno.errorcode[e.errno]
def many(*arguments):
    held = []
    try:
        for _ in range(300):
            held.append(socket.socket(*arguments))
    except OSError as e:
        return held, errno.errorcode[e.errno]
    return held, "no end"
"""


def bounded(program: str) -> str:
    """Return what a program prints whose sockets are bounded."""
    return outcome(_PROGRAM + program)


pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="a network namespace is root's to make")


@pytest.mark.parametrize(
    "kind",
    [
        "socket.AF_INET, socket.SOCK_STREAM",
        "socket.AF_INET6, socket.SOCK_DGRAM",
        "socket.AF_NETLINK, socket.SOCK_RAW",
    ],
)
def test_sockets_are_counted(kind: str) -> None:
    program = f"become({USER}); held, end = many({kind}); print(len(held), end)"
    assert bounded(program) == "100 ENOBUFS\n"


def test_what_is_closed_makes_room() -> None:
    program = f"become({USER}); held, _ = many(); held.pop().close(); print(word(socket.socket))"
    assert bounded(program) == "made\n"


def test_those_that_nobody_has_accepted_count() -> None:
    program = f"""
become({USER})
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
clients = 0
try:
    while True:
        client = socket.socket()
        client.connect(server.getsockname())
        client.detach()  # by its descriptor it goes on
        clients += 1
except OSError as e:
    print(clients, errno.errorcode[e.errno])
"""
    assert bounded(program) == "49 ENOBUFS\n"


def test_one_that_connects_again_and_again_makes_others() -> None:
    program = f"""
become({USER})
server = socket.create_server(("127.0.0.1", 0), backlog=4096)
client = socket.socket()
times = 0
try:
    for _ in range(300):
        client.connect(server.getsockname())
        times += 1
        libc.connect(client.fileno(), struct.pack("H14x", socket.AF_UNSPEC), 16)
except OSError as e:
    print(times < 100, errno.errorcode[e.errno])
"""
    assert bounded(program) == "True ENOBUFS\n"


def test_processes_share_the_bound() -> None:
    program = f"""
become({USER})
kept, _ = many()
for s in kept[50:]:
    s.close()
if os.fork() == 0:
    print(len(many()[0]), flush=True)
    os._exit(0)
os.wait()
"""
    assert bounded(program) == "50\n"


def test_the_harness_goes_on() -> None:
    program = f"""
reading, writing = os.pipe()
if (pid := os.fork()) == 0:
    become({USER})
    held, end = many()
    os.write(writing, b"x")
    __import__("time").sleep(60)
os.read(reading, 1)
print(word(socket.socket))
os.kill(pid, 9)
"""
    assert bounded(program) == "made\n"


def test_names_of_threads_may_be_anything() -> None:
    program = f"""
become({USER})
held, _ = many()
libc.prctl(15, b"\\xff", 0, 0, 0)  # PR_SET_NAME of linux/prctl.h
full = word(socket.socket)
held.pop().close()
print(full, word(socket.socket))
"""
    assert bounded(program) == "ENOBUFS made\n"


def test_orphans_are_buried() -> None:
    """As many as the guard may have descriptors, and more, while it answers."""
    program = """
import ctypes, os, resource
assert ctypes.CDLL(None).unshare(0x60000000) == 0  # CLONE_NEWNET, CLONE_NEWPID of sched.h
if first := os.fork():
    print(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
    raise SystemExit
import socket
from harness.system import sockets
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
guard, harness = socket.socketpair()
if os.fork():
    harness.close()
    sockets.guard(guard)
sockets.ask(harness)
for _ in range(500):
    if (pid := os.fork()) == 0:
        os.fork()
        os._exit(0)
    os.waitpid(pid, 0)
    socket.socket().close()
os.write(1, b"done ")
"""
    assert outcome(program) == "done 0\n"


def test_unix_sockets_are_not_its_affair() -> None:
    program = f"become({USER}); print(many(socket.AF_UNIX)[1])"
    assert bounded(program) == "no end\n"


def test_nobody_installs_a_filter() -> None:
    """By either call; a program that no kernel takes would be EFAULT."""
    program = """
def by(*arguments):
    ctypes.set_errno(0)
    assert libc.syscall(*arguments) == -1
    return errno.errorcode[ctypes.get_errno()]
libc = ctypes.CDLL(None, use_errno=True)
seccomp, prctl = (317, 157) if os.uname().machine == "x86_64" else (277, 167)
print(by(seccomp, 1, 0, None), by(seccomp, 1, 8, None))
print(by(prctl, 22, 2, None), by(prctl, 1 << 32 | 22, 2, None))
print(libc.syscall(prctl, 38, 1, 0, 0, 0))  # PR_SET_NO_NEW_PRIVS
"""
    assert bounded(program) == "EINVAL EINVAL\nEINVAL EINVAL\n0\n"
