import pytest

from aboveboard.auditing.suites import AREAS, TABULAR, select
from aboveboard.core.errors import InputError


def names(*arguments, **options):
    return [spec.name for spec in select(*arguments, **options)]


def test_all_checks_run_unless_something_is_said():
    assert names() == [spec.name for spec in TABULAR]


def test_checks_and_areas_can_be_named_and_keep_their_order():
    assert names(("calibration", "performance")) == ["performance", "calibration"]
    assert names(("fairness", "duplicates")) == ["group_fairness", "price_of_fairness", "duplicates"]
    assert "duplicates" not in names((), ("data",))
    assert names(("fairness",), ("group_fairness",)) == ["price_of_fairness"]


def test_a_name_that_is_neither_gets_a_hint():
    with pytest.raises(InputError, match="Did you mean 'fairness'"):
        select(("fairnes",))
    with pytest.raises(InputError, match="--list-checks"):
        select((), ("zzzzz",))


def test_leaving_nothing_to_run_is_refused():
    with pytest.raises(InputError, match="no check to run"):
        select(("fairness",), ("fairness",))


def test_names_are_unique_and_areas_known():
    all_names = [spec.name for spec in TABULAR]
    assert len(set(all_names)) == len(all_names)
    assert {spec.area for spec in TABULAR} <= set(AREAS)
    assert not set(all_names) & set(AREAS) - {"performance"}


def test_row_caps_grow_with_the_effort():
    for spec in TABULAR:
        caps = [spec.rows(effort) or float("inf") for effort in ("quick", "standard", "full")]
        assert caps == sorted(caps)
