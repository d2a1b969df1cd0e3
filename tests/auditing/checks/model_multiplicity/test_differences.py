"""How many decisions differ, and for whom: planted differences, and what must not be shown."""

import json

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing.checks import model_multiplicity
from aboveboard.auditing.subject import make_subject
from aboveboard.core.finding import SUPPRESSED
from tests.hostile import HOSTILE


def test_equally_good_models_that_decide_differently_are_a_warning_with_the_remedy(subject_of, findings_of):
    subject = subject_of(20_000)
    found = findings_of(subject)
    share = (subject.prediction != subject.other.prediction).mean()
    assert found["equally_good"].severity == "ok"
    assert found["decisions"].severity == "warn"
    assert found["decisions"].value == pytest.approx(share)
    assert found["decisions"].interval.low < share < found["decisions"].interval.high
    assert found["decisions"].remedies == ("ReDCal",)


def test_a_worse_model_is_no_rival_and_disagreement_with_it_no_warning(subject_of, findings_of):
    found = findings_of(subject_of(4000, extra=0.4))
    assert found["equally_good"].severity == "note"
    assert "not equally good" in found["equally_good"].statement
    assert found["decisions"].severity == "note"
    assert "better one may have reasons" in found["decisions"].reason


def test_models_that_agree_are_ok_and_nothing_is_reconciled(subject_of, findings_of):
    found = findings_of(subject_of(4000, apart=0.0))
    assert (found["equally_good"].severity, found["decisions"].severity) == ("ok", "ok")
    assert found["decisions"].value == 0
    assert found["decisions"].interval.high > 0
    assert found["by_group/g"].severity == "ok"
    assert found["arbitrary"].status == found["reconciled"].status == "inconclusive"


def test_the_group_that_bears_it_is_found(subject_of, findings_of):
    subject = subject_of(20_000)
    finding = findings_of(subject)["by_group/g"]
    assert finding.severity == "warn"
    differ = subject.prediction != subject.other.prediction
    b = subject.sensitive["g"] == "b"
    assert finding.value == pytest.approx(differ[b].mean() - differ[~b].mean())
    assert finding.statement.startswith("g: decisions about b differ")
    assert finding.interval.simultaneous


def test_several_classes_have_pairs_of_decisions_and_a_remedy(findings_of):
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


def test_few_rows_are_inconclusive(subject_of, findings_of):
    found = findings_of(subject_of(60))
    assert all(found[name].status == "inconclusive" for name in ("equally_good", "arbitrary", "reconciled"))


def test_small_groups_and_small_pairs_are_withheld(subject_of, findings_of):
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


def test_weights_and_clusters_widen_the_intervals(subject_of, findings_of):
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


def test_the_same_seed_gives_the_same_findings(subject_of, findings_of):
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
