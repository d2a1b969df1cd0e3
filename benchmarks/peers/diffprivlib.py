"""diffprivlib's private logistic regression on the same rows; run in an environment of its own."""

import time

import numpy as np
from diffprivlib.models import LogisticRegression


def logistic_regression(X, y, X_test, epsilons, seeds, C):
    """Return what it predicts for the test rows, by epsilon and seed, and its seconds."""
    found, start = [], time.process_time()
    for epsilon in epsilons.tolist():
        for seed in seeds.astype(int).tolist():
            model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, max_iter=1000, random_state=seed)
            found.append(model.fit(X, y).predict(X_test))
    return {
        "predictions": np.array(found).reshape(len(epsilons), len(seeds), -1),
        "seconds": time.process_time() - start,
    }
