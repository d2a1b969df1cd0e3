"""What mbi (Private-PGM) makes of noisy tables; run in its own environment by ``aboveboard reproduce``."""

import time
from itertools import combinations

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)

from mbi import Domain, LinearMeasurement  # noqa: E402
from mbi.estimation import MirrorDescent  # noqa: E402


def parities(*, tables, n, k, total, sigma):
    """Fit a graphical model to noisy tables of each k of n yes-or-no columns; return its parities of up to k."""
    names = [f"column {i}" for i in range(n)]
    start = time.process_time()
    measured = [
        LinearMeasurement(table, tuple(names[i] for i in clique), sigma)
        for table, clique in zip(tables, combinations(range(n), k), strict=True)
    ]
    model = MirrorDescent().estimate(Domain(names, [2] * n), measured, known_total=float(total), iters=500)
    joint = np.asarray(model.project(tuple(names)).datavector()).reshape((2,) * n) / total
    found = []
    for size in range(1, k + 1):
        for subset in combinations(range(n), size):
            left = joint.sum(axis=tuple(i for i in range(n) if i not in subset))
            signs = 1.0
            for axis in range(size):
                signs = signs * np.array([1.0, -1.0]).reshape([-1 if a == axis else 1 for a in range(size)])
            found.append(float((left * signs).sum()))
    return {"parities": np.array(found), "seconds": time.process_time() - start}
