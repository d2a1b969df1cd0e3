"""Facts about phrases as distributions, from quadrature and from other people's formulas."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta

from aboveboard.core import InputError
from aboveboard.uncertainty import PhraseVocabulary

EDGES = np.linspace(0, 1, 21)


@given(st.floats(0.2, 500), st.floats(0.2, 500))
def test_bins_hold_all_probability_and_partial_means_add_up_to_the_mean(a, b):
    words = PhraseVocabulary.from_beta({"perhaps": (a, b)})
    assert words.weights(EDGES).sum() == pytest.approx(1, abs=1e-12)
    assert words.partial_mean(EDGES).sum() == pytest.approx(a / (a + b), rel=1e-12)


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (1.0, 12.0), (30.0, 3.0)])
def test_partial_means_are_those_of_quadrature(a, b):
    words = PhraseVocabulary.from_beta({"perhaps": (a, b)})
    by_hand = [quad(lambda u: u * beta.pdf(u, a, b), low, high)[0] for low, high in pairwise(EDGES)]
    assert words.partial_mean(EDGES)[0] == pytest.approx(np.array(by_hand), abs=1e-8)


def test_mean_and_variance_are_those_of_the_beta_distribution():
    words = PhraseVocabulary.from_beta({"likely": (7, 3), "no": (1, 1e4)})
    assert words.mean == pytest.approx(beta.mean([7, 1], [3, 1e4]))
    assert words.variance == pytest.approx(beta.var([7, 1], [3, 1e4]))
    assert words.to_frame().loc["likely", "p10"] == pytest.approx(beta.ppf(0.1, 7, 3))


@pytest.mark.parametrize("mean", [0.0, 0.05, 0.5, 0.999, 1.0])
def test_a_point_lies_in_one_bin_open_on_the_left(mean):
    words = PhraseVocabulary.from_points({"it": mean})
    (held,) = words.weights(EDGES)
    assert held.sum() == 1
    assert held.argmax() == max(np.searchsorted(EDGES, mean, side="left") - 1, 0)
    assert words.partial_mean(EDGES)[0].sum() == mean


def test_a_survey_is_matched_in_mean_and_variance():
    answers = [0.6, 0.7, 0.7, 0.8, 0.95]
    words = PhraseVocabulary.from_samples({"likely": answers, "rarely": np.array([0.1, 0.2])})
    assert words.mean[0] == pytest.approx(np.mean(answers))
    assert words.variance[0] == pytest.approx(np.var(answers))


def test_a_survey_over_ranges_is_matched_to_the_mixture_of_uniforms():
    edges, counts = [0, 0.25, 0.5, 1], [1, 2, 5]
    words = PhraseVocabulary.from_ranges(pd.DataFrame([counts], index=["often"]), edges)
    rng = np.random.default_rng(0)
    chosen = rng.choice(3, p=np.array(counts) / 8, size=400_000)
    drawn = rng.uniform(np.array(edges)[chosen], np.array(edges)[chosen + 1])
    assert words.mean[0] == pytest.approx(drawn.mean(), abs=2e-3)
    assert words.variance[0] == pytest.approx(drawn.var(), abs=2e-3)
    assert PhraseVocabulary.from_ranges({"often": counts}, edges).mean[0] == words.mean[0]


def test_a_language_model_is_asked_for_each_phrase():
    asked = []

    def generate(prompt):
        asked.append(prompt)
        return "I would say Beta(8, 2)." if "'likely'" in prompt else "beta( a=1.5 , b=4.5 )"

    words = PhraseVocabulary.from_llm(generate, ["likely", "rarely"])
    assert words.mean.tolist() == pytest.approx([0.8, 0.25])
    assert words.concentration.tolist() == pytest.approx([10, 6])
    assert len(asked) == 2


def test_several_answers_of_a_language_model_are_mixed():
    answers = iter(["Beta(8, 2)", "Beta(2, 8)"])
    words = PhraseVocabulary.from_llm(lambda prompt: next(answers), ["maybe"], n_answers=2)
    assert words.mean[0] == pytest.approx(0.5)
    assert words.variance[0] == pytest.approx(0.16 / 11 + 0.09)


def test_an_answer_without_a_distribution_is_quoted(hostile_name):
    with pytest.raises(InputError, match="the language model answered"):
        PhraseVocabulary.from_llm(lambda prompt: hostile_name, ["likely"])


def test_probabilities_are_said_by_the_nearest_phrase():
    words = PhraseVocabulary.from_points({"no": 0.1, "maybe": 0.5, "yes": 0.9})
    assert words.verbalise([0.0, 0.29, 0.31, 1.0]) == ["no", "no", "maybe", "yes"]
    with pytest.raises(InputError, match="between 0 and 1"):
        words.verbalise([np.nan])


def test_case_and_spaces_do_not_matter():
    words = PhraseVocabulary.from_points({"Almost certainly": 0.9})
    assert " almost   CERTAINLY" in words
    assert words.codes(["ALMOST certainly"]).tolist() == [0]
    assert 3 not in words


def test_unknown_phrases_are_counted_or_stood_for_by_the_fallback(hostile_name):
    words = PhraseVocabulary.from_points({"yes": 0.9, "no": 0.1})
    with pytest.raises(InputError, match=r"not in the vocabulary: .*\(2 times\)"):
        words.codes(["yes", hostile_name + "?", hostile_name + "?"])
    assert words.codes(["yes", hostile_name + "?"], fallback="No").tolist() == [0, 1]
    with pytest.raises(InputError, match="fallback"):
        words.codes(["yes"], fallback="perhaps")
    with pytest.raises(InputError, match="a phrase is nan"):
        words.codes(["yes", float("nan")])


@pytest.mark.parametrize(
    "make",
    [
        lambda: PhraseVocabulary.from_beta({"a": (0, 1)}),
        lambda: PhraseVocabulary.from_beta({"a": (-1, 1)}),
        lambda: PhraseVocabulary.from_beta({"a": (np.inf, 1)}),
        lambda: PhraseVocabulary.from_beta({"a": (np.nan, 1)}),
        lambda: PhraseVocabulary.from_beta({"a": "ab"}),
        lambda: PhraseVocabulary.from_beta({"a": (1, 2, 3)}),
        lambda: PhraseVocabulary.from_beta({}),
        lambda: PhraseVocabulary.from_beta({"a": (1, 1), "A ": (2, 1)}),
        lambda: PhraseVocabulary.from_beta({" ": (1, 1)}),
        lambda: PhraseVocabulary.from_points({"a": 1.2}),
        lambda: PhraseVocabulary.from_points({"a": np.nan}),
        lambda: PhraseVocabulary.from_samples({"a": [0.5]}),
        lambda: PhraseVocabulary.from_samples({"a": [0.5, 0.5]}),
        lambda: PhraseVocabulary.from_samples({"a": [0.5, 1.5]}),
        lambda: PhraseVocabulary.from_samples({"a": [0.0, 1.0]}),
        lambda: PhraseVocabulary.from_ranges({"a": [1, 2]}, [0, 1]),
        lambda: PhraseVocabulary.from_ranges({"a": [0, 0]}, [0, 0.5, 1]),
        lambda: PhraseVocabulary.from_ranges({"a": [1, -1]}, [0, 0.5, 1]),
        lambda: PhraseVocabulary.from_ranges({"a": [1, 1]}, [0, 0.5, 0.5]),
        lambda: PhraseVocabulary(["a"], [0.5, 0.5], [1, 1]),
        lambda: PhraseVocabulary(["a"], [0.5], [0]),
        lambda: PhraseVocabulary([3], [0.5], [1]),
    ],
)
def test_what_is_no_vocabulary_is_refused(make):
    with pytest.raises(InputError):
        make()


def test_the_printed_form_is_short():
    words = PhraseVocabulary.from_points({f"phrase {i}": i / 10 for i in range(10)})
    assert repr(words) == (
        "PhraseVocabulary(10 phrases; 'phrase 0': 0.00, 'phrase 1': 0.10, 'phrase 2': 0.20, 'phrase 3': 0.30, ...)"
    )
