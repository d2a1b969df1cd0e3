"""Pairs of PyTorch modules: equal to the linear path where they are linear, derivatives of their loss where not."""

import copy

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.unlearning import ConceptBottleneckClassifier, EditableCBM

torch = pytest.importorskip("torch")

D, K, M = 5, 3, 3
L2 = (1.0, 1.0)


def bottleneck_data(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    C = (X @ rng.normal(size=(D, K)) + rng.logistic(size=(n, K)) > 0).astype(float)
    y = (1.5 * C @ rng.normal(size=(K, M)) + rng.gumbel(size=(n, M))).argmax(axis=1)
    return X, C, y


def as_pair(model):
    """The classifier's parts as modules."""
    g, f = torch.nn.Linear(D, K).double(), torch.nn.Linear(K, M).double()
    with torch.no_grad():
        for layer, weight, bias in (
            (g, model.concept_coef_, model.concept_intercept_),
            (f, model.coef_, model.intercept_),
        ):
            layer.weight.copy_(torch.as_tensor(weight))
            layer.bias.copy_(torch.as_tensor(bias))
    return g, f


def small_network(seed=0):
    torch.manual_seed(seed)
    g = torch.nn.Sequential(torch.nn.Linear(D, 3), torch.nn.Tanh(), torch.nn.Linear(3, K)).double()
    return g, torch.nn.Linear(K, M).double()


def small_images(n=60):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    g = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3, stride=2, padding=1), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(8, K)
    )
    images = torch.as_tensor(rng.normal(size=(n, 1, 4, 4)))
    C = rng.integers(0, 2, (n, K)).astype(float)
    return (g, torch.nn.Linear(K, M)), images, C, np.arange(n) % M


@pytest.mark.parametrize("solver", ["exact", "cg", "ekfac"])
def test_a_linear_pair_is_edited_as_the_classifier_is(solver):
    X, C, y = bottleneck_data()
    model = ConceptBottleneckClassifier(l2=L2, tol=1e-9).fit(X, C, y)
    options = {"solver": solver, "polish_above": None, "damping": 1e-6}
    linear = EditableCBM(model, X, C, y, **options)
    pair = EditableCBM(as_pair(model), X, C, y, l2=L2, batch_size=37, **options)
    for editable in (linear, pair):
        editable.relabel([1, 2, 3], [0, 1, 2], 1 - C[[1, 2, 3], [0, 1, 2]])
        editable.forget([5, 6, 7])
        editable.add(X[:3] + 0.1, C[:3], y[:3])
    tolerance = {"exact": 1e-4, "cg": 1e-4, "ekfac": 2e-2}[solver]
    assert np.allclose(pair.predict_proba(X), linear.predict_proba(X), atol=tolerance)
    for editable in (linear, pair):
        editable.drop_concepts(1)
    assert np.allclose(pair.predict_proba(X), linear.predict_proba(X), atol=2e-2)


def test_the_edited_modules_predict_what_the_wrapper_predicts_and_the_given_ones_are_left_alone():
    X, C, y = bottleneck_data()
    g, f = small_network()
    before = copy.deepcopy(g.state_dict())
    editable = EditableCBM.polished((g, f), X, C, y, l2=(2.0, 1.0))
    editable.forget([1, 2])
    editable.drop_concepts([0])
    new_g, new_f = editable.model
    with torch.no_grad():
        scores = new_f(torch.sigmoid(new_g(torch.as_tensor(X))))
    assert np.allclose(scores.softmax(dim=1).numpy(), editable.predict_proba(X))
    assert np.array_equal(scores.argmax(dim=1).numpy(), editable.predict(X))
    assert all(torch.equal(before[name], tensor) for name, tensor in g.state_dict().items())


def test_hessian_products_are_those_of_the_dense_hessian_and_of_differences():
    X, C, y = bottleneck_data(40)
    C[3, 1] = np.nan
    editable = EditableCBM.polished(small_network(), X, C, y, l2=(2.0, 1.0), damping=0.0, batch_size=17)
    part, state = editable._backend.part, editable._state
    at = (state.theta, state.design, state.outputs, state.concepts)
    dense = part.hessian(*at, 0) + 2.0 * np.eye(state.theta.size)
    v = np.random.default_rng(0).normal(size=state.theta.size)
    assert np.allclose(part.operator(*at)(v), dense @ v)
    step = 1e-5 * v
    ahead, behind = (part.gradient(state.theta + sign * step, *at[1:]) for sign in (1, -1))
    assert np.allclose((ahead - behind).ravel() / 2e-5, dense @ v, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_a_network_that_forgets_rows_ends_next_to_its_refit(solver):
    X, C, y = bottleneck_data()
    editable = EditableCBM.polished(
        small_network(), X, C, y, l2=(5.0, 1.0), solver=solver, polish_above=None, damping=1e-6
    )
    editable.forget([1])
    found = editable.compare_with_retrain()
    assert found.concept_gap < 0.25
    assert found.label_gap < 0.25


def test_ekfac_of_one_layer_whose_rows_have_equal_curvature_is_exact():
    """At logits 0 all rows have p (1 - p) = 1 / 4, so the Hessian is a Kronecker product."""
    X, C, y = bottleneck_data(50)
    g, f = torch.nn.Linear(D, K).double(), torch.nn.Linear(K, M).double()
    editable = EditableCBM.polished((g, f), X, C, y, l2=L2, damping=0.0)
    part, state = editable._backend.part, editable._state
    zero = np.zeros_like(state.theta)
    v = np.random.default_rng(0).normal(size=zero.shape)
    dense = part.hessian(zero, state.design, state.outputs, state.concepts, 0) + np.eye(zero.size)
    found = part.kronecker_step(zero, state.design, state.outputs, state.concepts, v)
    assert np.allclose(dense @ found.ravel(), v.ravel())


def test_ekfac_factors_of_convolutions_are_sums_over_rows_of_expected_squares():
    pair, images, C, y = small_images(20)
    editable = EditableCBM.polished(pair, images, C, y, l2=(5.0, 1.0), batch_size=7)
    part, state = editable._backend.part, editable._state
    parameters = {name: tensor.requires_grad_() for name, tensor in part.unpacked(state.theta).items()}
    layers = part._kronecker_layers()
    seen = dict.fromkeys(layers, 0.0)
    for name, inputs, gradients in part._layer_gradients(state.theta, state.design, state.concepts, layers):
        seen[name] += torch.einsum("knls,nla->knsa", gradients, inputs).square().sum(dim=(0, 1))
    expected = dict.fromkeys(layers, 0.0)
    for i in range(20):
        logits = torch.func.functional_call(part.module, parameters, (images[i : i + 1].double(),))[0]
        chances = logits.sigmoid().detach()
        for j in range(K):
            grads = torch.autograd.grad(logits[j], list(parameters.values()), retain_graph=True)
            named = dict(zip(parameters, grads, strict=True))
            for name in layers:
                weight = named[f"{name}.weight"].flatten(1)
                matrix = torch.cat([weight, named[f"{name}.bias"][:, None]], dim=1)
                expected[name] = expected[name] + chances[j] * (1 - chances[j]) * matrix.square()
    for name in layers:
        assert torch.allclose(seen[name], expected[name])


def test_a_network_of_images_is_edited_with_ekfac():
    pair, images, C, y = small_images()
    editable = EditableCBM.polished(pair, images, C, y, l2=(5.0, 1.0), solver="ekfac")
    report = editable.forget([3, 4])
    assert report.residual_gradient_norm < 1e-3
    assert editable.predict(images[:4]).shape == (4,)


def test_only_parameters_that_require_gradients_are_edited():
    X, C, y = bottleneck_data()
    g, f = small_network()
    for parameter in g[0].parameters():
        parameter.requires_grad_(False)
    editable = EditableCBM.polished((g, f), X, C, y, l2=L2)
    editable.forget([1, 2, 3])
    assert torch.equal(editable.model[0][0].weight, g[0].weight)
    assert not torch.equal(editable.model[0][2].weight, g[2].weight)


def test_an_added_concept_widens_the_last_layers():
    X, C, y = bottleneck_data()
    g, f = small_network()
    editable = EditableCBM.polished((g, f), X, C, y, l2=(2.0, 1.0), polish_above=None)
    editable.add_concepts((X[:, :1] > 0).astype(float))
    assert (editable.model[0][-1].out_features, editable.model[1].in_features) == (K + 1, K + 1)
    assert editable.predict_concepts(X).shape == (200, K + 1)
    comparison = editable.compare_with_retrain()
    assert comparison.f1_gap < 0.05
    assert (f.in_features, g[-1].out_features) == (K, K)


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (lambda g, f: (g, torch.nn.Linear(K, M, bias=False)), "without a bias"),
        (lambda g, f: (g, torch.nn.Sequential(f, torch.nn.ReLU())), "the label layer is a Sequential"),
        (lambda g, f: (g, torch.nn.Linear(K, 1)), "one output"),
        (lambda g, f: (g, torch.nn.Linear(K + 1, M)), "g gives shape"),
        (lambda g, f: (abs, f), "g is a builtin"),
        (lambda g, f: (g.requires_grad_(False), f), "no parameter of g requires a gradient"),
    ],
)
def test_modules_that_cannot_be_edited_are_refused(pair, message):
    X, C, y = bottleneck_data(30)
    with pytest.raises(InputError, match=message):
        EditableCBM(pair(*small_network()), X, C, y)


def test_other_bad_input_is_refused():
    X, C, y = bottleneck_data(30)
    pair = small_network()
    with pytest.raises(InputError, match="not at the optimum"):
        EditableCBM(pair, X, C, y)
    with pytest.raises(InputError, match="X has shape"):
        EditableCBM(pair, X[0], C, y)
    with pytest.raises(InputError, match="NaN or infinity"):
        EditableCBM(pair, np.where(X > 1, np.nan, X), C, y)
    with pytest.raises(InputError, match="batch_size is 0"):
        EditableCBM(pair, X, C, y, batch_size=0)
    with pytest.raises(InputError, match="which the model does not know"):
        EditableCBM(pair, X, C, np.full(30, 7))


def test_ekfac_refuses_layers_that_it_does_not_cover():
    X, C, y = bottleneck_data(30)
    g = torch.nn.Sequential(torch.nn.Linear(D, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, K))
    editable = EditableCBM.polished((g, torch.nn.Linear(K, M)), X, C, y, l2=(9.0, 1.0), solver="ekfac")
    with pytest.raises(InputError, match="LayerNorm"):
        editable.forget([0])
    shared = torch.nn.Linear(D, D)
    twice = torch.nn.Sequential(shared, torch.nn.Tanh(), shared, torch.nn.Linear(D, K))
    editable = EditableCBM.polished((twice, torch.nn.Linear(K, M)), X, C, y, l2=(9.0, 1.0), solver="ekfac")
    with pytest.raises(InputError, match="twice"):
        editable.forget([0])


def test_concepts_cannot_be_added_where_the_last_layer_is_frozen_or_no_linear_one():
    X, C, y = bottleneck_data(60)
    g = torch.nn.Sequential(torch.nn.Linear(D, K), torch.nn.Tanh())
    editable = EditableCBM.polished((g, torch.nn.Linear(K, M)), X, C, y, l2=(5.0, 1.0))
    with pytest.raises(InputError, match="concepts cannot be added"):
        editable.add_concepts(C[:, :1])
