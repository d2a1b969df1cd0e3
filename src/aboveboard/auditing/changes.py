"""How a change since older data is judged: by its effect, with its interval, against a limit and a severe one."""

from typing import TYPE_CHECKING, Any, Literal

from aboveboard.core.finding import Interval, Severity

if TYPE_CHECKING:
    from aboveboard.auditing.subject import Subject

__all__ = ["bounds", "judged", "listed", "side"]

_REASONS = {
    "within": "The whole interval lies within the limit.",
    "open": "The interval reaches across the limit: the rows are too few to tell.",
}


def side(interval: Interval, limit: float, *, above_only: bool = False) -> Literal["beyond", "within", "open"]:
    """Return on which side of a limit an interval lies; changes in either direction count unless `above_only`."""
    if interval.low > limit or (interval.high < -limit and not above_only):
        return "beyond"
    return "within" if interval.high <= limit and (above_only or interval.low >= -limit) else "open"


def judged(subject: "Subject", interval: Interval, name: str, *, above_only: bool = False) -> dict[str, Any]:
    """Return severity, status, reason, interval and limit of a change, for a `Finding`.

    Parameters
    ----------
    subject : Subject
    interval : Interval
    name : str
        Of the limit, ``"<check>.<what>"``; beyond ``"<check>.<what>_severe"`` it is a failure.
    above_only : bool
        A change below zero is no harm.
    """
    limit, severe = subject.limits[name], subject.limits[f"{name}_severe"]
    where = side(interval, limit.value, above_only=above_only)
    reason, severity = _REASONS.get(where, ""), "ok"
    if where == "beyond":
        failed = side(interval, severe.value, above_only=above_only) == "beyond"
        severity = "fail" if failed else "warn"
        reason = "The whole interval lies beyond the limit" + (" for a failure." if failed else ".")
        limit = severe if failed else limit
    graded: Severity = severity  # type: ignore[assignment]
    return {
        "severity": graded,
        "status": "inconclusive" if where == "open" else "ran",
        "reason": reason,
        "interval": interval,
        "limit": limit.value,
        "limit_source": limit.source,
    }


def bounds(interval: Interval, unit: str = " %") -> str:
    """Return an interval of fractions as ``"(95 % interval 1.0 to 2.0 %)"``; unit "" for points."""
    return f"(95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f}{unit})"


def listed(names: list[str] | tuple[str, ...], most: int = 5) -> str:
    """Return names in quotes, the first few of them."""
    return ", ".join(map(repr, names[:most])) + (f" and {len(names) - most:,} more" if len(names) > most else "")
