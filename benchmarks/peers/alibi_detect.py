"""What Alibi Detect says of the same pairs of samples; run in its own environment by ``aboveboard reproduce``."""

import logging
import time

import numpy as np
from alibi_detect.cd import ClassifierDrift, KSDrift
from sklearn.ensemble import HistGradientBoostingClassifier

logging.getLogger("alibi_detect").setLevel(logging.ERROR)


def classifier_drift(*, seed, **pairs):
    """Test each pair by a classifier of sources: three quarters train, and the scores of the rest are compared."""

    def test(reference, current):
        model = HistGradientBoostingClassifier(max_leaf_nodes=15, early_stopping=False, random_state=seed)
        detector = ClassifierDrift(reference, model, backend="sklearn", preds_type="probs", seed=seed)
        return detector.predict(current)["data"]["p_val"]

    return _each(pairs, test)


def ks_drift(*, seed, **pairs):  # noqa: ARG001
    """Test each pair column by column (Kolmogorov-Smirnov), corrected by Bonferroni."""

    def test(reference, current):
        found = KSDrift(reference, correction="bonferroni").predict(current)["data"]["p_val"]
        return min(1.0, float(np.min(found)) * len(found))

    return _each(pairs, test)


def _each(pairs, test):
    """Arrays are called ``<pair>.reference`` and ``<pair>.current``."""
    names = [name.removesuffix(".reference") for name in pairs if name.endswith(".reference")]
    p_values, seconds = [], []
    for name in names:
        start = time.perf_counter()
        p_values.append(float(test(pairs[f"{name}.reference"], pairs[f"{name}.current"])))
        seconds.append(time.perf_counter() - start)
    return {"names": names, "p_values": p_values, "seconds": seconds}
