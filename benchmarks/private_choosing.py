"""What choosing C inside the network costs under differential privacy.

    DTSVM_MNIST=/path/to/idx python -m benchmarks.private_choosing

Digits as in `private_digits`, C chosen from the values that agents choose from, all of which train
on all rows for half the rounds, with noise; then one count of errors, with noise, and the best
goes on. Beside it: the C that other digits say; candidates that train each on a part of the rows of
its own, so that a row is in one training only, with C so many times larger, and whose best trains
on all rows anew; and what would have been best, in hindsight. Then, what each way leaves of ε.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from benchmarks.private_digits import (
    DELTA,
    EPSILONS,
    N_NODES,
    N_SEEDS,
    PICKED,
    TASKS,
    Block,
    Chosen,
    deal,
    errors,
    line,
    load,
    n_wrong,
    over_network,
)
from dtsvm.problem import Privacy
from dtsvm.runtime.agent.site.level import CANDIDATES, CHOOSING
from dtsvm.runtime.privacy.accounting import noise_multiplier, shared_multiplier, spent_epsilon
from dtsvm.runtime.privacy.veil import COUNTED

WRITTEN = 0.2  # the C that `private_digits` picks on other digits


def by_parts(
    blocks: dict[tuple[str, str], Block], level: Privacy, chosen: Chosen, seed: int
) -> tuple[float, dict[str, np.ndarray]]:
    """Let every candidate train on rows of its own, count its errors on all others; then train."""
    rng, k = np.random.default_rng(seed), len(CANDIDATES)
    part = {key: rng.integers(0, k, len(y)) for key, (_, y) in blocks.items()}
    few = replace(chosen, rounds=chosen.rounds // 2)
    trains = replace(level, preparation=1 - CHOOSING * (1 - COUNTED))  # what is not for this
    size = math.sqrt(k - 1) * shared_multiplier(level.epsilon, DELTA, CHOOSING * COUNTED, 1)
    wrong = []
    for j, C in enumerate(CANDIDATES):
        own = {key: (X[part[key] == j], y[part[key] == j]) for key, (X, y) in blocks.items()}
        found = over_network(own, trains, replace(few, C=k * C), seed)
        n = sum(n_wrong(found[key[1]], X[part[key] != j], y[part[key] != j])
                for key, (X, y) in blocks.items())  # fmt: skip
        wrong.append(n + size * math.sqrt(N_NODES) * rng.standard_normal())
    C = CANDIDATES[int(np.argmin(wrong))]
    rest = replace(level, preparation=CHOOSING)
    return C, over_network(blocks, rest, replace(chosen, C=C), seed)


def main() -> None:
    """Print what choosing inside the network costs."""
    train, test = load(TASKS)
    deals = {seed: deal(train, seed) for seed in range(1, 1 + N_SEEDS)}
    plain = Chosen(WRITTEN, 10.0, 20)
    print(f"| error, % ({N_SEEDS} dealings, ± their spread) | {' | '.join(test)} | C |")
    print("|---|" + "---|" * (len(test) + 1))
    for epsilon in EPSILONS:
        level = Privacy("dp", epsilon, DELTA)
        auto = replace(level, candidates=CANDIDATES, choosing=CHOOSING)
        PICKED.clear()
        rows = {"written down": ([over_network(d, level, plain, s) for s, d in deals.items()],
                                 [WRITTEN] * N_SEEDS)}  # fmt: skip
        rows["chosen, all on all rows"] = (
            [over_network(d, auto, replace(plain, C=CANDIDATES[0]), s) for s, d in deals.items()],
            list(PICKED),
        )
        parts = [by_parts(d, level, plain, s) for s, d in deals.items()]
        rows["chosen, each on a part"] = [found for _, found in parts], [C for C, _ in parts]
        rows["best, in hindsight"] = _hindsight(deals, level, plain, test)
        for name, (found, prices) in rows.items():
            line(f"ε = {epsilon:g}, {name}", [errors(one, test) for one in found],
                 ", ".join(f"{C:g}" for C in prices))  # fmt: skip
    left()


def _hindsight(deals: dict, level: Privacy, plain: Chosen, test: dict[str, Block]) -> tuple:
    found = []
    for seed, blocks in deals.items():
        every = {C: over_network(blocks, level, replace(plain, C=C), seed) for C in CANDIDATES}
        found.append(min(every.items(), key=lambda one: sum(errors(one[1], test).values())))
    return [one for _, one in found], [C for C, _ in found]


def left() -> None:
    """Print the ε whose noise the training that is told has, by what else is paid for."""
    print("\n| of a budget of | 1 | 3 | 8 |\n|---|---|---|---|")
    ways: dict[str, Callable[[float], float]] = {
        f"choosing as above: {1 - CHOOSING:g} of the budget is left": lambda _: 1 - CHOOSING,
        "three candidates trained in full, one is told": lambda _: 1 / 3,
        "nine: three on three folds": lambda _: 1 / 9,
        "a random number of candidates, three on average, losers hidden": _random_stopping,
    }
    for name, share in ways.items():
        cells = [spent_epsilon(shared_multiplier(e, DELTA, share(e), 1), DELTA, 1)
                 for e in EPSILONS]  # fmt: skip
        print(f"| {name} | {' | '.join(f'{one:.2f}' for one in cells)} |")


def _random_stopping(epsilon: float, mean: float = 3.0) -> float:
    """Return the share of a budget that each training may have: Papernot and Steinke (2022).

    Theorem 2 with η = 1 and γ = 1/mean: the best of a geometric number of trainings, each of Rényi
    ε(λ) = λ/(2m²), is of ε(λ) + 2 (1 − 1/μ) ε(μ) + 2 log(1/γ)/μ + log(mean)/(λ − 1), any μ > 1.
    Only the best may be seen.
    """
    orders = np.exp(np.linspace(np.log(1.01), np.log(2000.0), 400))
    whole = noise_multiplier(epsilon, DELTA, 1)

    def spent(m: float) -> float:
        more = 2 * (1 - 1 / orders) * orders / (2 * m * m) + 2 * math.log(mean) / orders
        rdp = orders / (2 * m * m) + more.min() + math.log(mean) / (orders - 1)
        to_delta = np.log1p(-1 / orders) - (np.log(DELTA) + np.log(orders)) / (orders - 1)
        return float((rdp + to_delta).min())

    low, high = whole, 1e4
    while high - low > 1e-6 * high:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if spent(middle) > epsilon else (low, middle)
    return (whole / high) ** 2


if __name__ == "__main__":
    main()
