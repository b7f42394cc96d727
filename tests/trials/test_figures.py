import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.trials import EXPERIMENTS, fig2, fig3, fig5, fig7
from dtsvm.trials.grids import chosen, draw_world
from dtsvm.trials.regimes import PAPER, STANDARD, TASK_1, TASK_3, load_features
from dtsvm.trials.repeats import Repeats, crew
from dtsvm.trials.training import (
    ETA,
    PAPER_STEP,
    converged,
    deal_tasks,
    enter_all,
    global_risk,
    session_risk,
)


@pytest.fixture(scope="module")
def features():
    return load_features()


def test_the_experiments_are_the_papers():
    assert list(EXPERIMENTS) == ["fig2", "fig3", "fig4", "fig5", "fig6", "table1", "fig7"]


def test_dsvm_ends_where_pooled_rows_do(features):
    rows = fig2.one_repeat(features, STANDARD, np.random.default_rng(0))
    last = {row[:3]: row[4] for row in rows if row[3] == fig2.ROUNDS}
    for nodes in fig2.NETWORKS:
        for task in fig2.NAMES.values():
            assert last[nodes, "DSVM", task] == pytest.approx(last[nodes, "CSVM", task], abs=0.5)


def test_automatic_penalties_and_the_papers_iteration_end_at_the_same_risks(features):
    network, draws, dealt = draw_world(features, STANDARD, np.random.default_rng(0))
    quick = converged(network, dealt, C=0.01)
    slow = converged(network, dealt, C=0.01, task_penalty=ETA, node_penalty=ETA, **PAPER_STEP)
    for task, rows in draws.items():
        fast, papers = (global_risk(model, task, rows) for model in (quick, slow))
        assert fast == pytest.approx(papers, abs=0.1)


def test_transfer_rescues_unbalanced_labels_in_the_standard_regime(features):
    with crew(features, 1) as mapper:
        table = fig5.run(Repeats("fig5", (STANDARD,), 6, 0, mapper))
    few = table.where(threes=2, task="Task 1")
    gain = few.where(method="CSVM").by_repeat() - few.where(method="DTSVM").by_repeat()
    assert gain.mean() > 10


def test_a_finished_task_keeps_its_risk(features):
    rows = fig7.one_repeat(features, PAPER, np.random.default_rng(0))
    after = {row[3] for row in rows if row[1] == "Task 1" and row[0] >= 3}
    assert len(after) == 1


def test_every_stage_ends_at_its_optimum(features):
    rows = fig7.one_repeat(features, STANDARD, np.random.default_rng(0))
    gaps = [row[4] for row in rows if row[2] % fig7.STAGE_ROUNDS == 0]
    assert len(gaps) == 3 * len(fig7.STAGES)
    assert max(gaps) < fig7.TOLERANCE


def test_a_choice_is_never_made_by_the_repeat_it_is_reported_for():
    risks = np.random.default_rng(0).normal(size=(40, 300))
    assert abs(chosen(risks).mean()) < 0.6
    assert risks.min(axis=1).mean() < -2


def test_ratios_at_both_ends_are_judged_in_both_tasks(features):
    with crew(features, 1) as mapper:
        table = fig3.run(Repeats("fig3", (STANDARD,), 1, 0, mapper))
    extremes, tuning = fig3.judge(table)
    assert len(extremes.findings) == len(tuning.findings) == 4
    assert str(extremes.verdict) == "undecided"


def test_the_quick_risk_of_a_session_is_the_sessions_own(features):
    rng = np.random.default_rng(0)
    draws = {task: STANDARD.draw(features, task, 40, 200, rng) for task in (TASK_1, TASK_3)}
    live = Session(Network.ring(4), C=0.01)
    enter_all(live, deal_tasks(draws, 4, rng))
    live.run(rounds=3)
    for task, rows in draws.items():
        expected = 100 * live.risk(task, rows.X_test, rows.y_test).mean
        assert session_risk(live, task, rows) == pytest.approx(expected, abs=1e-9)
