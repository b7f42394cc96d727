import numpy as np
import pytest

from dtsvm.trials.regimes import PAPER, STANDARD, load_features
from dtsvm.trials.repeats import Repeats, crew
from dtsvm.trials.search import SCALES, open_bias, search
from dtsvm.trials.table1 import JOINED, PARTNERS, draw_world, judge, risks_over, run, summary


@pytest.fixture(scope="module")
def features():
    return load_features()


@pytest.fixture(scope="module")
def table(features):
    with crew(features, 1) as mapper:
        return run(Repeats("table1", (PAPER, STANDARD), 8, 0, mapper))


@pytest.mark.parametrize(("side", "low", "high"), [("left", 25, 52), ("right", 8, 24)])
def test_the_paper_regime_is_near_the_papers_table(table, side, low, high):
    mean, _ = summary(table.where(regime="paper"), side)
    assert low < mean[-1] < high


def test_the_standard_regime_contradicts_the_paper(table):
    claims = judge(table.where(regime="standard"))
    assert [str(claim.verdict) for claim in claims] == ["does not hold"] * 2


def test_linked_nodes_agree_and_only_their_test_rows_differ(features):
    world = draw_world(features, STANDARD, np.random.default_rng(1))
    here = risks_over(world, JOINED, True)
    moved = risks_over(world._replace(tested=(world.tested + 1) % 6), JOINED, True)
    assert np.roll(here, 1) == pytest.approx(moved, abs=0.4)
    assert np.ptp(here) > 0


def test_partners_do_not_hear_the_other_pairs(features):
    world = draw_world(features, STANDARD, np.random.default_rng(2))
    elsewhere = np.isin(world.dealt.node, (1, 4))
    changed = world.dealt.y.copy()
    changed[elsewhere] *= -1
    before = risks_over(world, PARTNERS, False)
    after = risks_over(world._replace(dealt=world.dealt._replace(y=changed)), PARTNERS, False)
    assert (before == after).tolist() == [True, False, True, True, False, True]


def test_every_reading_is_compared_with_the_paper(features):
    matches = search(features, scales=(0.2,), n_repeats=2)
    assert len(matches) * len(SCALES) == 240
    assert [m.distance for m in matches] == sorted(m.distance for m in matches)


def test_close_rows_with_balanced_labels_leave_the_bias_open(features):
    rows = PAPER.draw(features, "5v4", 60, 0, np.random.default_rng(0), "stratified")
    pull = 0.01 * rows.X_train.T @ rows.y_train
    low, high = open_bias(rows.X_train, rows.y_train, pull)
    assert low < -0.3
    assert high > 0.3
