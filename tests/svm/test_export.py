import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from dtsvm import CSVM, DTSVM, Session, export
from dtsvm.errors import DataError, MissingExtraError, ParameterError


@pytest.fixture
def clf(rng):
    X = rng.normal(size=(80, 3))
    task = np.array(["cold", "flu"])[np.arange(80) % 2]
    y = np.where(X[:, 0] + X[:, 1] * (task == "flu") > 0, "sick", "well")
    return DTSVM(C=0.3, positive={"flu": "sick"}).fit(X, y, task=task, node=np.arange(80) // 2 % 4)


@pytest.mark.parametrize("task", ["cold", "flu"])
@pytest.mark.parametrize("node", [None, 2])
def test_the_exported_classifier_labels_as_the_task_does(clf, rng, task, node):
    X = rng.normal(size=(50, 3))
    plain = export(clf, task, node=node)
    assert type(plain).__module__.startswith("sklearn.linear_model")
    assert plain.classes_.tolist() == ["sick", "well"]
    assert np.array_equal(plain.predict(X), clf.predict(X, task=task, node=node))
    values = clf.decision_function(X, task=task, node=node)
    turn = -1 if task == "flu" else 1
    np.testing.assert_allclose(plain.decision_function(X), turn * values, rtol=1e-12)


def test_it_needs_nothing_of_this_package(clf, tmp_path):
    (tmp_path / "plain.pickle").write_bytes(pickle.dumps(export(clf, "cold")))
    script = (
        "import pickle, sys\n"
        "clf = pickle.load(open('plain.pickle', 'rb'))\n"
        "print(clf.predict([[9.0, 0, 0], [-9.0, 0, 0]]).tolist(), 'dtsvm' in sys.modules)\n"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert out.stdout == "['sick', 'well'] False\n"


def test_a_session_is_exported_too(rng):
    X = rng.normal(size=(30, 2))
    live = Session(C=0.3)
    live.enter(0, "sick", X, np.where(X[:, 0] > 0, 1, -1))
    live.run()
    assert np.array_equal(export(live).predict(X), live.classifier("sick").predict(X))


def test_it_can_be_trained_again_as_any_other(clf, rng):
    X = rng.normal(size=(60, 3))
    assert cross_val_score(export(clf, "cold"), X, X[:, 0] > 0).mean() > 0.8


def test_a_task_must_be_chosen_among_several(clf):
    with pytest.raises(DataError) as refused:
        export(clf)
    assert str(refused.value) == (
        "The model knows several tasks (cold, flu): say which to export with task=…."
    )
    with pytest.raises(DataError, match=r"Unknown task 'flue'. Choose from cold, flu."):
        export(clf, "flue")
    with pytest.raises(ParameterError, match=r"Unknown 'form' of export: 'pmml'."):
        export(clf, "flu", form="pmml")


def test_without_skl2onnx_it_says_what_to_install(clf, monkeypatch):
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(MissingExtraError) as refused:
        export(clf, "cold", form="onnx")
    assert str(refused.value) == (
        "Export as ONNX needs skl2onnx, which is not installed. "
        'Install it with: pip install "dtsvm[onnx]"'
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_onnx_model_labels_as_the_task_does(clf, rng):
    pytest.importorskip("skl2onnx")
    from onnx.reference import ReferenceEvaluator

    X = rng.normal(size=(50, 3)).astype(np.float32)
    for task in ("cold", "flu"):
        said = ReferenceEvaluator(export(clf, task, form="onnx")).run(None, {"X": X})
        assert np.array_equal(said[0], clf.predict(X, task=task))


def test_one_task_need_not_be_named(rng):
    X = rng.normal(size=(40, 2))
    clf = CSVM().fit(X, X[:, 0] > 0)
    assert np.array_equal(export(clf).predict(X), clf.predict(X))
