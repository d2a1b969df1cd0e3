"""What AIF360 does with the same arrays; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
import pandas as pd
from aif360.algorithms.postprocessing.eq_odds_postprocessing import EqOddsPostprocessing
from aif360.algorithms.postprocessing.reject_option_classification import RejectOptionClassification
from aif360.datasets import BinaryLabelDataset

GROUPS = ([{"group": 0}], [{"group": 1}])  # unprivileged, privileged


def eq_odds(score, y, group, new_score, new_group, *, seed):
    """Mix decisions at 1/2 with constants until both error rates are equal; a coin is flipped for whole groups."""
    model = EqOddsPostprocessing(*GROUPS, seed=seed)
    start = time.perf_counter()
    model.fit(_dataset(y, group), _dataset(score > 0.5, group))
    seconds = time.perf_counter() - start
    privileged, unprivileged = model.model_params.x[:2], model.model_params.x[2:]
    accept = np.empty(len(new_score))
    for code, (kept, raised) in enumerate((unprivileged, privileged)):
        accept[new_group == code] = np.where(new_score[new_group == code] > 0.5, kept, raised)
    return {"seconds": [seconds], "new_accept": accept}


def reject_option(score, y, group, new_score, new_group, *, metric, bound, thresholds, margins):
    """Search threshold and margin within which the unprivileged group is accepted and the other rejected."""
    model = RejectOptionClassification(
        *GROUPS,
        metric_name=metric,
        metric_lb=-bound,
        metric_ub=bound,
        num_class_thresh=thresholds,
        num_ROC_margin=margins,
    )
    start = time.perf_counter()
    model.fit(_dataset(y, group), _dataset(score > 0.5, group, score))
    seconds = time.perf_counter() - start
    decided = model.predict(_dataset(new_score > 0.5, new_group, new_score))
    return {"seconds": [seconds], "new_accept": decided.labels.ravel().astype(float)}


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
