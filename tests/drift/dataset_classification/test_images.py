"""Images: corruptions do what they say, and a planted mark is found; the network needs PyTorch."""

import numpy as np
import pytest
from scipy import ndimage
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from aboveboard.core.errors import InputError
from aboveboard.drift import DatasetClassification
from aboveboard.drift.dataset_classification._images import corruption


def pictures(n, seed=0, size=16, channels=1):
    """Return smooth random pictures."""
    noise = np.random.default_rng(seed).normal(size=(n, size, size, channels))
    smooth = ndimage.gaussian_filter(noise, sigma=(0, 2, 2, 0))
    return np.clip(128 + 400 * smooth, 0, 255).astype(np.uint8)


def flat_logistic():
    return make_pipeline(
        FunctionTransformer(lambda X: X.reshape(len(X), -1) / 255.0), LogisticRegression(C=0.1, max_iter=300)
    )


def test_corruptions_do_what_they_say():
    rng, images = np.random.default_rng(0), pictures(40, channels=3)
    noisy = corruption("noise:0.1")(np.full_like(images, 128), rng)
    assert noisy.std() == pytest.approx(25.5, rel=0.05)
    blurred = corruption("blur:1.5")(images, rng)
    np.testing.assert_allclose(
        blurred[0, ..., 0], ndimage.gaussian_filter(images[0, ..., 0].astype(float), 1.5), atol=1
    )
    low = corruption("low_resolution:8")(images, rng)
    assert np.abs(low.astype(float) - images).mean() > 0
    np.testing.assert_allclose(low.mean(axis=(1, 2)), images.mean(axis=(1, 2)), atol=1.5)
    jpeg = corruption("jpeg:30")(images, rng)
    assert jpeg.shape == images.shape
    assert 0 < np.abs(jpeg.astype(float) - images).mean() < 20
    grey = corruption("grey")(images, rng)
    assert (grey[..., 0] == grey[..., 2]).all()
    jittered = corruption("colour")(images, rng)
    assert jittered.shape == images.shape
    assert (corruption("grey")(images[..., :1], rng) == images[..., :1]).all()


@pytest.mark.parametrize("name", ["noise", "blur:", "blur:x", "blur:-1", "jpeg:101", "sepia", "grey:1", "noise:inf"])
def test_corruptions_that_there_are_not_are_refused(name):
    with pytest.raises(InputError, match="ladder"):
        corruption(name)


def test_an_estimator_of_one_s_own_works_without_pytorch_and_a_planted_mark_is_located():
    marked = pictures(300, seed=1)
    marked[:, :4, :4] = 255
    test = DatasetClassification("image", estimator=flat_logistic(), ladder=["blur:1"], n_pseudo=1, random_state=0).fit(
        {"plain": pictures(300), "marked": marked}
    )
    assert test.result_.accuracy > 0.85
    assert test.pseudo_["p_value"].iloc[0] > 0.001
    assert test.importance_["column"].iloc[0] == "rows 0 to 3, columns 0 to 3"
    assert test.ladder_["taken_away"].tolist() == ["nothing", "blur:1"]


def test_an_embedding_of_one_s_own_works_without_pytorch():
    dark = (pictures(250, seed=1) * 0.7).astype(np.uint8)
    test = DatasetClassification(
        "image", embedding=lambda images: images.reshape(len(images), -1)[:, ::16] / 255.0, controls=(), random_state=0
    ).fit({"plain": pictures(250), "dark": dark})
    assert test.result_.p_value < 1e-6
    assert test.source_proba(dark[:3]).shape == (3, 2)


def test_fractions_and_bytes_are_the_same_picture():
    images = pictures(300)
    settings = {"estimator": flat_logistic(), "controls": (), "random_state": 0}
    one = DatasetClassification("image", **settings).fit(
        {"a": images[:150].repeat(2, 0), "b": images[150:].repeat(2, 0)}
    )
    half = images[150:].repeat(2, 0)[..., 0] / 255.0
    other = DatasetClassification("image", **settings).fit({"a": images[:150].repeat(2, 0), "b": half})
    assert one.result_.n_correct == other.result_.n_correct


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (np.zeros((300, 784)), "shape"),
        (np.zeros((300, 28, 28, 2), dtype=np.uint8), "shape"),
        (np.zeros((300, 28, 28), dtype=np.int64), "pixels of type"),
        (np.full((300, 28, 28), 2.0), "fractions"),
        (np.zeros((300, 20, 28), dtype=np.uint8), "differ in size"),
    ],
)
def test_what_is_no_picture_is_refused(bad, message):
    images = pictures(300, size=28)
    with pytest.raises(InputError, match=message):
        DatasetClassification("image", estimator=flat_logistic()).fit({"a": images, "b": bad})


def test_the_torch_network_finds_a_weak_mark():
    pytest.importorskip("torch")
    images = pictures(460, seed=1, size=8)
    bright = images.copy()
    bright[:, ::2] = np.clip(bright[:, ::2] + 6.0, 0, 255).astype(np.uint8)  # faint stripes
    test = DatasetClassification("image", controls=(), random_state=0)
    test.fit({"plain": images[:230], "striped": bright[230:]})
    assert test.result_.classifier == "convolutional network"
    assert test.result_.accuracy > 0.8


@pytest.mark.slow
def test_the_torch_network_gives_the_same_again_and_its_features_can_be_probed():
    pytest.importorskip("torch")
    rng, images = np.random.default_rng(0), pictures(460, seed=1, size=8)
    sources = {"plain": images[:230], "dark": (0.9 * images[230:]).astype(np.uint8)}
    test = DatasetClassification("image", controls=("ladder",), ladder=["noise:0.5"], random_state=0).fit(sources)
    again = DatasetClassification("image", controls=(), random_state=0).fit(sources)
    assert test.ladder_["accuracy"][1] < test.ladder_["accuracy"][0]
    assert again.result_.n_correct == test.result_.n_correct
    probe = test.transfer(images, rng.permutation(np.repeat([0, 1], 230)))
    assert probe["features"].tolist() == ["classifier of sources", "random weights", "supervised"]
    assert ((probe["low"] < 0.55) & (probe["high"] > 0.45)).all()  # labels drawn at random
