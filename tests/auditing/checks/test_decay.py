"""The check finds a planted loss, names who and what, tries a repair, and stays quiet where nothing changed."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.decay import check
from aboveboard.auditing.subject import make_subject


def rows(n, seed, *, flipped=0.0, moved=0.0):
    """Return rows with a fixed score; of those with `age` above 1, a share has the other label."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {"skill": rng.normal(size=n), "age": rng.normal(moved, 1.0, size=n), "other": rng.normal(size=n)}
    )
    score = 1 / (1 + np.exp(-3 * table["skill"]))
    y = rng.random(n) < score
    y ^= (table["age"] > 1) & (rng.random(n) < flipped)
    return table.assign(y=y.astype(int), p=score, town=rng.choice(["a", "b"], n))


def findings(new, old, **options):
    subject = make_subject(
        None, new, "y", reference=old, **({"predictions": "p", "sensitive_features": "town"} | options)
    )
    return {f.id.removeprefix("decay/"): f for f in check(subject, random_state=0, effort="standard")}


@pytest.fixture(scope="module")
def planted():
    return findings(rows(2000, 0, flipped=0.8), rows(2000, 1))


def test_a_planted_loss_is_found_and_its_rule_named(planted):
    found = planted["outcome"]
    assert (found.severity, found.status) == ("fail", "ran")
    assert found.interval.low > 0.1
    who = found.evidence[0]
    assert "age" in who.note
    assert 0.1 < who.rows[1][2] < 0.4  # P(N(0, 1) > 1) = 0.16; trees learned the edges from 1,000 rows


def test_what_explains_it_is_kept_and_the_rest_is_not(planted):
    table = next(t for t in planted["outcome"].evidence if t.title == "What explains it")
    verdicts = {row[0]: row[4] for row in table.rows}
    assert verdicts["age"] == "not rejected"
    assert verdicts["skill"] == verdicts["other"] == verdicts["town"] == "no"


def test_the_repair_is_tried_on_rows_held_out(planted):
    table = planted["outcome"].evidence[-1]
    assert table.title.startswith("The repair that was tried")
    (_, n, before, after), (_, n_inside, before_inside, after_inside) = table.rows
    assert n == 1000
    assert n_inside < n
    assert after < before
    assert after_inside < before_inside
    assert "it helps" in table.note
    assert "SHIFT" in planted["outcome"].remedies


def test_other_rows_are_no_other_outcomes(planted):
    assert planted["covariate"].severity in ("ok", "note")
    assert not planted["covariate"].remedies


def test_where_nothing_changed_nothing_is_found():
    found = findings(rows(1500, 2), rows(1500, 3))
    assert {f.severity for f in found.values()} <= {"ok", "note"}
    assert all(not f.remedies for f in found.values())


def test_too_few_rows_are_inconclusive():
    found = findings(rows(150, 0), rows(4000, 1))
    assert {f.status for f in found.values()} == {"inconclusive"}
    assert "200" in found["outcome"].reason


def test_tables_that_have_no_row_in_common_are_inconclusive():
    found = findings(rows(400, 0, moved=100.0), rows(400, 1))
    assert {f.status for f in found.values()} == {"inconclusive"}


def test_one_row_of_each_cluster_is_looked_at():
    new, old = rows(600, 0), rows(600, 1)
    new["who"], old["who"] = np.arange(600) // 6, np.arange(600) // 6 + 50
    found = findings(new, old, clusters="who")
    assert {f.status for f in found.values()} == {"inconclusive"}


@pytest.mark.slow
def test_labels_without_scores_will_do():
    new, old = rows(1000, 0, flipped=0.8), rows(1000, 1)
    for table in (new, old):
        table["p"] = (table["p"] >= 0.5).astype(int)
    assert findings(new, old)["outcome"].severity in ("warn", "fail")


def test_hostile_columns_pass_through(hostile_name):
    if not hostile_name.isprintable():
        hostile_name = hostile_name.encode("ascii", "replace").decode()
    new, old = (rows(500, seed).rename(columns={"age": hostile_name or "empty"}) for seed in (0, 1))
    assert set(findings(new, old)) <= {"outcome", "covariate"}
