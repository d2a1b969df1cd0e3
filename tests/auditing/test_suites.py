import pytest

from aboveboard.auditing.suites import AREAS, SUITES, TABULAR, all_checks, find_suite, select
from aboveboard.core.errors import InputError


def names(*arguments, **options):
    return [spec.name for spec in select(*arguments, **options)]


def test_all_checks_run_unless_something_is_said():
    assert names() == [spec.name for spec in TABULAR]


def test_checks_and_areas_can_be_named_and_keep_their_order():
    assert names(("calibration", "performance")) == ["performance", "calibration"]
    assert names(("fairness", "duplicates")) == ["group_fairness", "price_of_fairness", "ridge_bias", "duplicates"]
    assert "duplicates" not in names((), ("data",))
    assert names(("fairness",), ("group_fairness",)) == ["price_of_fairness", "ridge_bias"]


def test_a_name_that_is_neither_gets_a_hint():
    with pytest.raises(InputError, match="Did you mean 'fairness'"):
        select(("fairnes",))
    with pytest.raises(InputError, match="--list-checks"):
        select((), ("zzzzz",))


def test_leaving_nothing_to_run_is_refused():
    with pytest.raises(InputError, match="no check to run"):
        select(("fairness",), ("fairness",))


def test_names_are_unique_and_areas_known():
    all_names = [spec.name for spec in all_checks()]
    assert len(set(all_names)) == len(all_names)
    assert {spec.area for spec in all_checks()} <= set(AREAS)
    assert not set(all_names) & set(AREAS) - {"performance"}


def test_row_caps_grow_with_the_effort():
    for spec in TABULAR:
        caps = [spec.rows(effort) or float("inf") for effort in ("quick", "standard", "full")]
        assert caps == sorted(caps)


def test_each_suite_selects_among_its_own_checks():
    for suite in SUITES:
        assert select(suite=suite.name) == suite.checks
        for spec in suite.checks:
            assert spec in select((spec.area,), suite=suite.name)


def test_the_check_of_another_suite_is_said_to_be_one():
    with pytest.raises(InputError, match="It belongs to the suite ranking"):
        select(("rank_audit",))
    with pytest.raises(InputError, match="no check or area of the suite ranking is called 'duplicates'"):
        select(("duplicates",), suite="ranking")


def test_a_suite_that_does_not_exist_gets_a_hint():
    assert find_suite("ranking").name == "ranking"
    with pytest.raises(InputError, match="Did you mean 'ranking'"):
        find_suite("rankin")


def test_roles_and_settings_of_a_suite_have_names_of_their_own():
    for suite in SUITES:
        for entries in (suite.columns, suite.settings):
            names = [entry.name for entry in entries]
            assert len(set(names)) == len(names)
            assert all(name.isidentifier() for name in names)
