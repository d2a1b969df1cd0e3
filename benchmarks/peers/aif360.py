"""What AIF360 does with the same arrays; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
import pandas as pd
from aif360.algorithms.postprocessing.eq_odds_postprocessing import EqOddsPostprocessing
from aif360.algorithms.postprocessing.reject_option_classification import RejectOptionClassification
from aif360.datasets import BinaryLabelDataset

GROUPS = ([{"group": 0}], [{"group": 1}])  # unprivileged, privileged


def post_process(*, methods, seed, **arrays):
    """Apply a post-processor to each task; return the probability of acceptance of its old and new rows.

    Arrays are called ``<task>.score`` and so on. ``seconds`` holds those of the fit, by task.
    """
    found = {"seconds": []}
    for task, method in enumerate(methods):
        score, y, group = (arrays[f"{task}.{part}"] for part in ("score", "y", "group"))
        rows = [(score, group), (arrays[f"{task}.new_score"], arrays[f"{task}.new_group"])]
        seconds, accept = {"eq_odds": _eq_odds, "reject_option": _reject_option}[method](score, y, group, rows, seed)
        found["seconds"].append([seconds])
        found[f"{task}.accept"], found[f"{task}.new_accept"] = accept
    return found


def _eq_odds(score, y, group, rows, seed):
    """Mix decisions at 1/2 with constants until both error rates are equal; a coin is flipped for whole groups."""
    model = EqOddsPostprocessing(*GROUPS, seed=seed)
    start = time.perf_counter()
    model.fit(_dataset(y, group), _dataset(score > 0.5, group))
    seconds = time.perf_counter() - start
    # probabilities of acceptance where the decision was yes, and where it was no
    kept, raised = model.model_params.x[[2, 0]], model.model_params.x[[3, 1]]
    return seconds, [np.where(s > 0.5, kept[g], raised[g]) for s, g in rows]


def _reject_option(score, y, group, rows, seed):  # noqa: ARG001
    """Search threshold and margin within which the unprivileged group is accepted and the other rejected."""
    model = RejectOptionClassification(
        *GROUPS,
        metric_name="Statistical parity difference",
        metric_lb=-0.01,
        metric_ub=0.01,
        num_class_thresh=25,
        num_ROC_margin=20,
    )
    start = time.perf_counter()
    model.fit(_dataset(y, group), _dataset(score > 0.5, group, score))
    seconds = time.perf_counter() - start
    return seconds, [model.predict(_dataset(s > 0.5, g, s)).labels.ravel().astype(float) for s, g in rows]


def _dataset(labels, group, score=None):
    frame = pd.DataFrame({"group": group.astype(float), "y": labels.astype(float)})
    dataset = BinaryLabelDataset(
        df=frame,
        label_names=["y"],
        protected_attribute_names=["group"],
        favorable_label=1.0,
        unfavorable_label=0.0,
    )
    if score is not None:
        dataset.scores = score.reshape(-1, 1)
    return dataset
