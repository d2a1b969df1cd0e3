import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.column_health import check
from aboveboard.auditing.subject import make_subject
from aboveboard.core.finding import SUPPRESSED

N = 1000
RNG = np.random.default_rng(0)
CLEAN = {
    "x": RNG.normal(size=N),
    "whole": RNG.integers(-500, 500, N),
    "age": RNG.integers(18, 90, N),
    "c": RNG.choice(["red", "green", "blue"], N),
    "b": RNG.random(N) < 0.4,
    "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 400, N), unit="D"),
    "some missing": np.where(RNG.random(N) < 0.2, np.nan, RNG.normal(size=N)),
}


def findings(**columns):
    X = pd.DataFrame(columns)
    subject = make_subject(None, X, np.arange(len(X)) % 2, predictions=np.full(len(X), 0.5), prediction_type="score")
    return {finding.id.partition("/")[2]: finding for finding in check(subject, random_state=0, effort="standard")}


def some(values, instead, share=0.05):
    out = pd.Series(values, dtype=object).copy()
    out[: int(share * len(out))] = instead
    return out


def test_healthy_columns_give_one_ok():
    found = findings(**CLEAN)
    assert set(found) == {"columns"}
    assert found["columns"].severity == "ok"


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (np.zeros(N), "constant"),
        (np.where(np.arange(N) < 100, np.nan, 7.0), "constant"),
        (np.full(N, np.nan), "all_missing"),
        ([None] * N, "all_missing"),
        (np.where(RNG.random(N) < 0.7, np.nan, RNG.normal(size=N)), "mostly_missing"),
        (np.where(np.arange(N) == 0, np.inf, RNG.normal(size=N)), "infinite"),
        (some(["u", "v"] * (N // 2), 3), "mixed_types"),
        (np.where(np.arange(N) < 5, 1, 0), "dominant"),
        ([f"name {i}" for i in range(N)], "identifiers"),
        (RNG.permutation(N) + 100_000, "identifiers"),
        (RNG.integers(0, 300, N).astype(str).astype(object) + "x", "many_levels"),
        (some(RNG.choice(["u", "v"], N), "?"), "missing_codes"),
        (some(RNG.choice(["u", "v"], N), " N/A "), "missing_codes"),
        (some(RNG.choice(["u", "v"], N), ""), "missing_codes"),
        (np.where(np.arange(N) < 40, -999, RNG.integers(0, 60, N)), "missing_numbers"),
        (np.where(np.arange(N) < 40, -1, RNG.integers(0, 60, N)), "missing_numbers"),
        (np.where(np.arange(N) < 40, 999.0, RNG.normal(40, 10, N)), "missing_numbers"),
        (RNG.integers(0, 30, N).astype(str), "numbers_as_text"),
        (some(RNG.choice(["Male", "Female"], N), "male "), "spelling"),
    ],
)
def test_a_planted_problem_is_found_and_no_other(values, problem):
    found = findings(**CLEAN, planted=values)
    assert set(found) == {problem}
    assert [row[0] for row in found[problem].tables[0].rows] == ["planted"]
    assert found[problem].severity in ("note", "warn")


def test_numbers_that_reach_the_code_by_themselves_are_no_codes():
    assert set(findings(x=RNG.integers(-1000, 1000, N), y=RNG.integers(0, 1100, N))) == {"columns"}


def test_all_different_floats_are_no_ids():
    assert set(findings(x=RNG.normal(size=N))) == {"columns"}


def test_few_concerned_rows_are_not_counted_aloud():
    found = findings(x=np.where(np.arange(N) < 3, np.inf, RNG.normal(size=N)))
    assert found["infinite"].tables[0].rows[0][1:3] == (SUPPRESSED, SUPPRESSED)


def test_shares_are_those_that_pandas_counts():
    x = np.where(RNG.random(N) < 0.7, np.nan, RNG.normal(size=N))
    row = findings(x=x)["mostly_missing"].tables[0].rows[0]
    assert row[1:3] == (int(np.isnan(x).sum()), np.isnan(x).mean())
