"""Rounds over nodes at several ranks: the same bits as in memory, however they are placed.

A rank solves for its own agents, those at its borders first, and while they travel the others.
Whatever is decided (penalties, leaps, the certificate, when to stop) is decided at every rank from
the same sums: what nodes and agents contribute is gathered and added up in memory's order.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dtsvm.kernel import compiled
from dtsvm.problem import Certificate
from dtsvm.rounds import Info
from dtsvm.rounds.agreement import N_SHOWN, decide, total
from dtsvm.rounds.plan import ITERATES, Plan
from dtsvm.runtime.memory import Memory
from dtsvm.runtime.mpi.certificate import certify_sets
from dtsvm.runtime.mpi.collect import gather_rows
from dtsvm.runtime.mpi.halo import Halo, find_borders
from dtsvm.runtime.mpi.ranks import end_together, maximum
from dtsvm.runtime.mpi.share import Share

__all__ = ["Mpi"]

Slots = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Part:
    """What follows from a plan for one rank.

    own : its agents. border, inner : those whose x others need, and the rest
    order : all agents, one rank's after the other's. is_mine : by `Plan.firsts`
    agents, ends : as compiled code takes them, the rank's alone
    nodes : this rank's entries of `Sets.node_end`; gathered, they are at `node_order`
    set_node : where in these entries a set begins
    """

    plan: Plan
    own: Slots
    border: Slots
    inner: Slots
    order: Slots
    is_mine: NDArray[np.bool_]
    agents: Any
    ends: Any
    nodes: Slots
    node_order: Slots
    set_node: Slots
    halo: Halo


class Mpi(Memory):
    """Runs rounds over a `Share`; the bits depend neither on the ranks nor on who is where.

    Parameters
    ----------
    state : Share
        The agents.
    loss, seed
        As in `Memory`: every rank draws the same losses.
    n_threads : int, optional
        Threads of a rank; one by default.
    """

    state: Share
    has_all_rows = False

    def __post_init__(self) -> None:
        self.n_threads = self.n_threads or 1
        super().__post_init__()
        self.comm = self.state.comm
        self._worst, self._max = np.empty(2), maximum()
        self._part: Part | None = None
        self._is_interrupted = False
        end_together()

    def train(
        self,
        *,
        max_rounds: int,
        tol: float | None,
        max_seconds: float | None = None,
        on_round: Callable[[Info], None] | None = None,
    ) -> Info:
        """Run rounds as `Memory.train` does, at every rank; afterwards every rank knows all.

        Ctrl-C at any rank, like the time limit of rank 0, ends all after the same round.
        """
        self.agreed_plan()
        with self._deferred_interrupt():
            info = super().train(
                max_rounds=max_rounds, tol=tol, max_seconds=max_seconds, on_round=on_round
            )
        self.share_numbers()
        return info

    # What ranks agree on

    def agreed_plan(self) -> Plan:
        """Return the plan, derived anew at all ranks if a change came to one."""
        stale = gather_rows(self.comm, np.array([float(self.state.is_stale)]))
        if stale.any() and not stale.all():
            self.state._touch()
        return self.state.plan

    def _now(self) -> float:
        return float(self.comm.bcast(super()._now()))

    def _any(self, is_so: bool) -> bool:
        return bool(np.any(gather_rows(self.comm, np.array([[float(is_so)]]))))

    def _first_chunk(self) -> int:
        return int(self.comm.bcast(super()._first_chunk()))

    @contextmanager
    def _deferred_interrupt(self) -> Iterator[None]:
        """Note Ctrl-C, for all ranks to stop where all see it."""
        self._is_interrupted = False
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def note(number: int, frame: Any) -> None:
            self._is_interrupted = True

        before = signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    # Rounds

    def _draw_heard(self, n: int) -> NDArray[np.uint8]:
        heard = super()._draw_heard(n)
        is_mine = self._need_part().is_mine
        return np.ascontiguousarray(heard[:, is_mine]) if heard.shape[1] else heard

    def _loop(self, job: Any) -> None:
        part, done = self._need_part(), 0
        while done < len(job.log) and not job.record.progress[3]:
            self._round(part, job)
            done = job.record.progress[0]
        ours = job.log[:done]
        each = gather_rows(self.comm, ours[None, :, :4])
        ours[:, :2] = each[:, :, :2].max(axis=0)
        ours[:, 2:4] = each[:, :, 2:4].sum(axis=0)
        if self._any(self._is_interrupted):
            raise KeyboardInterrupt

    def _round(self, part: Part, job: Any) -> None:
        plan, record = part.plan, job.record
        done = record.progress[0]
        arrays = plan.rows, part.agents, part.ends, plan.work, record, self.state.age + done
        is_heavy = record.last_looks >= job.heavy if done else len(plan.row_order) >= job.heavy
        solve = self._steps_threaded if is_heavy else compiled.local_steps
        looks = solve(part.border, *arrays)
        part.halo.start()
        looks += solve(part.inner, *arrays)
        part.halo.finish()
        record.last_looks = looks
        compiled.carry(part.agents, part.ends, job.past, record)
        if compiled.is_check_due(job.past, record):
            self._check(part, job.past, self.state.age + done + 1)
        compiled.count_round(record)
        if compiled.may_look(record):
            self.comm.Allreduce(job.log[done, :2], self._worst, self._max)
            is_due, is_calm = compiled.is_look_due(*self._worst.tolist(), record)
            if is_due:
                found = np.array(self.certificates(), np.float64).reshape(-1, 2)
                compiled.conclude(found, plan.sets, record, is_calm)

    def _steps_threaded(
        self, agents: Slots, rows: Any, record: Any, ends: Any, _: Any, job: Any, age: int
    ) -> int:
        """Take the local steps of some agents, dealt to threads largest first."""
        plan = self._need_part().plan
        order = agents[np.argsort(-plan.n_rows[agents], kind="stable")]
        deals = np.array_split(order, min(len(order), 8 * self._threads) or 1)
        with ThreadPoolExecutor(self._threads) as pool:
            each = pool.map(
                lambda some: compiled.local_steps(
                    some, rows, record, ends, plan.make_work(), job, age
                ),
                deals,
            )
            return sum(each)

    def _check(self, part: Part, past: Any, age: int) -> None:
        """Measure here, add up everywhere, decide and apply alike: see `rounds.agreement`."""
        plan, agents, ends = part.plan, part.agents, part.ends
        has_products = bool(compiled.is_whole(past, age))
        if has_products:
            compiled.keep_estimates(agents, past)
        mine = compiled.measure_nodes(part.nodes, plan.sets, ends, past, has_products)
        shown = np.empty((len(part.node_order), mine.shape[1]))
        shown[part.node_order] = gather_rows(self.comm, mine)
        has_leapt = False
        for s, members in enumerate(plan.parts):
            begin, end = part.set_node[s : s + 2]
            if begin == end:
                continue
            found = total(shown[begin:end] if has_products else shown[begin:end, :N_SHOWN])
            first = members[0]
            level = self.state.tables.agents["level"][first]
            decision = decide(level, found, float(plan.start[first, 0]), age)
            if decision.leap:
                compiled.apply_leap(s, np.array(decision.leap), plan.sets, past, agents, ends)
                has_leapt = True
            self.state.iterates.set_level(members, np.array(decision.level))
        compiled.revise(age, agents, ends)
        compiled.renew(plan.rows, agents, ends, past, has_leapt)

    # The certificate, and what every rank knows in the end

    def certificates(self) -> list[Certificate]:
        """Certify every set of agents, at every rank alike."""
        return self.certify_plan(self.state.plan)

    def train_sets(self, plan: Plan, tol: float, max_rounds: int) -> Floats:
        """Run rounds until every set is certified, as `Memory.train_sets` does."""
        ended, left, some = np.zeros((len(plan.parts), 4)), np.arange(len(plan.parts)), plan
        done, next_look = 0, compiled.next_look_apart(0) if self.state.age == 0 else 0
        while len(left):
            n = min(next_look, max_rounds) - done
            self.run_plan(some, n)
            done += n
            next_look = compiled.next_look_apart(done)
            found = self.certify_plan(some)
            gap = np.array([
                compiled.gap_apart(*one, box) for one, box in zip(found, some.boxes, strict=True)
            ])  # fmt: skip
            is_good = gap <= tol
            is_over = is_good | (done >= max_rounds)
            objective = np.array([one.objective for one in found])
            rounds = np.full(len(found), float(done))
            ended[left[is_over]] = np.stack([rounds, objective, gap, is_good], axis=1)[is_over]
            if is_over.any():
                left = left[~is_over]
                some = plan.only(left)
        self.share_numbers()
        return ended

    def certify_plan(self, plan: Plan) -> list[Certificate]:
        """Certify the sets in a plan, at every rank alike."""
        part = self._need_part(plan)
        self._share_estimates(part)
        return certify_sets(self.comm, plan, part.own, part.order, part.agents)

    def run_plan(self, plan: Plan, n: int) -> None:
        """Run `n` rounds of the sets in a plan; nobody looks at a certificate meanwhile."""
        part, job = self._need_part(plan), self._plain_job(n)
        for _ in range(n):
            self._round(part, job)
        self.state.age += n

    def _share_estimates(self, part: Part) -> None:
        estimate = self.state.tables.agents.open("estimate")
        estimate[part.order] = gather_rows(self.comm, estimate[part.own])

    def share_numbers(self) -> None:
        """Let every rank know every x and z, so that the next change finds them everywhere."""
        part = self._need_part()
        self._share_estimates(part)
        ends = self.state.tables.ends
        rank = self.state.ranks(ends["owner"][part.plan.end_order])
        states = ends.open("state")
        mine = part.plan.end_order[rank == self.comm.rank]
        order = part.plan.end_order[np.argsort(rank, kind="stable")]
        states[order] = gather_rows(self.comm, states[mine])

    def share_all(self) -> None:
        """Let every rank know every number of agents and link ends, as a file holds them."""
        tables, past = self.state.tables, self.state.snapshots.arrays
        for table, columns, name in (
            (tables.agents, ITERATES, "x"), (tables.ends, ("penalty", "state", "residual"), "z")
        ):  # fmt: skip
            used = table.used
            rank = self.state.ranks(used if name == "x" else table["owner"][used])
            own, order = used[rank == self.comm.rank], used[np.argsort(rank, kind="stable")]
            for column in columns:
                values = table.open(column)
                values[order] = gather_rows(self.comm, values[own])
            for values in () if past is None else past[name]:
                values[order] = gather_rows(self.comm, values[own])

    def _need_part(self, plan: Plan | None = None) -> Part:
        """Return this rank's part of a plan, by default of all; derived anew after a change."""
        plan = plan or self.state.plan
        if self._part is None or self._part.plan is not plan:
            if self._part is not None:
                self._part.halo.free()
            self._part = derive_part(self.state, plan)
        return self._part


def derive_part(state: Share, plan: Plan) -> Part:
    """Derive what follows from a plan for this rank."""
    agents, ends, here = state.tables.agents, state.tables.ends, state.comm.rank
    rank = np.full(agents.capacity, -1, np.int64)
    rank[plan.used] = state.ranks(plan.used)
    a = ends["owner"][plan.firsts]
    b = ends["owner"][ends["twin"][plan.firsts]]
    borders = find_borders(rank, a, b, here)
    own = plan.used[rank[plan.used] == here]
    border = np.unique(np.concatenate([np.zeros(0, np.int64), *borders.told.values()]))
    is_mine = (rank[a] == here) | (rank[b] == here)
    nodes, set_node = _nodes_of_sets(plan)
    node_rank = state.rank_of_node[nodes]
    return Part(
        plan, own, border, np.setdiff1d(own, border),
        plan.used[np.argsort(rank[plan.used], kind="stable")], is_mine,
        *plan.share(own, plan.firsts[is_mine]),
        np.flatnonzero(node_rank == here), np.argsort(node_rank, kind="stable"), set_node,
        Halo(state.comm, borders, agents.open("estimate"), agents.open("norm")),
    )  # fmt: skip


def _nodes_of_sets(plan: Plan) -> tuple[Slots, Slots]:
    """The nodes that have link ends in a set, set after set, and where each set begins."""
    found = [np.unique(plan.ends_of(agents)[1]) for agents in plan.parts]
    starts = np.cumsum([0, *(len(nodes) for nodes in found)])
    return np.concatenate([np.zeros(0, np.int64), *found]), starts
