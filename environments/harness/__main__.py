"""The program inside every sandbox: python /opt/notebox. See harness/__init__.py. With the word
zygote it is what cells are forked from, and goes on as the harness of each of them.

Not isolated (-I), as the kernel that is forked from it is not. Nothing of the user's is in
its way all the same: it starts in /, with variables of the service's own alone, before
there is a job, and nothing on its sys.path can be written to.
"""

import os
import sys

from harness.kernel import warm
from harness.system import names, sockets

if __name__ == "__main__":
    if sys.argv[1:] == ["zygote"]:
        from harness.cell import zygote

        zygote.serve("harness.serve")
    else:
        names.write()
        sockets.begin()
        warm.begin()
        warm.kernel_modules()
        warm.executor_without_exporters()
        warm.notebook_format()

    from harness import serve
    from harness.kernel.forked import InKernelError

    try:
        serve.main()
        sys.stdout.flush()
        os._exit(0)
    except InKernelError as e:
        run, end = e.run, e.end
    # As deep in the stack as in start.run: this module is below two frames of runpy.
    run()
    end()
