"""Scores against scikit-learn's, and the sentences that stand before them."""

import numpy as np
import pytest
from sklearn.metrics import (
    balanced_accuracy_score,
    confusion_matrix,
    precision_score,
    recall_score,
    roc_auc_score,
)

from dtsvm.ui.scores import count_scores, no_better, wilson


@pytest.mark.parametrize("seed", range(20))
def test_every_score_of_two_labels_is_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 60)
    values = np.round(truth + rng.normal(size=60) - 0.5, 1)  # with ties
    given = (values > 0).astype(int)
    found = count_scores(truth, given, values)
    assert np.array_equal(found.confusion, confusion_matrix(truth, given, labels=[0, 1]))
    assert np.isclose(found.error, np.mean(truth != given))
    assert np.isclose(found.balanced_accuracy, balanced_accuracy_score(truth, given))
    assert np.isclose(found.recalls[1], recall_score(truth, given))
    assert np.isclose(found.precisions[1], precision_score(truth, given))
    assert np.isclose(found.auc, roc_auc_score(truth, values))
    assert np.isclose(found.guess_error, min(truth.mean(), 1 - truth.mean()))
    low, high = found.auc_interval
    assert low <= found.auc <= high


def test_scores_of_two_halves_add_up():
    rng = np.random.default_rng(1)
    truth, given = rng.integers(0, 2, (2, 40))
    parts = [count_scores(truth[s], given[s], given[s]) for s in (slice(0, 15), slice(15, 40))]
    both = parts[0] + parts[1]
    assert both.n_wrong == (truth != given).sum()
    assert np.isnan(both.auc)  # a row of one task says nothing about a row of another


def test_three_labels_have_a_table_and_no_curve():
    truth = np.array([0, 1, 2, 2, 1, 0])
    given = np.array([0, 1, 2, 1, 1, 2])
    found = count_scores(truth, given, np.zeros(6), n_labels=3)
    assert found.balanced_accuracy == balanced_accuracy_score(truth, given)
    assert np.isnan(found.auc)


def test_wilsons_interval_holds_the_share_and_shrinks():
    assert wilson(0, 20)[0] == 0.0
    assert wilson(20, 20)[1] == 1.0
    narrow, wide = wilson(500, 1000), wilson(5, 10)
    assert wide[0] < narrow[0] < 0.5 < narrow[1] < wide[1]
    assert np.isnan(wilson(0, 0)[0])


def test_never_is_called_no_better_than_guessing():
    truth = np.array([0] * 95 + [1] * 5)
    never = np.zeros(100, int)
    found = count_scores(truth, never, np.zeros(100))
    assert no_better(found, "The model", "well") == (
        "The model is no better than guessing: 5.0 % error, 5.0 % by always saying 'well'; "
        "balanced accuracy 50.0 %."
    )


def test_a_model_that_finds_the_rare_and_errs_more_is_told_apart_from_guessing():
    truth = np.array([0] * 950 + [1] * 50)
    given = truth.copy()
    given[:100] = 1
    found = count_scores(truth, given, given.astype(float))
    assert no_better(found, "Task 'flu'", "well") == (
        "Task 'flu' errs in 10.0 %, always saying 'well' in 5.0 %; what it finds beyond that shows "
        "in balanced accuracy (94.7 %) and recall."
    )


def test_a_good_model_needs_no_sentence_and_one_label_says_little():
    truth = np.array([0, 1] * 30)
    assert no_better(count_scores(truth, truth, truth * 1.0), "The model", 0) is None
    alone = count_scores(np.zeros(9, int), np.zeros(9, int), np.zeros(9))
    assert no_better(alone, "The model", 0) == (
        "The model: the rows have one label only, so these figures say little."
    )
