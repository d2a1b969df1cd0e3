"""The check hands the network, the opinions and the limits in force to the audit of opinions."""

import numpy as np
import pandas as pd
import pytest

import aboveboard

COLUMNS = {"source": "who", "target": "whom", "opinion": "side"}


def camps(n=10):
    """Two circles of n, each account listening to the three that follow it, and one to the other circle."""
    rows = [
        (f"{side}{i}", f"{side}{(i + k) % n}", value)
        for side, value in (("a", 1.0), ("b", -1.0))
        for i in range(n)
        for k in (1, 2, 3)
    ]
    return pd.DataFrame([*rows, ("a0", "b0", 1.0)], columns=["who", "whom", "side"])


def audited(frame=None, **options):
    options = {"effort": "quick", "columns": COLUMNS, **options}
    report = aboveboard.audit(None, camps() if frame is None else frame, suite="network", **options)
    return {finding.id: finding for finding in (*report.findings, *report.not_run)}


def test_the_limits_in_force_decide():
    assert audited()["opinions/disagreement"].severity == "warn"
    loose = audited(limits={"opinions.mixing": 0.01})["opinions/disagreement"]
    assert (loose.severity, loose.limit_source) == ("ok", "the user")
    strict = audited(limits={"opinions.amplification": 0.1})["opinions/amplification"]
    assert (strict.severity, strict.limit) == ("fail", 0.1)
    assert audited(limits={"opinions.voices": 2.0})["opinions/influence"].severity == "warn"


def test_the_smallest_cell_counts_accounts():
    assert {finding.status for finding in audited(min_cell=21).values()} == {"inconclusive"}


def test_more_effort_finds_no_worse_a_repair():
    quick, full = (audited(effort=effort)["opinions/repair"].value for effort in ("quick", "full"))
    assert full >= quick - 1e-6


@pytest.mark.parametrize("radius", [0.05, 0.5])
def test_the_repair_keeps_to_the_radius_that_was_set(radius):
    found = audited(settings={"radius": radius, "decided_by": "the council"})["opinions/repair"]
    assert f"at most {100 * radius:.3g} %" in found.statement
    assert "the council decides" in found.reason
    assert 0 <= found.value < 1


def test_a_network_of_one_opinion_has_nothing_to_divide():
    found = audited(camps().assign(side=1.0))
    assert found["opinions/amplification"].status == "not_applicable"
    assert np.isfinite(found["opinions/contrast"].value)
