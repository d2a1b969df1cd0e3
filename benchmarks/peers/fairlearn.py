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


def threshold_optimizer(score, y, group, new_score, new_group, *, constraint, repeats):
    """Fit thresholds to scores; return the probability of acceptance of old and new rows, and seconds of each fit."""
    model = GivenScore().fit(score[:, None], y)
    seconds = []
    for _ in range(repeats):
        optimizer = ThresholdOptimizer(
            estimator=model, constraints=constraint, prefit=True, predict_method="predict_proba"
        )
        start = time.perf_counter()
        optimizer.fit(score[:, None], y, sensitive_features=group)
        seconds.append(time.perf_counter() - start)
    accept = optimizer._pmf_predict(score[:, None], sensitive_features=group)[:, 1]
    new_accept = optimizer._pmf_predict(new_score[:, None], sensitive_features=new_group)[:, 1]
    return {"seconds": seconds, "accept": np.asarray(accept), "new_accept": np.asarray(new_accept)}


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
