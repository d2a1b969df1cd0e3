"""Whether the model's answers have changed since the reference.

Answers can be watched long before anybody knows the truth. Where they move, either the people or what is recorded of
them has moved in a way that the model minds.
"""

import numpy as np

from aboveboard.auditing.outcomes import Answers, findings
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Compare the model's answers with those on the reference.

    Returns
    -------
    list of Finding
        ``score_drift/scores`` (numbers: ``score_drift/values``), ``score_drift/selection_rate`` for binary tasks or
        ``score_drift/classes`` for several classes, and each of them by sensitive column.

    Notes
    -----
    O(n log n) time for each sensitive column.
    """
    reference = subject.reference
    assert reference is not None
    assert reference.prediction is not None
    found: list[Finding] = []
    if subject.task == "regression":
        return findings(subject, _numbers("values", "the predictions", subject.prediction, reference.prediction))
    if subject.task == "binary":
        if subject.score is not None and reference.score is not None:
            found += findings(subject, _numbers("scores", "the scores", subject.score, reference.score))
        what = f"the share predicted {subject.positive!r}"
        new, old = subject.prediction == 1, reference.prediction == 1
        rate = Answers(check="score_drift", key="selection_rate", limit="selection_rate", what=what, new=new, old=old)
        return found + findings(subject, rate)
    answers = Answers.of_classes(
        "score_drift", "the predicted classes", subject, subject.prediction, reference.prediction
    )
    return findings(subject, answers)


def _numbers(key: str, what: str, new: np.ndarray, old: np.ndarray) -> Answers:
    return Answers(check="score_drift", key=key, limit="moved", what=what, new=new, old=old)
