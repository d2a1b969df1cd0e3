"""What k-means-constrained does with the same points: bounds on sizes, which say nothing about groups."""

import time

import numpy as np
from k_means_constrained import KMeansConstrained


def even_sizes(*, tasks, k, seed, **arrays):
    """Return labels of clusters of equal size, by task, and the seconds that each took."""
    found = {"seconds": []}
    for task in range(tasks):
        X = arrays[f"{task}.X"]
        start = time.perf_counter()
        model = KMeansConstrained(k, size_min=len(X) // k, size_max=-(-len(X) // k), n_init=3, random_state=seed + task)
        found[f"{task}.labels"] = np.asarray(model.fit_predict(X))
        found["seconds"].append(time.perf_counter() - start)
    return found
