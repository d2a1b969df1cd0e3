"""A log of forecasts and outcomes, held against calibration after publication, reaction, and worth: findings."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import critical_z
from aboveboard.collective.social_prediction._families import (
    BumpTests,
    Family,
    GroupTests,
    PolynomialTests,
    ProductTests,
    bind_tests,
    columns_of,
    names_of,
    values_of,
)
from aboveboard.collective.social_prediction._log import Log, read_log
from aboveboard.collective.social_prediction._people import Columns
from aboveboard.collective.social_prediction._usefulness import UsefulnessReport, usefulness
from aboveboard.collective.social_prediction._violations import Residuals, residuals_on
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["performativity_audit"]

Floats = NDArray[np.float64]

_SECTION: Final[dict[str, Any]] = {"check": "performativity", "area": "forecasts"}
_FEWEST: Final = 30
_BINS: Final = 5
_SHOWN: Final = 20
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
        return [_inconclusive("level", f"Only {int((~log.explored).sum()):,} published forecasts have an outcome.", 0)]
    findings = _calibration(log, gap, sources.get("gap", ""), min_people)
    findings.append(_drift(log, drift, sources.get("drift", ""), min_people))
    limits = (reaction, reaction_severe)
    findings.append(_reaction(log, limits, sources, min_people))
    findings.append(_worth(log, findings, (skill, beaten), sources, min_people))
    return findings


# --- calibration ------------------------------------------------------------------------------------------------------


def _calibration(log: Log, limit: float, source: str, min_people: int) -> list[Finding]:
    own = ~log.explored
    table = log.contexts[own]
    names = list(table.columns)
    columns = Columns.learn(table, range(len(names)))
    Z = columns.encode(table)
    families: list[Family] = [PolynomialTests(0), BumpTests()]
    families += [ProductTests(GroupTests([at]), PolynomialTests(1)) for at in range(len(names))]
    bound = bind_tests(families, columns, Z)
    p, y = log.p[own], log.y[own]
    values = values_of(bound, Z, p)
    looked_at = values.sum(axis=0) ** 2 / np.maximum((values**2).sum(axis=0), 1e-300)
    judged = looked_at >= max(min_people, _FEWEST)
    found = residuals_on(values, p, y, judged=judged)
    means = [values.T @ each / np.maximum(values.sum(axis=0), 1e-300) for each in (p, y)]
    ids = ["level", "forecast", *(f"context/{name}" for name in names)]
    return [
        _calibrated(
            log, name, found, means, judged, names_of(bound), part, limit, source, min_people
        )
        for name, part in zip(ids, columns_of(bound), strict=True)
    ]  # fmt: skip


def _calibrated(
    log: Log,
    name: str,
    found: Residuals,
    means: list[Floats],
    judged: NDArray[np.bool_],
    tests: list[str],
    part: slice,
    limit: float,
    source: str,
    min_people: int,
) -> Finding:
    """Return the verdict on one family of tests."""
    weight = np.maximum(found.weight, 1e-300)
    gap, half = found.mean / weight, found.critical * found.error / weight
    low, high = np.maximum(gap - half, -1.0), np.minimum(gap + half, 1.0)
    own = [i for i in range(part.start, part.stop) if judged[i]]
    n = int((~log.explored).sum())
    if not own:
        return _inconclusive(name, f"Fewer than {max(min_people, _FEWEST)} people stand behind each figure.", n)
    certain = [max(low[i], -high[i], 0.0) for i in own]
    possible = [max(abs(low[i]), abs(high[i])) for i in own]
    bad, fine = max(certain) > limit, max(possible) <= limit
    worst = own[int(np.argmax(certain))] if bad else max(own, key=lambda i: abs(gap[i]))
    where = {"level": "overall", "forecast": f"where the forecast is {tests[worst].removeprefix('p ')}"}.get(
        name, f"for {tests[worst].replace(' x p', ' (more so at high forecasts)')}"
    )
    side = "above" if gap[worst] > 0 else "below"
    points = f"{100 * abs(gap[worst]):.1f} points {side} the forecasts {where}"
    if bad:
        statement = f"After publication, outcomes lie {points}."
    elif fine:
        statement = f"After publication, outcomes match the forecasts to within {100 * limit:g} points" + (
            f"; at most they lie {points}." if len(own) > 1 else f": they lie {points}."
        )
    else:
        statement = f"It is not certain that outcomes match the forecasts: they lie {points}, give or take chance."
    rows: list[tuple[Cell, ...]] = []
    for i in range(part.start, part.stop):
        people = round(found.people[i])
        if people < min_people:
            rows.append((tests[i], SUPPRESSED, SUPPRESSED, SUPPRESSED, SUPPRESSED, SUPPRESSED))
        else:
            interval = (float(low[i]), float(high[i])) if judged[i] else None
            rows.append((tests[i], people, float(means[0][i]), float(means[1][i]), float(gap[i]), interval))
    table = Table(
        "Outcomes after publication, and the forecasts",
        (
            Column("Test", "text"),
            Column("People", "count", "How many the test looks at: bumps weigh people by how near their forecast is"),
            Column("Forecast", "percent", "Mean"),
            Column("Outcome", "percent", "Mean"),
            Column("Difference", "number", "Outcome less forecast"),
            Column("95 % interval", "interval", "Of the difference, for all tests of the audit at once"),
        ),
        tuple(rows),
    )
    shown = [i for i in own if found.people[i] >= min_people][:_SHOWN]
    figure = Figure(
        "intervals",
        "Outcome less forecast, after publication",
        "Test",
        "Difference",
        (
            Series(
                "difference",
                tuple(tests[i] for i in shown),
                tuple(float(gap[i]) for i in shown),
                tuple(float(low[i]) for i in shown),
                tuple(float(high[i]) for i in shown),
            ),
        ),
        (Line("limit above", limit), Line("limit below", -limit)),
        alt=f"The difference is largest {where}: {100 * gap[worst]:+.1f} points.",
    )
    return Finding(
        id=f"performativity/{name}",
        statement=statement,
        severity="fail" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "Even at the near end of its interval, the difference exceeds the limit."
            if bad
            else "The whole interval of every test lies within the limit."
            if fine
            else "The intervals reach beyond the limit: more outcomes are needed."
        ),
        value=float(gap[worst]),
        interval=Interval(float(low[worst]), float(high[worst]), method="max-|t|", simultaneous=True),
        limit=limit,
        limit_source=source,
        n=n,
        evidence=(table, figure) if len(shown) > 1 else (table,),
        remedies=() if fine else ("PerformativeCalibrator",),
        **_SECTION,
    )


# --- what a forecast means, from version to version -------------------------------------------------------------------


def _drift(log: Log, limit: float, source: str, min_people: int) -> Finding:
    if len(log.versions) < 2:
        return Finding(
            id="performativity/drift",
            statement="Whether the meaning of a forecast has moved is not known.",
            status="not_applicable",
            reason="The log names no versions of the model and no times, or only one.",
            **_SECTION,
        )
    own = ~log.explored
    p, residual = log.p[own], (log.y - log.p)[own]
    code = np.array([log.versions.index(v) for v in log.version[own]])  # type: ignore[index]
    edges = np.unique(np.quantile(p, np.linspace(0.0, 1.0, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, p, side="right")
    cell = code * (len(edges) + 1) + bins
    size = len(log.versions) * (len(edges) + 1)
    n = np.bincount(cell, minlength=size).astype(np.float64)
    many = np.maximum(n, 1.0)
    mean, forecast = np.bincount(cell, residual, size) / many, np.bincount(cell, p, size) / many
    spread = np.bincount(cell, residual**2, size) / many - mean**2
    if np.isin(log.y, (0.0, 1.0)).all():
        spread = np.maximum(spread, np.bincount(cell, p * (1.0 - p), size) / many)
    shape = (len(log.versions), len(edges) + 1)
    n, mean, forecast, error = (a.reshape(shape) for a in (n, mean, forecast, np.sqrt(spread / many)))
    known = (n[1:] >= max(min_people, _FEWEST)) & (n[:-1] >= max(min_people, _FEWEST))
    total = int(own.sum())
    if not known.any():
        return _inconclusive("drift", "No fifth of the forecasts has thirty people in two versions in a row.", total)
    z = critical_z(1.0 - 0.05 / int(known.sum()))
    change, half = np.diff(mean, axis=0)[known], z * np.hypot(error[1:], error[:-1])[known]
    low, high = change - half, change + half
    bad, fine = bool((np.maximum(low, -high) > limit).any()), bool((np.maximum(-low, high) <= limit).all())
    worst = int(np.argmax(np.maximum(low, -high))) if bad else int(np.argmax(np.abs(change)))
    to, at = (int(axis[worst]) for axis in np.nonzero(known))
    before, after = log.versions[to], log.versions[to + 1]
    what = f"a forecast of {forecast[to : to + 2, at].mean():.2f} from {before} to {after}"
    moved = f"{100 * abs(change[worst]):.1f} points {'up' if change[worst] > 0 else 'down'}"
    rows: list[tuple[Cell, ...]] = []
    for v, name in enumerate(log.versions):
        for b in range(shape[1]):
            few = n[v, b] < min_people
            rest = (
                (SUPPRESSED,) * 3 if few else (int(n[v, b]), float(forecast[v, b]), float(forecast[v, b] + mean[v, b]))
            )
            rows.append((name, b + 1, *rest))
    return Finding(
        id="performativity/drift",
        statement=(
            f"What a forecast means has moved: outcomes of {what} went {moved}, beyond the forecast's own change."
            if bad
            else f"A forecast means the same in all {len(log.versions)} {'periods' if log.periods else 'versions'}, to "
            f"within {100 * limit:g} points."
            if fine
            else f"It is not certain that a forecast means the same in all {'periods' if log.periods else 'versions'}: "
            f"outcomes of {what} went {moved}, give or take chance."
        ),
        severity="warn" if bad else "ok" if fine else "note",
        status="ran" if bad or fine else "inconclusive",
        reason=(
            "Either the world has changed, or people react to the new forecasts; arms assigned at random tell which."
            if bad
            else "The whole interval of every fifth of the forecasts lies within the limit."
            if fine
            else "The intervals reach beyond the limit: more outcomes are needed."
        ),
        value=float(change[worst]),
        interval=Interval(float(low[worst]), float(high[worst]), method="normal, Bonferroni", simultaneous=True),
        limit=limit,
        limit_source=source,
        n=total,
        evidence=(
            Table(
                "Outcomes by fifth of the forecasts",
                (
                    Column("Period" if log.periods else "Version", "text"),
                    Column("Fifth"),
                    Column("n", "count"),
                    Column("Forecast", "percent"),
                    Column("Outcome", "percent"),
                ),
                tuple(rows),
            ),
        ),
        remedies=("PerformativeCalibrator",) if bad else (),
        **_SECTION,
    )


# --- do people react? -------------------------------------------------------------------------------------------------


def _reaction(log: Log, limits: tuple[float, float], sources: Mapping[str, str], min_people: int) -> Finding:
    assigned = log.arm if log.arm is not None else log.version
    if assigned is None or len(set(assigned.tolist())) < 2:
        return Finding(
            id="performativity/reaction",
            statement="Whether outcomes react to the forecasts is not known.",
            status="not_applicable",
            reason="Neither arms nor versions of the model are in the log: everybody of one kind got one forecast.",
            **_SECTION,
        )
    cells = log.cells()
    rows = log.explored if log.explored.any() else np.ones(len(log.p), dtype=bool)
    if log.explored.any():
        how, push = "forecasts drawn at random", _within(log.p[rows], cells[rows])
    else:
        how = "arms assigned at random" if log.arm is not None else "the change from version to version"
        push = _moved_by(assigned, log.p, cells)
    n = int(rows.sum())
    if n < max(min_people, _FEWEST):
        return _inconclusive("reaction", f"Only {n} people got a forecast by chance.", n)
    slope, interval = _slope(push, _within(log.p[rows], cells[rows]), _within(log.y[rows], cells[rows]))
    if interval is None:
        return _inconclusive("reaction", f"By {how}, people of one kind got nearly the same forecasts.", n)
    low, high = interval.low, interval.high
    hardly, severe = limits
    reacts, inside = low > 0 or high < 0, max(-low, high) <= hardly
    causal = log.arm is not None
    unsettled = causal and (low > severe or high < -severe)
    return Finding(
        id="performativity/reaction",
        statement=_reacted(slope, reacts, inside),
        severity="ok" if inside else "warn" if unsettled else "note",
        status="ran" if inside or reacts else "inconclusive",
        reason=(
            f"Going by {how}{'' if causal else ', where nothing else changed with them'}. "
            + (
                "From a slope of 1 on, retraining on the outcomes does not settle."
                if unsettled
                else "The whole interval of the slope is small."
                if inside
                else "Training on these outcomes learns what people do who were forecast, not what they would do."
                if reacts
                else "The interval of the slope holds 0."
            )
        ),
        value=slope,
        interval=interval,
        limit=severe if reacts and not inside else hardly,
        limit_source=sources.get("reaction_severe" if reacts and not inside else "reaction", ""),
        n=n,
        evidence=(_arms(log, assigned, min_people),),
        remedies=("PerformativeCalibrator",) if reacts and not inside else (),
        **_SECTION,
    )


def _reacted(slope: float, reacts: bool, inside: bool) -> str:
    moved = f"{10.0 * abs(slope):.1f} points"
    if inside:
        return f"Outcomes hardly react to forecasts: where the forecast is 10 points higher, they move {moved}."
    if not reacts:
        return "It is not certain whether outcomes react to forecasts."
    kind, side = ("self-fulfilling", "higher") if slope > 0 else ("self-negating", "lower")
    return f"The forecasts are {kind}: where the forecast is 10 points higher, outcomes are {moved} {side}."


def _within(values: Floats, cells: NDArray[np.intp]) -> Floats:
    """Return values less the mean of their cell."""
    n = np.maximum(np.bincount(cells), 1)
    return values - (np.bincount(cells, values) / n)[cells]


def _moved_by(assigned: NDArray[Any], p: Floats, cells: NDArray[np.intp]) -> Floats:
    """Return how far assignment moves the forecast of each person from that of its kind, learned on other people."""
    arms, code = np.unique(assigned.astype(str), return_inverse=True)
    both = cells * len(arms) + code
    half = np.arange(len(p)) % 2
    push = np.empty(len(p))
    for own in (0, 1):
        other = half != own
        n = np.bincount(both[other], minlength=both.max() + 1)
        mean = np.bincount(both[other], _within(p, cells)[other], both.max() + 1) / np.maximum(n, 1)
        push[~other] = mean[both[~other]]
    return _within(push, cells)


def _slope(push: Floats, p: Floats, y: Floats) -> tuple[float, Interval | None]:
    """Return the slope of y in p that `push` brings about, with Anderson and Rubin's interval; None: it has no end.

    A slope b is in the interval where the mean of push (y - b p) is within 1.96 standard errors of zero.
    """
    on_y, on_p = float(push @ y), float(push @ p)
    square = critical_z() ** 2
    yy, yp, pp = (float((push**2) @ (a * b)) for a, b in ((y, y), (y, p), (p, p)))
    curve, middle, end = on_p**2 - square * pp, on_y * on_p - square * yp, on_y**2 - square * yy
    if curve <= 0:
        return 0.0, None
    root = np.sqrt(max(middle**2 - curve * end, 0.0))
    low, high = float((middle - root) / curve), float((middle + root) / curve)
    return on_y / on_p, Interval(low, high, method="Anderson-Rubin")


def _arms(log: Log, assigned: NDArray[Any], min_people: int) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in dict.fromkeys(assigned.tolist()):
        own = assigned == name
        few = own.sum() < min_people
        p, y = log.p[own], log.y[own]
        rest = (int(own.sum()), float(p.mean()), float(y.mean()), float(((y - p) ** 2).mean()))
        rows.append((name, *((SUPPRESSED,) * 4 if few else rest)))
    return Table(
        "Forecasts and outcomes by assignment",
        (
            Column("Arm" if log.arm is not None else "Version", "text"),
            Column("n", "count"),
            Column("Forecast", "percent", "Mean"),
            Column("Outcome", "percent", "Mean"),
            Column("Brier score"),
        ),
        tuple(rows),
    )


# --- what are they worth? ---------------------------------------------------------------------------------------------


def _worth(
    log: Log, before: list[Finding], limits: tuple[float, float], sources: Mapping[str, str], min_people: int
) -> Finding:
    skill, beaten = limits
    n = int((~log.explored).sum())
    if n < max(min_people, _FEWEST) or np.ptp(log.y[~log.explored]) == 0:
        return _inconclusive("usefulness", "There are fewer than thirty outcomes, or all are the same.", n)
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
        **_SECTION,
    )


def _inconclusive(name: str, reason: str, n: int) -> Finding:
    return Finding(
        id=f"performativity/{name}",
        statement="There is too little to tell.",
        status="inconclusive",
        severity="note",
        reason=reason,
        n=n,
        **_SECTION,
    )
