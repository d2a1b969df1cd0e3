"""Does "likely" come true as often as readers take it to, and what should be said instead?"""

from typing import Final

from aboveboard.auditing.subjects.phrases import PhrasesSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_REPLICATES: Final[dict[str, int]] = {"quick": 200, "standard": 1000, "full": 5000}
_HALVES: Final[dict[str, int]] = {"quick": 5, "standard": 20, "full": 100}


def check(subject: PhrasesSubject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Hold phrases of certainty against what came true.

    Returns
    -------
    list of Finding
        ``phrase_calibration/error``, ``phrase_calibration/phrases``, ``phrase_calibration/advice``, and
        ``phrase_calibration/by <column>`` for every column of groups.

    Notes
    -----
    O(items), then counts alone: a bootstrap, and advice tried on random halves.
    """
    from aboveboard.uncertainty import phrase_audit

    error, gap = subject.limits["phrase_calibration.error"], subject.limits["phrase_calibration.gap"]
    return phrase_audit(
        subject.phrases,
        subject.outcomes,
        subject.vocabulary,
        groups=subject.groups,
        error_limit=error.value,
        error_source=error.source,
        gap_limit=gap.value,
        gap_source=gap.source,
        min_items=subject.min_cell,
        n_boot=_REPLICATES[effort],
        n_splits=_HALVES[effort],
        random_state=random_state,
    )
