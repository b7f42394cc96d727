"""Attacks on a node's rows, at every level of privacy."""
