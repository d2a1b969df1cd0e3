"""Rules that a person can read say who is in a subgroup."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.drift import SHIFT
from aboveboard.drift.dataset_classification._tables import TableEncoder
from aboveboard.drift.shift._subgroup import describe, loss_interval


def described(frame, inside):
    encoder = TableEncoder().fit(frame)
    features = encoder.transform(frame)
    return describe(features, inside, features, inside, encoder, 0)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, 4000),
            "school": rng.choice(["none", "high school", "degree"], 4000),
            "wage": np.where(rng.random(4000) < 0.2, np.nan, rng.normal(size=4000)),
        }
    )


def test_a_box_is_put_in_words(people):
    rules, fidelity = described(people, ((people["age"] >= 50) & (people["school"] == "degree")).to_numpy())
    assert set(rules[0].split(" and ")) == {"age > 49.5", "school is 'degree'"}
    assert fidelity == {"agreement": 1.0, "jaccard": 1.0}


def test_an_interval_and_a_gap_are_put_in_words(people):
    rules, _ = described(people, people["age"].between(30, 40).to_numpy())
    assert rules == ("29.5 < age <= 40.5",)
    rules, _ = described(people, people["wage"].isna().to_numpy())
    assert rules == ("wage is missing",)


def test_what_no_short_rule_describes_is_told_by_its_fidelity(people):
    chance = np.random.default_rng(1).random(4000) < 0.3
    _, fidelity = described(people, chance)
    assert fidelity["jaccard"] < 0.5


def test_a_rare_subgroup_is_described_too(people):
    inside = ((people["age"] > 80) & (people["school"] == "none")).to_numpy()
    rules, fidelity = described(people, inside)
    assert fidelity["jaccard"] > 0.9
    assert rules


def test_the_interval_of_errors_is_a_score_interval_and_never_of_width_zero():
    mean, low, high = loss_interval(np.zeros(40))
    assert (mean, low) == (0.0, 0.0)
    assert high > 0.05


def test_losses_and_sizes_are_those_of_test_rows(flipped, sign, fast):
    group = SHIFT(random_state=0, **fast).fit(*flipped, model=sign, candidates={"a": ["x0"]}).subgroup("outcome")
    assert group.n[1] == pytest.approx(group.prevalence[1] * 1500)
    assert group.source_loss[1] < group.source_loss[0] < group.source_loss[2]
    assert group.target_loss[0] > group.source_loss[0]
    assert group.importances["column"].iloc[0] == "x1"
    assert group.rules_ == group.rules
    assert any("x1" in rule for rule in group.rules)


def test_a_family_without_a_subgroup_says_so(flipped, sign, fast):
    found = SHIFT(0.5, random_state=0, **fast).fit(*flipped, model=sign, candidates={"a": ["x0"]})
    with pytest.raises(ValueError, match="no subgroup seems to have decayed"):
        found.subgroup("outcome")
    with pytest.raises(ValueError, match="'covariate' or 'outcome'"):
        found.subgroup("label")
