"""The bottleneck of linear parts: equal to scikit-learn's regressions, and a scikit-learn estimator itself."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from aboveboard.core import InputError
from aboveboard.unlearning import ConceptBottleneckClassifier


def bottleneck_data(n=300, d=6, k=4, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    C = (X @ rng.normal(size=(d, k)) + rng.logistic(size=(n, k)) > 0).astype(float)
    y = (1.5 * C @ rng.normal(size=(k, m)) + rng.gumbel(size=(n, m))).argmax(axis=1)
    return X, C, y


def with_ones(A):
    return np.column_stack([A, np.ones(len(A))])


class FromFeatures(ConceptBottleneckClassifier):
    """The estimator with scikit-learn's signature: concepts are whether a feature is above its median."""

    def fit(self, X, y):
        try:
            columns = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
            concepts = (columns > np.quantile(columns, 0.5, axis=0)).astype(float)
        except (TypeError, ValueError, IndexError):  # bad input, which fit must refuse by itself
            concepts = np.zeros((1, 1))
        return super().fit(X, concepts, y)


# The checks call fit(X, y); the one who calls must give concepts, so the checks see them derived from X.
@parametrize_with_checks([FromFeatures(l2=(1.0, 1.0), tol=1e-5)])
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


def test_each_part_equals_scikit_learns_ridge_penalised_regression():
    X, C, y = bottleneck_data()
    model = ConceptBottleneckClassifier(l2=(0.5, 2.0), tol=1e-8).fit(X, C, y)
    for j in range(C.shape[1]):
        head = LogisticRegression(C=1 / 0.5, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
        head.fit(with_ones(X), C[:, j])
        assert np.allclose(head.coef_[0, :-1], model.concept_coef_[j], atol=1e-5)
        assert head.coef_[0, -1] == pytest.approx(model.concept_intercept_[j], abs=1e-5)
    top = LogisticRegression(C=1 / 2.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    top.fit(with_ones(model.predict_concepts(X)), y)
    assert np.allclose(top.predict_proba(with_ones(model.predict_concepts(X))), model.predict_proba(X), atol=1e-5)


def test_with_the_squared_error_each_part_equals_scikit_learns_ridge():
    X, C, y = bottleneck_data()
    model = ConceptBottleneckClassifier(loss="squared_error", l2=(0.5, 2.0)).fit(X, C, y)
    heads = Ridge(alpha=0.5, fit_intercept=False).fit(with_ones(X), C)
    assert np.allclose(heads.coef_[:, :-1], model.concept_coef_, atol=1e-10)
    top = Ridge(alpha=2.0, fit_intercept=False).fit(with_ones(model.predict_concepts(X)), np.eye(3)[y])
    assert np.allclose(top.coef_[:, :-1], model.coef_, atol=1e-10)
    assert np.allclose(top.coef_[:, -1], model.intercept_, atol=1e-10)


def test_a_head_with_missing_labels_equals_a_fit_to_the_rows_that_have_them():
    X, C, y = bottleneck_data()
    known = np.arange(len(X)) % 3 > 0
    missing = C.copy()
    missing[~known, 1] = np.nan
    model = ConceptBottleneckClassifier(l2=(1.0, 1.0), tol=1e-8).fit(X, missing, y)
    head = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-10)
    head.fit(with_ones(X[known]), C[known, 1])
    assert np.allclose(head.coef_[0, :-1], model.concept_coef_[1], atol=1e-5)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_data_frames_give_what_arrays_give_and_concepts_keep_their_names(frame):
    X, C, y = bottleneck_data()
    named = {f"tick {j}": C[:, j] for j in range(C.shape[1])}
    model = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, frame(named), y)
    plain = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, C, y)
    assert model.concept_names_ == list(named)
    assert plain.concept_names_[0] == "concept0"
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_missing_labels_are_read_from_pandas_nullable_columns():
    X, C, y = bottleneck_data()
    frame = pd.DataFrame(C).astype("Int64")
    frame.iloc[5, 0] = pd.NA
    missing = C.copy()
    missing[5, 0] = np.nan
    a = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, frame, y)
    b = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, missing, y)
    assert np.array_equal(a.concept_coef_, b.concept_coef_)


def test_text_labels_come_back_as_text():
    X, C, y = bottleneck_data()
    names = np.array(["no", "perhaps", "yes"])[y]
    model = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, C, names)
    assert set(model.predict(X)) <= set(names)
    assert model.score(X, names) > 0.5


def test_with_the_squared_error_there_are_scores_but_no_probabilities():
    X, C, y = bottleneck_data(m=2)
    model = ConceptBottleneckClassifier(loss="squared_error").fit(X, C, y)
    assert not hasattr(model, "predict_proba")
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X) == 1)


def test_parameters_survive_a_clone():
    model = ConceptBottleneckClassifier(loss="squared_error", l2=(0.1, 0.2), tol=1e-3, max_iter=7)
    assert clone(model).get_params() == {"loss": "squared_error", "l2": (0.1, 0.2), "tol": 1e-3, "max_iter": 7}


def test_too_few_steps_are_told():
    X, C, y = bottleneck_data()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        ConceptBottleneckClassifier(max_iter=1).fit(X, C, y)


def test_before_fit_nothing_is_predicted():
    with pytest.raises(NotFittedError):
        ConceptBottleneckClassifier().predict([[0.0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"l2": (0.0, 1.0)}, "pair of numbers above 0"),
        ({"l2": 1.0}, "pair of numbers above 0"),
        ({"l2": (1.0, np.inf)}, "pair of numbers above 0"),
        ({"tol": 0.0}, "tol is 0.0"),
        ({"max_iter": 0}, "max_iter is 0"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    X, C, y = bottleneck_data()
    with pytest.raises(InputError, match=message):
        ConceptBottleneckClassifier(**options).fit(X, C, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, C, y: (X, C[:-1], y), "one row per row of X"),
        (lambda X, C, y: (X, C[:, 0], y), "one row per row of X"),
        (lambda X, C, y: (X, np.where(C == 1, 2.0, C), y), "holds 2 in row"),
        (lambda X, C, y: (X, C + 0.5, y), "0, 1 or NaN"),
        (lambda X, C, y: (X, np.full(C.shape, np.nan), y), "'concept0' has no label"),
        (lambda X, C, y: (X, np.full(C.shape, "a"), y), "are no numbers"),
        (lambda X, C, y: (X, pd.DataFrame(C, columns=["a", "a", "b", "c"]), y), "same name"),
        (lambda X, C, y: (X, C, np.zeros(len(y))), "one class only"),
        (lambda X, C, y: (np.where(X > 2, np.nan, X), C, y), "NaN"),
    ],
)
def test_bad_data_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        ConceptBottleneckClassifier().fit(*change(*bottleneck_data()))
