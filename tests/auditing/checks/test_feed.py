"""The check hands the feed, the votes and the limits in force to the audit of feeds."""

import numpy as np
import pandas as pd

import aboveboard

VOTES = np.array([[1, 1, -1, -1]] * 60 + [[-1, -1, 1, -1]] * 25 + [[-1, -1, -1, 1]] * 15)


def audited(votes=VOTES, settings=None, **options):
    report = aboveboard.audit(
        None,
        pd.DataFrame(votes, columns=list("abcd")),
        suite="feed",
        settings={"order": "file", "lengths": "2,4", **(settings or {})},
        effort="quick",
        **options,
    )
    return {finding.id: finding for finding in report.findings}


def test_the_limits_in_force_decide():
    assert audited()["feed/top2"].severity == "ok"
    strict = audited(limits={"feed.excluded": 0.4})["feed/top2"]
    assert (strict.severity, strict.value, strict.limit_source) == ("fail", 0.5, "the user")


def test_the_smallest_cell_counts_readers():
    assert audited(min_cell=26)["feed/top2"].value is None  # the group has 25
    assert audited(min_cell=101)["feed/top2"].status == "inconclusive"


def test_a_sample_that_is_too_small_is_inconclusive():
    few, many = (
        audited(np.repeat(VOTES, times, axis=0), {"readers": "sample"}, limits={"feed.excluded": 0.6})["feed/top2"]
        for times in (1, 100)
    )
    assert (few.status, many.severity) == ("inconclusive", "ok")
    assert few.interval.low < 0.5 < few.interval.high


def test_predicted_votes_are_said_to_be_guesses():
    rng = np.random.default_rng(0)
    votes = np.where(rng.random(VOTES.shape) < 0.3, 0, VOTES)
    found = audited(votes, {"missing": "predict"})
    assert found["feed/imputed"].evidence
    assert "feed/imputed" not in audited(votes)
