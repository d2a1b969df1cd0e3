"""Inverse-Hessian products against dense linear algebra, and EK-FAC where it must be exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._curvature import conjugate_gradient, solve_exactly
from aboveboard.unlearning.editable_cbm._linear import LabelLayer, LinearConcepts, with_ones


def spd(p, seed):
    root = np.random.default_rng(seed).normal(size=(p, p + 2))
    return root @ root.T + 0.1 * np.eye(p)


@given(st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_both_solvers_invert_positive_definite_matrices(p, seed):
    H, v = spd(p, seed), np.random.default_rng(seed).normal(size=p)
    expected = np.linalg.inv(H) @ v
    assert np.allclose(solve_exactly(H, v), expected, rtol=1e-7, atol=1e-9)
    found = conjugate_gradient(lambda w: H @ w, v)
    assert np.linalg.norm(H @ found - v) <= 1e-5 * np.linalg.norm(v)


def test_a_direction_of_negative_curvature_is_refused():
    H = np.diag([1.0, -1.0])
    with pytest.raises(InputError, match="not convex"):
        conjugate_gradient(lambda w: H @ w, np.ones(2))
    with pytest.raises(InputError, match="not convex"):
        solve_exactly(H, np.ones(2))


def test_conjugate_gradients_say_when_they_do_not_arrive():
    scale = np.logspace(0, 14, 1500)
    with pytest.raises(InputError, match="did not converge"):
        conjugate_gradient(lambda w: scale * w, np.ones(1500))


@pytest.fixture
def parts():
    rng = np.random.default_rng(3)
    design = with_ones(rng.normal(size=(60, 4)))
    concepts = rng.integers(0, 2, (60, 3)).astype(float)
    concepts[5, 1] = np.nan
    return rng, design, concepts


@pytest.mark.parametrize("loss", ["log_loss", "squared_error"])
def test_gradients_and_hessians_of_the_heads_are_derivatives_of_the_loss(parts, loss):
    rng, design, concepts = parts
    heads = LinearConcepts(loss, 0.3)
    theta = rng.normal(size=(3, 5))

    def value(flat):
        scores = design @ flat.reshape(3, 5).T
        known = ~np.isnan(concepts)
        target = np.nan_to_num(concepts)
        if loss == "squared_error":
            each = 0.5 * (scores - target) ** 2
        else:
            each = np.log1p(np.exp(scores)) - target * scores
        return each[known].sum() + 0.15 * flat @ flat

    def gradient(flat):
        moved = flat.reshape(3, 5)
        return heads.gradient(moved, design, heads.outputs(moved, design), concepts).ravel()

    outputs = heads.outputs(theta, design)
    assert np.allclose(gradient(theta.ravel()), approx_fprime(theta.ravel(), value, 1e-6), atol=1e-3)
    dense = approx_fprime(theta.ravel(), gradient, 1e-6)
    for j in range(3):
        block = slice(5 * j, 5 * j + 5)
        found = heads.hessian(theta, design, outputs, concepts, j) + 0.3 * np.eye(5)
        assert np.allclose(found, dense[block, block], atol=1e-3)
    v = rng.normal(size=15)
    assert np.allclose(heads.operator(theta, design, outputs, concepts)(v), dense @ v, atol=1e-3)


@pytest.mark.parametrize("loss", ["log_loss", "squared_error"])
def test_gradient_and_hessian_of_the_label_layer_are_derivatives_of_its_loss(parts, loss):
    rng, _, _ = parts
    inputs, labels = with_ones(rng.random((60, 3))), rng.integers(0, 3, 60)
    layer = LabelLayer(loss, 0.3)
    theta = rng.normal(size=(3, 4))

    def gradient(flat):
        moved = flat.reshape(3, 4)
        return layer.gradient(moved, inputs, labels, layer.outputs(moved, inputs)).ravel()

    def value(flat):
        return layer.value(flat.reshape(3, 4), inputs, labels)

    assert np.allclose(gradient(theta.ravel()), approx_fprime(theta.ravel(), value, 1e-6), atol=1e-3)
    dense = approx_fprime(theta.ravel(), gradient, 1e-6)
    outputs = layer.outputs(theta, inputs)
    assert np.allclose(layer.hessian(inputs, outputs) + 0.3 * np.eye(12), dense, atol=1e-3)
    v = rng.normal(size=(3, 4))
    exact = layer.step(theta, inputs, outputs, v, "exact")
    assert np.allclose(dense @ exact.ravel(), v.ravel(), atol=1e-3)
    assert np.allclose(layer.step(theta, inputs, outputs, v, "cg"), exact, rtol=1e-3, atol=1e-5)


def test_long_data_in_chunks_give_the_same_hessian(parts):
    rng, _, _ = parts
    inputs = with_ones(rng.random((9_000, 2)))
    layer = LabelLayer("log_loss", 1.0)
    outputs = layer.outputs(rng.normal(size=(3, 3)), inputs)
    expected = sum(np.kron(np.diag(q) - np.outer(q, q), np.outer(b, b)) for q, b in zip(outputs, inputs, strict=True))
    assert np.allclose(layer.hessian(inputs, outputs), expected)


def test_ekfac_is_exact_where_the_curvature_is_a_kronecker_product(parts):
    """Squared loss: every row's gradient at the output has the same, isotropic spread."""
    rng, design, _ = parts
    heads, layer = LinearConcepts("squared_error", 0.3), LabelLayer("squared_error", 0.3)
    concepts = rng.integers(0, 2, (60, 3)).astype(float)
    V = rng.normal(size=(3, 5))
    expected = V @ np.linalg.inv(design.T @ design + 0.3 * np.eye(5))
    outputs = heads.outputs(V, design)
    assert np.allclose(heads.kronecker_step(V, design, outputs, concepts, V), expected)
    assert np.allclose(layer.step(V, design, layer.outputs(V, design), V, "ekfac"), expected)


def test_ekfac_is_exact_where_all_rows_have_equal_probabilities(parts):
    """Softmax at parameters 0: diag(q) - q q' is the same for all rows, so the Hessian is a Kronecker product."""
    rng, design, _ = parts
    layer = LabelLayer("log_loss", 0.3)
    theta = np.zeros((4, 5))
    outputs = layer.outputs(theta, design)
    V = rng.normal(size=(4, 5))
    exact = layer.step(theta, design, outputs, V, "exact")
    assert np.allclose(layer.step(theta, design, outputs, V, "ekfac"), exact)


def test_the_expected_curvature_of_ekfac_is_what_sampled_labels_give(parts):
    """The mean over labels drawn from the model, which the method needs no drawing for."""
    rng, design, _ = parts
    layer = LabelLayer("log_loss", 0.3)
    outputs = layer.outputs(rng.normal(size=(3, 5)), design)
    factors = layer._kronecker(outputs=outputs, inputs=design)
    total = np.zeros((3, 5))
    draws = 4_000
    for _ in range(draws):
        labels = (outputs.cumsum(axis=1) < rng.random(60)[:, None]).sum(axis=1)
        s = outputs - np.eye(3)[np.minimum(labels, 2)]
        total += np.einsum("ns,na->sa", (s @ factors.outputs) ** 2, (design @ factors.inputs) ** 2)
    assert np.allclose(total / draws, factors.curvature, rtol=0.08, atol=0.05 * factors.curvature.max())
