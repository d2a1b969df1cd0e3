"""Whether the true answers have changed since the reference: the base rate, the shares of classes, the values.

Where the truth has moved and the model was not refitted, its calibration is off, whatever its features say.
"""

from aboveboard.auditing.outcomes import Answers, findings
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one suite signature
    """Compare the target with that of the reference.

    Returns
    -------
    list of Finding
        ``label_drift/base_rate`` for binary tasks, ``label_drift/classes`` for several classes, ``label_drift/values``
        for numbers; and each by sensitive column.

    Notes
    -----
    O(n log n) time for each sensitive column.
    """
    reference = subject.reference
    assert reference is not None
    assert reference.y is not None
    if subject.task == "regression":
        answers = Answers(
            check="label_drift", key="values", limit="moved", what="the target", new=subject.y, old=reference.y
        )
    elif subject.task == "binary" and (reference.y >= 0).all():
        answers = Answers(
            check="label_drift", key="base_rate", limit="base_rate", what=f"the share of {subject.positive!r}",
            new=subject.y == 1, old=reference.y == 1,
        )  # fmt: skip
    else:
        answers = Answers.of_classes("label_drift", "the classes", subject, subject.y, reference.y)
    return findings(subject, answers)
