"""Does a network divide its people further, keep them from hearing others, or let a few speak for all?"""

from typing import Final

from aboveboard.auditing.subjects.network import NetworkSubject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]

_ITERATIONS: Final[dict[Effort, int]] = {"quick": 10, "standard": 30, "full": 200}


def check(subject: NetworkSubject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001
    """Hold the network against the opinions of its accounts.

    Returns
    -------
    list of Finding
        ``opinions/amplification``, ``opinions/disagreement``, ``opinions/influence``, ``opinions/contrast`` and
        ``opinions/repair``; without opinions, those that need none.

    Notes
    -----
    Some hundred products with the network's matrix, and some hundred more for the repair; nothing is drawn at random
    but the start of an iteration, always the same.
    """
    from aboveboard.collective import opinion_audit

    limits = [subject.limits[f"opinions.{name}"] for name in ("amplification", "mixing", "voices")]
    amplification, mixing, voices = (limit.value for limit in limits)
    return opinion_audit(
        subject.weights,
        subject.opinion,
        labels=subject.accounts if subject.named else None,
        amplification=amplification,
        mixing=mixing,
        voices=voices,
        limit_sources=(limits[0].source, limits[1].source, limits[2].source),
        min_accounts=subject.min_cell,
        radius=subject.radius,
        max_iter=_ITERATIONS[effort],
        decision_maker=subject.decided_by,
    )
