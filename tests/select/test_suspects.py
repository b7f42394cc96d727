"""Who is set aside, and what that changes."""

import numpy as np
from test_choose import draw, pooled

from dtsvm.select import ALL, Held, candidates, choose, moments, split, suspects


def counts(errors, n=20):
    wrong = np.asarray(errors, float)
    return np.stack([np.full(len(wrong), float(n)), wrong, wrong], axis=1)


def test_a_task_stands_out_sooner_where_others_do():
    quiet, loud = [2.0] * 20, [2.0] * 16 + [11.0] * 4
    assert not suspects(counts([*quiet, 7.0])).any()
    assert suspects(counts([*loud, 7.0])).tolist() == [False] * 16 + [True] * 5


def test_nobody_stands_out_where_all_are_near_chance_or_better_than_a_coin():
    assert not suspects(counts([9.0, 10.0, 11.0, 8.0, 12.0])).any()
    assert not suspects(counts([2.0] * 9 + [24.0], n=80)).any()  # hard, no coin
    assert not suspects(counts([0.0, 0.0], n=0)).any()


def test_who_is_set_aside_keeps_what_it_had_and_the_others_train_without_its_rows():
    X, y, task, _ = draw(5, rows_a_task=40)
    lies = task == 2
    y = np.where(lies, np.random.default_rng(0).choice([-1.0, 1.0], len(y)), y)
    square, n = moments(X)
    held = Held(X, y, task, split(y, task, 3), 6, 3)
    some = candidates(
        ALL[:6:2], n_tasks=6, mean_square=square / n, C=[0.1 * n / square, n / square]
    )
    ordinary, left_out = pooled(X, y, task, 6, square / n), []

    def train(jobs):
        """Train without who is left out, and say nothing of use about it."""
        found = []
        for job in jobs:
            is_out = job.lanes[0].side == 0
            lanes = [(rows[side[task[rows]] != 0], np.where(side == 0, 1.0, side))
                     for rows, side in job.lanes]  # fmt: skip
            (one,) = ordinary([(job.candidate, lanes)])
            left_out.append(np.flatnonzero(is_out).tolist())
            found.append(np.where(is_out[:, None], np.nan, one))
        return found

    chosen = choose(held, some, train, reference=1)
    assert chosen.aside.tolist() == [False, False, True, False, False, False]
    assert [2] in left_out
    assert np.isfinite(chosen.classifiers).all()
    assert np.isfinite(chosen.found.values).all()
