"""How far each group's mean lies from everybody's: errors of a regression, and the calibration gap of scores.

`mean_deviations` is a studentised bootstrap over bins of the values (or over clusters), with the critical value of the
largest deviation. `gap_deviations` compares the mean score with the observed rate: it combines Wilson's interval of
the rate with that of the mean score, so that a group in which nothing was observed still has an honest interval.
Both return the `Deviations` of `aboveboard._stats.deviations`.

References
----------
P. Hall, "On the bootstrap and confidence intervals", Annals of Statistics 14, 1986 (studentising).
G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures", Statistics in Medicine 27, 2008.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from aboveboard._stats.bootstrap import CellMoments, ClusterCells, max_t_critical, resampled_weights
from aboveboard._stats.cells import GroupMeans
from aboveboard._stats.deviations import WIDER, ClusterGrams, Deviations, max_t_normal, positive, ratio
from aboveboard._stats.intervals import critical_z, kish, mover, outer_interval, weighted_n, wilson

__all__ = ["gap_deviations", "mean_deviations"]

Floats = NDArray[np.float64]

_LEAST: Final = 5  # fewer rows (or clusters) than that do not know their own spread


class _Moments(NamedTuple):
    """Sums per group (last axis): of weights, of values, and of squares and products over independent units.

    `own_*` are sums of squares of a unit's own value and weight, `cross_*` their products with the unit's value and
    weight in everybody (or the reference group), `all_*` the squares of the latter.
    """

    weight: Floats
    value: Floats
    own_vv: Floats
    own_vw: Floats
    own_ww: Floats
    cross_vv: Floats
    cross_vw: Floats
    cross_wv: Floats
    cross_ww: Floats
    all_vv: Floats
    all_vw: Floats
    all_ww: Floats


def mean_deviations(
    means: GroupMeans,
    *,
    rng: np.random.Generator,
    reference: int | None = None,
    level: float = 0.95,
    n_replicates: int = 2000,
) -> Deviations:
    """Compare each group's mean with that of everybody, or of one group.

    Parameters
    ----------
    means : GroupMeans
        With clusters where rows belong together: then clusters are resampled.
    rng : numpy.random.Generator
    reference : int, optional
    level : float
    n_replicates : int

    Returns
    -------
    Deviations
        No interval (NaN) for a group of fewer than 5 rows or clusters, or whose values are all the same.

    Notes
    -----
    O(replicates x groups x bins) time; with clusters O(replicates x nonempty cluster x group cells).
    """
    if means.cluster_weight is not None and means.cluster_value is not None:
        units = _cluster_units(means.cluster_weight, means.cluster_value, reference)
        observed = _from_units(np.asarray(units.matrix.sum(axis=0))[0][None, :], len(means.count))
        unit_count = np.asarray((means.cluster_weight.matrix > 0).sum(axis=0)).ravel()
        batches = (_from_units(sums, len(means.count)) for sums in units.resampled(n_replicates, rng))
    else:
        observed = _from_rows(*(_row_sums(means)[:, None]), reference=reference)
        unit_count = means.rows
        batches = (_from_rows(*sums, reference=reference) for sums in _resampled_rows(means, n_replicates, rng))
    mean, error, deviation, deviation_error = (a[0] for a in _studentised(observed, reference))
    own_t, deviation_t = [], []
    for moments in batches:
        replicate = _studentised(moments, reference)
        own_t.append(ratio_signed(replicate[0] - mean, replicate[1]))
        deviation_t.append(ratio_signed(replicate[2] - deviation, replicate[3]))
    own_draws, deviation_draws = np.concatenate(own_t), np.concatenate(deviation_t)

    known = (unit_count >= _LEAST) & (error > 0)
    compared = known & (deviation_error > 0)
    if reference is not None:
        compared[reference] = False
        compared &= known[reference]
    critical = max_t_critical(deviation_draws[:, compared], level)
    single = np.array([max_t_critical(own_draws[:, [g]], level) for g in range(len(mean))])
    if reference is None:
        everybody = _everybody(means, level)
    else:
        r = reference
        everybody = (mean[r], mean[r] - single[r] * error[r], mean[r] + single[r] * error[r])
        deviation = np.where(np.arange(len(mean)) == r, 0.0, deviation)
    return Deviations(
        value=mean,
        value_low=np.where(known, mean - single * error, np.nan),
        value_high=np.where(known, mean + single * error, np.nan),
        effective_n=kish(means.weight.sum(axis=1), means.square.sum(axis=1)),
        centre=float(everybody[0]),
        centre_low=float(everybody[1]),
        centre_high=float(everybody[2]),
        deviation=deviation,
        low=np.where(compared, deviation - critical * deviation_error, np.nan),
        high=np.where(compared, deviation + critical * deviation_error, np.nan),
        critical=critical,
    )


def gap_deviations(
    scores: GroupMeans,
    *,
    rng: np.random.Generator,
    reference: int | None = None,
    level: float = 0.95,
    normals: Floats | None = None,
) -> Deviations:
    """Compare each group's calibration gap, mean score minus observed rate, with that of everybody or of one group.

    Parameters
    ----------
    scores : GroupMeans of 2 x groups groups
        The scores of the rows with label 0 and with label 1 of each group: group code ``2 g + label``. Bins are not
        used (``edges=[]`` will do).
    rng, reference, level, normals
        As for `aboveboard._stats.deviations.rate_deviations`.

    Returns
    -------
    Deviations

    Notes
    -----
    O(draws x groups) time.
    """
    members = len(scores.count) // 2
    own_columns = np.eye(members)
    other_columns = 1.0 - own_columns if reference is None else np.tile(own_columns[reference], (members, 1))
    all_column = np.ones((1, members))
    grams = None
    if scores.cluster_weight is not None and scores.cluster_value is not None:
        weights, values = scores.cluster_weight.matrix.tocsc(), scores.cluster_value.matrix.tocsc()
        gap_sums = values[:, 0::2] + values[:, 1::2] - weights[:, 1::2]
        grams = ClusterGrams(gap_sums.tocsr(), (weights[:, 0::2] + weights[:, 1::2]).tocsr())
    own = _Gaps(scores, own_columns, grams, level)
    other = _Gaps(scores, other_columns, grams, level)
    everybody = _Gaps(scores, all_column, grams, level)

    compared = (own.total > 0) & (other.total > 0)
    if reference is not None:
        compared[reference] = False
    correlation = np.zeros(members)
    covariance = own.variance
    if grams is not None:
        shared = grams.covariance(own_columns, own.gap, other_columns, other.gap)
        shared /= positive(own.total) * positive(other.total)
        correlation = np.clip(
            np.nan_to_num(ratio(shared, np.sqrt(own.cluster_variance * other.cluster_variance))), -1, 1
        )
        matrix = grams.matrix(np.nan_to_num(own.gap))
        spread = np.sqrt(positive(np.diagonal(matrix)))
        covariance = matrix / np.outer(spread, spread) * np.sqrt(np.outer(own.variance, own.variance))
    critical = max_t_normal(covariance, own.total, compared, level=level, rng=rng, reference=reference, normals=normals)
    critical *= WIDER
    low, high = mover(
        own.gap,
        own.interval(critical, outer_interval),
        other.gap,
        other.interval(critical, outer_interval),
        correlation=correlation,
    )
    difference = own.gap - other.gap
    kept = np.ones(members)
    if reference is None:
        share = own.total / own.total.sum()
        kept = 1.0 - share
        moved = (critical * difference) ** 2 * share / positive(kept) / float(everybody.n[0])
        low = difference - np.sqrt((difference - low) ** 2 + moved)
        high = difference + np.sqrt((high - difference) ** 2 + moved)
    deviation = np.where(compared, kept * difference, np.nan)
    if reference is not None and own.total[reference] > 0:
        deviation[reference] = 0.0
    own_low, own_high = own.interval(critical_z(level))
    exists = own.total > 0
    centre, at = (everybody, 0) if reference is None else (own, reference)
    centre_low, centre_high = centre.interval(critical_z(level))
    return Deviations(
        value=own.gap,
        value_low=np.where(exists, own_low, np.nan),
        value_high=np.where(exists, own_high, np.nan),
        effective_n=own.n,
        centre=float(centre.gap[at]),
        centre_low=float(centre_low[at]),
        centre_high=float(centre_high[at]),
        deviation=deviation,
        low=np.where(compared, kept * low, np.nan),
        high=np.where(compared, kept * high, np.nan),
        critical=critical,
    )


class _Gaps:
    """Mean score minus observed rate of sets of groups, one set per row of `columns`."""

    def __init__(self, scores: GroupMeans, columns: Floats, grams: ClusterGrams | None, level: float) -> None:
        def by_label(name: str) -> tuple[Floats, Floats]:
            sums = getattr(scores, name).sum(axis=1)
            return columns @ sums[0::2], columns @ sums[1::2]

        (w0, w1), (q0, q1) = by_label("weight"), by_label("square")
        (s0, s1), (qs0, qs1), (qss0, qss1) = (by_label(n) for n in ("value", "square_value", "square_value_square"))
        self.total = w0 + w1
        self.rate = ratio(w1, self.total)
        self.score = ratio(s0 + s1, self.total)
        self.gap = self.score - self.rate
        n = weighted_n(w1, w0, q1, q0)
        rate, score = np.nan_to_num(self.rate), np.nan_to_num(self.score)
        square = positive(self.total) ** 2
        score_variance = np.maximum(qss0 + qss1 - 2 * score * (qs0 + qs1) + score**2 * (q0 + q1), 0.0) / square
        covariance = ((qs1 - score * q1) * (1 - rate) - (qs0 - score * q0) * rate) / square
        rate_variance = rate * (1 - rate) / positive(n)
        self.correlation = np.clip(np.nan_to_num(ratio(covariance, np.sqrt(score_variance * rate_variance))), -1, 1)
        degrees = np.maximum(n - 1.0, 1.0)
        if grams is not None:
            apart = score_variance + rate_variance - 2 * covariance
            clusters = grams.clusters(columns)
            self.cluster_variance = np.maximum(grams.covariance(columns, self.gap, columns, self.gap) / square, 0.0)
            effect = np.where(apart > 0, np.maximum(self.cluster_variance / positive(apart), 1.0), 1.0)
            effect = np.where(self.cluster_variance > 0, effect, np.maximum(n / positive(clusters), 1.0))
            degrees = np.maximum(np.minimum(degrees, clusters - 1.0), 1.0)
            n = n / effect / (stats.t.ppf(0.5 + level / 2, degrees) / critical_z(level)) ** 2
            score_variance = score_variance * effect
        self.n = n
        # Student's quantile for the spread of few scores
        self.score_error = np.sqrt(score_variance) * stats.t.ppf(0.5 + level / 2, degrees) / critical_z(level)

    def interval(self, z: float, of_rate: Callable[..., tuple[Floats, Floats]] = wilson) -> tuple[Floats, Floats]:
        half = z * self.score_error
        rate_interval = of_rate(np.nan_to_num(self.rate) * self.n, self.n, z=z)
        return mover(
            self.score, (self.score - half, self.score + half), self.rate, rate_interval, correlation=self.correlation
        )

    @property
    def variance(self) -> Floats:
        low, high = self.interval(critical_z())
        return np.asarray(np.nan_to_num(((high - low) / (2 * critical_z())) ** 2))


def ratio_signed(numerator: Floats, denominator: Floats) -> Floats:
    """Return numerator / denominator, NaN where the denominator is not above 0 or the numerator does not exist."""
    return ratio(numerator, np.nan_to_num(denominator))


def _studentised(m: _Moments, reference: int | None) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, its standard error, deviation and its standard error, each of the shape of the moments."""
    mean = ratio(m.value, m.weight)
    if reference is None:
        total, sums = m.weight.sum(axis=-1, keepdims=True), m.value.sum(axis=-1, keepdims=True)
    else:
        total, sums = m.weight[..., [reference]], m.value[..., [reference]]
    centre = ratio(sums, total)
    own, all_of = positive(m.weight), positive(total)
    own_square = m.own_vv - 2 * mean * m.own_vw + mean**2 * m.own_ww
    crossed = m.cross_vv - centre * m.cross_vw - mean * m.cross_wv + mean * centre * m.cross_ww
    all_square = m.all_vv - 2 * centre * m.all_vw + centre**2 * m.all_ww
    variance = own_square / own**2
    apart = variance - 2 * crossed / (own * all_of) + all_square / all_of**2
    # what rounding leaves of equal values is no spread
    slack = 1e-13 * m.own_vv / own**2
    error = np.sqrt(np.where(variance > slack, variance, 0.0))
    deviation_error = np.sqrt(np.where(apart > 1e-13 * (m.all_vv / all_of**2), apart, 0.0))
    return mean, error, mean - centre, deviation_error


def _row_sums(means: GroupMeans) -> Floats:
    names = ("weight", "value", "square", "square_value", "square_value_square")
    return np.stack([getattr(means, name).sum(axis=1) for name in names])


def _from_rows(weight: Floats, value: Floats, ww: Floats, vw: Floats, vv: Floats, *, reference: int | None) -> _Moments:
    """Return the moments where rows are the units: each lies in one group."""
    if reference is None:
        cross = (vv, vw, vw, ww)
        everything = tuple(a.sum(axis=-1, keepdims=True) for a in (vv, vw, ww))
    else:
        none = np.zeros_like(ww)
        cross = (none, none, none, none)
        everything = tuple(a[..., [reference]] for a in (vv, vw, ww))
    return _Moments(weight, value, vv, vw, ww, *cross, *everything)


def _resampled_rows(
    means: GroupMeans, n_replicates: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, Floats, Floats, Floats, Floats]]:
    """Yield the row sums of resamples, each of shape (batch, groups)."""
    shape = means.count.shape
    n = np.maximum(means.count, 1.0)
    bin_mean = means.value / np.maximum(means.weight, np.finfo(float).tiny)
    within = means.square_value_square - 2 * bin_mean * means.square_value + bin_mean**2 * means.square
    within = np.where(within > 1e-12 * means.square_value_square, within, 0.0)  # less is rounding
    deviation = np.sqrt(within / n)
    moments = CellMoments(means.count.ravel(), means.weight.ravel(), means.square.ravel())
    for counts, weights in resampled_weights(moments, n_replicates, rng):
        k, w = counts.reshape(-1, *shape), weights.reshape(-1, *shape)
        noise = np.sqrt(k) * deviation * rng.standard_normal(k.shape)
        square = np.einsum("rgb,gb->rg", k, means.square / n)
        product = np.einsum("rgb,gb->rg", k, means.square_value / n)
        squares = np.einsum("rgb,gb->rg", k, means.square_value_square / n)
        yield w.sum(axis=2), (w * bin_mean + noise).sum(axis=2), square, product, squares


def _cluster_units(weights: ClusterCells, values: ClusterCells, reference: int | None) -> ClusterCells:
    """Return per cluster all that `_Moments` sums: squares and products of its weight and value in each group."""
    W, V = weights.matrix.tocsr(), values.matrix.tocsr()
    if reference is None:
        w_all, v_all = (sparse.csr_matrix(a.sum(axis=1)) for a in (W, V))
    else:
        w_all, v_all = W[:, [reference]], V[:, [reference]]
    one = [W, V, V.multiply(V), V.multiply(W), W.multiply(W)]
    crossed = [V.multiply(v_all), V.multiply(w_all), W.multiply(v_all), W.multiply(w_all)]
    everything = [v_all.multiply(v_all), v_all.multiply(w_all), w_all.multiply(w_all)]
    return ClusterCells(sparse.hstack([*one, *crossed, *everything]).tocsr(), weights.ids)


def _from_units(sums: Floats, groups: int) -> _Moments:
    per_group = [sums[:, i * groups : (i + 1) * groups] for i in range(9)]
    return _Moments(*per_group, *(sums[:, 9 * groups + i, None] for i in range(3)))


def _everybody(means: GroupMeans, level: float) -> tuple[float, float, float]:
    """Return the mean of all rows with a normal interval."""
    if means.cluster_weight is not None and means.cluster_value is not None:
        w = np.asarray(means.cluster_weight.matrix.sum(axis=1)).ravel()
        v = np.asarray(means.cluster_value.matrix.sum(axis=1)).ravel()
        mean = v.sum() / w.sum()
        variance, n = ((v - mean * w) ** 2).sum() / w.sum() ** 2, len(w)
    else:
        w, v, ww, vw, vv = _row_sums(means).sum(axis=1)
        mean = v / w
        variance, n = (vv - 2 * mean * vw + mean**2 * ww) / w**2, int(means.count.sum())
    half = float(stats.t.ppf(0.5 + level / 2, max(n - 1, 1)) * np.sqrt(max(variance, 0.0)))
    return float(mean), float(mean - half), float(mean + half)
