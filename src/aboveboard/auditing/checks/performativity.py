"""Do forecasts match what happens once they are published, and are they worth publishing?"""

from typing import Final

from aboveboard.auditing.subjects.forecasts import ForecastsSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_LIMITS: Final = ("gap", "drift", "reaction", "reaction_severe", "skill", "beaten")


def check(subject: ForecastsSubject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001
    """Hold published forecasts against their outcomes.

    Returns
    -------
    list of Finding
        ``performativity/level``, ``/forecast`` and ``/context/<column>``: calibration; ``/drift``: what a forecast
        means from version to version; ``/reaction``; ``/usefulness``.

    Notes
    -----
    All rows at every effort: O(rows x tests^2). Nothing is drawn.
    """
    from aboveboard.collective import performativity_audit

    limits = {name: subject.limits[f"performativity.{name}"] for name in _LIMITS}
    return performativity_audit(
        subject.forecast,
        subject.outcome,
        contexts=subject.contexts,
        arm=subject.arm,
        explored=subject.explored,
        version=subject.version,
        time=subject.time,
        **{name: limit.value for name, limit in limits.items()},
        limit_sources={name: limit.source for name, limit in limits.items()},
        min_people=subject.min_cell,
    )
