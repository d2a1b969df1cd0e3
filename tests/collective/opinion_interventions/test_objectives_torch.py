"""Objectives of one's own are differentiated by PyTorch, and are then as good as those that are built in."""

import numpy as np
import pytest

from aboveboard.collective import FrobeniusBall, OpinionInterventionOptimizer
from aboveboard.core import InputError

torch = pytest.importorskip("torch")

W = np.array([[0, 1.0, 0, 0.5], [1, 0, 2, 0], [0, 2, 0, 1], [0.5, 0, 1, 0]])
S = np.array([1.0, -1.0, 0.5, -0.2])
ROWS, COLS = np.nonzero(W)
UPPER = np.nonzero(np.triu(W))


def polarization(w, y):
    return (y**2).mean()


def directed(w, y):
    return 0.5 * (w * (y[ROWS] - y[COLS]) ** 2).sum()


def pairs(w, y):
    assert w.shape == (8,)
    return 0.5 * (w * (y[np.tile(UPPER[0], 2)] - y[np.tile(UPPER[1], 2)]) ** 2).sum()


@pytest.mark.parametrize(
    ("name", "function", "symmetric"),
    [
        ("polarization", polarization, False),
        ("polarization", polarization, True),
        ("disagreement", directed, False),
        ("disagreement", pairs, True),
    ],
)
def test_a_function_of_torch_tensors_ends_where_the_built_in_objective_does(name, function, symmetric):
    built, own = (
        OpinionInterventionOptimizer(objective, constraint=FrobeniusBall(0.2), symmetric=symmetric).fit(W, S)
        for objective in (name, function)
    )
    assert own.objective_ == pytest.approx(built.objective_, rel=1e-9)
    assert own.gradient_ == pytest.approx(built.gradient_, abs=1e-9)
    assert own.certificate_.holds


def test_a_torch_function_of_the_weights_alone_needs_no_opinions():
    found = OpinionInterventionOptimizer(lambda w, y: (w**2).sum()).fit(W, S)
    assert np.linalg.norm(found.weights_.data) == pytest.approx(0.8 * np.linalg.norm(W))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda w, y: y, "no single number"),
        (lambda w, y: 3.0, "no single number"),
        (lambda w, y: y.sum() * float("nan"), "the objective is nan"),
    ],
)
def test_a_torch_function_that_is_no_objective_is_refused(function, message):
    with pytest.raises(InputError, match=message):
        OpinionInterventionOptimizer(function).fit(W, S)
