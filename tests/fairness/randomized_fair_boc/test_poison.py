"""Poison stays within its budget, and does what it is meant to do."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.fairness import poison


def total_variation(before, after):
    """Between two samples of tuples."""
    cells = set(before) | set(after)
    first, second = ({c: s.count(c) / len(s) for c in cells} for s in (before, after))
    return 0.5 * sum(abs(first[c] - second[c]) for c in cells)


@pytest.mark.parametrize("strategy", ["flip", "inject", "subset_sum"])
@pytest.mark.parametrize("rate", [0.0, 0.03, 0.2])
def test_poison_stays_within_the_total_variation_that_it_states(strategy, rate):
    rng = np.random.default_rng(3)
    X, y, group = rng.integers(0, 3, (300, 1)), rng.integers(0, 2, 300), rng.choice(["a", "b"], 300, p=[0.7, 0.3])
    after = poison(X, y, group, rate, strategy, random_state=0)
    cells = [list(zip(x[:, 0].tolist(), g.tolist(), o.tolist())) for x, o, g in ((X, y, group), after[:3])]
    assert total_variation(*cells) <= after.tv + 1e-12
    assert after.tv <= rate
    assert len(after.X) == len(after.y) == len(after.groups)


def test_subset_sum_poison_leaves_group_sizes_without_common_divisor():
    group = np.repeat(["a", "b"], [60, 30])
    after = poison(np.zeros((90, 1)), np.zeros(90, int), group, 0.1, "subset_sum", random_state=0)
    sizes = [int((after.groups == g).sum()) for g in "ab"]
    assert np.gcd(*sizes) == 1
    assert sum(sizes) == 90
    # the only equal rates of whole people are none and all
    assert sum(i * sizes[1] == j * sizes[0] for i in range(sizes[0] + 1) for j in range(sizes[1] + 1)) == 2


def test_poison_refuses_a_rate_of_one_and_an_unknown_strategy():
    with pytest.raises(InputError, match="rate is 1"):
        poison(np.zeros((2, 1)), [0, 1], [0, 1], 1)
    with pytest.raises(InputError, match="'flip', 'inject', 'subset_sum'"):
        poison(np.zeros((2, 1)), [0, 1], [0, 1], 0.5, "swap")
