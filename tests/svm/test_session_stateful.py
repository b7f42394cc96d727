"""Whatever happens in whatever order, all end at the pooled optimum of who is present."""

import contextlib
import itertools

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dtsvm import Session
from dtsvm.errors import NetworkError
from reference import solve_pooled
from worlds import World, examples, random_network, rows

TASKS = ("a", "b", "c")


class LiveTraining(RuleBasedStateMachine):
    """A session, and beside it the plain list of who holds what."""

    @initialize(seed=st.integers(0, 2**32 - 1), n_nodes=st.integers(2, 5))
    def begin(self, seed, n_nodes):
        self.rng = np.random.default_rng(seed)
        network = random_network(self.rng, n_nodes)
        self.settings = {"C": 10 ** self.rng.uniform(-2, 0), "common_reg": 1.0, "specific_reg": 2.0}
        self.live = Session(network, **self.settings, relays="auto")
        self.world = World(network, self.settings, n_features=2)
        self.groups = {task: {task} for task in TASKS}
        self.directions = {task: self.rng.normal(size=2) for task in TASKS}
        self.fresh = itertools.count(n_nodes)
        self.n_events = 0
        for node in network.nodes:
            self._enter(node, "a", 6)

    def _pick(self, options):
        options = list(options)
        return options[self.rng.integers(len(options))]

    def _block(self, task, n):
        return rows(self.rng, n, 2, self.directions[task], one_class=self.rng.random() < 0.2)

    def _enter(self, node, task, n, **more):
        X, y = self._block(task, n)
        self.live.enter(node, task, X, y, **more)
        self.world.blocks[node, task] = (X, y)

    def _tasks(self):
        return sorted({task for _, task in self.world.blocks})

    @rule(task=st.sampled_from(TASKS), n=st.integers(0, 7))
    def enter(self, task, n):
        free = [v for v in self.live.nodes if (v, task) not in self.world.blocks]
        if free:
            self._enter(self._pick(free), task, n)
            self._couple_again(task)
            self.n_events += 1

    def _couple_again(self, task):
        """A task that comes back is alone until it is coupled."""
        if sum(t == task for _, t in self.world.blocks) == 1:
            for other in self.groups[task] - {task}:
                self.groups[other] = self.groups[other] - {task}
            self.groups[task] = {task}

    @rule(task=st.sampled_from(TASKS), n=st.integers(1, 7))
    def join_with_a_new_node(self, task, n):
        node = next(self.fresh)
        if len(self.live.nodes) < 8:
            links = {self._pick(self.live.nodes) for _ in range(2)}
            self._enter(node, task, n, links=sorted(links))
            self._couple_again(task)
            self.n_events += 1

    @rule(n=st.integers(1, 6))
    def add_rows(self, n):
        node, task = self._pick(self.world.blocks)
        X, y = self._block(task, n)
        self.live.add_data(node, task, X, y)
        before = self.world.blocks[node, task]
        self.world.blocks[node, task] = tuple(
            np.concatenate(p) for p in zip(before, (X, y), strict=True)
        )
        self.n_events += 1

    @rule(share=st.floats(0, 1))
    def drop_rows(self, share):
        node, task = self._pick(self.world.blocks)
        X, y = self.world.blocks[node, task]
        mask = self.rng.random(len(y)) < share
        self.live.drop_data(node, task, mask=mask)
        self.world.blocks[node, task] = X[~mask], y[~mask]
        self.n_events += 1

    @precondition(lambda self: len(self.world.blocks) > 1)
    @rule()
    def one_agent_leaves(self):
        node, task = self._pick(self.world.blocks)
        self.live.leave(node=node, task=task)
        del self.world.blocks[node, task]
        self.n_events += 1

    @precondition(lambda self: len(self._tasks()) > 1)
    @rule()
    def a_task_leaves(self):
        task = self._pick(self._tasks())
        self.live.leave(task=task)
        self.world.blocks = {k: b for k, b in self.world.blocks.items() if k[1] != task}
        assert self.live.classifier(task).is_finished
        self.n_events += 1

    @precondition(lambda self: len(self.live.nodes) > 1)
    @rule()
    def a_node_leaves(self):
        node = self._pick(self.live.nodes)
        left = {k: b for k, b in self.world.blocks.items() if k[0] != node}
        if not left:
            return
        try:
            self.live.leave(node=node)
        except NetworkError:
            return
        self.world.blocks = left
        self.n_events += 1

    @rule(tasks=st.sets(st.sampled_from(TASKS), min_size=2))
    def couple(self, tasks):
        here = [task for task in sorted(tasks) if task in self._tasks()]
        if len(here) > 1:
            self.live.couple(*here)
            merged = set().union(*(self.groups[task] for task in here))
            for task in merged:
                self.groups[task] = merged
            self.n_events += 1

    @rule(task=st.sampled_from(TASKS))
    def decouple(self, task):
        if task in self._tasks():
            self.live.decouple(task)
            for other in self.groups[task] - {task}:
                self.groups[other] = self.groups[other] - {task}
            self.groups[task] = {task}
            self.n_events += 1

    @rule()
    def link_or_unlink(self):
        u, v = self._pick(self.live.nodes), self._pick(self.live.nodes)
        if u == v:
            return
        if v in self.live.network.neighbours(u):
            with contextlib.suppress(NetworkError):
                self.live.unlink(u, v)
        else:
            self.live.link(u, v)
        self.n_events += 1

    @rule(C=st.floats(0.02, 1), reg=st.floats(0.3, 3))
    def change_settings(self, C, reg):
        self.live.set(C=C, specific_reg=reg)
        self.settings.update(C=C, specific_reg=reg)
        self.n_events += 1

    @rule(n=st.integers(1, 20))
    def train_a_little(self, n):
        self.live.run(rounds=n)

    def teardown(self):
        if not hasattr(self, "live"):
            return
        while self.n_events < 10:
            self._something_happens()
        info = self.live.run(tol=1e-9)
        assert info.status == "converged"
        tasks = self._tasks()
        for group in {frozenset(self.groups[t] & set(tasks)) for t in tasks}:
            self._check_group(sorted(group))

    def _something_happens(self):
        """Top a short sequence up to ten events."""
        task, n = self._pick(TASKS), int(self.rng.integers(1, 7))
        self._pick(
            [
                lambda: self.enter(task, n),
                lambda: self.join_with_a_new_node(task, n),
                lambda: self.add_rows(n),
                lambda: self.drop_rows(self.rng.random()),
                self.link_or_unlink,
                self.a_node_leaves,
                lambda: self.couple(set(TASKS)),
                lambda: self.decouple(task),
            ]
        )()

    def _check_group(self, group):
        X, y, index, share = self.world.pooled_rows(group)
        best = solve_pooled(X, y, index, share, **self.settings)
        if np.linalg.norm(best.decision[:, :-1]) < 0.1:
            self.live.run(tol=1e-11)  # weights near zero hardly show in the objective
        for t, task in enumerate(group):
            for node in [v for v, s in self.world.blocks if s == task]:
                ours = self.live.classifier(task, node).coef
                truth = best.decision[t, :-1]
                size = max(np.linalg.norm(best.decision[:, :-1]), 1e-2)
                assert np.linalg.norm(ours - truth) <= 1e-3 * size

    @invariant()
    def the_session_knows_who_is_here(self):
        if hasattr(self, "live"):
            assert set(self.live.tasks) == set(self._tasks())


LiveTraining.TestCase.settings = settings(examples(100), stateful_step_count=16)
TestLiveTraining = LiveTraining.TestCase
