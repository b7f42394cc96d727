from pathlib import Path

import pytest
from launch import needs_mpi, run_python

PROGRAM = Path(__file__).with_name("same_bits.py")


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", [1, 2, 3, 5])  # five: some have no node
def test_ranks_equal_memory_bit_for_bit_wherever_nodes_are(n_ranks):
    """Random networks, churn, CSR, weights, three labels, lost messages, relays."""
    code, out, err = run_python(n_ranks, PROGRAM)
    assert code == 0, err
    assert out.split("\n")[-2] == "the same bits"
