"""What attacks on a copy of a node read, level by level."""

import numpy as np
import pytest

from dtsvm.problem import Network, Privacy, Settings
from dtsvm.runtime.agent.audit.attacks import lie, listen, read_model, recovered
from dtsvm.runtime.agent.audit.room import VICTIM, Room
from dtsvm.runtime.agent.audit.shadow import Shadow
from dtsvm.runtime.agent.audit.trial import Target, around, audit, split
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.privacy.veil import make_veil

LEAF = Network([VICTIM, "curious", "c"], [("curious", VICTIM), ("curious", "c")])
RING = Network.ring([VICTIM, "curious", "c"])
FOUR = Network.ring([VICTIM, "curious", "c", "d"])


def block(n, seed=0, p=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def room(n, network, level="none"):
    privacy = Privacy(level, rounds=10)
    return Room(block(n), network, "curious", Settings(C=0.1), privacy, lambda _: block(8, 1))


def test_a_lying_neighbour_reads_every_row_of_a_leaf():
    attacked = room(12, LEAF)
    assert recovered(lie(attacked), attacked.rows[0]) == 12


def test_masks_do_not_stop_a_liar_who_is_the_only_neighbour():
    attacked = room(5, LEAF, "masked")
    assert recovered(lie(attacked), attacked.rows[0]) == 5


@pytest.mark.parametrize("level", ["none", "masked"])
@pytest.mark.parametrize(("network", "n_read"), [(RING, 3), (FOUR, 1)])
def test_other_neighbours_do_not_stop_a_liar(network, n_read, level):
    attacked = room(3, network, level)
    assert recovered(lie(attacked, most_rounds=3000), attacked.rows[0]) >= n_read


def test_who_sees_both_nodes_of_a_link_knows_how_it_moves():
    attacked = room(5, RING, "masked")
    attacked.victim.veil.stir = attacked.nodes["c"].veil.stir = lambda *_: None
    ends = attacked.victim.ends
    z = []
    shadow = None
    for k in range(80):
        attacked.step()
        if shadow is not None:
            shadow.advance(attacked.curious.seen[-1])
            z.append(ends.edge_states()["task", "c", "task"][1] - shadow.carried(VICTIM))
        elif k == 40:  # the sum of the hidden starts has died out
            shadow = Shadow(attacked, attacked.curious.neighbours)
    moved = np.abs(np.diff(z[30:], axis=0)).max()
    assert moved < 1e-6


def test_a_listener_reads_the_only_row_of_a_node():
    attacked = room(1, RING)
    assert recovered(listen(attacked, 30), attacked.rows[0]) == 1


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("network", [RING, FOUR])
def test_masked_a_listener_beside_another_neighbour_reads_nothing(n, network):
    attacked = room(n, network, "masked")
    findings = listen(attacked, 100)
    assert findings.matches(attacked.rows[0], tol=1e-3).sum() == 0


@pytest.mark.parametrize("attack", [lambda r: lie(r, most_rounds=300), listen, read_model])
@pytest.mark.parametrize("n", [1, 5])
def test_under_differential_privacy_nobody_reads_a_row(attack, n):
    attacked = room(n, LEAF, "dp")
    findings = attack(attacked)
    assert findings.matches(attacked.rows[0], tol=1e-2).sum() == 0


def test_a_hidden_start_leads_to_the_same_optimum():
    ends = []
    for level in ("none", "masked"):
        attacked = room(12, RING, level)
        for _ in range(1500):
            attacked.step()
        ends.append(attacked.victim.decision("task"))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-6, atol=1e-8)


def test_an_audit_tries_every_attack_and_says_what_it_read():
    members, others = split(*block(60))
    target = Target(members, others, around(1), Settings(C=0.1), Privacy())
    liar, listener, reader = audit(target)
    assert (liar.n_rows, liar.n_read, liar.advantage) == (30, 30, 1.0)
    assert listener.n_read < 30
    assert reader.n_read == 0
    assert 0.0 <= reader.advantage < 0.7


def test_a_node_of_another_level_is_refused():
    nodes = {}
    for name, other, level in (("a", "b", "none"), ("b", "a", "masked")):
        veil = make_veil(Privacy(level))
        nodes[name] = Node(name, [other], 4, Settings(C=0.1), 7, 1, veil=veil)
    assert not nodes["a"].take("b", nodes["b"].hello(0.1)["a"], 0.1)
    assert "privacy = " in nodes["a"].inbox.reasons["b"]


def test_neighbours_in_league_are_together_the_only_neighbour():
    privacy = Privacy("masked")
    attacked = Room(
        block(3), FOUR, "curious", Settings(C=0.1), privacy, lambda _: block(8, 1), ["d"]
    )
    assert recovered(lie(attacked, most_rounds=3000), attacked.rows[0]) == 3


def test_listeners_in_league_read_no_row_of_a_masked_node():
    privacy = Privacy("masked")
    attacked = Room(
        block(3), FOUR, "curious", Settings(C=0.1), privacy, lambda _: block(8, 1), ["d"]
    )
    assert recovered(listen(attacked), attacked.rows[0]) == 0
