"""How good the model is, with intervals, and whether it beats two trivial answers.

A classifier is compared with always saying the most common class (on accuracy) and with always giving the base rate (on
the Brier score); a regressor with the mean (on squared error) and the median (on absolute error). The trivial answers
are learned from the training data where they are given.

References
----------
W. J. Conover, "Practical Nonparametric Statistics", Wiley, 1999 (intervals of quantiles).
R. G. Newcombe, "Improved confidence intervals for the difference between binomial proportions based on paired data",
Statistics in Medicine 17, 1998.
"""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit

from aboveboard._stats.bootstrap import CellMoments, ClusterCells, percentile_interval, resampled_weights
from aboveboard._stats.intervals import critical_z, mover, newcombe, wilson
from aboveboard._stats.score_histogram import ScoreHistogram
from aboveboard.auditing.disclosure import withhold_crossed, withhold_parts
from aboveboard.auditing.estimates import Area, Rate, Rows, area_interval, area_under_curve, interval_text, percent
from aboveboard.auditing.model import not_asked
from aboveboard.auditing.subject import Subject, Training
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.core.finding import SUPPRESSED, Cell, Column, Figure, Finding, Interval, Series, Severity, Table

__all__ = ["check"]

_REPLICATES: Final[dict[str, int]] = {"quick": 200, "standard": 1000, "full": 2000}
_TRAIN_ROWS: Final[dict[str, int]] = {"quick": 2_000, "standard": 20_000, "full": 200_000}
_AREA_CELLS: Final = 20_000_000  # rows x classes that the one-vs-rest AUC sorts at most
_COMMON: Final[dict[str, Any]] = {"check": "performance", "area": "performance"}


@dataclass(frozen=True, slots=True)
class _Metric:
    name: str
    value: float
    interval: Interval | None
    n: int
    help: str = ""
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class _Skill:
    """How much better than a trivial answer: share of its loss that the model takes away."""

    id: str
    trivial: str
    measure: str
    model: float
    baseline: float
    value: float
    interval: Interval | None

    def verdict(self, limit: float) -> str:
        if self.interval is None or not np.isfinite(self.value):
            return "inconclusive"
        if self.interval.low > limit:
            return "better"
        return "no better" if self.interval.high <= limit else "inconclusive"


@dataclass(slots=True)
class _Measured:
    """All that is measured for a task: figures, comparisons with trivial answers, and how well rows are told apart."""

    metrics: list[_Metric] = field(default_factory=list)
    skills: list[_Skill] = field(default_factory=list)
    informative: Interval | None = None
    chance: float = 0.5
    withheld: bool = False


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Measure the model and compare it with trivial answers.

    Returns
    -------
    list of Finding
        ``performance/metrics``, two of ``performance/<trivial answer>``, and where they apply ``performance/classes``,
        ``performance/absent_class`` and ``performance/train_gap``.

    Notes
    -----
    O(n log n) time in the rows, and bootstraps over cells, score bins or blocks whose price does not grow with them.
    """
    if len(subject) < subject.min_cell:
        return [_too_few(subject)]
    rng = np.random.default_rng(random_state)
    replicates = _REPLICATES[effort]
    rows = Rows.of(subject)
    measure = {"binary": _binary, "multiclass": _multiclass, "regression": _regression}[subject.task]
    measured = measure(subject, rows, replicates, rng)
    findings = [_metrics_finding(subject, measured), *_skill_findings(subject, measured)]
    if subject.task == "multiclass":
        findings.append(_classes_finding(subject, rows))
    absent = _absent_classes(subject)
    if absent is not None:
        findings.append(absent)
    if subject.train is not None and subject.model is not None:
        findings.append(_train_gap(subject, subject.train, rows, effort, rng))
    return findings


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of each question that `check` asks the model: one about training rows, where there are any."""
    return [min(training_rows, _TRAIN_ROWS[effort])] if training_rows else []


# --- what is measured ------------------------------------------------------------------------------------------------


def _binary(subject: Subject, rows: Rows, replicates: int, rng: np.random.Generator) -> _Measured:
    y, prediction = subject.y == 1, subject.prediction == 1
    out = _Measured()
    recall = rows.rate(prediction, y)
    specificity = rows.rate(~prediction, ~y)
    precision = rows.rate(y, prediction)
    found = rows.rate(y & prediction, y | prediction)  # the share that F1 is a function of
    accuracy = rows.rate(y == prediction)
    balanced = _mean_of_rates([recall, specificity])
    out.metrics += [
        *([] if subject.score is None else _score_metrics(subject, rows, replicates, rng, out)),
        _rate_metric("accuracy", accuracy, "share of rows that the model gets right"),
        *_label_metrics(subject, recall, specificity, precision, found, balanced),
    ]
    if subject.score is None:
        out.informative = balanced[1]
    out.skills.insert(0, _accuracy_skill(subject, rows, replicates, rng))
    margins = [np.count_nonzero(mask) for mask in (y, ~y)]
    out.withheld = any(0 < count < subject.min_cell for count in margins)
    return out


def _label_metrics(
    subject: Subject,
    recall: Rate,
    specificity: Rate,
    precision: Rate,
    found: Rate,
    balanced: tuple[float, Interval | None],
) -> list[_Metric]:
    """Return the metrics from which, with the accuracy, every count of the two-by-two table follows.

    Where a row or column of that table has fewer rows than the smallest cell, all are withheld.
    """
    n = len(subject)
    margins = (recall.n, specificity.n, precision.n, n - precision.n)
    small = any(0 < count < subject.min_cell for count in margins)
    shown = [
        _Metric("balanced accuracy", *balanced, n, "mean of recall and specificity; 0.5 by chance"),
        _rate_metric("precision", precision, "share of positive predictions that are right"),
        _rate_metric("recall", recall, "share of positive rows that are found"),
        _rate_metric("specificity", specificity, "share of negative rows that are recognised"),
        _Metric("F1", *_f1(found), found.n, "harmonic mean of precision and recall"),
    ]
    return [replace(metric, withheld=True) for metric in shown] if small else shown


def _score_metrics(
    subject: Subject, rows: Rows, replicates: int, rng: np.random.Generator, out: _Measured
) -> list[_Metric]:
    """Return the metrics of the scores; also enter the Brier skill and the AUC into `out`."""
    assert subject.score is not None
    n = len(subject)
    histogram = ScoreHistogram.from_arrays(subject.score, subject.y, subject.weight, clusters=subject.cluster)
    names = ["auc", "average_precision", "log_loss", "brier", "base_rate"]
    draws = histogram.bootstrap(names, replicates, rng)
    low, high = percentile_interval(draws)
    values = {name: float(histogram.statistic(name)) for name in names}
    intervals = {name: _bootstrap_interval(values[name], low[i], high[i]) for i, name in enumerate(names)}
    intervals["average_precision"] = _log_interval(values["average_precision"], draws[:, 1], odds=True)
    rarest = int(min(np.count_nonzero(subject.y == 1), np.count_nonzero(subject.y == 0)))
    if np.isfinite(values["auc"]) and intervals["auc"] is None:
        intervals["auc"] = area_interval(values["auc"], 0.0, rarest, rows)
    base = _training_share(subject, 1)
    rate, rates = values["base_rate"], draws[:, 4]
    constant, constants = (rate, rates) if base is None else (base, np.full(len(rates), base))
    trivial = rate * (1 - constant) ** 2 + (1 - rate) * constant**2
    trivials = rates * (1 - constants) ** 2 + (1 - rates) * constants**2
    out.skills.append(
        _skill(
            "base_rate", "always giving the base rate", "Brier score", values["brier"], trivial, draws[:, 3], trivials
        )
    )
    out.informative = intervals["auc"]
    shown = [
        ("auc", "AUC", "chance that a positive row scores above a negative one; 0.5 by chance"),
        ("average_precision", "average precision", "area under the precision-recall curve; by chance the base rate"),
        ("log_loss", "log loss", "mean negative log likelihood, nats; smaller is better"),
        ("brier", "Brier score", "mean squared difference of score and outcome; smaller is better"),
    ]
    return [_Metric(title, values[name], intervals[name], n, text) for name, title, text in shown]


def _multiclass(subject: Subject, rows: Rows, replicates: int, rng: np.random.Generator) -> _Measured:
    out = _Measured()
    n, k = len(subject), len(subject.classes)
    present = np.unique(subject.y)
    recalls = [rows.rate(subject.prediction == c, subject.y == c) for c in present]
    balanced = _mean_of_rates(recalls)
    macro = _macro_f1(subject, replicates, rng)
    out.metrics += [
        _rate_metric("accuracy", rows.rate(subject.y == subject.prediction), "share of rows that the model gets right"),
        _Metric("balanced accuracy", *balanced, n, "mean recall over the classes"),
        _Metric("macro F1", *macro, n, "mean F1 over the classes"),
    ]
    out.informative, out.chance = balanced[1], 1.0 / max(len(present), 1)
    out.skills.append(_accuracy_skill(subject, rows, replicates, rng))
    if subject.score is None:
        return out
    area, used = _one_vs_rest(subject, rows, rng)
    truth = np.zeros((n, k), dtype=bool)
    truth[np.arange(n), subject.y] = True
    shares = [_training_share(subject, c) for c in range(k)]
    prior = np.array([0.0 if share is None else share for share in shares])
    if subject.train is None:
        prior = np.array([float(subject.weights[subject.y == c].sum()) for c in range(k)])
        prior /= prior.sum()
    own = np.clip(subject.score[np.arange(n), subject.y], np.finfo(float).eps, None)
    losses = np.column_stack(
        [-np.log(own), ((subject.score - truth) ** 2).sum(axis=1), (prior**2).sum() - 2 * prior[subject.y] + 1]
    )
    means, draws = rows.means(losses, replicates, rng)
    low, high = percentile_interval(draws)
    out.metrics += [
        _Metric("one-vs-rest AUC", area.value, area.interval, used, "mean over the classes; 0.5 by chance"),
        _Metric("log loss", float(means[0]), _bootstrap_interval(means[0], low[0], high[0]), n, "nats"),
        _Metric("Brier score", float(means[1]), _bootstrap_interval(means[1], low[1], high[1]), n, "sum over classes"),
    ]
    out.skills.append(
        _skill("base_rate", "always giving the base rates", "Brier score", means[1], means[2], draws[:, 1], draws[:, 2])
    )
    out.informative, out.chance = area.interval, 0.5
    return out


def _regression(subject: Subject, rows: Rows, replicates: int, rng: np.random.Generator) -> _Measured:
    out = _Measured()
    n, y = len(subject), subject.y
    error = subject.prediction - y
    weight = subject.weights
    train = None if subject.train is None else subject.train.y
    mean = float(np.average(y, weights=weight)) if train is None else float(np.mean(train))
    median = weighted_quantile(y, weight, 0.5) if train is None else float(np.median(train))
    columns = np.column_stack([np.abs(error), error**2, error, y - mean, (y - mean) ** 2, np.abs(y - median)])
    means, draws = rows.means(columns, replicates, rng)

    def entry(name: str, value: float, drawn: NDArray[np.float64], text: str) -> _Metric:
        low, high = percentile_interval(drawn)
        return _Metric(name, float(value), _bootstrap_interval(value, low, high), n, text)

    spread = means[4] - means[3] ** 2
    spreads = draws[:, 4] - draws[:, 3] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        r2, r2s = 1 - means[1] / spread, 1 - draws[:, 1] / np.where(spreads > 0, spreads, np.nan)
    absolute = np.abs(error)
    at = weighted_quantile(absolute, weight, 0.5)
    out.metrics += [
        _Metric("R²", float(r2), _one_minus(_log_interval(1 - r2, 1 - r2s)), n, "share of the variance explained"),
        entry("MAE", means[0], draws[:, 0], "mean absolute error, in units of the target"),
        entry("RMSE", np.sqrt(means[1]), np.sqrt(draws[:, 1]), "root mean squared error, in units of the target"),
        entry("bias", means[2], draws[:, 2], "mean of prediction minus truth; above 0: too high"),
        _Metric("median absolute error", at, _median_interval(absolute, at, rows), n, "in units of the target"),
    ]
    out.skills += [
        _skill("mean", "always giving the mean", "mean squared error", means[1], means[4], draws[:, 1], draws[:, 4]),
        _skill(
            "median", "always giving the median", "mean absolute error", means[0], means[5], draws[:, 0], draws[:, 5]
        ),
    ]
    return out


def weighted_quantile(values: NDArray[Any], weight: NDArray[Any], level: float) -> float:
    """Return the smallest value at or below which the weights reach `level`; midway where they meet it exactly."""
    order = np.argsort(values, kind="stable")
    running = np.cumsum(weight[order]) / weight.sum()
    at = int(np.searchsorted(running, level - 1e-12))
    at = min(at, len(values) - 1)
    if abs(running[at] - level) < 1e-12 and at + 1 < len(values):
        return float((values[order[at]] + values[order[at + 1]]) / 2)
    return float(values[order[at]])


def _median_interval(values: NDArray[Any], median: float, rows: Rows) -> Interval | None:
    """Return the interval between the quantiles that Wilson's interval of a share of one half ends at."""
    rate = rows.rate(values <= median)
    if rate.effective_n < 6:  # the interval would reach beyond the smallest and the largest value
        return None
    low, high = wilson(0.5 * rate.effective_n, rate.effective_n)
    weight = np.ones(rows.n) if rows.weight is None else rows.weight
    ends = weighted_quantile(values, weight, float(low)), weighted_quantile(values, weight, float(high))
    return Interval(min(ends[0], median), max(ends[1], median), method="order statistics")


def _mean_of_rates(rates: list[Rate]) -> tuple[float, Interval | None]:
    """Return the mean of rates of disjoint rows, and its interval recovered from theirs."""
    known = [rate for rate in rates if np.isfinite(rate.value)]
    if not known:
        return float("nan"), None
    value = float(np.mean([rate.value for rate in known]))
    below = np.sqrt(sum((rate.value - rate.interval.low) ** 2 for rate in known)) / len(known)
    above = np.sqrt(sum((rate.interval.high - rate.value) ** 2 for rate in known)) / len(known)
    return value, Interval(max(value - float(below), 0.0), min(value + float(above), 1.0), method="MOVER, Wilson")


def _f1(found: Rate) -> tuple[float, Interval | None]:
    """F1 is 2 J / (1 + J), where J is the share of the rows that are or are called positive which are both."""
    if not found.n or not np.isfinite(found.value):
        return float("nan"), None
    low, value, high = (2 * j / (1 + j) for j in (found.interval.low, found.value, found.interval.high))
    return value, Interval(min(low, value), max(high, value), method="Wilson")


def _macro_f1(subject: Subject, replicates: int, rng: np.random.Generator) -> tuple[float, Interval | None]:
    """Return the mean F1 over classes that occur or are predicted, by resampling the cells of the confusion table."""
    k = len(subject.classes)
    cell = subject.y * k + subject.prediction
    size = k * k
    count = np.bincount(cell, minlength=size).astype(np.float64)
    weight, square = (np.bincount(cell, weights=subject.weights**p, minlength=size).astype(np.float64) for p in (1, 2))
    diagonal = np.arange(k) * (k + 1)

    def macro(cells: NDArray[np.float64]) -> NDArray[np.float64]:
        table = cells.reshape(len(cells), k, k)
        total = table.sum(axis=1) + table.sum(axis=2)
        f1 = np.divide(2 * cells[:, diagonal], total, out=np.full(total.shape, np.nan), where=total > 0)
        return np.asarray(np.nanmean(f1, axis=1))

    value = float(macro(weight[None, :])[0])
    if subject.cluster is not None:
        cells = ClusterCells.from_arrays(subject.cluster, cell, subject.weight, size)
        draws = [macro(batch) for batch in cells.resampled(replicates, rng)]
    else:
        moments = CellMoments(count, weight, square)
        draws = [macro(batch) for _, batch in resampled_weights(moments, replicates, rng)]
    low, high = percentile_interval(np.concatenate(draws))
    interval = _bootstrap_interval(value, low, high)
    if interval is None:  # every row of each class is treated alike: each class by itself
        rows = Rows.of(subject)
        per_class = [
            _f1(rows.rate((subject.y == c) & (subject.prediction == c), (subject.y == c) | (subject.prediction == c)))
            for c in np.union1d(subject.y, subject.prediction)
        ]
        half = np.sqrt(sum((v - i.low) ** 2 for v, i in per_class if i is not None)) / max(len(per_class), 1)
        above = np.sqrt(sum((i.high - v) ** 2 for v, i in per_class if i is not None)) / max(len(per_class), 1)
        interval = Interval(max(value - float(half), 0.0), min(value + float(above), 1.0), method="MOVER, Wilson")
    return value, interval


def _one_vs_rest(subject: Subject, rows: Rows, rng: np.random.Generator) -> tuple[Area, int]:
    assert subject.score is not None
    n, k = subject.score.shape
    cap = max(_AREA_CELLS // k, 1000)
    if n <= cap:
        return area_under_curve(subject.score, subject.y, rows), n
    picked = np.sort(rng.choice(n, size=cap, replace=False))
    part = subject.take(picked)
    assert part.score is not None
    return area_under_curve(part.score, part.y, Rows.of(part)), cap


def _rate_metric(name: str, rate: Rate, text: str) -> _Metric:
    return _Metric(name, rate.value, rate.interval if rate.n else None, rate.n, text)


def _bootstrap_interval(value: Any, low: Any, high: Any) -> Interval | None:
    """Return the percentile interval; None where resamples do not differ, which says nothing about the population."""
    if not (np.isfinite(low) and np.isfinite(high)) or high - low <= 1e-12 * max(abs(float(value)), 1.0):
        return None
    return Interval(float(low), float(high), method="percentile bootstrap")


def _log_interval(value: Any, draws: NDArray[np.float64], *, odds: bool = False) -> Interval | None:
    """Return the normal interval of the logarithm (or log odds), with the bootstrap's standard error.

    For figures that a resample repeats the bias of: percentiles would double it.
    """
    highest = 1.0 if odds else np.inf
    known = draws[(draws > 0) & (draws < highest)]
    if not 0 < value < highest or len(known) < 0.9 * len(draws):
        return None
    scale = logit if odds else np.log
    half = critical_z() * float(np.std(scale(known)))
    if half <= 1e-12:
        return None
    back = expit if odds else np.exp
    centre = float(scale(value))
    method = "bootstrap, log odds" if odds else "bootstrap, logarithm"
    return Interval(min(float(back(centre - half)), value), max(float(back(centre + half)), value), method=method)


def _one_minus(interval: Interval | None) -> Interval | None:
    return None if interval is None else Interval(1 - interval.high, 1 - interval.low, method=interval.method)


# --- trivial answers -------------------------------------------------------------------------------------------------


def _training_share(subject: Subject, code: int) -> float | None:
    if subject.train is None:
        return None
    known = subject.train.y >= 0
    return float(np.mean(subject.train.y[known] == code)) if known.any() else None


def _accuracy_skill(subject: Subject, rows: Rows, replicates: int, rng: np.random.Generator) -> _Skill:
    """Compare with always saying the most common class, row by row."""
    k = len(subject.classes)
    if subject.train is not None and (subject.train.y >= 0).any():
        common = int(np.bincount(subject.train.y[subject.train.y >= 0].astype(np.int64), minlength=k).argmax())
    else:
        common = int(np.bincount(subject.y, weights=subject.weights, minlength=k).argmax())
    model, trivial = subject.prediction == subject.y, subject.y == common
    answer = f"always saying {subject.class_names[common]!r}"
    right, base = rows.rate(model), rows.rate(trivial)
    if base.value >= 1:
        return _Skill("most_common_class", answer, "accuracy", right.value, base.value, float("nan"), None)
    value = 1 - (1 - right.value) / (1 - base.value)
    if np.array_equal(subject.prediction, np.full(len(subject), common)):
        interval: Interval | None = Interval(0.0, 0.0, method="the same answers")
    else:
        _, draws = rows.means(np.column_stack([~model, ~trivial]), replicates, rng)
        low, high = percentile_interval(1 - draws[:, 0] / np.where(draws[:, 1] > 0, draws[:, 1], np.nan))
        interval = _bootstrap_interval(value, low, high)
    if interval is None:
        interval = _paired_interval(rows.rate(model & ~trivial), rows.rate(trivial & ~model), 1 - base.value)
    return _Skill("most_common_class", answer, "accuracy", right.value, base.value, value, interval)


def _paired_interval(mine: Rate, other: Rate, error: float) -> Interval:
    """Return the interval of the difference of two accuracies on the same rows, as a share of `error`.

    Parameters
    ----------
    mine, other : Rate
        Of rows that the model alone, and the trivial answer alone, gets right.
    """
    # shares of one sample that exclude each other vary against each other
    pq = mine.value * other.value / max((1 - mine.value) * (1 - other.value), 1e-300)
    low, high = mover(*_as_arrays(mine), *_as_arrays(other), correlation=-np.sqrt(pq))
    return Interval(float(low) / error, float(high) / error, method="paired, MOVER, Wilson")


def _as_arrays(rate: Rate) -> tuple[NDArray[np.float64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    return np.asarray(rate.value), (np.asarray(rate.interval.low), np.asarray(rate.interval.high))


def _skill(
    name: str,
    trivial: str,
    measure: str,
    loss: Any,
    base: Any,
    losses: NDArray[np.float64],
    bases: NDArray[np.float64],
) -> _Skill:
    if base <= 0:
        return _Skill(name, trivial, measure, float(loss), float(base), float("nan"), None)
    draws = 1 - losses / np.where(bases > 0, bases, np.nan)
    low, high = percentile_interval(draws)
    value = float(1 - loss / base)
    interval = _bootstrap_interval(value, low, high)
    if interval is None and np.isfinite(low) and abs(value - float(low)) < 1e-9:
        interval = Interval(value, value, method="percentile bootstrap")  # the same in every resample: no row differs
    return _Skill(name, trivial, measure, float(loss), float(base), value, interval)


# --- findings --------------------------------------------------------------------------------------------------------


def _metrics_finding(subject: Subject, measured: _Measured) -> Finding:
    metrics = measured.metrics
    head = metrics[0]
    limit = subject.limits["performance.min_rows"]
    rows = tuple(_metric_row(metric, subject.min_cell) for metric in metrics)
    table = Table(
        "Metrics",
        (
            Column("metric", "text"),
            Column("n", "count", "rows that it rests on"),
            Column("value"),
            Column("95 % interval", "interval"),
            Column("method", "text"),
            Column("meaning", "text"),
        ),
        rows,
        note=_design_note(subject),
    )
    second = next((metric for metric in metrics if metric.name in ("accuracy", "MAE") and metric is not head), None)
    shown = [metric for metric in (head, second) if metric is not None and np.isfinite(metric.value)]
    said = ", ".join(f"{metric.name} is {metric.value:.3f}{interval_text(metric.interval)}" for metric in shown)
    few = effective_rows(subject) < limit.value
    statement = f"On {len(subject):,} rows the model's {said}." if shown else "No metric exists for these rows."
    return Finding(
        id="performance/metrics",
        statement=statement,
        status="inconclusive" if few or not shown else "ran",
        reason=f"There are fewer than {limit.value:.0f} rows." if few else "Shown, not judged: see the comparisons.",
        value=head.value if np.isfinite(head.value) else None,
        interval=head.interval,
        n=len(subject),
        evidence=(table, *_metrics_figure(subject, metrics)),
        **_COMMON,
    )


def _metric_row(metric: _Metric, min_cell: int) -> tuple[Cell, ...]:
    if metric.withheld:
        return (metric.name, SUPPRESSED, SUPPRESSED, SUPPRESSED, "", metric.help)
    interval = metric.interval
    return (
        metric.name,
        metric.n,
        _shown(metric.value, metric.n, min_cell),
        None if interval is None else _shown_pair(interval, metric.n, min_cell),
        "" if interval is None else interval.method,
        metric.help,
    )


def _too_few(subject: Subject) -> Finding:
    return Finding(
        id="performance/metrics",
        statement=f"There are fewer than {subject.min_cell:,} rows, so nothing is shown.",
        status="inconclusive",
        reason="No figure may describe so few people.",
        **_COMMON,
    )


def effective_rows(subject: Subject) -> float:
    """Return the number of independent, unweighted rows (or clusters) that know as much."""
    weight = subject.weights
    if subject.cluster is not None:
        weight = np.bincount(np.unique(subject.cluster, return_inverse=True)[1], weights=weight)
    return float(weight.sum() ** 2 / (weight**2).sum())


def _metrics_figure(subject: Subject, metrics: list[_Metric]) -> tuple[Figure, ...]:
    unit = {"AUC", "average precision", "accuracy", "balanced accuracy", "precision", "recall", "specificity", "F1"}
    unit |= {"macro F1", "one-vs-rest AUC"}
    drawn = [m for m in metrics if m.name in unit and m.interval and not m.withheld and m.n >= subject.min_cell]
    if subject.task == "regression" or len(drawn) < 2:
        return ()
    series = Series(
        "model",
        tuple(m.name for m in drawn),
        tuple(m.value for m in drawn),
        tuple(m.interval.low for m in drawn if m.interval),
        tuple(m.interval.high for m in drawn if m.interval),
    )
    best = f"{drawn[0].name} is {drawn[0].value:.3f}"
    return (Figure("intervals", "Metrics with 95 % intervals", "metric", "value", (series,), alt=f"{best}."),)


def _skill_findings(subject: Subject, measured: _Measured) -> list[Finding]:
    limit = subject.limits["performance.skill"]
    verdicts = [skill.verdict(limit.value) for skill in measured.skills]
    informed = measured.informative is not None and measured.informative.low > measured.chance
    informed = informed or "better" in verdicts
    few = effective_rows(subject) < subject.limits["performance.min_rows"].value
    findings = []
    for skill, verdict in zip(measured.skills, verdicts, strict=True):
        if measured.withheld:  # the trivial answer's figure would tell how many rows the rarer class has
            findings.append(
                Finding(
                    id=f"performance/{skill.id}",
                    statement=f"Whether the model beats {skill.trivial} cannot be told.",
                    status="inconclusive",
                    reason=f"One class has fewer than {subject.min_cell:,} rows.",
                    n=len(subject),
                    **_COMMON,
                )
            )
            continue
        verdict = "inconclusive" if few else verdict
        severity: Severity = "ok"
        if verdict == "no better":
            severity = "warn" if informed else "fail"
        compared = f"{skill.measure} {skill.model:.3f} against {skill.baseline:.3f}{_skill_text(skill)}"
        statement = {
            "better": f"The model beats {skill.trivial}: {compared}.",
            "no better": f"The model is no better than {skill.trivial}: {compared}.",
            "inconclusive": f"Whether the model beats {skill.trivial} cannot be told: {compared}.",
        }[verdict]
        reason = {
            "better": "The whole interval lies above the limit.",
            "no better": "The whole interval lies at or below the limit"
            + (
                "; the model does tell rows apart, so its threshold or its probabilities are at fault."
                if informed
                else "."
            ),
            "inconclusive": "There are too few rows." if few else "The interval includes the limit.",
        }[verdict]
        findings.append(
            Finding(
                id=f"performance/{skill.id}",
                statement=statement,
                severity=severity,
                status="inconclusive" if verdict == "inconclusive" else "ran",
                reason=reason,
                value=skill.value if np.isfinite(skill.value) else None,
                interval=skill.interval,
                limit=limit.value,
                limit_source=limit.source,
                n=len(subject),
                **_COMMON,
            )
        )
    return findings


def _skill_text(skill: _Skill) -> str:
    if not np.isfinite(skill.value):
        return ""
    what = "errors" if skill.measure == "accuracy" else "loss"
    return f", {percent(skill.value)} of its {what} taken away{interval_text(skill.interval, as_percent=True)}"


def _classes_finding(subject: Subject, rows: Rows) -> Finding:
    """Recall and precision of each class, and where its rows go."""
    entries: list[tuple[Cell, ...]] = []
    worst: tuple[float, str, Rate] | None = None
    withheld = withhold_parts(np.bincount(subject.y, minlength=len(subject.classes)), subject.min_cell).all
    for code, name in enumerate(subject.class_names):
        recall = rows.rate(subject.prediction == code, subject.y == code)
        precision = rows.rate(subject.y == code, subject.prediction == code)
        hide = bool(withheld[code])
        entries.append(
            (
                name,
                SUPPRESSED if hide else recall.n,
                SUPPRESSED if hide else _shown(recall.value, recall.n, subject.min_cell),
                SUPPRESSED if hide else _shown_pair(recall.interval, recall.n, subject.min_cell) if recall.n else None,
                SUPPRESSED if hide else _shown(precision.value, precision.n, subject.min_cell),
                SUPPRESSED
                if hide
                else _shown_pair(precision.interval, precision.n, subject.min_cell)
                if precision.n
                else None,
            )
        )
        if recall.n and not hide and (worst is None or recall.value < worst[0]):
            worst = (recall.value, name, recall)
    columns = (
        Column("class", "text"),
        Column("n", "count", "rows of the class"),
        Column("recall", "percent", "share of its rows that are found"),
        Column("95 % interval of recall", "interval"),
        Column("precision", "percent", "share of the predictions of it that are right"),
        Column("95 % interval of precision", "interval"),
    )
    tables = (Table("By class", columns, tuple(entries)), *_confusion(subject))
    if worst is None:
        return Finding(
            id="performance/classes",
            statement=f"Every class has fewer than {subject.min_cell} rows.",
            status="inconclusive",
            evidence=tables,
            **_COMMON,
        )
    value, name, recall = worst
    limit = subject.limits["performance.class_recall"]
    chance = 1 / len(subject.classes)
    ignored = recall.interval.high < limit.value * chance
    return Finding(
        id="performance/classes",
        statement=f"The class found least often is {name!r}: recall {percent(value)}"
        f"{interval_text(recall.interval, as_percent=True)}; chance would find {percent(chance)}.",
        severity="warn" if ignored else "ok",
        reason="A class is found less often than by guessing." if ignored else "No class is surely below the limit.",
        value=value,
        interval=recall.interval,
        limit=limit.value * chance,
        limit_source=limit.source,
        n=recall.n,
        evidence=tables,
        **_COMMON,
    )


def _confusion(subject: Subject) -> tuple[Table, ...]:
    """Return the confusion table as shares of each true class; small cells are withheld."""
    k = len(subject.classes)
    if k > 12:
        return ()
    counts = np.bincount(subject.y * k + subject.prediction, minlength=k * k).reshape(k, k)
    weights = np.bincount(subject.y * k + subject.prediction, weights=subject.weights, minlength=k * k).reshape(k, k)
    hidden = _hidden_cells(counts, subject.min_cell)
    few = withhold_parts(counts.sum(axis=1), subject.min_cell).all
    hidden[few] = True
    total = weights.sum(axis=1)
    rows: list[tuple[Cell, ...]] = []
    for i, name in enumerate(subject.class_names):
        cells: list[Cell] = [
            SUPPRESSED if hidden[i, j] else float(weights[i, j] / total[i]) if total[i] > 0 else None for j in range(k)
        ]
        rows.append((name, SUPPRESSED if few[i] else int(counts[i].sum()), *cells))
    columns = (
        Column("true class", "text"),
        Column("n", "count"),
        *(Column(f"predicted {name}", "percent") for name in subject.class_names),
    )
    return (
        Table("Where the rows of each class go", columns, tuple(rows), note="Shares of the rows of the true class."),
    )


def _hidden_cells(counts: NDArray[Any], min_cell: int) -> NDArray[np.bool_]:
    """Return which cells off the diagonal are withheld; recall and precision give their sums by row and column away."""
    k = len(counts)
    hidden = np.zeros((k, k), dtype=bool)
    at = np.argwhere((counts > 0) & ~np.eye(k, dtype=bool))
    if len(at):
        sums = np.vstack([at[:, axis] == c for axis in (0, 1) for c in range(k)])
        hidden[tuple(at.T)] = withhold_crossed(counts[tuple(at.T)], sums, min_cell).all
    return hidden


def _absent_classes(subject: Subject) -> Finding | None:
    if subject.task == "regression":
        return None
    absent = np.setdiff1d(np.arange(len(subject.classes)), np.unique(subject.y))
    if not len(absent):
        return None
    names = ", ".join(repr(subject.class_names[code]) for code in absent[:10])
    return Finding(
        id="performance/absent_class",
        statement=f"The data have no row of {'class' if len(absent) == 1 else 'classes'} {names}.",
        severity="note",
        reason="Nothing measured here speaks of rows of such a class.",
        value=float(len(absent)),
        n=len(subject),
        **_COMMON,
    )


def _train_gap(subject: Subject, train: Training, rows: Rows, effort: Effort, rng: np.random.Generator) -> Finding:
    """Compare accuracy (R²) on the training rows with that on the test rows."""
    assert subject.model is not None
    usable = np.arange(len(train.y)) if subject.task == "regression" else np.flatnonzero(train.y >= 0)
    cap = _TRAIN_ROWS[effort]
    if len(usable) > cap:
        usable = np.sort(rng.choice(usable, size=cap, replace=False))
    common: dict[str, Any] = {"id": "performance/train_gap", **_COMMON}
    if len(usable) < 2:
        return Finding(statement="There are no usable training rows.", status="inconclusive", **common)
    try:
        answers = subject.model.answer(train.X.iloc[usable])
    except QueriesSpent as stop:
        return not_asked(stop, **common)
    except ModelError as error:
        cause = error.kind or "a malformed answer"
        return Finding(
            statement="The model failed on its training rows, so they cannot be compared with the test rows.",
            status="inconclusive",
            reason=f"What went wrong: {cause}.",
            **common,
        )
    limit = subject.limits["performance.train_gap"]
    known = train.y[usable]
    if subject.task == "regression":
        value, interval, text = _r2_gap(subject, rows, answers.prediction, known, rng)
        measure = "R²"
    else:
        seen = Rows(len(usable)).rate(answers.prediction == known)
        test = rows.rate(subject.prediction == subject.y)
        value = seen.value - test.value
        low, high = newcombe(seen.value, seen.effective_n, test.value, test.effective_n)
        interval = Interval(float(low), float(high), method="Newcombe")
        measure, text = "accuracy", f"{percent(seen.value)} against {percent(test.value)}"
    severity: Severity = "ok"
    status: Any = "ran"
    if interval.low > limit.value:
        severity = "warn"
    elif interval.high >= limit.value:
        status = "inconclusive"
    said = "higher" if value >= 0 else "lower"
    return Finding(
        statement=f"On {len(usable):,} training rows {measure} is {abs(value):.3f} {said} than on the test rows: {text}"
        f"{interval_text(interval)}.",
        severity=severity,
        status=status,
        reason="A wide gap means that the model remembers rows, so its training figures say little. Trees grown to the "
        "end always show one, and it is no harm by itself."
        if severity == "warn"
        else "The interval includes the limit."
        if status == "inconclusive"
        else "The gap is within the limit.",
        value=value,
        interval=interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(usable),
        **common,
    )


def _r2_gap(
    subject: Subject, rows: Rows, prediction: NDArray[Any], known: NDArray[Any], rng: np.random.Generator
) -> tuple[float, Interval, str]:
    values, draws = [], []
    for y, given, part in ((known, prediction, Rows(len(known))), (subject.y, subject.prediction, rows)):
        centre = float(np.mean(y))
        means, drawn = part.means(np.column_stack([(given - y) ** 2, y - centre, (y - centre) ** 2]), 1000, rng)
        with np.errstate(divide="ignore", invalid="ignore"):
            values.append(float(1 - means[0] / (means[2] - means[1] ** 2)))
            draws.append(1 - drawn[:, 0] / (drawn[:, 2] - drawn[:, 1] ** 2))
    value = values[0] - values[1]
    if not np.isfinite(value):
        return 0.0, Interval(-1.0, 1.0, method="none: the training target does not vary"), "not comparable"
    low, high = percentile_interval(draws[0] - draws[1])
    ends = min(float(low), value), max(float(high), value)
    return value, Interval(*ends, method="percentile bootstrap"), f"{values[0]:.3f} against {values[1]:.3f}"


# --- cells -----------------------------------------------------------------------------------------------------------


def _shown(value: float, n: int, min_cell: int) -> Cell:
    if 0 < n < min_cell:
        return SUPPRESSED
    return float(value) if np.isfinite(value) else None


def _shown_pair(interval: Interval, n: int, min_cell: int) -> Cell:
    return SUPPRESSED if 0 < n < min_cell else (interval.low, interval.high)


def _design_note(subject: Subject) -> str:
    parts = []
    if subject.weight is not None:
        parts.append("rows count by weight")
    if subject.cluster is not None:
        parts.append(f"intervals treat {len(np.unique(subject.cluster)):,} clusters as the units that were drawn")
    return ("; ".join(parts).capitalize() + ".") if parts else ""
