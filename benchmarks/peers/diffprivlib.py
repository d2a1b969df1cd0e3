"""What diffprivlib's private logistic regression makes of the same rows; run in its own environment."""

import time
import warnings

import numpy as np
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")


def logistic_regression(*, epsilon, seed, **arrays):
    """Return the log odds of test rows; arrays are called ``<task>.train``, ``<task>.label`` and ``<task>.test``.

    Rows lie in [-1, 1], so that their norm is at most the square root of the number of columns.
    """
    found = {}
    for name in [name.removesuffix(".train") for name in arrays if name.endswith(".train")]:
        train, label, test = (arrays[f"{name}.{part}"] for part in ("train", "label", "test"))
        model = LogisticRegression(epsilon=epsilon, data_norm=float(np.sqrt(train.shape[1])), random_state=seed)
        found[name] = model.fit(train, label).decision_function(test)
    return found


def predictions(X, y, X_test, epsilons, seeds, C):
    """Return the classes of test rows, by epsilon and seed, and its seconds; rows have a norm of 1 at most."""
    found, start = [], time.process_time()
    for epsilon in epsilons.tolist():
        for seed in seeds.astype(int).tolist():
            model = LogisticRegression(epsilon=epsilon, data_norm=1.0, C=C, max_iter=1000, random_state=seed)
            found.append(model.fit(X, y).predict(X_test))
    return {
        "predictions": np.array(found).reshape(len(epsilons), len(seeds), -1),
        "seconds": time.process_time() - start,
    }
