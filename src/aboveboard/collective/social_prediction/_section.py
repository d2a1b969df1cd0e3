"""What all findings about forecasts share."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.finding import Finding

__all__ = ["FEWEST", "SECTION", "inconclusive", "unanswerable", "verdict"]

SECTION: Final[dict[str, Any]] = {"check": "performativity", "area": "forecasts"}
FEWEST: Final = 30
"""Below some thirty independent people the normal intervals are too rough to judge by."""


def verdict(
    value: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64], limit: float
) -> tuple[bool, bool, int]:
    """Return whether an interval lies beyond the limit on either side, whether all lie within, and the worst."""
    certain = np.maximum(low, -high)
    bad, fine = bool((certain > limit).any()), bool((np.maximum(-low, high) <= limit).all())
    return bad, fine, int(np.argmax(certain if bad else np.abs(value)))


def inconclusive(name: str, reason: str, n: int) -> Finding:
    return Finding(
        id=f"performativity/{name}",
        statement="There is too little to tell.",
        status="inconclusive",
        severity="note",
        reason=reason,
        n=n,
        **SECTION,
    )


def unanswerable(name: str, statement: str, reason: str) -> Finding:
    return Finding(id=f"performativity/{name}", statement=statement, status="not_applicable", reason=reason, **SECTION)
