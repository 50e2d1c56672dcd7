__names = sorted(globals())  # before this cell has any of its own


def __observe():
    """Return what code can see of its interpreter, by name, as JSON can hold it."""
    import asyncio
    import atexit
    import builtins
    import codecs
    import copyreg
    import decimal
    import gc
    import inspect
    import linecache
    import locale
    import logging
    import multiprocessing
    import os
    import re
    import resource
    import signal
    import socket
    import sys
    import tempfile
    import threading
    import time
    import warnings

    def kind(thing):
        return f"{type(thing).__module__}.{type(thing).__qualname__}"

    def name(thing):
        if isinstance(thing, (int, str, type(None))):
            return repr(thing)
        own = getattr(thing, "__qualname__", None)
        return f"{thing.__module__}.{own}" if own else kind(thing)

    def handler(name):
        try:
            return bool(codecs.lookup_error(name))
        except LookupError:
            return False

    def children():
        found = []
        for pid in filter(str.isdecimal, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/stat") as f:
                    stat = f.read()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                found.append(stat.partition("(")[2].rpartition(")")[0])
        return sorted(found)

    def descriptors():
        found = []
        for fd in os.listdir("/proc/self/fd"):
            try:
                found.append(re.sub(r"\d+", "*", os.readlink(f"/proc/self/fd/{fd}")))
            except OSError:
                pass  # the one of listdir itself
        return sorted(found)

    def standard(fd):
        try:
            return re.sub(r"\d+", "*", os.readlink(f"/proc/self/fd/{fd}"))
        except OSError as e:
            return str(e)

    def status():
        keep = ("Umask", "Sig", "Shd", "Cap", "NoNewPrivs", "Seccomp", "Uid", "Gid", "Groups", "Cpus_allowed_list")
        with open("/proc/self/status") as f:
            fields = (line.rstrip("\n").partition(":\t") for line in f)
            return {key: value for key, _, value in fields if key.startswith(keep) and key != "SigQ"}

    umask = os.umask(0)
    os.umask(umask)
    shell = get_ipython()
    history = shell.history_manager
    seen = {
        "names": __names,
        "main": sorted(vars(sys.modules["__main__"]).keys() - set(globals())),
        "main.file": repr(getattr(sys.modules["__main__"], "__file__", "none")),
        "main.spec": kind(sys.modules["__main__"].__spec__),
        "name": __name__,
        "doc": __doc__,
        "hidden": sorted(shell.user_ns_hidden),
        "builtins": sorted(dir(builtins)),
        "in": len(globals()["In"]),
        "out": len(globals()["Out"]),
        "last": [globals().get(n) for n in ("_", "__", "___")],
        "dir_history": len(globals()["_dh"]),
        "count": shell.execution_count,
        "result": kind(shell.last_execution_result),
        "history": [len(history.input_hist_raw), len(history.input_hist_parsed), len(history.output_hist)],
        "history.session": history.session_number,
        "history.file": str(history.hist_file),
        "history.cache": len(history.db_input_cache),
        "events": {event: [name(f) for f in all_] for event, all_ in sorted(shell.events.callbacks.items())},
        "magics": {kind_: sorted(all_) for kind_, all_ in shell.magics_manager.lsmagic().items()},
        "extensions": sorted(shell.extension_manager.loaded),
        "transformers": [kind(t) for t in shell.ast_transformers] + [name(t) for t in shell.input_transformers_cleanup],
        "formatters": {
            media: sorted(map(str, [*f.type_printers, *f.deferred_printers]))
            for media, f in shell.display_formatter.formatters.items()
        },
        "active_eventloop": repr(shell.active_eventloop),
        "pylab": repr(getattr(shell, "pylab_gui_select", "none")),
        "compiled": len(shell.compile._filename_map),
        "lines": sum("ipykernel_" in f or "ipython" in f for f in linecache.cache),
        "kernel": [kind(shell.kernel), kind(shell), kind(shell.kernel.parent)],
        "depth": len(inspect.stack(0)),
        "sys.path": sys.path,
        "sys.argv": sys.argv,
        "sys.orig_argv": sys.orig_argv,
        "sys.flags": str(sys.flags),
        "sys.xoptions": sys._xoptions,
        "sys.warnoptions": sys.warnoptions,
        "sys.executable": sys.executable,
        "sys.hooks": [name(getattr(sys, n)) for n in ("breakpointhook", "excepthook", "displayhook", "unraisablehook")],
        "sys.last": [n for n in dir(sys) if n.startswith("last_")],
        "sys.names": sorted(dir(sys)),
        "sys.meta_path": [name(f) for f in sys.meta_path],
        "sys.path_hooks": [name(f) for f in sys.path_hooks],
        "sys.streams": [f"{kind(f)} {f.name} {f.encoding} {f.errors}" for f in (sys.stdin, sys.stdout, sys.stderr)],
        "sys.streams_": [f"{kind(f)} {f and f.name}" for f in (sys.__stdin__, sys.__stdout__, sys.__stderr__)],
        "sys.limits": [sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits(), sys.maxsize],
        "sys.trace": [repr(sys.gettrace()), repr(sys.getprofile())],
        "sys.dont_write_bytecode": [sys.dont_write_bytecode, sys.pycache_prefix],
        "sys.encodings": [sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()],
        "sys.modules": sorted(sys.modules),
        "env": dict(os.environ),
        "cwd": os.getcwd(),
        "user": [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), os.getgroups()],
        "home": sorted(os.listdir(os.environ["HOME"])),
        "leader": [os.getpgid(0) == os.getpid(), os.getsid(0) == os.getpid()],
        "process.command": open("/proc/self/cmdline").read().split("\0"),
        "process.name": open("/proc/self/comm").read(),
        "process.oom": open("/proc/self/oom_score_adj").read(),
        "process.status": status(),
        "process.children": children(),
        "process.descriptors": descriptors(),
        "process.standard": [standard(fd) for fd in range(3)],
        "process.threads": len(os.listdir("/proc/self/task")),
        "nice": os.nice(0),
        "scheduler": [os.sched_getscheduler(0), len(os.sched_getaffinity(0))],
        "umask": umask,
        "rlimits": {n: resource.getrlimit(getattr(resource, n)) for n in dir(resource) if n.startswith("RLIMIT_")},
        "signals": {s.name: name(signal.getsignal(s)) for s in signal.Signals},
        "signals.wakeup": [signal.getitimer(signal.ITIMER_REAL), sorted(signal.pthread_sigmask(signal.SIG_BLOCK, []))],
        "threads": sorted(f"{t.name} {t.daemon}" for t in threading.enumerate()),
        "threads.hook": name(threading.excepthook),
        "threads.stack": threading.stack_size(),
        "loop": [kind(asyncio.get_running_loop()) if asyncio._get_running_loop() else "", kind(asyncio.get_event_loop_policy())],
        "warnings": [list(map(str, f)) for f in warnings.filters],
        "warnings.show": name(warnings.showwarning),
        "gc": [gc.isenabled(), gc.get_threshold(), gc.get_debug(), [name(c) for c in gc.callbacks]],
        "gc.frozen": gc.get_freeze_count(),
        "atexit": atexit._ncallbacks(),
        "locale": [locale.setlocale(locale.LC_ALL), locale.getencoding()],
        "time": [time.tzname, time.timezone, time.daylight],
        "decimal": str(decimal.getcontext()),
        "logging": [logging.root.level, [kind(h) for h in logging.root.handlers], logging.root.manager.disable],
        "logging.class": [name(logging.getLoggerClass()), name(logging.getLogRecordFactory()), logging.raiseExceptions],
        "logging.levels": sorted(logging.getLevelNamesMapping()),
        "codecs": handler("ufffd"),
        "copyreg": sorted(map(str, copyreg.dispatch_table)),
        "socket.timeout": socket.getdefaulttimeout(),
        "tempfile": tempfile.tempdir,
        "multiprocessing": [multiprocessing.get_start_method(allow_none=True), len(multiprocessing.active_children())],
        "multiprocessing.name": multiprocessing.current_process().name,
    }
    if "matplotlib.pyplot" in sys.modules:
        seen["figures"] = sys.modules["matplotlib.pyplot"].get_fignums()
    else:
        seen["figures"] = []
    return seen


def __observe_libraries():
    """Return what code can see of the libraries that it has just imported."""
    import sys
    import warnings

    import matplotlib
    import matplotlib.pyplot as plt
    import numpy as np
    import pandas as pd
    from matplotlib import style, units
    from pandas._config import config

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that are not to be used any more
        options = {k: repr(pd.get_option(k)) for k in sorted(config._registered_options)}
    return {
        "matplotlib.backend": matplotlib.get_backend(),
        "matplotlib.interactive": matplotlib.is_interactive(),
        "matplotlib.rcParams": {k: repr(v) for k, v in dict.items(matplotlib.rcParams)},
        "matplotlib.rcParamsDefault": {k: repr(v) for k, v in dict.items(matplotlib.rcParamsDefault)},
        "matplotlib.units": sorted(map(str, units.registry)),
        "matplotlib.colormaps": sorted(matplotlib.colormaps),
        "matplotlib.styles": sorted(style.available),
        "matplotlib.folders": [matplotlib.get_configdir(), matplotlib.get_cachedir()],
        "matplotlib.hook": str(plt._REPL_DISPLAYHOOK),
        "pandas.options": options,
        "numpy.print": repr(np.get_printoptions()),
        "numpy.err": np.geterr(),
        "names": sorted(vars(sys.modules["__main__"])),
    }


def __show():
    import json
    import os
    import re

    start = __observe()
    imported = __observe_libraries()
    imported = {**__observe(), **imported}
    text = json.dumps({"start": start, "imported": imported}, default=repr)
    text = re.sub(rf"(?<!\d){os.getuid()}(?!\d)", "1", text)  # each sandbox has a user of its own
    print(re.sub(r"kernel-[\w-]+|0x[0-9a-f]+", "*", text))


__show()
