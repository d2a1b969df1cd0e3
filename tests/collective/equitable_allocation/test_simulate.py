"""Many days give the means that are known, replayed days are replayed, and what does not fit is refused."""

import numpy as np
import pytest

from aboveboard.collective import ExternalEquityAllocator, InternalEquityAllocator, simulate
from aboveboard.core import InputError

DEMANDS = [([20.0, 60.0], [0.5, 0.5])] * 3


def test_first_come_first_served_by_hand():
    rule = ExternalEquityAllocator("greedy").fit(DEMANDS, 60.0)
    report = simulate(rule, n=100_000, groups=["a", "b", "b"], random_state=0)
    # the second gets all or nothing with 60 before, else 20 of 20 or 40 of 60; the third what then is left
    second = 0.5 * (0.5 * 1 + 0.5 * 2 / 3)
    third = 0.25 * (0.5 * 1 + 0.5 * 1 / 3)
    assert report.per_slot == pytest.approx([1.0, second, third], abs=0.01)
    assert report.per_group == pytest.approx({"a": 1.0, "b": (second + third) / 2}, abs=0.01)
    assert report.ex_ante == report.per_slot.min()
    assert report.ex_post <= report.ex_ante
    assert report.waste == 0.0


def test_past_days_are_replayed_and_days_without_a_request_left_out():
    rule = ExternalEquityAllocator("greedy").fit(DEMANDS, 60.0)
    report = simulate(rule, np.array([[60.0, 20.0, 20.0], [20.0, 0.0, 20.0]]))
    assert report.per_slot.tolist() == [1.0, 0.0, 0.5]
    assert report.n == 2
    assert report.ex_post == 0.5
    assert report.waste == pytest.approx(20 / 120)


def test_the_same_seed_gives_the_same_days():
    rule = ExternalEquityAllocator().fit(DEMANDS, 60.0)
    first, second = (simulate(rule, n=100, random_state=7) for _ in range(2))
    assert first.per_slot.tolist() == second.per_slot.tolist()


def test_scenarios_that_do_not_fit_are_refused():
    rule = ExternalEquityAllocator().fit(DEMANDS, 60.0)
    groups = InternalEquityAllocator("positions").fit([2, 2], [[1, 0], [0, 1]], [0.5, 0.5], 2)
    for policy, options, message in (
        (rule, {"scenario": DEMANDS[:2]}, "2 slots"),
        (rule, {"groups": ["a"]}, "1 groups"),
        (rule, {"n": 0}, "n is 0"),
        (groups, {"groups": ["a"]}, "internal"),
        (groups, {"scenario": np.array([[0, 1, 5, 0]])}, "type 5"),
        (groups, {"scenario": np.array([[0.5, 0.4]])}, "sum to 1"),
        (groups, {"scenario": np.zeros((3, 5), dtype=int)}, "5 arrivals"),
        (groups, {"scenario": [["a"]]}, "shape"),
        ("greedy", {}, "the policy is str"),
    ):
        with pytest.raises(InputError, match=message):
            simulate(policy, **options)
    with pytest.raises(Exception, match="not fitted"):
        simulate(ExternalEquityAllocator())
