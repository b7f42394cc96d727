"""The digits: what the bundle holds, where else images come from, what is refused."""

import gzip
import hashlib
from importlib import resources
from types import SimpleNamespace
from urllib.error import URLError

import numpy as np
import pytest
import sklearn.datasets

from dtsvm.data import Digits, load_mnist
from dtsvm.errors import DataError, ParameterError

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")
TEST_NAMES = ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
# Of the same rows of the original files: train images and labels, test images and labels.
HASHES = ["82708c03a4c9de0c", "bb466d01ef811310", "f0462ec8ac096353", "6a200b47bfafdaf4"]


@pytest.fixture(scope="module")
def bundle():
    return load_mnist()


def idx(array):
    header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    return header + array.astype(np.uint8).tobytes()


def write_mnist(folder, n_train=4, n_test=2, size=28, rename=lambda name: name, pack=False):
    rng = np.random.default_rng(0)
    for names, n in ((NAMES, n_train), (TEST_NAMES, n_test)):
        contents = (rng.integers(0, 256, (n, size, size)), np.arange(n) % 10)
        for name, content in zip(names, contents, strict=True):
            raw = idx(content)
            path = folder / (rename(name) + (".gz" if pack else ""))
            path.write_bytes(gzip.compress(raw) if pack else raw)


def test_the_bundle_holds_the_six_digits_of_the_paper(bundle):
    train, test = np.bincount(bundle.train_labels), np.bincount(bundle.test_labels)
    assert train.tolist() == [0, 0, 0, 2300, 2300, 2300, 2300, 0, 2300, 2300]
    assert test.tolist() == [0, 0, 0, 1010, 982, 892, 958, 0, 974, 1009]
    assert bundle.train_images.dtype == np.uint8
    assert bundle.train_images.shape == (13800, 784)


def test_the_bundled_pixels_are_the_original_ones(bundle):
    seen = [
        hashlib.sha256(array.astype(np.uint8).tobytes()).hexdigest()[:16]
        for array in (
            bundle.train_images,
            bundle.train_labels,
            bundle.test_images,
            bundle.test_labels,
        )
    ]
    assert seen == HASHES


def test_the_bundle_is_under_three_megabytes():
    bundled = resources.files("dtsvm.data").joinpath("digits.idx.xz")
    assert len(bundled.read_bytes()) <= 3_000_000


def test_no_bundled_training_image_is_also_a_test_image(bundle):
    train = {row.tobytes() for row in bundle.train_images}
    assert not any(row.tobytes() in train for row in bundle.test_images)


def test_digits_can_be_narrowed(bundle):
    narrowed = load_mnist(digits=(6, 3))
    assert narrowed.present == (3, 6)
    keep = np.isin(bundle.train_labels, [3, 6])
    np.testing.assert_array_equal(narrowed.train_images, bundle.train_images[keep])
    assert repr(narrowed) == "Digits(4600 train, 1968 test, of 3, 6)"


def test_a_digit_that_is_not_there_is_refused():
    with pytest.raises(DataError) as caught:
        load_mnist(digits=[3, 7, 1])
    assert str(caught.value) == (
        "No image shows 1, 7; these show 3, 4, 5, 6, 8, 9. "
        "All ten digits are in the original files: load_mnist(path)."
    )


@pytest.mark.parametrize("pack", [True, False])
@pytest.mark.parametrize("dotted", [True, False])
def test_a_directory_of_idx_files_is_read(tmp_path, pack, dotted):
    rename = (lambda name: name.replace("-idx", ".idx")) if dotted else (lambda name: name)
    write_mnist(tmp_path, rename=rename, pack=pack)
    digits = load_mnist(tmp_path)
    assert digits.train_images.shape == (4, 784)
    assert digits.test_labels.tolist() == [0, 1]


def test_a_missing_directory_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        load_mnist(tmp_path / "none")
    assert str(caught.value) == (
        f"{tmp_path / 'none'} is not a directory. Give the one that holds train-images-idx3-ubyte, "
        "train-labels-idx1-ubyte, t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte."
    )


def test_a_missing_file_is_named(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / TEST_NAMES[1]).unlink()
    with pytest.raises(DataError) as caught:
        load_mnist(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has no t10k-labels-idx1-ubyte, gzipped or not. "
        "Put the four original MNIST files there."
    )


def test_images_of_another_size_are_refused(tmp_path):
    write_mnist(tmp_path, size=8)
    with pytest.raises(DataError) as caught:
        load_mnist(tmp_path)
    assert str(caught.value) == (
        "The train images must have 784 pixels each (28 x 28), but their shape is (4, 64)."
    )


def test_images_and_labels_must_match_in_number():
    images, labels = np.zeros((3, 784), np.uint8), np.zeros(2, np.int64)
    with pytest.raises(DataError) as caught:
        Digits(images[:2], labels, images, labels)
    assert str(caught.value) == "There are 3 test images, but 2 test labels."


def test_a_path_and_another_source_contradict():
    with pytest.raises(ParameterError) as caught:
        load_mnist("somewhere", source="openml")
    assert str(caught.value) == "Give load_mnist a path or source='openml', not both."


def test_an_unknown_source_is_refused():
    with pytest.raises(ParameterError) as caught:
        load_mnist(source="opnml")
    assert str(caught.value) == (
        "Unknown source 'opnml'. Choose from bundle, openml. Did you mean 'openml'?"
    )


def test_openml_gives_the_official_split(monkeypatch):
    def fetch(name, **options):
        assert name == "mnist_784"
        target = np.array(["7"] * 60_000 + ["3"] * 10)
        return SimpleNamespace(data=np.zeros((60_010, 784), np.int8), target=target)

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    digits = load_mnist(source="openml")
    assert set(digits.train_labels) == {7}
    assert digits.test_labels.tolist() == [3] * 10


def test_being_offline_is_told_in_one_sentence(monkeypatch):
    def fetch(name, **options):
        raise URLError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch)
    with pytest.raises(DataError) as caught:
        load_mnist(source="openml")
    assert str(caught.value) == (
        "MNIST could not be fetched from OpenML: <urlopen error no route to host>. Go online, "
        "give load_mnist the directory of the four IDX files, or use source='bundle'."
    )
