"""Texts: what tells real texts apart, and what is left when it is taken away."""

import inspect

import numpy as np
import pytest

from aboveboard.core.errors import InputError
from aboveboard.drift import DatasetClassification


def sentences(module, n):
    """Return lines of a library's documentation: real text, at hand everywhere."""
    lines = {}
    for name in sorted(dir(module)):
        for line in (inspect.getdoc(getattr(module, name)) or "").splitlines():
            if len(line.strip()) > 30:
                lines.setdefault(line.strip(), None)
    return list(lines)[:n]


@pytest.fixture(scope="module")
def texts():
    import numpy
    import scipy.stats

    return {"numpy": sentences(numpy, 300), "scipy": sentences(scipy.stats, 300)}


def test_libraries_are_told_apart_by_how_they_are_documented(texts):
    test = DatasetClassification("text", n_pseudo=1, ladder=["case", "word_order"], random_state=0).fit(texts)
    assert test.result_.p_value < 1e-6
    assert test.pseudo_["p_value"].iloc[0] > 0.001
    assert test.ladder_["taken_away"].tolist() == ["nothing", "case", "word_order"]
    assert test.source_proba(["numpy.ndarray of shape", "probability density function"]).shape == (2, 2)
    assert test.certificate_.subject["data"]


def test_a_word_that_only_one_source_uses_is_the_most_telling_and_case_can_be_taken_away(texts):
    marked = {"a": texts["numpy"][:200], "b": [f"{text} Quixotic" for text in texts["numpy"][100:300][::-1]]}
    test = DatasetClassification("text", controls=(), random_state=0).fit(marked)
    assert test.importance_["column"].iloc[0] == "Quixotic"
    upper = {"a": texts["numpy"][:200], "b": [text.upper() for text in texts["numpy"][:200][::-1]]}
    ladder = DatasetClassification("text", controls=("ladder",), ladder=["case"], random_state=0).fit(upper).ladder_
    assert ladder["accuracy"][0] > 0.95
    assert ladder["p_value"][1] > 0.001


def test_lengths_and_digits_can_be_taken_away():
    rng = np.random.default_rng(0)

    def noise(length):
        return "".join(rng.choice(list("abcdefgh "), size=length))

    longer = {"short": [noise(30) for _ in range(250)], "long": [noise(60) for _ in range(250)]}
    test = DatasetClassification("text", controls=("ladder",), ladder=["length"], random_state=0).fit(longer)
    assert test.ladder_["accuracy"][0] > 0.7
    assert test.ladder_["p_value"][1] > 0.001
    dated = {"old": [f"{noise(20)} 1999" for _ in range(250)], "new": [f"{noise(20)} 2024" for _ in range(250)]}
    test = DatasetClassification("text", controls=("ladder",), ladder=["punctuation_digits"], random_state=0)
    ladder = test.fit(dated).ladder_
    assert ladder["accuracy"][0] > 0.95
    assert ladder["p_value"][1] > 0.001


def test_an_embedding_is_used_in_place_of_n_grams(texts):
    def letters(batch):
        return np.array([[text.lower().count(letter) / len(text) for letter in "abcdefgh"] for text in batch])

    test = DatasetClassification("text", embedding=letters, ladder=["word_order"], n_pseudo=1, random_state=0)
    test.fit(texts)
    assert test.result_.classifier in ("logistic regression", "gradient-boosted trees")
    assert test.ladder_["accuracy"][0] == pytest.approx(test.ladder_["accuracy"][1], abs=0.05)
    assert len(test.importance_) == 0
    with pytest.raises(InputError, match="embedding gave shape"):
        DatasetClassification("text", embedding=lambda batch: np.zeros(3)).fit(texts)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("a text", "sequence of texts"),
        ([1] * 300, "holds int"),
        ([None] * 300, "texts only"),
    ],
)
def test_what_is_no_text_is_refused(texts, bad, message):
    with pytest.raises(InputError, match=message):
        DatasetClassification("text").fit({"a": texts["numpy"], "b": bad})


def test_rungs_of_pictures_are_refused_for_texts(texts):
    with pytest.raises(InputError, match="for text"):
        DatasetClassification("text", controls=("ladder",), ladder=["blur:1"]).fit(texts)


def test_hostile_texts_are_read(hostile_names):
    names = list(hostile_names.values())
    texts = {"a": [name + "!" for name in names * 5], "b": [name + "?" for name in names * 5]}
    test = DatasetClassification("text", ladder=None, n_pseudo=1, random_state=0).fit(texts)
    assert test.result_.n_held_out >= 100
