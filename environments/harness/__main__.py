"""The program inside every sandbox: python /opt/notebox. See serve.py.

Not isolated (-I), as the kernel that is forked from it is not. Nothing of the user's is in
its way all the same: it starts in /, with variables of the service's own alone, before
there is a job, and nothing on its sys.path can be written to.
"""

import os
import sys

import names
import sockets
import warm

if __name__ == "__main__":
    names.write()
    sockets.begin()
    warm.kernel_modules()
    warm.executor_without_exporters()
    warm.notebook_format()

    import launch
    import serve
    from application import IPKernelApp

    try:
        serve.main()
        sys.stdout.flush()
        os._exit(0)
    except launch.InKernelError:
        pass
    IPKernelApp.launch_instance()
    IPKernelApp.ending.finish(IPKernelApp.instance())
