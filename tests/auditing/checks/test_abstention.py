"""Abstaining: the curve, the choice of a measure on one half, ties, groups, and models that show no members."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import aboveboard
from aboveboard.auditing.checks import abstention
from aboveboard.auditing.subject import make_subject


def scored(n=4000, seed=0, knows=True, groups=2):
    """Rows whose answers are right as often as the score says, or as often everywhere."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.05, 0.95, n)
    y = rng.random(n) < (p if knows else np.where(p > 0.5, 0.75, 0.25))
    return pd.DataFrame({"p": p, "y": y.astype(int), "g": rng.choice(list("abcdefgh")[:groups], n), "x": rng.random(n)})


def subject(frame, **more):
    options = {"predictions": "p", "prediction_type": "score", "sensitive_features": ["g"]} | more
    return make_subject(None, frame, "y", **options)


def check(given, seed=0):
    return {f.id.partition("/")[2]: f for f in abstention.check(given, random_state=seed, effort="standard")}


def test_a_model_that_knows_where_it_errs_is_fine():
    frame = scored()
    finding = check(subject(frame))["accuracy"]
    assert (finding.severity, finding.status) == ("ok", "ran")
    wrong = (frame["p"] >= 0.5) != frame["y"]
    doubt = np.minimum(frame["p"], 1 - frame["p"])
    left = doubt > doubt.quantile(0.8)
    assert finding.value == pytest.approx((wrong & left).sum() / wrong.sum(), abs=0.002)
    at = {row[0]: row for row in finding.tables[0].rows}
    assert at[0.2][2] == pytest.approx(1 - wrong[~left].mean(), abs=0.002)
    assert at[0.0][2] == pytest.approx(1 - wrong.mean())
    assert [series.name for series in finding.figures[0].series] == ["the model's own doubt"]


def test_a_model_that_does_not_is_a_warning_with_a_remedy():
    finding = check(subject(scored(knows=False)))["accuracy"]
    assert (finding.severity, finding.status) == ("warn", "ran")
    assert finding.remedies == ("RiskDecomposition",)


def test_a_model_that_says_the_same_of_all_rows_abstains_by_lot():
    frame = scored(knows=False).assign(p=0.7)
    finding = check(subject(frame), seed=1)[
        "accuracy"
    ]  # another seed than that of the rows, or the lot would know them
    assert finding.value == pytest.approx(0.2, abs=0.03)
    assert finding.severity == "warn"


def test_few_errors_are_inconclusive_and_are_not_told():
    frame = scored(300)
    frame["y"] = (frame["p"] >= 0.5).astype(int)
    frame.loc[:3, "y"] = 1 - frame.loc[:3, "y"]
    finding = check(subject(frame))["accuracy"]
    assert (finding.status, finding.value) == ("inconclusive", None)
    assert "fewer than 10 errors" in finding.statement
    assert check(subject(scored(60)))["accuracy"].status == "inconclusive"


def test_a_threshold_moves_the_doubt():
    frame = scored()
    own = abstention._own_doubt(subject(frame, threshold=0.2))
    expected = np.where(frame["p"] >= 0.2, 1 - frame["p"], frame["p"])
    assert own == pytest.approx(expected)


def test_a_group_left_without_an_answer_is_named():
    frame = scored(6000)
    doubtful = (frame["p"] - 0.5).abs() < 0.12
    frame["g"] = np.where(doubtful, "doubtful", "sure")
    finding = check(subject(frame))["g"]
    assert (finding.severity, finding.group) == ("warn", "g=doubtful")
    assert {column.name for column in finding.tables[0].columns} >= {"accuracy", "accuracy of those kept"}


X, y = load_digits(return_X_y=True)
X = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])


def test_the_members_of_a_forest_are_asked_and_the_best_measure_is_shown_on_the_other_half():
    model = RandomForestClassifier(15, max_depth=4, random_state=0).fit(X[:500], y[:500])
    found = check(make_subject(model, X[500:], y[500:], sensitive_features=None))
    assert set(found) == {"accuracy", "misclassification"}
    assert "Of 65 measures" in found["misclassification"].statement
    assert found["accuracy"].n < 700
    assert "chosen on one half" in found["accuracy"].reason
    again = check(make_subject(model, X[500:], y[500:], sensitive_features=None))
    assert again["accuracy"] == found["accuracy"]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        (LogisticRegression(max_iter=2), "LogisticRegression is no ensemble"),
        (HistGradientBoostingClassifier(max_iter=2), "HistGradientBoostingClassifier is no ensemble"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_without_members_are_judged_by_their_own_doubt(model, why):
    fitted = model.fit(X[:300], y[:300])
    found = check(make_subject(fitted, X[300:], y[300:], sensitive_features=None))
    assert set(found) == {"accuracy"}
    assert why in found["accuracy"].reason


def test_a_model_from_a_file_says_why_its_members_are_not_asked(tmp_path):
    skops = pytest.importorskip("skops.io")
    model = RandomForestClassifier(5, max_depth=3, random_state=0).fit(X[:300], y[:300])
    skops.dump(model, tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops", trust="known") as opened:
        found = check(make_subject(opened, X[300:], y[300:], sensitive_features=None))
    assert "shows its answers and not its members" in found["accuracy"].reason


def test_weights_and_clusters_count():
    frame = scored(2000)
    frame["w"] = np.where(frame["x"] < 0.5, 0.0, 1.0)
    weighted = check(subject(frame, sample_weight="w"))["accuracy"]
    half = check(subject(frame[frame["x"] >= 0.5].reset_index(drop=True)))["accuracy"]
    assert weighted.value == pytest.approx(half.value, abs=0.02)
    many = pd.concat([frame] * 4, ignore_index=True)
    many["c"] = np.tile(np.arange(2000), 4)
    alone, together = (check(subject(many, clusters=c))["accuracy"].interval for c in (None, "c"))
    assert together.high - together.low > 1.5 * (alone.high - alone.low)


def test_it_is_not_for_numbers_and_not_for_labels():
    frame = scored(300)
    for options, reason in (
        ({"task": "regression", "prediction_type": None}, "Not for regression"),
        ({"predictions": "y2", "prediction_type": "label"}, "needs scores"),
    ):
        report = aboveboard.audit(
            None, frame.assign(y2=frame["y"]), "y", only="abstention", **({"predictions": "p"} | options)
        )
        (silent,) = report.not_run
        assert (silent.status, reason in silent.reason) == ("not_applicable", True)


def test_hostile_names_pass(hostile_name):
    frame = scored(600)
    frame["g"] = pd.Series([hostile_name, "b"] * 300, dtype=object)
    for finding in check(subject(frame)).values():
        json.dumps(finding.to_dict(), allow_nan=False)
