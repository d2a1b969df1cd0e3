"""Paired differences against McNemar, the mean, and simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm


def test_the_paired_differences_are_those_of_mcnemar_and_of_the_mean(subject_of, findings_of):
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
