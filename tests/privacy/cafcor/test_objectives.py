"""Gradients of softmax regression against differences of the loss, clipped one by one."""

import numpy as np
import pytest
from scipy.special import log_softmax

from aboveboard.core import InputError
from aboveboard.privacy import SoftmaxRegression, clipped_mean
from aboveboard.privacy.cafcor._objectives import objective_of

FEATURES, CLASSES = 4, 3
MODEL = SoftmaxRegression(FEATURES, CLASSES)


def examples(seed=0, n=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, FEATURES)), rng.integers(0, CLASSES, n), rng.normal(size=MODEL.dimension)


def loss(parameters, x, label):
    table = parameters.reshape(FEATURES + 1, CLASSES)
    return -log_softmax(x @ table[:-1] + table[-1])[label]


def by_differences(parameters, x, label, step=1e-6):
    moved = step * np.eye(MODEL.dimension)
    return np.array([(loss(parameters + d, x, label) - loss(parameters - d, x, label)) / (2 * step) for d in moved])


@pytest.mark.parametrize("clip", [0.1, 1.0, 1e6])
def test_the_sum_is_that_of_differences_of_the_loss_clipped_one_by_one(clip):
    X, y, parameters = examples()
    rows = np.stack([by_differences(parameters, x, label) for x, label in zip(X, y, strict=True)])
    expected = clipped_mean(rows, clip) * len(X)
    np.testing.assert_allclose(MODEL.clipped_sum(parameters, X, y, clip), expected, rtol=0, atol=1e-7)


def test_single_precision_is_kept_for_the_work_and_not_for_the_result():
    X, y, parameters = examples()
    narrow = MODEL.clipped_sum(parameters, X.astype(np.float32), y, 1.0)
    assert narrow.dtype == np.float64
    np.testing.assert_allclose(narrow, MODEL.clipped_sum(parameters, X, y, 1.0), atol=1e-5)
    assert MODEL.decision(parameters, X.astype(np.float32)).dtype == np.float32


def test_no_examples_have_no_gradient():
    X, y, parameters = examples(n=0)
    assert not MODEL.clipped_sum(parameters, X, y, 1.0).any()


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((5, 3)), np.zeros(5, dtype=int), "4 columns"),
        (np.zeros((5, 4)), np.zeros(4, dtype=int), "one label per example"),
        (np.zeros((5, 4)), np.full(5, 3), "from 0 to 2"),
        (np.zeros((5, 4)), np.full(5, -1), "from 0 to 2"),
        (np.zeros((5, 4)), np.zeros(5), "from 0 to 2"),
        (np.full((5, 4), np.nan), np.zeros(5, dtype=int), "missing"),
        (np.zeros(5), np.zeros(5, dtype=int), "shape"),
    ],
)
def test_examples_that_do_not_fit_are_refused(X, y, message):
    with pytest.raises(InputError, match=message):
        MODEL.check(X, y)


def test_models_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="n_classes"):
        SoftmaxRegression(4, 1)
    with pytest.raises(InputError, match="n_features"):
        SoftmaxRegression(0, 2)
    with pytest.raises(InputError, match="the model is 'forest'"):
        objective_of("forest")
    assert objective_of(MODEL) is MODEL
