"""The check: which models it takes for linear, with which weights, what it lets applicants move, and hostile names."""

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer, StandardScaler
from sklearn.svm import LinearSVC

import aboveboard
from aboveboard.auditing.checks import gaming
from aboveboard.auditing.subject import make_subject
from aboveboard.collective import ManipulationGame, manipulation_audit
from aboveboard.core.errors import QueriesSpent


def table(n=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.normal(3000, 800, n),
            "years": rng.integers(0, 20, n),
            "Age": rng.integers(18, 80, n),
            "town": rng.choice(["x", "y", "z"], n),
            "owner": rng.random(n) < 0.5,
            "sex": rng.choice(["F", "M"], n),
            "same": 1.0,
        }
    )
    score = (frame["income"] - 3000) / 400 + (frame["years"] - 10) / 5 - (frame["Age"] - 50) / 30
    frame["y"] = (score + 0.5 * frame["owner"] + rng.logistic(size=n) > 0).astype(int)
    return frame


TABLE = table()
X, Y = TABLE.drop(columns=["y", "sex"]), TABLE["y"]
NUMBERS = ["income", "years", "Age"]


def pipeline(*steps, numbers=None):
    return make_pipeline(
        make_column_transformer(
            (make_pipeline(SimpleImputer(add_indicator=True), *(numbers or [StandardScaler()])), NUMBERS),
            (OneHotEncoder(handle_unknown="ignore"), ["town", "owner"]),
        ),
        *(steps or [LogisticRegression()]),
    )


def checked(model, data=X, y=Y, effort="quick", **options):
    subject = make_subject(model, data, y, **options)
    assert not subject.lacking(next(s for s in aboveboard.auditing.suites.TABULAR if s.name == "gaming"))
    return {f.id: f for f in gaming.check(subject, random_state=0, effort=effort)}


def weights(finding):
    return {row[0]: row[1] for row in finding.tables[1].rows}


def test_the_weights_of_a_pipeline_are_those_of_the_columns_as_given():
    model = pipeline().fit(X, Y)
    finding = checked(model)["gaming/accuracy"]
    coef = model[-1].coef_[0]
    assert weights(finding) == pytest.approx({"income": coef[0], "years": coef[1]}, rel=1e-6)
    assert "Age" in finding.tables[1].note


def test_the_figures_are_those_of_the_method_s_own_audit():
    data = X[["income", "years"]].astype(float)
    model = LogisticRegression(max_iter=10_000).fit(data, Y)
    finding = checked(model, data)["gaming/accuracy"]
    game = ManipulationGame(
        cost="squared_l2",
        alpha=1.0,
        beta=0.01,
        bounds=(data.min().to_numpy(), data.max().to_numpy()),
        cost_weights=(1 / data.std(ddof=0)).tolist(),
    )
    (own,) = manipulation_audit(model, data, Y, game, n_shuffles=2, random_state=0)
    assert finding.value == pytest.approx(own.value)
    for row, expected in zip(finding.tables[0].rows, own.tables[0].rows, strict=True):
        assert row[2:] == pytest.approx(expected[2:], rel=1e-5)


@pytest.mark.parametrize(
    "model",
    [
        pipeline(),
        GridSearchCV(pipeline(), {"logisticregression__C": [0.1, 1.0]}, cv=2),
        pipeline(GaussianNB(var_smoothing=1e9)),
    ],
    ids=["pipeline", "search", "nearly-linear-bayes"],
)
def test_models_whose_log_odds_are_linear_are_seen_as_such(model):
    found = checked(model.fit(X, Y))
    assert "gaming/accuracy" in found or "moved has an effect" in found["gaming"].reason


@pytest.mark.parametrize(
    "model",
    [
        pipeline(HistGradientBoostingClassifier(max_iter=20)),
        pipeline(MLPClassifier((8,), max_iter=300, random_state=0)),
        pipeline(numbers=[StandardScaler(), PolynomialFeatures(2)]),
        pipeline(numbers=[SplineTransformer()]),
        pipeline(GaussianNB()),
    ],
    ids=["trees", "network", "squares", "splines", "bayes"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_models_that_are_not_linear_are_left_alone_and_say_why(model):
    finding = checked(model.fit(X, Y))["gaming"]
    assert (finding.status, finding.severity) == ("not_applicable", "note")
    assert "not linear" in finding.reason


def test_models_without_scores_or_of_several_classes_do_not_get_here():
    (spec,) = (s for s in aboveboard.auditing.suites.TABULAR if s.name == "gaming")
    labels = make_subject(pipeline(LinearSVC()).fit(X, Y), X, Y)
    assert "scores" in labels.lacking(spec)
    three = np.arange(len(X)) % 3
    assert "multiclass" in make_subject(pipeline().fit(X, three), X, three).lacking(spec)
    assert "model itself" in make_subject(None, X, Y, predictions=np.full(len(X), 0.5)).lacking(spec)


def test_without_a_column_of_numbers_that_matters_there_is_nothing_to_say():
    words = X[["town", "owner"]]
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(words, Y)
    assert "no column of numbers" in checked(model, words)["gaming"].reason
    fixed = X[["Age"]]
    model = LogisticRegression().fit(fixed, Y)
    assert "that could be moved" in checked(model, fixed)["gaming"].reason


def test_sensitive_columns_and_those_called_age_or_birth_are_not_moved():
    data = X.assign(sex=(TABLE["sex"] == "F").astype(int), birth_year=2000 - X["Age"], wage=X["income"])
    numeric = data[["income", "years", "sex", "birth_year", "wage"]]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(numeric, Y)
    found = checked(model, numeric, sensitive_features=numeric["sex"])
    assert set(weights(found["gaming/accuracy"])) == {"income", "years", "wage"}
    assert found["gaming/groups/sex"].status in ("ran", "inconclusive")


@pytest.mark.parametrize("threshold", [None, 0.3])
def test_the_threshold_of_the_model_decides(threshold):
    data = X[["income", "years"]].astype(float)
    model = LogisticRegression(max_iter=10_000).fit(data, Y)
    finding = checked(model, data, threshold=threshold)["gaming/accuracy"]
    score = model.predict_proba(data)[:, 1]
    cut = 0.5 if threshold is None else threshold
    assert finding.tables[0].rows[0][2] == pytest.approx(((score >= cut) == Y).mean())


def test_a_model_with_a_threshold_of_its_own_is_understood_and_one_without_is_left_alone():
    data = X[["income", "years"]].astype(float)

    class Strict(LogisticRegression):
        def predict(self, X):
            return self.classes_[(self.predict_proba(X)[:, 1] > 0.8).astype(int)]

    class Odd(LogisticRegression):
        def predict(self, X):
            return self.classes_[np.arange(len(X)) % 2]

    strict = Strict(max_iter=10_000).fit(data, Y)
    finding = checked(strict, data)["gaming/accuracy"]
    assert finding.tables[0].rows[0][2] == pytest.approx((strict.predict(data) == Y).mean())
    assert "threshold" in checked(Odd(max_iter=10_000).fit(data, Y), data)["gaming"].reason


def test_missing_values_stay_missing():
    data = X.copy()
    data.loc[::3, "income"] = np.nan
    finding = checked(pipeline().fit(data, Y), data)["gaming/accuracy"]
    assert {"income", "years"} <= set(weights(finding))
    whole = checked(pipeline().fit(X, Y))["gaming/accuracy"]
    moves = [{row[0]: row[2] for row in f.tables[1].rows}["income"] for f in (finding, whole)]
    assert moves[0] < moves[1]


@pytest.mark.parametrize("kind", ["Int64", "Float64", "float32", "object"])
def test_columns_of_any_dtype_are_numbers(kind):
    data = X[["income", "years"]].round().astype(kind)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data.astype(float), Y)
    assert "gaming/accuracy" in checked(model, data)


def test_scores_in_single_precision_and_certain_ones_are_no_bend():
    data = X[["income", "years"]].astype(float)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=1e4)).fit(data, (data["income"] > 3000).astype(int))

    def single(rows):
        return model.predict_proba(rows)[:, 1].astype(np.float32)

    found = checked(single, data)
    assert "not linear" not in found.get("gaming", found.get("gaming/accuracy")).reason
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(data, Y)
    assert "gaming/accuracy" in checked(lambda rows: plain.predict_proba(rows)[:, 1].astype(np.float32), data)


def test_a_model_from_a_file_is_asked_in_its_own_process(tmp_path):
    data = X[["income", "years"]].astype(float)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data, Y)
    skops.io.dump(model, tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops") as hosted:
        there = checked(hosted, data)["gaming/accuracy"]
    here = checked(model, data)["gaming/accuracy"]
    assert there.to_dict() == here.to_dict()


def test_limits_set_costs_and_rounds():
    model = pipeline().fit(X, Y)
    dear = checked(model, limits={"gaming.cost": 100.0})["gaming/accuracy"]
    cheap = checked(model, limits={"gaming.cost": 0.2, "gaming.crowding": 0.0})["gaming/accuracy"]
    assert dear.severity == "ok"
    assert cheap.value > dear.value
    few = checked(model, limits={"gaming.min_rows": 10_000})["gaming/accuracy"]
    assert few.status == "inconclusive"


def test_the_rows_it_asks_about_are_those_it_announces():
    model = pipeline().fit(X, Y)
    asked = []

    class Counting:
        classes_ = model.classes_

        def predict_proba(self, rows):
            asked.append(len(rows))
            return model.predict_proba(rows)

        def predict(self, rows):
            return model.predict(rows)

    subject = make_subject(Counting(), X, Y)
    asked.clear()
    gaming.check(subject, random_state=0, effort="standard")
    assert asked == gaming.questions(subject.X, effort="standard", training_rows=0)
    assert gaming.questions(X[["town"]], effort="quick", training_rows=0) == []


def test_a_model_that_may_not_be_asked_any_more_is_skipped():
    class Spent:
        classes_ = np.array([0, 1])
        left = 1

        def answers_about(self, rows, **_):
            from aboveboard.auditing.model import Told

            if self.left == 0:
                raise QueriesSpent("no requests are left")
            self.left -= 1
            score = 1 / (1 + np.exp(-(rows["income"] - 3000) / 400))
            return Told(labels=(score > 0.5).to_numpy().astype(int), probabilities=score.to_numpy())

        gives_scores = gives_labels = True

    finding = checked(Spent(), X[["income"]])["gaming"]
    assert finding.status == "skipped"


def test_weights_and_clusters_of_the_rows_are_used():
    model = pipeline().fit(X, Y)
    rng = np.random.default_rng(0)
    plain = checked(model)["gaming/accuracy"]
    weighted = checked(model, sample_weight=rng.uniform(0.5, 2, len(X)), clusters=np.arange(len(X)) // 3)
    assert weighted["gaming/accuracy"].value != plain.value


def test_it_runs_in_an_audit_and_hostile_names_pass(hostile_name):
    data = X.copy()
    if not any("\ud800" <= letter <= "\udfff" for letter in hostile_name):  # else the audit refuses it
        data.columns = pd.Index([hostile_name, *data.columns[1:]], dtype=object)
    numeric = data.columns[:2].tolist()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(data[numeric].astype(float), Y)
    model.feature_names_in_  # noqa: B018 - the pipeline knows its columns by name
    groups = pd.Series([hostile_name if sex == "F" else "other" for sex in TABLE["sex"]], dtype=object, name="g")
    report = aboveboard.audit(
        model, data[numeric].astype(float), Y, sensitive_features=groups, only="gaming", effort="quick"
    )
    assert {finding.check for finding in report.findings} == {"gaming"}
    assert len(report.findings) == 2
    assert report.to_html()
