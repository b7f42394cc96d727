import builtins
import csv
from pathlib import Path

import pytest

FIG7 = Path(__file__).parents[2] / "examples" / "fig7.toml"
PLAN = """
network = { shape = "ring", nodes = ["berlin", "paris", "rome"] }
settings = { C = 0.1 }
[tasks]
flu = { data = "rows.csv", label = "state", node = "clinic", task = "disease", test = "test.csv" }
cold = { data = "rows.csv", label = "state", node = "clinic", task = "disease" }
[[stages]]
name = "alone"
events = [{ enter = "flu" }, { enter = "cold" }]
rounds = 20
[[stages]]
name = "together"
events = [{ couple = ["flu", "cold"] }]
rounds = 10
"""


@pytest.fixture
def plan(files):
    path = files / "plan.toml"
    path.write_text(PLAN)
    return path


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_plan_prints_its_stages_and_writes_its_history(run, plan):
    result = run("live", "plan.toml")
    lines = result.stdout.splitlines()
    assert lines[0].split() == [
        "stage",
        "events",
        "until",
        "round",
        "residual",
        "gap",
        "risk",
        "flu",
    ]
    assert [line.split()[:3] for line in lines[1:3]] == [
        ["alone", "enter", "20"],
        ["together", "couple", "30"],
    ]
    assert lines[-1] == "history  plan.csv"
    history = read("plan.csv")
    assert list(history[0]) == ["round", "stage", "primal_residual", "dual_residual", "risk_flu"]
    assert [row["stage"] for row in history] == ["alone"] * 20 + ["together"] * 10


def test_the_papers_figure_7_is_an_example(run):
    pytest.importorskip("matplotlib")
    run("live", FIG7, "--out", "history.csv", "--plot", "fig7.png")
    history = read("history.csv")
    assert list(history[0])[4:] == ["risk_3v6", "risk_5v4", "risk_8v9"]
    assert len(history) == 500
    assert {row["risk_3v6"] for row in history[200:]} == {history[199]["risk_3v6"]}
    assert {row["risk_5v4"] for row in history[400:]} == {history[399]["risk_5v4"]}
    risk = {(task, k): float(history[k - 1][f"risk_{task}"]) for task in ("3v6", "5v4")
            for k in (100, 200, 300, 400)}  # fmt: skip
    assert risk["3v6", 200] < risk["3v6", 100]
    assert risk["5v4", 400] < risk["5v4", 300]
    assert Path("fig7.png").read_bytes().startswith(b"\x89PNG")


def test_a_terminal_sees_a_bar(run, plan, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "20/20" in run("live", "plan.toml").stderr


def test_plotting_without_matplotlib_says_what_to_install(run, plan, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    assert run("live", "plan.toml", "--plot", "x.png", exit_code=1).stderr == (
        "Error: --plot needs matplotlib, which is not installed. "
        'Install it with: pip install "dtsvm[plot]"\n'
    )


def test_a_missing_plan_and_a_mistake_in_it_are_refused(run, plan):
    assert run("live", "none.toml", exit_code=1).stderr == (
        "Error: There is no file none.toml. Check the path.\n"
    )
    plan.write_text(PLAN.replace("couple", "cuople"))
    assert run("live", "plan.toml", exit_code=1).stderr == (
        "Error: plan.toml: unknown event 'cuople' in stage 2. Choose from enter, add_data, "
        "drop_data, leave, couple, decouple, link, unlink, set. Did you mean 'couple'?\n"
    )
    plan.write_text(PLAN.replace("test.csv", "tset.csv"))
    assert run("live", "plan.toml", exit_code=1).stderr == (
        "Error: There is no file tset.csv. Check the path.\n"
    )


def test_a_place_that_cannot_be_written_is_refused_before_training(run, plan):
    assert run("live", "plan.toml", "--out", "no/history.csv", exit_code=1).stderr == (
        f"Error: There is no folder {plan.parent / 'no'} for history.csv. Make it first.\n"
    )
