"""Whether scores mean what they say: of the rows with a score of 70 %, are seven in ten positive?

The expected calibration error (ECE) is above zero in any sample, so it is compared with what a perfectly calibrated
model would show on as many rows. For several classes the highest score is checked (top label), and each class too.

References
----------
D. R. Cox, "Two further applications of a model for binary regression", Biometrika 45, 1958 (slope and intercept).
D. B. Stephenson, C. A. S. Coelho, I. T. Jolliffe, "Two extra components in the Brier score decomposition", Weather and
Forecasting 23, 2008.
J. Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019 (comparison with a calibrated
model).
"""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit, logit

from aboveboard._stats.bootstrap import basic_interval, percentile_interval
from aboveboard._stats.score_histogram import ScoreHistogram
from aboveboard.auditing.disclosure import withhold_parts
from aboveboard.auditing.estimates import Rows, interval_text, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Line, Series, Severity, Table

__all__ = ["check", "recalibration"]

_REPLICATES: Final[dict[str, int]] = {"quick": 200, "standard": 1000, "full": 2000}
_BINS: Final = 15
_CURVE_BINS: Final = 10
_CERTAIN: Final = 1e-6  # scores are kept this far from 0 and 1 where their log odds are taken
_CELLS: Final = 20_000_000  # rows x classes that the class-wise part looks at
_COMMON: Final[dict[str, Any]] = {"check": "calibration", "area": "performance"}


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Compare scores with outcomes.

    Returns
    -------
    list of Finding
        ``calibration/ece`` (with the reliability curve), ``calibration/gap`` and ``calibration/slope``; for several
        classes ``calibration/top_label`` and ``calibration/classes``.

    Notes
    -----
    O(n log n) time in the rows for each class; bootstraps over score bins.
    """
    rng = np.random.default_rng(random_state)
    assert subject.score is not None
    rarest = min(np.count_nonzero(subject.y == code) for code in (0, 1)) if subject.task == "binary" else len(subject)
    if rarest < subject.min_cell:
        return [_too_few(subject)]
    if subject.task == "binary":
        name = f"positive ({subject.positive})"
        return [
            _ece_finding(subject, "ece", subject.score, subject.y, name, _REPLICATES[effort], rng),
            _gap_finding(subject, subject.score, subject.y, _REPLICATES[effort], rng),
            _slope_finding(subject, subject.score, subject.y),
        ]
    top = subject.score.max(axis=1)
    right = (subject.score.argmax(axis=1) == subject.y).astype(np.int64)
    return [
        _ece_finding(subject, "top_label", np.clip(top, 0.0, 1.0), right, "right", _REPLICATES[effort], rng),
        _classwise_finding(subject, _REPLICATES[effort], rng),
    ]


def _too_few(subject: Subject) -> Finding:
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


def _ece(
    histogram: ScoreHistogram,
    score: NDArray[Any],
    y: NDArray[Any],
    subject: Subject,
    replicates: int,
    rng: np.random.Generator,
    level: float = 0.95,
) -> _Ece:
    value = float(histogram.ece(_BINS))
    draws = histogram.bootstrap(["ece"], replicates, rng, n_bins=_BINS)[:, 0]
    if subject.cluster is None:
        null = histogram.ece_if_calibrated(replicates, rng, n_bins=_BINS)
    else:
        null = _clustered_null(score, y, subject, replicates, rng)
    ends = basic_interval(value, draws)
    low, high = max(float(ends[0]), 0.0), max(float(ends[1]), 0.0)
    interval = Interval(min(low, value), max(high, value), method="basic bootstrap")
    return _Ece(value, interval, float(null.mean()), float(np.quantile(null, level)))


def _clustered_null(
    score: NDArray[Any], y: NDArray[Any], subject: Subject, replicates: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw the ECE of a calibrated model whose rows depend on each other within clusters.

    Rows of a cluster that fall in one bin count for as many as Kish's design effect leaves of them, at the correlation
    that residuals have within clusters.
    """
    rows = Rows.of(subject)
    assert rows.cluster is not None
    weight = subject.weights
    place = np.clip(np.ceil(score * _BINS).astype(np.int64) - 1, 0, _BINS - 1)
    total, square = (np.bincount(place, weights=weight**p, minlength=_BINS) for p in (1, 2))
    mean = np.bincount(place, weights=weight * score, minlength=_BINS) / np.maximum(total, np.finfo(float).tiny)
    together = sparse.coo_matrix((np.ones(rows.n), (rows.cluster, place)), shape=(rows.clusters, _BINS)).tocsr()
    count = np.asarray(together.sum(axis=0)).ravel()
    company = np.asarray(together.power(2).sum(axis=0)).ravel() / np.maximum(count, 1)
    effect = 1 + np.maximum(company - 1, 0.0) * _correlation(score, y, rows)
    effective = total**2 / np.maximum(square, np.finfo(float).tiny) / effect
    trials = np.maximum(np.rint(effective), 1).astype(np.int64)
    rate = rng.binomial(trials, np.clip(mean, 0.0, 1.0), size=(replicates, _BINS)) / trials
    return np.asarray((np.abs(rate - mean) * total).sum(axis=1) / total.sum())


def _correlation(score: NDArray[Any], y: NDArray[Any], rows: Rows) -> float:
    """Return the mean correlation of two residuals of one cluster, in [0, 1], as if scores were true."""
    assert rows.cluster is not None
    probability = np.clip(score, _CERTAIN, 1 - _CERTAIN)
    residual = (y - probability) / np.sqrt(probability * (1 - probability))
    size = np.bincount(rows.cluster).astype(np.float64)
    sums, squares = (np.bincount(rows.cluster, weights=residual**p) for p in (1, 2))
    pairs = float((size * (size - 1)).sum())
    scale = float(squares.sum()) / rows.n
    return float(np.clip((sums**2 - squares).sum() / pairs / scale, 0.0, 1.0)) if pairs > 0 and scale > 0 else 0.0


def _ece_finding(
    subject: Subject,
    name: str,
    score: NDArray[Any],
    y: NDArray[Any],
    event: str,
    replicates: int,
    rng: np.random.Generator,
) -> Finding:
    histogram = ScoreHistogram.from_arrays(score, y, subject.weight, clusters=subject.cluster)
    ece = _ece(histogram, score, y, subject, replicates, rng)
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
    curve, table = _reliability(subject, score, y, event)
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
        evidence=(curve, table, _decomposition(subject, score, y)),
        **_COMMON,
    )


def _reliability(subject: Subject, score: NDArray[Any], y: NDArray[Any], event: str) -> tuple[Figure, Table]:
    """Return the reliability curve in ten bins, as figure and table; bins with few rows stay out of the figure."""
    rows = Rows.of(subject)
    place = np.clip(np.ceil(score * _CURVE_BINS).astype(np.int64) - 1, 0, _CURVE_BINS - 1)
    entries: list[tuple[Cell, ...]] = []
    x, observed, low, high = [], [], [], []
    withheld = withhold_parts(np.bincount(place, minlength=_CURVE_BINS), subject.min_cell).all
    for b in range(_CURVE_BINS):
        among = place == b
        rate = rows.rate(y == 1, among)
        if not rate.n or not np.isfinite(rate.value):
            continue
        mean = float(np.average(score[among], weights=subject.weights[among]))
        bounds = f"{b / _CURVE_BINS:.1f} to {(b + 1) / _CURVE_BINS:.1f}"
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


def _decomposition(subject: Subject, score: NDArray[Any], y: NDArray[Any]) -> Table:
    """Split the Brier score into miscalibration, resolution, uncertainty and the rest within bins; the sum is exact."""
    weight = subject.weights
    place = np.clip(np.ceil(score * _BINS).astype(np.int64) - 1, 0, _BINS - 1)
    total = np.bincount(place, weights=weight, minlength=_BINS)
    safe = np.maximum(total, np.finfo(float).tiny)
    mean = np.bincount(place, weights=weight * score, minlength=_BINS) / safe
    rate = np.bincount(place, weights=weight * y, minlength=_BINS) / safe
    share = total / total.sum()
    base = float((share * rate).sum())
    brier = float(np.average((score - y) ** 2, weights=weight))
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


def _gap_finding(
    subject: Subject, score: NDArray[Any], y: NDArray[Any], replicates: int, rng: np.random.Generator
) -> Finding:
    rows = Rows.of(subject)
    means, draws = rows.means(np.column_stack([score, y]), replicates, rng)
    value = float(means[0] - means[1])
    low, high = (float(end) for end in percentile_interval(draws[:, 0] - draws[:, 1]))
    observed = rows.rate(y == 1)
    if high - low <= 1e-12:  # no row differs from another: at least the rate is not known better than this
        low, high = float(means[0]) - observed.interval.high, float(means[0]) - observed.interval.low
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
        statement=f"The mean score is {percent(float(means[0]))}, and {percent(float(means[1]))} of rows are positive: "
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


def _slope_finding(subject: Subject, score: NDArray[Any], y: NDArray[Any]) -> Finding:
    rows = Rows.of(subject)
    fit = recalibration(score, y, rows)
    if fit is None:
        return Finding(
            id="calibration/slope",
            statement="The calibration slope does not exist: scores are all alike, or they separate the classes.",
            status="inconclusive",
            n=len(subject),
            **_COMMON,
        )
    (intercept, slope), (intercept_error, error) = fit
    z = rows.quantile_of_normal()
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


def recalibration(
    score: NDArray[Any], y: NDArray[Any], rows: Rows
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Fit the logistic regression of outcomes on the log odds of the scores.

    Parameters
    ----------
    score : ndarray of shape (n,), in [0, 1]
        Kept 1e-6 away from 0 and 1.
    y : ndarray of {0, 1}, shape (n,)
    rows : Rows

    Returns
    -------
    (intercept, slope), (their standard errors), or None
        None where it does not exist: scores all alike, one class, or classes that the scores separate. Errors are
        robust (sandwich) and know about weights and clusters.

    Notes
    -----
    Newton's method; O(n) time per step, ten steps or so.
    """
    x = logit(np.clip(score, _CERTAIN, 1 - _CERTAIN))
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    weight = weight / weight.mean()
    spread = float(np.average((x - np.average(x, weights=weight)) ** 2, weights=weight))
    if spread < 1e-12 or y.min() == y.max():
        return None
    beta = np.array([0.0, 1.0])

    def loss(b: NDArray[np.float64]) -> float:
        eta = b[0] + b[1] * x
        return float((weight * (np.logaddexp(0.0, eta) - y * eta)).sum())

    current = loss(beta)
    for _ in range(50):
        p = expit(beta[0] + beta[1] * x)
        gradient, hessian = _derivatives(x, y - p, p * (1 - p), weight)
        if np.linalg.cond(hessian) > 1e12:
            return None
        step = np.linalg.solve(hessian, gradient)
        size = 1.0
        while loss(beta + size * step) > current + 1e-9 * abs(current) and size > 1e-6:
            size /= 2
        beta = beta + size * step
        current = loss(beta)
        if np.abs(beta).max() > 1e3:
            return None
        if np.abs(size * step).max() < 1e-9:
            break
    else:
        return None
    p = expit(beta[0] + beta[1] * x)
    _, hessian = _derivatives(x, y - p, p * (1 - p), weight)
    if np.linalg.cond(hessian) > 1e12 or current < 1e-6 * rows.n:
        return None
    bread = np.linalg.inv(hessian) * float(weight.sum())
    influence = np.column_stack([y - p, (y - p) * x]) @ bread
    return beta, np.array([rows.error(influence[:, 0]), rows.error(influence[:, 1])])


def _derivatives(
    x: NDArray[Any], residual: NDArray[Any], variance: NDArray[Any], weight: NDArray[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    wr, wv = weight * residual, weight * variance
    gradient = np.array([wr.sum(), (wr * x).sum()])
    cross = float((wv * x).sum())
    return gradient, np.array([[float(wv.sum()), cross], [cross, float((wv * x * x).sum())]])


# --- several classes -------------------------------------------------------------------------------------------------


def _classwise_finding(subject: Subject, replicates: int, rng: np.random.Generator) -> Finding:
    """The ECE of each class against the rest; a verdict on the worst allows for the number of classes."""
    assert subject.score is not None
    k = len(subject.classes)
    cap = max(_CELLS // k, 1000)
    note = ""
    if len(subject) > cap:
        note = f"On {cap:,} rows drawn at random."
        subject = subject.sample(cap, int(rng.integers(2**31)))
    scores = subject.score
    assert scores is not None
    limit = subject.limits["calibration.ece"]
    entries: list[tuple[Cell, ...]] = []
    verdicts: list[tuple[float, str, _Ece, str]] = []
    withheld = withhold_parts(np.bincount(subject.y, minlength=k), subject.min_cell).all
    for code, name in enumerate(subject.class_names):
        score, y = np.clip(scores[:, code], 0.0, 1.0), (subject.y == code).astype(np.int64)
        count = int(y.sum())
        histogram = ScoreHistogram.from_arrays(score, y, subject.weight, bins=300, clusters=subject.cluster)
        ece = _ece(histogram, score, y, subject, replicates, rng, level=1 - 0.05 / k)
        gap = float(np.average(score - y, weights=subject.weights))
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
    table = Table("Calibration by class", columns, tuple(entries), note=note)
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
