"""Sensitive columns of any container, as cells and bounds; what cannot be met is refused, and why is said."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from aboveboard.core import InputError
from aboveboard.fairness.fair_kmeans._groups import Fairness, read_groups, shares_allowed

SEX = ["F", "F", "M", "M", "M", "M"]
RACE = ["a", "b", "a", "b", "b", "b"]


def both():
    return read_groups(pd.DataFrame({"sex": SEX, "race": RACE}), 6)


def test_groups_overlap_in_cells():
    groups = both()
    assert [group.label for group in groups.groups] == ["sex=F", "sex=M", "race=a", "race=b"]
    counts = groups.member @ groups.cell_counts()
    assert counts.tolist() == [2, 4, 2, 4]
    assert groups.n_cells == 4
    assert groups.attributes == ["sex", "race"]


@pytest.mark.parametrize(
    "made",
    [
        pd.DataFrame({"sex": SEX, "race": RACE}),
        pl.DataFrame({"sex": SEX, "race": RACE}),
        pa.table({"sex": SEX, "race": RACE}),
    ],
    ids=["pandas", "Polars", "PyArrow"],
)
def test_every_container_gives_the_same_cells_and_names(made):
    groups = read_groups(made, 6)
    assert groups.cell.tolist() == both().cell.tolist()
    assert groups.groups == both().groups


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (pd.Series(SEX, name="sex"), "sex"),
        (pl.Series("sex", SEX), "sex"),
        (SEX, "group"),
        (np.array(SEX), "group"),
        (pd.Series(SEX), "group"),
    ],
)
def test_a_single_column_needs_no_name(made, name):
    assert read_groups(made, 6).attributes == [name]


def test_slack_is_a_band_around_the_share_in_the_data():
    allowed = shares_allowed(both(), 0.25, None)
    assert allowed == pytest.approx(np.array([[1 / 4, 4 / 9], [1 / 2, 8 / 9]] * 2))
    assert shares_allowed(both(), 0.5, None)[1, 1] == 1


def test_bounds_by_group_and_by_column():
    single = read_groups(pd.Series(SEX, name="sex"), 6)
    assert shares_allowed(single, 0.1, {"F": (0.2, 0.5)}).tolist() == [[0.2, 0.5], [0, 1]]
    allowed = shares_allowed(both(), 0.1, {"sex": {"F": (0.2, 0.5)}, "race": {"b": [0.5, 0.8]}})
    assert allowed.tolist() == [[0.2, 0.5], [0, 1], [0, 1], [0.5, 0.8]]


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"F": (0.6, 0.3)}, r"bounds of group=F are \(0.6, 0.3\)"),
        ({"F": (-0.1, 0.3)}, "0 <= least share"),
        ({"F": (0.1, 1.3)}, "0 <= least share"),
        ({"F": (float("nan"), 0.3)}, "0 <= least share"),
        ({"F": 0.3}, "two shares"),
        ({"F": ("a", "b")}, "two shares"),
        ({"X": (0, 1)}, "the group 'X', which is absent from 'group'"),
        ({"F": (0.6, 1), "M": (0.6, 1)}, "least shares of the groups of 'group' add up to 1.2"),
        ({"F": (0, 0.4), "M": (0, 0.5)}, "largest shares of the groups of 'group' add up to 0.9"),
        ({"F": (0.4, 0.5)}, r"group=F is 0.3333 of the data, and its bounds are \(0.4, 0.5\)"),
        ({"sex": {"F": (0, 1)}}, "the sensitive column 'sex'"),
        ({}, "a mapping such as"),
        ([(0, 1)], "a mapping such as"),
    ],
)
def test_bounds_that_cannot_be_used_are_refused(bounds, message):
    with pytest.raises(InputError, match=message):
        shares_allowed(read_groups(SEX, 6), 0.1, bounds)


def test_bounds_must_say_which_of_several_columns_they_are_about():
    with pytest.raises(InputError, match="which they are about"):
        shares_allowed(both(), 0.1, {"F": (0.2, 0.5)})
    with pytest.raises(InputError, match="without sensitive_features"):
        shares_allowed(read_groups(None, 6), 0.1, {"F": (0.2, 0.5)})


@pytest.mark.parametrize("slack", [-0.1, 1.0, float("nan"), "much", None])
def test_slack_must_be_a_share(slack):
    with pytest.raises(InputError, match="at least 0 and below 1"):
        shares_allowed(both(), slack, None)


def test_missing_groups_and_other_lengths_are_refused():
    with pytest.raises(InputError, match="missing in 1 rows"):
        read_groups(["F", None, "M"], 3)
    with pytest.raises(InputError, match="5 rows"):
        read_groups(SEX, 5)
    with pytest.raises(InputError, match="columns of one name"):
        read_groups(pd.DataFrame([["F", "a"], ["M", "b"]], columns=["x", "x"]), 2)


def test_demands_that_always_hold_are_left_out():
    groups = both()
    assert not len(Fairness.of(groups, np.tile([0.0, 1.0], (4, 1))).rows)
    exact = Fairness.of(groups, shares_allowed(groups, 0.0, None))
    assert exact.equal.all()
    assert len(exact.rows) == 4
    assert not len(Fairness.of(read_groups(["a"] * 6, 6), np.array([[1.0, 1.0]])).rows)


def test_violations_count_people():
    groups = read_groups(SEX, 6)
    fairness = Fairness.of(groups, np.array([[0.25, 0.5], [0.0, 1.0]]))
    # cluster 0: both women and no man; cluster 1: four men
    assert fairness.violation(np.array([[2.0, 0.0], [0.0, 4.0]])).max(axis=0).tolist() == [1.0, 1.0]


def test_nasty_names_are_kept_as_they_are(hostile_name):
    columns = pd.Index([hostile_name, "other"], dtype=object)
    values = np.array([["F", 1], [hostile_name, 1], ["F", 2]], dtype=object)
    groups = read_groups(pd.DataFrame(values, columns=columns, dtype=object), 3)
    assert hostile_name in groups.attributes
    assert hostile_name in [group.value for group in groups.groups]
