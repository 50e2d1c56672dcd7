"""What runs inside a sandbox: it starts a kernel as the user and does the service's jobs with it.

1. __main__.py imports what the harness and a kernel need, before there is a job.
2. serve forks the kernel, says ready, and waits for a job or for a session.
3. single does one job and is over; session does job after job.

Each folder imports from those before it alone, and this folder from all of them:

    system   what the host's kernel is asked for: users, processes, counters, sockets
    stream   frames from and to the service, and the connections in them
    files    what goes into and out of /mnt/data
    kernel   the notebook's kernel: choice, start, process, end
    cell     sandboxes that are forked from one process that has imported everything
    job      the execution of cells and commands, the clock that ends them, and who drives it

No request's code runs in this process, and nothing here trusts what such code says or does.
"""
