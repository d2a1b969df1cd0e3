"""The rule about whose decisions differ."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.subject import make_subject


def test_the_rule_names_the_rows_and_its_shares_are_of_the_other_half(findings_of):
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


@pytest.mark.parametrize("kind", ["missing", "constant", "dates", "none"])
def test_odd_features_make_no_rule_fail(kind, subject_of, findings_of):
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
