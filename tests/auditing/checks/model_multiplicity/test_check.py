"""The check against figures computed by hand, planted differences, and what it must not show."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm

import aboveboard
from aboveboard.auditing.checks import model_multiplicity
from aboveboard.auditing.subject import make_subject
from aboveboard.core.finding import SUPPRESSED
from tests.hostile import HOSTILE


def subject_of(n=4000, seed=0, apart=0.3, extra=0.0, scores=True, **options):
    """Two models of one truth that differ for the group "b" alone, one the mirror of the other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n).round(1), "town": rng.choice(["A", "B", "C"], n)})
    group = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    truth = rng.uniform(0.05, 0.95, n)
    y = (rng.random(n) < truth).astype(int)
    noise = apart * rng.standard_normal(n) * (group == "b")
    p, q = (np.clip(truth + sign * noise + (sign < 0) * extra, 0, 1) for sign in (1, -1))
    if not scores:
        p, q = (p >= 0.5).astype(int), (q >= 0.5).astype(int)
    return make_subject(
        None, X, y, predictions=p, compare_predictions=q, sensitive_features=pd.DataFrame({"g": group}), **options
    )


def findings_of(subject, seed=0):
    found = model_multiplicity.check(subject, random_state=seed, effort="standard")
    assert all(f.check == "model_multiplicity" and f.area == "uncertainty" for f in found)
    return {f.id.removeprefix("model_multiplicity/"): f for f in found}


def test_equally_good_models_that_decide_differently_are_a_warning_with_the_remedy():
    subject = subject_of(20_000)
    found = findings_of(subject)
    share = (subject.prediction != subject.other.prediction).mean()
    assert found["equally_good"].severity == "ok"
    assert found["decisions"].severity == "warn"
    assert found["decisions"].value == pytest.approx(share)
    assert found["decisions"].interval.low < share < found["decisions"].interval.high
    assert found["decisions"].remedies == ("ReDCal",)


def test_the_paired_differences_are_those_of_mcnemar_and_of_the_mean():
    subject = subject_of(3000)
    mine, theirs = subject.prediction == subject.y, subject.other.prediction == subject.y
    (table,) = findings_of(subject)["equally_good"].tables
    accuracy, brier = table.rows
    better, worse = int((mine & ~theirs).sum()), int((theirs & ~mine).sum())
    assert accuracy[3] == pytest.approx((better - worse) / 3000)
    assert accuracy[5] == pytest.approx(binomtest(better, better + worse).pvalue)
    gain = (subject.score - subject.y) ** 2 - (subject.other.score - subject.y) ** 2
    error = np.hypot(gain.std(ddof=1) / np.sqrt(3000), 1 / 3000)
    assert brier[3] == pytest.approx(gain.mean())
    assert brier[4] == pytest.approx((gain.mean() - 1.96 * error, gain.mean() + 1.96 * error), abs=1e-5)
    assert brier[5] == pytest.approx(2 * norm.sf(abs(gain.mean()) / error))


def test_a_worse_model_is_no_rival_and_disagreement_with_it_no_warning():
    found = findings_of(subject_of(4000, extra=0.4))
    assert found["equally_good"].severity == "note"
    assert "not equally good" in found["equally_good"].statement
    assert found["decisions"].severity == "note"
    assert "better one may have reasons" in found["decisions"].reason


def test_models_that_agree_are_ok_and_nothing_is_reconciled():
    found = findings_of(subject_of(4000, apart=0.0))
    assert (found["equally_good"].severity, found["decisions"].severity) == ("ok", "ok")
    assert found["decisions"].value == 0
    assert found["decisions"].interval.high > 0
    assert found["by_group/g"].severity == "ok"
    assert found["arbitrary"].status == found["reconciled"].status == "inconclusive"


def test_the_group_that_bears_it_is_found():
    subject = subject_of(20_000)
    finding = findings_of(subject)["by_group/g"]
    assert finding.severity == "warn"
    differ = subject.prediction != subject.other.prediction
    b = subject.sensitive["g"] == "b"
    assert finding.value == pytest.approx(differ[b].mean() - differ[~b].mean())
    assert finding.statement.startswith("g: decisions about b differ")
    assert finding.interval.simultaneous


def test_the_rule_names_the_rows_and_its_shares_are_of_the_other_half():
    rng = np.random.default_rng(1)
    n = 6000
    X = pd.DataFrame({"age": rng.uniform(20, 80, n), "noise": rng.standard_normal(n)})
    truth = rng.uniform(0, 1, n)
    y = (rng.random(n) < truth).astype(int)
    q = np.where(X["age"] > 60, 1 - truth, truth)
    subject = make_subject(None, X, y, predictions=truth, compare_predictions=q)
    finding = findings_of(subject)["arbitrary"]
    assert finding.severity == "note"
    assert "age above 6" in finding.statement or "age above 59" in finding.statement
    assert finding.value > 0.95
    first, second = finding.tables
    assert sum(row[3] for row in first.rows) == finding.n == 3000
    assert sum(row[3] for row in second.rows) == 3000


def test_the_remedy_is_tried_on_rows_that_were_held_out():
    subject = subject_of(20_000)
    finding = findings_of(subject)["reconciled"]
    rows = {row[0]: row[1:] for row in finding.tables[0].rows}
    before, after, change, interval = rows["decided differently"]
    assert finding.n == 10_000
    assert after < before / 2
    assert change == pytest.approx(after - before)
    assert interval[0] < change < interval[1] < 0
    assert finding.value == after
    assert finding.remedies == ("ReDCal",)
    whole = (subject.prediction != subject.other.prediction).mean()
    assert before == pytest.approx(whole, abs=0.02)


def test_several_classes_have_pairs_of_decisions_and_a_remedy():
    rng = np.random.default_rng(0)
    n = 3000
    truth = rng.dirichlet(np.ones(3), n)
    y = (truth.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    one, other = (0.6 * truth + 0.4 * rng.dirichlet(np.ones(3), n) for _ in range(2))
    X = pd.DataFrame({"x": truth[:, 0]})
    subject = make_subject(None, X, y, predictions=one, compare_predictions=other)
    found = findings_of(subject)
    pairs = found["decisions"].tables[0].rows
    assert sum(row[4] for row in pairs) == n
    assert {row[0] for row in pairs} == {"0", "1", "2", "the same"}
    assert "instead of" in found["reconciled"].statement


def test_labels_are_compared_and_the_remedy_says_that_it_needs_scores():
    found = findings_of(subject_of(4000, scores=False))
    assert len(found["equally_good"].tables[0].rows) == 1
    assert found["reconciled"].status == "skipped"
    assert "scores" in found["reconciled"].reason
    assert found["decisions"].remedies == ()


def test_the_threshold_in_force_makes_the_loss():
    found = findings_of(subject_of(6000, threshold=0.8))
    assert found["reconciled"].tables[0].rows[0][1] == pytest.approx(found["decisions"].value, abs=0.03)


def test_few_rows_are_inconclusive():
    found = findings_of(subject_of(60))
    assert all(found[name].status == "inconclusive" for name in ("equally_good", "arbitrary", "reconciled"))


def test_small_groups_and_small_pairs_are_withheld():
    subject = subject_of(2000)
    group = subject.sensitive["g"].astype(str).to_numpy()
    group[:4] = "tiny"
    group[4:100] = "small"
    small = make_subject(
        None, subject.X, subject.y, predictions=subject.score, compare_predictions=subject.other.score,
        sensitive_features=pd.DataFrame({"g": group}),
    )  # fmt: skip
    finding = findings_of(small)["by_group/g"]
    rows = {row[0]: row for row in finding.tables[0].rows}
    assert rows["tiny"][1:] == (SUPPRESSED,) * 4
    assert "tiny" not in finding.figures[0].series[0].x
    assert sum(row[1] == SUPPRESSED for row in rows.values()) >= 2  # the total would give it away
    few = subject_of(2000, apart=0.02)
    hidden = findings_of(few)["decisions"].tables[0].rows
    counts = [row[4] for row in hidden if row[4] != SUPPRESSED]
    assert all(count >= 10 for count in counts)


def test_weights_and_clusters_widen_the_intervals():
    plain = subject_of(4000)
    options = {"predictions": plain.score, "compare_predictions": plain.other.score}
    families = make_subject(None, plain.X, plain.y, clusters=np.repeat(np.arange(400), 10), **options)
    weighted = make_subject(None, plain.X, plain.y, sample_weight=np.where(plain.y == 1, 5.0, 1.0), **options)
    width = {name: findings_of(s)["decisions"].interval for name, s in (("p", plain), ("w", weighted))}
    assert width["w"].high - width["w"].low > width["p"].high - width["p"].low
    found = findings_of(families)
    first, second = model_multiplicity.whose.halves(families, 0)
    assert len({*families.cluster[first]} & {*families.cluster[second]}) == 0
    assert found["reconciled"].n == second.sum()


def test_the_same_seed_gives_the_same_findings():
    subject = subject_of(3000)
    one, same = (findings_of(subject, seed=5) for _ in range(2))
    assert json.dumps([f.to_dict() for f in one.values()]) == json.dumps([f.to_dict() for f in same.values()])


def test_hostile_names_go_through_the_report():
    rng = np.random.default_rng(0)
    n = 1200
    names = list(HOSTILE.values())
    X = pd.DataFrame({name: rng.standard_normal(n) for name in names[:6]})
    X[names[7]] = pd.Series([names[i] for i in rng.integers(len(names), size=n)], dtype=object)
    p = rng.uniform(0, 1, n)
    y = (rng.random(n) < p).astype(int)
    q = np.where(X[names[0]] > 0.5, 1 - p, p)
    report = aboveboard.audit(
        None, X, y, predictions=p, compare_predictions=q,
        sensitive_features=pd.DataFrame({names[1]: [names[i] for i in rng.integers(4, size=n)]}),
        only="model_multiplicity",
    )  # fmt: skip
    assert not report.not_run
    assert "<script>alert(1)" not in report.to_html()
    json.loads(report.to_json())


@pytest.mark.parametrize("kind", ["missing", "constant", "dates", "none"])
def test_odd_features_make_no_rule_fail(kind):
    subject = subject_of(1000)
    X = {
        "missing": pd.DataFrame({"a": np.where(np.arange(1000) % 3, np.nan, 1.0), "b": np.nan}),
        "constant": pd.DataFrame({"a": np.ones(1000), "c": pd.Categorical(["x"] * 1000)}),
        "dates": pd.DataFrame({"d": pd.date_range("2020-01-01", periods=1000)}),
        "none": pd.DataFrame(index=range(1000)),
    }[kind]
    X["keep"] = 1
    again = make_subject(None, X, subject.y, predictions=subject.score, compare_predictions=subject.other.score,
                         drop=["keep"])  # fmt: skip
    assert findings_of(again)["arbitrary"].status == "ran"


@pytest.mark.slow
def test_the_paired_interval_keeps_its_level():
    """Two models with known accuracies: the truth lies outside a 95 % interval in at most 6.2 % of 2,000 draws."""
    from aboveboard.auditing.checks.model_multiplicity.comparison import paired
    from aboveboard.auditing.estimates import Rows

    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(2000):
        cell = rng.choice(4, 300, p=[0.75, 0.06, 0.04, 0.15])  # both right, only the first, only the second, none
        found = paired((cell < 2).astype(float), np.isin(cell, (0, 2)).astype(float), Rows(300), discrete=True)
        missed += not found.interval.low <= 0.02 <= found.interval.high
    assert missed <= 2000 * 0.05 + 2.326 * np.sqrt(2000 * 0.05 * 0.95)
