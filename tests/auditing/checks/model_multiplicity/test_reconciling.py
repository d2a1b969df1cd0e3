"""The remedy, tried."""

import pytest


def test_the_remedy_is_tried_on_rows_that_were_held_out(subject_of, findings_of):
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


def test_labels_are_compared_and_the_remedy_says_that_it_needs_scores(subject_of, findings_of):
    found = findings_of(subject_of(4000, scores=False))
    assert len(found["equally_good"].tables[0].rows) == 1
    assert found["reconciled"].status == "skipped"
    assert "scores" in found["reconciled"].reason
    assert found["decisions"].remedies == ()


def test_the_threshold_in_force_makes_the_loss(subject_of, findings_of):
    found = findings_of(subject_of(6000, threshold=0.8))
    assert found["reconciled"].tables[0].rows[0][1] == pytest.approx(found["decisions"].value, abs=0.03)
