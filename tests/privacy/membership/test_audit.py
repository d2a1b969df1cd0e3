"""Findings on membership: verdicts, the control without the model, the bound on epsilon, groups and kinds."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aboveboard.core import InputError
from aboveboard.core.finding import SUPPRESSED
from aboveboard.privacy import Attack, membership_audit
from aboveboard.privacy.membership._kinds import kinds_of_rows

N = 8000
MEMBER = np.arange(N) < N // 2


def attack(shift=1.0, seed=0):
    return [Attack("normal", np.random.default_rng(seed).normal(size=N) + shift * MEMBER)]


def audit(attacks=None, member=MEMBER, **options):
    found = membership_audit(attacks or attack(), member, **({"random_state": 7} | options))
    return {finding.id.removeprefix("membership/"): finding for finding in found}


# --- all rows ---------------------------------------------------------------------------------------------------------


def test_members_that_stand_out_are_a_warning_with_the_difference_that_the_rates_have():
    finding = audit()["attack"]
    assert (finding.severity, finding.status) == ("warn", "ran")
    assert finding.value == pytest.approx(2 * stats.norm.cdf(0.5) - 1, abs=0.03)
    assert finding.interval.low > 0.05
    assert f"{100 * finding.value:+.1f} points" in finding.statement
    assert "less capacity" in finding.reason
    assert {row[0] for row in finding.tables[0].rows} == {"normal"}


def test_members_that_do_not_stand_out_are_fine_where_there_are_rows_enough_and_open_where_not():
    assert audit(attack(0.0))["attack"].severity == "ok"
    few = slice(N // 2 - 200, N // 2 + 200)
    finding = audit([Attack("few", attack(0.0)[0].scores[few])], MEMBER[few])["attack"]
    assert (finding.severity, finding.status) == ("note", "inconclusive")


def test_one_attack_that_finds_something_is_enough():
    weak, strong = attack(0.0, 1)[0].scores, attack(1.0)[0].scores
    finding = audit([Attack("weak", weak), Attack("strong", strong)])["attack"]
    assert finding.severity == "warn"
    assert "'strong" in finding.statement


def test_too_few_rows_of_either_kind_are_inconclusive():
    for part in (slice(0, N // 2 + 39), slice(N // 2 - 39, N)):
        found = audit([Attack("few", attack()[0].scores[part])], MEMBER[part])
        assert list(found) == ["attack"]
        assert found["attack"].status == "inconclusive"


def test_hardly_ever_is_a_harmless_model_accused():
    accused = sum(audit(attack(0.0, seed), random_state=seed)["attack"].severity == "warn" for seed in range(200))
    assert accused <= 3  # the limit lies beyond 0, so that it is far less than 5 %


# --- the control ------------------------------------------------------------------------------------------------------


def test_what_the_rows_tell_without_the_model_is_not_laid_at_its_door():
    rng = np.random.default_rng(1)
    moved = pd.DataFrame({"age": rng.normal(size=N) + MEMBER, "town": rng.choice(["a", "b"], N)})
    copied = [Attack("age", moved["age"].to_numpy())]
    finding = audit(copied, rows=moved)["attack"]
    assert finding.severity != "warn"
    assert "never asks the model" in finding.statement
    assert audit(copied)["attack"].severity == "warn"
    by_chance = audit(rows=moved.assign(age=rng.normal(size=N)))["attack"]
    assert by_chance.severity == "warn"
    assert "never asks" not in by_chance.statement


def test_a_bound_on_epsilon_is_not_held_against_a_promise_where_the_rows_differ_by_themselves():
    rng = np.random.default_rng(1)
    moved = pd.DataFrame({"age": rng.normal(size=N) + 3 * MEMBER})
    finding = audit([Attack("age", moved["age"].to_numpy())], rows=moved, epsilon=0.5)["epsilon"]
    assert (finding.severity, finding.status) == ("note", "inconclusive")


# --- epsilon ----------------------------------------------------------------------------------------------------------


def released(epsilon, seed):
    """Whether each row is in, told by randomised response: its epsilon is exact."""
    rng = np.random.default_rng(seed)
    keep = np.exp(epsilon) / (1 + np.exp(epsilon))
    return [Attack("response", np.where(rng.random(N) < keep, MEMBER, ~MEMBER) + 1e-9 * rng.random(N))]


def test_the_bound_on_epsilon_comes_close_to_the_truth_and_hardly_ever_exceeds_it():
    bounds = [audit(released(1.0, seed), delta=0.0, random_state=seed)["epsilon"].value for seed in range(100, 200)]
    assert np.mean(bounds) > 0.8
    assert np.mean(np.array(bounds) > 1.0) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 100)


def test_a_promise_that_the_rates_contradict_is_a_failure_and_one_that_they_do_not_is_fine():
    broken = audit(released(2.0, 0), epsilon=1.0)["epsilon"]
    assert (broken.severity, broken.limit) == ("fail", 1.0)
    assert "promises 1" in broken.statement
    kept = audit(released(1.0, 0), epsilon=1.0)["epsilon"]
    assert kept.severity == "ok"
    assert "no proof" in kept.reason
    assert audit(released(2.0, 0), epsilon=0.0)["epsilon"].severity == "fail"


def test_without_a_promise_the_bound_is_a_note_or_beyond_the_limit_a_warning():
    assert audit(released(1.0, 0))["epsilon"].severity == "note"
    assert audit(released(4.0, 0))["epsilon"].severity == "warn"
    assert "any epsilon" in audit(attack(0.0))["epsilon"].statement


def test_a_delta_takes_away_from_the_bound():
    values = [audit(released(2.0, 0), delta=delta)["epsilon"].value for delta in (0.0, 1e-5, 0.3)]
    assert values[0] >= values[1] > values[2]


# --- groups and kinds -------------------------------------------------------------------------------------------------


def exposed_rows(seed=50):
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        {
            "income": rng.normal(50_000, 10_000, N).round(),
            "town": rng.choice(["Aix", "Brest", "Caen"], N),
            "name": [f"person {i}" for i in range(N)],
            "gap": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        }
    )
    scores = rng.normal(size=N) + 2 * (MEMBER & (rows["town"] == "Caen").to_numpy())
    return [Attack("normal", scores)], rows


def test_the_kind_of_row_that_is_exposed_is_named_and_no_row_is():
    attacks, rows = exposed_rows()
    finding = audit(attacks, rows=rows)["kinds"]
    assert finding.severity == "note"
    assert finding.statement.startswith("Most exposed are rows with town = Caen:")
    assert "person" not in json.dumps(finding.to_dict())
    assert finding.tables[0].rows[0][0] == "town = Caen"


def test_where_all_are_exposed_alike_no_kind_is_named():
    _, rows = exposed_rows()
    assert "No kind of row is exposed more" in audit(rows=rows)["kinds"].statement


def test_kinds_of_numbers_lie_between_round_figures_and_gaps_are_a_kind():
    _, rows = exposed_rows()
    kinds = dict(kinds_of_rows(rows))
    income = {label: mask for label, mask in kinds.items() if label.startswith("income")}
    assert len(income) == 4
    assert sum(mask.sum() for mask in income.values()) == N
    for label, mask in income.items():
        if label.startswith("income from"):
            low, high = (float(word) for word in (label.split()[2], label.split()[-1]))
            assert low % 1000 == high % 1000 == 0
            assert rows["income"][mask].between(low, high, inclusive="left").all()
    assert kinds["gap (missing)"].sum() == rows["gap"].isna().sum()
    assert not any(label.startswith("name") for label in kinds)


def test_a_group_that_is_more_exposed_is_a_warning_and_named():
    attacks, rows = exposed_rows()
    finding = audit(attacks, groups=rows[["town"]])["town"]
    assert (finding.severity, finding.group) == ("warn", "town=Caen")
    assert finding.interval.low > 0.1
    excess = {row[0]: row[6] for row in finding.tables[0].rows}
    assert excess["Caen"] > 0.5
    assert abs(excess["Aix"]) < 0.1


def test_groups_that_are_exposed_alike_are_fine_and_few_rows_are_open():
    towns = pd.DataFrame({"town": np.random.default_rng(3).choice(["Aix", "Brest"], N)})
    assert audit(groups=towns)["town"].severity == "ok"
    part = slice(N // 2 - 500, N // 2 + 500)
    few = audit([Attack("few", attack()[0].scores[part])], MEMBER[part], groups=towns[part])["town"]
    assert few.status == "inconclusive"


def test_small_groups_are_withheld_and_none_can_be_told_by_subtraction():
    rng = np.random.default_rng(0)
    town = rng.choice(["Aix", "Brest", "Caen"], N).astype(object)
    town[:5] = "Dole"
    town[-5:] = "Dole"
    (table,) = audit(groups=pd.DataFrame({"town": town}))["town"].tables
    by_group = {row[0]: row[1:] for row in table.rows}
    assert set(by_group["Dole"]) == {SUPPRESSED}
    assert sum(SUPPRESSED in row for row in by_group.values()) == 2
    single = audit(groups=pd.DataFrame({"town": ["Aix"] * N}))["town"]
    assert single.status == "inconclusive"


def test_the_same_seed_gives_the_same_findings():
    attacks, rows = exposed_rows()
    first, again = (audit(attacks, rows=rows, groups=rows[["town"]]) for _ in range(2))
    assert first == again
    json.dumps([finding.to_dict() for finding in first.values()], allow_nan=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": pd.DataFrame({"a": [1]})}, "rows has 1 rows"),
        ({"groups": pd.DataFrame({"a": [1]})}, "groups has 1 rows"),
        ({"epsilon": -1.0}, "epsilon is -1"),
        ({"epsilon": np.nan}, "epsilon is nan"),
        ({"delta": 1.0}, "delta 1"),
    ],
)
def test_what_does_not_fit_is_refused(change, message):
    with pytest.raises(InputError, match=message):
        audit(**change)
