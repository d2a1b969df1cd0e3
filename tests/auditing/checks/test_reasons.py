"""The check of reasons: what it attributes, against models whose reasons are known; what it warns of; what it asks."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import aboveboard
from aboveboard.auditing.checks import reasons
from aboveboard.auditing.checks.reasons.effects import explained, rows_asked_about
from aboveboard.auditing.checks.reasons.rows import row_reasons
from aboveboard.auditing.subject import make_subject
from aboveboard.core import InputError
from aboveboard.core.errors import ModelError, QueriesSpent
from tests.hostile import HOSTILE


def table(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    return pd.DataFrame(
        {
            "sex": pd.Categorical(sex),
            "height": np.where(sex == "M", 178.0, 165.0) + rng.normal(0, 5, n),
            "income": rng.normal(3000, 800, n),
            "town": rng.choice(["x", "y"], n),
            "idle": rng.normal(size=n),
        }
    )


X = table()
Y = (X["income"] > 3000).astype(int)


class Model:
    """Answers by a function of the rows."""

    classes_ = np.array([0, 1])

    def __init__(self, score, columns=X.columns):
        self.score = score
        self.feature_names_in_ = np.array(columns)
        self.asked = 0

    def predict_proba(self, rows):
        self.asked += len(rows)
        p = np.asarray(self.score(rows), dtype=float)
        return np.column_stack([1 - p, p])

    def predict(self, rows):
        return (self.predict_proba(rows)[:, 1] > 0.5).astype(int)


class Labels:
    """Answers with labels alone."""

    classes_ = np.array([0, 1])
    feature_names_in_ = np.array(X.columns)

    def predict(self, rows):
        return (np.asarray(by_income(rows)) > 0.5).astype(int)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def by_income(rows):
    return sigmoid((rows["income"] - 3000) / 400)


def findings(model, data=X, y=Y, effort="standard", **options):
    subject = make_subject(model, data, y, **options)
    return {f.id: f for f in reasons.check(subject, random_state=0, effort=effort)}


# --- what matters -----------------------------------------------------------------------------------------------------


def test_effects_of_a_linear_model_are_its_weights_times_the_distance_from_other_rows():
    data = X[["height", "income", "idle"]]
    model = LinearRegression().fit(data, 2 * data["income"] - 10 * data["height"])
    subject = make_subject(model, data, 2 * X["income"], task="regression")
    effects = explained(subject, "standard", 0)
    assert effects.coalitions == 8  # all
    found = pd.DataFrame(effects.values, columns=effects.names)
    rows = data.iloc[effects.rows].reset_index(drop=True)
    lot = effects.lot
    for name, weight in (("income", 2.0), ("height", -10.0)):
        left = found[name] - weight * rows[name]  # minus the weight times the mean of the rows compared with
        assert left.groupby(lot).std().max() < 1e-6 * abs(found[name]).max()
    assert abs(found["idle"]).max() < 1e-6 * abs(found["income"]).max()


def test_the_column_that_decides_alone_is_named_and_warned_of():
    finding = findings(Model(by_income))["reasons/importance"]
    assert (finding.severity, finding.status) == ("warn", "ran")
    assert finding.value == pytest.approx(1.0)
    assert finding.tables[0].rows[0][0] == "income"
    assert all(row[1] == pytest.approx(0, abs=1e-9) for row in finding.tables[0].rows[1:])


def test_shares_of_columns_that_matter_alike_cover_one_half():
    data = X.assign(bonus=np.random.default_rng(1).normal(3000, 800, len(X)))
    model = Model(lambda rows: sigmoid((rows["income"] + rows["bonus"] - 6000) / 800), data.columns)
    finding = findings(model, data)["reasons/importance"]
    assert finding.severity == "ok"
    shares = {row[0]: row[3] for row in finding.tables[0].rows}
    assert shares["income"] + shares["bonus"] == pytest.approx(1.0)
    assert finding.interval.low < 0.56
    assert finding.interval.high > 0.44


def test_a_model_that_always_says_the_same_has_no_reasons():
    finding = findings(Model(lambda rows: np.full(len(rows), 0.3)))["reasons/importance"]
    assert finding.severity == "warn"
    assert "No column moves" in finding.statement


@pytest.mark.parametrize("kind", ["labels", "regression", "multiclass", "array"])
def test_models_of_all_kinds_are_explained(kind):
    if kind == "labels":
        found = findings(Labels())
    elif kind == "regression":
        model = LinearRegression().fit(X[["height", "income"]], X["income"])
        found = findings(model, X[["height", "income"]], X["income"], task="regression")
    elif kind == "array":
        data = X[["height", "income", "idle"]].to_numpy()
        found = findings(LinearRegression().fit(data, data[:, 1]), pd.DataFrame(data), X["income"], task="regression")
    else:

        class Three(Model):
            classes_ = np.array(["a", "b", "c"])

            def predict_proba(self, rows):
                p = by_income(rows).to_numpy()
                return np.column_stack([p / 2, p / 2, 1 - p])

            def predict(self, rows):
                return self.classes_[self.predict_proba(rows).argmax(axis=1)]

        found = findings(Three(None), y=np.where(Y == 1, "a", "c"), sensitive_features=["sex"])
        assert found["reasons/sensitive/sex"].value == pytest.approx(0.0)
    best = found["reasons/importance"].tables[0].rows[0][0]
    assert best == ("1" if kind == "array" else "income")


def test_resampled_halves_of_a_model_with_few_reasons_agree():
    finding = findings(Model(by_income))["reasons/resampling"]
    assert finding.severity == "ok"
    assert finding.value == pytest.approx(1.0)


# --- small changes ----------------------------------------------------------------------------------------------------


def test_a_smooth_model_keeps_its_reasons_and_a_jagged_one_does_not():
    def jagged(rows):
        return 0.5 + 0.2 * np.sign(np.sin(rows["income"] * 1e3)) + 0.2 * np.sign(np.sin(rows["height"] * 1e5))

    smooth = findings(Model(lambda rows: sigmoid((rows["income"] - 3000) / 800 + (rows["height"] - 170) / 10)))
    assert smooth["reasons/small_changes"].severity == "ok"
    assert smooth["reasons/small_changes"].value < 0.1
    assert findings(Model(jagged))["reasons/small_changes"].severity == "warn"


def test_where_there_are_no_numbers_nothing_is_changed():
    data = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["u", "u", "v", "w"] * 100})
    model = Model(lambda rows: np.where(rows["a"] == "x", 0.9, 0.2), data.columns)
    assert "reasons/small_changes" not in findings(model, data, np.arange(400) % 2)


# --- groups and sensitive attributes ----------------------------------------------------------------------------------


def test_a_model_that_uses_the_sensitive_column_is_warned_of():
    model = Model(lambda rows: sigmoid((rows["income"] - 3000) / 400 + 1.5 * (rows["sex"] == "M")))
    finding = findings(model, sensitive_features=["sex"])["reasons/sensitive/sex"]
    assert finding.severity == "warn"
    assert "uses sex itself" in finding.reason
    assert finding.tables[0].rows[0][0] == "sex (itself)"


def test_a_proxy_that_drives_answers_apart_is_named():
    model = Model(lambda rows: sigmoid((rows["height"] - 171) / 10 + (rows["income"] - 3000) / 800))
    finding = findings(model, sensitive_features=["sex"])["reasons/sensitive/sex"]
    assert finding.severity == "warn"
    assert finding.reason == "The answers differ by columns that tell sex: 'height'."
    parts = {row[0]: row[1] for row in finding.tables[0].rows}
    assert abs(parts["height"]) > 10 > abs(parts["income"])


def test_the_parts_sum_to_the_difference_in_the_mean_answers():
    model = Model(lambda rows: sigmoid((rows["height"] - 171) / 10 + (rows["income"] - 3000) / 800))
    subject = make_subject(model, X, Y, sensitive_features=["sex"])
    effects = explained(subject, "standard", 0)
    (finding,) = (f for f in reasons.check(subject, random_state=0, effort="standard") if "sensitive" in f.id)
    group = finding.group.removeprefix("sex=")
    own = (X["sex"].iloc[effects.rows] == group).to_numpy()
    totals = effects.values.sum(axis=1)
    assert sum(row[1] for row in finding.tables[0].rows) == pytest.approx(
        100 * (totals[own].mean() - totals[~own].mean())
    )


def test_answers_by_something_else_are_not_put_down_to_the_attribute():
    model = Model(by_income)
    found = findings(model, sensitive_features=["sex"])
    assert found["reasons/sensitive/sex"].severity == "ok"
    assert found["reasons/groups/sex"].severity == "ok"


def test_groups_that_are_judged_by_different_columns_are_found():
    def score(rows):
        women = sigmoid((rows["income"] - 3000) / 400)
        men = sigmoid((rows["height"] - 178) / 3)
        return np.where(rows["sex"] == "F", women, men)

    assert findings(Model(score), sensitive_features=["sex"])["reasons/groups/sex"].severity == "warn"


def test_groups_of_too_few_rows_are_inconclusive():
    few = pd.Series(np.where(np.arange(len(X)) < 15, "rare", "usual"))
    found = findings(Model(by_income), sensitive_features={"kind": few})
    assert found["reasons/groups/kind"].status == found["reasons/sensitive/kind"].status == "inconclusive"


def test_names_given_to_rows_at_random_are_rarely_found_to_differ():
    """200 columns of random groups for one model: at level 0.05 no more than 22 beyond chance (99.9 % of draws)."""
    rng = np.random.default_rng(0)
    model = Model(lambda rows: sigmoid((rows["height"] - 171) / 10 + (rows["income"] - 3000) / 800))
    names = {f"s{k}": pd.Series(rng.choice(["a", "b"], len(X))) for k in range(200)}
    subject = make_subject(model, X, Y, sensitive_features=names)
    effects = explained(subject, "standard", 0)
    found = [reasons.groups_finding(subject, effects, name, k) for k, name in enumerate(names)]
    chance = [float(f.statement.partition("p = ")[2].partition(",")[0]) for f in found]
    assert sum(p < 0.05 for p in chance) <= 22


# --- what is asked, and what is not said ------------------------------------------------------------------------------


@pytest.mark.parametrize("effort", ["quick", "standard"])
def test_the_model_is_asked_about_no_more_rows_than_it_says(effort):
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(3000, 15)), columns=[f"c{i}" for i in range(15)])
    model = Model(lambda rows: sigmoid(rows["c0"]), wide.columns)
    subject = make_subject(model, wide, np.arange(3000) % 2)
    model.asked = 0
    reasons.check(subject, random_state=0, effort=effort)
    assert model.asked <= {"quick": 24_000, "standard": 120_000}[effort]


@pytest.mark.parametrize("shape", [(1000, 2), (1000, 15), (300, 60), (45, 4), (20, 4), (1000, 1)])
def test_the_questions_to_an_endpoint_are_few(shape):
    asked = rows_asked_about(*shape, "standard")
    assert sum(asked) <= 25_000
    assert (not asked) == (shape[0] < 42 or shape[1] < 2)


def test_the_same_seed_gives_the_same_findings_and_another_does_not():
    subject = make_subject(Model(by_income), X, Y, sensitive_features=["sex"])
    first, again, other = (
        [f.to_dict() for f in reasons.check(subject, random_state=seed, effort="quick")] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_rows_are_drawn_by_weight_and_one_of_each_cluster():
    weight = np.where(np.arange(len(X)) < 500, 0.0, 1.0)
    clusters = np.arange(len(X)) // 4
    subject = make_subject(Model(by_income), X, Y, sample_weight=weight, clusters=clusters)
    effects = explained(subject, "standard", 0)
    assert effects.rows.min() >= 500
    assert len(np.unique(clusters[effects.rows])) == len(effects.rows) == 120


def test_too_few_rows_or_columns_are_not_explained():
    assert findings(Model(by_income), X[:30], Y[:30])["reasons"].status == "not_applicable"
    one = Model(by_income, ["income"])
    assert "single column" in findings(one, X[["income"]])["reasons"].reason


@pytest.mark.parametrize(("error", "status"), [(ModelError("down"), "error"), (QueriesSpent("spent"), "skipped")])
def test_a_model_that_cannot_be_asked_ends_the_check_alone(error, status, monkeypatch):
    subject = make_subject(Model(by_income), X, Y)

    def fail(*arguments):
        raise error

    monkeypatch.setattr(reasons, "explained", fail)
    (finding,) = reasons.check(subject, random_state=0, effort="quick")
    assert finding.status == status


def test_what_a_model_says_when_it_fails_is_not_quoted():
    model = Model(by_income)
    subject = make_subject(model, X, Y)

    def fail(rows):
        raise ValueError(f"cannot take {rows.iloc[0].to_dict()}")

    model.score = fail
    (finding,) = reasons.check(subject, random_state=0, effort="quick")
    assert "ValueError" in finding.reason
    assert "income" not in finding.reason


def test_the_report_says_nothing_about_a_single_row():
    data = X.assign(income=X["income"].round(3) + 0.0001234)
    report = aboveboard.audit(Model(by_income), data, Y, only="reasons", sensitive_features=["sex"])
    text = json.dumps(report.to_dict())
    assert not any(f"{value:.7f}"[:-1] in text for value in data["income"])


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_nasty_names_reach_the_findings_as_they_are(name):
    if name == HOSTILE["lone-surrogate"]:
        pytest.skip("half of a surrogate pair is no text to pandas")
    data = X.rename(columns={"income": name})
    found = findings(Model(lambda rows: sigmoid((rows[name] - 3000) / 400), data.columns), data, effort="quick")
    assert found["reasons/importance"].tables[0].rows[0][0] == name


# --- single rows ------------------------------------------------------------------------------------------------------


def test_a_row_is_explained_in_a_sentence():
    subject = make_subject(Model(by_income), X, Y)
    first, second = row_reasons(subject, [1, 7], random_state=0)
    assert first.startswith("Row 1: The probability of '1' is ")
    assert f"mainly because of income = {X['income'].iloc[0]:.3g} (" in first
    assert second.startswith("Row 7: ")


def test_labels_and_numbers_are_explained_too():
    assert "The answer '1' (1) or another (0) is" in row_reasons(make_subject(Labels(), X, Y), [1], random_state=0)[0]
    model = LinearRegression().fit(X[["height", "income"]], X["income"])
    subject = make_subject(model, X[["height", "income"]], X["income"], task="regression")
    assert "The prediction of income is" in row_reasons(subject, [1], random_state=0)[0]


@pytest.mark.parametrize(("rows", "message"), [([0], "1 to 1,000"), ([1001], "1 to 1,000"), (range(1, 1001), "fewer")])
def test_rows_that_are_not_there_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        row_reasons(make_subject(Model(by_income), X, Y), list(rows), random_state=0)
