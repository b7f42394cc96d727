from pathlib import Path

import pytest
from launch import needs_mpi, run_python

PROGRAM = Path(__file__).with_name("choices.py")


@needs_mpi
@pytest.mark.slow
@pytest.mark.parametrize("n_ranks", [2, 3])  # three: some have no row of a fold
def test_what_ranks_choose_from_rows_of_their_own_is_what_one_process_chooses(n_ranks):
    """CSR, float32, weights, three labels; and sessions in which rows and nodes come and go."""
    code, out, err = run_python(n_ranks, "-W", "ignore", PROGRAM)
    assert code == 0, err
    assert out.split("\n")[-2] == "the same choices"
