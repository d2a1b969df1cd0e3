"""What all suites share: columns by role, settings, fingerprints."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.suite_subject import RoleColumns, SuiteSubject, fingerprint, read_settings
from aboveboard.auditing.suites import CheckSpec, Role, Setting, Suite
from aboveboard.core import InputError

SUITE = Suite(
    name="toys",
    title="Toys",
    takes="toys",
    example="a toy",
    checks=(),
    columns=(Role(name="colour", help="Its colour."), Role(name="group", help="Groups.", many=True)),
    settings=(
        Setting(name="kind", help="Which.", choices=("small", "large")),
        Setting(name="size", help="How large.", number=True),
    ),
)
FRAME = pd.DataFrame({"a": [1, 2], "b": [3, 4], "colour": ["x", "y"]})


def test_columns_are_found_by_their_role():
    table = RoleColumns(FRAME, SUITE, {"colour": "colour", "group": ["a", "b"]})
    assert table["colour"].tolist() == ["x", "y"]
    assert [series.name for series in table.all("group")] == ["a", "b"]
    assert table.left() == []
    assert table.pairs() == (("colour", "colour"), ("group", "a"), ("group", "b"))
    assert "group" in table
    bare = RoleColumns(FRAME, SUITE, {})
    assert bare.get("colour") is None
    assert bare.all("group") == []
    assert bare.left() == ["a", "b", "colour"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"color": "a"}, "has no role called 'color'.*Did you mean 'colour'"),
        ({"colour": "c"}, "there is no column 'c' for the role colour"),
        ({"colour": "color"}, "Did you mean 'colour'"),
        ({"colour": ["a", "b"]}, "2 columns were named as colour"),
        ({"colour": "a", "group": ["a"]}, "named twice .colour and group"),
        ({"group": ["a", "a"]}, "named twice .group"),
        ({"colour": ()}, "the column with the role colour is"),
        ({"colour": 3}, "the column with the role colour is 3"),
        ({"group": [1]}, "the column with the role group is"),
    ],
)
def test_roles_and_columns_that_are_none_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        RoleColumns(FRAME, SUITE, given)


def test_a_role_that_is_needed_says_how_to_name_it():
    with pytest.raises(InputError, match=r"no column was named as colour.*--column colour=NAME"):
        RoleColumns(FRAME, SUITE, {}).need("colour", why="its colour")


def test_settings_are_read_by_their_kind():
    assert read_settings(SUITE, {"kind": "small", "size": "3"}) == {"kind": "small", "size": 3.0}
    assert read_settings(SUITE, {}) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"king": "small"}, "has no setting called 'king'.*Did you mean 'kind'"),
        ({"kind": "huge"}, "the setting kind is 'huge'.*small, large"),
        ({"size": "x"}, "the setting size is 'x'.*a number"),
        ({"size": True}, "a number"),
        ({"size": float("inf")}, "a number"),
        ({"size": None}, "a number"),
    ],
)
def test_settings_that_are_none_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        read_settings(SUITE, given)


def test_a_check_that_needs_a_role_says_which_when_nobody_has_it():
    class Toy(SuiteSubject):
        colour = None
        group = "a"

    spec = CheckSpec(name="x", area="x", title="X", question="?", cost="light", needs=frozenset({"colour", "group"}))
    assert Toy(suite="toys").lacking(spec) == "No column was named as colour (columns, --column colour=NAME)."


def test_nothing_is_drawn_where_no_check_has_a_row_cap():
    with pytest.raises(TypeError, match="no row caps"):
        SuiteSubject(suite="toys").sample(3, 0)


def test_fingerprints_follow_values_order_and_shape():
    one = fingerprint(["a", "b"], np.array([[1.0, np.nan]]))
    assert one == fingerprint(("a", "b"), np.array([[1.0, -np.nan]]))
    others = [
        fingerprint(["b", "a"], np.array([[1.0, np.nan]])),
        fingerprint(["a", "b"], np.array([[1.0], [np.nan]])),
        fingerprint(["ab"], np.array([[1.0, np.nan]])),
        fingerprint(["a", "b"], np.array([[1.0, 2.0]])),
    ]
    assert len({one, *others}) == 5
    assert fingerprint(np.array([0.0])) == fingerprint(np.array([-0.0])) == fingerprint(np.array([0]))
    assert len(fingerprint(["\ud800"])) == 64
