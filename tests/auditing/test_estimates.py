import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from aboveboard.auditing.estimates import Rows, area_under_curve, count_text


def test_a_plain_rate_has_the_wilson_interval():
    hit = np.arange(50) < 7
    rate = Rows(50).rate(hit)
    expected = stats.binomtest(7, 50).proportion_ci(method="wilson")
    assert (rate.interval.low, rate.interval.high) == pytest.approx((expected.low, expected.high))
    assert (rate.value, rate.n, rate.effective_n) == (7 / 50, 50, 50)


def test_constant_weights_change_nothing():
    hit = np.arange(60) % 3 == 0
    plain, weighted = Rows(60).rate(hit), Rows(60, np.full(60, 2.5)).rate(hit)
    assert weighted.value == pytest.approx(plain.value)
    assert weighted.interval.low == pytest.approx(plain.interval.low)


def test_a_row_repeated_within_its_cluster_adds_no_certainty():
    rng = np.random.default_rng(0)
    hit = rng.random(300) < 0.3
    once = Rows(300).rate(hit)
    thrice = Rows(900, cluster=np.repeat(np.arange(300), 3)).rate(np.repeat(hit, 3))
    assert thrice.value == once.value
    assert thrice.interval.high - thrice.interval.low == pytest.approx(once.interval.high - once.interval.low, rel=0.02)


def test_no_rows_give_the_interval_that_says_nothing():
    rate = Rows(3).rate(np.ones(3, bool), np.zeros(3, bool))
    assert np.isnan(rate.value)
    assert (rate.interval.low, rate.interval.high) == (0, 1)


@pytest.mark.parametrize("n", [500, 5000])
def test_block_bootstrap_of_a_mean_has_its_standard_error(n):
    rng = np.random.default_rng(n)
    values, weight = rng.exponential(size=n), rng.uniform(0.5, 2, n)
    means, draws = Rows(n, weight).means(values[:, None], 4000, rng)
    mean = np.average(values, weights=weight)
    error = np.sqrt((weight**2 * (values - mean) ** 2).sum()) / weight.sum()
    assert means[0] == pytest.approx(mean)
    assert draws.std() == pytest.approx(error, rel=0.06)


def test_cluster_bootstrap_of_a_mean_sees_that_rows_of_a_cluster_are_alike():
    rng = np.random.default_rng(0)
    level = rng.normal(size=400)
    cluster = np.repeat(np.arange(400), 5)
    _, draws = Rows(2000, cluster=cluster).means(level[cluster][:, None], 4000, rng)
    assert draws.std() == pytest.approx(level.std() / 20, rel=0.06)


@pytest.mark.parametrize("weighted", [False, True])
def test_area_agrees_with_scikit_learn(weighted):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    score = np.round(rng.normal(y, 1.5), 1)
    weight = rng.uniform(0.2, 3, 400) if weighted else None
    assert area_under_curve(score, y, Rows(400, weight)).value == pytest.approx(
        roc_auc_score(y, score, sample_weight=weight)
    )


def test_several_classes_give_the_mean_of_one_against_the_rest():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    score = rng.dirichlet(np.ones(3), 600) + np.eye(3)[y] * 0.3
    score /= score.sum(axis=1, keepdims=True)
    assert area_under_curve(score, y, Rows(600)).value == pytest.approx(
        roc_auc_score(y, score, multi_class="ovr", average="macro")
    )


def test_standard_error_of_an_area_is_that_of_delong():
    rng = np.random.default_rng(3)
    y = (np.arange(300) < 120).astype(int)
    score = rng.normal(y, 1)
    pos, neg = score[y == 1], score[y == 0]
    wins = (pos[:, None] > neg[None, :]) + 0.5 * (pos[:, None] == neg[None, :])
    delong = wins.mean(axis=1).var(ddof=1) / len(pos) + wins.mean(axis=0).var(ddof=1) / len(neg)
    assert area_under_curve(score, y, Rows(300)).error == pytest.approx(np.sqrt(delong), rel=0.01)


def test_intervals_of_an_area_cover_it_as_often_as_they_claim():
    rng = np.random.default_rng(0)
    truth = stats.norm.cdf(1 / np.sqrt(2))
    hits = 0
    for _ in range(2000):
        y = np.repeat([0, 1], [60, 40])
        interval = area_under_curve(rng.normal(y, 1), y, Rows(100)).interval
        hits += interval.low <= truth <= interval.high
    assert 0.93 <= hits / 2000 <= 0.97


def test_perfect_order_has_an_interval_that_leaves_room():
    interval = area_under_curve(np.arange(40.0), np.repeat([0, 1], [30, 10]), Rows(40)).interval
    assert interval.high == 1
    assert 0.6 < interval.low < 0.8


def test_a_small_count_is_not_told():
    assert count_text(3, 10) == "fewer than 10 rows"
    assert count_text(0, 10) == "0 rows"
    assert count_text(1234, 10) == "1,234 rows"
