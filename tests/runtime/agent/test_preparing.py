"""Agents agree on columns and preparation: the same plan as pooled rows, whatever is lost."""

import io
import json
import random

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from forks import ForkedAgents
from sites import free_ports, status

from dtsvm.data import frame_records
from dtsvm.data.sample import read_site
from dtsvm.prepare import Preparation
from dtsvm.problem import Network
from dtsvm.runtime.agent.node import wire_pb2 as wire
from dtsvm.runtime.agent.node.agreed import Labelled
from dtsvm.runtime.agent.node.identity import Nameless
from dtsvm.runtime.agent.node.masks import encode
from dtsvm.runtime.agent.node.preparing import Preparing, is_preparing
from dtsvm.runtime.agent.node.timing import Timing
from dtsvm.runtime.agent.site.config import PrepareConfig
from dtsvm.runtime.agent.site.folders import make_site
from dtsvm.svm.model_file import read_model
from dtsvm.ui import main

NETWORKS = {
    "ring": Network.ring(["a", "b", "c", "d", "e"]),
    "line": Network.line(["c", "a", "e", "b", "d"]),
    "one": Network(["a"], []),
}


def table(seed, n=30):
    rng = np.random.default_rng(seed)
    age = rng.normal(60, 10, n).round(1)
    age[::6] = np.nan
    ward = rng.choice(["A", "B", f"only {seed}"], n).astype(object)
    return pd.DataFrame({"age": age, "dose": rng.normal(1e6, 10, n), "ward": ward}).sample(
        frac=1, axis=1, random_state=seed
    )


def meet(network, tables, **wishes):
    return {
        name: Preparing(
            name, 7, tuple(network.neighbours(name)), [frame_records(tables[name])], Nameless(),
            incarnation=1, **wishes,
        )
        for name in network.nodes
    }  # fmt: skip


def talk(nodes, network, rounds, loss=0.0, seed=0):
    chance = random.Random(seed)
    for _ in range(rounds):
        for name, one in nodes.items():
            one.step()
            for other in network.neighbours(name):
                if chance.random() >= loss:
                    nodes[other].hear(name, one.message(other))


@pytest.mark.parametrize("shape", NETWORKS)
@pytest.mark.parametrize("loss", [0.0, 0.4])
def test_all_agree_on_the_plan_of_the_pooled_rows(shape, loss):
    network = NETWORKS[shape]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, tables, min_count=3)
    talk(nodes, network, 120, loss)
    plans = [one.plan for one in nodes.values()]
    assert all(plan == plans[0] for plan in plans)
    first = sorted(network.nodes)[0]
    whole = pd.concat([tables[name][tables[first].columns] for name in network.nodes])
    pooled = Preparation(min_count=3).fit(whole).plan_
    assert plans[0].names == pooled.names
    for mine, theirs in zip(plans[0].features, pooled.features, strict=True):
        assert np.isclose(mine.mean, theirs.mean, rtol=1e-10)
        assert np.isclose(mine.scale, theirs.scale, rtol=1e-10)


def test_sparse_features_keep_their_mean_as_in_memory():
    network = NETWORKS["line"]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, tables, sparse=True)
    talk(nodes, network, 60)
    whole = pd.concat([tables[name][tables["a"].columns] for name in network.nodes])
    memory = Preparation(sparse=True).fit(whole)
    made = Preparation.from_plan(nodes["b"].plan, sparse=True)
    rows = made.transform(tables["c"])
    assert rows.format == "csr"
    assert abs(rows - memory.transform(tables["c"])).max() < 1e-9


def test_a_mismatch_is_named_everywhere_and_ends_when_it_is_mended():
    network = NETWORKS["line"]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, {**tables, "e": tables["e"].drop(columns="dose")})
    talk(nodes, network, 30)
    assert {one.trouble for one in nodes.values()} == {
        "Node e has no column 'dose'; a has it as a number. Add it, or let it be filled in with "
        'missing_columns = "impute" (--missing-columns impute).'
    }
    mended = Preparing("e", 7, tuple(network.neighbours("e")), [frame_records(tables["e"])],
                       Nameless(), incarnation=2)  # fmt: skip
    nodes["e"] = mended
    talk(nodes, network, 60)
    assert all(one.plan is not None and not one.trouble for one in nodes.values())


def test_a_node_without_rows_agrees_to_what_the_others_have():
    network = NETWORKS["line"]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, tables)
    nodes["a"] = Preparing("a", 7, tuple(network.neighbours("a")), [], Nameless(), incarnation=1)
    talk(nodes, network, 60)
    assert {one.plan.n_rows for one in nodes.values()} == {4 * 30}


def test_other_wishes_are_named():
    network = Network.line(["a", "b"])
    nodes = meet(network, {"a": table(0), "b": table(1)})
    nodes["b"] = meet(network, {"a": table(0), "b": table(1)}, min_count=4)["b"]
    talk(nodes, network, 10)
    assert nodes["a"].trouble == (
        "Node b has min_count = 4; a has 10. Write the same into every node.toml."
    )


def test_a_latecomer_takes_over_what_is_agreed():
    network = Network.line(["a", "b"])
    nodes = meet(network, {"a": table(0), "b": table(1)})
    talk(nodes, network, 20)
    late = Preparing("c", 7, ("b",), [frame_records(table(2))], Nameless(), incarnation=1)
    late.hear("b", nodes["b"].message("c"))
    nodes["b"].hear("c", late.message("b"))
    assert nodes["b"].owes("c")
    late.hear("b", nodes["b"].message("c"))
    assert late.plan == nodes["b"].plan


def labelled(name, labels, network, agreed=None, **more):
    counts = dict.fromkeys(labels, 5)
    return Preparing(name, 7, tuple(network.neighbours(name)), [], Nameless(), incarnation=1,
                     labels={"flu": Labelled(counts=counts)}, class_weight="balanced",
                     is_raw=True, agreed=agreed, **more)  # fmt: skip


def test_labels_and_their_counts_are_agreed_by_all_that_have_some():
    network = NETWORKS["line"]
    labels = {"a": "uv", "b": "vw", "c": "u", "d": "vwx", "e": ""}
    nodes = {name: labelled(name, labels[name], network) for name in network.nodes}
    talk(nodes, network, 60)
    for one in nodes.values():
        assert one.agreed.classes == {"flu": ("u", "v", "w", "x")}
        assert one.agreed.counts == {"flu": (10.0, 15.0, 10.0, 5.0)}
    late = labelled("z", "uy", network=Network.line(["z", "a"]))
    nodes["a"].hear("z", late.message("a"))
    late.hear("a", nodes["a"].message("z"))
    assert late.agreed is None
    assert "rows here have 'y', too. Agree anew with 'dtsvm tell NODE prepare'" in late.trouble


def test_labels_written_differently_are_named_everywhere():
    network = Network.line(["a", "b"])
    nodes = {"a": labelled("a", [0, 1], network), "b": labelled("b", ["no", "yes"], network)}
    talk(nodes, network, 20)
    assert {one.trouble for one in nodes.values()} == {
        "Node b has labels 'no', 'yes'; a has 0, 1. Write them alike."
    }


@pytest.mark.parametrize("label", [None, [1], 10**30, float("nan"), "x" * 300])
def test_what_is_no_label_is_refused(label):
    network = Network.line(["a", "b"])
    a, b = (labelled(name, "uv", network) for name in "ab")
    message = wire.Message.FromString(b.message("a"))
    said = json.loads(message.said_settings)
    words = json.loads(said["statements"][0]["said"])
    words["labels"]["flu"] = [None, ["u", label]]
    said["statements"][0]["said"] = json.dumps(words)
    message.said_settings = json.dumps(said)
    a.hear("b", message.SerializeToString())
    assert (a.refused, a.absent) == (1, ["b"])


def anew(name, network, frame, generation, incarnation=2):
    return Preparing(name, 7, tuple(network.neighbours(name)), [frame_records(frame)], Nameless(),
                     incarnation=incarnation, generation=generation)  # fmt: skip


@pytest.mark.parametrize("loss", [0.0, 0.4])
def test_all_agree_anew_when_one_does_and_who_was_away_takes_it_over(loss):
    network = NETWORKS["line"]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, tables)
    talk(nodes, network, 60, loss)
    away = nodes.pop("d")
    later = {name: table(i, n=40) for i, name in enumerate(network.nodes)}
    nodes["c"] = anew("c", network, later["c"], generation=1)
    there = Network.line(["c", "a", "e", "b"])
    for turn in range(120):
        for name, one in list(nodes.items()):
            one.step(is_late=turn > 40)
            for other in there.neighbours(name):
                nodes[other].hear(name, one.message(other))
                if nodes[other].called > nodes[other].generation:
                    nodes[other] = anew(other, network, later[other], nodes[other].called)
    assert {one.agreed.generation for one in nodes.values()} == {1}
    assert {one.plan.n_rows for one in nodes.values()} == {4 * 40}
    away.hear("b", nodes["b"].message("d"))
    assert away.called == 1
    back = anew("d", network, later["d"], generation=1, incarnation=3)
    back.hear("b", nodes["b"].message("d"))
    nodes["b"].hear("d", back.message("b"))
    assert nodes["b"].owes("d")
    back.hear("b", nodes["b"].message("d"))
    assert back.agreed == nodes["b"].agreed


@pytest.mark.parametrize("generation", [-1, 2**60, "x"])
def test_a_generation_out_of_all_range_is_refused(generation):
    network = Network.line(["a", "b"])
    nodes = meet(network, {"a": table(0), "b": table(1)})
    talk(nodes, network, 20)
    message = wire.Message.FromString(nodes["b"].message("a"))
    said = json.loads(message.said_settings)
    message.said_settings = json.dumps({**said, "generation": generation})
    before = nodes["a"].refused
    nodes["a"].hear("b", message.SerializeToString())
    assert (nodes["a"].refused, nodes["a"].called) == (before + 1, 0)


def test_what_travels_is_masked_and_only_the_total_is_plain():
    network = Network.line(["a", "b"])
    nodes = meet(network, {"a": table(0), "b": table(1)})
    talk(nodes, network, 2)
    wave = nodes["b"]._waves["first"]
    plain = encode(np.array([30.0])).tobytes()
    assert wave.parcel("a").up or wave.done
    assert plain not in wave.parcel("a").up
    talk(nodes, network, 10)
    assert nodes["a"].plan.n_rows == 60


@pytest.mark.parametrize("data", [b"", b"\x08\x84\x07", b"\x08\x84\x07\xff\xff", b"hello"])
def test_garbage_changes_nothing(data):
    one = meet(Network.line(["a", "b"]), {"a": table(0), "b": table(1)})["a"]
    before = one.message("b")
    one.hear("b", data)
    assert one.message("b") == before
    assert one.refused == 1
    assert is_preparing(before)


SITES = ("north", "south", "west")
FEATURES = ["age", "creatinine", "dose", "smoker", "ward", "patient_id", "admitted", "country"]


def three_sites(folder):
    network = Network.ring(SITES)
    address = {n: f"127.0.0.1:{p}" for n, p in zip(SITES, free_ports(3), strict=True)}
    task = {"data": "rows.csv", "label": "readmitted", "labels": ["no", "yes"],
            "features": FEATURES}  # fmt: skip
    settings = {"common_reg": 2.0, "specific_reg": 2.0, "tol": 1e-6}
    timing = Timing(round_seconds=30.0, start_seconds=100.0, evict_seconds=100.0)
    make_site(folder, network, address, {"all": task}, settings, timing, PrepareConfig())
    for name in SITES:
        (folder / name / "rows.csv").write_bytes(read_site(name))


@pytest.mark.slow
def test_three_agents_with_messy_files_end_where_the_command_line_ends(tmp_path, monkeypatch):
    site = tmp_path / "site"
    three_sites(site)
    monkeypatch.chdir(tmp_path)
    for name in SITES:
        (tmp_path / f"{name}.csv").write_bytes(read_site(name))
    done = CliRunner().invoke(main, [
        "train", *(f"{name}.csv" for name in SITES), "--label", "readmitted", "--features",
        ",".join(FEATURES), "--method", "dsvm", "--tol", "1e-8", "--max-rounds", "100000",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    (tmp_path / "new.csv").write_bytes(read_site("new"))
    expected = answers("model.json")
    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        agents.settle(SITES)
        agents.wait_for(lambda: all((site / name / "model.json").exists() for name in SITES))
    for name in SITES:
        model = read_model(site / name / "model.json")
        assert model.preparation["n_rows"] == 360
        found = answers(site / name / "model.json")
        assert found["label"].tolist() == expected["label"].tolist()
        np.testing.assert_allclose(found["decision"], expected["decision"], atol=1e-3)


def answers(model):
    done = CliRunner().invoke(main, ["predict", str(model), "new.csv"])
    assert done.exit_code == 0, done.output
    return pd.read_csv(io.StringIO(done.stdout))


@pytest.mark.slow
def test_told_to_prepare_all_agree_anew_even_if_one_is_killed_at_once(tmp_path):
    site = tmp_path / "site"
    three_sites(site)
    north = pd.read_csv(io.BytesIO(read_site("north")), dtype=str)
    more = north.head(40).assign(ward="Z")
    more.to_csv(tmp_path / "more.csv", index=False)

    def tell(*words):
        done = CliRunner().invoke(main, ["tell", str(site / "north" / "node.toml"), *words])
        assert done.exit_code == 0, done.output
        return done.stdout

    def plans():
        return [read_model(site / name / "model.json").preparation for name in SITES]

    with ForkedAgents(site) as agents:
        for name in SITES:
            agents.start(name)
        agents.settle(SITES)
        tell("rows", "add", str(tmp_path / "more.csv"))
        assert "All nodes agree anew" in tell("prepare")
        agents.running["north"].kill()
        agents.running.pop("north").wait()
        agents.start("north")
        agents.wait_for(lambda: all(plan["n_rows"] == 400 for plan in plans()))
        agents.settle(SITES)
        assert status(site, "north")["tasks"] == {"all": 200}
        assert "Nothing" not in agents.log("south")
    found = plans()
    assert found[0] == found[1] == found[2]
    assert "ward=Z" in {f"{f['column']}={f['level']}" for f in found[0]["features"]}


@pytest.mark.slow
def test_agents_say_by_name_what_does_not_go_together(tmp_path):
    three_sites(tmp_path / "site")
    path = tmp_path / "site" / "west" / "rows.csv"
    rows = pd.read_csv(path, sep="\t", dtype=str).drop(columns="creatinine (mg/dl)")
    rows.to_csv(path, sep="\t", index=False)
    toml = tmp_path / "site" / "west" / "node.toml"
    toml.write_text(toml.read_text().replace('"creatinine", ', ""))
    with ForkedAgents(tmp_path / "site") as agents:
        for name in SITES:
            agents.start(name)
        sentence = "Node west has no column 'creatinine'; north has it as a number."
        agents.wait_for(lambda: all(sentence in agents.log(name) for name in SITES))
        assert sentence in status(tmp_path / "site", "north")["trouble"]


def test_a_column_in_another_unit_at_one_node_is_named_everywhere():
    network = NETWORKS["line"]
    tables = {name: table(i) for i, name in enumerate(network.nodes)}
    nodes = meet(network, {**tables, "e": tables["e"].assign(age=tables["e"]["age"] / 100)})
    talk(nodes, network, 30)
    (words,) = {one.trouble for one in nodes.values()}
    assert "times as large as e: nearly all of its numbers" in words
    assert "declare the kind of 'age' as number" in words
