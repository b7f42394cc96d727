"""All nodes in one process: whole rounds compiled, agents in parallel, messages by reference."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.problem.certificate import Certificate
from dtsvm.qp import borrowed
from dtsvm.rounds import (
    HISTORY,
    History,
    Info,
    State,
    Status,
    Stopping,
    certificates,
    exchange,
    local_step,
)
from dtsvm.rounds.checks import Sets, check, is_balanced, sets, snapshots
from dtsvm.rounds.extrapolate import Past, remember
from dtsvm.rounds.gains import Rules
from dtsvm.rounds.penalty import is_check
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays, tightened

__all__ = ["Memory"]

Ints = NDArray[np.int64]

# Numbers touched in a round below which waking a second thread costs more than it saves.
PARALLEL_WORK = 4_000_000
NO_ROUND = np.array([(0, np.inf, np.inf, np.nan, np.inf, 0, 0, 0)], HISTORY)[0]
CHUNK_SECONDS = 0.2
CHUNK_NUMBERS = 20_000_000  # touched in at most a few hundredths of a second


@dataclass
class Memory:
    """Runs rounds over a `State`; the bits do not depend on the number of threads.

    Parameters
    ----------
    state : State
        The agents.
    loss : float, default=0
        Share of messages across network links that are lost, drawn from `seed`.
    n_threads : int, optional
        Threads for large problems; all cores by default.
    """

    state: State
    loss: float = 0.0
    seed: int = 0
    n_threads: int | None = None
    seconds: float = 0.0
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._threads = self.n_threads or os.cpu_count() or 1

    @property
    def n_rounds(self) -> int:
        """Rounds done so far."""
        return self.history.n_rounds

    def train(
        self,
        *,
        max_rounds: int,
        tol: float | None,
        max_seconds: float | None = None,
        on_round: Callable[[Info], None] | None = None,
    ) -> Info:
        """Run rounds until the answer is certified to `tol`, or a limit is met.

        Without `tol` it runs `max_rounds`. Ctrl-C ends it with the state of the last whole round.
        """
        started = time.perf_counter()
        rule = Stopping(tol, self.n_rounds, self.n_rounds)
        status = Status.MAX_ROUNDS
        has_looked = False
        chunk, last = (1 if on_round else self._first_chunk()), self.n_rounds + max_rounds
        try:
            while self.n_rounds < last and status is Status.MAX_ROUNDS:
                before = time.perf_counter()
                self._advance(self._until(chunk, last, rule), rule)
                has_looked, is_done = self._look(rule)
                if is_done:
                    status = Status.CONVERGED
                elif max_seconds is not None and time.perf_counter() - started > max_seconds:
                    status = Status.TIME_LIMIT
                if on_round:
                    on_round(self._info(status, started))
                elif time.perf_counter() - before < CHUNK_SECONDS / 4:
                    chunk = min(2 * chunk, 4096)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if not has_looked:
            self._certify()
        info = self._info(status, started)
        self.seconds = info.seconds
        return info

    def describe(self) -> dict[str, Any]:
        """Return what `restore` needs beside the history."""
        return {
            "seconds": self.seconds,
            "age": self.state.age,
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, described: dict[str, Any], history: NDArray[np.void]) -> None:
        """Take over what `describe` returned."""
        self.seconds, self.state.age = described["seconds"], described["age"]
        self._rng.bit_generator.state = described["rng"]
        self.history.append(history)
        self.state.before = self.n_rounds - self.state.age

    def _first_chunk(self) -> int:
        """How many rounds with a sweep each surely do not take long."""
        state = self.state
        numbers = (len(state.rows) + 2 * len(state.halves)) * (state.n_features + 10)
        return max(10, min(CHUNK_NUMBERS // max(numbers, 1), 4096))

    def _until(self, chunk: int, last: int, rule: Stopping) -> int:
        """How many rounds may pass without looking up: to a limit or a milestone."""
        return min(chunk, last - self.n_rounds, rule.rounds_to_milestone(self.n_rounds))

    def _look(self, rule: Stopping) -> tuple[bool, bool]:
        """Certify if it is worth while; say whether it was, and whether training is done."""
        row = self.history.last[0]
        is_calm = rule.is_calm(row["primal_residual"], row["dual_residual"])
        if is_calm and self.n_rounds >= rule.next_look:
            return True, rule.looked(self.n_rounds, self._certify(), self.state.settings.C)
        if rule.is_milestone(self.n_rounds):
            self._certify()
            return True, False
        return False, False

    def _certify(self) -> list[tuple[Certificate, int]]:
        each = certificates(self.state)
        total = Certificate(sum(c.objective for c, _ in each), sum(c.bound for c, _ in each))
        row = self.history.last
        row["objective"], row["gap"] = total.objective, total.gap
        return each

    def _info(self, status: Status, started: float) -> Info:
        row = self.history.last[0] if self.n_rounds else NO_ROUND
        return Info(
            status=status,
            n_rounds=self.n_rounds,
            objective=float(row["objective"]),
            gap=float(row["gap"]),
            primal_residual=float(row["primal_residual"]),
            dual_residual=float(row["dual_residual"]),
            messages_sent=int(row["messages_sent"]),
            bytes_sent=int(row["bytes_sent"]),
            seconds=self.seconds + time.perf_counter() - started,
        )

    def _advance(self, n: int, rule: Stopping) -> None:
        """Run up to `n` rounds, fewer if they take long or a look at the certificate is due."""
        state = self.state
        state.prepare()
        drawn_from = self._rng.bit_generator.state
        heard = self._draw_heard(n)
        log, over = np.zeros((n, 4)), np.zeros(2, np.int64)
        try:
            self._loop(n, heard, log, over, rule)
        finally:  # Ctrl-C is heard when compiled rounds are over: they count
            done = int(over[0])
            if done < n:  # give back the losses of rounds that did not take place
                self._rng.bit_generator.state = drawn_from
                self._draw_heard(done)
            self.history.append(self._block(log[:done]))
            state.age += done

    def _block(self, log: NDArray[np.float64]) -> NDArray[np.void]:
        """History rows from the compiled loop's log."""
        state = self.state
        block = np.zeros(len(log), HISTORY)
        rounds = np.arange(1, len(log) + 1)
        block["round"] = self.n_rounds + rounds
        block["primal_residual"], block["dual_residual"] = log[:, 0], log[:, 1]
        block["sweeps"] = log[:, 2]
        block["objective"] = block["gap"] = np.nan
        block["messages_sent"], block["bytes_sent"] = (
            before + each * rounds for before, each in zip(self._sent, state.traffic, strict=True)
        )
        return block

    @property
    def _sent(self) -> tuple[int, int]:
        last = self.history.last
        return (int(last["messages_sent"][0]), int(last["bytes_sent"][0])) if len(last) else (0, 0)

    def _draw_heard(self, n: int) -> NDArray[np.bool_]:
        if self.loss == 0.0:
            return np.zeros((n, 0, 2), bool)
        firsts = self.state.firsts
        heard = self._rng.random((n, len(firsts), 2)) >= self.loss
        heard[:, ~self.state.halves["is_across"][firsts]] = True
        return heard

    def _loop(
        self,
        n: int,
        heard: NDArray[np.bool_],
        log: NDArray[np.float64],
        over: Ints,
        rule: Stopping,
    ) -> None:
        """Run `n` rounds, each on one thread or on all, as the last one's work suggests.

        It runs fewer if they take long, or if agents are calm and the rule wants a look.
        """
        state = self.state
        world = _World(
            state.used,
            state.firsts,
            state.agent_arrays(),
            state.row_arrays(),
            state.half_arrays(),
            state.rules(),
            sets(state),
            snapshots(state, n),
        )
        job = _Job(
            n,
            heard,
            log,
            over,
            state.settings.C,
            state.settings.relaxation,
            state.accuracy,
            state.age,
            state.is_warm,
            is_balanced(state),
            rule.residual_tol,
            rule.next_look - self.n_rounds,
            PARALLEL_WORK / state.n_features if self._threads > 1 else np.inf,
            2 * CHUNK_NUMBERS / (state.n_features + 10),
        )
        looks = float(len(world.rows.ids))
        while not _is_over(job):
            if looks < job.heavy:
                _rounds(world, job)
            else:
                self._rounds_threaded(world, job)
            looks = log[over[0] - 1, 3]

    def _rounds_threaded(self, world: _World, job: _Job) -> None:
        """Do the same rounds while they are heavy, agents dealt to threads largest first."""
        used, agents = world.used, world.agents
        order = used[np.argsort(-agents.row_count[used], kind="stable")]
        deal = np.array_split(order, min(len(order), 8 * self._threads))
        arrays = agents, world.rows, world.halves
        with ThreadPoolExecutor(self._threads) as pool:
            looks = sys.maxsize
            while looks >= job.heavy and not _is_over(job):
                now = Accuracy(*tightened(job.accuracy, job.age + int(job.over[0])))
                looks = sum(
                    pool.map(lambda some, now=now: local_step(some, *arrays, job.C, now), deal)
                )
                _close_round(looks, world, job)


class _World(NamedTuple):
    """The arrays of everybody here, as compiled rounds take them."""

    used: Ints
    firsts: Ints
    agents: AgentArrays
    rows: RowArrays
    halves: HalfArrays
    rules: Rules
    sets: Sets
    past: Past


class _Job(NamedTuple):
    """Rounds to run; row k of `log` is round k: primal and dual residual, sweeps, rows looked at.

    `heard` says which messages of a round arrive. Rounds end early when the residuals are within
    `tol` after `not_before` rounds, or when they have taken long.
    """

    n: int
    heard: NDArray[np.bool_]
    log: NDArray[np.float64]
    over: Ints  # how many rounds are over, and rows looked at in them
    C: float
    kappa: float
    accuracy: Accuracy
    age: int
    is_warm: bool
    has_checks: bool
    tol: float
    not_before: int
    heavy: float  # rows looked at in a round that is worth more than one thread
    long: float  # rows looked at in all rounds before somebody may want to look up


@njit(cache=True, nogil=True)
def _is_over(job: _Job) -> bool:
    k = job.over[0]
    if k == 0 or k == job.n:
        return bool(k == job.n)
    primal, dual = job.log[k - 1, 0], job.log[k - 1, 1]
    is_calm = primal <= job.tol and dual <= job.tol and k >= job.not_before
    return bool(is_calm or job.over[1] > job.long)


@njit(cache=True, nogil=True)
def _close_round(looks: int, world: _World, job: _Job) -> None:
    """Carry all messages of a round, log the worst residuals and the sweeps done, and check."""
    used, agents, halves, past = world.used, world.agents, world.halves, world.past
    k = job.over[0]
    age = job.age + k + 1
    has_check = job.has_checks and is_check(age, job.is_warm)
    primal, dual = exchange(world.firsts, agents, halves, job.kappa, job.heard[k], has_check)
    drift, norm, sweeps_by = agents.drift, agents.norm, agents.sweeps
    sweeps = 0
    for a in used:
        sweeps += sweeps_by[a]
        if norm[a] > 0.0:
            dual = max(dual, drift[a] / norm[a])
    job.log[k, 0], job.log[k, 1], job.log[k, 2], job.log[k, 3] = primal, dual, sweeps, looks
    remember(age, job.is_warm, past, agents, halves)
    if has_check:
        check(age, job.is_warm, used, agents, world.rows, halves, world.rules, world.sets, past)
    job.over[0] += 1
    job.over[1] += looks


@njit(cache=True, nogil=True)
def _rounds(world: _World, job: _Job) -> None:
    """Run rounds until one is heavy or all are over."""
    world, job = borrowed((world, job))
    agents, rows, halves = world.agents, world.rows, world.halves
    looks = 0
    while looks < job.heavy and not _is_over(job):
        now = tightened(job.accuracy, job.age + job.over[0])
        looks = local_step(world.used, agents, rows, halves, job.C, now)
        _close_round(looks, world, job)
