"""The optimum over atoms: against linear programming, exhaustive search, and the constants of the theorem."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from aboveboard.core import InputError
from aboveboard.fairness import (
    deterministic_fair_bayes_optimal,
    fair_bayes_optimal,
    robustness_constant,
)

CONSTRAINTS = ("demographic_parity", "equal_opportunity", "predictive_equality")


def weights(mass, eta, constraint):
    factor = {"demographic_parity": 1.0, "equal_opportunity": eta, "predictive_equality": 1 - eta}[constraint]
    return mass * factor


def accuracy(mass, eta, f):
    return float(mass @ (f * eta + (1 - f) * (1 - eta)))


def rates(mass, eta, group, f, constraint):
    c = weights(mass, eta, constraint)
    return np.array([(c * f)[group == a].sum() / c[group == a].sum() for a in np.unique(group)])


def lp_optimum(mass, eta, group, constraint, slack):
    """The same optimum by HiGHS's simplex, with the window's lower end as one more variable."""
    n = len(mass)
    c = weights(mass, eta, constraint)
    rows = np.array([np.append(np.where(group == a, c, 0) / c[group == a].sum(), -1.0) for a in np.unique(group)])
    solution = linprog(
        -np.append(mass * (2 * eta - 1), 0),
        A_ub=np.vstack([rows, -rows]),
        b_ub=np.repeat([slack, 0.0], len(rows)),
        bounds=[(0, 1)] * n + [(None, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    f = solution.x[:n]
    return mass @ (1 - eta) - solution.fun, int(((f > 1e-7) & (f < 1 - 1e-7)).sum())


def random_instance(rng, n_groups=None, n_atoms=None):
    """Smooth, tied, coarse and skewed instances."""
    n_groups = n_groups or int(rng.integers(1, 5))
    n = n_atoms or int(rng.integers(n_groups, 31))
    group = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n - n_groups)])
    kind = rng.integers(4)
    if kind == 0:
        mass, eta = rng.random(n), rng.random(n)
    elif kind == 1:
        mass, eta = rng.integers(1, 5, n).astype(float), rng.integers(0, 5, n) / 4
    elif kind == 2:
        mass, eta = rng.integers(1, 3, n).astype(float), rng.integers(0, 3, n) / 2
    else:
        mass, eta = rng.random(n) ** 3, rng.random(n) ** 2
    return mass / mass.sum(), eta, group


def has_every_rate(mass, eta, group, constraint):
    c = weights(mass, eta, constraint)
    return all(c[group == a].sum() > 0 for a in np.unique(group))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("slack", [0.0, 0.05, 0.3, 1.0])
def test_closed_form_has_the_accuracy_of_the_linear_program_and_no_more_coins_than_groups_less_one(constraint, slack):
    rng = np.random.default_rng(int(100 * slack) + CONSTRAINTS.index(constraint))
    checked = 0
    while checked < 60:
        mass, eta, group = random_instance(rng)
        if not has_every_rate(mass, eta, group, constraint):
            continue
        checked += 1
        best = fair_bayes_optimal(mass, eta, group, constraint, slack)
        expected, coins = lp_optimum(mass, eta, group, constraint, slack)
        n_groups = len(np.unique(group))
        assert best.accuracy == pytest.approx(expected, abs=1e-9)
        assert accuracy(mass, eta, best.f) == pytest.approx(best.accuracy, abs=1e-12)
        assert np.ptp(rates(mass, eta, group, best.f, constraint)) <= slack + 1e-11
        assert best.n_fractional <= n_groups - 1
        assert coins <= n_groups - 1


def scanned_optimum(mass, eta, group, constraint, slack):
    """The best total gain over all windows with an end at a breakpoint, by interpolation of every group's gain."""
    c = weights(mass, eta, constraint)
    free = np.where((c == 0) & (eta > 0.5), mass * (2 * eta - 1), 0).sum()
    curves = []
    for a in np.unique(group):
        rows = np.flatnonzero((group == a) & (c > 0))
        rows = rows[np.argsort(-eta[rows])]
        reached = np.append(0, np.cumsum(c[rows]) / c[rows].sum())
        curves.append((reached, np.append(0, np.cumsum(mass[rows] * (2 * eta[rows] - 1)))))
    points = np.concatenate([reached for reached, _ in curves])
    start = np.unique(np.clip(np.concatenate([points, points - slack]), 0, 1 - slack))
    total = sum(
        np.interp(np.clip(reached[gain.argmax()], start, start + slack), reached, gain) for reached, gain in curves
    )
    return float(mass @ (1 - eta) + free + total.max())


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("slack", [0.0, 0.03, 0.2])
def test_with_thousands_of_atoms_it_is_the_best_of_all_breakpoints(constraint, slack):
    rng = np.random.default_rng(int(100 * slack) + CONSTRAINTS.index(constraint))
    for digits in (2, 16):
        n_groups = int(rng.integers(2, 8))
        mass, eta = rng.random(3000) ** 2, np.round(rng.random(3000), digits)
        mass, group = mass / mass.sum(), rng.integers(0, n_groups, 3000)
        best = fair_bayes_optimal(mass, eta, group, constraint, slack)
        assert best.accuracy == pytest.approx(scanned_optimum(mass, eta, group, constraint, slack), abs=1e-11)
        assert np.ptp(rates(mass, eta, group, best.f, constraint)) <= slack + 1e-11
        assert best.n_fractional <= n_groups - 1


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_identical_groups_get_the_unconstrained_classifier(constraint):
    eta = np.tile([0.9, 0.6, 0.4, 0.05], 3)
    mass = np.tile([0.1, 0.2, 0.3, 0.4], 3) / 3
    best = fair_bayes_optimal(mass, eta, np.repeat(["a", "b", "c"], 4), constraint)
    assert best.f.tolist() == (eta > 0.5).astype(float).tolist()
    assert best.n_fractional == 0
    assert best.groups == ("a", "b", "c")


@given(seed=st.integers(0, 10**6), constraint=st.sampled_from(CONSTRAINTS))
@settings(max_examples=60, deadline=None)
def test_full_slack_gives_the_unconstrained_bayes_accuracy(seed, constraint):
    mass, eta, group = random_instance(np.random.default_rng(seed))
    if has_every_rate(mass, eta, group, constraint):
        best = fair_bayes_optimal(mass, eta, group, constraint, slack=1.0)
        assert best.accuracy == pytest.approx(float(mass @ np.maximum(eta, 1 - eta)), abs=1e-12)
        assert best.n_fractional == 0


@given(seed=st.integers(0, 10**6), constraint=st.sampled_from(CONSTRAINTS))
@settings(max_examples=60, deadline=None)
def test_accuracy_never_falls_as_the_slack_grows(seed, constraint):
    mass, eta, group = random_instance(np.random.default_rng(seed))
    if has_every_rate(mass, eta, group, constraint):
        found = [fair_bayes_optimal(mass, eta, group, constraint, s).accuracy for s in np.linspace(0, 1, 9)]
        assert np.all(np.diff(found) >= -1e-11)


@given(seed=st.integers(0, 10**6), constraint=st.sampled_from(CONSTRAINTS), share=st.floats(0.01, 0.99))
@settings(max_examples=60, deadline=None)
def test_splitting_an_atom_in_two_of_equal_probability_changes_neither_accuracy_nor_parity(seed, constraint, share):
    rng = np.random.default_rng(seed)
    mass, eta, group = random_instance(rng)
    if has_every_rate(mass, eta, group, constraint):
        i = int(rng.integers(len(mass)))
        split = np.append(mass, mass[i] * share)
        split[i] *= 1 - share
        best = fair_bayes_optimal(mass, eta, group, constraint, 0.02)
        after = fair_bayes_optimal(split, np.append(eta, eta[i]), np.append(group, group[i]), constraint, 0.02)
        assert after.accuracy == pytest.approx(best.accuracy, abs=1e-11)
        assert after.gap <= 0.02 + 1e-11


@given(seed=st.integers(0, 10**6), constraint=st.sampled_from(CONSTRAINTS), factor=st.floats(0.01, 100))
@settings(max_examples=60, deadline=None)
def test_rates_stay_equal_when_one_group_is_scaled(seed, constraint, factor):
    mass, eta, group = random_instance(np.random.default_rng(seed), n_groups=3)
    if has_every_rate(mass, eta, group, constraint):
        scaled = np.where(group == 0, factor, 1.0) * mass
        best = fair_bayes_optimal(scaled / scaled.sum(), eta, group, constraint)
        assert np.ptp(rates(scaled, eta, group, best.f, constraint)) <= 1e-11


def test_perfect_classifier_keeps_accuracy_one_under_equal_opportunity():
    best = fair_bayes_optimal([0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0], [0, 0, 1, 1], "equal_opportunity")
    assert best.accuracy == 1.0
    assert best.rate == 1.0
    assert best.f.tolist() == [1, 0, 1, 0]


def test_atoms_without_weight_in_the_rate_are_decided_by_their_own_probability():
    mass, group = [0.25, 0.25, 0.25, 0.25], [0, 0, 1, 1]
    lenient = fair_bayes_optimal(mass, [1.0, 0.8, 1.0, 0.1], group, "predictive_equality")
    assert lenient.f[0] == lenient.f[2] == 1.0
    strict = fair_bayes_optimal(mass, [0.0, 0.8, 0.0, 0.9], group, "equal_opportunity")
    assert strict.f[0] == strict.f[2] == 0.0


def test_an_atom_that_hardly_counts_in_the_rate_is_not_swept_along_with_it():
    # under equal opportunity the second atom holds 32 % of people and 1e-15 of its group's true positives
    mass, eta, group = np.array([0.2, 0.32, 0.2, 0.28]), np.array([0.9, 1e-15, 0.9, 0.8]), np.array([0, 0, 1, 1])
    best = fair_bayes_optimal(mass, eta, group, "equal_opportunity")
    assert best.f[1] <= 1e-9
    assert best.accuracy == pytest.approx(
        lp_optimum(mass, np.where(eta < 1e-9, 0, eta), group, "equal_opportunity", 0)[0]
    )


def test_of_equally_accurate_classifiers_the_one_with_the_smallest_coin_is_taken():
    # raising group 1 (atoms of mass 0.02) or lowering group 0 (one atom of mass 0.3) costs the same
    mass = np.array([0.30, 0.20, 0.25, *[0.02] * 10, 0.05])
    eta = np.array([1.0, 0.0, 1.0, *[0.0] * 10, 0.0])
    best = fair_bayes_optimal(mass, eta, np.array([0, 0, *[1] * 12]))
    assert best.accuracy == pytest.approx(1 - 0.05)
    assert best.randomized_mass == pytest.approx(0.02)


def exhaustive(mass, eta, group, constraint, tol=1e-9):
    best = 0.0
    for bits in product((0.0, 1.0), repeat=len(mass)):
        f = np.array(bits)
        if np.ptp(rates(mass, eta, group, f, constraint)) <= tol:
            best = max(best, accuracy(mass, eta, f))
    return best


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_integer_program_agrees_with_trying_every_subset(constraint):
    rng = np.random.default_rng(5)
    checked = 0
    while checked < 6:
        mass = rng.integers(1, 6, 9).astype(float)
        mass, eta, group = mass / mass.sum(), rng.integers(0, 5, 9) / 4, np.arange(9) % 2
        if not has_every_rate(mass, eta, group, constraint):
            continue
        checked += 1
        whole = deterministic_fair_bayes_optimal(mass, eta, group, constraint)
        assert whole.accuracy == pytest.approx(exhaustive(mass, eta, group, constraint), abs=1e-9)
        assert whole.n_fractional == 0
        assert fair_bayes_optimal(mass, eta, group, constraint).accuracy >= whole.accuracy - 1e-9


def test_no_coin_is_needed_when_all_atoms_weigh_the_same_and_groups_have_as_many():
    eta = np.random.default_rng(1).random(12)
    mass, group = np.full(12, 1 / 12), np.repeat([0, 1], 6)
    whole = deterministic_fair_bayes_optimal(mass, eta, group)
    coin = fair_bayes_optimal(mass, eta, group)
    assert coin.accuracy == pytest.approx(whole.accuracy, abs=1e-12)
    assert coin.n_fractional == 0


def test_integer_program_says_when_time_is_up():
    with pytest.raises(TimeoutError, match="allow a larger tol"):
        deterministic_fair_bayes_optimal([0.5, 0.5], [0.1, 0.9], [0, 1], time_limit=0.0)


@pytest.mark.parametrize("eps", [1e-4, 1e-3, 1e-2, 0.05])
def test_moving_eps_of_mass_halves_deterministic_accuracy_and_costs_the_randomised_one_eps(eps):
    mass, eta, group = [0.25 + eps, 0.25 - eps, 0.25, 0.25], [1, 0, 1, 0], [0, 0, 1, 1]
    assert deterministic_fair_bayes_optimal(mass, eta, group).accuracy == pytest.approx(0.5 + eps, abs=1e-12)
    assert fair_bayes_optimal(mass, eta, group).accuracy == pytest.approx(1 - eps, abs=1e-12)


def as_atoms(joint):
    """Mass and probability of a joint distribution of (atom, outcome), shape (n, 2)."""
    mass = joint.sum(axis=1)
    return mass / mass.sum(), np.divide(joint[:, 1], mass, out=np.full(len(mass), 0.5), where=mass > 0).clip(0, 1)


def moved(joint, rng):
    """Move mass between cells: the total variation distance is half the sum of absolute changes."""
    flat = joint.ravel().copy()
    for _ in range(rng.integers(1, 4)):
        i, j = rng.integers(flat.size, size=2)
        step = min(flat[i], 10 ** rng.uniform(-4, -0.5))
        flat[i] -= step
        flat[j] += step
    return flat.reshape(joint.shape)


def stress(constraint, n_groups, restarts, steps, seed):
    """Climb towards the pair of distributions that moves the optimum most; return the largest share of the bound."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(restarts):
        n = n_groups * 2 + int(rng.integers(0, 3))
        group = np.concatenate([np.repeat(np.arange(n_groups), 2), rng.integers(0, n_groups, n - 2 * n_groups)])
        joint = rng.random((n, 2)) ** rng.integers(1, 8)
        joint /= joint.sum()
        pair, best = (joint, moved(joint, rng)), 0.0
        slack = float(rng.choice([0.0, 0.1]))
        for _ in range(steps):
            first, second = pair[0], moved(pair[rng.integers(2)], rng)
            if rng.random() < 0.5:
                first = first * np.exp(rng.normal(0, 0.5, first.shape) * (rng.random(first.shape) < 0.3))
                first /= first.sum()
                second = first + (pair[1] - pair[0])
            tv = 0.5 * np.abs(first - second).sum()
            if second.min() < 0 or tv < 1e-6:
                continue
            try:
                optima = [fair_bayes_optimal(*as_atoms(j), group, constraint, slack) for j in (first, second)]
                constant = max(robustness_constant(*as_atoms(j), group, constraint) for j in (first, second))
            except InputError:
                continue
            share = abs(optima[0].accuracy - optima[1].accuracy) / tv / constant
            if share > best:
                pair, best = (first, second), share
        worst = max(worst, best)
    return worst


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("n_groups", [2, 3])
def test_no_poison_found_by_search_moves_the_optimum_beyond_the_robustness_constant(constraint, n_groups):
    assert 0.1 < stress(constraint, n_groups, restarts=12, steps=60, seed=n_groups) <= 1 + 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("n_groups", [2, 4])
def test_no_poison_found_by_long_search_moves_the_optimum_beyond_the_robustness_constant(constraint, n_groups):
    assert 0.1 < stress(constraint, n_groups, restarts=200, steps=120, seed=n_groups) <= 1 + 1e-6


@pytest.mark.parametrize("n_groups", [2, 3, 10])
def test_under_equal_opportunity_poison_in_one_group_costs_every_other_group_as_much(n_groups):
    # perfect classifier; eps of one group's hopeless cases turn positive and cannot be told from the rest
    eps, group = 1e-4, np.repeat(np.arange(n_groups), 2)
    joint = np.zeros((2 * n_groups, 2))
    joint[0::2, 1], joint[1::2, 0] = 0.02, 1 / n_groups - 0.02
    poisoned = joint.copy()
    poisoned[1] += [-eps, eps]
    before, after = (fair_bayes_optimal(*as_atoms(j), group, "equal_opportunity").accuracy for j in (joint, poisoned))
    ratio = (before - after) / eps
    assert ratio == pytest.approx(n_groups, rel=0.01)  # so a constant that ignores the number of groups is too small
    assert ratio <= robustness_constant(*as_atoms(poisoned), group, "equal_opportunity")


def test_robustness_constant_is_three_for_parity_and_grows_with_the_odds_against_a_group():
    mass, eta, group = [0.3, 0.1, 0.35, 0.25], [0.5, 0.5, 0.2, 0.4], [0, 1, 1, 1]
    positives = np.array([0.15, 0.05 + 0.07 + 0.1])
    assert robustness_constant(mass, eta, group) == 3.0
    assert robustness_constant(mass, eta, group, "equal_opportunity") == pytest.approx(1 + 2 * positives[1] / 0.15)
    within = robustness_constant(mass, eta, group, "equal_opportunity", tv=0.05)
    assert within == pytest.approx(1 + 2 * (positives.sum() - 0.1) / 0.1)
    assert robustness_constant(mass, eta, group, "equal_opportunity", tv=0.2) == np.inf
    assert robustness_constant([0.4, 0.6], [0.5, 0.1], ["a", "a"], "equal_opportunity") == 1.0


@pytest.mark.parametrize(
    ("mass", "eta", "group", "constraint", "message"),
    [
        ([0.5, 0.4], [0, 1], [0, 1], "demographic_parity", "sum to 1"),
        ([1.5, -0.5], [0, 1], [0, 1], "demographic_parity", "non-negative"),
        ([0.5, 0.5], [0, 1.1], [0, 1], "demographic_parity", "outside"),
        ([0.5, 0.5], [0, np.nan], [0, 1], "demographic_parity", "outside"),
        ([0.5, 0.5], [0.0, 0.7], ["a", "b"], "equal_opportunity", "'a' has no positives"),
        ([0.5, 0.5], [0.3, 1.0], ["a", "b"], "predictive_equality", "'b' has no negatives"),
        ([0.5, 0.5], [0.3], [0, 1], "demographic_parity", "shapes"),
        ([0.5, 0.5], [0.3, 0.2], [0, 1], "parity", "constraint is 'parity'"),
        ([], [], [], "demographic_parity", "mass"),
    ],
)
def test_unusable_atoms_are_refused(mass, eta, group, constraint, message):
    with pytest.raises(InputError, match=message):
        fair_bayes_optimal(mass, eta, group, constraint)


def test_slack_outside_the_unit_interval_is_refused():
    with pytest.raises(InputError, match=r"slack is 1\.5"):
        fair_bayes_optimal([0.5, 0.5], [0, 1], [0, 1], slack=1.5)
