"""One node: its arithmetic and what it knows of the others; no sockets, no clock."""
