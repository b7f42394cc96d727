"""The paper's own iterations, transcribed naively, against ours with the paper's settings."""

import itertools

import numpy as np
import pytest

from dtsvm import Network, Session

PATTERNS = np.array(list(itertools.product((0, 1, 2), repeat=3)))  # at 0, at the top, between


def box_qp(Q, c, top):
    """argmin ½λᵀQλ − cᵀλ over 0 ≤ λ ≤ top for three rows: try every set of active bounds."""
    is_free = (PATTERNS == 2)[:, :, None]
    system = np.where(is_free, Q, np.eye(3))
    right = np.where(PATTERNS == 2, c, np.where(PATTERNS == 1, top, 0.0))
    lam = np.linalg.solve(system, right[:, :, None])[:, :, 0]
    slope = lam @ Q - c
    off = np.maximum(np.maximum(-lam, lam - top), 0).max(axis=1)
    off += np.where(PATTERNS == 0, np.maximum(-slope, 0), 0).max(axis=1)
    off += np.where(PATTERNS == 1, np.maximum(slope, 0), 0).max(axis=1)
    return lam[off.argmin()]


class Proposition1:
    """Equations (8)-(13): summed multipliers α_vt and β_vt, U and f as printed."""

    def __init__(self, network, blocks, n_tasks, p, C, eps1, eps2, eta1, eta2):
        self.net, self.blocks, self.T, self.p1 = network, blocks, n_tasks, p + 1
        self.V, self.C, self.eta1, self.eta2 = network.n_nodes, C, eta1, eta2
        hat = np.eye(p + 1)
        hat[p, p] = 0.0
        zero = np.zeros((p + 1, p + 1))
        eye = np.eye(p + 1)
        self.M1 = np.block([[hat, zero], [zero, zero]]) * eps1
        self.M2 = np.block([[zero, zero], [zero, hat]]) * eps2
        self.I0 = np.hstack([eye, zero])
        self.II = np.hstack([eye, eye])
        keys = [(v, t) for v in range(self.V) for t in range(n_tasks)]
        self.r = {k: np.zeros(2 * p + 2) for k in keys}
        self.alpha = {k: np.zeros(p + 1) for k in keys}
        self.beta = {k: np.zeros(2 * p + 2) for k in keys}

    def U(self, v):
        d = len(self.net.neighbours(v))
        return (
            self.M1
            + self.M2
            + 2 * self.eta1 * (self.T - 1) * self.I0.T @ self.I0
            + 2 * self.eta2 * d * np.eye(2 * self.p1)
        )

    def f(self, v, t):
        r = self.r
        out = 2 * self.I0.T @ self.alpha[v, t] + 2 * self.beta[v, t]
        for s in range(self.T):
            if s != t:
                out -= self.eta1 * self.I0.T @ self.I0 @ (r[v, t] + r[v, s])
        for u in self.net.neighbours(v):
            out -= self.eta2 * (r[v, t] + r[u, t])
        return out

    def round(self):
        new = {}
        for v, t in self.r:
            X, y = self.blocks[v, t]
            Xt = np.column_stack([X, np.ones(len(X))])
            G = np.diag(y) @ Xt @ self.II
            inverse = np.linalg.inv(self.U(v))
            f = self.f(v, t)
            lam = box_qp(G @ inverse @ G.T, 1 + G @ inverse @ f, self.V * self.T * self.C)
            new[v, t] = inverse @ (G.T @ lam - f)
        self.r = new
        for v, t in new:
            for s in range(self.T):
                if s != t:
                    self.alpha[v, t] += self.eta1 / 2 * self.I0 @ (new[v, t] - new[v, s])
            for u in self.net.neighbours(v):
                self.beta[v, t] += self.eta2 / 2 * (new[v, t] - new[u, t])


class Forero:
    """MoM-DSVM of Forero, Cano and Giannakis (2010), one task."""

    def __init__(self, network, blocks, p, C, eta):
        self.net, self.blocks, self.eta, self.top = network, blocks, eta, network.n_nodes * C
        self.Pi = np.zeros((p + 1, p + 1))
        self.Pi[p, p] = 1.0
        self.r = {v: np.zeros(p + 1) for v in network.nodes}
        self.alpha = {v: np.zeros(p + 1) for v in network.nodes}

    def round(self):
        new = {}
        for v in self.net.nodes:
            around = self.net.neighbours(v)
            U = (1 + 2 * self.eta * len(around)) * np.eye(len(self.Pi)) - self.Pi
            f = 2 * self.alpha[v] - self.eta * sum(self.r[v] + self.r[u] for u in around)
            X, y = self.blocks[v]
            G = np.diag(y) @ np.column_stack([X, np.ones(len(X))])
            inverse = np.linalg.inv(U)
            lam = box_qp(G @ inverse @ G.T, 1 + G @ inverse @ f, self.top)
            new[v] = inverse @ (G.T @ lam - f)
        self.r = new
        for v in self.net.nodes:
            self.alpha[v] += self.eta / 2 * sum(new[v] - new[u] for u in self.net.neighbours(v))


def blocks_for(rng, network, n_tasks, p):
    out = {}
    for v in network.nodes:
        for t in range(n_tasks):
            X = rng.normal(size=(3, p))
            out[v, t] = X, np.where(X[:, 0] + rng.normal(size=3) > 0, 1.0, -1.0)
    return out


@pytest.mark.parametrize("network", [Network.ring(4), Network.star(4), Network.complete(3)])
@pytest.mark.parametrize("n_tasks", [1, 2, 3])
def test_fifty_rounds_equal_proposition_1(network, n_tasks, rng):
    p, C, eps1, eps2, eta1, eta2 = 2, 0.05, 1.0, 3.0, 0.7, 1.3
    blocks = blocks_for(rng, network, n_tasks, p)
    paper = Proposition1(network, blocks, n_tasks, p, C, eps1, eps2, eta1, eta2)
    live = Session(
        network, C=C, common_reg=eps1, specific_reg=eps2, task_penalty=eta1, node_penalty=eta2,
        relaxation=0.5, local="exact",
    )  # fmt: skip
    for (v, t), (X, y) in blocks.items():
        live.enter(v, t, X, y)
    if n_tasks > 1:
        live.couple(*range(n_tasks))
    estimate = live._members.state.tables.agents["estimate"]
    for _ in range(50):
        paper.round()
        live.step()
        for (v, t), r in paper.r.items():
            ours = estimate[live._members.agent(v, t)].ravel()
            np.testing.assert_allclose(ours, r, atol=1e-10, rtol=0)


@pytest.mark.parametrize("network", [Network.ring(5), Network.line(4)])
def test_fifty_rounds_equal_forero(network, rng):
    p, C, eta = 2, 0.1, 0.8
    blocks = {v: block for (v, _), block in blocks_for(rng, network, 1, p).items()}
    theirs = Forero(network, blocks, p, C, eta)
    live = Session(network, C=C, common_reg=2, specific_reg=2, node_penalty=2 * eta,
                   relaxation=0.5, local="exact")  # fmt: skip
    for v, (X, y) in blocks.items():
        live.enter(v, "only", X, y)
    for _ in range(50):
        theirs.round()
        live.step()
        for v in network.nodes:
            clf = live.classifier("only", v)
            ours = np.append(clf.coef, clf.intercept)
            np.testing.assert_allclose(ours, theirs.r[v], atol=1e-10, rtol=0)


def test_summed_multipliers_keep_a_ghost_of_the_departed_and_edge_states_do_not(rng):
    """The paper's α and β, carried on after a node left, settle away from who remains."""
    network, p, C = Network.complete(6), 3, 0.05
    blocks = blocks_for(rng, network, 2, p)
    for t in range(2):  # the node that leaves has something else to say
        X, y = blocks[5, t]
        blocks[5, t] = X * 3, -y
    paper = Proposition1(network, blocks, 2, p, C, 1.0, 1.0, 1.0, 1.0)
    live = Session(network, C=C, task_penalty=1.0, node_penalty=1.0)
    for (v, t), (X, y) in blocks.items():
        live.enter(v, t, X, y)
    live.couple(0, 1)
    for _ in range(40):
        paper.round()
    live.run()

    rest = Network.complete(5)
    paper.net, paper.V = rest, 5
    for kept in (paper.r, paper.alpha, paper.beta, paper.blocks):
        for t in range(2):
            kept.pop((5, t), None)
    for _ in range(400):
        paper.round()
    live.leave(node=5)
    live.run(tol=1e-7)

    cold = Session(rest, C=C)
    for (v, t), (X, y) in blocks.items():
        if v != 5:
            cold.enter(v, t, X, y)
    cold.couple(0, 1)
    cold.run(tol=1e-7)
    truth = np.concatenate([cold.classifier(t).coef for t in range(2)])
    ghost = np.concatenate([(paper.II @ paper.r[0, t])[:-1] for t in range(2)])
    ours = np.concatenate([live.classifier(t, 0).coef for t in range(2)])
    assert np.linalg.norm(ghost - truth) > 0.05 * np.linalg.norm(truth)
    assert np.linalg.norm(ours - truth) < 1e-4 * np.linalg.norm(truth)
