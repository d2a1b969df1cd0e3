"""SHIFT: who suffers when a model decays, whether it is real, whether rows or outcomes changed, and what explains it.

For people whose classifier got worse at a new site or in a new period. How to use it::

    shift = SHIFT(tolerance=0.05, random_state=0)
    shift.fit(X_old, y_old, X_new, y_new, model=model, candidates={"labs": ["a", "b"], "age": ["age"]})
    shift.aggregate_["outcome"]      # TestResult: decay, interval, p_value, reject (same for "covariate")
    shift.detailed_                  # per candidate: is a change of these variables alone enough to explain it?
    group = shift.subgroup("outcome")   # rules, sizes, losses; group.predict(X) -> bool mask
    mended = shift.repair("outcome")    # a classifier; mended.trial_ holds its loss before and after, on held-out rows
    shift.findings(check=..., area=...)  # for a report

Without a model give its answers: ``fit(..., predictions=(scores_old, scores_new))``; then `Subgroup.predict` and the
repaired classifier's ``predict_proba`` want ``predictions=`` as well.

References
----------
H. Singh, F. Xia, A. Gossmann, A. Chuang, J. C. Hong, J. Feng: "Who experiences large model decay and why? A
Hierarchical Framework for Diagnosing Heterogeneous Performance Drift", ICML 2025, https://arxiv.org/abs/2506.00756.
"""

from aboveboard.drift.shift._repair import RepairedClassifier, Trial
from aboveboard.drift.shift._result import TestResult
from aboveboard.drift.shift._shift import SHIFT
from aboveboard.drift.shift._subgroup import Subgroup

__all__ = ["SHIFT", "RepairedClassifier", "Subgroup", "TestResult", "Trial"]
