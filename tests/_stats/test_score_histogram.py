import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from aboveboard._stats.bootstrap import percentile_interval
from aboveboard._stats.score_histogram import STATISTICS, ScoreHistogram, score_grid


def _scores(n: int, seed: int = 0, digits: int | None = None):
    rng = np.random.default_rng(seed)
    score = rng.beta(0.7, 2.0, n)
    if digits is not None:
        score = score.round(digits)
    y = (rng.random(n) < score**1.2).astype(int)
    return score, y, rng.exponential(1.0, n) + 0.1


def _ece(score, y, weights, n_bins):
    total, error = weights.sum(), 0.0
    borders = np.linspace(0, 1, n_bins + 1)
    for k in range(n_bins):
        inside = (score > borders[k]) & (score <= borders[k + 1])
        if k == 0:
            inside |= score == 0
        if inside.any():
            error += abs((weights[inside] * (y[inside] - score[inside])).sum())
    return error / total


@pytest.mark.parametrize("weighted", [False, True])
def test_few_distinct_scores_give_the_values_of_scikit_learn_exactly(weighted):
    score, y, w = _scores(3000, digits=2)
    w = w if weighted else np.ones_like(w)
    h = ScoreHistogram.from_arrays(score, y, w if weighted else None)
    assert h.auc() == pytest.approx(roc_auc_score(y, score, sample_weight=w), abs=1e-12)
    assert h.average_precision() == pytest.approx(average_precision_score(y, score, sample_weight=w), abs=1e-12)
    assert h.brier() == pytest.approx(brier_score_loss(y, score, sample_weight=w), abs=1e-12)
    assert h.log_loss() == pytest.approx(log_loss(y, score, sample_weight=w), abs=1e-12)
    for n_bins in (5, 7, 10, 15):
        assert h.ece(n_bins) == pytest.approx(_ece(score, y, w, n_bins), abs=1e-12)
    assert h.auc_resolution() == 0.0


def test_many_distinct_scores_move_the_auc_by_less_than_its_resolution_and_nothing_else():
    score, y, w = _scores(50_000)
    h = ScoreHistogram.from_arrays(score, y, w)
    exact = roc_auc_score(y, score, sample_weight=w)
    assert abs(h.auc() - exact) <= h.auc_resolution() < 1e-3
    assert h.auc() == pytest.approx(exact, abs=2e-5)
    assert h.brier() == pytest.approx(brier_score_loss(y, score, sample_weight=w), abs=1e-12)
    assert h.log_loss() == pytest.approx(log_loss(y, score, sample_weight=w), abs=1e-12)
    for n_bins in (2, 5, 10, 15, 20):
        assert h.ece(n_bins) == pytest.approx(_ece(score, y, w, n_bins), abs=1e-12)


def test_the_fixed_grid_tells_rare_scores_apart():
    rng = np.random.default_rng(3)
    score = np.exp(rng.normal(-9, 1.5, 40_000)).clip(0, 1)
    y = (rng.random(40_000) < np.minimum(200 * score, 1)).astype(int)
    h = ScoreHistogram.from_arrays(score, y, edges=score_grid())
    assert h.auc() == pytest.approx(roc_auc_score(y, score), abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 60), st.integers(0, 60), st.booleans())
def test_histograms_of_partitions_add_up_to_the_whole(seed, n, m, clustered):
    score, y, w = _scores(n + m, seed)
    rng = np.random.default_rng(seed)
    group, person = rng.integers(0, 3, n + m), rng.integers(0, 9, n + m)

    def build(rows):
        return ScoreHistogram.from_arrays(
            score[rows], y[rows], w[rows], group=group[rows], n_groups=3, edges=score_grid(40),
            clusters=person[rows] if clustered else None,
        )  # fmt: skip

    whole = build(slice(None))
    parts = pickle.loads(pickle.dumps(build(slice(0, n)))) + build(slice(n, None))
    for name in ("count", "weight", "square", "score", "score_square", "loss", "loss_square", "loss_weight"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12, atol=1e-12)
    if clustered:
        np.testing.assert_array_equal(parts.clusters.ids, whole.clusters.ids)
        np.testing.assert_allclose(parts.clusters.matrix.toarray(), whole.clusters.matrix.toarray(), rtol=1e-12)


def test_groups_have_the_values_of_their_own_rows_and_pool_to_those_of_all():
    score, y, w = _scores(4000, digits=2)
    group = np.random.default_rng(1).integers(0, 3, 4000)
    clusters = np.arange(4000) // 2
    h = ScoreHistogram.from_arrays(score, y, w, group=group, clusters=clusters)
    for g in range(3):
        rows = group == g
        assert h.auc()[g] == pytest.approx(roc_auc_score(y[rows], score[rows], sample_weight=w[rows]))
        assert h.ece()[g] == pytest.approx(_ece(score[rows], y[rows], w[rows], 15))
    whole = ScoreHistogram.from_arrays(score, y, w, clusters=clusters)
    assert h.pooled().log_loss() == pytest.approx(whole.log_loss())
    np.testing.assert_allclose(h.pooled().clusters.matrix.toarray(), whole.clusters.matrix.toarray())


@pytest.mark.parametrize("weighted", [False, True])
def test_standard_errors_are_those_of_resampling_rows(weighted):
    score, y, w = _scores(800)
    h = ScoreHistogram.from_arrays(score, y, w if weighted else None)
    names = ["auc", "ece", "brier", "log_loss", "calibration_gap", "average_precision"]
    draws = h.bootstrap(names, 2000, np.random.default_rng(0))
    rng, rows = np.random.default_rng(1), []
    for _ in range(400):
        i = rng.integers(0, 800, 800)
        v = w[i] if weighted else np.ones(800)
        one = (
            roc_auc_score(y[i], score[i], sample_weight=v),
            _ece(score[i], y[i], v, 15),
            brier_score_loss(y[i], score[i], sample_weight=v),
            log_loss(y[i], score[i], sample_weight=v),
            np.average(score[i] - y[i], weights=v),
            average_precision_score(y[i], score[i], sample_weight=v),
        )
        rows.append(one)
    # the sd of 400 draws is known to 3.5 %; four of those, and 2 % for the normal approximation
    np.testing.assert_allclose(draws.std(axis=0), np.std(rows, axis=0), rtol=0.16)
    np.testing.assert_allclose(draws.mean(axis=0), np.mean(rows, axis=0), atol=0.2 * np.std(rows, axis=0).max())


def test_the_delong_standard_error_is_met():
    score, y, _ = _scores(5000, 7)
    h = ScoreHistogram.from_arrays(score, y)
    pos, neg = score[y == 1], score[y == 0]
    above = (pos[:, None] > neg).mean(axis=1), (pos[:, None] > neg).mean(axis=0)
    delong = np.sqrt(above[0].var(ddof=1) / len(pos) + above[1].var(ddof=1) / len(neg))
    draws = h.bootstrap(["auc"], 2000, np.random.default_rng(0))[:, 0]
    assert draws.std() == pytest.approx(delong, rel=0.08)


def test_repeating_each_row_ten_times_as_a_cluster_does_not_narrow_the_interval():
    score, y, _ = _scores(1500, 2)
    single = ScoreHistogram.from_arrays(score, y).bootstrap(["auc"], 1000, np.random.default_rng(0))
    repeated = ScoreHistogram.from_arrays(
        np.repeat(score, 10), np.repeat(y, 10), clusters=np.repeat(np.arange(1500), 10)
    ).bootstrap(["auc"], 1000, np.random.default_rng(1))
    assert repeated.std() == pytest.approx(single.std(), rel=0.12)


def test_a_calibrated_model_lies_within_its_null_distribution():
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    null = ScoreHistogram.from_arrays(score, (rng.random(4000) < score).astype(int)).ece_if_calibrated(1000, rng)
    observed = [
        ScoreHistogram.from_arrays(score, (rng.random(4000) < score).astype(int)).ece() for _ in range(200)
    ]  # fmt: skip
    assert np.mean(observed) == pytest.approx(null.mean(), rel=0.06)


def test_what_does_not_exist_is_nan():
    h = ScoreHistogram.from_arrays([0.2, 0.4], [0, 0])
    assert np.isnan(h.auc())
    assert np.isnan(h.average_precision())
    assert h.ece() == pytest.approx(0.3)
    draws = h.bootstrap(["auc", "brier"], 50, np.random.default_rng(0))
    low, high = percentile_interval(draws)
    assert np.isnan(low[0])
    assert low[1] <= h.brier() <= high[1]
    empty = ScoreHistogram.from_arrays([], [], group=[], n_groups=2)
    assert np.isnan(empty.brier()).all()


def test_the_same_seed_gives_the_same_draws():
    score, y, w = _scores(500)
    h = ScoreHistogram.from_arrays(score, y, w, group=np.arange(500) % 2)
    a = h.bootstrap(list(STATISTICS), 30, np.random.default_rng(5))
    b = h.bootstrap(list(STATISTICS), 30, np.random.default_rng(5))
    np.testing.assert_array_equal(a, b)
    assert a.shape == (30, len(STATISTICS), 2)


def test_the_reliability_curve_has_the_rates_of_its_bins():
    score, y, w = _scores(2000)
    curve = ScoreHistogram.from_arrays(score, y, w).reliability(10)
    for k in range(len(curve.low)):
        inside = (score > curve.low[k]) & (score <= curve.high[k])
        assert curve.n[k] == inside.sum()
        assert curve.mean_score[k] == pytest.approx(np.average(score[inside], weights=w[inside]))
        assert curve.observed_rate[k] == pytest.approx(np.average(y[inside], weights=w[inside]))
        assert curve.effective_n[k] == pytest.approx(w[inside].sum() ** 2 / (w[inside] ** 2).sum())


@pytest.mark.parametrize(
    ("score", "y", "message"),
    [([0.1, 1.2], [0, 1], "lie in"), ([0.1, np.nan], [0, 1], "lie in"), ([0.1], [0, 1], "equally long"),
     ([0.1, 0.2], [0, 2], "0 or 1")],
)  # fmt: skip
def test_bad_input_is_refused(score, y, message):
    with pytest.raises(ValueError, match=message):
        ScoreHistogram.from_arrays(score, y)


def test_histograms_with_other_edges_do_not_add_up():
    with pytest.raises(ValueError, match="same edges"):
        ScoreHistogram.from_arrays([0.1], [0]) + ScoreHistogram.from_arrays([0.2], [0])
