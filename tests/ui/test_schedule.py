import contextlib
import copy
import csv
import tomllib

import numpy as np
import pytest

from dtsvm import Network, Session
from dtsvm.errors import DataError, DtsvmError, NetworkError, ParameterError
from dtsvm.ui import schedule
from dtsvm.ui.evolution import run_schedule
from dtsvm.ui.schedule import read_schedule

NODES = ["x", "y", "z"]
PLAN = """
settings = {{ C = 0.1 }}
{head}
[network]
{network}
[tasks]
a = {{ data = "rows.csv", label = "y", node = "n", task = "t", test = "test.csv" }}
b = {{ data = "rows.csv", label = "y", node = "n", task = "t", test = "test.csv" }}
{stages}
"""
LINE = 'shape = "line"\nnodes = ["x", "y", "z"]'
BOTH = "{ enter = 'a' }, { enter = 'b' }"


def stage(events="", more="rounds = 10"):
    return f"[[stages]]\nevents = [{events}]\n{more}\n"


def write_rows(path, rng, n=60, nodes=NODES):
    table = []
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["n", "t", "u", "v", "y"])
        for i in range(n):
            x = rng.normal(size=2)
            row = [nodes[i // 2 % len(nodes)], "ab"[i % 2], *x.tolist(), "no" if x[0] < 0 else "ya"]
            table.append(row)
            writer.writerow(row)
    return table


@pytest.fixture
def plan(tmp_path, rng):
    """Write a plan and read it."""
    rows = write_rows(tmp_path / "rows.csv", rng)
    write_rows(tmp_path / "test.csv", rng)

    def write(stages, head="", network=LINE):
        path = tmp_path / "plan.toml"
        path.write_text(PLAN.format(stages=stages, head=head, network=network))
        return read_schedule(path)

    write.rows, write.folder, write.path = rows, tmp_path, tmp_path / "plan.toml"
    return write


def block(rows, node, task):
    mine = [row for row in rows if row[0] == node and row[1] == task]
    return np.array([row[2:4] for row in mine], float), np.array([row[4] for row in mine])


def by_hand(rows):
    live = Session(Network.line(NODES), C=0.1)
    for task in "ab":
        for node in NODES:
            live.enter(node, task, *block(rows, node, task), labels=("no", "ya"))
    return live


def test_a_plan_does_what_the_session_does(plan):
    stages = stage(BOTH) + stage("{ couple = ['a', 'b'] }", "rounds = 20") + stage(
        "{ leave = 'a' }, { set = { C = 0.2 } }, "
        "{ unlink = { nodes = ['y', 'z'], allow_split = true } }"
    )  # fmt: skip
    evolution = run_schedule(plan(stages))
    live = by_hand(plan.rows)
    live.run(10)
    live.couple("a", "b")
    live.run(20)
    live.leave(task="a")
    live.set(C=0.2)
    live.unlink("y", "z", allow_split=True)
    live.run(10)
    assert [row[0] for row in evolution.rows] == list(range(1, 41))
    assert [row[2] for row in evolution.rows] == live.history["primal_residual"].tolist()
    assert [row[3] for row in evolution.rows] == live.history["dual_residual"].tolist()


def test_every_event_is_carried_out(plan):
    write_rows(plan.folder / "more.csv", np.random.default_rng(1), 12)
    events = """
        { add_data = { task = "a", data = "more.csv" } },
        { drop_data = { task = "b", node = "x", oldest = 2 } },
        { link = ["x", "z"] },
        { couple = ["a", "b"] }
    """
    stages = stage(BOTH) + stage(events) + stage("{ decouple = 'a' }, { leave = { node = 'y' } }")
    evolution = run_schedule(plan(stages))
    live = by_hand(plan.rows)
    live.run(10)
    more = [row.split(",") for row in (plan.folder / "more.csv").read_text().split()[1:]]
    for node in NODES:
        live.add_data(node, "a", *block(more, node, "a"))
    live.drop_data("x", "b", oldest=2)
    live.link("x", "z")
    live.couple("a", "b")
    live.run(10)
    live.decouple("a")
    live.leave(node="y")
    live.run(10)
    assert [row[2] for row in evolution.rows] == live.history["primal_residual"].tolist()


def test_a_node_may_come_later_with_its_own_rows(plan):
    later = stage("{ enter = { task = 'a', node = 'z', links = ['x'] } }")
    network = 'shape = "line"\nnodes = ["x", "y"]'
    evolution = run_schedule(plan(stage("{ enter = 'a' }") + later, network=network))
    live = Session(Network.line(["x", "y"]), C=0.1)
    for node in ("x", "y"):
        live.enter(node, "a", *block(plan.rows, node, "a"), labels=("no", "ya"))
    live.run(10)
    live.enter("z", "a", *block(plan.rows, "z", "a"), links=["x"])
    live.run(10)
    assert [row[2] for row in evolution.rows] == live.history["primal_residual"].tolist()


def test_risk_is_unknown_before_a_task_and_flat_after_it(plan):
    stages = stage("{ enter = 'a' }") + stage("{ enter = 'b' }") + stage("{ leave = 'a' }")
    evolution = run_schedule(plan(stages))
    assert evolution.columns[4:] == ["risk_a", "risk_b"]
    a, b = (np.array([row[i] for row in evolution.rows]) for i in (4, 5))
    assert np.isnan(b[:10]).all()
    assert not np.isnan(b[10:]).any()
    assert (a[20:] == a[19]).all()


def test_csv_has_a_line_a_round_and_blanks_for_what_is_not_known(plan):
    text = run_schedule(plan(stage("{ enter = 'a' }", "name = 'first'\nrounds = 2"))).to_csv()
    lines = text.splitlines()
    assert lines[0] == "round,stage,primal_residual,dual_residual,risk_a,risk_b"
    assert lines[1].startswith("1,first,")
    assert lines[2].endswith(",")
    assert len(lines) == 3


def test_a_stage_may_run_to_a_tolerance(plan):
    evolution = run_schedule(plan(stage(BOTH, "tol = 1e-3")))
    (_, info), *_ = evolution.ends
    assert info.status == "converged"
    assert info.gap <= 1e-3


def test_ctrl_c_keeps_the_rounds_done_and_starts_no_other_stage(plan):
    def impatient(info, evolution):
        if info.n_rounds == 5:
            raise KeyboardInterrupt

    evolution = run_schedule(plan(stage(BOTH) + stage()), on_round=impatient)
    assert [info.status for _, info in evolution.ends] == ["interrupted"]
    assert len(evolution.rows) == 5


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ('links = [["x", "y"], ["y", "z"]]', Network.line(NODES)),
        ('links = "links.csv"', Network.line(NODES)),
        ('nodes = ["x", "y", "z"]', Network.complete(NODES)),
        ("nodes = 4\nshape = 'random'\ndegree = 0.7\nseed = 3", Network.random(4, 0.7, 3)),
    ],
)
def test_networks_are_written_as_is_handy(plan, network, expected):
    (plan.folder / "links.csv").write_text("from,to\nx,y\ny,z\n")
    assert plan(stage(), network=network).network == expected


def test_one_node_needs_no_column_of_nodes(plan):
    (plan.folder / "plan.toml").write_text("""
        network = { nodes = ["here"] }
        [tasks]
        a = { data = "rows.csv", label = "y", features = ["u", "v"], positive = "no" }
        [[stages]]
        events = [{ enter = "a" }]
        rounds = 3
    """)
    read = read_schedule(plan.path)
    assert read.tasks["a"].labels == ("ya", "no")
    assert len(run_schedule(read).rows) == 3


def test_digits_are_dealt_without_repetition_and_balanced(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text("""
        network = { nodes = 3 }
        tasks.3v6 = { data = "digits", rows_per_node = 10, test_rows = 50 }
        [[stages]]
        events = [{ enter = "3v6" }, { add_data = { task = "3v6", rows = 4 } }]
        rounds = 2
    """)
    rows = read_schedule(path).tasks["3v6"]
    dealt = [rows.first(0), rows.first(1), *((X, y) for _, X, y in rows.more([0, 1], None, 4))]
    assert [int(y.sum()) for _, y in dealt] == [0, 0, 0, 0]
    X = np.concatenate([X for X, _ in dealt])
    assert len(np.unique(X, axis=0)) == 28
    assert len(run_schedule(read_schedule(path)).rows) == 2
    with pytest.raises(DataError, match="bundled images, but 100000 were asked for"):
        list(read_schedule(path).tasks["3v6"].more([0], None, 100_000))


# Refusals: (what is written, the sentence after the path)


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        ("[[stages]]\nroundz = 5",
         "unknown key 'roundz' in stage 1. Choose from name, rounds, tol, events. "
         "Did you mean 'rounds'?"),
        ("[[stages]]\nname = 'x'", "stage 1 needs rounds = … or tol = …."),
        (stage("{ entre = 'a' }"),
         "unknown event 'entre' in stage 1. Choose from enter, add_data, drop_data, leave, couple, "
         "decouple, link, unlink, set. Did you mean 'enter'?"),
        (stage("{ enter = 'c' }"), "unknown task 'c' in enter of stage 1. Choose from a, b."),
        (stage("{ couple = ['a', 'bb'] }"),
         "unknown task 'bb' in couple of stage 1. Choose from a, b. Did you mean 'b'?"),
        (stage("{ leave = { taks = 'a' } }"),
         "unknown key 'taks' in leave of stage 1. Choose from task, node, allow_split. "
         "Did you mean 'task'?"),
        (stage("{ enter = 'a', leave = 'b' }"),
         "stage 1 has the event {'enter': 'a', 'leave': 'b'}. Write one as { enter = 'task' }."),
        (stage("{ drop_data = 'a' }"), "drop_data of stage 1 needs oldest = …."),
        (stage("{ couple = 'a' }"), "couple of stage 1 needs tasks = [ … ]."),
        (stage("{ couple = ['a'] }"), "couple of stage 1 needs two tasks, got ['a']."),
        (stage("{ link = ['x'] }"), "link of stage 1 needs two nodes, got ['x']."),
        ("[[stages]]\nrounds = 1\nevents = 'enter'", "stage 1 needs events = [ … ]."),
        (stage("{ set = { c = 1 } }"),
         "unknown key 'c' in set of stage 1. Choose from C, common_reg, specific_reg, "
         "task_penalty, node_penalty, relaxation, local, tol. Did you mean 'C'?"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_stage_is_named(plan, stages, sentence):
    with pytest.raises(ParameterError) as refused:
        plan(stages)
    assert str(refused.value) == f"{plan.path}: {sentence}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", " needs a table [network]."),
        ("netwrok = 1",
         ": unknown key 'netwrok'. Choose from seed, network, settings, digits, tasks, stages. "
         "Did you mean 'network'?"),
        ("network = { shap = 'ring' }",
         ": unknown key 'shap' in [network]. Choose from shape, nodes, degree, seed, links. "
         "Did you mean 'shape'?"),
        ("network = { shape = 'ring' }", ": [network] needs nodes = … or links = …."),
        ("network = { nodes = 2 }\nsettings = { D = 1 }",
         ": unknown key 'D' in [settings]. Choose from C, common_reg, specific_reg, task_penalty, "
         "node_penalty, relaxation, local, tol, personal, relays, loss, seed and 1 more."),
        ("network = { nodes = 2 }", " needs a table [tasks]."),
        ("network = { nodes = 2 }\ntasks = { a = { data = 'r.csv' } }",
         " needs at least one [[stages]]."),
    ],
)  # fmt: skip
def test_a_mistake_in_the_plan_is_named(tmp_path, text, sentence):
    path = tmp_path / "plan.toml"
    path.write_text(text)
    with pytest.raises(ParameterError) as refused:
        read_schedule(path)
    assert str(refused.value) == f"{path}{sentence}"


@pytest.mark.parametrize(
    ("task", "sentence"),
    [
        ("{ label = 'y' }", "task 'a' needs data = 'digits' or a file."),
        ("{ data = 'rows.csv' }", "task 'a' needs label = …."),
        ("{ data = 'rows.csv', label = 'y' }",
         "task 'a' needs node = 'column', or a file for each node."),
        ("{ data = 'digits' }", "task 'a' needs rows_per_node = …."),
        ("{ data = 'digits', label = 'y' }",
         "unknown key 'label' in [tasks.a]. Choose from data, rows_per_node, test_rows."),
    ],
)  # fmt: skip
def test_a_mistake_in_a_task_is_named(plan, task, sentence):
    plan.path.write_text(f"network = {{ nodes = 2 }}\ntasks.a = {task}\n{stage()}")
    with pytest.raises(ParameterError) as refused:
        read_schedule(plan.path)
    assert str(refused.value) == f"{plan.path}: {sentence}"


def test_missing_files_and_broken_toml_are_refused(plan):
    path = plan.folder / "none.toml"
    with pytest.raises(DataError) as refused:
        read_schedule(path)
    assert str(refused.value) == f"There is no file {path}. Check the path."
    (plan.folder / "rows.csv").unlink()
    with pytest.raises(DataError) as refused:
        plan(stage())
    assert str(refused.value) == f"There is no file {plan.folder / 'rows.csv'}. Check the path."
    plan.path.write_text("network = ")
    with pytest.raises(DataError) as refused:
        read_schedule(plan.path)
    assert str(refused.value).startswith(f"{plan.path} is not valid TOML: Invalid value (at ")


@pytest.mark.parametrize(
    ("events", "error", "sentence"),
    [
        (BOTH + ", { link = ['x', 'w'] }", NetworkError,
         "stage 1, link: Unknown node 'w'. Choose from x, y, z."),
        ("{ enter = 'a' }, { add_data = { task = 'b', data = 'rows.csv' } }", DataError,
         "stage 1, add_data: Task 'b' has not entered, or has left."),
        ("{ enter = 'a' }, { add_data = { task = 'a', rows = 3 } }", ParameterError,
         "stage 1, add_data: More rows of task 'a' come from a file: data = '…'."),
        ("{ enter = 'a' }, { set = { C = -1 } }", ParameterError,
         "stage 1, set: The 'C' parameter of Session must be a positive float. Got -1 instead."),
    ],
)  # fmt: skip
def test_what_the_session_refuses_is_placed_in_the_plan(plan, events, error, sentence):
    with pytest.raises(error) as refused:
        run_schedule(plan(stage(events)))
    assert str(refused.value) == f"{plan.path}, {sentence}"


def test_strange_test_labels_are_refused(plan):
    text = (plan.folder / "test.csv").read_text().replace("ya", "yes")
    (plan.folder / "test.csv").write_text(text)
    with pytest.raises(DataError) as refused:
        plan(stage())
    assert str(refused.value) == "Task 'a' has labels 'no' and 'ya', got 'yes'."


def test_rounds_must_be_a_number(plan):
    with pytest.raises(DtsvmError) as refused:
        plan(stage(more="rounds = 'ten'"))
    assert str(refused.value) == (
        f"The 'rounds' parameter of {plan.path}, stage 1 must be a positive int. Got 'ten' instead."
    )


def places(content, here=()):
    """Every place in a document."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*here, key)
        if isinstance(value, dict | list):
            yield from places(value, (*here, key))


def test_any_value_replaced_is_read_or_refused_in_our_words(plan, monkeypatch):
    plan(stage(BOTH) + stage("{ couple = ['a', 'b'] }, { drop_data = { task = 'a', oldest = 1 } }"))
    whole = tomllib.loads(plan.path.read_text())
    for place in places(whole):
        for junk in ("junk", -1, 0.5, True, [], [["x"]], {}, {"x": 1}):
            content = copy.deepcopy(whole)
            inner = content
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = junk
            monkeypatch.setattr(schedule, "_parse", lambda _, content=content: content)
            with contextlib.suppress(DtsvmError):
                read_schedule(plan.path)


def test_a_value_of_the_wrong_kind_is_refused(plan):
    with pytest.raises(ParameterError) as refused:
        plan(stage(), network="links = 3")
    assert str(refused.value) == (
        f"{plan.path} has a value of the wrong kind ('int' object is not iterable)."
    )


def test_a_link_that_is_no_pair_is_refused_by_its_ends(plan):
    with pytest.raises(NetworkError) as refused:
        plan(stage(), network="links = [['x', 'y', 'z']]")
    assert str(refused.value) == (
        "Link ('x', 'y', 'z') is no pair; a link joins two nodes: (a, b)."
    )
