"""What a fitted SHIFT says in reports."""

import numpy as np
import pytest

from aboveboard.drift import SHIFT


@pytest.fixture(scope="module")
def fitted(flipped, sign, fast):
    return SHIFT(random_state=0, **fast).fit(*flipped, model=sign, candidates={"one": ["x0"], "two": ["x1"]})


def test_a_decay_is_told_with_who_where_and_why(fitted):
    outcome, covariate = fitted.findings(check="decay_of_groups", area="drift")
    assert outcome.id == "decay_of_groups/outcome"
    assert outcome.severity in ("warn", "fail")
    assert outcome.value == fitted.aggregate_["outcome"].decay
    assert outcome.interval.simultaneous
    assert [table.title for table in outcome.tables] == [
        "Who suffers", "Which columns decide who is in it", "What explains it",
    ]  # fmt: skip
    assert "x1 >" in outcome.tables[0].note
    assert covariate.severity in ("ok", "note")


def test_too_few_rows_are_inconclusive_and_many_are_ok(fast, sign):
    rng = np.random.default_rng(0)
    for n, status in ((400, "inconclusive"), (20_000, "ran")):
        X0, X1 = rng.normal(size=(2, n, 2))
        y0, y1 = ((rng.random(n) < sign.predict_proba(X)[:, 1]).astype(int) for X in (X0, X1))
        found = SHIFT(random_state=0, **fast).fit(X0, y0, X1, y1, model=sign)
        assert {finding.status for finding in found.findings()} == {status}


def test_the_summary_names_rules_and_explanations(fitted):
    told = fitted.summary()
    assert "explained by: two" in told
    assert "who: " in told


def test_the_certificate_says_what_it_rests_on(fitted):
    certificate = fitted.certificate_
    assert certificate.confidence == 0.95
    assert [a.basis for a in certificate.assumptions] == ["assumed", "assumed", "checked"]
    assert certificate.to_dict()["holds"]


def test_results_are_plain_data(fitted):
    result = fitted.aggregate_["outcome"]
    assert set(result.to_dict()) >= {"p_value", "decay", "interval", "detectors"}
    assert "rejected" in repr(result)
