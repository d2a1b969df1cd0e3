"""What parity costs, from scores alone: held out, with intervals that hold."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import isotonic_regression

from aboveboard.core import Figure, InputError, Table
from aboveboard.fairness import fair_bayes_optimal, price_of_parity

CONSTRAINTS = ("demographic_parity", "equal_opportunity", "predictive_equality")


def population(n, seed, n_groups=2):
    """Scores that are true probabilities on a grid of 20 values, distributed differently in each group."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, n)
    cell = np.minimum((rng.beta(2 + 1.5 * group, 4) * 20).astype(int), 19)
    eta = (cell + 0.5) / 20
    return eta, (rng.random(n) < eta).astype(int), group


def true_optimum(constraint, slack, n_groups=2):
    """The same from the exact cell probabilities of the population."""
    from scipy.stats import beta

    edges = np.linspace(0, 1, 21)
    mass = np.concatenate([np.diff(beta(2 + 1.5 * g, 4).cdf(edges)) / n_groups for g in range(n_groups)])
    eta, group = np.tile((np.arange(20) + 0.5) / 20, n_groups), np.repeat(np.arange(n_groups), 20)
    return fair_bayes_optimal(mass / mass.sum(), eta, group, constraint, slack).accuracy


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_with_many_rows_the_curve_is_that_of_the_population(constraint):
    score, y, group = population(200_000, 0)
    price = price_of_parity(score, y, group, constraint, slack=(0, 0.05, 1), random_state=0)
    truth = [true_optimum(constraint, slack) for slack in (0, 0.05, 1)]
    assert price.accuracy == pytest.approx(truth, abs=0.003)
    # three standard deviations over samples, which are 0.001
    assert price.price == pytest.approx(truth[2] - np.array(truth), abs=0.003)
    assert np.all(price.price_high - price.price_low < 0.006)
    assert price.gap[0] < 0.015
    assert price.gap[1] == pytest.approx(0.05, abs=0.015)
    assert price.unconstrained_accuracy == pytest.approx(truth[2], abs=0.003)


def test_it_is_what_fitting_each_fold_by_hand_gives():
    score, y, group = population(400, 1)
    # the folds are dealt out as documented: strata of group and outcome in random order
    by_score = np.lexsort((np.arange(400), score, group))
    score, y, group = score[by_score], y[by_score], group[by_score]
    price = price_of_parity(score, y, group, slack=(0.03,), cv=2, random_state=0)
    order = np.random.default_rng(0).permutation(400)
    order = order[np.argsort((2 * group + y)[order], kind="stable")]
    fold = np.empty(400, dtype=int)
    fold[order] = np.arange(400) % 2
    right = np.empty(400)
    for k in (0, 1):
        mass, eta, groups, atoms = [], [], [], []
        for g in (0, 1):
            rows = (fold != k) & (group == g)
            values, place = np.unique(score[rows], return_inverse=True)
            counts = np.bincount(place)
            mass.append(counts)
            eta.append(isotonic_regression(np.bincount(place, weights=y[rows]) / counts, weights=counts).x)
            groups.append(np.full(len(values), g))
            atoms.append(values)
        mass, eta, groups, atoms = map(np.concatenate, (mass, eta, groups, atoms))
        # equal probabilities are taken in descending order of score
        down = np.argsort(-atoms, kind="stable")
        best = fair_bayes_optimal(mass[down] / mass.sum(), eta[down], groups[down], slack=0.03)
        accept = dict(zip(zip(groups[down].tolist(), atoms[down].tolist()), best.f.tolist()))
        for i in np.flatnonzero(fold == k):
            g, s = int(group[i]), float(score[i])
            # a score that was not learned from is accepted where the next lower one is, if only by a coin
            lower = max((v for h, v in accept if h == g and v <= s), default=min(v for h, v in accept if h == g))
            f = accept[g, lower] if lower == s else float(accept[g, lower] > 0)
            right[i] = f if y[i] else 1 - f
    assert price.accuracy[0] == pytest.approx(right.mean(), abs=1e-12)


def test_accuracy_is_not_measured_on_the_rows_that_were_learned_from():
    # scores are noise: in sample, isotonic calibration would find something
    rng = np.random.default_rng(0)
    y, group = np.arange(400) % 2, np.arange(400) // 2 % 2
    found = [price_of_parity(rng.random(400), y, group, random_state=s).unconstrained_accuracy for s in range(30)]
    assert np.mean(found) < 0.52


def test_intervals_of_the_price_cover_the_truth_and_never_shrink_to_a_point():
    truth = true_optimum("demographic_parity", 1) - true_optimum("demographic_parity", 0)
    covered = []
    for seed in range(200):
        score, y, group = population(1000, seed)
        price = price_of_parity(score, y, group, slack=(0, 1), random_state=seed)
        covered.append(price.price_low[0] <= truth <= price.price_high[0])
        assert price.price_low[1] <= 0 <= price.price_high[1]
        assert price.price_low[1] < price.price_high[1]
    # at least 95 % are promised: 182 of 200 is the 1 % quantile of a binomial
    assert sum(covered) >= 182


def test_rules_do_not_depend_on_the_scale_of_the_scores():
    score, y, group = population(1000, 0)
    plain, scaled = (price_of_parity(s, y, group, random_state=0) for s in (score, 40 * score - 7))
    assert plain.accuracy.tolist() == scaled.accuracy.tolist()


def test_rows_of_one_person_stay_together_and_widen_the_interval():
    score, y, group = population(500, 0)
    tripled = [np.repeat(a, 3) for a in (score, y, group)]
    person = np.repeat(np.arange(500), 3)
    naive = price_of_parity(*tripled, random_state=0)
    honest = price_of_parity(*tripled, cluster=person, random_state=0)
    once = price_of_parity(score, y, group, random_state=0)
    assert naive.n_effective == pytest.approx(1500)
    assert honest.n_effective == pytest.approx(500, rel=0.02)
    width = [p.accuracy_high[0] - p.accuracy_low[0] for p in (naive, honest, once)]
    assert width[0] < 0.7 * width[1]
    assert width[1] == pytest.approx(width[2], rel=0.05)


def test_zero_weights_leave_rows_out_and_equal_weights_change_nothing():
    score, y, group = population(600, 2)
    plain = price_of_parity(score, y, group, random_state=0)
    scaled = price_of_parity(score, y, group, sample_weight=np.full(600, 7.0), random_state=0)
    assert scaled.accuracy == pytest.approx(plain.accuracy, abs=1e-12)
    assert scaled.n_effective == pytest.approx(600)
    more = [np.concatenate([a, a[:100]]) for a in (score, 1 - y, group)]
    weight = np.concatenate([np.zeros(600), np.ones(100)])
    only = price_of_parity(*more, sample_weight=weight, random_state=0)
    assert only.n == 100


def test_intersections_of_columns_are_groups():
    score, y, group = population(2000, 0)
    frame = pd.DataFrame({"a": group, "b": np.where(np.arange(2000) % 2, "x", "y")})
    assert price_of_parity(score, y, frame, random_state=0).groups == ((0, "x"), (0, "y"), (1, "x"), (1, "y"))


def test_its_table_and_figure_say_what_it_found():
    score, y, group = population(2000, 0)
    price = price_of_parity(score, y, group, slack=(0, 0.1), random_state=0)
    table, figure = price.table(), price.figure()
    assert [row[0] for row in table.rows] == ["0.0%", "10.0%", "no constraint"]
    assert table.rows[0][1] == price.accuracy[0]
    assert Table.from_dict(table.to_dict()).rows == table.rows
    assert Figure.from_dict(figure.to_dict()) == figure
    assert figure.series[0].y == tuple(price.accuracy)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": [0.1, np.nan, 0.3, 0.4]}, "missing or infinite"),
        ({"y": [0, 1, 2, 1]}, "other values than 0 and 1"),
        ({"y": ["no", "yes", "no", "yes"]}, "other values than 0 and 1"),
        ({"y": [0, 1]}, "shapes"),
        ({"cv": 1}, "cv is 1"),
        ({"slack": ()}, "slack is"),
        ({"slack": (0.1, 0.1)}, "ascending"),
        ({"slack": (0.1, 2)}, "slack is 2"),
        ({"sample_weight": [1, -1, 1, 1]}, "sample_weight"),
        ({"cluster": [1, 2]}, "cluster has shape"),
        ({"group": ["a", "a", "a", "b"]}, "group 'b' has 1 rows"),
        ({"constraint": "equal_opportunity", "y": [0, 1, 1, 0], "group": [0, 0, 0, 1]}, "has 0 positives"),
    ],
)
def test_unusable_input_is_refused(change, message):
    good = {"score": [0.1, 0.2, 0.3, 0.4], "y": [0, 1, 0, 1], "group": ["a", "a", "b", "b"]}
    with pytest.raises(InputError, match=message):
        price_of_parity(**(good | change))
