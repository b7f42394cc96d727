"""A node as a process: sockets, the clock, and being told things."""
