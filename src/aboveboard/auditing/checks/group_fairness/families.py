"""The numbers of the check: for each metric and partition, how far every group lies from everybody."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard._stats.bootstrap import percentile_interval
from aboveboard._stats.cells import accuracy, one_vs_rest
from aboveboard._stats.deviations import DRAWS, Deviations, rate_deviations
from aboveboard._stats.mean_deviations import gap_deviations, mean_deviations
from aboveboard.auditing.checks.group_fairness.partitions import Partition, partitions, people, withhold
from aboveboard.auditing.checks.group_fairness.sums import FairnessSums
from aboveboard.auditing.disclosure import Withheld
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort

__all__ = ["METRICS", "Centre", "Family", "Member", "Metric", "State", "families"]

State = Literal["beyond", "within", "unclear", "absent", "alone", "reference"]
Block = Literal["all", "confusion"]
Unit = Literal["points", "deviations", "relative"]

_REPLICATES: Final[dict[str, int]] = {"quick": 500, "standard": 1000, "full": 4000}
_MOST_CLASSES: Final = 10  # with more, only the accuracy of a multiclass model is looked at
_LEVEL: Final = 0.95


@dataclass(frozen=True)
class Metric:
    """One thing that is compared between groups.

    Parameters
    ----------
    name : str
        Also the name of its limit.
    title : str
    noun : str
        What it is, as the subject of a sentence; ``{positive}`` stands for the positive class (or the class at hand).
    base : str
        Whom it describes.
    unit : {"points", "deviations", "relative"}
        Values are fractions and differences are in points; in standard deviations of the target; or relative to the
        figure of everybody, which is 1.
    block : {"all", "confusion"}
        Metrics of one block are withheld together, because each follows from the others.
    remedy : str
        Method that repairs it, for binary tasks.
    """

    name: str
    title: str
    noun: str
    base: str
    unit: Unit = "points"
    block: Block = "all"
    remedy: str = ""


METRICS: Final[dict[str, Metric]] = {
    metric.name: metric
    for metric in (
        Metric(
            "selection_rate",
            "Selection rate",
            "the share predicted {positive}",
            "everybody in the group",
            remedy="RandomizedFairClassifier",
        ),
        Metric(
            "true_positive_rate",
            "True positive rate",
            "the share recognised among those who are {positive}",
            "those who are {positive}",
            block="confusion",
            remedy="RandomizedFairClassifier",
        ),
        Metric(
            "false_positive_rate",
            "False positive rate",
            "the share wrongly predicted {positive} among those who are not",
            "those who are not {positive}",
            block="confusion",
            remedy="RandomizedFairClassifier",
        ),
        Metric(
            "precision",
            "Precision",
            "the share that is right among those predicted {positive}",
            "those predicted {positive}",
            block="confusion",
        ),
        Metric("accuracy", "Accuracy", "the share of right predictions", "everybody in the group"),
        Metric("calibration_gap", "Calibration gap", "mean score minus observed rate", "everybody in the group"),
        Metric(
            "mean_error",
            "Mean error",
            "the mean of prediction minus truth",
            "everybody in the group",
            unit="deviations",
        ),
        Metric(
            "mean_absolute_error",
            "Mean absolute error",
            "the mean absolute error",
            "everybody in the group",
            unit="relative",
        ),
    )
}
"""Every metric, by name."""


@dataclass(frozen=True)
class Member:
    """One group in a family (one group and class, for several classes).

    Attributes
    ----------
    group : str
        Label, such as ``"sex=Female"``.
    klass : str
        The class at hand; empty where there is no choice.
    n : int
        Rows that the figure rests on.
    value, low, high : float
        The group's own figure with its interval; NaN where it does not exist.
    deviation, deviation_low, deviation_high : float
    state : State
    withheld : {"", "small", "complementary"}
    """

    group: str
    klass: str
    n: int
    value: float
    low: float
    high: float
    deviation: float
    deviation_low: float
    deviation_high: float
    state: State
    withheld: Literal["", "small", "complementary"]

    @property
    def shown(self) -> bool:
        return not self.withheld


@dataclass(frozen=True)
class Centre:
    """What groups are compared with: everybody, or the reference group."""

    klass: str
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Family:
    """One metric over the groups of one partition: what one verdict is about.

    Attributes
    ----------
    metric : Metric
    partition : Partition
    limit : float
    members : list of Member
    centres : list of Centre
        One per class.
    n : int
        Rows that the family rests on.
    hidden : str
        Why nothing of it may be shown; empty where it may.
    spread : tuple of float or None
        Largest minus smallest shown value, with the ends of its interval (NaN where there is none).
    scale : str
        What a value of 1 is, where values are scaled.
    """

    metric: Metric
    partition: Partition
    limit: float
    members: list[Member]
    centres: list[Centre]
    n: int
    hidden: str = ""
    spread: tuple[float, float, float] | None = None
    scale: str = ""


@dataclass
class _Decided:
    """What was decided about withholding the groups of the single columns, by block."""

    by_block: dict[Block, dict[str, Withheld]] = field(default_factory=lambda: {"all": {}, "confusion": {}})


def families(
    subject: Subject, sums: FairnessSums, *, random_state: int, effort: Effort
) -> tuple[list[Family], list[str]]:
    """Return all families, partition after partition, and what was left out, as sentences.

    Notes
    -----
    O(groups) time, whatever the number of rows.
    """
    keys = {columns: split.keys for columns, split in sums.splits.items()}
    splits, left_out = partitions(subject.sensitive, subject.reference_groups, keys)
    measure = {"binary": _classified, "multiclass": _classified, "regression": _regressed}[subject.task]
    if subject.task == "multiclass" and len(subject.classes) > _MOST_CLASSES:
        left_out.append(
            f"Selection and true positive rates of the {len(subject.classes)} classes were not compared: that is done "
            f"for at most {_MOST_CLASSES} classes."
        )
    decided = _Decided()
    found: list[Family] = []
    for number, split in enumerate(splits):
        # a stream of its own, so that adding a column changes nothing in the others
        rng = np.random.default_rng([random_state, number])
        found += measure(subject, split, sums, decided, effort, rng)
    return found, left_out


def _classified(
    subject: Subject,
    split: Partition,
    sums: FairnessSums,
    decided: _Decided,
    effort: Effort,
    rng: np.random.Generator,
) -> Iterator[Family]:
    k = len(subject.classes)
    own = sums.splits[split.columns]
    cells = own.cells
    assert cells is not None
    everything = np.ones((k, k), dtype=bool)
    if k == 2:
        by_name = {name: [("", spec)] for name, spec in one_vs_rest(1, 2).items()}
    elif k <= _MOST_CLASSES:
        rates = [one_vs_rest(c, k) for c in range(k)]
        by_name = {
            name: [(subject.class_names[c], rates[c][name]) for c in range(k)]
            for name in ("selection_rate", "true_positive_rate")
        }
    else:
        by_name = {}
    by_name["accuracy"] = [("", accuracy(k))]

    heads = people(cells, everything)
    base = withhold(split, heads, subject.min_cell, None, decided.by_block["all"])
    bases = [spec.denominator for name, specs in by_name.items() for _, spec in specs if METRICS[name].block != "all"]
    kinds = np.stack([people(cells, mask) for mask in bases], axis=1) if bases else heads[:, None]
    confusion = withhold(split, kinds, subject.min_cell, base.all, decided.by_block["confusion"])
    # what is withheld only because the whole group is, stays complementary
    confusion = Withheld(confusion.small & ~base.complementary, confusion.complementary | base.complementary)
    if len(split.columns) == 1:
        decided.by_block["all"][split.name] = base
        decided.by_block["confusion"][split.name] = confusion

    normals = rng.standard_normal((DRAWS, len(split.labels)))
    specs = [spec for pairs in by_name.values() for _, spec in pairs]
    draws = cells.bootstrap(specs, _REPLICATES[effort], rng)
    place = 0
    for name, pairs in by_name.items():
        metric = METRICS[name]
        withheld = base if metric.block == "all" else confusion
        results = []
        for klass, spec in pairs:
            deviations = rate_deviations(
                cells.rate(spec), rng=rng, reference=split.reference, level=_LEVEL, family=len(pairs), normals=normals
            )
            results.append((klass, cells.rows(spec.denominator), people(cells, spec.denominator), deviations))
        shown_draws = draws[:, place : place + len(pairs), :-1][:, :, ~withheld.all]
        place += len(pairs)
        yield _family(subject, split, metric, withheld, results, _spread(results, withheld, shown_draws))
    scores = own.means.get("score")
    if scores is not None:
        gaps = gap_deviations(scores, rng=rng, reference=split.reference, level=_LEVEL, normals=normals)
        results = [("", cells.rows(everything), heads, gaps)]
        yield _family(subject, split, METRICS["calibration_gap"], base, results, _spread(results, base, None))


def _regressed(
    subject: Subject,
    split: Partition,
    sums: FairnessSums,
    decided: _Decided,
    effort: Effort,
    rng: np.random.Generator,
) -> Iterator[Family]:
    own = sums.splits[split.columns]
    heads_of = own.cells
    assert heads_of is not None
    assert sums.target is not None
    total = float(sums.target.weight.sum())
    mean, square = (float(sum_.sum()) / total for sum_ in (sums.target.value, sums.target.value_square))
    variance = square - mean**2
    deviation = float(np.sqrt(variance)) if variance > 1e-13 * square else 0.0  # less is rounding
    absolute = float(own.means["absolute"].value.sum()) / total
    everything = np.ones((1, 1), dtype=bool)
    heads = people(heads_of, everything)
    withheld = withhold(split, heads, subject.min_cell, None, decided.by_block["all"])
    if len(split.columns) == 1:
        decided.by_block["all"][split.name] = withheld
    for name, key, unit, scale in (
        ("mean_error", "error", deviation, f"the standard deviation of the target, {deviation:.4g}"),
        ("mean_absolute_error", "absolute", absolute, f"the error of everybody, {absolute:.4g}"),
    ):
        means = own.means[key].scaled(1 / (unit or 1.0))
        deviations = mean_deviations(
            means, rng=rng, reference=split.reference, level=_LEVEL, n_replicates=2 * _REPLICATES[effort]
        )
        results = [("", heads_of.rows(everything), heads, deviations)]
        spread = _spread(results, withheld, None)
        yield _family(subject, split, METRICS[name], withheld, results, spread, scale)


_Result = tuple[str, NDArray[np.float64], NDArray[np.float64], Deviations]


def _family(
    subject: Subject,
    split: Partition,
    metric: Metric,
    withheld: Withheld,
    results: list[_Result],
    spread: tuple[float, float, float] | None,
    scale: str = "",
) -> Family:
    limit = subject.limits[f"group_fairness.{metric.name}"].value
    total = max(int(rows.sum()) for _, rows, _, _ in results)
    hidden = ""
    if any(0 < heads.sum() < subject.min_cell for _, _, heads, _ in results):
        hidden = f"It rests on fewer than {subject.min_cell} people."
    elif split.reference is not None and withheld.all[split.reference]:
        hidden = f"The reference group {split.labels[split.reference]} must not be shown (smallest cell)."
    members = [
        _member(split, g, klass, int(rows[g]), deviations, withheld, limit)
        for klass, rows, _, deviations in results
        for g in range(len(split.labels))
    ]
    at = split.reference
    centres = [
        Centre(klass, int(rows.sum() if at is None else rows[at]), d.centre, d.centre_low, d.centre_high)
        for klass, rows, _, d in results
    ]
    return Family(metric, split, limit, members, centres, total, hidden, spread, scale)


def _member(split: Partition, g: int, klass: str, n: int, d: Deviations, withheld: Withheld, limit: float) -> Member:
    low, high = float(d.low[g]), float(d.high[g])
    state: State
    if split.reference == g:
        state = "reference"
    elif n == 0 or not np.isfinite(d.value[g]):
        state = "absent"
    elif not np.isfinite(d.deviation[g]):
        state = "alone"
    elif not np.isfinite(low):
        state = "unclear"
    elif low > limit or high < -limit:
        state = "beyond"
    elif low >= -limit and high <= limit:
        state = "within"
    else:
        state = "unclear"
    if withheld.small[g] and state in ("beyond", "within"):
        state = "unclear"
    return Member(
        group=split.labels[g],
        klass=klass,
        n=n,
        value=float(d.value[g]),
        low=float(d.value_low[g]),
        high=float(d.value_high[g]),
        deviation=float(d.deviation[g]),
        deviation_low=low,
        deviation_high=high,
        state=state,
        withheld="small" if withheld.small[g] else "complementary" if withheld.complementary[g] else "",
    )


def _spread(
    results: list[_Result], withheld: Withheld, draws: NDArray[np.float64] | None
) -> tuple[float, float, float] | None:
    """Return the largest difference between shown groups (over the classes), with a bootstrap interval."""
    values = np.stack([d.value[~withheld.all] for _, _, _, d in results])
    exists = np.isfinite(values)
    if (exists.sum(axis=1) < 2).all():
        return None
    widths = _widths(values)
    widest = int(np.nanargmax(widths))
    if draws is None:
        return float(widths[widest]), float("nan"), float("nan")
    low, high = percentile_interval(_widths(draws[:, widest, :]))
    return float(widths[widest]), float(low), float(high)


def _widths(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return largest minus smallest along the last axis, NaN where fewer than two exist."""
    exists = np.isfinite(values)
    top = np.where(exists, values, -np.inf).max(axis=-1)
    bottom = np.where(exists, values, np.inf).min(axis=-1)
    enough = exists.sum(axis=-1) >= 2
    return np.where(enough, np.where(enough, top, 0.0) - np.where(enough, bottom, 0.0), np.nan)
