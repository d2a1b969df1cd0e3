"""What the test of one family found."""

from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from aboveboard.drift.shift._inference import Family

__all__ = ["TestResult"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TestResult:
    """The test of one family of changes.

    Attributes
    ----------
    kind : {"covariate", "outcome"}
    statistic : float
        Largest studentised decay beyond the tolerance, over the subgroups tested; -inf where there was none.
    decay : float
        Decay in the subgroup where that is reached; NaN where there was none.
    se : float
        Its standard error.
    interval : tuple of float
        Interval of `decay` that holds for all subgroups tested at once, at level 1 - alpha.
    p_value, critical_value : float
    reject : bool
        Whether some subgroup decayed by more than the tolerance.
    n_in_subgroup : int
        Test rows of the target in the subgroup.
    prevalence : float
        Their share.
    detectors : DataFrame
        Every subgroup tested: ``decay``, ``se``, ``n_source`` and ``n_target`` (test rows).
    n_source, n_target : int
        Test rows in all.
    resolution : float
        Decay beyond the tolerance that a subgroup of the smallest prevalence must have to be found four times in five.
    """

    __test__ = False  # this is no test of pytest's

    kind: Family
    statistic: float
    decay: float
    se: float
    interval: tuple[float, float]
    p_value: float
    critical_value: float
    reject: bool
    n_in_subgroup: int
    prevalence: float
    detectors: pd.DataFrame
    n_source: int
    n_target: int
    resolution: float

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"TestResult({self.kind}: decay {self.decay:.3f} [{low:.3f}, {high:.3f}] in {100 * self.prevalence:.1f} % "
            f"of the target, p {self.p_value:.2g}, {'rejected' if self.reject else 'not rejected'})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: numbers, text, lists."""
        data = asdict(self)
        return data | {"interval": list(self.interval), "detectors": self.detectors.to_dict("list")}
