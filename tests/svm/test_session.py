import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.errors import DataError, NetworkError, ParameterError
from reference import solve_pooled


def block(rng, n=12, p=3, tilt=0.0):
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] + tilt * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)


def session(rng, network=None, tasks=("a", "b"), **settings):
    network = network or Network.ring(5)
    live = Session(network, **{"C": 0.2, **settings})
    for node in network.nodes:
        for k, task in enumerate(tasks):
            live.enter(node, task, *block(rng, tilt=k))
    if len(tasks) > 1:
        live.couple(*tasks)
    return live


def coefs(live, task="a"):
    return np.array([live.classifier(task, node).coef for node in live.nodes])


def test_a_departed_node_leaves_no_trace(rng):
    blocks = {v: block(rng) for v in range(5)}
    live = Session(Network.complete(5), C=0.2)
    for v, (X, y) in blocks.items():
        live.enter(v, "a", X, y)
    live.run()
    live.leave(node=4)
    live.run(tol=1e-10)
    never = Session(Network.complete(4), C=0.2)
    for v in range(4):
        never.enter(v, "a", *blocks[v])
    never.run(tol=1e-10)
    np.testing.assert_allclose(coefs(live), coefs(never), atol=1e-5)


def test_a_finished_task_keeps_its_last_classifier_and_says_so(rng):
    live = session(rng)
    live.run(rounds=10)
    before = live.classifier("a", 2).coef
    live.leave(task="a")
    assert live.tasks == ("b",)
    assert live.finished == ("a",)
    live.run(rounds=10)
    after = live.classifier("a", 2)
    assert after.is_finished
    assert np.array_equal(after.coef, before)
    assert not live.classifier("b").is_finished


def test_risk_counts_the_share_of_wrong_rows_for_every_node_and_overall(rng):
    live = session(rng)
    live.run(rounds=5)
    X, y = block(rng, n=200)
    risk = live.risk("a", X, y)
    by_hand = {v: np.mean(live.classifier("a", v).predict(X) != y) for v in live.nodes}
    assert risk.nodes == pytest.approx(by_hand)
    assert risk.mean == pytest.approx(np.mean(list(by_hand.values())))
    assert risk.network == pytest.approx(np.mean(live.classifier("a").predict(X) != y))
    live.leave(task="a")
    assert live.risk("a", X, y) == risk


def test_a_split_network_goes_to_two_optima_and_a_link_heals_it(rng):
    blocks = {v: block(rng, tilt=v) for v in range(4)}
    live = Session(Network.line(4), C=0.2)
    for v, (X, y) in blocks.items():
        live.enter(v, "a", X, y)
    live.run()
    with pytest.raises(NetworkError, match=r"\[0, 1\] and \[2, 3\].*allow_split=True"):
        live.unlink(1, 2)
    live.unlink(1, 2, allow_split=True)
    live.run(tol=1e-7)

    def optimum(nodes):
        X = np.concatenate([blocks[v][0] for v in nodes])
        y = np.concatenate([blocks[v][1] for v in nodes]).astype(float)
        return solve_pooled(
            X, y, np.zeros(len(y), int), np.ones(1), C=0.2, common_reg=1.0, specific_reg=1.0
        ).decision[0, :-1]

    for part in ([0, 1], [2, 3]):
        for v in part:
            np.testing.assert_allclose(live.classifier("a", v).coef, optimum(part), atol=1e-4)
    live.link(0, 3)
    live.run(tol=1e-7)
    for v in range(4):
        np.testing.assert_allclose(live.classifier("a", v).coef, optimum(range(4)), atol=1e-4)


def test_a_run_of_rounds_is_exactly_that_many(rng):
    live = session(rng)
    assert live.run(rounds=7).n_rounds == 7
    assert live.step().n_rounds == 8
    assert live.history["round"].tolist() == list(range(1, 9))


def test_on_round_sees_every_round(rng):
    live = session(rng)
    seen = []
    live.run(rounds=6, on_round=lambda info: seen.append(info.n_rounds))
    assert seen == [1, 2, 3, 4, 5, 6]


def test_time_limit_and_interrupt_are_statuses(rng):
    live = session(rng)
    assert live.run(tol=1e-300, seconds=1e-9).status == "time_limit"

    def press_ctrl_c(info):
        if info.n_rounds >= 12:
            raise KeyboardInterrupt

    assert live.run(tol=1e-300, on_round=press_ctrl_c).status == "interrupted"


def test_threads_change_no_bit(rng, monkeypatch):
    from dtsvm.runtime import memory

    monkeypatch.setattr(memory, "PARALLEL_WORK", 0)
    blocks = [block(rng, n=30) for _ in range(5)]
    answers = []
    for n_jobs in (1, 2, 3):
        live = Session(Network.ring(5), C=0.2, n_jobs=n_jobs, loss=0.1, seed=3)
        for v, (X, y) in enumerate(blocks):
            live.enter(v, "a", X, y)
        live.run(rounds=60)
        answers.append(coefs(live))
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_how_fast_the_machine_is_changes_no_bit(rng, monkeypatch):
    from dtsvm.runtime import memory

    blocks = [block(rng) for _ in range(5)]
    answers = []
    for seconds in (0.0, 1e9):  # rounds are cut into small blocks, or into growing ones
        monkeypatch.setattr(memory, "CHUNK_SECONDS", seconds)
        live = Session(Network.ring(5), C=0.2, loss=0.3, seed=3)
        for v, (X, y) in enumerate(blocks):
            live.enter(v, "a", X, y)
        live.run(tol=1e-3)
        live.run(rounds=20)
        answers.append(coefs(live))
    assert np.array_equal(*answers)


def test_events_say_what_happened_after_which_round(rng):
    live = session(rng, tasks=("a",))
    live.run(rounds=3)
    live.unlink(0, 1)
    live.set(C=0.5)
    assert [tuple(event) for event in live.events[-2:]] == [
        (3, "unlink", "0 and 1"),
        (3, "set", "C=0.5"),
    ]


def test_a_sliding_window_drops_the_oldest_rows(rng):
    X, y = block(rng, n=30)
    live = Session(Network.line(2), C=0.5)
    live.enter(0, "a", X[:20], y[:20])
    live.enter(1, "a", *block(rng))
    live.run(rounds=20)
    live.add_data(0, "a", X[20:], y[20:])
    live.drop_data(0, "a", oldest=10)
    state = live._members.state
    slots = state.row_slots[live._members.agent(0, "a")]
    np.testing.assert_array_equal(state.tables.matrix.rows(state.tables.rows["at"][slots]), X[10:])


def test_entering_where_a_relay_stood_makes_it_count(rng):
    blocks = {v: block(rng) for v in range(3)}
    live = Session(Network.line(3), C=0.2, relays="auto")
    live.enter(0, "a", *blocks[0])
    live.enter(2, "a", *blocks[2])
    live.run()
    live.enter(1, "a", *blocks[1])
    live.run(tol=1e-8)
    straight = Session(Network.line(3), C=0.2)
    for v in range(3):
        straight.enter(v, "a", *blocks[v])
    straight.run(tol=1e-8)
    np.testing.assert_allclose(coefs(live), coefs(straight), atol=1e-6)


def test_labels_of_any_kind_come_back(rng):
    X, y = block(rng)
    live = Session(Network.line(2))
    live.enter(0, "a", X, np.where(y > 0, "sick", "well"))
    live.enter(1, "a", X[:1], ["sick"])
    live.run()
    assert set(live.classifier("a").predict(X)) <= {"sick", "well"}
    with pytest.raises(DataError) as refused:
        live.add_data(0, "a", X[:1], ["ill"])
    assert str(refused.value) == "Task 'a' has labels 'sick' and 'well', got 'ill'."


REFUSALS = {
    "an unknown node": (
        lambda live: live.leave(node="x"),
        "Unknown node 'x'. Choose from 0, 1, 2, 3, 4.",
    ),
    "an unknown task": (lambda live: live.couple("a", "z"), "Unknown task 'z'. Choose from a, b."),
    "a link that exists": (lambda live: live.link(0, 1), "Nodes 0 and 1 are linked already."),
    "a link that does not": (lambda live: live.unlink(0, 2), "Nodes 0 and 2 are not linked."),
    "a self-link": (
        lambda live: live.link(1, 1),
        "Node 1 is linked to itself; a link joins two nodes.",
    ),
    "a task that is here": (
        lambda live: live.enter(0, "a", np.ones((1, 3)), [1]),
        "Node 0 holds task 'a' already; use add_data for more rows.",
    ),
    "a new node without links": (
        lambda live: live.enter(9, "a", np.ones((1, 3)), [1]),
        "Node 9 is new; name its neighbours with links=[…].",
    ),
    "another width": (
        lambda live: live.add_data(0, "a", np.ones((2, 4)), [1, -1]),
        "X has 4 features, but the session's rows have 3.",
    ),
    "another length": (
        lambda live: live.add_data(0, "a", np.ones((2, 3)), [1]),
        "X has 2 rows, but y has 1.",
    ),
    "too many to drop": (
        lambda live: live.drop_data(0, "a", oldest=99),
        "Node 0 has 12 rows of task 'a'; cannot drop 99.",
    ),
    "one label of two": (
        lambda live: live.enter(0, "new", np.ones((1, 3)), ["yes"]),
        "Task 'new' begins with labels ['yes']; name both of its labels with "
        "labels=(negative, positive).",
    ),
    "an unknown setting": (
        lambda live: live.set(common_regg=2),
        "Unknown setting 'common_regg'. Choose from C, common_reg, specific_reg, task_penalty, "
        "node_penalty, relaxation, local, tol, bias, loss. Did you mean 'common_reg'?",
    ),
    "a bad setting": (
        lambda live: live.set(C=-1),
        "The 'C' parameter of Session must be a positive float. Got -1 instead.",
    ),
    "a couple of one": (lambda live: live.couple("a"), "couple needs two tasks or more."),
    "a leave of nothing": (lambda live: live.leave(), "leave needs node=…, task=… or both."),
    "a mask of another length": (
        lambda live: live.drop_data(0, "a", mask=[True]),
        "Node 0 has 12 rows of task 'a', but mask has 1.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_name_the_thing_and_change_nothing(name, rng):
    live = session(rng)
    live.run(rounds=3)
    before, events = coefs(live), list(live.events)
    act, sentence = REFUSALS[name]
    with pytest.raises((DataError, NetworkError, ParameterError)) as refused:
        act(live)
    assert str(refused.value) == sentence
    assert live.events == events
    assert np.array_equal(coefs(live), before)


def test_an_empty_session_says_so():
    with pytest.raises(DataError) as refused:
        Session(Network.ring(3)).run()
    assert str(refused.value) == "The session is empty: let a task enter a node first."


def test_rounds_messages_and_seconds_count_from_the_sessions_beginning():
    live = Session(Network.line(2), C=0.1)
    for node in range(2):
        live.enter(node, "sick", [[0.0], [1.0]], [-1, 1])
    first, second = live.run(rounds=5), live.run(rounds=7)
    assert (first.n_rounds, second.n_rounds, live.round) == (5, 12, 12)
    assert second.messages_sent * 5 == first.messages_sent * 12
    assert second.seconds > first.seconds


def test_messages_that_begin_to_get_lost_do_not_move_the_optimum(rng):
    live = session(rng)
    live.run(tol=1e-9)
    before = coefs(live)
    live.set(loss=0.4)
    live.add_data(0, "a", *block(rng))
    live.run(tol=1e-9)
    live.drop_data(0, "a", mask=[False] * 12 + [True] * 12)
    live.run(tol=1e-9)
    assert live.events[-3].detail == "loss=0.4"
    np.testing.assert_allclose(coefs(live), before, atol=1e-4)
    with pytest.raises(ParameterError, match=r"from 0 to below 1\. Got 1\.5"):
        live.set(loss=1.5)


def test_decisions_and_row_counts_are_by_node(rng):
    live = session(rng)
    live.run(rounds=3)
    found = live.decisions("a")
    assert live.row_counts("a") == dict.fromkeys(range(5), 12)
    for node, weights in found.items():
        one = live.classifier("a", node)
        assert np.array_equal(weights, np.append(one.coef, one.intercept))
