import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from aboveboard.auditing.checks.model_outputs import check
from aboveboard.auditing.subject import make_subject

N = 400
RNG = np.random.default_rng(0)
X = pd.DataFrame({"a": RNG.normal(size=N), "b": RNG.normal(size=N)})
Y = (X["a"] + RNG.normal(size=N) > 0).astype(int).to_numpy()
FITTED = LogisticRegression().fit(X, Y)


def findings(model=None, y=Y, **options):
    subject = make_subject(model, X, y, **options)
    return {f.id.partition("/")[2]: f for f in check(subject, random_state=0, effort="quick")}


class Bent:
    """A model whose answers are bent after the fact."""

    def __init__(self, labels=lambda y: y, probabilities=lambda p: p, classes=(0, 1)):
        self.labels, self.probabilities, self.classes_ = labels, probabilities, np.array(classes)

    def predict(self, frame):
        return self.labels(FITTED.predict(frame))

    def predict_proba(self, frame):
        return self.probabilities(FITTED.predict_proba(frame))


def test_an_ordinary_model_is_fine():
    found = findings(FITTED)
    assert {f.severity for f in found.values()} == {"ok"}
    assert set(found) == {"probabilities", "labels", "saturated", "distinct", "constant"}


def test_classes_in_another_order_are_fine():
    model = Bent(probabilities=lambda p: p[:, ::-1], classes=(1, 0))
    found = findings(model)
    assert found["labels"].severity == "ok"


@pytest.mark.parametrize("bend", [lambda p: p * 1.1, lambda p: p - 0.2, lambda p: np.column_stack([p[:, 0], p[:, 0]])])
def test_numbers_that_are_no_probabilities_fail(bend):
    assert findings(Bent(probabilities=bend))["probabilities"].severity == "fail"


def test_single_precision_is_no_offence():
    assert findings(Bent(probabilities=lambda p: p.astype("float32")))["probabilities"].severity == "ok"


def test_probabilities_in_the_wrong_columns_fail():
    finding = findings(Bent(probabilities=lambda p: p[:, ::-1]))["labels"]
    assert finding.severity == "fail"
    assert "run against" in finding.statement


def test_a_tuned_threshold_is_noted_and_found():
    model = FixedThresholdClassifier(FITTED, threshold=0.3, response_method="predict_proba").fit(X, Y)
    finding = findings(model)["labels"]
    assert finding.severity == "note"
    assert "near 0.3" in finding.statement or "near 0.29" in finding.statement


def test_labels_that_come_from_elsewhere_are_warned_of():
    model = Bent(labels=lambda y: np.where(np.arange(len(y)) % 5 == 0, 1 - y, y))
    finding = findings(model)["labels"]
    assert finding.severity == "warn"
    assert finding.value == pytest.approx(0.2)


def test_the_threshold_that_the_user_chose_is_not_held_against_the_model():
    assert findings(FITTED, threshold=0.9)["labels"].severity == "ok"


def test_constant_models_are_warned_of():
    found = findings(DummyClassifier().fit(X, Y))
    assert found["distinct"].severity == "warn"
    assert found["constant"].severity == "warn"
    constant = findings(y=X["a"], predictions=np.ones(N), task="regression")
    assert constant["constant"].severity == "warn"


def test_labels_in_the_guise_of_scores_are_noted():
    found = findings(predictions=Y.astype(float), prediction_type="score")
    assert found["distinct"].severity == "note"
    assert found["saturated"].severity == "note"
    assert found["saturated"].value == 1


def test_classes_that_are_never_predicted_are_named():
    y = np.array(["u", "v", "w"])[np.arange(N) % 3]
    found = findings(y=y, predictions=np.where(y == "w", "u", y))
    assert found["unused_class"].severity == "note"
    assert "'w'" in found["unused_class"].statement


def test_labels_of_several_classes_follow_from_the_highest_probability():
    y = np.clip(np.rint(X["a"]).astype(int) + 1, 0, 2).to_numpy()
    model = LogisticRegression().fit(X, y)
    assert findings(model, y)["labels"].severity == "ok"

    class Shifted:
        classes_ = model.classes_

        def predict(self, frame):
            return (model.predict(frame) + 1) % 3

        def predict_proba(self, frame):
            return model.predict_proba(frame)

    assert findings(Shifted(), y)["labels"].severity == "warn"


def test_wild_extrapolation_is_warned_of():
    y = X["a"].to_numpy()
    assert findings(LinearRegression().fit(X, y), y)["range"].severity == "ok"
    wild = y.copy()
    wild[:20] = 1e6
    finding = findings(y=y, predictions=wild, task="regression")["range"]
    assert (finding.severity, finding.value) == ("warn", 0.05)
