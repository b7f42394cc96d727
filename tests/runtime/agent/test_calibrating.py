"""Probabilities at agents: the sigmoids that memory fits, by sums over the network."""

import random

import numpy as np
import pytest
from meetings import Carrier
from sites import free_ports

from dtsvm import DTSVM, Network
from dtsvm.runtime.agent.node.calibrating import Calibrating, Unseen
from dtsvm.runtime.agent.site.config import read_config
from dtsvm.runtime.agent.site.folders import make_site
from dtsvm.runtime.agent.site.site import Site
from dtsvm.svm.model_file import load_model, save_model

NAMES = ["a", "b", "c"]


def make_rows(classes, n=60, seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, len(classes), n)
    centre = np.array([[1.0, 0.0, 0.5], [-1.0, 0.3, 0.0], [0.0, -1.2, 0.4]])
    X = centre[code] + 0.9 * rng.normal(size=(n, 3))
    return X, np.array(classes)[code], rng.uniform(0.5, 2.0, n)


def make_sites(folder, network, rows):
    task = {"data": "rows.npz", "label": "y", "weight": "w"}
    ports = dict(zip(NAMES, free_ports(3), strict=True))
    address = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
    make_site(folder, network, address, {"one": task}, {"C": 0.1, "tol": 1e-8})
    found = {}
    for name, (X, y, w) in rows.items():
        np.savez(folder / name / "rows.npz", X=X[:-9], y=y[:-9], w=w[:-9])
        np.savez(folder / "more.npz", X=X[-9:], y=y[-9:], w=w[-9:])
        toml = folder / name / "node.toml"
        toml.write_text("probability = true\n" + toml.read_text())
        found[name] = Site(read_config(toml), save_model)
        found[name].tell_rows({"file": str(folder / "more.npz")})
    return found


def talk(parts, most=4000, loss=0.0):
    chance = random.Random(0)
    for _ in range(most):
        for name, one in parts.items():
            one.step()
            for other, message in one.owed().items():
                if chance.random() >= loss:
                    parts[other].hear(name, message)
        if all(one.sigmoids is not None for one in parts.values()):
            return
    raise AssertionError("no sigmoids")


@pytest.mark.parametrize("classes", [("no", "yes"), ("u", "v", "w")])
def test_probabilities_of_agents_are_those_of_memory(tmp_path, classes):
    network = Network.line(NAMES)
    rows = {name: make_rows(classes, seed=i) for i, name in enumerate(NAMES)}
    sites = make_sites(tmp_path / "site", network, rows)
    nodes = [site.node for site in sites.values()]
    carrier = Carrier(nodes)
    carrier.now = max(node.now for node in nodes)
    carrier.meet()
    carrier.run_until_settled()
    parts = {
        name: Calibrating(
            name, site.node.network, site.node.roster, site.node.identity, unseen=site.unseen
        )
        for name, site in sites.items()
    }
    talk(parts, loss=0.3)
    X, y, w = (np.concatenate(part) for part in zip(*rows.values(), strict=True))
    where = {"node": np.repeat(NAMES, 60), "task": np.full(180, "one")}
    memory = DTSVM(network, C=0.1, tol=1e-8, probability=True)
    memory.fit(X, y, sample_weight=w, **where)
    test, _, _ = make_rows(classes, seed=9)
    expected = memory.predict_proba(test, task="one")
    np.testing.assert_allclose(nodes[0].certifier.objective, memory.info_.objective, rtol=1e-6)
    for name, site in sites.items():
        site.take_sigmoids(parts[name].sigmoids)
        found = load_model(tmp_path / "site" / name / "model.json")
        likely = found.predict_proba(test, task="one")
        print(f"{name}: probabilities {np.abs(likely - expected).max():.1e} apart")
        np.testing.assert_allclose(likely, expected, atol=1e-4)
        assert parts[name].n_lies == parts[name].refused == 0


class Liar(Calibrating):
    """Says that it has fewer rows than none."""

    def _take_rows(self):
        found = super()._take_rows()
        self._rows = (*self._rows[:3], -100.0 * np.ones_like(self._rows[3]))
        return found


def test_a_total_that_no_honest_nodes_have_gives_no_probabilities(tmp_path):
    network = Network.line(NAMES)
    rows = {name: make_rows(("no", "yes"), seed=i) for i, name in enumerate(NAMES)}
    sites = make_sites(tmp_path / "site", network, rows)
    carrier = Carrier([site.node for site in sites.values()])
    carrier.now = max(site.node.now for site in sites.values())
    carrier.meet()

    def unseen():
        ones = np.ones(20)
        return {"one": Unseen(ones, ones > 0, ones)}

    parts = {
        name: (Liar if name == "c" else Calibrating)(
            name, site.node.network, site.node.roster, site.node.identity, unseen=unseen
        )
        for name, site in sites.items()
    }
    talk(parts)
    assert np.isnan(parts["a"].sigmoids["one"]).all()
    assert parts["a"].n_lies == 1
