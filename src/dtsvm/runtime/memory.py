"""All nodes in one process: whole rounds compiled, agents in parallel, messages by reference."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds import HISTORY, History, Info, State, Status
from dtsvm.rounds.agreement import is_balanced
from dtsvm.rounds.certify import certificates
from dtsvm.rounds.plan import Plan
from dtsvm.rounds.state import ACCURACY
from dtsvm.rounds.stopping import SHARE, residual_tol

__all__ = ["Memory"]

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Numbers touched in a round below which waking a second thread costs more than it saves.
PARALLEL_WORK = 4_000_000
CORES = os.cpu_count() or 1  # asking takes as long as some rounds do
NO_ROUND = np.array([(0, np.inf, np.inf, np.nan, np.inf, 0, 0, 0)], HISTORY)[0]
CHUNK_SECONDS = 0.2
CHUNK_NUMBERS = 20_000_000  # touched in at most a few hundredths of a second


class Run(NamedTuple):
    """One call of `train`: when it began and what it wants."""

    started: float
    first: int  # rounds done before it
    tol: float | None


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
    between : callable, optional
        Called between whole rounds, a few times a second at most.
    """

    state: State
    loss: float = 0.0
    seed: int = 0
    n_threads: int | None = None
    seconds: float = 0.0
    history: History = field(default_factory=History)
    between: Callable[[], None] | None = None
    has_all_rows: ClassVar[bool] = True  # in this process

    def __post_init__(self) -> None:
        self._threads = self.n_threads or CORES
        self._next_look = 0.0

    @cached_property
    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)

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
        run = Run(self._now(), self.n_rounds, tol)
        status, self._next_look, is_certified = Status.MAX_ROUNDS, 0.0, False
        chunk, last = (1 if on_round else self._first_chunk()), self.n_rounds + max_rounds
        try:
            while self.n_rounds < last and status is Status.MAX_ROUNDS:
                before = self._now()
                is_certified, is_done = self._advance(min(chunk, last - self.n_rounds), run)
                if is_done:
                    status = Status.CONVERGED
                elif max_seconds is not None and self._now() - run.started > max_seconds:
                    status = Status.TIME_LIMIT
                if self.between:
                    self.between()
                if on_round:
                    on_round(self._info(status, run.started))
                elif self._now() - before < CHUNK_SECONDS / 4:
                    chunk = min(2 * chunk, 4096)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        if not is_certified:
            self._certify()
            status = self._judged(status, tol)
        info = self._info(status, run.started)
        self.seconds = info.seconds
        return info

    def _judged(self, status: Status, tol: float | None) -> Status:
        """What a last look says: who is good enough when rounds or time are up has converged."""
        last = self._info(status, self._now())
        residual = max(last.primal_residual, last.dual_residual)
        is_good = tol is not None and last.gap <= SHARE * tol and residual <= residual_tol(tol)
        is_over = status in (Status.MAX_ROUNDS, Status.TIME_LIMIT)
        return Status.CONVERGED if is_over and is_good else status

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

    def _now(self) -> float:
        return time.perf_counter()

    def _first_chunk(self) -> int:
        """How many rounds with a sweep each surely do not take long; most fits need no more."""
        tables = self.state.tables
        numbers = (len(tables.rows) + 2 * len(tables.ends)) * (tables.n_features + 10)
        return max(10, min(CHUNK_NUMBERS // max(numbers, 1), 256))

    def _certify(self) -> None:
        """Put a certificate beside the last round."""
        row = self.history.last
        if len(row):
            each = self.certificates()
            whole = Certificate(sum(c.objective for c in each), sum(c.bound for c in each))
            row["objective"], row["gap"] = whole.objective, whole.gap

    def certificates(self) -> list[Certificate]:
        """Certify every set of agents that agrees among itself."""
        return certificates(self.state)

    # Some sets of agents, each until it is done: see `apart`

    def agreed_plan(self) -> Plan:
        """Return the plan of all that is here now."""
        return self.state.plan

    def train_sets(self, plan: Plan, tol: float, max_rounds: int) -> Floats:
        """Run rounds until every set is certified; return how they ended: see `kernel.run_apart`.

        What was trained before is looked at first.
        """
        state, arrays = self.state, plan.sets.arrays
        is_silent, ended = arrays["is_silent"], arrays["ended"]
        is_silent[:], ended[:] = 0, 0.0
        first_look = compiled.next_look_apart(0) if state.age == 0 else 0
        pace = {
            "gap_tol": tol, "most": max_rounds, "next_look": min(first_look, max_rounds),
            "long": 2 * CHUNK_NUMBERS / (state.n_features + 10),
        }  # fmt: skip
        state.snapshots.make_room(state.age, max_rounds, state.is_warm, state.settings)
        job = self._plain_job(0, pace)
        try:
            while not is_silent.all():
                compiled.run_apart(plan.rows, plan.agents, plan.ends, plan.sets, job.past,
                                   plan.work, plan.sums, job.record)  # fmt: skip
        finally:  # Ctrl-C is heard when compiled rounds are over: they count
            state.age += int(ended[:, 0].max(initial=0.0))
        found: Floats = ended
        return found

    def _plain_job(self, n: int, more: dict[str, float] | None = None) -> _Job:
        """Rounds in which nobody looks at a certificate, unless `more` of a pace says so."""
        state, log = self.state, np.full((n, 6), np.nan)
        pace = {
            **ACCURACY[state.settings.local], "kappa": state.settings.relaxation,
            "has_checks": is_balanced(state), "age": state.age, "begun": 0, "residual_tol": -1.0,
            "gap_tol": 0.0, "next_look": 0.0, "heavy": np.inf, "long": np.inf, **(more or {}),
        }  # fmt: skip
        state.snapshots.make_room(state.age, n, state.is_warm, state.settings)
        past = state.snapshots.record(state.is_warm)
        return _Job(log, past, np.inf, compiled.Job(log, np.zeros((n, 0, 2), np.uint8), pace))

    def _info(self, status: Status, started: float) -> Info:
        last = self.history.last[0] if self.n_rounds else NO_ROUND
        _, primal, dual, objective, gap, _, messages, payload = last.item()
        return Info(
            status=status,
            n_rounds=self.n_rounds,
            objective=objective,
            gap=gap,
            primal_residual=primal,
            dual_residual=dual,
            messages_sent=messages,
            bytes_sent=payload,
            seconds=self.seconds + self._now() - started,
        )

    def _advance(self, n: int, run: Run) -> tuple[bool, bool]:
        """Run up to `n` rounds, fewer if they take long or the answer is certified.

        Return whether the last round has a certificate, and whether training is done.
        """
        state = self.state
        state.prepare()
        drawn_from = self._rng.bit_generator.state if self.loss else None
        job = self._job(n, run)
        try:
            self._loop(job)
        finally:  # Ctrl-C is heard when compiled rounds are over: they count
            done, self._next_look, is_certified, is_done = job.record.progress
            if drawn_from is not None and done < n:  # give back losses of rounds that did not come
                self._rng.bit_generator.state = drawn_from
                self._draw_heard(done)
            self.history.append(self._block(job.log[:done]))
            state.age += done
        return is_certified, is_done

    def _job(self, n: int, run: Run) -> _Job:
        state, log = self.state, np.full((n, 6), np.nan)
        is_threaded = self._threads > 1
        pace = {
            **ACCURACY[state.settings.local],
            "kappa": state.settings.relaxation,
            "has_checks": is_balanced(state),
            "age": state.age,
            "begun": self.n_rounds - run.first,
            "residual_tol": residual_tol(run.tol),
            "gap_tol": SHARE * (run.tol or 0.0),
            "next_look": self._next_look,
            "heavy": PARALLEL_WORK / state.n_features if is_threaded else np.inf,
            "long": 2 * CHUNK_NUMBERS / (state.n_features + 10),
        }
        state.snapshots.make_room(state.age, n, state.is_warm, state.settings)
        past = state.snapshots.record(state.is_warm)
        return _Job(log, past, pace["heavy"], compiled.Job(log, self._draw_heard(n), pace))

    def _block(self, log: Floats) -> NDArray[np.void]:
        """History rows from the compiled loop's log."""
        block = np.zeros(len(log), HISTORY)
        rounds = np.arange(1, len(log) + 1)
        block["round"] = self.n_rounds + rounds
        block["primal_residual"], block["dual_residual"] = log[:, 0], log[:, 1]
        block["sweeps"] = log[:, 2]
        block["objective"], block["gap"] = log[:, 4], log[:, 5]
        traffic = self.state.plan.traffic
        messages, payload = self._sent
        block["messages_sent"] = messages + traffic[0] * rounds
        block["bytes_sent"] = payload + traffic[1] * rounds
        return block

    @property
    def _sent(self) -> tuple[int, int]:
        last = self.history.last
        return (int(last["messages_sent"][0]), int(last["bytes_sent"][0])) if len(last) else (0, 0)

    def _draw_heard(self, n: int) -> NDArray[np.uint8]:
        if self.loss == 0.0:
            return np.zeros((n, 0, 2), np.uint8)
        firsts = self.state.plan.firsts
        heard = self._rng.random((n, len(firsts), 2)) >= self.loss
        heard[:, self.state.tables.ends["is_across"][firsts] == 0] = True
        return heard.view(np.uint8)

    def _loop(self, job: _Job) -> None:
        """Run rounds, each on one thread or on all, as the last one's work suggests."""
        plan = self.state.plan
        arrays = plan.rows, plan.agents, plan.ends
        looks = float(len(plan.row_order))
        while not compiled.is_over(job.record):
            if looks < job.heavy:
                compiled.run(*arrays, plan.sets, job.past, plan.work, plan.sums, job.record)
                looks = job.record.last_looks
            else:
                looks = self._rounds_threaded(job)

    def _rounds_threaded(self, job: _Job) -> float:
        """Do the same rounds while they are heavy, agents dealt to threads largest first."""
        plan = self.state.plan
        order = plan.used[np.argsort(-plan.n_rows[plan.used], kind="stable")]
        deals = np.array_split(order, min(len(order), 8 * self._threads))
        arrays = plan.rows, plan.agents, plan.ends
        works = [plan.make_work() for _ in deals]
        age, looks = self.state.age, float("inf")
        with ThreadPoolExecutor(self._threads) as pool:
            while looks >= job.heavy and not compiled.is_over(job.record):
                now = age + job.record.progress[0]
                each = pool.map(
                    lambda some, work, now=now: compiled.local_steps(
                        some, *arrays, work, job.record, now
                    ),
                    deals,
                    works,
                )
                job.record.last_looks = looks = sum(each)
                compiled.close_round(*arrays, plan.sets, job.past, plan.sums, job.record)
        return looks


class _Job(NamedTuple):
    """Rounds to run: their log and snapshots, and how many looks at rows make a round heavy."""

    log: Floats
    past: Any
    heavy: float
    record: Any
