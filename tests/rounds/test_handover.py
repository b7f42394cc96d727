import numpy as np

from dtsvm import Network, Session
from dtsvm.rounds.iterates import Iterates


def trained(rng, network, **settings):
    live = Session(network, C=0.1, **settings)
    for node in network.nodes:
        for task in "ab":
            X = rng.normal(size=(30, 4))
            y = np.where(X[:, 0] + (task == "b") * X[:, 1] + 0.5 * rng.normal(size=30) > 0, 1, -1)
            live.enter(node, task, X, y)
    live.couple("a", "b")
    live.run(tol=1e-4)
    return live


def offsets(live):
    state = live._members.state
    return state.plan, state.tables.agents["offset"][state.plan.used]


def test_offsets_sum_to_zero_over_everybody_who_must_agree(rng):
    live = trained(rng, Network.random(10, degree=0.5, seed=1))
    live.leave(node=3)
    live.leave(node=7, task="b")
    live.unlink(*next(iter(live.network)))
    live.decouple("a")
    plan, offset = offsets(live)
    assert np.abs(offset).max() > 0
    for c, part in enumerate((plan.common_part, plan.specific_part)):
        for which in np.unique(part[plan.used]):
            total = offset[part[plan.used] == which, c].sum(axis=0)
            assert np.abs(total).max() < 1e-9 * np.abs(offset).max()


def test_each_side_of_a_split_has_offsets_of_its_own(rng):
    live = trained(rng, Network.line(6))
    live.leave(node=2, allow_split=True)
    plan, offset = offsets(live)
    node = plan.tables.agents["node"][plan.used]
    for side in (node < 2, node > 2):
        assert np.abs(offset[side].sum(axis=0)).max() < 1e-9


def shake(seeds):
    """How far the worst classifier goes in the first round after a departure, over seeds."""
    total = 0.0
    for seed in seeds:
        live = trained(np.random.default_rng(seed), Network.ring(20))
        before = {node: live.classifier("a", node).coef for node in live.nodes}
        live.leave(node=5)
        live.run(rounds=1)
        total += max(np.linalg.norm(live.classifier("a", v).coef - before[v]) for v in live.nodes)
    return total


def test_a_departure_shakes_the_others_much_less_than_without_hand_over(monkeypatch):
    handed = shake(range(5))
    monkeypatch.setattr(Iterates, "bequeath", lambda *_: None)
    assert handed < 0.6 * shake(range(5))
