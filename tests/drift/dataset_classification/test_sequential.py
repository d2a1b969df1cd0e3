"""The e-process: mean 1, seldom large, whatever one does; and fast where there is something to see."""

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

from aboveboard.core.errors import InputError
from aboveboard.drift import SequentialTwoSample


def null_runs(m, runs, rows, seed=0, batch=8):
    rng, largest, last = np.random.default_rng(seed), [], []
    for run in range(runs):
        watch = SequentialTwoSample(GaussianNB(), m=m, alpha=0.1, random_state=run)
        top = 1.0
        for _ in range(rows // batch):
            e = watch.update(rng.normal(size=(batch, 2)), rng.integers(m, size=batch))
            top = max(top, e)
        largest.append(top)
        last.append(watch.e_value_)
    return np.array(largest), np.array(last)


@pytest.mark.parametrize("m", [2, 3])
def test_without_a_difference_the_e_value_averages_one_and_seldom_reaches_its_limit(m):
    largest, last = null_runs(m, 60, 120)
    assert last.mean() <= 1.0 + 3 * last.std() / np.sqrt(len(last))
    assert np.mean(largest >= 10) <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / len(largest))


@pytest.mark.slow
def test_the_probability_of_ever_crying_wolf_is_at_most_alpha_over_two_thousand_streams():
    largest, last = null_runs(2, 2000, 160)
    assert np.mean(largest >= 10) <= 0.1 + 2 * np.sqrt(0.1 * 0.9 / 2000)
    assert last.mean() <= 1.0 + 3 * last.std() / np.sqrt(2000)


def test_each_factor_has_mean_one_when_the_source_is_drawn_by_a_fair_die():
    """Averaged over all sources that a row could have had, the e-value does not move."""
    rng, start = np.random.default_rng(0), SequentialTwoSample(GaussianNB(), m=3)
    start.update(rng.normal(size=(90, 2)) + np.repeat([0, 1, 2], 30)[:, None], np.repeat([0, 1, 2], 30))
    row, before = rng.normal(size=(1, 2)), start.e_value_
    proba = start._predicted(row)[0]
    after = [before * (0.5 + 1.5 * proba[source]) for source in range(3)]
    assert np.mean(after) == pytest.approx(before)


def test_a_difference_is_found():
    rng = np.random.default_rng(0)
    watch = SequentialTwoSample(alpha=0.01, random_state=0)
    watch.watch([rng.normal(size=(1000, 3)), rng.normal(0.8, size=(1000, 3))])
    assert watch.rejected_
    assert watch.e_value_ >= 100
    assert watch.p_value_ <= 0.01
    assert watch.n_seen_ < 500


def test_watching_ends_when_the_rows_do():
    rng = np.random.default_rng(0)
    watch = SequentialTwoSample(random_state=0).watch([rng.normal(size=(50, 1)), rng.normal(size=(50, 1))], most=60)
    assert not watch.rejected_
    assert watch.n_seen_ <= 60
    ended = SequentialTwoSample(random_state=0).watch([rng.normal(size=(9, 1)), rng.normal(size=(9, 1))])
    assert ended.n_seen_ < 18


def test_the_p_value_never_rises():
    rng, watch, seen = np.random.default_rng(0), SequentialTwoSample(random_state=0), []
    for _ in range(30):
        source = watch.next_source()
        watch.update(rng.normal(source, 1, size=(1, 2)), source)
        seen.append(watch.p_value_)
    assert seen == sorted(seen, reverse=True)


def test_data_frames_are_read_by_name_and_gaps_are_allowed():
    rng, watch = np.random.default_rng(0), SequentialTwoSample()
    frame = pd.DataFrame({"a": rng.normal(size=80), "b": np.where(rng.random(80) < 0.3, np.nan, 1.0)})
    watch.update(frame, rng.integers(2, size=80))
    before = watch.e_value_
    assert watch.update(frame[["b", "a"]].head(0), np.zeros(0, dtype=int)) == before
    assert np.isfinite(watch.update(frame[["b", "a"]], rng.integers(2, size=80)))


@pytest.mark.parametrize("bad", [{"m": 1}, {"m": True}, {"alpha": 0.0}, {"alpha": 1.0}, {"estimator": 3}])
def test_settings_that_cannot_be_used_are_refused(bad):
    with pytest.raises(InputError):
        SequentialTwoSample(**bad)


def test_rows_that_cannot_be_used_are_refused():
    watch = SequentialTwoSample()
    watch.update([[0.0, 1.0]], 0)
    for x, source, message in [
        ([[0.0, 1.0]], 2, "sources run"),
        ([[0.0, 1.0]], [0, 1], "1 rows"),
        ([[0.0, 1.0]], 0.5, "whole number"),
        ([[0.0]], 0, "columns"),
        ([0.0, 1.0], 0, "dimensions"),
        (pd.DataFrame({"x0": ["a"], "x1": ["b"]}), 0, "words"),
    ]:
        with pytest.raises(InputError, match=message):
            watch.update(x, source)
    with pytest.raises(InputError, match="m = 2"):
        watch.watch([[[0.0, 1.0]]])
    assert watch.n_seen_ == 1
