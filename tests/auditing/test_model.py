import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

from aboveboard.auditing.model import FittedModel, class_codes, model_columns, sorted_labels
from aboveboard.core.errors import InputError, ModelError

X = pd.DataFrame({"a": [0.0, 1.0, 2.0, 3.0], "b": [1.0, 0.0, 1.0, 0.0]})


class Fixed:
    """A model that gives fixed answers."""

    def __init__(self, labels=None, probabilities=None, classes=None):
        if labels is not None:
            self.predict = lambda X: labels
        if probabilities is not None:
            self.predict_proba = lambda X: probabilities
        if classes is not None:
            self.classes_ = np.array(classes)


def wrap(model, task="binary", classes=("no", "yes"), threshold=None, as_array=False):
    return FittedModel(model, ("a", "b"), as_array, task, classes, threshold)


def raising(error):
    def predict(X):
        raise error

    return predict


# --- classes ----------------------------------------------------------------------------------------------------------


def test_codes_are_positions_among_the_classes_and_equal_labels_are_one():
    assert class_codes([1, 0.0, True, "1", 7], (0, 1)).tolist() == [1, 0, 1, -1, -1]
    assert class_codes(np.array(["b", "a"]), ("a", "b")).tolist() == [1, 0]
    assert class_codes(pd.Series(["b", None, "a"], dtype="string"), ("a", "b")).tolist() == [1, -1, 0]
    assert class_codes(pd.Series(["b", "a"], dtype="category"), ("a", "b")).tolist() == [1, 0]
    assert class_codes(pd.Series([1, None], dtype="Int64"), (0, 1)).tolist() == [1, -1]


def test_labels_of_several_types_have_an_order():
    assert sorted_labels([2, 1]) == [1, 2]
    assert sorted_labels(["b", 2, "a", 1]) == [1, 2, "a", "b"]


# --- which columns ----------------------------------------------------------------------------------------------------


def test_a_model_gets_the_columns_it_was_fitted_on_in_its_order():
    model = LogisticRegression().fit(X[["b", "a"]], [0, 1, 0, 1])
    assert model_columns(model, ["a", "other", "b"]) == (("b", "a"), False)


def test_a_model_that_was_fitted_on_other_columns_is_refused_by_name():
    model = LogisticRegression().fit(X, [0, 1, 0, 1])
    with pytest.raises(InputError, match=r"no column 'b' for the model.*Did you mean 'B'"):
        model_columns(model, ["a", "B"])


def test_a_model_that_was_fitted_on_an_array_gets_as_many_columns_as_an_array():
    model = LogisticRegression().fit(X.to_numpy(), [0, 1, 0, 1])
    assert model_columns(model, ["a", "b"]) == (("a", "b"), True)
    with pytest.raises(InputError, match="fitted on 2 columns without names and the data have 3"):
        model_columns(model, ["a", "b", "c"])


def test_a_callable_gets_all_columns_as_a_table():
    assert model_columns(lambda X: X, ["a", "b"]) == (("a", "b"), False)


@pytest.mark.parametrize("dtype", ["float64", "Float64", "double[pyarrow]"])
def test_an_array_is_made_of_numbers_whatever_the_columns_are_held_in(dtype):
    given = []
    wrap(lambda X: given.append(X) or np.full(4, 0.5), as_array=True).answer(X.astype(dtype))
    assert isinstance(given[0], np.ndarray)
    assert given[0].dtype == "float64"
    np.testing.assert_array_equal(given[0], X.to_numpy())


# --- answers ----------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_positive_class_even_where_it_comes_first():
    model = LogisticRegression().fit(X, ["good", "bad", "good", "bad"])
    score = wrap(model, classes=("good", "bad")).answer(X).score
    np.testing.assert_array_equal(score, model.predict_proba(X)[:, 0])


def test_multiclass_scores_are_in_the_order_of_the_classes():
    raw = np.array([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    model = Fixed(labels=["b", "c"], probabilities=raw, classes=["c", "a", "b"])
    answers = wrap(model, "multiclass", ("a", "b", "c")).answer(X[:2])
    np.testing.assert_array_equal(answers.score, raw[:, [1, 2, 0]])
    assert answers.prediction.tolist() == [1, 2]


def test_the_columns_of_a_callable_are_in_the_natural_order_of_the_labels():
    raw = np.array([[0.9, 0.1]] * 4)  # approved, denied
    answers = wrap(lambda X: raw, classes=("denied", "approved")).answer(X)
    assert answers.score.tolist() == [0.9] * 4
    assert answers.prediction.tolist() == [1] * 4


def test_the_model_decides_unless_a_threshold_is_given():
    model = Fixed(labels=["no"] * 4, probabilities=np.array([[0.4, 0.6]] * 4), classes=["no", "yes"])
    assert wrap(model).answer(X).prediction.tolist() == [0] * 4
    assert wrap(model, threshold=0.6).answer(X).prediction.tolist() == [1] * 4


def test_a_model_without_probabilities_gives_no_scores():
    model = LinearSVC().fit(X, ["no", "yes", "no", "yes"])
    assert wrap(model).answer(X).score is None
    assert not wrap(model).gives_scores


def test_labels_and_numbers_in_one_column_of_a_table_are_accepted():
    assert wrap(Fixed(labels=np.array([["no"], ["yes"]]))).answer(X[:2]).prediction.tolist() == [0, 1]
    numbers = wrap(Fixed(labels=np.array([[1], [2]])), "regression", ()).answer(X[:2]).prediction
    assert numbers.tolist() == [1.0, 2.0]
    assert wrap(lambda X: np.array([[0.1], [0.9]])).answer(X[:2]).score.tolist() == [0.1, 0.9]


def test_a_regressor_answers_with_numbers():
    model = LinearRegression().fit(X, [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_allclose(wrap(model, "regression", ()).answer(X).prediction, [0, 1, 2, 3], atol=1e-12)


@pytest.mark.parametrize(
    ("model", "task", "message"),
    [
        (Fixed(labels=["maybe"] * 4), "binary", "predicted the class 'maybe'"),
        (Fixed(labels=["no"] * 3), "binary", r"shape \(3,\) for 4 rows"),
        (lambda X: np.full(4, np.nan), "binary", "4 answers that are not finite"),
        (lambda X: np.full((4, 3), 0.3), "binary", r"shape \(4, 3\) for 4 rows and 2 classes"),
        (lambda X: ["x"] * 4, "binary", "not numbers"),
        (lambda X: ["x"] * 4, "regression", "not made of numbers"),
        (lambda X: [1.0], "regression", r"shape \(1,\)"),
        (raising(ZeroDivisionError("oh\nno")), "binary", "raised ZeroDivisionError: oh$"),
        (raising(ZeroDivisionError()), "binary", "no message"),
        (raising(MemoryError()), "binary", "ran out of memory"),
    ],
)
def test_a_model_that_fails_or_answers_nonsense_is_a_model_error(model, task, message):
    with pytest.raises(ModelError, match=message):
        wrap(model, task, () if task == "regression" else ("no", "yes")).answer(X)


def test_an_interrupt_is_no_failure_of_the_model():
    with pytest.raises(KeyboardInterrupt):
        wrap(raising(KeyboardInterrupt())).answer(X)


def test_raw_probabilities_come_as_the_model_gives_them():
    raw = np.array([[0.4, 0.9]] * 4)
    model = Fixed(labels=["no"] * 4, probabilities=raw, classes=["yes", "no"])
    np.testing.assert_array_equal(wrap(model).raw_probabilities(X), raw)
