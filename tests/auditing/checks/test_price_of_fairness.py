"""The price of parity as a check: what it costs, where it is free, and who is left out."""

import json

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.price_of_fairness import check
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.subject import Subject
from aboveboard.fairness import price_of_parity

CONSTRAINTS = ("demographic_parity", "equal_opportunity", "predictive_equality")


def _subject(score, y, sensitive, **given):
    frame = pd.DataFrame({name: pd.Categorical(values) for name, values in sensitive.items()})
    known = {
        "X": pd.DataFrame({"x": np.zeros(len(y))}),
        "y": np.asarray(y),
        "task": "binary",
        "classes": ("no", "yes"),
        "target": "y",
        "prediction": (np.asarray(score) >= 0.5).astype(int),
        "score": np.asarray(score),
        "sensitive": frame,
    }
    return Subject(**(known | given))


def _check(subject, effort="quick"):
    findings = check(subject, random_state=0, effort=effort)
    assert len({f.id for f in findings}) == len(findings)
    json.dumps([f.to_dict() for f in findings], allow_nan=False)
    return {f.id.removeprefix("price_of_fairness/"): f for f in findings}


def _unequal(n=20_000, seed=0):
    """Two groups that can be told from their outcomes all but perfectly, with 20 % and 70 % positives."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, n)
    y = (rng.random(n) < np.where(group == 0, 0.2, 0.7)).astype(int)
    return np.clip(0.5 + 0.45 * (2 * y - 1) + rng.normal(0, 0.01, n), 0, 1), y, np.array(["a", "b"])[group]


def _alike(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 2, n)
    return score, (rng.random(n) < score).astype(int), rng.choice(["a", "b"], n)


def test_equal_selection_of_unequal_groups_costs_what_must_be_misjudged():
    # a perfect score: half a share of positives must be turned down or of negatives accepted, in half the people
    found = _check(_subject(*_unequal()[:2], {"g": _unequal()[2]}))
    finding = found["demographic_parity/g"]
    assert finding.value == pytest.approx(0.25, abs=0.01)
    assert finding.interval.low < 0.25 < finding.interval.high
    assert (finding.severity, finding.status) == ("note", "ran")
    assert finding.remedies == ("RandomizedFairClassifier",)
    assert "would cost 2" in finding.statement


def test_a_perfect_score_pays_nothing_for_equal_error_rates():
    score, y, group = _unequal()
    found = _check(_subject(score, y, {"g": group}))
    for name in ("equal_opportunity/g", "predictive_equality/g"):
        assert found[name].value == pytest.approx(0, abs=0.002)
        assert (found[name].severity, found[name].status) == ("ok", "ran")


def test_groups_that_are_alike_pay_nothing():
    score, y, group = _alike()
    for finding in _check(_subject(score, y, {"g": group})).values():
        assert finding.interval.low <= 0 <= finding.interval.high or finding.value < 0.003
        assert finding.severity == "ok"


def test_too_few_rows_are_inconclusive_and_not_ok():
    score, y, group = _alike(200)
    for finding in _check(_subject(score, y, {"g": group})).values():
        assert finding.status == "inconclusive"
        assert "too few rows" in finding.reason


def test_its_figures_are_those_of_price_of_parity_with_weights_and_clusters():
    score, y, group = _unequal(3000)
    rng = np.random.default_rng(1)
    weight, cluster = rng.uniform(0.5, 2, 3000), rng.integers(0, 1500, 3000)
    finding = _check(_subject(score, y, {"g": group}, weight=weight, cluster=cluster), "standard")[
        "demographic_parity/g"
    ]
    price = price_of_parity(
        score,
        y,
        group,
        cv=5,
        slack=(0, 0.01, 0.02, 0.05, 0.1, 0.2),
        sample_weight=weight,
        cluster=cluster,
        random_state=0,
    )
    assert finding.value == price.price[0]
    assert (finding.interval.low, finding.interval.high) == (price.price_low[0], price.price_high[0])
    assert finding.figures[0].series[0].y == tuple(price.accuracy)
    assert [row[1] for row in finding.tables[0].rows[:6]] == price.accuracy.tolist()


def test_the_table_ends_with_the_model_as_it_is():
    score, y, group = _unequal(4000)
    prediction = (score > 0.3).astype(int)
    found = _check(_subject(score, y, {"g": group}, prediction=prediction))
    name, accuracy, _, price, _, gap = found["demographic_parity/g"].tables[0].rows[-1]
    assert name == "the model as it is"
    assert accuracy == pytest.approx((prediction == y).mean())
    assert gap == pytest.approx(prediction[group == "b"].mean() - prediction[group == "a"].mean())
    assert price == pytest.approx(found["demographic_parity/g"].tables[0].rows[-2][1] - accuracy)


def test_groups_with_too_few_rows_that_count_are_left_out_and_named():
    score, y, group = _unequal(2000)
    group = group.astype(object)
    group[:40] = "c"
    y[:35], y[35:40] = 0, 1
    found = _check(_subject(score, y, {"g": group}))
    assert "g=c" not in found["demographic_parity/g"].reason
    assert "g=c" in found["equal_opportunity/g"].reason
    assert found["equal_opportunity/g"].n == 1960
    lenient = Limits({"price_of_fairness.min_rows": 60})
    assert "g=c" in _check(_subject(score, y, {"g": group}, limits=lenient))["demographic_parity/g"].reason


def test_the_number_of_rows_does_not_give_away_a_small_group():
    score, y, group = _unequal(2000)
    group = group.astype(object)
    group[:3] = "c"
    finding = _check(_subject(score, y, {"g": group}))["demographic_parity/g"]
    assert finding.n is None
    assert "1,997" not in json.dumps(finding.to_dict())
    assert "1997" not in json.dumps(finding.to_dict())


def test_a_single_group_cannot_be_priced():
    score, y, _ = _alike(500)
    for finding in _check(_subject(score, y, {"g": ["only"] * 500})).values():
        assert finding.status == "inconclusive"
        assert "not two groups" in finding.statement


def test_intersections_are_priced_too():
    score, y, group = _unequal(4000)
    found = _check(_subject(score, y, {"g": group, "h": np.where(np.arange(4000) % 2, "x", "y")}))
    assert {name.partition("/")[2] for name in found} == {"g", "h", "g & h"}
    assert {name.partition("/")[0] for name in found} == set(CONSTRAINTS)
    assert found["demographic_parity/g & h"].value == pytest.approx(found["demographic_parity/g"].value, abs=0.02)


def test_rows_of_weight_zero_do_not_count():
    score, y, group = _unequal(2000)
    weight = np.ones(2000)
    weight[group == "b"] = 0
    for finding in _check(_subject(score, y, {"g": group}, weight=weight)).values():
        assert finding.status == "inconclusive"


def test_names_of_groups_may_be_anything(hostile_name):
    score, y, group = _unequal(400)
    groups = pd.Index(["plain", hostile_name], dtype=object)
    names = pd.Categorical.from_codes((group == "b").astype(int), groups)
    found = _check(_subject(score, y, {"g": names}))
    assert set(found) == {f"{c}/g" for c in CONSTRAINTS}


def test_more_effort_gives_more_points_of_the_same_curve():
    score, y, group = _unequal(2000)
    subject = _subject(score, y, {"g": group})
    quick, full = (_check(subject, effort)["demographic_parity/g"] for effort in ("quick", "full"))
    assert len(full.figures[0].series[0].x) > len(quick.figures[0].series[0].x)
    assert full.value == quick.value
