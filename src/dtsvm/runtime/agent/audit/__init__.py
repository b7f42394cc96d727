"""What neighbours could learn of a node's rows: attacks on a copy of it, in memory."""
