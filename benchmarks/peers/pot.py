"""What POT does with the same measures; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
import ot


def barycenters(*, tasks, k, iterations, seed, **arrays):
    """Return, by task, the cost of POT's free-support barycenter with k atoms and of ours, both by POT's solver.

    Arrays are called ``<task>.x.<i>`` and ``<task>.p.<i>`` for the measures, ``<task>.atoms`` and ``<task>.masses``.
    """
    found = {"theirs": [], "ours": [], "seconds": []}
    for task in range(tasks):
        count = sum(name.startswith(f"{task}.x.") for name in arrays)
        supports = [arrays[f"{task}.x.{i}"] for i in range(count)]
        masses = [arrays[f"{task}.p.{i}"] for i in range(count)]
        random = np.random.default_rng(seed + task)
        union = np.vstack(supports)
        start = time.perf_counter()
        atoms = ot.lp.free_support_barycenter(
            supports, masses, union[random.choice(len(union), k, replace=False)], numItermax=iterations
        )
        found["seconds"].append(time.perf_counter() - start)
        found["theirs"].append(_cost(supports, masses, atoms, np.full(k, 1 / k)))
        found["ours"].append(_cost(supports, masses, arrays[f"{task}.atoms"], arrays[f"{task}.masses"]))
    return found


def _cost(supports, masses, atoms, weights):
    weights = weights / weights.sum()
    costs = [ot.emd2(p / p.sum(), weights, ot.dist(x, atoms)) for x, p in zip(supports, masses, strict=True)]
    return float(np.mean(costs))
