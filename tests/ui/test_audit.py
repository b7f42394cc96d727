"""`dtsvm audit` on a node's own folder, and the level of privacy a folder asks for."""

import csv
import json

import numpy as np
import pytest

from dtsvm.errors import ParameterError
from dtsvm.problem import Privacy
from dtsvm.runtime.agent.site.config import read_config
from dtsvm.runtime.agent.site.site import Site
from dtsvm.svm.model_file import save_model


@pytest.fixture
def node(tmp_path):
    """A node.toml of a line of two, with twelve rows."""
    rng = np.random.default_rng(0)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "dose", "sick"])
        for age, dose in rng.normal(size=(12, 2)).round(3):
            writer.writerow([age, dose, int(age + dose > 0)])
    path = tmp_path / "node.toml"
    path.write_text(
        'name = "a"\nnetwork = "ff"\nlisten = "127.0.0.1:7001"\n'
        '[neighbours]\nb = "127.0.0.1:7002"\n'
        '[tasks.flu]\ndata = "rows.csv"\nlabel = "sick"\nlabels = [0, 1]\n'
    )
    return path


def with_privacy(node, text, settings='[settings]\nlocal = "exact"\nbias = "mixed"\n'):
    node.write_text(node.read_text() + settings + "[privacy]\n" + text)
    return node


def test_an_audit_warns_that_the_only_neighbour_can_read_every_row(run, node):
    said = run("audit", str(node))
    assert "a neighbour that lies can read every row" in " ".join(said.output.split())
    assert "A neighbour that lies reads every row to the last digits" in said.output
    assert sorted(path.name for path in node.parent.iterdir()) == ["node.toml", "rows.csv"]


def test_an_audit_says_that_choosing_shows_more_than_was_tried(run, node):
    node.write_text(node.read_text() + '[settings]\nC = "auto"\n')
    said = " ".join(run("audit", str(node)).output.split())
    assert "The network chooses C, by many trainings of these rows" in said


def test_an_audit_at_another_level_says_so_as_json(run, node):
    pytest.importorskip("dp_accounting")
    said = json.loads(run("audit", str(node), "--level", "dp", "--json").output)
    assert said["privacy"]["level"] == "dp"
    assert [one["n_read"] for one in said["tasks"]["flu"]] == [0, 0, 0]


def test_a_node_has_the_level_its_file_asks_for_and_its_model_says_it(node):
    pytest.importorskip("dp_accounting")
    chosen = read_config(with_privacy(node, 'level = "dp"\nepsilon = 2.0\nrounds = 5\n'))
    assert chosen.privacy == Privacy("dp", epsilon=2.0, rounds=5)
    site = Site(chosen, save_model)
    assert site.node.status()["privacy"]["left"] == 5
    assert np.linalg.norm(site.node.state.tables.rows_of(0)[0], axis=1).max() <= 1 + 1e-12


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('level = "secret"', "Unknown 'level'"),
        ("epsilon = 0", "The 'epsilon' parameter of"),
        ("delta = 1.5", "must be a float between 0 and 1"),
        ("budget = 3", "has 'budget'"),
    ],
)
def test_a_level_that_makes_no_sense_is_refused(node, text, sentence):
    with pytest.raises(ParameterError, match=sentence):
        read_config(with_privacy(node, text))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[prepare]\nmin_count = 5\n", "a column's range must not be found by looking at rows"),
        ("[privacy.ranges]\nage = [5, 5]\n", "least, largest"),
    ],
)
def test_preparation_under_differential_privacy_needs_what_was_written_down(node, text, sentence):
    with_privacy(node, 'level = "dp"\n' + text)
    with pytest.raises(ParameterError, match=sentence):
        read_config(node)


def test_labels_must_be_written_down_for_nobody_is_told_which_were_found(node):
    node.write_text(node.read_text().replace("labels = [0, 1]\n", ""))
    with_privacy(node, 'level = "dp"\n')
    with pytest.raises(ParameterError, match="or all of several"):
        read_config(node)


def test_an_audit_pays_for_nothing(run, node):
    pytest.importorskip("dp_accounting")
    ranges = "[prepare]\n[privacy.ranges]\nage = [-4, 4]\ndose = [-4, 4]\n"
    with_privacy(node, 'level = "dp"\nepsilon = 8.0\nrounds = 5\n' + ranges)
    run("audit", str(node))
    assert sorted(path.name for path in node.parent.iterdir()) == ["node.toml", "rows.csv"]


def test_a_file_that_two_tasks_read_is_refused_for_its_rows_would_be_told_of_twice(node):
    more = '[tasks.cold]\ndata = "rows.csv"\nlabel = "sick"\nlabels = [0, 1]\n'
    node.write_text(node.read_text() + more)
    read_config(node)
    with pytest.raises(ParameterError, match=r"'flu' and 'cold' both read rows\.csv"):
        read_config(with_privacy(node, 'level = "dp"\n'))
