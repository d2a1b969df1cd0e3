"""Groups get what they are promised, whole units by brute force, and a day's least group is near the best possible."""

import itertools
import json
from math import exp, factorial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from aboveboard.collective import InternalEquityAllocator, clairvoyant_milp, simulate
from aboveboard.collective.equitable_allocation._internal import kept_share
from aboveboard.core import InputError

MEMBER = [[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]
GROUPS = {"shares": [0.5, 0.5, 0.7, 0.3], "attributes": ["sex", "sex", "race", "race"]}
RATES = [60, 25, 10, 5]


def fitted(policy="sampling", rates=RATES, supply=10, **options):
    return InternalEquityAllocator(policy, random_state=0, **options).fit(rates, MEMBER, supply=supply, **GROUPS)


def random_groups(rng):
    types = int(rng.integers(2, 12))
    columns, shares, attributes = [], [], []
    for name in ("a", "b")[: int(rng.integers(1, 3))]:
        size = int(rng.integers(2, min(types, 4) + 1))
        labels = rng.permutation(np.append(np.arange(size), rng.integers(0, size, types - size)))
        columns += [labels == g for g in range(size)]
        shares += rng.dirichlet(np.full(size, 3.0)).tolist()
        attributes += [name] * size
    return np.array(columns).T.astype(int), np.array(shares), attributes


def test_the_share_that_is_met_while_stock_lasts():
    for b in (1, 2, 10, 100):
        assert kept_share(b, b) == pytest.approx(1 - exp(-b) * b**b / factorial(b), rel=1e-12)
    assert kept_share(1, 1) == pytest.approx(1 - 1 / np.e)
    shares = [kept_share(b, b) for b in range(1, 60)]
    assert (np.diff(shares) > 0).all()
    drawn = np.random.default_rng(0).poisson(7.0, 400_000)
    assert kept_share(7.0, 5) == pytest.approx(np.minimum(drawn, 5).mean() / 7.0, abs=2e-3)


def test_the_least_share_is_that_of_the_linear_program_and_the_rest_is_leximin():
    rng = np.random.default_rng(0)
    for _ in range(40):
        member, shares, attributes = random_groups(rng)
        rates, b = rng.dirichlet(np.full(len(member), 0.5)) * rng.integers(5, 300), int(rng.integers(1, 100))
        rule = InternalEquityAllocator().fit(rates, member, shares, b, attributes=attributes)
        types, size = member.shape
        above = np.block([[-member.T, (shares * b)[:, None]], [np.ones((1, types)), np.zeros((1, 1))]])
        found = linprog(
            np.append(np.zeros(types), -1.0), A_ub=above, b_ub=np.append(np.zeros(size), b),
            bounds=[(0, r) for r in rates] + [(0, None)],
        )  # fmt: skip
        assert rule.lp_value_ == pytest.approx(-found.fun, abs=1e-6)
        assert rule.x_.sum() <= b + 1e-6
        assert (rule.x_ <= rates + 1e-9).all()
        levels = member.T @ rule.x_ / (shares * b)
        assert levels.min() == pytest.approx(rule.lp_value_, abs=1e-6)
        for g in range(size):  # no group can have more while none that has no more than it loses
            floor = np.where(levels <= levels[g] + 1e-6, levels - 1e-6, 0.0) * shares * b
            more = linprog(
                -member[:, g], A_ub=np.vstack([-member.T, np.ones((1, types))]), b_ub=np.append(-floor, b),
                bounds=[(0, r) for r in rates],
            )  # fmt: skip
            assert -more.fun / (shares[g] * b) <= levels[g] + 1e-4 * max(1.0, 1 / shares[g])


def test_sampling_gives_every_type_what_it_promises():
    for supply in (1, 10, 40):
        rule = fitted(supply=supply)
        report = simulate(rule, n=40_000, random_state=1)
        due = np.array(GROUPS["shares"]) * supply
        promised = np.array(MEMBER).T @ rule.served_ / due
        got = np.array(list(report.per_group.values()))
        assert (got >= promised - 4.5 * np.sqrt(1 / (due * 40_000))).all()
        assert rule.ratio_ >= kept_share(supply, supply) - 1e-6


def test_positions_give_every_group_the_same_share_of_its_arrivals_in_any_order():
    early = np.repeat([[0.6, 0.2, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]], 50, axis=0)
    rates = early.sum(axis=0)
    rule = fitted("positions", rates=rates, supply=20)
    report = simulate(rule, early, n=40_000, random_state=2)
    expected = 0.2 * (np.array(MEMBER).T @ rates) / (np.array(GROUPS["shares"]) * 20)
    assert np.array(list(report.per_group.values())) == pytest.approx(expected, abs=0.02)
    assert report.waste == 0.0
    mirror = np.array(MEMBER).T @ rates / 100
    same = InternalEquityAllocator("positions").fit(rates, MEMBER, mirror, 20, attributes=GROUPS["attributes"])
    assert same.ratio_ == pytest.approx(1.0)


def test_reserves_bring_the_least_group_of_a_day_near_the_best_possible():
    rng = np.random.default_rng(3)
    for supply in (10, 40):
        path = rng.choice(4, (80, 100), p=np.array(RATES) / 100)
        best = np.array([clairvoyant_milp(day, MEMBER, supply=supply, **GROUPS) for day in path])
        reports = {
            policy: simulate(fitted(policy, supply=supply), path) for policy in ("reserve", "sampling", "greedy")
        }
        assert all(report.ex_post <= best.mean() + 1e-9 for report in reports.values())
        assert reports["reserve"].ex_post >= 0.9 * best.mean()
        assert reports["reserve"].ex_post > reports["sampling"].ex_post > reports["greedy"].ex_post


def test_the_best_counts_of_a_day_are_those_of_a_search():
    rng = np.random.default_rng(4)
    for _ in range(15):
        member, shares, attributes = random_groups(rng)
        member = member[:4] if (member[:4].sum(axis=0) > 0).all() else member
        if len(member) > 5:
            continue
        arrived = rng.integers(0, 4, len(member))
        b = int(rng.integers(1, 6))
        path = np.repeat(np.arange(len(member)), arrived)
        served = (np.array(x) for x in itertools.product(*(range(n + 1) for n in arrived)) if sum(x) <= b)
        best = max(float((member.T @ x / (shares * b)).min()) for x in served)
        found = clairvoyant_milp(path, member, shares, b, attributes=attributes)
        assert found == pytest.approx(best, abs=1e-9)


@given(
    st.sampled_from(["sampling", "positions", "reserve", "greedy"]),
    st.lists(st.integers(0, 3), min_size=12, max_size=12),
    st.integers(1, 15),
)
@settings(max_examples=30, deadline=None)
def test_no_path_gets_more_than_there_is(policy, path, supply):
    session = fitted(policy, rates=[6, 3, 2, 1], supply=supply).start()
    yes = [session.decide(kind) for kind in path]
    assert sum(yes) <= supply
    assert session.remaining == supply - sum(yes)
    assert [json.loads(line)["served"] for line in session.log.splitlines()] == yes
    if policy == "positions":
        assert sum(yes) == min(supply, 12)


def test_an_arrival_can_be_named_by_its_groups():
    table = pd.DataFrame(MEMBER, columns=["man", "woman", "white", "black"])
    rule = InternalEquityAllocator("greedy").fit(RATES, table, supply=3, **GROUPS)
    session = rule.start()
    assert session.decide(["black", "woman"])
    assert json.loads(session.log)["type"] == 3
    for wrong in (["black"], "woman", ["black", "cat"], 4, -1, True, None):
        with pytest.raises(InputError, match="type"):
            session.decide(wrong)


def test_a_planned_number_of_arrivals_ends_the_day():
    for policy in ("positions", "reserve"):
        session = fitted(policy, rates=[1, 1, 1, 1], supply=2).start()
        for _ in range(4):
            session.decide(0)
        with pytest.raises(InputError, match="were planned for"):
            session.decide(0)


def test_certificates_say_what_they_rest_on():
    sampling, positions = fitted().certificate_, fitted("positions").certificate_
    assert sampling.holds
    assert sampling.parameters["ratio"] == fitted().ratio_
    assert any("all day" in assumption.text for assumption in sampling.assumptions)
    assert any("any order" in assumption.text for assumption in positions.assumptions)
    for policy in ("reserve", "greedy"):
        assert fitted(policy).certificate_ is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"type_rates": [1.0, 2.0]}, "rates have shape"),
        ({"type_rates": [1.0, -2.0, 3.0, 4.0]}, "negative"),
        ({"type_rates": [1.0, np.nan, 3.0, 4.0]}, "not finite"),
        ({"type_rates": ["a", "b", "c", "d"]}, "no number"),
        ({"type_rates": [0.0, 0.0, 3.0, 4.0]}, "nobody of the group '0'"),
        ({"membership": [[1, 0, 2, 0]] * 4}, "0 and 1"),
        ({"membership": [[1, 0, 1, 0]] * 4}, "no type is in the group '1'"),
        ({"membership": [[1, 1, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]]}, "2 groups of the attribute 'sex'"),
        ({"shares": [0.5, 0.4, 0.7, 0.3]}, "'sex' sum to 0.9"),
        ({"shares": [0.5, 0.5, 1.0, 0.0]}, "not positive"),
        ({"shares": [0.5, 0.5]}, "one for each of 4"),
        ({"attributes": ["sex"]}, "1 attributes"),
        ({"attributes": None}, "sum to 2"),
        ({"supply": 0}, "1 or more"),
        ({"supply": 2.5}, "whole"),
        ({"supply": "x"}, "whole"),
        ({"supply": True}, "whole"),
        ({"supply": np.nan}, "whole"),
    ],
)
def test_what_cannot_be_used_is_refused(change, message):
    given = {"type_rates": RATES, "membership": MEMBER, "supply": 10, **GROUPS} | change
    with pytest.raises(InputError, match=message):
        InternalEquityAllocator().fit(**given)


def test_parameters_and_uncertain_numbers_are_refused():
    with pytest.raises(InputError, match="policy"):
        fitted("fair")
    for risk in (0.0, 1.0, True, "x"):
        with pytest.raises(InputError, match="risk"):
            fitted("reserve", risk=risk)
    for policy in ("positions", "reserve"):
        with pytest.raises(InputError, match="whole number"):
            fitted(policy, rates=[1.5, 1, 1, 1])
    with pytest.raises(InputError, match="not known how many"):
        simulate(fitted(rates=[1.5, 1, 1, 1]))
    for path in ([0.5], [[0]], [7], [-1]):
        with pytest.raises(InputError, match="path"):
            clairvoyant_milp(path, MEMBER, supply=3, **GROUPS)
    assert clairvoyant_milp([], MEMBER, supply=3, **GROUPS) == 0.0
