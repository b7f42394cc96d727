"""Several classes and weights at agents: where pooled scikit-learn and memory end."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from hypothesis import given
from hypothesis import strategies as st
from meetings import Carrier, build, make_blocks, make_session
from scipy.sparse import csr_array
from sites import free_ports, status
from sklearn.svm import SVC
from test_preparing import FEATURES, SITES, answers, three_sites

from dtsvm import DTSVM, Network, Session
from dtsvm.data.sample import read_site
from dtsvm.errors import DataError
from dtsvm.prepare import Preparation
from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.agreed import Agreed
from dtsvm.runtime.agent.node.lanes import lane_names, make_lanes
from dtsvm.runtime.agent.node.node import Node
from dtsvm.runtime.agent.site.config import read_config
from dtsvm.runtime.agent.site.folders import make_site
from dtsvm.runtime.agent.site.rows import SiteRows
from dtsvm.runtime.agent.site.site import Site
from dtsvm.svm.model_file import read_model, save_model
from dtsvm.ui import main
from reference import solve_kinds
from worlds import examples

MARK = {"north": ",", "south": ";", "west": "\t", "new": ","}
TASKS = {"one": ("u", "v", "w"), "two": ("u", "w", "x"), "pair": ("u", "v")}


def make_rows(rng, names, tasks, n=30, p=4):
    """Rows by (node, task); the last node lacks one label of every task."""
    found = {}
    for task in tasks:
        for name in names:
            labels = TASKS[task] if name != names[-1] else TASKS[task][:-1]
            y = rng.choice(labels, n)
            shift = np.array([ord(label) % 3 for label in y])[:, None]
            found[name, task] = rng.normal(size=(n, p)) + shift * rng.normal(size=p), y
    return found


def make_nodes(network, rows, settings, weight=None, by_label=()):
    nodes = []
    for name in network.nodes:
        node = Node(name, list(network.neighbours(name)), 4, Settings(**settings), 7, 1)
        tasks = [task for who, task in rows if who == name]
        for task in tasks:
            X, y = rows[name, task]
            names = lane_names(task, TASKS[task], by_label=task in by_label)
            own = None if weight is None else weight[name, task]
            node.enter(task, X, make_lanes(names, TASKS[task], y), TASKS[task], own)
        if len(tasks) > 1:
            node.couple(tasks)
        nodes.append(node)
    return nodes


@pytest.mark.parametrize("is_weighted", [False, True])
def test_agents_with_several_classes_end_where_a_session_ends(is_weighted):
    names, settings = list("abc"), {"C": 0.1, "tol": 1e-9}
    rng = np.random.default_rng(0)
    network, rows = Network.ring(names), make_rows(rng, names, ["one", "two"])
    weight = {k: rng.uniform(0.2, 3.0, len(y)) for k, (_, y) in rows.items()}
    live = Session(network, **settings)
    for (name, task), (X, y) in rows.items():
        own = weight[name, task] if is_weighted else None
        live.enter(name, task, X, y, labels=TASKS[task], sample_weight=own)
    live.couple("one", "two")
    live.run()
    nodes = make_nodes(network, rows, settings, weight if is_weighted else None)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    for task in ("one", "two"):
        right = live.classifier(task)
        whole = np.column_stack([right.coef_, right.intercept_])
        for node in nodes:
            mine = [node.certified(lane).sum(axis=0) for lane in node.lanes(task)]
            np.testing.assert_allclose(mine, whole, atol=2e-5)
    assert nodes[0].status()["tasks"] == {"one": 30, "two": 30}
    X = nodes[0].state.tables.matrix.X
    assert len(X) < 3 * 60  # all lanes share one copy of the rows


def test_a_task_that_leaves_takes_all_its_lanes_along():
    names = list("ab")
    rows = make_rows(np.random.default_rng(1), names, ["one", "two"])
    nodes = make_nodes(Network.line(names), rows, {"C": 0.1, "tol": 1e-6})
    carrier = Carrier(nodes)
    carrier.meet()
    for _ in range(5):
        carrier.tick()
    for node in nodes:
        node.leave_task("one")
    carrier.run_until_settled()
    assert all(node.tasks == ["two"] for node in nodes)
    assert not any(node.refused for node in nodes)


@pytest.mark.parametrize("theirs", [("u", "v"), ("u", "v", "x"), ("a", "b", "c")])
def test_a_neighbour_with_other_classes_is_refused(theirs, caplog):
    one, other = (Node(name, ["a", "b"], 4, Settings(), 7, 1) for name in "ab")
    for node, classes in ((one, TASKS["one"]), (other, theirs)):
        node.enter("one", None, make_lanes(lane_names("one", classes), classes, []), classes)
    assert not one.take("b", other.hello(0.0)["a"], 0.0)
    assert "it has other labels for task 'one'" in caplog.text


def with_outcome(name):
    """A site's own file with two columns more: an outcome of three kinds, and a weight."""
    text = read_site(name).decode("utf-8-sig")
    lines = list(csv.reader(io.StringIO(text), delimiter=MARK[name]))
    rng = np.random.default_rng(len(name))
    place = lines[0].index("readmitted")
    out = [[*lines[0], "outcome", "stay"]]
    for line in lines[1:]:
        is_worse = name != "west" and rng.random() < 0.4
        outcome = ("ward" if is_worse else "home") if line[place] == "no" else "return"
        stay = f"{rng.uniform(0.5, 2.0):.3f}"
        out.append([*line, outcome, stay.replace(".", ",") if name == "south" else stay])
    found = io.StringIO()
    csv.writer(found, delimiter=MARK[name]).writerows(out)
    return found.getvalue()


def pooled_decisions(folder, balanced):
    """One SVC for each outcome on the pooled rows, prepared as one table."""
    tables = []
    for name in (*SITES, "new"):
        style = {"south": {"decimal": ",", "thousands": "."}, "west": {"na_values": "."}}
        text = io.StringIO(with_outcome(name))
        table = pd.read_csv(text, sep=MARK[name], **style.get(name, {}))
        if name == "west":
            table["smoker"] = table["smoker"].map({1: "yes", 0: "no"})
        tables.append(table.rename(columns=lambda c: c.split(" (")[0]))
    rows, new = pd.concat(tables[:3], ignore_index=True), tables[3]
    made = Preparation().fit(rows[FEATURES])
    X, y = made.transform(rows[FEATURES]), rows["outcome"]
    classes, counts = np.unique(y, return_counts=True)
    weight = rows["stay"].to_numpy()
    if balanced:
        weight = weight * y.map(dict(zip(classes, len(y) / (3 * counts), strict=True))).to_numpy()
    fits = [SVC(kernel="linear", C=1.0, tol=1e-9).fit(X, y == k, weight) for k in classes]
    values = np.column_stack([one.decision_function(made.transform(new[FEATURES])) for one in fits])
    return classes, values


@pytest.mark.slow
def test_three_messy_files_of_three_classes_with_weights_equal_pooled_scikit_learn(
    tmp_path, monkeypatch
):
    site = tmp_path / "site"
    three_sites(site)
    monkeypatch.chdir(tmp_path)
    for name in SITES:
        (site / name / "rows.csv").write_text(with_outcome(name))
        toml = site / name / "node.toml"
        text = toml.read_text().replace('labels = ["no", "yes"]', 'weight = "stay"')
        text = text.replace('label = "readmitted"', 'label = "outcome"')
        text = text.replace("tol = 1e-06", "tol = 1e-08")
        toml.write_text('class_weight = "balanced"\n' + text)
    (tmp_path / "new.csv").write_text(with_outcome("new"))
    classes, values = pooled_decisions(tmp_path, balanced=True)
    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        agents.settle(SITES)
        agents.wait_for(lambda: all((site / name / "model.json").exists() for name in SITES))
        assert status(site, "west")["tasks"] == {"all": 80}
    for name in SITES:
        path = site / name / "model.json"
        one = read_model(path).tasks[0]
        assert one.classes == tuple(classes)
        found = answers(path)
        assert found["label"].tolist() == classes[values.argmax(axis=1)].tolist()
        print(f"{name}: decisions {np.abs(found['decision'] - values.max(axis=1)).max():.1e} apart")
        np.testing.assert_allclose(found["decision"], values.max(axis=1), atol=1e-3)
    for command in (["inspect", str(path)], ["evaluate", str(path), "new.csv", "--json"]):
        done = CliRunner().invoke(main, command)
        assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["tasks"][0]["labels"] == classes.tolist()


@pytest.mark.slow
def test_three_agents_say_how_likely_three_classes_are_and_how_good_they_are(tmp_path, monkeypatch):
    site = tmp_path / "site"
    three_sites(site)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text(with_outcome("new"))
    for name in SITES:
        (site / name / "rows.csv").write_text(with_outcome(name))
        toml = site / name / "node.toml"
        text = toml.read_text().replace('labels = ["no", "yes"]', "").replace("1e-06", "1e-03")
        text = text.replace('label = "readmitted"', 'label = "outcome"')
        toml.write_text("probability = true\nholdout = 0.25\n" + text)
    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        agents.settle(SITES)
        models = [site / name / "model.json" for name in SITES]
        agents.wait_for(lambda: all(m.exists() and read_model(m).tasks[0].sigmoid is not None
                                    for m in models))  # fmt: skip
        done = CliRunner().invoke(main, ["evaluate", str(site / "west" / "node.toml"), "--json"])
        assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["tasks"][0]["labels"] == ["home", "return", "ward"]
    assert np.sum(found["tasks"][0]["confusion"]) == found["rows"] > 80
    assert found["error"] < 0.5
    likely = answers(models[0])["probability"]
    assert likely.between(1 / 3, 1.0).mean() > 0.9
    np.testing.assert_array_equal(likely, answers(models[2])["probability"])


def sparse_rows(rng, n, p=12):
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.25)
    return X, np.where(X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")


def write_npz(path, X, y):
    rows = csr_array(X)
    np.savez(path, data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape, y=y)


def test_csr_rows_stay_csr_from_the_file_to_the_kernel_and_end_where_dense_ones_end(tmp_path):
    names, rng = ["a", "b", "c"], np.random.default_rng(3)
    network = Network.ring(names)
    task = {"data": "rows.npz", "label": "y", "labels": ["no", "yes"]}
    address = {n: f"127.0.0.1:{47101 + i}" for i, n in enumerate(names)}
    make_site(tmp_path / "site", network, address, {"one": task}, {"C": 0.1, "tol": 1e-8})
    live, nodes = Session(network, C=0.1, tol=1e-8), []
    for name in names:
        X, y = sparse_rows(rng, 40)
        write_npz(tmp_path / "site" / name / "rows.npz", X, y)
        live.enter(name, "one", X, y)
        config = read_config(tmp_path / "site" / name / "node.toml")
        site = Site(config, save_model)
        more, labels = sparse_rows(rng, 10)
        write_npz(tmp_path / "more.npz", more, labels)
        site.tell_rows({"file": str(tmp_path / "more.npz")})
        live.add_data(name, "one", more, labels)
        again = Site(config, save_model)
        assert again.node.n_rows("one") == 50
        assert again.node.state.tables.matrix.is_sparse
        nodes.append(again.node)
    live.run()
    carrier = Carrier(nodes)
    carrier.now = max(node.now for node in nodes)
    carrier.meet()
    carrier.run_until_settled()
    right = live.classifier("one")
    for node in nodes:
        whole = np.append(right.coef_[0], right.intercept_)
        np.testing.assert_allclose(node.certified("one").sum(axis=0), whole, atol=1e-4)


def test_a_mixed_bias_is_regularised_at_agents_as_in_memory():
    names = list("abcd")
    settings = {"C": 0.01, "tol": 1e-8, "bias": "mixed"}
    blocks = {
        (v, t): (3.7 * X + 0.9 * i, y)
        for i, ((v, t), (X, y)) in enumerate(make_blocks(names, ["one", "two"]).items())
    }
    network = Network.ring(names)
    nodes = build(network, blocks, settings)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    live = make_session(network, blocks, settings)
    live.run()
    exact = np.mean([(X**2).mean() for X, _ in blocks.values()])
    X, y = (np.concatenate(part) for part in zip(*blocks.values(), strict=True))
    task = np.concatenate([np.full(len(y), t == "two", int) for (_, t), (_, y) in blocks.items()])
    share, ones = np.array([0.5, 0.5]), np.ones(len(y))
    least, _ = solve_kinds(X, y, task, share, ones, Settings(**settings), exact)
    np.testing.assert_allclose(nodes[0].certifier.objective, least, rtol=1e-7)
    for node in nodes:
        plan = node.state.plan
        np.testing.assert_allclose(plan.reg[node.holding("one").slot, 2], 1.0 / exact, rtol=1e-12)
        for task in ("one", "two"):
            right = live.classifier(task)
            whole = np.append(right.coef_[0], right.intercept_)
            np.testing.assert_allclose(node.certified(task).sum(axis=0), whole, atol=1e-5)
    X, y = make_blocks(["a"], ["one"], n=30, seed=5)["a", "one"]
    nodes[0].add_rows("one", 20 * X, y)
    live.add_data("a", "one", 20 * X, y)
    live.run()
    for _ in range(3):
        carrier.tick()
    carrier.run_until_settled()
    whole = np.append(live.classifier("two").coef_[0], live.classifier("two").intercept_)
    np.testing.assert_allclose(nodes[2].certified("two").sum(axis=0), whole, atol=1e-5)


@examples(3)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["task", "common", "mixed"]), st.booleans())
def test_random_agents_of_several_classes_end_at_the_objective_of_memory(seed, bias, is_sparse):
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in range(int(rng.integers(2, 5)))]
    network = Network.named(["line", "complete", "star"][rng.integers(3)], names)
    chosen = {"C": 0.1, "tol": 1e-5, "bias": bias}
    classes = {t: tuple("uvwx"[: rng.integers(2, 5)]) for t in ("one", "two")[: rng.integers(1, 3)]}
    by_label = any(len(labels) > 2 for labels in classes.values())
    live, nodes = DTSVM(network, **chosen, max_rounds=100_000), []
    parts = []
    for name in names:
        node = Node(name, list(network.neighbours(name)), 3, Settings(**chosen), 7, 1)
        for task, labels in classes.items():
            n = int(rng.integers(6, 20))
            y, weight = rng.choice(labels, n), rng.choice([0.3, 1.0, 2.5], n)
            X = rng.normal(size=(n, 3)) + (y == "u")[:, None]
            X[rng.random(X.shape) < 0.4] = 0.0
            lanes = make_lanes(lane_names(task, labels, by_label=by_label), labels, y)
            node.enter(task, csr_array(X) if is_sparse else X, lanes, labels, weight)
            parts.append((X, y, np.full(n, task), np.full(n, name), weight))
        if len(classes) > 1:
            node.couple(list(classes))
        nodes.append(node)
    X, y, task, where, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
    live.fit(csr_array(X) if is_sparse else X, y, task=task, node=where, sample_weight=weight)
    carrier = Carrier(nodes)
    carrier.meet()
    carrier.run_until_settled()
    assert all(node.certifier.gap <= 1e-5 for node in nodes)
    np.testing.assert_allclose(nodes[0].certifier.objective, live.info_.objective, rtol=3e-5)


def test_a_label_that_was_not_agreed_on_is_refused_with_the_way_to_agree_on_it(tmp_path):
    network, names = Network.line(["a", "b"]), ["a", "b"]
    address = dict(zip(names, [f"127.0.0.1:{p}" for p in free_ports(2)], strict=True))
    task = {"data": "rows.csv", "label": "y"}
    make_site(tmp_path, network, address, {"one": task}, {"C": 0.1})
    for name in names:
        text = "".join(f"{i % 7},{'uv'[i % 2]}\n" for i in range(20))
        (tmp_path / name / "rows.csv").write_text("x,y\n" + text)
    (tmp_path / "more.csv").write_text("x,y\n3,w\n4,u\n")
    config = read_config(tmp_path / "a" / "node.toml")
    agreed = Agreed(None, {"one": ("u", "v")})
    rows = SiteRows(config, agreed)
    words = (
        r"Task 'one' has labels 'u' and 'v', got 'w'. If that is a label .* rows add FILE --anew'"
    )
    with pytest.raises(DataError, match=words):
        rows.read("one", tmp_path / "more.csv")
    assert rows.read("one", tmp_path / "more.csv", is_anew=True).y.tolist() == ["w", "u"]
