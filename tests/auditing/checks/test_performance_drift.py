import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from aboveboard.auditing.checks.performance_drift import check
from aboveboard.auditing.subject import make_subject


def findings(new, old, **options):
    subject = make_subject(None, new, "y", reference=old, **({"predictions": "p"} | options))
    return {f.id.removeprefix("performance_drift/"): f for f in check(subject, random_state=0, effort="standard")}


def scored(n, seed, skill=1.5):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return pd.DataFrame({"x": 1.0, "y": y, "p": stats.norm.cdf(rng.normal(size=n) + skill * (y - 0.5))})


def numbered(n, seed, noise=1.0):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    return pd.DataFrame({"x": 1.0, "y": y, "p": y + noise * rng.normal(size=n)})


def test_a_model_that_stayed_as_good_is_fine():
    found = findings(scored(9000, 0), scored(9000, 1))
    assert {name: (f.severity, f.status) for name, f in found.items()} == {
        "accuracy": ("ok", "ran"), "auc": ("ok", "ran"),
    }  # fmt: skip


def test_a_model_that_became_worse_is_found():
    new, old = scored(6000, 0, skill=1.0), scored(6000, 1)
    found = findings(new, old)
    right = [((table["p"] >= 0.5) == table["y"]).mean() for table in (new, old)]
    assert found["accuracy"].value == pytest.approx(right[1] - right[0])
    assert found["accuracy"].severity == "fail"
    area = [roc_auc_score(table["y"], table["p"]) for table in (new, old)]
    assert found["auc"].value == pytest.approx(area[1] - area[0])
    true = stats.norm.cdf(1.5 / np.sqrt(2)) - stats.norm.cdf(1.0 / np.sqrt(2))
    assert found["auc"].interval.low < true < found["auc"].interval.high
    assert found["auc"].severity == "fail"
    assert "fell from" in found["auc"].statement


def test_a_model_that_became_better_is_no_finding():
    found = findings(scored(6000, 0, skill=2.5), scored(6000, 1))
    assert {f.severity for f in found.values()} == {"ok"}
    assert found["accuracy"].value < 0
    assert "rose from" in found["accuracy"].statement


def test_errors_of_numbers_are_compared_as_a_ratio():
    new, old = numbered(5000, 0, noise=1.4), numbered(4000, 1)
    finding = findings(new, old)["error"]
    ratio = (new["p"] - new["y"]).abs().mean() / (old["p"] - old["y"]).abs().mean()
    assert finding.value == pytest.approx(ratio - 1)
    assert finding.interval.low < 0.4 < finding.interval.high
    assert finding.severity == "fail"
    assert "more (95 % interval" in finding.statement


def test_a_model_without_any_error_leaves_it_open():
    old = numbered(500, 1, noise=0.0)
    assert findings(numbered(500, 0), old)["error"].status == "inconclusive"
    assert findings(numbered(500, 0, noise=0.0), old)["error"].value == 0.0


def test_rows_of_a_class_that_is_gone_are_left_out():
    rng = np.random.default_rng(0)
    old = pd.DataFrame({"x": 1.0, "y": rng.choice(list("abc"), 3000)}).assign(p=lambda t: t["y"])
    new = old[old["y"] != "c"].reset_index(drop=True)
    assert findings(new, old)["accuracy"].value == 0.0


def test_a_reference_of_one_class_has_no_curve():
    found = findings(scored(3000, 0), scored(3000, 1).query("y == 1").reset_index(drop=True))
    assert set(found) == {"accuracy"}


def test_several_classes_are_compared_by_the_mean_area():
    rng = np.random.default_rng(0)
    tables = []
    for skill in (0.5, 3.0):
        y = rng.integers(0, 3, 2000)
        raw = rng.random((2000, 3)) + skill * np.eye(3)[y]
        tables.append(pd.DataFrame(raw / raw.sum(axis=1, keepdims=True), columns=["p_0", "p_1", "p_2"]).assign(y=y))
    finding = findings(*tables, predictions=["p_0", "p_1", "p_2"])["auc"]
    area = [roc_auc_score(t["y"], t[["p_0", "p_1", "p_2"]], multi_class="ovr") for t in tables]
    assert finding.value == pytest.approx(area[1] - area[0])


def test_few_rows_tell_nothing():
    assert findings(scored(3000, 0), scored(20, 1))["accuracy"].status == "inconclusive"
    assert findings(numbered(3000, 0), numbered(20, 1))["error"].status == "inconclusive"


def test_the_verdict_is_the_same_for_a_twentieth_of_the_rows():
    for skill, expected in ((1.5, "ok"), (0.5, "fail")):
        for n in (100_000, 5000):
            assert findings(scored(n, 0, skill), scored(n, 1))["auc"].severity == expected


def missed(draws):
    """How often accuracy or AUC is accused of more than the truth, and each of all three acquitted of it."""
    accused = 0
    acquitted = {"accuracy": 0, "auc": 0, "error": 0}
    change = {
        "accuracy": stats.norm.cdf(0.75) - stats.norm.cdf(0.6),
        "auc": stats.norm.cdf(1.5 / np.sqrt(2)) - stats.norm.cdf(1.2 / np.sqrt(2)),
    }
    for seed in range(draws):
        found = findings(scored(600, 2 * seed, 1.2), scored(500, 2 * seed + 1))
        accused += any(found[name].interval.low > true for name, true in change.items())
        found |= findings(numbered(400, 2 * seed, 1.1), numbered(300, 2 * seed + 1))
        for name, true in (change | {"error": 0.1}).items():
            acquitted[name] += found[name].interval.high < true
    return accused / draws, *(count / draws for count in acquitted.values())


@pytest.mark.slow
def test_each_end_misses_the_true_change_in_no_more_than_its_share_of_audits():
    # acceptance: 2.5 % plus 3 standard errors of 2,000 draws, for each of the four rates
    assert max(missed(2000)) <= 0.025 + 3 * np.sqrt(0.025 * 0.975 / 2000)


def test_the_intervals_hardly_miss_the_true_change():
    assert max(missed(60)) <= 0.1
