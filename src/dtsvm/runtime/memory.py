"""All nodes in one process: whole rounds compiled, agents in parallel, messages by reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dtsvm.problem.certificate import Certificate
from dtsvm.rounds import HISTORY, History, Info, State, Status, certificate, exchange, local_step
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays

__all__ = ["Memory"]

Ints = NDArray[np.int64]

# Numbers touched in a round below which waking a second thread costs more than it saves.
PARALLEL_WORK = 2_000_000
CHUNK_SECONDS = 0.2


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
    n_rounds: int = 0
    seconds: float = 0.0
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

    def train(
        self,
        *,
        max_rounds: int,
        tol: float,
        max_seconds: float | None = None,
        on_round: Callable[[Info], None] | None = None,
        stop_early: bool = True,
    ) -> Info:
        """Run rounds until the residuals and the certified gap are below `tol`, or a limit is met.

        Ctrl-C ends training with the state of the last whole round.
        """
        started = time.perf_counter()
        first = self.n_rounds
        status = Status.MAX_ROUNDS
        certified: Certificate | None = None
        next_check = first
        chunk = 1 if on_round else 8
        try:
            while self.n_rounds - first < max_rounds:
                before = time.perf_counter()
                n = min(chunk, max_rounds - (self.n_rounds - first))
                block = self._advance(n, tol if stop_early else -1.0, next_check)
                certified = None
                if stop_early and self._is_calm(block, tol) and self.n_rounds >= next_check:
                    certified = self._certify(block)
                    if _is_certified(certified, tol, self.state):
                        status = Status.CONVERGED
                    # Certifying costs about a sweep: wait a little longer after each failure.
                    next_check = self.n_rounds + max(2, (self.n_rounds - first) // 20)
                self.history.append(block)
                spent = time.perf_counter() - before
                if on_round:
                    on_round(self._info(status, block, certified, started))
                elif spent < CHUNK_SECONDS / 4:
                    chunk = min(2 * chunk, 4096)
                if status is Status.CONVERGED:
                    break
                if max_seconds is not None and time.perf_counter() - started > max_seconds:
                    status = Status.TIME_LIMIT
                    break
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        rows = self.history.array()
        last = rows[-1:] if len(rows) else np.zeros(1, HISTORY)
        if certified is None:
            certified = self._certify(last)
        info = self._info(status, last, certified, started)
        self.seconds += time.perf_counter() - started
        return info

    def describe(self) -> dict[str, Any]:
        """Return what `restore` needs beside the history."""
        return {
            "n_rounds": self.n_rounds,
            "seconds": self.seconds,
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, described: dict[str, Any], history: NDArray[np.void]) -> None:
        """Take over what `describe` returned."""
        self.n_rounds, self.seconds = described["n_rounds"], described["seconds"]
        self._rng.bit_generator.state = described["rng"]
        self.history.append(history)

    def _is_calm(self, block: NDArray[np.void], tol: float) -> bool:
        return bool(block["primal_residual"][-1] <= tol and block["dual_residual"][-1] <= tol)

    def _certify(self, block: NDArray[np.void]) -> Certificate:
        certified = certificate(self.state)
        block["objective"][-1] = certified.objective
        block["gap"][-1] = certified.gap
        return certified

    def _info(
        self, status: Status, block: NDArray[np.void], certified: Certificate | None, started: float
    ) -> Info:
        last = block[-1]
        return Info(
            status=status,
            n_rounds=self.n_rounds,
            objective=certified.objective if certified else float("nan"),
            gap=certified.gap if certified else float("nan"),
            primal_residual=float(last["primal_residual"]),
            dual_residual=float(last["dual_residual"]),
            messages_sent=int(last["messages_sent"]),
            bytes_sent=int(last["bytes_sent"]),
            seconds=self.seconds + time.perf_counter() - started,
        )

    def _advance(self, n: int, tol: float, not_before: int) -> NDArray[np.void]:
        """Run up to `n` rounds, fewer if the residuals fall below `tol` from round `not_before`."""
        state = self.state
        state.prepare()
        across = state.firsts[state.halves["is_across"][state.firsts]]
        heard = self._draw_heard(n)
        log = np.zeros((n, 3))
        arrays = (state.agent_arrays(), state.row_arrays(), state.half_arrays())
        settings = (state.settings.C, state.settings.relaxation, state.accuracy)
        done = self._loop(n, arrays, settings, heard, log, tol, not_before - self.n_rounds)
        block = np.zeros(done, HISTORY)
        rounds = np.arange(1, done + 1)
        block["round"] = self.n_rounds + rounds
        block["primal_residual"], block["dual_residual"] = log[:done, 0], log[:done, 1]
        block["sweeps"] = log[:done, 2]
        block["objective"] = block["gap"] = np.nan
        sent, carried = self._sent
        wide = int(state.halves["is_wide"][across].sum())
        numbers = (state.n_features + 1) * (len(across) + wide)
        block["messages_sent"] = sent + 2 * len(across) * rounds
        block["bytes_sent"] = carried + 2 * 8 * numbers * rounds
        self.n_rounds += done
        return block

    @property
    def _sent(self) -> tuple[int, int]:
        rows = self.history.array()
        return (
            (int(rows["messages_sent"][-1]), int(rows["bytes_sent"][-1])) if len(rows) else (0, 0)
        )

    def _draw_heard(self, n: int) -> NDArray[np.bool_]:
        if self.loss == 0.0:
            return np.zeros((0, 0, 2), bool)
        firsts = self.state.firsts
        heard = self._rng.random((n, len(firsts), 2)) >= self.loss
        heard[:, ~self.state.halves["is_across"][firsts]] = True
        return heard

    def _loop(
        self,
        n: int,
        arrays: tuple[AgentArrays, RowArrays, HalfArrays],
        settings: tuple[float, float, Accuracy],
        heard: NDArray[np.bool_],
        log: NDArray[np.float64],
        tol: float,
        not_before: int,
    ) -> int:
        state = self.state
        work = len(arrays[1].ids) * state.n_features
        threads = self.n_threads or os.cpu_count() or 1
        if threads == 1 or work < PARALLEL_WORK:
            return int(
                _rounds(
                    n, state.used, state.firsts, *arrays, *settings, heard, log, tol, not_before
                )
            )
        return self._loop_threaded(n, arrays, settings, heard, log, tol, not_before, threads)

    def _loop_threaded(
        self,
        n: int,
        arrays: tuple[AgentArrays, RowArrays, HalfArrays],
        settings: tuple[float, float, Accuracy],
        heard: NDArray[np.bool_],
        log: NDArray[np.float64],
        tol: float,
        not_before: int,
        threads: int,
    ) -> int:
        """Do the same rounds, agents dealt to threads largest first."""
        agents, rows, halves = arrays
        C, kappa, accuracy = settings
        used, firsts = self.state.used, self.state.firsts
        order = used[np.argsort(-agents.row_count[used], kind="stable")]
        with ThreadPoolExecutor(threads) as pool:
            for k in range(n):
                cursor = iter(np.array_split(order, min(len(order), 8 * threads)))
                list(pool.map(lambda s: _solve(s, agents, rows, halves, C, accuracy), cursor))
                _exchange_all(k, used, firsts, agents, halves, kappa, heard, log)
                if log[k, 0] <= tol and log[k, 1] <= tol and k + 1 >= not_before:
                    return k + 1
        return n


def _is_certified(value: Certificate, tol: float, state: State) -> bool:
    """Whether the gap is small: against the bound, or, where all rows fit, against C·n."""
    nothing_learnt = state.settings.C * len(state.rows)
    return value.objective - value.bound <= tol * max(value.bound, 1e-6 * nothing_learnt)


@njit(cache=True, nogil=True)
def _solve(
    some: Ints, agents: AgentArrays, rows: RowArrays, halves: HalfArrays, C: float, acc: Accuracy
) -> None:
    for a in some:
        local_step(a, agents, rows, halves, C, acc)


@njit(cache=True, nogil=True)
def _exchange_all(
    k: int,
    used: Ints,
    firsts: Ints,
    agents: AgentArrays,
    halves: HalfArrays,
    kappa: float,
    heard: NDArray[np.bool_],
    log: NDArray[np.float64],
) -> None:
    """Carry all messages of round k; log the worst residuals and the sweeps done."""
    primal = dual = 0.0
    for i in range(firsts.shape[0]):
        there = back = True
        if heard.shape[0] > 0:
            there, back = heard[k, i, 0], heard[k, i, 1]
        apart, moving = exchange(firsts[i], agents, halves, kappa, there, back)
        primal = max(primal, apart)
        dual = max(dual, moving)
    sweeps = 0
    for a in used:
        sweeps += agents.sweeps[a]
        if agents.norm[a] > 0.0:
            dual = max(dual, agents.drift[a] / agents.norm[a])
    log[k, 0], log[k, 1], log[k, 2] = primal, dual, sweeps


@njit(cache=True, nogil=True)
def _rounds(
    n: int,
    used: Ints,
    firsts: Ints,
    agents: AgentArrays,
    rows: RowArrays,
    halves: HalfArrays,
    C: float,
    kappa: float,
    accuracy: Accuracy,
    heard: NDArray[np.bool_],
    log: NDArray[np.float64],
    tol: float,
    not_before: int,
) -> int:
    for k in range(n):
        _solve(used, agents, rows, halves, C, accuracy)
        _exchange_all(k, used, firsts, agents, halves, kappa, heard, log)
        if log[k, 0] <= tol and log[k, 1] <= tol and k + 1 >= not_before:
            return k + 1
    return n
