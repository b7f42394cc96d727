"""One process a node: its own rows, its neighbours' messages, no centre; extra `agent`."""
