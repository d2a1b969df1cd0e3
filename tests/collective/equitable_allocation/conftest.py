"""Instances of all kinds, and what is true of them by a linear program written down line by line."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import linprog


def _instance(rng, slots=5, values=3):
    """Return demands with a few values each, some of them without a request now and then, and a stock."""
    demands = []
    for _ in range(slots):
        size = int(rng.integers(1, values + 1))
        value = rng.lognormal(0.0, 1.5, size)
        chance = rng.dirichlet(np.ones(size))
        if rng.random() < 0.3:
            value, chance = np.append(value, 0.0), np.append(0.8 * chance, 0.2)
        demands.append((value, chance))
    mean = sum(float(value @ chance) for value, chance in demands)
    return demands, float(rng.uniform(0.1, 1.3)) * mean


def _best_least_fill(demands, supply):
    """Return the optimum of the benchmark program by SciPy."""
    entries = [(t, d, q) for t, (value, chance) in enumerate(demands) for d, q in zip(value, chance) if d > 0]
    n, slots = len(entries), len(demands)
    above = np.zeros((slots + 1, n + 1))
    for k, (t, d, q) in enumerate(entries):
        above[t, k] = -q
        above[slots, k] = q * d
    for t in range(slots):
        above[t, n] = sum(q for s, _, q in entries if s == t)
    found = linprog(
        np.append(np.zeros(n), -1.0),
        A_ub=above,
        b_ub=np.append(np.zeros(slots), supply),
        bounds=[(0.0, min(1.0, supply / d)) for _, d, _ in entries] + [(0.0, 1.0)],
    )
    assert found.status == 0
    return -found.fun


def _path_optimum(path, supply):
    """Return the best least fill rate where the demands are known: everybody has the same, as far as the stock goes."""
    asked = path[path > 0]
    return min(1.0, supply / asked.sum(), *(supply / asked)) if len(asked) else 1.0


@pytest.fixture
def tools():
    return SimpleNamespace(instance=_instance, best_least_fill=_best_least_fill, path_optimum=_path_optimum)
