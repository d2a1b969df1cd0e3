"""Another model for the same decisions: how it is asked or read, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import aboveboard
from aboveboard.auditing.subject import make_subject
from aboveboard.core import InputError, ModelError

RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.standard_normal((200, 3)), columns=list("abc"))
Y = np.where(X["a"] + RNG.standard_normal(200) > 0, "yes", "no")
MODEL = LogisticRegression().fit(X, Y)
OTHER = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X[["b", "a"]], Y)


def test_it_gets_its_own_columns_and_its_answers_are_codes():
    other = make_subject(MODEL, X, Y, compare=OTHER).other
    assert (np.array(["no", "yes"])[other.prediction] == OTHER.predict(X[["b", "a"]])).all()
    assert other.score == pytest.approx(OTHER.predict_proba(X[["b", "a"]])[:, 1])
    assert other.describe() == {"model": "DecisionTreeClassifier", "source": None}


def test_the_threshold_that_was_given_holds_for_both_and_that_of_scores_for_none():
    both = make_subject(MODEL, X, Y, compare=OTHER, threshold=0.8)
    assert (both.other.prediction == (both.other.score >= 0.8)).all()
    labels = make_subject(None, X, Y, predictions=MODEL.predict_proba(X)[:, 1], compare=DecisionsOnly())
    assert labels.other.score is None
    with pytest.raises(InputError, match=r"the other model \(compare, --compare\): a threshold was given"):
        make_subject(MODEL, X, Y, compare=DecisionsOnly(), threshold=0.3)


class DecisionsOnly:
    """A model without probabilities."""

    def predict(self, rows):
        return np.where(rows["a"] > 0, "yes", "no")


class Failing:
    """A model that raises."""

    def predict(self, rows):
        raise KeyError("none of your business")


def test_predictions_can_be_columns_or_values_and_are_no_features():
    frame = X.assign(y=Y, p=MODEL.predict_proba(X)[:, 1], q=OTHER.predict(X[["b", "a"]]))
    named = make_subject(None, frame, "y", predictions="p", compare_predictions="q")
    assert list(named.X.columns) == ["a", "b", "c"]
    assert named.other.score is None
    given = make_subject(None, X, Y, predictions=frame["p"], compare_predictions=frame["q"])
    assert (given.other.prediction == named.other.prediction).all()
    assert any(note.startswith("The other model: The predictions are read as labels") for note in named.notes)


def test_rows_are_taken_and_drawn_together():
    subject = make_subject(MODEL, X, Y, compare=OTHER)
    rows = np.array([5, 2, 9])
    assert (subject.take(rows).other.prediction == subject.other.prediction[rows]).all()
    assert len(subject.sample(50, 0).other.prediction) == 50
    assert make_subject(MODEL, X, Y).other is None


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"compare": OTHER, "compare_predictions": Y}, InputError, "both a model to compare with and predictions"),
        ({"compare": 3}, InputError, r"the other model \(compare, --compare\): the model is a int"),
        ({"compare": Failing()}, ModelError, r"the other model \(compare, --compare\): the model raised KeyError"),
        ({"compare": LogisticRegression().fit(X, X["a"] > 0)}, InputError, "its classes are 'False', 'True'"),
        ({"compare": LogisticRegression().fit(X.rename(columns={"a": "z"}), Y)}, InputError, "the other model.*'z'"),
        ({"compare_predictions": Y[:5]}, InputError, "predictions to compare with"),
        ({"compare_predictions": np.full(200, "x")}, InputError, "the other model.*value 'x', which is no class"),
        ({"compare_predictions": np.full(200, np.nan)}, InputError, "the other model.*missing in 200 rows"),
        ({"compare_predictions": np.full(200, 3.5)}, InputError, "the other model.*outside"),
    ],
)
def test_what_cannot_be_used_is_refused_and_the_other_model_is_named(options, error, message):
    with pytest.raises(error, match=message):
        make_subject(MODEL, X, Y, **options)


def test_one_column_cannot_be_both_predictions():
    frame = X.assign(p=MODEL.predict_proba(X)[:, 1])
    with pytest.raises(InputError, match="'p' is given as the predictions and as those to compare with"):
        make_subject(None, frame, Y, predictions="p", compare_predictions="p")


def test_lists_of_labels_are_values_and_no_names():
    subject = make_subject(None, X, Y, predictions=list(Y), compare_predictions=list(Y))
    assert (subject.other.prediction == subject.prediction).all()


def test_an_audit_takes_it_and_one_without_says_what_is_lacking():
    report = aboveboard.audit(MODEL, X, Y, compare=OTHER, only="model_multiplicity")
    assert report.subject["other_model"]["model"] == "DecisionTreeClassifier"
    assert not report.not_run
    without = aboveboard.audit(MODEL, X, Y, only="model_multiplicity")
    assert [f.status for f in without.not_run] == ["not_applicable"]
    assert "--compare" in without.not_run[0].reason
    numbers = X["a"] + 1
    regression = aboveboard.audit(
        None, X, numbers, predictions=numbers, compare_predictions=numbers, only="model_multiplicity"
    )
    assert regression.not_run[0].reason == "Not for regression tasks."


def test_streamed_data_and_other_suites_refuse_it(tmp_path):
    X.assign(y=Y, p=0.5, q=0.4).to_parquet(tmp_path / "t.parquet")
    with pytest.raises(InputError, match="streamed and there is another model"):
        aboveboard.audit(None, tmp_path / "t.parquet", "y", predictions="p", compare_predictions="q", stream=True)
    with pytest.raises(InputError, match="compare_predictions"):
        aboveboard.audit(None, None, suite="ranking", compare_predictions="q")
