"""Bad input: one sentence that names the thing, the value and the remedy."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from dtsvm import CSVM, DSVM, DTSVM, Network

X = np.arange(24.0).reshape(8, 3) % 5
Y = np.array([0, 1] * 4)
TASK = np.array(["a", "a", "a", "a", "b", "b", "b", "b"])
NODE = np.array([0, 0, 1, 1] * 2)


def with_value(value):
    spoilt = X.copy()
    spoilt[2, 1] = value
    return spoilt


def fitted():
    return DTSVM("ring", C=0.1).fit(X, Y, task=TASK, node=NODE)


APART = Network(range(3), [(0, 1)])
REFUSALS = {
    "NaN": (
        lambda: DTSVM().fit(with_value(np.nan), Y),
        "X contains NaN in row 2, column 1; fill in or drop such rows first.",
    ),
    "inf": (
        lambda: DTSVM().fit(with_value(np.inf), Y),
        "X contains inf in row 2, column 1; fill in or drop such rows first.",
    ),
    "1e160": (
        lambda: DTSVM().fit(with_value(1e160), Y),
        "X contains 1e+160 in row 2, column 1, beyond ±1e+100; use a larger unit.",
    ),
    "NaN at predict": (
        lambda: fitted().predict(with_value(np.nan), task="a"),
        "X contains NaN in row 2, column 1; fill in or drop such rows first.",
    ),
    "text": (
        lambda: DTSVM().fit([["1", "x"], ["2", "y"]], [0, 1]),
        "X contains the text 'x' where a number is expected; encode or drop such columns first.",
    ),
    "y too short": (lambda: DTSVM().fit(X, Y[:6]), "X has 8 rows, but y has 6."),
    "task too short": (lambda: DTSVM().fit(X, Y, task=TASK[:7]), "X has 8 rows, but task has 7."),
    "node too long": (
        lambda: DTSVM().fit(X, Y, node=[0] * 9),
        "X has 8 rows, but node has 9.",
    ),
    "task in two dimensions": (
        lambda: DTSVM().fit(X, Y, task=np.zeros((8, 2))),
        "task must be one value a row, got an array of shape (8, 2).",
    ),
    "a missing task": (
        lambda: DTSVM().fit(X, Y, task=[*TASK[:7], None]),
        "task of row 7 is missing; every row needs one.",
    ),
    "one label in a task that no other task has": (
        lambda: DTSVM().fit(X, [0, 1, 0, 1, 2, 2, 2, 2], task=TASK),
        "Task 'b' has rows of one class only, 2; a classifier needs rows of two classes somewhere "
        "in the network, or another task with this label and a second one.",
    ),
    "one label in all": (
        lambda: DTSVM().fit(X, np.ones(8)),
        "y has rows of one class only, 1.0; a classifier needs rows of two classes somewhere "
        "in the network, or another task with this label and a second one.",
    ),
    "a positive label among three": (
        lambda: DTSVM(positive=2).fit(X, [0, 1, 2, 0, 1, 0, 1, 0]),
        "y has 3 labels, each of them positive in a question of its own; its positive one cannot "
        "be 2.",
    ),
    "weights too short": (
        lambda: DTSVM().fit(X, Y, sample_weight=[1.0] * 7),
        "X has 8 rows, but sample_weight has 7.",
    ),
    "a negative weight": (
        lambda: DTSVM().fit(X, Y, sample_weight=[1, 1, -2, 1, 1, 1, 1, 1]),
        "sample_weight of row 2 is -2; weights are finite and not negative.",
    ),
    "no row that counts": (
        lambda: DTSVM().fit(X, Y, sample_weight=np.zeros(8)),
        "The sample_weight of all rows is zero; a classifier needs rows that count.",
    ),
    "a class weight for nobody": (
        lambda: DTSVM(class_weight={2: 1.0}).fit(X, Y),
        "class_weight names label 2, which has no rows. Choose from 0, 1.",
    ),
    "a class weight of a task that is not there": (
        lambda: DTSVM(class_weight={"c": {0: 1.0}}).fit(X, Y, task=TASK),
        "class_weight names task 'c', which has no rows. Choose from a, b.",
    ),
    "a class weight of nothing": (
        lambda: DTSVM(class_weight={0: 0.0}).fit(X, Y),
        "The 'class_weight' parameter of the estimator must be a positive float. Got 0.0 instead.",
    ),
    "a class weight that is a word": (
        lambda: DTSVM(class_weight="even").fit(X, Y),
        "The 'class_weight' parameter of the estimator must be 'balanced', a dict or None. "
        "Got 'even' instead.",
    ),
    "NaN in CSR rows": (
        lambda: DTSVM().fit(csr_array(with_value(np.nan)), Y),
        "X contains NaN in row 2, column 1; fill in or drop such rows first.",
    ),
    "a positive label nobody has": (
        lambda: DTSVM(positive=7).fit(X, Y),
        "y has labels 0 and 1, but its positive one is 7.",
    ),
    "a positive label for nobody": (
        lambda: DTSVM(positive={"c": 1}).fit(X, Y, task=TASK),
        "positive names task 'c', which has no rows. Choose from a, b.",
    ),
    "threads that are none": (
        lambda: DTSVM(n_jobs="x").fit(X, Y),
        "The 'n_jobs' parameter of DTSVM must be a positive int. Got 'x' instead.",
    ),
    "an unknown task": (
        lambda: fitted().predict(X, task="c"),
        "Unknown task 'c'. Choose from a, b.",
    ),
    "an unknown task among many": (
        lambda: fitted().predict(X, task=[*TASK[:7], "bb"]),
        "Unknown task 'bb'. Choose from a, b. Did you mean 'b'?",
    ),
    "an unknown node": (
        lambda: fitted().predict(X, task="a", node=5),
        "Unknown node 5. Choose from 0, 1. A node without rows in training has no answer of its "
        "own: leave node out, in scores of a search too (set_score_request(node=False)), for the "
        "network's.",
    ),
    "no task named": (
        lambda: fitted().predict(X),
        "The model knows several tasks (a, b), and predict was not told which: say it with "
        "task=…, or train on a frame with task_column=…. Scorers by name, such as 'roc_auc', and "
        "cross_val_predict hand task on to nobody, so for them only task_column helps.",
    ),
    "a node that lacks the task": (
        lambda: (
            DTSVM(Network.line(3), C=0.1)
            .fit(X, Y, task=TASK, node=[0, 0, 1, 1, 1, 1, 2, 2])
            .predict(X, task="a", node=2)
        ),
        "Node 2 does not hold task 'a'; leave node out for the network's answer.",
    ),
    "a disconnected network": (
        lambda: DTSVM(APART).fit(X, Y, node=NODE),
        "The network falls into parts that cannot hear each other: [0, 1] and [2]. "
        "Add a link between them.",
    ),
    "holders that cannot hear each other": (
        lambda: DTSVM(Network.line(3)).fit(X, Y, node=[0, 0, 0, 0, 2, 2, 2, 2]),
        "Task 0 is held by nodes that cannot hear each other: [0] and [2]. "
        "Link them, or set relays='auto' to let the nodes between them pass messages on.",
    ),
    "a node that is not in the network": (
        lambda: DTSVM(Network.ring(["n", "s"])).fit(X, Y, node=["n", "x"] * 4),
        "Node 'x' has rows, but is not in the network. Choose from n, s.",
    ),
    "a negative C": (
        lambda: DTSVM(C=-1).fit(X, Y),
        "The 'C' parameter of DTSVM must be a positive float. Got -1 instead.",
    ),
    "a string for a number": (
        lambda: DSVM(C="1").fit(X, Y),
        "The 'C' parameter of DSVM must be a positive float. Got '1' instead.",
    ),
    "a penalty that is a word": (
        lambda: DTSVM(node_penalty="big").fit(X, Y),
        "The 'node_penalty' parameter of DTSVM must be a positive float or 'auto'. "
        "Got 'big' instead.",
    ),
    "a relaxation of one": (
        lambda: DTSVM(relaxation=1).fit(X, Y),
        "The 'relaxation' parameter of DTSVM must be a float between 0 and 1, both excluded. "
        "Got 1 instead.",
    ),
    "no rounds": (
        lambda: CSVM(max_rounds=0).fit(X, Y),
        "The 'max_rounds' parameter of CSVM must be a positive int. Got 0 instead.",
    ),
    "a time of nothing": (
        lambda: CSVM(max_seconds=0).fit(X, Y),
        "The 'max_seconds' parameter of CSVM must be a positive float. Got 0 instead.",
    ),
    "a network that is none": (
        lambda: DTSVM(network=3).fit(X, Y),
        "The 'network' parameter of DTSVM must be a Network, the name of a shape or None. "
        "Got 3 instead.",
    ),
    "an unknown shape": (
        lambda: DTSVM("rng").fit(X, Y),
        "Unknown network 'rng'. Choose from complete, ring, line, star, grid. Did you mean 'ring'?",
    ),
    "an unknown way to solve": (
        lambda: DTSVM(local="exactly").fit(X, Y),
        "Unknown 'local' of DTSVM: 'exactly'. Choose from tracking, exact. Did you mean 'exact'?",
    ),
    "a group of strangers": (
        lambda: DTSVM(transfer=[["a", "q"]]).fit(X, Y, task=TASK),
        "transfer names task 'q', which has no rows. Choose from a, b.",
    ),
    "a task in two groups": (
        lambda: DTSVM(transfer=[["a"], ["a", "b"]]).fit(X, Y, task=TASK),
        "transfer names task 'a' twice; a task is in one group.",
    ),
    "a word for groups": (
        lambda: DTSVM(transfer="all").fit(X, Y),
        "The 'transfer' parameter must be True, False or a list of groups of tasks. "
        "Got 'all' instead.",
    ),
    "no rows": (
        lambda: DTSVM().fit(np.zeros((0, 3)), []),
        "Found array with 0 sample(s) (shape=(0, 3)) while a minimum of 1 is required by DTSVM.",
    ),
    "another number of features": (
        lambda: fitted().predict(X[:, :2], task="a"),
        "X has 2 features, but DTSVM is expecting 3 features as input.",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_bad_input_gets_its_sentence(name):
    act, sentence = REFUSALS[name]
    with pytest.raises(ValueError) as refused:
        act()
    assert str(refused.value) == sentence
