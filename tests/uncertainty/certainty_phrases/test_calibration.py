"""Facts about the calibration of phrases: the published figures, brute force over items, closed forms."""

from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from aboveboard.core import InputError
from aboveboard.uncertainty import PhraseVocabulary, phrase_calibration, truthfulqa_phrases

WORDS = PhraseVocabulary.from_beta({"surely": (9, 1), "likely": (7, 3), "maybe": (4, 6), "hardly": (1, 9)})


def _item_by_item(phrases, outcomes, parameters, n_bins):
    """The definition, with a loop over items and bins."""
    edges, error, brier = np.linspace(0, 1, n_bins + 1), 0.0, 0.0
    for low, high in pairwise(edges):
        weight = hits = confidence = 0.0
        for phrase, y in zip(phrases, outcomes):
            a, b = parameters[phrase]
            w = beta.cdf(high, a, b) - beta.cdf(low, a, b)
            weight, hits = weight + w, hits + w * y
            confidence += a / (a + b) * (beta.cdf(high, a + 1, b) - beta.cdf(low, a + 1, b))
        error += weight / len(phrases) * abs(hits / weight - confidence / weight)
    for phrase, y in zip(phrases, outcomes):
        mean, variance = beta.stats(*parameters[phrase])
        brier += (y * ((1 - mean) ** 2 + variance) + (1 - y) * (mean**2 + variance)) / len(phrases)
    return error, float(brier)


def test_the_published_figure_comes_out():
    phrases, correct, words = truthfulqa_phrases()
    found = phrase_calibration(phrases, correct, words, n_boot=400, random_state=0)
    assert (len(phrases), correct.sum()) == (817, 258)
    assert 0.278 <= found.ece <= 0.285  # the tutorial's bootstrap mean is 0.283
    assert found.ci.loc["ece", "mean"] == pytest.approx(0.283, abs=0.004)
    assert found.brier == pytest.approx(0.2918, abs=1e-4)
    assert found.counts["n"].sum() == 817


def test_counts_give_what_a_loop_over_items_gives():
    rng = np.random.default_rng(0)
    parameters = {"surely": (9, 1), "likely": (7, 3), "maybe": (4, 6)}
    phrases = rng.choice(list(parameters), size=60).tolist()
    outcomes = rng.random(60).round(3)
    found = phrase_calibration(phrases, outcomes, WORDS, n_bins=12)
    error, brier = _item_by_item(phrases, outcomes, parameters, 12)
    assert found.ece == pytest.approx(error, abs=1e-10)
    assert found.brier == pytest.approx(brier, abs=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8, unique=True), st.integers(1, 40), st.randoms())
def test_points_give_the_ordinary_binned_error(means, n_bins, random):
    words = PhraseVocabulary.from_points({f"p{i}": mean for i, mean in enumerate(means)})
    codes = [random.randrange(len(means)) for _ in range(40)]
    y = np.array([random.randrange(2) for _ in codes], dtype=float)
    confidence = words.mean[codes]
    place = np.maximum(np.searchsorted(np.linspace(0, 1, n_bins + 1), confidence, side="left") - 1, 0)
    ordinary = sum(
        (place == m).mean() * abs(y[place == m].mean() - confidence[place == m].mean()) for m in np.unique(place)
    )
    found = phrase_calibration([words.phrases[k] for k in codes], y, words, n_bins=n_bins)
    assert found.ece == pytest.approx(ordinary, abs=1e-12)
    assert found.brier == pytest.approx(((confidence - y) ** 2).mean(), abs=1e-12)


def test_points_that_come_true_as_often_as_they_say_have_no_error_in_the_long_run():
    words = PhraseVocabulary.from_points({"often": 0.7, "rarely": 0.2})
    errors = []
    for n in (1_000, 100_000):
        codes = np.arange(n) % 2
        y = np.random.default_rng(1).random(n) < words.mean[codes]
        errors.append(phrase_calibration([words.phrases[k] for k in codes], y, words).ece)
    assert errors[1] < 0.005
    assert phrase_calibration(["often", "rarely"] * 50, y[:100], words).floor == pytest.approx(0, abs=1e-12)


def test_one_vague_phrase_that_is_right_on_average_has_the_error_of_its_spread():
    # U does not know the outcome: in every bin half come true, so the error is the mean distance of U from one half.
    words = PhraseVocabulary.from_beta({"maybe": (5, 5)})
    found = phrase_calibration(["maybe"] * 100, [0, 1] * 50, words, n_bins=1000)
    u = np.random.default_rng(0).beta(5, 5, 1_000_000)
    assert found.ece == pytest.approx(np.abs(u - 0.5).mean(), abs=5e-4)
    assert found.floor == pytest.approx(found.ece)
    assert (found.resolution, found.entropy) == (0, 0)


def test_resolution_and_entropy_are_those_of_the_table():
    found = phrase_calibration(["surely"] * 30 + ["hardly"] * 10, [1] * 30 + [0] * 10, WORDS)
    assert found.resolution == pytest.approx(0.75 * 0.25**2 + 0.25 * 0.75**2)
    assert found.entropy == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_the_order_of_items_and_of_the_vocabulary_does_not_matter():
    phrases, correct, words = truthfulqa_phrases()
    order = np.random.default_rng(0).permutation(len(phrases))
    turned = PhraseVocabulary(words.phrases[::-1], words.mean[::-1], words.concentration[::-1])
    again = phrase_calibration([phrases[i] for i in order], correct[order], turned)
    assert again.ece == pytest.approx(phrase_calibration(phrases, correct, words).ece, abs=1e-12)


def test_bootstrap_intervals_cover_the_error_of_the_population():
    # 300 samples of 400: the error of the population is that of its rates. Binomial(300, 0.95) is above 270 in 99.9 %.
    rates, share = np.array([0.5, 0.5, 0.45, 0.3]), np.array([0.4, 0.3, 0.2, 0.1])
    big = np.repeat(np.arange(4), (share * 10_000).astype(int))
    truth = phrase_calibration([WORDS.phrases[k] for k in big], rates[big], WORDS).ece
    rng, covered = np.random.default_rng(0), 0
    for _ in range(300):
        codes = rng.choice(4, p=share, size=400)
        y = rng.random(400) < rates[codes]
        ci = phrase_calibration(
            [WORDS.phrases[k] for k in codes], y, WORDS, n_boot=200, random_state=rng.integers(2**31)
        ).ci
        covered += ci.loc["ece", "low"] <= truth <= ci.loc["ece", "high"]
    assert covered >= 270


@pytest.mark.parametrize(
    "container",
    [
        list,
        np.array,
        pd.Series,
        pl.Series,
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: pd.Series(y, dtype="boolean"),
    ],
)
def test_outcomes_come_in_any_container(container):
    y = [True, False] * 20
    assert phrase_calibration(["maybe"] * 40, container(y), WORDS).counts.loc["maybe", "rate"] == 0.5


@pytest.mark.parametrize(
    ("phrases", "outcomes", "options", "says"),
    [
        (["maybe"] * 40, [0, 1] * 19, {}, "40 phrases with 38 outcomes"),
        (["maybe"] * 20, [0, 1] * 10, {}, "at least 30"),
        ([], [], {}, "at least 30"),
        (["maybe"] * 40, [0, 2] * 20, {}, "outside"),
        (["maybe"] * 40, [0, np.nan] * 20, {}, "missing"),
        (["maybe"] * 40, [0, np.inf] * 20, {}, "outside"),
        (["maybe"] * 40, ["a"] * 40, {}, "no number"),
        (["maybe"] * 40, [[0, 1]] * 40, {}, "shape"),
        (["maybe"] * 40, pd.Series([1, None] * 20, dtype="Int64"), {}, "missing"),
        (["maybe", "who knows"] * 20, [0, 1] * 20, {}, r"'who knows' \(20 times\)"),
        (["maybe"] * 40, [0, 1] * 20, {"n_bins": 0}, "n_bins is 0"),
        (["maybe"] * 40, [0, 1] * 20, {"n_boot": -1}, "n_boot is -1"),
        (["maybe"] * 40, [0, 1] * 20, {"level": 1}, "level is 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(phrases, outcomes, options, says):
    with pytest.raises(InputError, match=says):
        phrase_calibration(phrases, outcomes, WORDS, **options)


def test_a_dictionary_is_no_vocabulary():
    with pytest.raises(InputError, match="a PhraseVocabulary"):
        phrase_calibration(["maybe"] * 40, [0, 1] * 20, {"maybe": 0.5})
