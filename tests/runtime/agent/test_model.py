import numpy as np

from dtsvm.problem import Settings
from dtsvm.runtime.agent.node.model import node_model
from dtsvm.runtime.agent.node.node import Node
from dtsvm.svm.model_file import load_model, save_model


def node(rng, **more):
    made = Node("north", [], 3, Settings(C=0.1, local="exact"), 1, 1, **more)
    for task in ("cold", "flu"):
        X = rng.normal(size=(12, 3))
        made.enter(task, X, np.sign(X[:, 0]), ("no", "yes"))
    made.couple(["cold", "flu"])
    for now in range(30):
        made.begin(float(now))
        made.finish(float(now))
    return made


def test_a_nodes_model_loses_no_setting(rng, tmp_path):
    held = node(rng, personal=True)
    model = node_model(held, {"cold": ("no", "yes"), "flu": ("no", "yes")})
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert (again.C, again.local, again.personal) == (0.1, "exact", True)
    assert again.transfer == [["cold", "flu"]]
    assert again.nodes_.tolist() == ["north"]


def test_a_nodes_model_answers_with_what_is_certified_and_keeps_its_own(rng):
    held = node(rng)
    model = node_model(held, {"cold": ("no", "yes"), "flu": ("no", "yes")})
    X = rng.normal(size=(5, 3))
    for node_name, u in ((None, sum(held.certified("flu"))), ("north", held.decision("flu"))):
        found = model.task("flu").decide(X, node_name)[:, 0]
        np.testing.assert_allclose(found, X @ u[:-1] + u[-1], rtol=1e-12)
