"""The findings: figures against scikit-learn and closed forms, verdicts and their level, groups, and odd input."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.tree import DecisionTreeClassifier

from aboveboard.collective import ManipulationGame, manipulation_audit
from aboveboard.core import InputError


def task(n=2000, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (X @ [1.0, 1.0, 0.0] + noise * rng.normal(size=n) > 0).astype(int)
    return X, y, LogisticRegression().fit(X, y)


def audit(*arguments, **options):
    findings = manipulation_audit(*arguments, random_state=0, **options)
    for finding in findings:
        json.dumps(finding.to_dict(), allow_nan=False)
    return {finding.id: finding for finding in findings}


FREE = ManipulationGame(cost="squared_l2", alpha=1.0, externality="congestion", beta=0.01)


def test_without_bounds_everybody_s_score_rises_by_the_closed_form():
    X, y, model = task()
    finding = audit(model, X, y, FREE, n_agents=10)["gaming/accuracy"]
    G = np.linalg.norm(model.coef_)
    score = model.decision_function(X)
    rows = {(row[0], row[1]): row[2:] for row in finding.tables[0].rows}
    for factor in (0.25, 0.5, 1.0, 2.0, 4.0):
        r = G / (factor * (2 + 4 * 0.01 * 9))
        accuracy, loss, positive, length = rows["to be judged positive", factor]
        assert length == pytest.approx(r)
        assert accuracy == pytest.approx(accuracy_score(y, score + G * r > 0))
        assert loss == pytest.approx(log_loss(y, 1 / (1 + np.exp(-score - G * r))))
        assert positive == pytest.approx((score + G * r > 0).mean())
    assert rows["nobody moves", None][0] == pytest.approx(model.score(X, y))
    away = rows["to be judged negative", 1.0]
    assert away[0] == pytest.approx(accuracy_score(y, score - G * G / 2.36 > 0))
    assert finding.value == pytest.approx(rows["nobody moves", None][0] - rows["to be judged positive", 1.0][0])


def test_features_move_in_proportion_to_their_weights():
    X, y, model = task()
    table = audit(model, X, y, FREE)["gaming/accuracy"].tables[1]
    moves = {row[0]: row[2] for row in table.rows}
    spread = X.std(axis=0)
    ratio = abs(model.coef_[0, 0] / model.coef_[0, 1]) * spread[1] / spread[0]
    assert moves["feature 0"] / moves["feature 1"] == pytest.approx(ratio)
    gains = sum(row[3] for row in table.rows)
    assert gains == pytest.approx(np.linalg.norm(model.coef_) ** 2 / 2.36)


def test_a_loss_beyond_the_limit_is_a_warning_with_a_remedy_and_one_within_is_ok():
    X, y, model = task()
    bad = audit(model, X, y, ManipulationGame(cost="squared_l2", alpha=0.2, beta=0.01))["gaming/accuracy"]
    assert (bad.severity, bad.status) == ("warn", "ran")
    assert bad.remedies == ("StrategicEquilibriumClassifier",)
    fine = audit(model, X, y, ManipulationGame(cost="squared_l2", alpha=50.0))["gaming/accuracy"]
    assert (fine.severity, fine.remedies) == ("ok", ())
    between = audit(model, X, y, FREE, limit=bad.value / 5)["gaming/accuracy"]
    assert (between.severity == "note") == (between.status == "inconclusive")


def test_too_few_rows_give_no_verdict():
    X, y, model = task()
    for n in (2, 50, 99):
        finding = audit(model, X[:n], y[:n])["gaming/accuracy"]
        assert (finding.status, finding.severity) == ("inconclusive", "note")
    assert audit(model, X[:150], y[:150], n_agents=200)["gaming/accuracy"].status == "inconclusive"
    assert audit(model, X[:150], y[:150])["gaming/accuracy"].interval is not None


def test_the_interval_covers_the_loss_in_the_population_as_often_as_it_says():
    """2,000 samples of 300 rows: 95 % intervals, less what 2,000 draws leave to chance, with 1 % to spare."""
    X, y, model = task(200_000)
    score = model.decision_function(X)
    rise = np.linalg.norm(model.coef_) ** 2 / 2.36
    true = accuracy_score(y, score > 0) - accuracy_score(y, score + rise > 0)
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(2000):
        rows = rng.integers(len(X), size=300)
        before, after = (score[rows] > 0) == y[rows], (score[rows] + rise > 0) == y[rows]
        difference = before * 1.0 - after
        half = 1.959964 * difference.std() * np.sqrt(1 / 299)
        covered += abs(difference.mean() - true) <= half
    finding = audit(model, X[rows], y[rows], FREE)["gaming/accuracy"]
    assert finding.value == pytest.approx(difference.mean())
    assert (finding.interval.low, finding.interval.high) == pytest.approx(
        (difference.mean() - half, difference.mean() + half), rel=1e-5
    )
    assert 0.93 <= covered / 2000 <= 0.97


def test_groups_near_the_threshold_gain_most():
    X, y, model = task(4000)
    score = model.decision_function(X)
    near = np.where(np.abs(score + 0.3) < 0.5, "near", "far")
    finding = audit(model, X, y, FREE, sensitive_features={"place": near})["gaming/groups/place"]
    assert "most for near" in finding.statement
    assert (finding.severity, finding.status) == ("note", "ran")
    rows = {row[0]: row for row in finding.tables[0].rows}
    rise = np.linalg.norm(model.coef_) ** 2 / 2.36
    for group, row in rows.items():
        before, after = (score[near == group] > 0).mean(), (score[near == group] + rise > 0).mean()
        assert row[2:5] == pytest.approx((before, after, after - before))
    assert finding.value == pytest.approx(rows["near"][4] - rows["far"][4])
    random = np.random.default_rng(0).choice(["u", "v"], len(X))
    assert audit(model, X, y, FREE, sensitive_features={"g": random})["gaming/groups/g"].severity == "ok"


def test_small_groups_are_left_out_and_named():
    X, y, model = task()
    group = np.where(np.arange(len(X)) < 30, "tiny", np.where(np.arange(len(X)) % 2, "u", "v"))
    finding = audit(model, X, y, sensitive_features={"g": group})["gaming/groups/g"]
    assert "tiny" in finding.tables[0].note
    assert {row[0] for row in finding.tables[0].rows} == {"u", "v"}
    alone = audit(model, X, y, sensitive_features={"g": np.full(len(X), "all")})["gaming/groups/g"]
    assert alone.status == "inconclusive"


def test_weights_and_clusters_enter_means_and_intervals():
    X, y, model = task(600)
    twice = np.repeat(np.arange(600), 2)
    doubled = audit(model, X[twice], y[twice], FREE, clusters=twice)["gaming/accuracy"]
    once = audit(model, X, y, FREE)["gaming/accuracy"]
    assert doubled.value == pytest.approx(once.value)
    assert doubled.interval.high == pytest.approx(once.interval.high, abs=1e-3)
    weight = np.where(y == 1, 3.0, 1.0)
    weighted = audit(model, X, y, FREE, sample_weight=weight)["gaming/accuracy"].tables[0].rows[0]
    assert weighted[2] == pytest.approx(np.average(model.predict(X) == y, weights=weight))


def test_nobody_goes_beyond_what_occurs_by_default_and_missing_values_stay():
    X, y, model = task(500)
    X = np.round(X).clip(-1, 1)
    table = audit(model, X, y)["gaming/accuracy"].tables[1]
    assert max(row[4] for row in table.rows) > 0.2
    holes = X.copy()
    holes[:400, 0] = np.nan
    stand_in = SimpleNamespace(coef_=model.coef_, intercept_=0.0)
    game = ManipulationGame(cost="squared_l2", alpha=1.0, beta=0.01, bounds=(-1, 1))
    found = audit(stand_in, holes, y, game, offset=np.zeros(500))["gaming/accuracy"].tables[1]
    whole = audit(stand_in, X, y, game, offset=np.zeros(500))["gaming/accuracy"].tables[1]
    moved = [{row[0]: row[2] for row in table.rows}["feature 0"] for table in (found, whole)]
    assert moved[0] < 0.5 * moved[1]


def test_constant_features_do_not_move():
    X, y, _ = task()
    X[:, 2] = 4.0
    model = LogisticRegression().fit(X, y)
    table = audit(model, X, y)["gaming/accuracy"].tables[1]
    assert "feature 2" not in {row[0] for row in table.rows}
    assert "feature 2" in table.note


@pytest.mark.parametrize("game", [None, ManipulationGame(externality=None, bounds=(-9, 9)), ManipulationGame()])
def test_other_games_are_described(game):
    X, y, model = task(300)
    note = audit(model, X, y, game)["gaming/accuracy"].tables[0].note
    assert ("nobody is in anybody's way" in note) == (game is not None and game.externality is None)


def test_what_does_not_fit_is_refused():
    X, y, model = task(200)
    with pytest.raises(InputError, match="has no coef_"):
        manipulation_audit(DecisionTreeClassifier().fit(X, y), X, y)
    with pytest.raises(InputError, match="score of two classes"):
        manipulation_audit(LogisticRegression().fit(X, np.arange(200) % 3), X, y)
    with pytest.raises(InputError, match="X has shape"):
        manipulation_audit(model, X[:, :2], y)
    with pytest.raises(InputError, match="missing or infinite"):
        manipulation_audit(model, np.where(X > 2, np.nan, X), y)
    with pytest.raises(InputError, match="labels that the estimator does not know"):
        manipulation_audit(model, X, y + 3)
    with pytest.raises(InputError, match="y has shape"):
        manipulation_audit(model, X, y[:10])
    with pytest.raises(InputError, match="2 feature names"):
        manipulation_audit(model, X, y, feature_names=["a", "b"])
    with pytest.raises(InputError, match="sample_weight is negative"):
        manipulation_audit(model, X, y, sample_weight=-np.ones(200))
    with pytest.raises(InputError, match="labels of 'g'"):
        manipulation_audit(model, X, y, sensitive_features={"g": ["u"]})
    with pytest.raises(InputError, match="outside the bounds"):
        manipulation_audit(model, X, y, ManipulationGame(bounds=(-0.1, 0.1)))
    with pytest.raises(InputError, match="n_agents is 0"):
        manipulation_audit(model, X, y, n_agents=0)
    with pytest.raises(InputError, match="externality is a function"):
        manipulation_audit(model, X, y, ManipulationGame(externality=lambda *_: (0, 0)))
    with pytest.raises(InputError, match="nothing stops"):
        manipulation_audit(model, X, y, ManipulationGame(alpha=0.1, externality=None))


def test_labels_of_the_estimator_are_understood():
    X, y, _ = task(300)
    words = np.where(y == 1, "yes", "no")
    one, other = (
        audit(LogisticRegression().fit(X, labels), X, labels)["gaming/accuracy"].value for labels in (y, words)
    )
    assert one == other
