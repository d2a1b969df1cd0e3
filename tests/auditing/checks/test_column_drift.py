import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import aboveboard
from aboveboard.auditing.checks.column_drift import check
from aboveboard.auditing.subject import make_subject
from aboveboard.data import load_acs_employment, load_adult


def findings(new, old, **options):
    rng = np.random.default_rng(9)
    subject = make_subject(
        None, new, rng.integers(0, 2, len(new)), predictions=rng.random(len(new)), reference=old,
        prediction_type="score", **options,
    )  # fmt: skip
    found = check(subject, random_state=0, effort="standard")
    for finding in found:
        assert finding.statement.endswith("."), finding.statement
        json.dumps(finding.to_dict(), allow_nan=False)
    assert len({finding.id for finding in found}) == len(found)
    return {finding.id.removeprefix("column_drift/"): finding for finding in found}


def people(n, seed, **columns):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n),
            "town": rng.choice(["a", "b", "c", "d"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "owner": rng.random(n) < 0.3,
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(size=n)),
        }
    )
    return frame.assign(**{name: make(rng, n) for name, make in columns.items()})


def verdicts(found):
    return {name: (finding.severity, finding.status) for name, finding in found.items()}


# --- what is found ----------------------------------------------------------------------------------------------------


def test_nothing_is_found_where_nothing_changed():
    found = findings(people(4000, 0), people(3000, 1))
    assert verdicts(found) == {"summary": ("ok", "ran")}
    assert "All 4 columns are as in the reference" in found["summary"].statement
    assert len(found["summary"].tables[0].rows) == 4


def test_a_shifted_number_is_found_with_its_distance_and_where_it_moved():
    new, old = people(4000, 0), people(4000, 1)
    new["age"] += 10  # one standard deviation: 38.3 % of the rows of a normal distribution
    finding = findings(new, old)["moved/age"]
    assert finding.severity == "fail"
    assert finding.value == pytest.approx(stats.ks_2samp(new["age"], old["age"]).statistic)
    assert finding.interval.low < 2 * stats.norm.cdf(0.5) - 1 < finding.interval.high
    assert "the share at or below" in finding.statement
    assert "fell from" in finding.statement


def test_a_number_that_is_only_spread_wider_is_found():
    new = people(4000, 0)
    new["age"] = 40 + (new["age"] - 40) * 3
    assert findings(new, people(4000, 1))["moved/age"].severity == "warn"


def test_severity_goes_by_the_effect():
    old = people(20_000, 1)
    for shift, expected in ((0.1, None), (0.5, "warn"), (1.5, "fail")):
        new = people(20_000, 0)
        new["age"] += 10 * shift
        found = findings(new, old).get("moved/age")
        assert (None if found is None else found.severity) == expected


def test_a_category_that_moved_is_found_with_its_shares():
    new = people(4000, 0, town=lambda rng, n: rng.choice(["a", "b", "c", "d"], n, p=[0.2, 0.3, 0.4, 0.1]))
    old = people(4000, 1)
    finding = findings(new, old)["moved/town"]
    shares = [part["town"].value_counts(normalize=True) for part in (new, old)]
    assert finding.interval.low < 0.2 < finding.interval.high
    assert finding.value == pytest.approx((shares[0] - shares[1]).abs().sum() / 2, abs=0.01)
    rows = {row[0]: row[1:] for row in finding.tables[0].rows}
    assert rows["a"] == pytest.approx((shares[1]["a"], shares[0]["a"], shares[0]["a"] - shares[1]["a"]))


def test_a_boolean_is_compared_by_its_share():
    new = people(4000, 0, owner=lambda rng, n: rng.random(n) < 0.5)
    finding = findings(new, people(4000, 1))["moved/owner"]
    assert finding.severity == "warn"
    assert "the share of 'true' rose from" in finding.statement or "'false' fell" in finding.statement


def test_values_that_go_missing_are_found():
    new = people(4000, 0, income=lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(size=n)))
    finding = findings(new, people(4000, 1))["missing/income"]
    assert finding.severity == "warn"
    assert finding.value == pytest.approx(0.1, abs=0.03)
    new["age"] = np.where(np.arange(4000) % 2, np.nan, new["age"])
    assert findings(new, people(4000, 1))["missing/age"].severity == "fail"


def test_values_that_are_no_longer_missing_are_found_too():
    new = people(4000, 0, income=lambda rng, n: rng.lognormal(size=n))
    finding = findings(new, people(4000, 1))["missing/income"]
    assert "missing less often" in finding.statement
    assert finding.value == pytest.approx(-0.1, abs=0.03)


def test_values_that_the_reference_never_has_are_found_and_rare_ones_are_expected():
    old = people(4000, 1)
    new = people(4000, 0, town=lambda rng, n: rng.choice(["a", "b", "c", "d", "e"], n, p=[0.4, 0.3, 0.2, 0.06, 0.04]))
    finding = findings(new, old)["new_levels/town"]
    assert finding.severity == "warn"
    assert finding.value == pytest.approx(0.04, abs=0.01)

    def long_tail(rng, n):
        return pd.Series(rng.zipf(1.8, n)).clip(upper=10**6).astype(str)

    tails = people(6000, 0, town=long_tail), people(6000, 1, town=long_tail)
    unseen = ~tails[0]["town"].isin(tails[1]["town"].unique())
    assert unseen.mean() > 0.01  # many values are new, as many as chance brings
    assert "new_levels/town" not in findings(*tails)


def test_columns_that_came_went_or_hold_something_else_are_named():
    new = people(3000, 0).drop(columns="town").assign(fresh=1.0, age=pd.Series(["x", "y"] * 1500))
    found = findings(new, people(3000, 1))
    assert found["schema/absent"].severity == "warn"
    assert "'fresh'" in found["schema/absent"].statement
    assert found["schema/extra"].severity == "warn"
    assert "'town'" in found["schema/extra"].statement
    assert found["schema/types"].severity == "fail"
    assert found["schema/types"].tables[0].rows == (("age", "number", "text"),)


def test_rows_that_are_in_both_tables_are_told():
    old = people(3000, 1)
    new = pd.concat([old[:1500], people(1500, 0)], ignore_index=True)
    finding = findings(new, old)["shared_rows"]
    assert finding.severity == "note"
    assert finding.value == pytest.approx(0.5)
    assert "shared_rows" not in findings(people(3000, 0), old)
    coarse = [people(3000, seed)[["town", "owner"]] for seed in (0, 1)]
    assert "shared_rows" not in findings(*coarse)  # rows of few values repeat anyway


# --- odd columns ------------------------------------------------------------------------------------------------------


def test_columns_that_cannot_be_judged_say_why():
    n = 2000
    odd = {
        "empty": lambda rng, n: np.full(n, np.nan),
        "day": lambda rng, n: pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        "number": lambda rng, n: rng.permutation(10 * n)[:n],
        "name": lambda rng, n: [f"person {i}" for i in rng.permutation(10**6)[:n]],
        "constant": lambda rng, n: np.ones(n),
    }
    found = findings(people(n, 0, **odd), people(n, 1, **odd))
    rows = {row[0]: row[-2:] for row in found["summary"].tables[0].rows}
    assert rows["empty"] == ("not judged", "no value in either table")
    assert rows["day"] == ("not judged", "dates, which move as time goes by")
    assert rows["number"] == ("not judged", "another whole number in every row, as record ids have")
    assert rows["name"] == ("not judged", "another text in almost every row, as names and record ids have")
    assert rows["constant"] == ("as before", "")
    assert verdicts(found) == {"summary": ("ok", "ran")}


def test_a_column_that_is_empty_on_one_side_is_judged_by_what_is_missing():
    found = findings(people(2000, 0, age=lambda rng, n: np.full(n, np.nan)), people(2000, 1))
    assert found["missing/age"].severity == "fail"
    row = next(row for row in found["summary"].tables[0].rows if row[0] == "age")
    assert row[-1] == "no value in the new rows"
    assert "moved/age" not in found


def test_a_constant_that_changed_is_found():
    found = findings(
        people(500, 0, unit=lambda rng, n: np.full(n, 7.0)), people(500, 1, unit=lambda rng, n: np.ones(n))
    )
    assert found["moved/unit"].severity == "fail"
    assert found["moved/unit"].value == 1.0


def test_infinite_values_are_values():
    def mixed(share):
        return lambda rng, n: np.where(rng.random(n) < share, np.inf, rng.normal(size=n))

    found = findings(people(3000, 0, x=mixed(0.4)), people(3000, 1, x=mixed(0.1)))
    assert found["moved/x"].value == pytest.approx(0.3, abs=0.04)
    assert "moved/x" not in findings(people(3000, 0, x=mixed(0.1)), people(3000, 1, x=mixed(0.1)))


def test_numbers_of_any_size_are_compared():
    def huge(rng, n):
        return rng.choice([-1e308, 1e308, 5e-324], n)

    assert "moved/x" not in findings(people(2000, 0, x=huge), people(2000, 1, x=huge))


# --- how sure ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 20])
def test_a_reference_of_few_rows_leaves_everything_open(rows):
    found = findings(people(3000, 0), people(rows, 1).assign(gone=1))
    assert found["summary"].status == "inconclusive"
    assert set(found) == {"summary", "schema/extra"}
    assert str(rows) not in found["summary"].statement or rows >= 10


def test_a_reference_without_any_value_leaves_everything_open():
    old = people(3000, 1)
    found = findings(people(3000, 0)[["age", "town"]], old[["age", "town"]].assign(age=np.nan, town=None))
    assert found["summary"].status == "inconclusive"
    assert "No column has values that can be compared" in found["summary"].reason
    assert set(found) == {"summary"}
    one = findings(people(3000, 0), old.assign(age=np.nan))
    assert verdicts(one) == {"summary": ("ok", "inconclusive")}
    row = next(row for row in one["summary"].tables[0].rows if row[0] == "age")
    assert row[-2:] == ("cannot be told", "no value in the old rows")


def test_between_hardly_and_certainly_it_cannot_be_told():
    found = findings(people(200, 0), people(200, 1))
    assert found["summary"].status == "inconclusive"
    assert "cannot be told" in found["summary"].statement


def real(data, rng):
    """Return new and old rows: two years of a survey, random halves, or men and women."""
    if data == "years":
        return tuple(load_acs_employment(year=year).X for year in (2018, 2015))
    X = load_adult().X
    first = (X["sex"] == "Male").to_numpy() if data == "sexes" else rng.random(len(X)) < 0.5
    return tuple(part.drop(columns="sex") for part in (X[first], X[~first]))


def a_twentieth(tables, rng):
    return tuple(table.iloc[rng.permutation(len(table))[: len(table) // 20]] for table in tables)


@pytest.mark.parametrize("data", ["years", "halves"])
def test_what_is_alike_is_alike_in_a_twentieth_of_the_rows_too(data):
    rng = np.random.default_rng(0)
    tables = real(data, rng)
    assert verdicts(findings(*tables)) == {"summary": ("ok", "ran")}
    parts = [verdicts(findings(*a_twentieth(tables, rng))) for _ in range(10)]
    assert all(part in ({"summary": ("ok", "ran")}, {"summary": ("ok", "inconclusive")}) for part in parts)
    assert parts.count({"summary": ("ok", "ran")}) >= 7  # a thousand rows are just enough to tell


def test_what_differs_differs_in_a_twentieth_of_the_rows_too():
    rng = np.random.default_rng(0)
    tables = real("sexes", rng)
    moved = {f"moved/{name}" for name in ("relationship", "marital_status", "occupation")}
    assert moved <= findings(*tables).keys()
    for _ in range(10):
        part = findings(*a_twentieth(tables, rng))
        assert moved <= part.keys()
        assert {name for name in part if name.startswith("moved/")} <= {*moved, "moved/hours_per_week"}


@pytest.mark.parametrize("share", [0.05, 0.2, 1.0])
def test_a_change_below_the_limit_is_never_a_finding_however_many_the_rows(share):
    n = int(400_000 * share)
    new = people(n, 0)
    new["age"] += 1.0  # 4 % of the rows
    assert verdicts(findings(new, people(n, 1))) == {"summary": ("ok", "ran")}


def alarms(draws, n, m, start=0):
    """Ten columns that each moved by the limit: return how often any is accused, and how often all are acquitted."""
    accused = acquitted = 0
    for seed in range(start, start + draws):
        rng = np.random.default_rng(seed)
        new = pd.DataFrame({f"x{j}": rng.random(n) - 0.5 for j in range(5)})
        for name in new:
            new.loc[rng.random(n) < 0.125, name] = 0.75  # moved from anywhere: so many rows lie above all others
        old = pd.DataFrame({f"x{j}": rng.random(m) - 0.5 for j in range(5)})
        for j in range(5):
            new[f"c{j}"] = rng.choice(list("abcd"), n, p=[0.3125, 0.3125, 0.1875, 0.1875])
            old[f"c{j}"] = rng.choice(list("abcd"), m, p=[0.25, 0.25, 0.25, 0.25])
        found = findings(new, old)
        accused += any(name.startswith("moved/") for name in found)
        acquitted += found["summary"].severity == "ok" and found["summary"].status == "ran"
    return accused / draws, acquitted / draws


@pytest.mark.slow
def test_where_every_column_moved_by_the_limit_an_alarm_is_as_rare_as_it_is_said_to_be():
    # Acceptance for the two rates of 2,000 draws: 5 % for an alarm on any of ten columns and 2.5 % for an acquittal of
    # all, plus 3 standard errors (0.5 and 0.35 points).
    accused, acquitted = alarms(2000, 1500, 1000)
    assert accused <= 0.065
    assert acquitted <= 0.036


def test_columns_that_moved_by_the_limit_hardly_raise_an_alarm():
    accused, acquitted = alarms(60, 800, 600)
    assert accused <= 0.1
    assert acquitted <= 0.1


# --- weights, clusters, people ----------------------------------------------------------------------------------------


def test_rows_of_one_person_count_once():
    new, old = people(60, 0), people(50, 1)
    new["age"] += 6
    many = [table.iloc[np.repeat(np.arange(len(table)), 40)].reset_index(drop=True) for table in (new, old)]
    person = [np.repeat(np.arange(len(table)) + start, 40) for table, start in ((new, 0), (old, 1000))]
    assert "moved/age" in findings(*many)
    aware = findings(many[0].assign(who=person[0]), many[1].assign(who=person[1]), clusters="who")
    assert "moved/age" not in aware
    assert aware["summary"].status == "inconclusive"


def test_weights_decide_which_rows_count():
    old = people(4000, 1).assign(w=1.0)
    new = people(8000, 0).assign(w=1.0)
    new.loc[4000:, "age"] += 30
    new.loc[4000:, "w"] = 0.0
    assert "moved/age" in findings(new.drop(columns="w"), old.drop(columns="w"))
    assert "moved/age" not in findings(new, old, sample_weight="w")


def test_a_limit_of_ones_own_is_judged_by():
    new, old = people(20_000, 0), people(20_000, 1)
    new["age"] += 2
    assert "moved/age" not in findings(new, old)
    assert findings(new, old, limits={"column_drift.moved": 0.02})["moved/age"].limit == 0.02


def test_no_share_of_few_people_is_shown():
    new = people(3000, 0, town=lambda rng, n: np.where(np.arange(n) < 5, "d", rng.choice(["a", "b"], n)))
    old = people(3000, 1, town=lambda rng, n: rng.choice(["a", "b", "d"], n))
    finding = findings(new, old)["moved/town"]
    shown = {row[0]: row[1:] for row in finding.tables[0].rows}
    assert shown["d"] == ("suppressed",) * 3
    assert list(shown.values()).count(("suppressed",) * 3) >= 2  # else the rest of 100 % gives it away
    few = people(3000, 0)
    few["age"] = np.where(np.arange(3000) < 4, np.nan, few["age"])
    row = next(row for row in findings(few, old)["summary"].tables[0].rows if row[0] == "age")
    assert row[5] == "suppressed"


def test_the_ranges_of_a_number_hold_all_rows():
    new, old = people(4000, 0), people(4000, 1)
    new["age"] += 12
    table = findings(new, old)["moved/age"].tables[0]
    assert sum(row[1] for row in table.rows) == pytest.approx(1.0)
    assert sum(row[2] for row in table.rows) == pytest.approx(1.0)
    edges = [float(row[0].removeprefix("up to ")) if i == 0 else float(row[0].split("up to ")[-1].split(" ")[-1])
             for i, row in enumerate(table.rows)]  # fmt: skip
    assert all(a < b for a, b in pairwise(edges[:-1]))


def test_the_report_takes_it_with_all_other_checks():
    new, old = people(1500, 0), people(1500, 1)
    new["age"] += 20
    y = np.random.default_rng(0).integers(0, 2, 1500)
    report = aboveboard.audit(None, new, y, predictions=np.full(1500, 0.5), prediction_type="score", reference=old)
    assert "column_drift/moved/age" in {finding.id for finding in report.findings}
    assert not [finding for finding in report.not_run if finding.status == "error"]
    without = aboveboard.audit(None, new, y, predictions=np.full(1500, 0.5), prediction_type="score")
    reasons = {finding.id: finding.reason for finding in without.not_run}
    assert reasons["column_drift"] == "No older data to compare with were given (reference, --reference)."
