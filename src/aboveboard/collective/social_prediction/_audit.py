"""A log of forecasts and outcomes, held against calibration after publication, reaction, and worth: findings."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.social_prediction._calibration import calibration
from aboveboard.collective.social_prediction._drift import drift as drift_finding
from aboveboard.collective.social_prediction._log import Log, read_log
from aboveboard.collective.social_prediction._reaction import reaction as reaction_finding
from aboveboard.collective.social_prediction._section import FEWEST, SECTION, inconclusive
from aboveboard.collective.social_prediction._usefulness import UsefulnessReport, usefulness
from aboveboard.core.finding import Cell, Column, Finding, Interval, Table

__all__ = ["performativity_audit"]

Floats = NDArray[np.float64]

_CALIBRATION: Final = ("level", "forecast")


def performativity_audit(
    p: ArrayLike,
    y: ArrayLike,
    *,
    contexts: Mapping[str, Any] | None = None,
    arm: Any = None,
    explored: Any = None,
    version: Any = None,
    time: Any = None,
    gap: float = 0.05,
    drift: float = 0.05,
    reaction: float = 0.1,
    reaction_severe: float = 1.0,
    skill: float = 0.02,
    beaten: float = 0.05,
    limit_sources: Mapping[str, str] | None = None,
    min_people: int = 10,
) -> list[Finding]:
    """Say whether published forecasts match what happened, whether people react, and what the forecasts are worth.

    Parameters
    ----------
    p, y : array-like of shape (n,), in [0, 1]
        Forecasts as they were published, and the outcomes after.
    contexts : mapping of name to labels, optional
        What is known of people; forecasts must match outcomes for each label.
    arm : array-like of labels, optional
        To which of several ways of forecasting each person was assigned at random.
    explored : label, optional
        The arm in which forecasts were drawn at random, whatever is known of the person.
    version : array-like of labels, optional
        Which model made the forecast.
    time : array-like of numbers or dates, optional
        When it was published. Without `version`, quarters of the log take its place.
    gap : float
        How far outcomes may lie from forecasts, among those whom a test looks at.
    drift : float
        How far the meaning of a forecast may move from one version to the next.
    reaction, reaction_severe : float
        Slope of outcome in forecast: below the first, people hardly react; from the second on, retraining does not
        settle.
    skill : float
        Share of a constant's Brier score that forecasts must save.
    beaten : float
        By how much the best single forecast per kind of people may beat the published ones.
    limit_sources : mapping of the names above to text, optional
    min_people : int
        No figure is given of fewer.

    Returns
    -------
    list of Finding
        ``performativity/level``, ``/forecast`` and ``/context/<name>``: calibration after publication;
        ``/drift``; ``/reaction``; ``/usefulness``.

    Raises
    ------
    aboveboard.core.InputError
        When forecasts or outcomes lie outside [0, 1], or entries do not line up.

    Notes
    -----
    Calibration: among those whom a test looks at, the mean of outcome less forecast, with intervals that hold for all
    tests at once. Drift: its change per fifth of the forecasts from version to version, after Bonferroni. Reaction: the
    slope of the outcome in the forecast that arms, or random forecasts, bring about within fifths of what contexts say,
    with the interval of Anderson and Rubin, which is honest where arms hardly differ. O(n tests^2) time.

    References
    ----------
    J. C. Perdomo, "Revisiting the Predictability of Performative, Social Events", ICML 2025. T. W. Anderson, H. Rubin,
    "Estimation of the parameters of a single equation", Annals of Mathematical Statistics 20, 1949.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import ResponseModel, performativity_audit
    >>> p = np.tile([0.2, 0.8], 1000)
    >>> y = ResponseModel("self_negating", 1.0, random_state=0)(np.zeros((2000, 0)), p)  # g(p) = 1 - p
    >>> [(finding.id, finding.severity) for finding in performativity_audit(p, y)][:2]
    [('performativity/level', 'ok'), ('performativity/forecast', 'fail')]
    """
    log = read_log(p, y, contexts, arm, explored, version, time)
    sources = dict(limit_sources or {})
    if (~log.explored).sum() < min_people:
        return [inconclusive("level", f"Only {int((~log.explored).sum()):,} published forecasts have an outcome.", 0)]
    findings = calibration(log, gap, sources.get("gap", ""), min_people)
    findings.append(drift_finding(log, drift, sources.get("drift", ""), min_people))
    findings.append(reaction_finding(log, (reaction, reaction_severe), sources, min_people))
    findings.append(_worth(log, findings, (skill, beaten), sources, min_people))
    return findings


# --- what are they worth? ---------------------------------------------------------------------------------------------


def _worth(
    log: Log, before: list[Finding], limits: tuple[float, float], sources: Mapping[str, str], min_people: int
) -> Finding:
    skill, beaten = limits
    n = int((~log.explored).sum())
    if n < max(min_people, FEWEST) or np.ptp(log.y[~log.explored]) == 0:
        return inconclusive("usefulness", "There are fewer than thirty outcomes, or all are the same.", n)
    explored = log.explored if log.explored.any() else None
    report = usefulness(log.p, log.y, explored=explored, cells=log.cells(), min_people=min_people)
    calibrated = all(finding.severity == "ok" for finding in before if finding.id.rpartition("/")[2] in _CALIBRATION)
    little = f"The forecasts are {'calibrated, and ' if calibrated else ''}of little use: "
    best, gap = report.policy, report.gap_interval
    if best is not None and report.gap is not None and gap is not None and gap[0] > beaten:
        return _valued(
            report,
            little + f"their Brier score is {report.brier:.3f}, where a single forecast per kind of people has "
            f"{best.brier:.3f}.",
            "warn",
            "People were easier to forecast under other forecasts, as random ones have shown.",
            (report.gap, gap),
            (beaten, sources.get("beaten", "")),
        )
    low, high = report.skill_interval
    saved = f"({report.brier:.3f} against {report.constant_brier:.3f})"
    if high < skill:
        said = little + f"they tell people apart no better than a constant {saved}."
        severity, reason = "warn", "The whole interval of the share that they save lies below the limit."
    else:
        said = f"The forecasts save {100 * report.skill:.1f} % of a constant's Brier score {saved}."
        severity = "ok" if low >= skill else "note"
        reason = "The whole interval lies above the limit." if low >= skill else "The interval holds the limit."
    return _valued(
        report, said, severity, reason, (report.skill, report.skill_interval), (skill, sources.get("skill", ""))
    )


def _valued(
    report: UsefulnessReport,
    statement: str,
    severity: Any,
    reason: str,
    value: tuple[float, tuple[float, float]],
    limit: tuple[float, str],
) -> Finding:
    rows: list[tuple[Cell, ...]] = [
        ("Brier score", report.brier),
        ("of a constant", report.constant_brier),
        ("what the forecasts tell apart (resolution)", report.resolution),
    ]
    if report.policy is not None:
        rows.append(("of the best single forecast per kind of people", report.policy.brier))
    return Finding(
        id="performativity/usefulness",
        statement=statement,
        severity=severity,
        status="inconclusive" if severity == "note" else "ran",
        reason=reason,
        value=value[0],
        interval=Interval(*value[1], method="normal"),
        limit=limit[0],
        limit_source=limit[1],
        n=report.n,
        evidence=(Table("What the forecasts are worth", (Column("Figure", "text"), Column("Value")), tuple(rows)),),
        **SECTION,
    )
