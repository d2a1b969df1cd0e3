"""The check hands the log, the stock and the limits in force to the audit of allocations."""

import numpy as np
import pandas as pd

import aboveboard


def log(rounds=200, places=6):
    rng = np.random.default_rng(0)
    n = rounds * places
    place = np.tile(np.arange(places), rounds)
    granted = np.clip(1.0 - 0.12 * place + rng.normal(0, 0.05, n), 0, 1)
    group = np.where(rng.random(n) < 0.3, "few", "many")
    return pd.DataFrame({"day": np.repeat(np.arange(rounds), places), "asked": 1.0, "got": granted, "g": group})


def audited(frame=None, settings=None, **options):
    report = aboveboard.audit(
        None,
        log() if frame is None else frame,
        suite="allocation",
        columns={"demand": "asked", "granted": "got", "round": "day", "group": "g"},
        settings={"stock": 6.0, **(settings or {})},
        effort="quick",
        **options,
    )
    return {finding.id.partition("/")[2]: finding for finding in report.findings}


def test_the_limits_in_force_decide():
    assert audited(limits={"allocation_audit.slots": 0.2})["slots"].severity == "ok"
    strict = audited(limits={"allocation_audit.slots": 0.9})["slots"]
    assert (strict.severity, strict.limit_source) == ("fail", "the user")
    assert audited()["fill/g"].severity == "ok"
    assert audited(limits={"allocation_audit.groups": 1.5})["fill/g"].severity == "fail"


def test_the_stock_and_the_parts_of_the_queue_are_what_the_user_says():
    assert len(audited(settings={"slots": 3})["slots"].tables[0].rows) == 3
    assert "% of the stock was left" in audited()["stock"].statement
    assert audited(settings={"stock": 2.0})["stock"].severity == "warn"


def test_the_smallest_cell_counts_requests_and_hides_what_gives_it_away():
    frame = log()
    frame["g"] = np.repeat(["five", "some", "more", "most"], [5, 55, 140, 1000])
    rows = {row[0]: row for row in audited(frame)["fill/g"].tables[0].rows}
    assert rows["five"][2] == "suppressed"
    assert rows["some"][2] == "suppressed"  # else the rest of everybody would be the five
    assert isinstance(rows["most"][2], float)
    assert audited(frame, min_cell=1)["fill/g"].tables[0].rows[0][2] != "suppressed"
    assert audited(min_cell=201)["slots"].status == "inconclusive"


def test_rules_are_compared_on_the_rounds_of_the_log():
    found = audited()["rule"]
    assert [row[0] for row in found.tables[0].rows][-1] == "announced shares"
    assert found.value == found.tables[0].rows[-1][1]
