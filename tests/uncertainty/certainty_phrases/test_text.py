"""Facts about phrases in texts, and about the choice of a language model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.uncertainty import (
    PhraseVocabulary,
    choose_phrases,
    extract_phrase,
    parse_answer,
    phrase_calibration,
    truthfulqa_phrases,
    verbal_confidence_prompt,
)

WORDS = PhraseVocabulary.from_points(
    {"likely": 0.8, "very likely": 0.9, "may": 0.4, "unlikely": 0.2, "cannot say": 0.5}
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("This is likely pneumonia.", "likely"),
        ("Very\n  Likely edema", "very likely"),
        ("It is unlikely.", "unlikely"),
        ("It is not likely.", None),
        ("It isn't very likely.", None),
        ("It isn\u2019t at all likely.", None),
        ("No effusion. Edema is likely.", "likely"),
        ("Not likely edema; may be atelectasis.", "may"),
        ("I cannot say.", "cannot say"),
        ("The mayor is likable.", None),
        ("unlikely-looking", None),
        ("likely, or very likely", "very likely"),
        ("", None),
    ],
)
def test_the_longest_phrase_that_is_not_negated_is_found(text, found):
    match = extract_phrase(text, WORDS)
    assert (match and match[0]) == found
    if match:
        start, end = match[1]
        assert " ".join(text[start:end].lower().split()) == found


@given(st.text())
def test_any_text_is_read(text):
    match = extract_phrase(text, WORDS)
    assert match is None or match[0] in WORDS


def test_hostile_phrases_are_found_as_they_stand(hostile_name):
    if hostile_name.strip() and hostile_name.split():
        words = PhraseVocabulary.from_points({hostile_name: 0.5})
        match = extract_phrase(f"It is {hostile_name} so", words)
        assert match is None or match[0] == hostile_name


def test_every_prompt_lists_all_phrases_in_an_order_of_its_own():
    prompts = [verbal_confidence_prompt("Is it?", WORDS, random_state=seed) for seed in range(8)]
    assert all(phrase in prompt for prompt in prompts for phrase in WORDS.phrases)
    assert len(set(prompts)) > 4
    assert prompts[0] == verbal_confidence_prompt("Is it?", WORDS, random_state=0)


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("Answer: Rome\nCertainty: very likely.", ("Rome", "very likely")),
        ("Sure!\nanswer :  Rome,\nItaly\n\nCERTAINTY: May", ("Rome,\nItaly", "May")),
        ("Rome, very likely", None),
        ("Certainty: May", None),
        ("", None),
    ],
)
def test_answers_in_the_form_asked_for_are_read(text, parsed):
    assert parse_answer(text) == parsed


def test_the_phrase_of_the_lowest_perplexity_is_chosen():
    def log_probabilities(prompts, continuations):
        assert list(continuations) == list(WORDS.phrases)
        return np.array([[-2.0, -3.0, -5.0, -9.0, -9.0], [-2.0, -5.0, -1.0, -9.0, -9.0]]), np.array([1, 2, 1, 1, 2])

    assert choose_phrases(log_probabilities, ["p", "q"], WORDS) == ["very likely", "may"]
    with pytest.raises(InputError, match="2 rows of 5"):
        choose_phrases(lambda p, c: (np.zeros((1, 5)), np.ones(5)), ["p", "q"], WORDS)


def test_a_small_llm_speaks_in_phrases_of_the_vocabulary(smollm2):
    _, _, words = truthfulqa_phrases()
    claims = ["Water is wet.", "The Moon is made of cheese."] * 15
    prompts = [smollm2.prompt(f'How certain is it that this is true: "{claim}"') for claim in claims[:2]]
    said = choose_phrases(smollm2.log_probabilities, prompts, words)
    assert all(phrase in words for phrase in said)
    assert 0 <= phrase_calibration(said * 15, [1, 0] * 15, words).ece <= 1
