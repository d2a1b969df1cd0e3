"""What the numbers mean, in sentences, tables and figures."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.bootstrap import basic_interval, percentile_interval
from aboveboard.auditing.checks.calibration.slope import OddsCells, recalibration
from aboveboard.auditing.checks.calibration.sums import BINS, CURVE_BINS, Scored
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import cell_rate
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["classwise_finding", "ece_finding", "gap_finding", "slope_finding", "too_few"]

_COMMON: Final[dict[str, Any]] = {"check": "calibration", "area": "performance"}
_POSITIVE: Final = np.array([False, True])[:, None]  # outcome, beside the one "prediction" that there is


def too_few(subject: Subject) -> Finding:
    what = "One class has" if subject.task == "binary" else "There are"
    return Finding(
        id="calibration/ece" if subject.task == "binary" else "calibration/top_label",
        statement=f"{what} fewer than {subject.min_cell:,} rows, so calibration cannot be told.",
        status="inconclusive",
        reason="No figure may describe so few people.",
        **_COMMON,
    )


# --- expected calibration error --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ece:
    """The ECE, its interval, and what a calibrated model would show: mean and upper `level` quantile."""

    value: float
    interval: Interval
    usual: float
    most: float

    def verdict(self, limit: float) -> Literal["ok", "beyond", "inconclusive"]:
        if self.value <= self.most:  # no sign of miscalibration; enough rows to rule it out?
            return "ok" if self.interval.high <= limit else "inconclusive"
        if self.interval.low > limit:
            return "beyond"
        return "ok" if self.interval.high <= limit else "inconclusive"


def _ece(scored: Scored, replicates: int, rng: np.random.Generator, level: float = 0.95) -> _Ece:
    histogram = scored.histogram
    value = float(histogram.ece(BINS))
    draws = histogram.bootstrap(["ece"], replicates, rng, n_bins=BINS)[:, 0]
    if scored.company is None:
        null = histogram.ece_if_calibrated(replicates, rng, n_bins=BINS)
    else:
        null = _clustered_null(scored, replicates, rng)
    ends = basic_interval(value, draws)
    low, high = max(float(ends[0]), 0.0), max(float(ends[1]), 0.0)
    interval = Interval(min(low, value), max(high, value), method="basic bootstrap")
    return _Ece(value, interval, float(null.mean()), float(np.quantile(null, level)))


def _clustered_null(scored: Scored, replicates: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw the ECE of a calibrated model whose rows depend on each other within clusters.

    Rows of a cluster that fall in one bin count for as many as Kish's design effect leaves of them, at the correlation
    that residuals have within clusters.
    """
    assert scored.company is not None
    coarse = scored.coarser(BINS)
    total, square = coarse.bins.weight.sum(axis=(1, 2)), coarse.bins.square.sum(axis=(1, 2))
    mean = coarse.score / np.maximum(total, np.finfo(float).tiny)
    together = scored.company.bins.matrix
    count = np.asarray(together.sum(axis=0)).ravel()
    company = np.asarray(together.power(2).sum(axis=0)).ravel() / np.maximum(count, 1)
    effect = 1 + np.maximum(company - 1, 0.0) * scored.company.correlation
    effective = total**2 / np.maximum(square, np.finfo(float).tiny) / effect
    trials = np.maximum(np.rint(effective), 1).astype(np.int64)
    rate = rng.binomial(trials, np.clip(mean, 0.0, 1.0), size=(replicates, BINS)) / trials
    return np.asarray((np.abs(rate - mean) * total).sum(axis=1) / total.sum())


def ece_finding(
    subject: Subject,
    name: str,
    scored: Scored,
    event: str,
    replicates: int,
    rng: np.random.Generator,
) -> Finding:
    """Judge the calibration error, with the reliability curve; `event` is what the scores are the chance of."""
    ece = _ece(scored, replicates, rng)
    limit, severe = subject.limits["calibration.ece"], subject.limits["calibration.ece_severe"]
    verdict = ece.verdict(limit.value)
    severity: Severity = "ok"
    if verdict == "beyond":
        severity = "fail" if ece.interval.low > severe.value else "warn"
    judged = severe if severity == "fail" else limit
    found = ece.value > ece.most
    if verdict == "beyond":
        reason = "The whole interval lies beyond the limit."
    elif verdict == "inconclusive":
        reason = "The rows are too few to tell whether the error is within the limit."
    elif found:
        reason = "More than chance would show, and within the limit."
    else:
        reason = "No more than a perfectly calibrated model would show on as many rows."
    curve, table = _reliability(subject, scored, event)
    which = "Scores" if name == "ece" else "The highest scores"
    return Finding(
        id=f"calibration/{name}",
        statement=f"{which} are off by {100 * ece.value:.1f} points on average{_points(ece.interval)}; a perfectly "
        f"calibrated model would show {100 * ece.usual:.1f} on as many rows, seldom more than {100 * ece.most:.1f}.",
        severity=severity,
        status="inconclusive" if verdict == "inconclusive" else "ran",
        reason=reason,
        value=ece.value,
        interval=ece.interval,
        limit=judged.value,
        limit_source=judged.source,
        n=len(subject),
        evidence=(curve, table, _decomposition(scored)),
        **_COMMON,
    )


def _reliability(subject: Subject, scored: Scored, event: str) -> tuple[Figure, Table]:
    """Return the reliability curve in ten bins, as figure and table; bins with few rows stay out of the figure."""
    curve = scored.coarser(CURVE_BINS)
    inside = np.eye(CURVE_BINS, dtype=bool)[:, :, None, None]
    entries: list[tuple[Cell, ...]] = []
    x, observed, low, high = [], [], [], []
    withheld = withhold_parts(curve.bins.count.sum(axis=(1, 2)), subject.min_cell).all
    for b in range(CURVE_BINS):
        rate = cell_rate(curve.bins, _POSITIVE, inside[b])
        if not rate.n or not np.isfinite(rate.value):
            continue
        mean = float(curve.score[b] / curve.bins.weight[b].sum())
        bounds = f"{b / CURVE_BINS:.1f} to {(b + 1) / CURVE_BINS:.1f}"
        if withheld[b]:
            entries.append((bounds, *([SUPPRESSED] * 4)))
        else:
            entries.append((bounds, rate.n, mean, rate.value, (rate.interval.low, rate.interval.high)))
            x.append(mean)
            observed.append(rate.value)
            low.append(rate.interval.low)
            high.append(rate.interval.high)
    table = Table(
        "Scores and outcomes",
        (
            Column("score", "text"),
            Column("n", "count"),
            Column("mean score", "percent"),
            Column("observed", "percent", f"share of rows that are {event}"),
            Column("95 % interval", "interval"),
        ),
        tuple(entries),
    )
    gaps = [abs(a - b) for a, b in zip(x, observed, strict=True)]
    alt = "No bin has enough rows to be drawn."
    if gaps:
        at = int(np.argmax(gaps))
        alt = f"Where the mean score is {percent(x[at], 0)}, {percent(observed[at], 0)} are {event}: the widest gap."
    figure = Figure(
        "lines",
        "Reliability curve",
        "mean score",
        f"share that is {event}",
        (Series("model", tuple(x), tuple(observed), tuple(low), tuple(high)),),
        (Line("perfect calibration", diagonal=True),),
        alt=alt,
        percent=True,
    )
    return figure, table


def _decomposition(scored: Scored) -> Table:
    """Split the Brier score into miscalibration, resolution, uncertainty and the rest within bins; the sum is exact."""
    coarse = scored.coarser(BINS)
    total = coarse.bins.weight.sum(axis=(1, 2))
    safe = np.maximum(total, np.finfo(float).tiny)
    mean = coarse.score / safe
    rate = coarse.bins.weight[:, 1, 0] / safe
    share = total / total.sum()
    base = float((share * rate).sum())
    brier = float(scored.histogram.brier())
    parts = {
        "miscalibration": (float((share * (mean - rate) ** 2).sum()), "what calibration could take away"),
        "resolution": (float((share * (rate - base) ** 2).sum()), "what telling rows apart has gained"),
        "uncertainty": (base * (1 - base), "the score of always giving the base rate"),
    }
    within = brier - (parts["miscalibration"][0] - parts["resolution"][0] + parts["uncertainty"][0])
    rows: tuple[tuple[Cell, ...], ...] = (
        *((name, value, text) for name, (value, text) in parts.items()),
        ("within bins", within, "differences between scores of one bin"),
        ("Brier score", brier, "miscalibration - resolution + uncertainty + within bins"),
    )
    columns = (Column("part", "text"), Column("value"), Column("meaning", "text"))
    return Table("What the Brier score is made of", columns, rows)


# --- mean, slope and intercept ---------------------------------------------------------------------------------------


def gap_finding(subject: Subject, scored: Scored, replicates: int, rng: np.random.Generator) -> Finding:
    """Compare the mean score with the share of positive rows."""
    means = [float(scored.histogram.statistic(name)) for name in ("mean_score", "base_rate")]
    draws = scored.histogram.bootstrap(["calibration_gap"], replicates, rng)[:, 0]
    value = means[0] - means[1]
    low, high = (float(end) for end in percentile_interval(draws))
    observed = cell_rate(scored.bins, _POSITIVE)
    if high - low <= 1e-12:  # no row differs from another: at least the rate is not known better than this
        low, high = means[0] - observed.interval.high, means[0] - observed.interval.low
    interval = Interval(min(low, value), max(high, value), method="percentile bootstrap")
    limit = subject.limits["calibration.gap"]
    severity: Severity = "ok"
    inconclusive = False
    if interval.low > limit.value or interval.high < -limit.value:
        severity = "warn"
    else:
        inconclusive = interval.high > limit.value or interval.low < -limit.value
    side = "more" if value >= 0 else "fewer"
    return Finding(
        id="calibration/gap",
        statement=f"The mean score is {percent(means[0])}, and {percent(means[1])} of rows are positive: "
        f"scores promise {100 * abs(value):.1f} points {side} positives than there are{_points(interval)}.",
        severity=severity,
        status="inconclusive" if inconclusive else "ran",
        reason="The interval includes the limit."
        if inconclusive
        else "The whole interval lies beyond the limit."
        if severity == "warn"
        else "The whole interval lies within the limit.",
        value=value,
        interval=interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        **_COMMON,
    )


def slope_finding(subject: Subject, odds: OddsCells) -> Finding:
    """Judge the slope of the log odds of the truth in those of the scores."""
    fit = recalibration(odds)
    if fit is None:
        return Finding(
            id="calibration/slope",
            statement="The calibration slope does not exist: scores are all alike, or they separate the classes.",
            status="inconclusive",
            n=len(subject),
            **_COMMON,
        )
    (intercept, slope), (intercept_error, error) = fit
    z = odds.critical
    interval = Interval(slope - z * error, slope + z * error, method="sandwich, normal")
    side = Interval(intercept - z * intercept_error, intercept + z * intercept_error, method="sandwich, normal")
    limit = subject.limits["calibration.slope"]
    lowest, highest = 1 - limit.value, 1 / (1 - limit.value) if limit.value < 1 else float("inf")
    severity: Severity = "ok"
    inconclusive = False
    if interval.high < lowest or interval.low > highest:
        severity = "note"
    else:
        inconclusive = interval.low < lowest or interval.high > highest
    meaning = "too extreme" if slope < 1 else "too timid"
    sure = interval.low > 1 or interval.high < 1
    return Finding(
        id="calibration/slope",
        statement=f"The calibration slope is {slope:.2f}{interval_text(interval, digits=2)}"
        + (f": scores are {meaning}" if sure else ": no sign that scores are too extreme or too timid")
        + f". The intercept is {intercept:.2f}{interval_text(side, digits=2)}.",
        severity=severity,
        status="inconclusive" if inconclusive else "ran",
        reason=f"1 is perfect; the limits are {lowest:.2f} and {highest:.2f}."
        + (" The interval includes one of them." if inconclusive else ""),
        value=slope - 1,
        interval=Interval(interval.low - 1, interval.high - 1, method=interval.method),
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        **_COMMON,
    )


# --- several classes -------------------------------------------------------------------------------------------------


def classwise_finding(
    subject: Subject, classes: tuple[Scored, ...], replicates: int, rng: np.random.Generator
) -> Finding:
    """The ECE of each class against the rest; a verdict on the worst allows for the number of classes."""
    k = len(classes)
    limit = subject.limits["calibration.ece"]
    entries: list[tuple[Cell, ...]] = []
    verdicts: list[tuple[float, str, _Ece, str]] = []
    withheld = withhold_parts([int(scored.bins.count[:, 1].sum()) for scored in classes], subject.min_cell).all
    for code, (name, scored) in enumerate(zip(subject.class_names, classes, strict=True)):
        count = int(scored.bins.count[:, 1].sum())
        ece = _ece(scored, replicates, rng, level=1 - 0.05 / k)
        gap = float(scored.histogram.calibration_gap())
        if withheld[code]:
            entries.append((name, *([SUPPRESSED] * 5)))
            continue
        entries.append((name, count, ece.value, (ece.interval.low, ece.interval.high), ece.most, gap))
        verdicts.append((ece.value, name, ece, ece.verdict(limit.value)))
    order = {"ok": 0, "inconclusive": 1, "beyond": 2}
    if not verdicts:
        return Finding(
            id="calibration/classes",
            statement=f"Too many classes have fewer than {subject.min_cell:,} rows to tell them apart.",
            status="inconclusive",
            n=len(subject),
            **_COMMON,
        )
    value, name, ece, verdict = max(verdicts, key=lambda item: (order[item[3]], item[0]))
    columns = (
        Column("class", "text"),
        Column("n", "count", "rows of the class"),
        Column("calibration error", "percent"),
        Column("95 % interval", "interval"),
        Column("if calibrated, seldom above", "percent", "allowing for the number of classes"),
        Column("mean score minus share", "percent"),
    )
    table = Table("Calibration by class", columns, tuple(entries))
    return Finding(
        id="calibration/classes",
        statement=f"The class whose scores are off most is {name!r}: {100 * value:.1f} points on average"
        f"{_points(ece.interval)}; if calibrated, seldom above {100 * ece.most:.1f}.",
        severity="warn" if verdict == "beyond" else "ok",
        status="inconclusive" if verdict == "inconclusive" else "ran",
        reason={
            "beyond": "The whole interval lies beyond the limit.",
            "inconclusive": "The rows are too few to tell whether the error is within the limit.",
            "ok": "No class is off by more than the limit.",
        }[verdict],
        value=value,
        interval=ece.interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(table,),
        **_COMMON,
    )


def _points(interval: Interval) -> str:
    return f" (95 % interval {100 * interval.low:.1f} to {100 * interval.high:.1f})"
