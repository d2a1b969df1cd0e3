"""Edits against refits by scikit-learn or by hand, the order of their error, and what is refused."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, Ridge

from aboveboard.core import InputError
from aboveboard.unlearning import ConceptBottleneckClassifier, EditableCBM, EditReport

D, K, M = 6, 4, 3
L2 = (1.0, 1.0)


def with_ones(A):
    return np.column_stack([A, np.ones(len(A))])


def bottleneck_data(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    C = (X @ rng.normal(size=(D, K)) + rng.logistic(size=(n, K)) > 0).astype(float)
    y = (1.5 * C @ rng.normal(size=(K, M)) + rng.gumbel(size=(n, M))).argmax(axis=1)
    y[:M] = np.arange(M)
    return X, C, y


def fitted(X, C, y, loss="log_loss"):
    return ConceptBottleneckClassifier(loss=loss, l2=L2, tol=1e-8).fit(X, C, y)


def wrapped(X, C, y, loss="log_loss", **options):
    return EditableCBM(fitted(X, C, y, loss), X, C, y, **({"polish_above": None} | options))


def refit(X, C, y, active=None):
    """Return head parameters (k, d + 1) and label parameters (m, active + 1) from scikit-learn."""
    active = np.arange(C.shape[1]) if active is None else np.asarray(active)
    heads = np.vstack([_logistic(with_ones(X), C[:, j], L2[0]) for j in active])
    top = _logistic(with_ones(expit(with_ones(X) @ heads.T)), y, L2[1])
    return heads, top


def _logistic(A, target, l2):
    model = LogisticRegression(C=1 / l2, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=200)
    return model.fit(A, target).coef_


def refit_squared(X, C, y):
    heads = Ridge(alpha=L2[0], fit_intercept=False, solver="svd").fit(with_ones(X), C).coef_
    top = Ridge(alpha=L2[1], fit_intercept=False, solver="svd").fit(with_ones(with_ones(X) @ heads.T), np.eye(M)[y])
    return heads, top.coef_


def parameters(editable):
    model = editable.model
    heads = np.column_stack([model.concept_coef_, model.concept_intercept_])
    return heads, np.column_stack([model.coef_, model.intercept_])


def distance(found, true, before):
    """Distances to the refit as shares of those without an edit, for both parts."""
    return [np.linalg.norm(a - b) / np.linalg.norm(c - b) for a, b, c in zip(found, true, before, strict=True)]


def flipped(C, rows, columns):
    changed = C.copy()
    changed[rows, columns] = 1 - changed[rows, columns]
    return changed


# --- the squared loss is exact -------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "ekfac"])
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32 - 1), data=st.data())
def test_with_the_squared_loss_any_sequence_of_edits_equals_the_refit(solver, seed, data):
    rng = np.random.default_rng(seed)
    X, C, y = bottleneck_data(40, seed)
    editable = wrapped(X, C, y, "squared_error", solver=solver, damping=0.0)
    rows = np.arange(40)
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(["relabel", "forget", "add"]))
        if kind == "relabel":
            places = rng.choice(len(rows), 3, replace=False)
            columns = rng.integers(0, K, 3)
            C = flipped(C, places, columns)
            editable.relabel(rows[places], columns, C[places, columns])
        elif kind == "forget":
            keep = np.setdiff1d(np.arange(len(rows)), rng.choice(len(rows), 4, replace=False))
            editable.forget(np.setdiff1d(rows, rows[keep]))
            X, C, y, rows = X[keep], C[keep], y[keep], rows[keep]
        else:
            more = bottleneck_data(5, int(rng.integers(1000)))
            editable.add(*more)
            X, C, y = (np.concatenate(pair) for pair in zip((X, C, y), more, strict=True))
            rows = editable.row_ids
    for found, true in zip(parameters(editable), refit_squared(X, C, y), strict=True):
        assert np.allclose(found, true, rtol=1e-8, atol=1e-8)


def test_with_the_squared_loss_conjugate_gradients_reach_the_refit_to_their_tolerance():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y, "squared_error", solver="cg", damping=0.0)
    editable.forget([1, 2, 3])
    for found, true in zip(parameters(editable), refit_squared(X[4:], C[4:], y[4:]), strict=True):
        assert not np.allclose(found, true, atol=1e-8)  # row 0 is still there
    editable.forget(0)
    for found, true in zip(parameters(editable), refit_squared(X[4:], C[4:], y[4:]), strict=True):
        assert np.allclose(found, true, atol=1e-5)


# --- the log loss, beside scikit-learn's refit ---------------------------------------------------------------------


@pytest.mark.parametrize("hessian", ["retained", "all"])
@pytest.mark.parametrize("solver", ["exact", "cg"])
def test_corrected_labels_bring_the_model_next_to_the_refit(hessian, solver):
    X, C, y = bottleneck_data()
    rows, columns = np.array([3, 50, 51, 90, 120, 200]), np.array([0, 1, 2, 3, 0, 1])
    editable = wrapped(X, C, y, hessian=hessian, solver=solver, damping=0.0)
    before = parameters(editable)
    corrected = flipped(C, rows, columns)
    editable.relabel(rows, columns, corrected[rows, columns])
    assert max(distance(parameters(editable), refit(X, corrected, y), before)) < 0.15


@pytest.mark.parametrize(("hessian", "bound"), [("retained", 0.05), ("all", 0.1)])
def test_forgotten_rows_leave_the_model_next_to_the_refit(hessian, bound):
    X, C, y = bottleneck_data()
    gone = np.arange(20, 26)
    editable = wrapped(X, C, y, hessian=hessian)
    before = parameters(editable)
    editable.forget(gone)
    keep = np.setdiff1d(np.arange(len(X)), gone)
    assert max(distance(parameters(editable), refit(X[keep], C[keep], y[keep]), before)) < bound


def test_added_rows_bring_the_model_next_to_the_refit():
    X, C, y = bottleneck_data()
    editable = wrapped(X[6:], C[6:], y[6:])
    before = parameters(editable)
    editable.add(X[:6], C[:6], y[:6])
    assert max(distance(parameters(editable), refit(X, C, y), before)) < 0.05
    assert editable.row_ids.tolist() == list(range(300))


@pytest.mark.parametrize(("n_newton", "bound"), [(1, 0.2), (2, 0.01), (4, 1e-5)])
def test_a_dropped_concept_leaves_the_model_next_to_the_refit_without_it(n_newton, bound):
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    before = parameters(editable)[1]
    editable.drop_concepts(1, n_newton=n_newton)
    kept = [0, 2, 3]
    top = refit(X, C, y, kept)[1]
    found = parameters(editable)[1]
    assert np.all(found[:, 1] == 0)
    moved = np.linalg.norm(before[:, [*kept, K]] - top)
    assert np.linalg.norm(found[:, [*kept, K]] - top) < bound * moved


def test_the_papers_step_for_a_dropped_concept_is_worse_than_none_and_ours_is_not():
    """With the Hessian at the old inputs the step overshoots: why the concept is absorbed first."""
    X, C, y = bottleneck_data()
    model = fitted(X, C, y)
    zeroed = model.predict_concepts(X)
    old_inputs = with_ones(zeroed)
    zeroed[:, 1] = 0
    inputs = with_ones(zeroed)
    theta = np.column_stack([model.coef_, model.intercept_])
    q_old, q = softmax(old_inputs @ theta.T, axis=1), softmax(inputs @ theta.T, axis=1)
    gradient = (q - np.eye(M)[y]).T @ inputs + L2[1] * theta
    H = sum(np.kron(np.diag(p) - np.outer(p, p), np.outer(b, b)) for p, b in zip(q_old, old_inputs, strict=True))
    papers = theta - np.linalg.solve(H + L2[1] * np.eye(len(H)), gradient.ravel()).reshape(theta.shape)
    true = np.insert(refit(X, C, y, [0, 2, 3])[1], 1, 0.0, axis=1)
    editable = wrapped(X, C, y)
    editable.drop_concepts(1)
    found = parameters(editable)[1]
    assert np.linalg.norm(papers - true) > np.linalg.norm(theta - true)
    assert np.linalg.norm(found - true) < 0.01 * np.linalg.norm(theta - true)


def test_an_added_concept_gets_the_head_and_the_label_layer_of_the_refit():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C[:, :3], y)
    report = editable.add_concepts(pd.DataFrame({"late": C[:, 3]}), n_newton=4)
    heads, top = refit(X, C, y)
    found = parameters(editable)
    assert np.allclose(found[0], heads, atol=1e-4)
    assert np.allclose(found[1], top, atol=1e-3)
    assert editable.concept_names[-1] == "late"
    assert (report.kind, report.n_edits) == ("add_concepts", 1)
    assert editable.drop_concepts("late").n_edits == 1


def test_leaving_out_single_rows_agrees_with_brute_force():
    X, C, y = bottleneck_data(120)
    model = fitted(X, C, y)
    start = parameters(wrapped(X, C, y))
    true, found = [], []
    for row in range(20):
        editable = EditableCBM(model, X, C, y, polish_above=None)
        editable.forget([row])
        keep = np.arange(120) != row
        true.append(refit(X[keep], C[keep], y[keep]))
        found.append(parameters(editable))
    for part in range(2):
        moved = [np.ravel([either[part] - start[part] for either in both]) for both in (true, found)]
        assert np.corrcoef(*moved)[0, 1] > 0.99


def test_twice_the_edit_leaves_four_times_the_error():
    X, C, y = bottleneck_data(150)
    X, C, y = (np.concatenate([part, part]) for part in (X, C, y))
    once, twice = np.arange(5, 8), np.concatenate([np.arange(5, 8), np.arange(155, 158)])
    errors = []
    for gone in (once, twice):
        editable = wrapped(X, C, y)
        editable.forget(gone)
        keep = np.setdiff1d(np.arange(300), gone)
        errors.append(np.linalg.norm(parameters(editable)[0] - refit(X[keep], C[keep], y[keep])[0]))
    assert 3.5 < errors[1] / errors[0] < 5.0


def test_there_and_back_returns_to_second_order():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    before = parameters(editable)
    out = editable.relabel([1, 2, 3], 0, 1 - C[[1, 2, 3], 0])
    editable.relabel([1, 2, 3], 0, C[[1, 2, 3], 0])
    for was, now in zip(before, parameters(editable), strict=True):
        assert np.linalg.norm(now - was) < 0.05 * out.step_norm


def test_the_shift_of_the_label_layer_is_the_papers_difference_of_gradients():
    """At an optimum, the gradient at the new inputs less that at the old ones is the gradient at the new inputs."""
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y, hessian="all")
    heads, theta = parameters(editable)
    editable.relabel([1, 2], [0, 1], 1 - C[[1, 2], [0, 1]])
    new_heads, found = parameters(editable)
    old, new = (with_ones(expit(with_ones(X) @ h.T)) for h in (heads, new_heads))
    q_old, q_new = (softmax(inputs @ theta.T, axis=1) for inputs in (old, new))
    H = sum(np.kron(np.diag(p) - np.outer(p, p), np.outer(b, b)) for p, b in zip(q_old, old, strict=True))
    difference = (q_old - np.eye(M)[y]).T @ old - (q_new - np.eye(M)[y]).T @ new
    papers = theta + np.linalg.solve(H + L2[1] * np.eye(len(H)), difference.ravel()).reshape(theta.shape)
    assert np.allclose(found, papers, atol=1e-5)


# --- concepts that say nothing -------------------------------------------------------------------------------------


def test_dropping_a_concept_of_weight_zero_and_constant_output_changes_no_prediction():
    X, C, y = bottleneck_data()
    model = fitted(X, np.column_stack([C, np.ones(300)]), y)
    model.concept_coef_[-1], model.concept_intercept_[-1] = 0.0, 0.0
    constant = with_ones(np.column_stack([expit(X @ model.concept_coef_[:K].T + model.concept_intercept_[:K])]))
    top = _logistic(constant, y, L2[1])
    model.coef_ = np.insert(top[:, :-1], K, 0.0, axis=1)
    model.intercept_ = top[:, -1]
    labels = np.column_stack([C, np.arange(300) % 2])
    editable = EditableCBM.polished(model, X, labels, y, polish_above=None)
    at_rest = editable.predict_proba(X)
    editable.drop_concepts(K, n_newton=4)
    kept = refit(X, C, y)
    expected = softmax(with_ones(expit(with_ones(X) @ kept[0].T)) @ kept[1].T, axis=1)
    assert np.allclose(editable.predict_proba(X), expected, atol=1e-4)
    assert np.allclose(at_rest, expected, atol=0.02)


def test_zeroed_and_deleted_inputs_are_the_same_label_layer():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    editable.drop_concepts([0, 2], n_newton=6)
    deleted = refit(X, C, y, [1, 3])[1]
    assert np.allclose(np.delete(parameters(editable)[1], [0, 2], axis=1), deleted, atol=1e-5)
    assert np.isnan(editable.predict_concepts(X)[:, [0, 2]]).all()
    assert np.allclose(editable.model.predict_proba(X), editable.predict_proba(X))


def test_a_concept_that_another_one_repeats_can_still_be_told():
    X, C, y = bottleneck_data(1000)
    editable = wrapped(X, np.column_stack([C, C[:, 0]]), y)
    report = editable.drop_concepts("concept0")
    assert report.repredictability["concept0"] > 0.75
    assert "can still be told" in report.notes[0]


def test_a_concept_that_nothing_repeats_cannot_be_told():
    rng = np.random.default_rng(1)
    X, C, y = bottleneck_data(2000)
    editable = wrapped(X, np.column_stack([C, rng.integers(0, 2, 2000)]), y)
    assert abs(editable.drop_concepts(K).repredictability[f"concept{K}"] - 0.5) < 0.06


# --- reports -------------------------------------------------------------------------------------------------------


def test_the_report_holds_the_gradient_that_is_left():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    report = editable.forget(np.arange(30))
    heads, top = parameters(editable)
    rest = with_ones(X[30:])
    outputs = expit(rest @ heads.T)
    gradient = (outputs - C[30:]).T @ rest + L2[0] * heads
    inputs = with_ones(outputs)
    label = (softmax(inputs @ top.T, axis=1) - np.eye(M)[y[30:]]).T @ inputs + L2[1] * top
    assert report.concepts.residual_gradient_norm == pytest.approx(np.linalg.norm(gradient) / 270)
    assert report.labels.residual_gradient_norm == pytest.approx(np.linalg.norm(label) / 270)
    assert report.residual_gradient_norm == max(np.linalg.norm(gradient), np.linalg.norm(label)) / 270
    assert json.loads(json.dumps(report.to_dict()))["kind"] == "forget"


def test_a_long_step_is_warned_of_and_a_short_one_is_not():
    X, C, y = bottleneck_data()
    assert wrapped(X, C, y).forget([5]).warning == ""
    assert "may be far from a retrained model" in wrapped(X, C, y).relabel(range(300), 0, 1 - C[:, 0]).warning


def test_an_edit_that_leaves_a_large_gradient_is_polished_and_says_so():
    X, C, y = bottleneck_data()
    for options, how in (({}, "Newton steps beyond"), ({"solver": "ekfac"}, "L-BFGS")):
        editable = wrapped(X, C, y, polish_above=1e-5, **options)
        report = editable.forget(np.arange(60))
        assert report.polished
        assert how in "; ".join(report.notes)
        assert report.residual_gradient_norm < 1e-5
        true = refit(X[60:], C[60:], y[60:])
        assert np.allclose(parameters(editable)[0], true[0], atol=1e-2)


def test_many_rounds_of_edits_stay_next_to_the_refit():
    X, C, y = bottleneck_data(400)
    editable = wrapped(X, C, y)
    before = parameters(editable)
    for i in range(10):
        editable.forget(np.arange(4 * i, 4 * i + 4))
        C = flipped(C, [100 + i], [i % K])
        editable.relabel(100 + i, i % K, C[100 + i, i % K])
    assert max(distance(parameters(editable), refit(X[40:], C[40:], y[40:]), before)) < 0.05
    assert len(editable.reports) == 20


def test_the_comparison_with_a_refit_gives_the_gaps_that_scikit_learn_gives():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    before = parameters(editable)
    editable.forget(np.arange(10))
    found = editable.compare_with_retrain()
    expected = distance(parameters(editable), refit(X[10:], C[10:], y[10:]), before)
    assert [found.concept_gap, found.label_gap] == pytest.approx(expected, rel=0.02)
    assert found.retrain_converged
    assert found.f1_gap == abs(found.f1["edited"] - found.f1["retrained"])
    assert found.time_ratio == found.retrain_seconds / found.edit_seconds
    assert set(found.to_dict()) >= {"f1_gap", "time_ratio", "agreement"}
    assert editable.compare_with_retrain(X[:50], y[:50]).agreement > 0.95


def test_parts_that_retraining_does_not_move_have_no_gap():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    editable.drop_concepts(0)
    assert editable.compare_with_retrain().concept_gap is None
    assert wrapped(X, C, y).compare_with_retrain().time_ratio == math.inf


# --- labels that are missing ---------------------------------------------------------------------------------------


def test_labels_can_be_given_later_and_withdrawn():
    X, C, y = bottleneck_data()
    missing = C.copy()
    missing[:10, 1] = np.nan
    true = refit(X, C, y)
    partial = wrapped(X, missing, y)
    before = parameters(partial)
    partial.relabel(range(10), 1, C[:10, 1])
    assert max(distance(parameters(partial), true, before)) < 0.15
    full = wrapped(X, C, y)
    full.relabel(range(10), "concept1", np.nan)
    assert np.allclose(parameters(full)[0], before[0], atol=0.05)
    assert np.isnan(full.concept_labels[:10, 1]).all()


# --- the model and the data ----------------------------------------------------------------------------------------


def test_the_model_that_was_given_is_left_alone_and_the_copy_is_edited():
    X, C, y = bottleneck_data()
    model = fitted(X, C, y)
    before = model.concept_coef_.copy()
    editable = EditableCBM(model, X, C, y)
    editable.forget([0])
    assert np.array_equal(model.concept_coef_, before)
    assert not np.array_equal(editable.model.concept_coef_, before)
    assert np.array_equal(editable.model.predict(X), editable.predict(X))


def test_forgotten_rows_are_gone_from_memory():
    X, C, y = bottleneck_data()
    X[7] = 9.87654321
    editable = wrapped(X, C, y)
    assert _holds(editable, 9.87654321)
    editable.forget([7])
    assert not _holds(editable, 9.87654321)
    assert 7 not in editable.row_ids
    assert all(len(array) in (299, 0) for array in (editable._state.labels, editable._origin.labels))


def _holds(thing, value, seen=None):
    """Whether any array that can be reached from an object holds a value."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return False
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return thing.dtype.kind == "f" and bool((thing == value).any())
    if isinstance(thing, dict):
        return any(_holds(item, value, seen) for item in thing.values())
    if isinstance(thing, list | tuple):
        return any(_holds(item, value, seen) for item in thing)
    return _holds(vars(thing), value, seen) if hasattr(thing, "__dict__") else False


def test_a_model_that_was_edited_can_be_wrapped_again():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    editable.drop_concepts(2, n_newton=4)
    again = EditableCBM(editable.model, X, C, y)
    with pytest.raises(InputError, match="was dropped"):
        again.relabel(0, 2, 1 - C[0, 2])
    assert np.allclose(again.predict_proba(X), editable.predict_proba(X))


def test_data_frames_and_text_labels_are_taken_as_they_are():
    X, C, y = bottleneck_data()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    names = np.array(["x", "y", "z"])[y]
    concepts = pd.DataFrame(C, columns=["u", "v", "w", "t"])
    model = ConceptBottleneckClassifier(l2=L2).fit(frame, concepts, names)
    editable = EditableCBM(model, frame, concepts, names)
    editable.relabel([3, 4], ["u", "w"], [1 - C[3, 0], 1 - C[4, 2]])
    editable.add(frame.head(3), concepts.head(3), names[:3])
    assert set(editable.predict(frame)) <= {"x", "y", "z"}
    with pytest.raises(InputError, match="'q', which the model does not know"):
        editable.add(frame.head(1), concepts.head(1), ["q"])


def test_a_class_that_loses_all_rows_is_named():
    X, C, y = bottleneck_data()
    report = wrapped(X, C, y).forget(np.flatnonzero(y == 2))
    assert "class 2 has no rows left" in report.notes[0]


# --- refusals: nothing has changed afterwards ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared():
    X, C, y = bottleneck_data()
    editable = wrapped(X, C, y)
    editable.forget([7])
    editable.drop_concepts(3)
    return editable, X, C, y


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda e, C: e.forget([300]), "there is no row 300"),
        (lambda e, C: e.forget([-1]), "there is no row -1"),
        (lambda e, C: e.forget([1, 1]), "row 1 is given twice"),
        (lambda e, C: e.forget([7]), "row 7 was forgotten already"),
        (lambda e, C: e.forget([]), "at least one"),
        (lambda e, C: e.forget([0.5]), "row numbers"),
        (lambda e, C: e.forget(np.ones(300, dtype=bool)), "row numbers"),
        (lambda e, C: e.forget(e.row_ids), "all rows would be forgotten"),
        (lambda e, C: e.relabel(1, 0, C[1, 0]), "already"),
        (lambda e, C: e.relabel([1, 1], [0, 0], 1 - C[1, 0]), "given twice"),
        (lambda e, C: e.relabel(1, 0, 0.5), "a new value is 0.5"),
        (lambda e, C: e.relabel(1, 0, "yes"), "0, 1 or NaN"),
        (lambda e, C: e.relabel([1, 2], [0, 1, 2], 1), "equally many"),
        (lambda e, C: e.relabel(1, 4, 1), "there is no concept 4"),
        (lambda e, C: e.relabel(1, "beak", 1), "no concept is called 'beak'"),
        (lambda e, C: e.relabel(1, 3, 1), "'concept3' was dropped"),
        (lambda e, C: e.relabel(1, True, 1), "is no concept"),
        (lambda e, C: e.relabel(999, 0, 1), "there is no row 999"),
        (lambda e, C: e.drop_concepts([]), "at least one concept"),
        (lambda e, C: e.drop_concepts([0, "concept0"]), "given twice"),
        (lambda e, C: e.drop_concepts([0, 1, 2]), "all concepts would be dropped"),
        (lambda e, C: e.drop_concepts(0, n_newton=0), "n_newton is 0"),
        (lambda e, C: e.add(np.zeros((2, 5)), C[:2], [0, 1]), "features"),
        (lambda e, C: e.add(np.zeros((2, 6)), C[:2, :3], [0, 1]), "C has 3 concepts"),
        (lambda e, C: e.add(np.zeros((2, 6)), C[:2], [0, 9]), "9, which the model does not know"),
        (lambda e, C: e.add(np.zeros((2, 6)), C[:2], [0]), "1 labels for 2 rows"),
        (lambda e, C: e.add_concepts(np.zeros((5, 1))), "one row per row"),
        (lambda e, C: e.add_concepts(np.full((299, 1), np.nan)), "no label"),
        (lambda e, C: e.add_concepts(pd.DataFrame({"concept0": np.ones(299)})), "already a concept"),
        (lambda e, C: e.compare_with_retrain(np.zeros((2, 6))), "X was given without y"),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_changes(shared, edit, message):
    editable, _, C, _ = shared
    before = parameters(editable)
    with pytest.raises(ValueError, match=message):
        edit(editable, C)
    for was, now in zip(before, parameters(editable), strict=True):
        assert np.array_equal(was, now)
    assert len(editable.row_ids) == 299
    assert len(editable.reports) == 2
    assert isinstance(editable.reports[0], EditReport)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "newton"}, "solver is 'newton'"),
        ({"hessian": "old"}, "hessian is 'old'"),
        ({"damping": -1.0}, "damping is -1.0"),
        ({"polish_above": 0.0}, "polish_above is 0.0"),
        ({"l2": (1.0, 0.0)}, "pair of numbers above 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        wrapped(*bottleneck_data(), **options)


def test_a_model_that_is_not_at_its_optimum_is_refused_and_can_be_polished():
    X, C, y = bottleneck_data()
    model = fitted(X, C, y)
    model.concept_coef_ = model.concept_coef_ + 0.1
    with pytest.raises(InputError, match="concept predictor is not at the optimum"):
        EditableCBM(model, X, C, y)
    editable = EditableCBM.polished(model, X, C, y)
    assert np.allclose(parameters(editable)[0], refit(X, C, y)[0], atol=1e-4)
    with pytest.raises(TypeError, match="no option 'colour'"):
        EditableCBM.polished(model, X, C, y, colour=1)


def test_the_wrong_ridge_is_noticed():
    X, C, y = bottleneck_data()
    with pytest.raises(InputError, match="not at the optimum"):
        EditableCBM(fitted(X, C, y), X, C, y, l2=(100.0, 1.0))


def test_other_models_and_data_that_do_not_fit_are_refused():
    X, C, y = bottleneck_data()
    with pytest.raises(InputError, match="a LogisticRegression"):
        EditableCBM(LogisticRegression(), X, C, y)
    with pytest.raises(InputError, match="C has 3 concepts"):
        EditableCBM(fitted(X, C, y), X, C[:, :3], y)
    with pytest.raises(InputError, match="299 labels for 300 rows"):
        EditableCBM(fitted(X, C, y), X, C, y[1:])


def test_exact_solves_of_too_many_parameters_are_refused():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 5_001))
    C, y = rng.integers(0, 2, (20, 1)), np.arange(20) % 2
    model = ConceptBottleneckClassifier(l2=(10.0, 1.0), tol=1e-4).fit(X, C, y)
    with pytest.raises(InputError, match="5,002 parameters"):
        EditableCBM(model, X, C, y, solver="exact")
    assert EditableCBM(model, X, C, y).forget([3]).residual_gradient_norm < 1e-1


def test_without_pytorch_a_pair_of_modules_names_the_extra(monkeypatch):
    import sys

    from aboveboard.core import MissingExtra

    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "aboveboard.unlearning.editable_cbm._torch", raising=False)
    with pytest.raises(MissingExtra, match=r"aboveboard\[torch\]"):
        EditableCBM((1, 2), [[0.0]], [[0]], [0])
