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
from dtsvm.rounds.step import Accuracy, AgentArrays, HalfArrays, RowArrays, tightened

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
    seconds: float = 0.0
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)

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
        rule = Stopping(tol or 0.0, self.n_rounds, self.n_rounds)
        status = Status.MAX_ROUNDS
        has_looked = False
        chunk, last = (1 if on_round else 10), self.n_rounds + max_rounds
        try:
            while self.n_rounds < last and status is Status.MAX_ROUNDS:
                before = time.perf_counter()
                self._advance(self._until(chunk, last, rule), rule, tol is not None)
                has_looked, is_done = self._look(rule) if tol is not None else (False, False)
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

    def _until(self, chunk: int, last: int, rule: Stopping) -> int:
        """How many rounds may pass without looking up: to a limit, a check or a milestone."""
        done = self.n_rounds - rule.n_rounds
        milestone = max(64, 1 << done.bit_length()) - done
        check = self.state.next_check() or milestone
        return min(chunk, last - self.n_rounds, milestone, check)

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
        row = self.history.last[0] if self.n_rounds else np.zeros(1, HISTORY)[0]
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

    def _advance(self, n: int, rule: Stopping, may_stop: bool) -> None:
        """Run up to `n` rounds, fewer if agents are calm and a look at the certificate is due."""
        state = self.state
        state.prepare()
        drawn_from = self._rng.bit_generator.state
        heard = self._draw_heard(n)
        log = np.zeros((n, 3))
        arrays = (state.agent_arrays(), state.row_arrays(), state.half_arrays())
        settings = (state.settings.C, state.settings.relaxation, state.accuracy)
        calm = rule.residual_tol if may_stop else -1.0
        done = self._loop(n, arrays, settings, heard, log, calm, rule.next_look - self.n_rounds)
        if done < n:  # give back the losses of rounds that did not take place
            self._rng.bit_generator.state = drawn_from
            self._draw_heard(done)
        self.history.append(self._block(log[:done]))
        state.count_rounds(done)

    def _block(self, log: NDArray[np.float64]) -> NDArray[np.void]:
        """History rows from the compiled loop's log."""
        state = self.state
        block = np.zeros(len(log), HISTORY)
        rounds = np.arange(1, len(log) + 1)
        block["round"] = self.n_rounds + rounds
        block["primal_residual"], block["dual_residual"] = log[:, 0], log[:, 1]
        block["sweeps"] = log[:, 2]
        block["objective"] = block["gap"] = np.nan
        across = state.firsts[state.halves["is_across"][state.firsts]]
        wide = int(state.halves["is_wide"][across].sum())
        numbers = (state.n_features + 1) * (len(across) + wide)
        sent, carried = self._sent
        block["messages_sent"] = sent + 2 * len(across) * rounds
        block["bytes_sent"] = carried + 2 * 8 * numbers * rounds
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
                    n,
                    state.used,
                    state.firsts,
                    *arrays,
                    *settings,
                    state.age,
                    heard,
                    log,
                    tol,
                    not_before,
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
                now = Accuracy(*tightened(accuracy, self.state.age + k))
                list(
                    pool.map(lambda s, now=now: local_step(s, agents, rows, halves, C, now), cursor)
                )
                _exchange_all(k, used, firsts, agents, halves, kappa, heard, log)
                if log[k, 0] <= tol and log[k, 1] <= tol and k + 1 >= not_before:
                    return k + 1
        return n


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
    primal, dual = exchange(firsts, agents, halves, kappa, heard[k])
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
    age: int,
    heard: NDArray[np.bool_],
    log: NDArray[np.float64],
    tol: float,
    not_before: int,
) -> int:
    for k in range(n):
        local_step(used, agents, rows, halves, C, tightened(accuracy, age + k))
        _exchange_all(k, used, firsts, agents, halves, kappa, heard, log)
        if log[k, 0] <= tol and log[k, 1] <= tol and k + 1 >= not_before:
            return k + 1
    return n
