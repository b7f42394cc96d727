"""Digits as principal components: equal to scikit-learn's, and drawn as asked."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA

from dtsvm.data import DigitFeatures, load_mnist
from dtsvm.errors import DataError, ParameterError


@pytest.fixture(scope="module")
def digits():
    return load_mnist()


@pytest.fixture(scope="module")
def features(digits):
    return DigitFeatures(digits, n_components=10, scale=0.2)


def as_set(X):
    return {row.tobytes() for row in X}


def refusal(kind, call, *arguments, **options):
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    return str(caught.value)


def test_features_equal_those_of_scikit_learn(digits, features):
    pca = PCA(10, svd_solver="covariance_eigh").fit(digits.train_images / 255)
    # Signs are settled the same way on both sides, so they are compared too.
    np.testing.assert_allclose(features.components, pca.components_, atol=1e-10)
    expected = 0.2 * pca.transform(digits.test_images[:50] / 255)
    np.testing.assert_allclose(features.transform(digits.test_images[:50]), expected, atol=1e-10)


def test_the_largest_entry_of_a_component_is_positive(features):
    largest = np.abs(features.components).argmax(axis=1)
    assert (features.components[np.arange(10), largest] > 0).all()


def test_test_images_have_no_part_in_the_components(digits, features):
    other = DigitFeatures(replace(digits, test_images=255 - digits.test_images), 10, 0.2)
    np.testing.assert_array_equal(other.components, features.components)
    np.testing.assert_array_equal(other.mean, features.mean)


def test_scale_multiplies_the_features(digits, features):
    plain = DigitFeatures(digits, 10)
    ours = features.transform(digits.test_images[:5])
    np.testing.assert_allclose(ours, 0.2 * plain.transform(digits.test_images[:5]), atol=1e-13)


def test_no_images_have_no_features(features):
    assert features.transform(np.empty((0, 784))).shape == (0, 10)


def test_the_first_digit_of_a_pair_is_positive(digits, features):
    X_train, y_train, X_test, y_test = features.draw("3v6", 60, 80, rng=0)
    threes = as_set(features.transform(digits.train_images)[digits.train_labels == 3])
    sixes = as_set(features.transform(digits.test_images)[digits.test_labels == 6])
    assert as_set(X_train[y_train == 1]) <= threes
    assert as_set(X_test[y_test == -1]) <= sixes
    assert features.labels("3v6") == (3, 6)


def test_a_stratified_draw_is_balanced(features):
    drawn = features.draw("8v9", 1800, 1800, rng=1)
    assert drawn.y_train.sum() == drawn.y_test.sum() == 0
    assert features.draw("8v9", 7, 1800, rng=1).y_train.sum() == 1


def test_a_random_draw_leaves_the_labels_to_chance(features):
    sums = [features.draw("5v4", 60, 100, draw="random", rng=k).y_train.sum() for k in range(40)]
    assert len(set(sums)) > 5
    assert abs(np.mean(sums)) < 6


def test_explicit_counts_are_drawn(features):
    y = features.draw("3v6", draw=(2, 10), n_test=1800, rng=0).y_train
    assert ((y == 1).sum(), (y == -1).sum()) == (2, 10)
    assert len(features.draw("3v6", 12, draw=(0, 12), rng=0).y_train) == 12


def test_no_row_is_drawn_twice(features):
    X_train, _, X_test, _ = features.draw("3v6", 4600, 1968, rng=0)
    assert len(as_set(X_train)) == 4600
    assert len(as_set(X_test)) == 1968


def test_all_rows_are_drawn_when_no_number_is_given(features):
    X_train, _, X_test, _ = features.draw("5v4", rng=0)
    assert (len(X_train), len(X_test)) == (4600, 1874)


def test_fours_make_up_for_the_fives_that_mnist_lacks(features):
    y = features.draw("5v4", 10, 1800, rng=0).y_test
    assert ((y == 1).sum(), (y == -1).sum()) == (892, 908)


def test_the_same_seed_draws_the_same_rows(features):
    one, two = (features.draw("3v6", 40, 60, rng=7) for _ in range(2))
    other = features.draw("3v6", 40, 60, rng=8)
    assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))
    assert not np.array_equal(one.X_train, other.X_train)


def test_a_generator_goes_on_from_draw_to_draw(features):
    rng = np.random.default_rng(7)
    one, two = (features.draw("3v6", 40, 60, rng=rng) for _ in range(2))
    assert not np.array_equal(one.X_train, two.X_train)


@pytest.mark.parametrize("pair", ["3-6", "3v3", "36", "", "3v10"])
def test_an_unknown_pair_is_refused(features, pair):
    assert refusal(ParameterError, features.draw, pair) == (
        f"Unknown pair {pair!r}. Write two different digits with a v between them, "
        "the positive one first: '3v6'."
    )


def test_a_digit_that_is_not_loaded_is_refused(features):
    assert refusal(DataError, features.draw, "3v7") == (
        "Task 3v7 needs images of 7, but only 3, 4, 5, 6, 8, 9 are loaded. "
        "All ten digits are in the original files: load_mnist(path)."
    )


def test_more_rows_than_there_are_is_refused(features):
    assert refusal(DataError, features.draw, "3v6", 5000) == (
        "Task 3v6 has 4600 training images, but 5000 were asked for. "
        "Ask for fewer, or load the original files: load_mnist(path)."
    )
    assert refusal(DataError, features.draw, "3v6", draw=(2301, 0)) == (
        "Task 3v6 has 2300 training images of its first digit, but 2301 were asked for. "
        "Ask for fewer, or load the original files: load_mnist(path)."
    )
    assert refusal(DataError, features.draw, "5v4", 10, 1875) == (
        "Task 5v4 has 1874 test images, but 1875 were asked for. Ask for fewer."
    )


def test_a_negative_number_of_rows_is_refused(features):
    assert refusal(ParameterError, features.draw, "3v6", 10, -1) == (
        "The number of test rows must not be negative. Got -1 instead."
    )


def test_an_unknown_draw_is_refused(features):
    assert refusal(ParameterError, features.draw, "3v6", 10, draw="ranom") == (
        "Unknown draw 'ranom'. Choose from stratified, random. Did you mean 'random'?"
    )


def test_counts_that_contradict_n_train_are_refused(features):
    assert refusal(ParameterError, features.draw, "3v6", 13, draw=(2, 10)) == (
        "draw=(2, 10) sums to 12, but n_train is 13."
    )
    assert refusal(ParameterError, features.draw, "3v6", draw=(2, -1)) == (
        "draw must be two counts, like (2, 10). Got (2, -1) instead."
    )


@pytest.mark.parametrize("n_components", [0, 784, 2.5])
def test_a_wrong_number_of_components_is_refused(digits, n_components):
    assert refusal(ParameterError, DigitFeatures, digits, n_components) == (
        "The 'n_components' parameter of DigitFeatures must be an integer from 1 to 783. "
        f"Got {n_components} instead."
    )


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_wrong_scale_is_refused(digits, scale):
    assert refusal(ParameterError, DigitFeatures, digits, 10, scale) == (
        f"The 'scale' parameter of DigitFeatures must be a positive float. Got {scale} instead."
    )
