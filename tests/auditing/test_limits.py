import pytest

from aboveboard.auditing import limits as module
from aboveboard.auditing.limits import Limit, Limits
from aboveboard.core.errors import InputError


@pytest.fixture
def two_checks(monkeypatch):
    entries = [
        Limit("leak.auc", 0.9, "AUC", "A reason.", "A source."),
        Limit("fair.rate", 0.05, "points", "A reason.", "A source."),
        Limit("fair.error", 0.1, "share", "A reason.", "A source."),
    ]
    monkeypatch.setattr(module, "_defaults", lambda: {entry.name: entry for entry in entries})


def test_a_limit_of_ones_own_replaces_the_default_and_says_so(two_checks):
    limit = Limits({"fair.rate": 0.2})["fair.rate"]
    assert (limit.value, limit.by_user, limit.source, limit.unit) == (0.2, True, "the user", "points")
    assert Limits()["fair.rate"].value == 0.05
    assert not Limits()["fair.rate"].by_user


def test_the_name_of_a_check_with_one_limit_is_enough(two_checks):
    assert Limits({"leak": 1})["leak.auc"].value == 1.0
    with pytest.raises(InputError, match=r"'fair' has 2 limits. Expected fair.rate, fair.error"):
        Limits({"fair": 1})


def test_an_unknown_limit_gets_a_hint(two_checks):
    with pytest.raises(InputError, match=r"Did you mean 'fair.rate'"):
        Limits({"fair.rat": 1})


@pytest.mark.parametrize("value", [-0.1, float("nan"), float("inf"), True, "0.1", None])
def test_a_limit_is_a_finite_number_at_or_above_zero(two_checks, value):
    with pytest.raises(InputError, match="at or above 0"):
        Limits({"leak.auc": value})


def test_it_reads_like_a_mapping(two_checks):
    limits = Limits()
    assert list(limits) == ["leak.auc", "fair.rate", "fair.error"]
    assert len(limits) == 3
    assert [limit.name for limit in limits.of("fair")] == ["fair.rate", "fair.error"]
    assert limits.of("nothing") == ()
    assert limits["leak.auc"].to_dict() == {
        "name": "leak.auc", "value": 0.9, "unit": "AUC", "reason": "A reason.", "source": "A source.", "by_user": False,
    }  # fmt: skip


def test_every_shipped_limit_has_a_value_a_reason_and_a_source():
    for limit in Limits().values():
        assert limit.value >= 0
        assert limit.reason.strip()
        assert limit.source.strip()
