"""One process a node: its own rows, its neighbours' messages, no centre. Needs the extra `agent`."""
