import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from aboveboard.auditing.checks.performance import check, weighted_quantile
from aboveboard.auditing.subject import make_subject
from aboveboard.core.finding import SUPPRESSED


def findings(subject, effort="quick"):
    return {finding.id: finding for finding in check(subject, random_state=0, effort=effort)}


def values(finding):
    return {row[0]: row[2] for row in finding.tables[0].rows}


def intervals(finding):
    return {row[0]: row[3] for row in finding.tables[0].rows}


def binary(n=800, seed=0, shift=1.0, rate=0.4, **options):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < rate).astype(int)
    score = 1 / (1 + np.exp(-(rng.normal(size=n) + shift * (2 * y - 1))))
    return make_subject(
        None, pd.DataFrame({"x": rng.normal(size=n)}), y, predictions=score, prediction_type="score", **options
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_binary_metrics_agree_with_scikit_learn(weighted):
    w = np.random.default_rng(9).uniform(0.2, 3, 800) if weighted else None
    subject = binary(sample_weight=w)
    y, p, s = subject.y, subject.prediction, subject.score
    got = values(findings(subject)["performance/metrics"])
    expected = {
        "AUC": metrics.roc_auc_score(y, s, sample_weight=w),
        "average precision": metrics.average_precision_score(y, s, sample_weight=w),
        "log loss": metrics.log_loss(y, s, sample_weight=w),
        "Brier score": metrics.brier_score_loss(y, s, sample_weight=w),
        "accuracy": metrics.accuracy_score(y, p, sample_weight=w),
        "balanced accuracy": metrics.balanced_accuracy_score(y, p, sample_weight=w),
        "precision": metrics.precision_score(y, p, sample_weight=w),
        "recall": metrics.recall_score(y, p, sample_weight=w),
        "specificity": metrics.recall_score(y, p, pos_label=0, sample_weight=w),
        "F1": metrics.f1_score(y, p, sample_weight=w),
    }
    assert got == pytest.approx(expected)


def test_multiclass_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(1)
    y = rng.choice(4, 900, p=[0.4, 0.3, 0.2, 0.1])
    score = rng.dirichlet(np.ones(4), 900) * 0.5 + np.eye(4)[y] * 0.5 * rng.random((900, 1))
    score /= score.sum(axis=1, keepdims=True)
    X = pd.DataFrame({"x": rng.normal(size=900)})
    subject = make_subject(None, X, y, predictions=score, task="multiclass")
    found = findings(subject)
    got = values(found["performance/metrics"])
    p = subject.prediction
    assert got["accuracy"] == pytest.approx(metrics.accuracy_score(y, p))
    assert got["balanced accuracy"] == pytest.approx(metrics.balanced_accuracy_score(y, p))
    assert got["macro F1"] == pytest.approx(metrics.f1_score(y, p, average="macro"))
    assert got["log loss"] == pytest.approx(metrics.log_loss(y, score))
    assert got["one-vs-rest AUC"] == pytest.approx(metrics.roc_auc_score(y, score, multi_class="ovr"))
    by_class = {row[0]: row for row in found["performance/classes"].tables[0].rows}
    np.testing.assert_allclose([by_class[str(c)][2] for c in range(4)], metrics.recall_score(y, p, average=None))
    np.testing.assert_allclose([by_class[str(c)][4] for c in range(4)], metrics.precision_score(y, p, average=None))
    confusion = metrics.confusion_matrix(y, p, normalize="true")
    for row, expected in zip(found["performance/classes"].tables[1].rows, confusion, strict=True):
        for cell, share in zip(row[2:], expected, strict=True):
            assert cell == SUPPRESSED or cell == pytest.approx(share)


def test_regression_metrics_agree_with_scikit_learn():
    rng = np.random.default_rng(2)
    y = rng.gamma(2, 3, 500)
    p = y + rng.normal(0.3, 1, 500)
    w = rng.uniform(0.5, 2, 500)
    X = pd.DataFrame({"x": rng.normal(size=500)})
    got = values(
        findings(make_subject(None, X, y, predictions=p, sample_weight=w, task="regression"))["performance/metrics"]
    )
    assert got["R²"] == pytest.approx(metrics.r2_score(y, p, sample_weight=w))
    assert got["MAE"] == pytest.approx(metrics.mean_absolute_error(y, p, sample_weight=w))
    assert got["RMSE"] == pytest.approx(metrics.root_mean_squared_error(y, p, sample_weight=w))
    assert got["bias"] == pytest.approx(np.average(p - y, weights=w))
    plain = values(findings(make_subject(None, X, y, predictions=p, task="regression"))["performance/metrics"])
    assert plain["median absolute error"] == pytest.approx(metrics.median_absolute_error(y, p))


def test_weighted_quantiles_count_a_row_as_often_as_it_weighs():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=21), rng.integers(1, 5, 21)
    repeated = np.sort(np.repeat(x, w))
    for level in (0.1, 0.5, 0.73):
        expected = repeated[int(np.ceil(level * len(repeated) - 1e-9)) - 1]
        assert weighted_quantile(x, w.astype(float), level) == pytest.approx(expected, abs=0.2)
    assert weighted_quantile(np.array([4.0, 1.0]), np.ones(2), 0.5) == 2.5


def test_accuracy_has_the_wilson_interval():
    subject = binary()
    right = int((subject.y == subject.prediction).sum())
    expected = stats.binomtest(right, 800).proportion_ci(method="wilson")
    assert intervals(findings(subject)["performance/metrics"])["accuracy"] == pytest.approx(
        (expected.low, expected.high)
    )


def test_every_interval_holds_its_value_and_none_has_width_zero():
    perfect = make_subject(
        None, pd.DataFrame({"x": range(60)}), [0, 1] * 30, predictions=[0.0, 1.0] * 30, prediction_type="score"
    )
    for subject in (binary(), binary(n=40), perfect):
        for name, n, value, interval, *_ in findings(subject)["performance/metrics"].tables[0].rows:
            if interval is not None:
                assert interval[0] <= value <= interval[1], name
                assert interval[1] > interval[0], (name, n)


def test_clusters_of_copies_widen_every_interval_by_the_root_of_their_size():
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 600)
    s = np.clip(rng.normal(0.3 + 0.4 * y, 0.25), 0.01, 0.99)
    X = pd.DataFrame({"x": rng.normal(size=2400)})
    four = {"predictions": np.repeat(s, 4), "prediction_type": "score"}
    naive = intervals(findings(make_subject(None, X, np.repeat(y, 4), **four), "standard")["performance/metrics"])
    aware = intervals(
        findings(make_subject(None, X, np.repeat(y, 4), clusters=np.repeat(np.arange(600), 4), **four), "standard")[
            "performance/metrics"
        ]
    )
    for name, (low, high) in naive.items():
        assert (aware[name][1] - aware[name][0]) / (high - low) == pytest.approx(2, rel=0.2), name


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_claim():
    """2,000 samples of 200 rows; 92 to 98 % of all twelve figures' intervals must hold the truth."""
    rng = np.random.default_rng(0)

    def draw(n):
        y = (rng.random(n) < 0.4).astype(int)
        return y, 1 / (1 + np.exp(-(rng.normal(size=n) + 2 * y - 1)))

    y, s = draw(2_000_000)
    p, base = s >= 0.5, y.mean()
    truth = {
        "AUC": stats.norm.cdf(np.sqrt(2)),
        "average precision": metrics.average_precision_score(y, s),
        "log loss": metrics.log_loss(y, s),
        "Brier score": metrics.brier_score_loss(y, s),
        "accuracy": stats.norm.cdf(1),
        "balanced accuracy": stats.norm.cdf(1),
        "precision": metrics.precision_score(y, p),
        "recall": stats.norm.cdf(1),
        "specificity": stats.norm.cdf(1),
        "F1": metrics.f1_score(y, p),
    }
    skill = {
        "performance/base_rate": 1 - truth["Brier score"] / (base * (1 - base)),
        "performance/most_common_class": 1 - (1 - truth["accuracy"]) / base,
    }
    hits = dict.fromkeys([*truth, *skill], 0)
    X = pd.DataFrame({"x": np.arange(200)})
    for seed in range(2000):
        y, s = draw(200)
        subject = make_subject(None, X, y, predictions=s, prediction_type="score")
        found = {finding.id: finding for finding in check(subject, random_state=seed, effort="quick")}
        for name, (low, high) in intervals(found["performance/metrics"]).items():
            hits[name] += low <= truth[name] <= high
        for name, value in skill.items():
            hits[name] += found[name].interval.low <= value <= found[name].interval.high
    assert {name: count for name, count in hits.items() if not 0.92 <= count / 2000 <= 0.98} == {}


# --- trivial answers --------------------------------------------------------------------------------------------------


def test_a_good_model_beats_both_trivial_answers():
    found = findings(binary())
    for key in ("performance/most_common_class", "performance/base_rate"):
        assert (found[key].severity, found[key].status) == ("ok", "ran")
    y, s = binary().y, binary().score
    base = y.mean() * (1 - y.mean())
    assert found["performance/base_rate"].value == pytest.approx(1 - metrics.brier_score_loss(y, s) / base)


def test_random_scores_fail():
    found = findings(binary(n=3000, shift=0.0))
    assert found["performance/base_rate"].severity == "fail"
    assert found["performance/most_common_class"].severity == "fail"


def test_labels_that_say_the_most_common_class_always_fail():
    X = pd.DataFrame({"x": range(300)})
    y = np.array([0] * 200 + [1] * 100)
    found = findings(make_subject(None, X, y, predictions=np.zeros(300, int), prediction_type="label"))
    assert found["performance/most_common_class"].severity == "fail"
    assert found["performance/most_common_class"].value == 0


def test_scores_that_order_rows_but_are_no_probabilities_warn_and_do_not_fail():
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.05).astype(int)
    s = 1 / (1 + np.exp(-(rng.normal(size=4000) + 1.5 * (2 * y - 1))))  # as after balancing the classes
    X = pd.DataFrame({"x": y})
    found = findings(make_subject(None, X, y, predictions=s, prediction_type="score"))
    assert found["performance/base_rate"].severity == "warn"


def test_a_model_at_chance_is_hardly_ever_said_to_beat_a_trivial_answer():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": np.arange(200)})
    false = 0
    for _ in range(100):
        y = rng.permutation(np.repeat([0, 1], [120, 80]))
        subject = make_subject(
            None, X, y, predictions=np.clip(0.4 + rng.normal(0, 0.05, 200), 0, 1), prediction_type="score"
        )
        found = findings(subject)
        false += any(
            found[f"performance/{k}"].statement.startswith("The model beats")
            for k in ("most_common_class", "base_rate")
        )
    assert false <= 5


def test_trivial_answers_are_learned_from_training_data_where_given():
    subject = binary()
    rng = np.random.default_rng(0)
    y_train = (rng.random(500) < 0.8).astype(int)
    trained = make_subject(
        None,
        subject.X,
        subject.y,
        predictions=subject.score,
        prediction_type="score",
        train=(pd.DataFrame({"x": range(500)}), y_train),
    )
    p, y = y_train.mean(), subject.y
    found = findings(trained)
    base = np.mean((y - p) ** 2)
    assert found["performance/base_rate"].value == pytest.approx(1 - np.mean((y - subject.score) ** 2) / base)
    assert "always saying '1'" in found["performance/most_common_class"].statement


def test_a_regressor_is_compared_with_mean_and_median():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=600)})
    y = rng.gamma(1, 2, 600)
    noise = findings(make_subject(None, X, y, predictions=rng.permutation(y), task="regression"))
    assert noise["performance/mean"].severity == "fail"
    good = findings(make_subject(None, X, y, predictions=y + rng.normal(size=600) * 0.3, task="regression"))
    assert good["performance/mean"].severity == good["performance/median"].severity == "ok"
    expected = 1 - np.abs(y - np.median(y)).mean()
    assert expected < good["performance/median"].value < 1


def test_a_forest_that_learned_its_rows_by_heart_is_told():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(1200, 5)), columns=list("abcde"))
    y = (rng.random(1200) < 0.5).astype(int)
    model = RandomForestClassifier(20, random_state=0).fit(X[:600], y[:600])
    subject = make_subject(model, X[600:].reset_index(drop=True), y[600:], train=(X[:600], y[:600]))
    gap = findings(subject)["performance/train_gap"]
    assert gap.severity == "warn"
    assert gap.value == pytest.approx(model.score(X[:600], y[:600]) - model.score(X[600:], y[600:]))
    z = y + rng.normal(size=1200)
    forest = RandomForestRegressor(20, random_state=0).fit(X[:600], z[:600])
    other = make_subject(forest, X[600:].reset_index(drop=True), z[600:], train=(X[:600], z[:600]))
    gap = findings(other)["performance/train_gap"]
    assert gap.severity == "warn"
    assert gap.value == pytest.approx(forest.score(X[:600], z[:600]) - forest.score(X[600:], z[600:]))


# --- small cells ------------------------------------------------------------------------------------------------------


def test_cells_of_the_confusion_table_below_the_smallest_cell_cannot_be_worked_out():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [200, 200, 200])
    p = y.copy()
    p[:3] = 1  # three rows of class 0 go to class 1
    p[10:40] = 2
    p[200:230] = 0
    p[230:260] = 2
    p[400:430] = 0
    p[430:460] = 1
    X = pd.DataFrame({"x": rng.normal(size=600)})
    table = findings(make_subject(None, X, y, predictions=p, task="multiclass"))["performance/classes"].tables[1]
    cells = np.array([row[2:] for row in table.rows], dtype=object)
    assert cells[0, 1] == SUPPRESSED
    off = ~np.eye(3, dtype=bool)
    hidden = cells == SUPPRESSED
    for axis in (0, 1):
        assert not ((hidden & off).sum(axis=axis) == 1).any()


def test_rates_of_few_rows_are_withheld():
    y = np.array([0] * 200 + [1] * 4)
    s = np.where(y == 1, 0.9, 0.1)
    X = pd.DataFrame({"x": range(204)})
    got = values(findings(make_subject(None, X, y, predictions=s, prediction_type="score"))["performance/metrics"])
    assert {name for name, value in got.items() if value == SUPPRESSED} == {
        "recall",
        "precision",
        "specificity",
        "balanced accuracy",
        "F1",
    }
    found = findings(make_subject(None, X, y, predictions=s, prediction_type="score"))
    assert found["performance/most_common_class"].status == found["performance/base_rate"].status == "inconclusive"
    assert found["performance/base_rate"].value is None


def test_a_class_of_few_rows_cannot_be_worked_out_from_the_others():
    y = np.repeat([0, 1, 2], [100, 60, 4])
    X = pd.DataFrame({"x": range(164)})
    tables = findings(make_subject(None, X, y, predictions=y, task="multiclass"))["performance/classes"].tables
    for table in tables:
        assert [row[1] for row in table.rows] == [100, SUPPRESSED, SUPPRESSED]


def test_nothing_is_shown_of_fewer_rows_than_the_smallest_cell():
    X = pd.DataFrame({"x": range(9)})
    found = findings(make_subject(None, X, np.arange(9) % 2, predictions=np.arange(9) / 9, prediction_type="score"))
    assert set(found) == {"performance/metrics"}
    assert found["performance/metrics"].value is None
