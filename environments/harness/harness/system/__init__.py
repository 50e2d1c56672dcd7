"""What the host's kernel is asked for: users, processes, counters, sockets."""
