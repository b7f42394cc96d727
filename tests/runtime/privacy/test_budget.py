"""A budget is never overspent, whatever happens to the process."""

import os
import random
import signal
import time
from threading import Thread

import numpy as np
import pytest

from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy
from dtsvm.runtime.privacy.accounting import noise_multiplier, spent_epsilon
from dtsvm.runtime.privacy.budget import Budget

pytest.importorskip("dp_accounting")
CHOSEN = Privacy("dp", rounds=200)


def send_for_ever(path, log):
    """Send as long as the budget lasts, a byte a message."""
    budget = Budget(CHOSEN, path)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    while budget.spend():
        os.write(out, b".")
        time.sleep(0.002)


def test_killed_fifty_times_no_more_is_sent_than_the_budget_allows(tmp_path):
    path, log = tmp_path / "budget.json", tmp_path / "sent"
    rng = random.Random(0)
    for _ in range(50):
        child = os.fork()
        if child == 0:
            try:
                send_for_ever(path, log)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        n_sent = log.stat().st_size if log.exists() else 0
        assert n_sent <= Budget(CHOSEN, path).spent <= CHOSEN.rounds
    send_for_ever(path, log)
    assert Budget(CHOSEN, path).left == 0
    assert CHOSEN.rounds - 50 <= log.stat().st_size <= CHOSEN.rounds


def test_a_spent_budget_stays_spent(tmp_path):
    path = tmp_path / "budget.json"
    few = Privacy("dp", rounds=2)
    assert [Budget(few, path).spend() for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize("content", ["", "[]", '{"level": "dp"}', '{"spent": -1}', "nonsense"])
def test_a_damaged_budget_is_refused(tmp_path, content):
    path = tmp_path / "budget.json"
    path.write_text(content)
    with pytest.raises(NetworkError, match="nobody knows what was told of these rows"):
        Budget(CHOSEN, path)


def test_other_settings_do_not_renew_a_budget(tmp_path):
    path = tmp_path / "budget.json"
    Budget(Privacy("dp", rounds=2), path).spend()
    with pytest.raises(NetworkError, match="was begun with"):
        Budget(Privacy("dp", rounds=9), path)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("rounds", [1, 20, 100])
def test_the_noise_spends_the_budget_and_no_more(epsilon, rounds):
    multiplier = noise_multiplier(epsilon, 1e-5, rounds)
    spent = spent_epsilon(multiplier, 1e-5, rounds)
    assert 0.999 * epsilon < spent <= epsilon * (1 + 1e-9)


def test_rows_held_out_once_are_held_out_for_ever(tmp_path):
    path = tmp_path / "budget.json"
    Budget(CHOSEN, path, 0.2).spend()
    with pytest.raises(NetworkError, match=r"was begun with holdout = 0\.2 instead of 0\.3"):
        Budget(CHOSEN, path, 0.3)


def test_sums_that_are_paid_for_beside_a_round_lose_none_of_its_messages(tmp_path):
    budget = Budget(CHOSEN, tmp_path / "budget.json")
    rounds = Thread(target=lambda: [budget.spend() for _ in range(100)])
    rounds.start()
    for k in range(100):
        budget.tell("sums", str(k), 100, lambda: np.zeros(1))
    rounds.join()
    kept = Budget(CHOSEN, tmp_path / "budget.json")
    assert (kept.spent, kept.counts) == (100, {"sums": 100})
