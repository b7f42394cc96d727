"""Nodes spread over the ranks of an MPI program: many cores, many machines, the same bits."""
