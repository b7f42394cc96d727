"""Liars where sigmoids are fitted: no probabilities, or those of rows there can be; then honest."""

import numpy as np
import pytest
from meetings import Carrier, build, make_blocks

from dtsvm import Network
from dtsvm.problem.sigmoid import fit_sigmoids, sigmoid, sigmoid_counts, sigmoid_sums
from dtsvm.runtime.agent.node.calibrating import Calibrating, Unseen

FIVE, LIAR = list("abcde"), "a"  # the root of all trees
SHAPES = {"ring": Network.ring, "complete": Network.complete}


def make_unseen(name):
    """Decision values of a useful classifier, and the labels they are to tell."""
    rng = np.random.default_rng(ord(name))
    values = rng.normal(size=40) * 1.5
    is_positive = rng.random(40) < 1 / (1 + np.exp(-1.4 * values + 0.3))
    return Unseen(values, is_positive, rng.uniform(0.5, 2.0, 40))


def fitted(names):
    """What memory fits to the rows of some nodes."""
    some = [make_unseen(name) for name in names]
    rows = [np.concatenate(part) for part in zip(*some, strict=True)]
    which = np.zeros(len(rows[0]), np.int64)
    counts = sigmoid_counts(rows[1], which, 1, rows[2])
    whole = rows[0], rows[1], which, rows[2]
    return fit_sigmoids(lambda ab, n: sigmoid_sums(*whole, ab, n), counts)[0]


class Liar(Calibrating):
    """Adds what `how` makes of its term."""

    how = staticmethod(lambda term, number: term)

    def _fresh(self):
        wave = super()._fresh()
        if not hasattr(wave, "true"):
            wave.true = wave.begin
            wave.begin = lambda number, term: wave.true(number, self.how(np.array(term), number))
        return wave

    def _is_possible(self, number, rest):
        super()._is_possible(number, rest)
        return True  # it goes on whatever happens


def put(place, value, *, first=2):
    def how(term, number):
        if number >= first:
            term[place] = value(number) if callable(value) else value
        return term

    return how


def everywhere(value):
    def how(term, number):
        return term + (value(number) if callable(value) else value)

    return how


SIGMOIDS = {
    "fewer rows than none": put(0, -50.0, first=1),
    "rows without end": put(0, 2.0**39, first=1),
    "loss below zero": put(0, -1e3),
    "loss without end": put(0, 2.0**39),
    "a loss that falls with every step": put(0, lambda n: 60.0 / n),
    "a gradient beyond its rows": put(2, 1e4),
    "a gradient beyond its values": put(1, 1e9),
    "a Hessian below zero": put(5, -40.0),
    "a Hessian that is none": put(4, 1e3),
    "a Hessian without end": put(3, 2.0**39),
    "a gradient of two values in turns": put(2, lambda n: 30.0 * (-1) ** n),
    "terms of noise": everywhere(lambda n: 20.0 * np.sin(n)),
    "a gradient that never ends": put(2, 35.0),
    "nothing but the first sum": lambda term, number: 0.0 * term if number > 1 else term,
    "the first sum of others' rows": lambda term, number: 3.0 * term if number == 1 else term,
}


def meeting(network, how=None, kind=Liar):
    nodes = build(network, make_blocks(FIVE, ["one"], n=40), {"C": 0.1, "tol": 1e-3})
    Carrier(nodes).meet()
    parts = {}
    for node in nodes:
        made = kind if node.name == LIAR and how else Calibrating
        parts[node.name] = made(
            node.name, node.network, node.roster, node.identity, C=0.1,
            unseen=lambda name=node.name: {"one": make_unseen(name)},
        )  # fmt: skip
        if made is not Calibrating and how is not None:
            parts[node.name].how = how
    return nodes, parts


def talk(parts, most=3000):
    for k in range(most):
        for name, one in parts.items():
            one.step()
            for other, message in one.owed().items():
                if other in parts:
                    parts[other].hear(name, message)
        if all(one.sigmoids is not None for name, one in parts.items() if name != LIAR):
            return k
    return most


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("lie", SIGMOIDS)
def test_a_liar_in_sigmoids_ends_nobody_and_leaves_no_trace(lie, shape):
    nodes, parts = meeting(SHAPES[shape](FIVE), SIGMOIDS[lie])
    turns = talk(parts)
    honest = {name: one for name, one in parts.items() if name != LIAR}
    found = [one.sigmoids["one"] for one in honest.values()]
    assert turns < 3000
    assert all(np.array_equal(one, found[0], equal_nan=True) for one in found)
    assert np.isnan(found[0]).all() or (np.abs(found[0]) <= 1e6).all()
    lies = sum(one.n_lies for one in honest.values())
    assert bool(lies) == bool(np.isnan(found[0]).all())
    leave_no_trace(nodes, honest)
    print(f"{lie:36} {shape:9} {turns:4} turns, {lies} lies noticed, sigmoid {found[0].round(2)}")


def leave_no_trace(nodes, honest):
    for node in nodes:
        node.roster.drop(LIAR)
    assert talk(honest) < 3000
    expected = fitted(honest)
    for one in honest.values():
        np.testing.assert_allclose(one.sigmoids["one"], expected, atol=1e-4)


class TwoFaced(Liar):
    """Hands another total to each child."""

    def _message(self, neighbour, wave):
        kept = wave._down
        if kept:
            words = np.frombuffer(kept, "<u8").copy()
            words[1::2] += np.uint64((ord(neighbour[0]) % 4) << 16)
            wave._down = words.tobytes()
        out = super()._message(neighbour, wave)
        wave._down = kept
        return out


@pytest.mark.parametrize("shape", SHAPES)
def test_who_hands_each_another_total_is_noticed(shape):
    nodes, parts = meeting(SHAPES[shape](FIVE), lambda term, number: term, TwoFaced)
    talk(parts)
    honest = {name: one for name, one in parts.items() if name != LIAR}
    found = [one.sigmoids for one in honest.values()]
    assert all(one is None or np.isnan(one["one"]).all() for one in found)
    assert any(one.n_lies for one in honest.values())
    leave_no_trace(nodes, honest)


@pytest.mark.parametrize("factor", [1.0, 10.0, 100.0])
def test_what_a_liar_inside_the_ranges_can_do_to_probabilities(factor):
    """It says that its rows, of which it claims more, have the other labels."""
    _, parts = meeting(Network.ring(FIVE), lambda term, number: term)
    true = make_unseen(LIAR)
    forged = Unseen(true.values, ~true.is_positive, factor * true.weight)
    parts[LIAR].unseen = lambda: {"one": forged}
    talk(parts)
    bent, best = parts["b"].sigmoids["one"], fitted(FIVE[1:])
    values = np.linspace(-3, 3, 61)
    off = np.abs(sigmoid(values, bent) - sigmoid(values, best)).max()
    lies = parts["b"].n_lies
    print(
        f"claims {factor:5g} times its rows, turned round: a {bent[0]:.2f}, b {bent[1]:.2f} "
        f"(honest {best[0]:.2f}, {best[1]:.2f}), probabilities at most {off:.2f} off, {lies} lies"
    )
    assert lies == 0
    assert off < (0.3 if factor == 1.0 else 1.0)
