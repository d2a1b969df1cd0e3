"""What diffprivlib's private logistic regression makes of the same rows; run in its own environment."""

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
