"""What fairlearn does with the same arrays; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
from fairlearn.metrics import MetricFrame, false_positive_rate, selection_rate, true_positive_rate
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score, precision_score


class GivenScore(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose only feature is its score."""

    def fit(self, _, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def threshold_optimizer(*, constraints, repeats, **arrays):
    """Fit thresholds to the scores of each task; return the probability of acceptance of its old and new rows.

    Arrays are called ``<task>.score`` and so on. ``seconds`` holds those of every fit, by task.
    """
    found = {"seconds": []}
    for task, constraint in enumerate(constraints):
        score, new_score = (arrays[f"{task}.{part}"][:, None] for part in ("score", "new_score"))
        y, group, new_group = (arrays[f"{task}.{part}"] for part in ("y", "group", "new_group"))
        model = GivenScore().fit(score, y)
        seconds = []
        for _ in range(repeats):
            optimizer = ThresholdOptimizer(
                estimator=model, constraints=constraint, prefit=True, predict_method="predict_proba"
            )
            start = time.perf_counter()
            optimizer.fit(score, y, sensitive_features=group)
            seconds.append(time.perf_counter() - start)
        found["seconds"].append(seconds)
        found[f"{task}.accept"] = optimizer._pmf_predict(score, sensitive_features=group)[:, 1]
        found[f"{task}.new_accept"] = optimizer._pmf_predict(new_score, sensitive_features=new_group)[:, 1]
    return found


METRICS = {
    "selection_rate": selection_rate,
    "true_positive_rate": true_positive_rate,
    "false_positive_rate": false_positive_rate,
    "precision": precision_score,
    "accuracy": accuracy_score,
}


def metric_frame(group, y, prediction, *, n_boot):
    """Return group metrics, the ends of their bootstrap intervals, and the seconds that each replicate adds.

    Arrays have shape (metrics, groups + 1); everybody comes last.
    """

    def timed(**bootstrap):
        start = time.perf_counter()
        frame = MetricFrame(metrics=METRICS, y_true=y, y_pred=prediction, sensitive_features=group, **bootstrap)
        return frame, time.perf_counter() - start

    frame, without = timed()
    resampled, seconds = timed(n_boot=n_boot, ci_quantiles=[0.025, 0.975], random_state=0)
    low, high = (
        np.vstack([by_group[list(METRICS)].to_numpy(dtype=float), overall[list(METRICS)].to_numpy(dtype=float)]).T
        for by_group, overall in zip(resampled.by_group_ci, resampled.overall_ci, strict=True)
    )
    points = np.vstack([frame.by_group[list(METRICS)].to_numpy(dtype=float), frame.overall[list(METRICS)]]).T
    return {
        "points": points.astype(float),
        "low": low,
        "high": high,
        "seconds_per_replicate": (seconds - without) / n_boot,
    }
