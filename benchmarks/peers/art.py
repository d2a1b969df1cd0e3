"""ART's black-box attack on membership, on the same answers; run in an environment of its own."""

import time

import numpy as np
from art.attacks.inference.membership_inference import MembershipInferenceBlackBox
from art.estimators.classification import SklearnClassifier
from sklearn.linear_model import LogisticRegression


def black_box(probabilities, y, member, fit):
    """Train its attack (a random forest on probabilities and class) on the rows of `fit`; score the others."""
    # it wants a classifier, and does not ask it where the answers are given
    stand_in = SklearnClassifier(LogisticRegression().fit([[0.0], [1.0]], [0, 1]))
    attack = MembershipInferenceBlackBox(stand_in, attack_model_type="rf")
    truth = np.eye(probabilities.shape[1])[y]
    start = time.process_time()
    inside, outside = fit & member, fit & ~member
    attack.fit(y=truth[inside], pred=probabilities[inside], test_y=truth[outside], test_pred=probabilities[outside])
    scores = attack.infer(np.zeros((int((~fit).sum()), 1)), truth[~fit], pred=probabilities[~fit], probabilities=True)
    return {
        "scores": np.asarray(scores, dtype=np.float64).reshape(len(truth[~fit]), -1)[:, -1],
        "seconds": time.process_time() - start,
    }
