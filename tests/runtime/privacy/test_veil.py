"""The sensitivity that noise is measured by is never exceeded; what is told has the noise."""

import os

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import beta

from dtsvm.errors import NetworkError
from dtsvm.problem import Privacy, Settings
from dtsvm.rounds import Elsewhere, State
from dtsvm.runtime.agent.node.ends import Ends
from dtsvm.runtime.agent.node.holdings import Holding
from dtsvm.runtime.privacy.budget import Budget
from dtsvm.runtime.privacy.noise import GRAIN, clip, noised, sensitivity, true_normal
from dtsvm.runtime.privacy.veil import Noisy, make_veil

pytest.importorskip("dp_accounting")
P, NORM = 3, 1.0


def solved(X, y, z, settings, veil=None, weight=None):
    """Ends after one round at z, and the state."""
    state = State(P, settings)
    (slot,) = state.add_agents([0], [0]).tolist()
    state.add_rows(slot, X, y, weight)
    ends = Ends(state, veil)
    ends.relink({("t", "b", "t"): True}, {"t": Holding(slot)}, lambda _: False)
    state.know(Elsewhere(size={slot: 2.0}, flow={slot: 1.0}, square={slot: 0.3}))
    state.prepare()
    state.tables.ends.open("state")[ends.halves["t", "b", "t"]] = z
    ends.prepare()
    ends.solve()
    return state, slot


def drawn(rng, n):
    X = rng.normal(size=(n, P)) * rng.choice([0.1, 1.0, 10.0])
    return clip(X, NORM), np.where(rng.random(n) < rng.uniform(0.1, 0.9), 1.0, -1.0)


def ratio(rng):
    """How far one replaced row moves X̃ᵀYλ, beside the bound."""
    eta = float(10 ** rng.uniform(-1.5, 1.5))
    settings = Settings(
        C=float(10 ** rng.uniform(-2, 1)), local="exact", bias=rng.choice(["mixed", "common"]),
        task_penalty=eta, node_penalty=eta,
    )  # fmt: skip
    X, y = drawn(rng, int(rng.integers(1, 8)))
    z = rng.normal(size=(2, P + 1)) * 10 ** rng.uniform(-2, 1)
    other_X, other_y = X.copy(), y.copy()
    (other_X[0],), (other_y[0],) = drawn(rng, 1)
    most = float(rng.choice([1.0, 5.0]))
    weight = np.where(rng.random(len(y)) < 0.5, most, most * rng.random(len(y)))
    other_weight = weight.copy()
    other_weight[0] = most * rng.choice([rng.random(), 1.0])
    pulls = []
    for *rows, some in ((X, y, weight), (other_X, other_y, other_weight)):
        state, slot = solved(*rows, z, settings, weight=some)
        pulls.append(np.array(state.tables.agents["pull"][slot]))
    assert not state.tables.agents["prox"][slot].any()
    d = state.tables.agents["gain"][slot].sum(axis=0)
    moved = np.sqrt(np.repeat(d, [P, 1])) * (pulls[1] - pulls[0])
    return np.linalg.norm(moved) / sensitivity(most * settings.C, NORM, *d.tolist())


def test_replacing_a_row_never_moves_more_than_the_bound():
    rng = np.random.default_rng(0)
    ratios = np.array([ratio(rng) for _ in range(int(os.environ.get("DTSVM_SWAPS", "3000")))])
    print(f"{len(ratios)} rows replaced; the largest change was {ratios.max():.4f} of the bound")
    assert ratios.max() <= 1.0 + 1e-6
    assert ratios.max() > 0.9  # the bound is not idle


def test_what_is_told_has_noise_of_the_promised_size():
    settings = Settings(C=0.1, local="exact", bias="mixed", task_penalty=2.0, node_penalty=2.0)
    rng = np.random.default_rng(1)
    X, y = drawn(rng, 6)
    z = rng.normal(size=(2, P + 1))
    bare, slot = solved(X, y, z, settings)
    gain = np.repeat(bare.tables.agents["gain"][slot], [P, 1], axis=1)
    scales = []
    for _ in range(400):
        veil = make_veil(Privacy("dp", rounds=1))
        noisy, _ = solved(X, y, z, settings, veil)
        change = (noisy.estimate(slot) - bare.estimate(slot)) / gain
        np.testing.assert_allclose(change[0], change[1], rtol=1e-9, atol=1e-12)
        scales.append(change[0])
    d = np.repeat(gain[:, [0, -1]].sum(axis=0), [P, 1])
    wanted = veil.multiplier * sensitivity(0.1, NORM, d[0], d[-1]) / np.sqrt(d)
    np.testing.assert_allclose(np.std(scales, axis=0), wanted, rtol=0.15)


def test_a_spent_budget_leaves_what_was_told():
    settings = Settings(C=0.1, local="exact", bias="mixed", task_penalty=2.0, node_penalty=2.0)
    X, y = drawn(np.random.default_rng(2), 6)
    veil = make_veil(Privacy("dp", rounds=1))
    assert veil.budget.spend()
    state, slot = solved(X, y, np.ones((2, P + 1)), settings, veil)
    assert not state.estimate(slot).any()


def told(rows, n_trials, settings, privacy):
    """How far what is told lies towards a row, over as many trials."""
    veil = make_veil(privacy)
    state, slot = solved(*rows, np.zeros((2, P + 1)), settings, veil)
    out = np.empty(n_trials)
    for i in range(n_trials):
        veil.cover(state, state.plan.used)
        out[i] = state.estimate(slot)[0] @ [1.0, 0.0, 0.0, 1.0]
    return out


def test_the_best_attack_on_one_message_stays_below_the_promised_epsilon():
    epsilon, delta, n = 1.0, 1e-5, 10_000
    settings = Settings(C=0.1, local="exact", bias="mixed", task_penalty=2.0, node_penalty=2.0)
    row, flipped = ((np.array([[1.0, 0.0, 0.0]]), np.array([sign])) for sign in (1.0, -1.0))
    privacy = Privacy("dp", epsilon, delta, 1, NORM)
    one, other = (told(rows, n, settings, privacy) for rows in (row, flipped))
    found = []
    for at in np.quantile(one, np.linspace(0.02, 0.98, 49)):
        hit, miss = (beta.ppf(q, k + a, n - k + 1 - a) for q, k, a in (
            (0.01, (one >= at).sum(), 0), (0.99, (other >= at).sum(), 1)))  # fmt: skip
        found.append(np.log(max(hit - delta, 1e-9) / miss))
    assert 0.2 < max(found) <= epsilon


@pytest.mark.parametrize("wrong", [{"local": "tracking"}, {"bias": "task"}])
def test_settings_without_a_bound_are_refused(wrong):
    veil = make_veil(Privacy("dp"))
    assert isinstance(veil, Noisy)
    with pytest.raises(NetworkError, match="a row's influence has no bound otherwise"):
        veil.check(Settings(**{"local": "exact", "bias": "mixed", **wrong}))


def test_normal_numbers_are_normal():
    drawn_numbers = true_normal(20_000)
    assert abs(drawn_numbers.mean()) < 0.05
    assert abs(drawn_numbers.std() - 1.0) < 0.05


def test_csr_rows_are_clipped_as_dense_ones_and_stay_csr():
    X = np.random.default_rng(0).normal(size=(20, 6)) * (np.arange(6) % 2)
    X[3] = 0.0
    found = clip(csr_array(X), 1.0)
    assert found.format == "csr"
    np.testing.assert_allclose(found.toarray(), clip(X, 1.0))


SETTINGS = Settings(C=0.1, local="exact", bias="mixed", task_penalty=2.0, node_penalty=2.0)


def test_low_digits_of_what_is_told_say_nothing_of_rows():
    """Two exact values that differ by less than a grain are told in the same bits."""
    size = np.full(1000, 0.37)
    exact = np.random.default_rng(0).normal(size=1000)
    same = np.random.default_rng(1).normal(size=1000)
    one, other = (noised(some, size, lambda _: same) for some in (exact, exact + 1e-9))
    assert (one == other).mean() > 0.999
    grain = GRAIN * 0.25
    np.testing.assert_array_equal(one / grain, np.rint(one / grain))
    assert np.abs(one - exact - size * same).max() <= grain / 2


def test_x_follows_from_the_noisy_pull_and_what_neighbours_know():
    """Rows whose pulls differ by less than a grain give the same bits of x, at any z."""
    z = np.random.default_rng(3).normal(size=(2, P + 1)) * 1e3
    told = []
    for first in (1.0, 1.0 - 1e-9):
        veil = make_veil(Privacy("dp", rounds=1), draw=lambda n: np.linspace(-1, 1, n))
        state, slot = solved(np.array([[first, 0, 0]]), np.ones(1), z, SETTINGS, veil)
        told.append(state.estimate(slot))
    np.testing.assert_array_equal(*told)


def test_while_a_round_is_at_work_others_see_what_was_told_before():
    seen = []

    def draw(n):
        seen.append((veil.shown(state_of[0], 0), np.array(state_of[0].estimate(0))))
        return np.zeros(n)

    veil, state_of = make_veil(Privacy("dp", rounds=2), draw=draw), []
    spend = veil.spend

    def watched(state, *more):
        state_of[:] = [state]
        return spend(state, *more)

    veil.spend = watched
    solved(*drawn(np.random.default_rng(2), 6), np.ones((2, P + 1)), SETTINGS, veil)
    ((shown, bare),) = seen
    assert not shown.any()
    assert bare.any()


def test_a_round_that_fails_leaves_nothing_without_noise(monkeypatch):
    veil = make_veil(Privacy("dp", rounds=5))

    def fail(*_):
        raise MemoryError

    state = State(P, SETTINGS)
    (slot,) = state.add_agents([0], [0]).tolist()
    state.add_rows(slot, *drawn(np.random.default_rng(2), 6))
    ends = Ends(state, veil)
    ends.relink({("t", "b", "t"): True}, {"t": Holding(slot)}, lambda _: False)
    state.know(Elsewhere(size={slot: 2.0}, flow={slot: 1.0}, square={slot: 0.3}))
    ends.prepare()
    monkeypatch.setattr(veil, "cover", fail)
    with pytest.raises(MemoryError):
        ends.solve()
    assert not state.estimate(slot).any()


def test_a_bias_that_no_link_holds_is_refused_before_anything_is_paid_for():
    veil = make_veil(Privacy("dp", rounds=5))
    state = State(P, SETTINGS)
    linked, lonely = state.add_agents([0, 0], [0, 1]).tolist()
    for slot in (linked, lonely):
        state.add_rows(slot, *drawn(np.random.default_rng(slot), 6))
    ends = Ends(state, veil)
    ends.relink({("t", "b", "t"): True}, {"t": Holding(linked)}, lambda _: False)
    known = dict.fromkeys((linked, lonely), 1.0)
    state.know(Elsewhere(size=known, flow=known, square=known))
    ends.prepare()
    for _ in range(7):
        with pytest.raises(NetworkError, match="a bias that no link holds"):
            ends.solve()
    assert veil.budget.spent == 0
    assert not state.estimate([linked, lonely]).any()


@pytest.mark.parametrize("candidate", [0, 1])
def test_a_choice_in_the_middle_of_a_round_leaves_its_noise_as_it_was_paid_for(candidate):
    chosen = Privacy("dp", rounds=20, candidates=(0.8, 0.1), choosing=0.35)
    sizes = []
    for budget in (Budget(chosen), _Hasty(chosen, candidate)):
        veil = Noisy(budget, np.ones)
        veil.share([0, 1], [0.8, 0.1])
        rows = drawn(np.random.default_rng(2), 6)
        state, slot = solved(*rows, np.zeros((2, P + 1)), SETTINGS, veil)
        sizes.append(state.estimate(slot))
    assert veil.choice == candidate
    np.testing.assert_array_equal(*sizes)


class _Hasty(Budget):
    """The network chooses as soon as a round is paid for, before its rows are looked at."""

    def __init__(self, privacy, candidate):
        super().__init__(privacy)
        self.candidate = candidate

    def spend(self):
        found = super().spend()
        self.choose(self.candidate)
        return found
