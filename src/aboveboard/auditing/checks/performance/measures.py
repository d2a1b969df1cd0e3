"""The numbers of the check: metrics with intervals, and how much better they are than trivial answers."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from aboveboard._stats.bootstrap import CellMoments, percentile_interval, resampled_weights
from aboveboard._stats.cells import GroupCells, RateSpec
from aboveboard._stats.intervals import critical_z, mover, wilson
from aboveboard.auditing.checks.performance.sums import PerformanceSums, training_share, weighted_quantile
from aboveboard.auditing.estimates import Area, Rate, Rows, area_interval, area_under_curve
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.summaries import cell_rate
from aboveboard.core.finding import Interval

__all__ = ["Measured", "Metric", "Skill", "accuracy", "measure_binary", "measure_multiclass", "measure_regression"]

_AREA_CELLS: Final = 20_000_000  # rows x classes that the one-vs-rest AUC sorts at most


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure with its interval, the rows that it rests on, and whether it must not be shown."""

    name: str
    value: float
    interval: Interval | None
    n: int
    help: str = ""
    withheld: bool = False


@dataclass(frozen=True, slots=True)
class Skill:
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
class Measured:
    """All that is measured for a task: figures, comparisons with trivial answers, and how well rows are told apart."""

    metrics: list[Metric] = field(default_factory=list)
    skills: list[Skill] = field(default_factory=list)
    informative: Interval | None = None
    chance: float = 0.5
    withheld: bool = False


def accuracy(sums: PerformanceSums) -> Rate:
    """Return the share of rows whose prediction is their label."""
    return cell_rate(sums.cells, np.eye(sums.cells.count.shape[1], dtype=bool))


def measure_binary(subject: Subject, sums: PerformanceSums, replicates: int, rng: np.random.Generator) -> Measured:
    """Measure a binary classifier."""
    y, prediction = np.array([[False], [True]]), np.array([[False, True]])
    out = Measured()
    recall = cell_rate(sums.cells, prediction, y)
    specificity = cell_rate(sums.cells, ~prediction, ~y)
    precision = cell_rate(sums.cells, y, prediction)
    found = cell_rate(sums.cells, y & prediction, y | prediction)  # the share that F1 is a function of
    balanced = _mean_of_rates([recall, specificity])
    out.metrics += [
        *([] if sums.scores is None else _score_metrics(subject, sums, replicates, rng, out)),
        _rate_metric("accuracy", accuracy(sums), "share of rows that the model gets right"),
        *_label_metrics(subject, recall, specificity, precision, found, balanced),
    ]
    if sums.scores is None:
        out.informative = balanced[1]
    out.skills.insert(0, _accuracy_skill(subject, sums, replicates, rng))
    out.withheld = any(0 < count < subject.min_cell for count in sums.table.sum(axis=1))
    return out


def measure_multiclass(subject: Subject, sums: PerformanceSums, replicates: int, rng: np.random.Generator) -> Measured:
    """Measure a classifier of several classes."""
    out = Measured()
    n, k = len(subject), len(subject.classes)
    classes = np.eye(k, dtype=bool)
    present = np.flatnonzero(sums.table.sum(axis=1))
    recalls = [cell_rate(sums.cells, classes[c][None, :], classes[c][:, None]) for c in present]
    balanced = _mean_of_rates(recalls)
    macro = _macro_f1(sums.cells, replicates, rng)
    out.metrics += [
        _rate_metric("accuracy", accuracy(sums), "share of rows that the model gets right"),
        Metric("balanced accuracy", *balanced, n, "mean recall over the classes"),
        Metric("macro F1", *macro, n, "mean F1 over the classes"),
    ]
    out.informative, out.chance = balanced[1], 1.0 / max(len(present), 1)
    out.skills.append(_accuracy_skill(subject, sums, replicates, rng))
    if sums.losses is None or sums.classes is None:
        return out
    area, used = _one_vs_rest(subject, rng)
    shares = [training_share(subject, c) for c in range(k)]
    prior = np.array([0.0 if share is None else share for share in shares])
    if subject.train is None:
        prior = sums.cells.weight[0].sum(axis=1) / sums.cells.weight.sum()
    trivial_loss = (prior**2).sum() - 2 * prior + 1  # of a row, by its class
    losses = replace(sums.losses, sums=np.column_stack([sums.losses.sums, sums.classes @ trivial_loss]))
    means, draws = losses.means(replicates, rng)
    low, high = percentile_interval(draws)
    out.metrics += [
        Metric("one-vs-rest AUC", area.value, area.interval, used, "mean over the classes; 0.5 by chance"),
        Metric("log loss", float(means[0]), _bootstrap_interval(means[0], low[0], high[0]), n, "nats"),
        Metric("Brier score", float(means[1]), _bootstrap_interval(means[1], low[1], high[1]), n, "sum over classes"),
    ]
    out.skills.append(
        _skill("base_rate", "always giving the base rates", "Brier score", means[1], means[2], draws[:, 1], draws[:, 2])
    )
    out.informative, out.chance = area.interval, 0.5
    return out


def measure_regression(subject: Subject, sums: PerformanceSums, replicates: int, rng: np.random.Generator) -> Measured:
    """Measure a regressor; the median absolute error is that of the rows drawn at random."""
    assert sums.losses is not None
    out = Measured()
    n = len(subject)
    means, draws = sums.losses.means(replicates, rng)

    def entry(name: str, value: float, drawn: NDArray[np.float64], text: str) -> Metric:
        low, high = percentile_interval(drawn)
        return Metric(name, float(value), _bootstrap_interval(value, low, high), n, text)

    spread = means[4] - means[3] ** 2
    spreads = draws[:, 4] - draws[:, 3] ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        r2, r2s = 1 - means[1] / spread, 1 - draws[:, 1] / np.where(spreads > 0, spreads, np.nan)
    # the mean squared distance from the mean, which is that of the training data where there are some
    off = 0.0 if subject.train is not None else float(means[3])
    trivial, trivials = (m[..., 4] - 2 * off * m[..., 3] + off**2 for m in (means, draws))
    sample = subject.row_sample
    absolute = np.abs(sample.prediction - sample.y)
    median = weighted_quantile(absolute, sample.weights, 0.5)
    median_interval = _median_interval(absolute, median, Rows.of(sample))
    out.metrics += [
        Metric("R²", float(r2), _one_minus(_log_interval(1 - r2, 1 - r2s)), n, "share of the variance explained"),
        entry("MAE", means[0], draws[:, 0], "mean absolute error, in units of the target"),
        entry("RMSE", np.sqrt(means[1]), np.sqrt(draws[:, 1]), "root mean squared error, in units of the target"),
        entry("bias", means[2], draws[:, 2], "mean of prediction minus truth; above 0: too high"),
        Metric("median absolute error", median, median_interval, len(sample), "in units of the target"),
    ]
    out.skills += [
        _skill("mean", "always giving the mean", "mean squared error", means[1], trivial, draws[:, 1], trivials),
        _skill(
            "median", "always giving the median", "mean absolute error", means[0], means[5], draws[:, 0], draws[:, 5]
        ),
    ]
    return out


def _label_metrics(
    subject: Subject,
    recall: Rate,
    specificity: Rate,
    precision: Rate,
    found: Rate,
    balanced: tuple[float, Interval | None],
) -> list[Metric]:
    """Return the metrics from which, with the accuracy, every count of the two-by-two table follows.

    Where a row or column of that table has fewer rows than the smallest cell, all are withheld.
    """
    n = len(subject)
    margins = (recall.n, specificity.n, precision.n, n - precision.n)
    small = any(0 < count < subject.min_cell for count in margins)
    shown = [
        Metric("balanced accuracy", *balanced, n, "mean of recall and specificity; 0.5 by chance"),
        _rate_metric("precision", precision, "share of positive predictions that are right"),
        _rate_metric("recall", recall, "share of positive rows that are found"),
        _rate_metric("specificity", specificity, "share of negative rows that are recognised"),
        Metric("F1", *_f1(found), found.n, "harmonic mean of precision and recall"),
    ]
    return [replace(metric, withheld=True) for metric in shown] if small else shown


def _score_metrics(
    subject: Subject, sums: PerformanceSums, replicates: int, rng: np.random.Generator, out: Measured
) -> list[Metric]:
    """Return the metrics of the scores; also enter the Brier skill and the AUC into `out`."""
    assert sums.scores is not None
    n = len(subject)
    names = ["auc", "average_precision", "log_loss", "brier", "base_rate"]
    draws = sums.scores.bootstrap(names, replicates, rng)
    low, high = percentile_interval(draws)
    values = {name: float(sums.scores.statistic(name)) for name in names}
    intervals = {name: _bootstrap_interval(values[name], low[i], high[i]) for i, name in enumerate(names)}
    intervals["average_precision"] = _log_interval(values["average_precision"], draws[:, 1], odds=True)
    rarest = int(sums.table.sum(axis=1).min())
    if np.isfinite(values["auc"]) and intervals["auc"] is None:
        intervals["auc"] = area_interval(values["auc"], 0.0, rarest, critical_z())
    base = training_share(subject, 1)
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
    return [Metric(title, values[name], intervals[name], n, text) for name, title, text in shown]


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


def _macro_f1(cells: GroupCells, replicates: int, rng: np.random.Generator) -> tuple[float, Interval | None]:
    """Return the mean F1 over classes that occur or are predicted, by resampling the cells of the confusion table."""
    k = cells.count.shape[1]
    diagonal = np.arange(k) * (k + 1)

    def macro(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        table = sums.reshape(len(sums), k, k)
        total = table.sum(axis=1) + table.sum(axis=2)
        f1 = np.divide(2 * sums[:, diagonal], total, out=np.full(total.shape, np.nan), where=total > 0)
        return np.asarray(np.nanmean(f1, axis=1))

    value = float(macro(cells.weight.reshape(1, -1))[0])
    if cells.clusters is not None:
        draws = [macro(batch) for batch in cells.clusters.resampled(replicates, rng)]
    else:
        moments = CellMoments(cells.count.ravel(), cells.weight.ravel(), cells.square.ravel())
        draws = [macro(batch) for _, batch in resampled_weights(moments, replicates, rng)]
    low, high = percentile_interval(np.concatenate(draws))
    interval = _bootstrap_interval(value, low, high)
    if interval is None:  # every row of each class is treated alike: each class by itself
        classes = np.eye(k, dtype=bool)
        occurs = np.flatnonzero(cells.count[0].sum(axis=0) + cells.count[0].sum(axis=1))
        pairs = [(classes[c][:, None], classes[c][None, :]) for c in occurs]
        per_class = [_f1(cell_rate(cells, y & predicted, y | predicted)) for y, predicted in pairs]
        half = np.sqrt(sum((v - i.low) ** 2 for v, i in per_class if i is not None)) / max(len(per_class), 1)
        above = np.sqrt(sum((i.high - v) ** 2 for v, i in per_class if i is not None)) / max(len(per_class), 1)
        interval = Interval(max(value - float(half), 0.0), min(value + float(above), 1.0), method="MOVER, Wilson")
    return value, interval


def _one_vs_rest(subject: Subject, rng: np.random.Generator) -> tuple[Area, int]:
    """Return the area of the rows drawn at random, and how many there are: their scores are sorted class by class."""
    sample = subject.row_sample
    assert sample.score is not None
    sample = sample.sample(max(_AREA_CELLS // sample.score.shape[1], 1000), int(rng.integers(2**31)))
    assert sample.score is not None
    return area_under_curve(sample.score, sample.y, Rows.of(sample)), len(sample)


def _rate_metric(name: str, rate: Rate, text: str) -> Metric:
    return Metric(name, rate.value, rate.interval if rate.n else None, rate.n, text)


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


def _accuracy_skill(subject: Subject, sums: PerformanceSums, replicates: int, rng: np.random.Generator) -> Skill:
    """Compare with always saying the most common class, row by row."""
    cells = sums.cells
    k = cells.count.shape[1]
    if subject.train is not None and (subject.train.y >= 0).any():
        common = int(np.bincount(subject.train.y[subject.train.y >= 0].astype(np.int64), minlength=k).argmax())
    else:
        common = int(cells.weight[0].sum(axis=1).argmax())
    everything = np.ones((k, k), dtype=bool)
    model, trivial = np.eye(k, dtype=bool), everything & (np.arange(k) == common)[:, None]
    answer = f"always saying {subject.class_names[common]!r}"
    right, base = cell_rate(cells, model), cell_rate(cells, trivial)
    if base.value >= 1:
        return Skill("most_common_class", answer, "accuracy", right.value, base.value, float("nan"), None)
    value = 1 - (1 - right.value) / (1 - base.value)
    if not np.delete(sums.table, common, axis=1).any():
        interval: Interval | None = Interval(0.0, 0.0, method="the same answers")
    else:
        wrong = [RateSpec("model", ~model, everything), RateSpec("trivial", ~trivial, everything)]
        draws = cells.bootstrap(wrong, replicates, rng)[:, :, -1]
        low, high = percentile_interval(1 - draws[:, 0] / np.where(draws[:, 1] > 0, draws[:, 1], np.nan))
        interval = _bootstrap_interval(value, low, high)
    if interval is None:
        mine, other = cell_rate(cells, model & ~trivial), cell_rate(cells, trivial & ~model)
        interval = _paired_interval(mine, other, 1 - base.value)
    return Skill("most_common_class", answer, "accuracy", right.value, base.value, value, interval)


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
) -> Skill:
    if base <= 0:
        return Skill(name, trivial, measure, float(loss), float(base), float("nan"), None)
    draws = 1 - losses / np.where(bases > 0, bases, np.nan)
    low, high = percentile_interval(draws)
    value = float(1 - loss / base)
    interval = _bootstrap_interval(value, low, high)
    if interval is None and np.isfinite(low) and abs(value - float(low)) < 1e-9:
        interval = Interval(value, value, method="percentile bootstrap")  # the same in every resample: no row differs
    return Skill(name, trivial, measure, float(loss), float(base), value, interval)
