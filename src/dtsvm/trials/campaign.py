"""Experiments to results: which to run, how often, on how many processes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtsvm.errors import ParameterError, did_you_mean
from dtsvm.trials import EXPERIMENTS
from dtsvm.trials.experiment import Experiment
from dtsvm.trials.intervals import Claim
from dtsvm.trials.regimes import REGIMES, Regime, load_features
from dtsvm.trials.repeats import Mapper, Repeats, crew
from dtsvm.trials.tables import Table

__all__ = ["Campaign", "Result", "run_campaign"]

Watch = Callable[[str, int, int], object]


class Result(NamedTuple):
    """What one experiment found."""

    experiment: Experiment
    n_repeats: int
    table: Table
    claims: list[Claim]
    seconds: float


@dataclass(frozen=True)
class Campaign:
    """What to run.

    Parameters
    ----------
    names : sequence of str
        Experiments, or "all".
    regime : {"both", "paper", "standard"}
        The regimes.
    seed : int
        The seed of everything random.
    repeats : int, optional
        Repeats in each regime, instead of each experiment's own number.
    is_quick : bool, default=False
        Fewer repeats: enough to decide most claims.
    jobs : int, default=1
        Processes; no number depends on it.

    Examples
    --------
    >>> from dtsvm.trials.campaign import Campaign
    >>> [experiment.name for experiment in Campaign(["table1", "fig2"]).experiments]
    ['fig2', 'table1']
    """

    names: Sequence[str]
    regime: str = "both"
    seed: int = 0
    repeats: int | None = None
    is_quick: bool = False
    jobs: int = 1

    @property
    def experiments(self) -> list[Experiment]:
        """The experiments asked for, in the paper's order."""
        for name in self.names:
            if name != "all" and name not in EXPERIMENTS:
                choices = [*EXPERIMENTS, "all"]
                raise ParameterError(f"Unknown experiment {name!r}. {did_you_mean(name, choices)}")
        return [e for e in EXPERIMENTS.values() if e.name in self.names or "all" in self.names]

    @property
    def regimes(self) -> tuple[Regime, ...]:
        """The regimes asked for."""
        return tuple(REGIMES.values()) if self.regime == "both" else (REGIMES[self.regime],)

    def n_repeats(self, experiment: Experiment) -> int:
        """How often an experiment is repeated in each regime."""
        return self.repeats or (experiment.n_quick if self.is_quick else experiment.n_repeats)


def run_campaign(campaign: Campaign, watch: Watch = lambda name, done, total: None) -> list[Result]:
    """Run the experiments one after the other.

    Parameters
    ----------
    campaign : Campaign
        What to run.
    watch : callable, optional
        Called with an experiment's name, the repeats done and all of them.

    Returns
    -------
    list of Result
        In the paper's order.
    """
    results: list[Result] = []
    tables: dict[str, Table] = {}
    # Asked for first: an unknown name should not wait for the digits.
    experiments = campaign.experiments
    with crew(load_features(), campaign.jobs) as mapper:
        for experiment in experiments:
            started = time.perf_counter()
            if experiment.source not in tables:
                tables[experiment.source] = _run_one(campaign, experiment, mapper, watch)
            table = tables[experiment.source]
            claims = [
                claim
                for regime in campaign.regimes
                for claim in experiment.judge(table.where(regime=regime.name))
            ]
            n_repeats = campaign.n_repeats(experiment)
            seconds = time.perf_counter() - started
            results.append(Result(experiment, n_repeats, table, claims, seconds))
            total = n_repeats * len(campaign.regimes)
            watch(experiment.name, total, total)
    return results


def _run_one(campaign: Campaign, experiment: Experiment, mapper: Mapper, watch: Watch) -> Table:
    n = campaign.n_repeats(experiment)
    total = n * len(campaign.regimes)
    done = iter(range(1, total + 1))
    watch(experiment.name, 0, total)
    return experiment.run(
        Repeats(
            experiment.source,
            campaign.regimes,
            n,
            campaign.seed,
            mapper,
            lambda: watch(experiment.name, next(done), total),
        )
    )
