"""Facts about restated phrases: the published plan, problems solved by hand, and the guard."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError, SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator

from aboveboard.core import InputError
from aboveboard.uncertainty import CertaintyCalibrator, PhraseVocabulary, phrase_calibration, truthfulqa_phrases

PHRASES, CORRECT, WORDS = truthfulqa_phrases()


def test_the_published_plan_comes_out():
    found = CertaintyCalibrator(WORDS).fit(PHRASES, CORRECT)
    assert found.solver_ == "sinkhorn"
    definitely, possibly = WORDS.codes(["Definitely", "Possibly"])
    assert found.rule_[definitely, possibly] == pytest.approx(0.99, abs=0.005)
    assert found.scores_.loc["after", "ece"] == pytest.approx(0.086, abs=0.001)
    assert found.scores_.loc["after", "brier"] == pytest.approx(0.212, abs=0.001)
    assert found.plan_.sum(axis=1) == pytest.approx(found.usage_, abs=1e-6)


@pytest.mark.parametrize(
    ("options", "error"),
    [({"eps": 0, "tau": np.inf}, 0.271), ({"eps": 0, "tau": 0}, 0.087), ({"eps": 0}, 0.086)],
    ids=["balanced", "row by row", "as published"],
)
def test_the_other_published_figures_come_out(options, error):
    found = CertaintyCalibrator(WORDS, **options).fit(PHRASES, CORRECT)
    assert found.scores_.loc["after", "ece"] == pytest.approx(error, abs=0.001)


def test_two_phrases_that_are_used_the_wrong_way_round_are_swapped():
    words = PhraseVocabulary.from_points({"yes": 0.9, "no": 0.1})
    found = CertaintyCalibrator(words, eps=0, tau=0).fit(
        ["yes"] * 50 + ["no"] * 50, [0] * 45 + [1] * 5 + [1] * 45 + [0] * 5
    )
    assert found.rule_.tolist() == [[0, 1], [1, 0]]
    # all said the other way is right one by one: the error falls from 0.8 by 0.4 for each
    assert found.cost_ == pytest.approx(np.array([[0, -0.8], [-0.8, 0]]))
    assert found.scores_.loc["after", "ece"] == pytest.approx(0)
    assert found.transform(["yes", "No"]) == ["no", "yes"]


@pytest.mark.parametrize("search", ["linear", "relinearised", "joint"])
def test_honest_phrases_are_left_alone(search):
    words = PhraseVocabulary.from_points({"often": 0.8, "even": 0.5, "rarely": 0.2})
    said = np.repeat(words.phrases, 100)
    y = np.concatenate([np.arange(100) < 100 * mean for mean in words.mean])
    found = CertaintyCalibrator(words, eps=0, search=search).fit(said, y)
    assert found.rule_ == pytest.approx(np.eye(3), abs=1e-6)
    assert found.advice().empty


def test_prices_are_what_restating_really_changes():
    found = CertaintyCalibrator(WORDS, eps=0).fit(PHRASES, CORRECT)
    now = phrase_calibration(PHRASES, CORRECT, WORDS).ece
    for own, target in (("Definitely", "Possibly"), ("Unlikely", "Likely"), ("Maybe", "Maybe")):
        restated = [target if phrase == own else phrase for phrase in PHRASES]
        k, j = WORDS.codes([own, target])
        change = phrase_calibration(restated, CORRECT, WORDS).ece - now
        assert found.cost_[k, j] * found.usage_[k] == pytest.approx(change, abs=1e-12)


def test_scores_after_are_those_of_phrases_really_restated():
    found = CertaintyCalibrator(WORDS, eps=0, deterministic=True).fit(PHRASES, CORRECT)
    restated = phrase_calibration(found.transform(PHRASES), CORRECT, WORDS)
    assert found.scores_.loc["after"].tolist() == pytest.approx([restated.ece, restated.brier, restated.entropy])


def test_searches_beyond_the_published_one_have_no_larger_error_on_the_items_fitted():
    first = CertaintyCalibrator(WORDS, eps=0).fit(PHRASES, CORRECT).scores_.loc["after", "ece"]
    again = CertaintyCalibrator(WORDS, eps=0, search="relinearised").fit(PHRASES, CORRECT).scores_.loc["after", "ece"]
    least = CertaintyCalibrator(WORDS, search="joint", tau=0).fit(PHRASES, CORRECT).scores_.loc["after", "ece"]
    assert least - 1e-9 <= again <= first
    assert least == pytest.approx(0.0613, abs=1e-3)


def test_replacements_are_drawn_at_their_probability_and_repeat_with_the_seed():
    found = CertaintyCalibrator(WORDS, eps=0, tau=np.inf, random_state=3).fit(PHRASES, CORRECT)
    row = found.rule_[WORDS.codes(["Probably"])[0]]
    drawn = found.transform(["Probably"] * 20_000)
    shares = pd.Series(drawn).value_counts(normalize=True).reindex(WORDS.phrases, fill_value=0).to_numpy()
    assert np.abs(shares - row).max() < 4 * np.sqrt(0.25 / 20_000)
    assert drawn == found.transform(["Probably"] * 20_000)


def test_phrases_that_were_not_used_stay_or_go_to_the_nearest_target():
    kept = [(p, y) for p, y in zip(PHRASES, CORRECT) if p != "Maybe"]
    said, y = zip(*kept)
    found = CertaintyCalibrator(WORDS, eps=0).fit(said, y)
    assert found.transform(["Maybe"]) == ["Maybe"]
    target = PhraseVocabulary.from_points({"surely": 0.9, "third": 0.3, "never": 0.0})
    other = CertaintyCalibrator(WORDS, eps=0, target_vocabulary=target).fit(said, y)
    assert other.transform(["Maybe"]) == ["third"]
    assert other.plan_.shape == (12, 3)


def test_phrases_of_equal_meaning_are_interchangeable():
    words = PhraseVocabulary.from_beta({"likely": (7, 3), "probable": (7, 3), "rare": (1, 9)})
    y = np.arange(120) % 3 == 0
    found = CertaintyCalibrator(words, eps=0).fit(["likely", "probable", "rare", "rare"] * 30, y)
    assert found.cost_[:, 0] == pytest.approx(found.cost_[:, 1])


def test_a_wished_usage_is_met():
    wish = {"Possibly": 0.5, "Maybe": 0.25, "Unlikely": 0.25}
    found = CertaintyCalibrator(WORDS, eps=0, tau=np.inf, target_usage=wish).fit(PHRASES, CORRECT)
    used = dict(zip(WORDS.phrases, found.plan_.sum(axis=0)))
    assert {phrase: share for phrase, share in used.items() if share > 1e-9} == pytest.approx(wish)


def test_the_guard_keeps_phrases_where_restating_would_raise_the_brier_score():
    # One phrase is wished for everything: the error may fall, the resolution is lost.
    words = PhraseVocabulary.from_points({"yes": 0.95, "half": 0.5, "no": 0.05})
    said, y = ["yes"] * 50 + ["no"] * 50, [1] * 50 + [0] * 50
    found = CertaintyCalibrator(words, eps=0, tau=np.inf, target_usage={"half": 1}).fit(said, y)
    assert found.scores_.loc["after", "ece"] < found.scores_.loc["before", "ece"]
    assert found.scores_.loc["after", "brier"] > found.scores_.loc["before", "brier"]
    assert not found.accepted_
    assert found.transform(["yes", "no"]) == ["yes", "no"]


def test_the_guard_looks_at_items_that_were_held_out():
    found = CertaintyCalibrator(WORDS, eps=0, validation=0.5, random_state=1).fit(PHRASES, CORRECT)
    order = np.random.RandomState(1).permutation(817)
    held, fitted = order[:408], order[408:]
    assert found.usage_ == pytest.approx(np.bincount(WORDS.codes([PHRASES[i] for i in fitted]), minlength=12) / 409)
    assert found.evaluate([PHRASES[i] for i in held], CORRECT[held]).equals(found.scores_)


def test_held_out_halves_get_better():
    falls = []
    for seed in range(10):
        order = np.random.default_rng(seed).permutation(817)
        first, second = order[:408], order[408:]
        said = np.array(PHRASES, dtype=object)
        found = CertaintyCalibrator(WORDS, eps=0).fit(said[first], CORRECT[first])
        falls.append(found.evaluate(said[second], CORRECT[second]).to_numpy())
    before, after = np.mean(falls, axis=0)
    assert after[0] <= 0.12
    assert before[1] - after[1] >= 0.06


def test_advice_says_what_to_say_instead_most_useful_first():
    advice = CertaintyCalibrator(WORDS, eps=0, deterministic=True).fit(PHRASES, CORRECT).advice()
    assert advice.loc[0, ["say", "instead_of"]].tolist() == ["Possibly", "Definitely"]
    assert (advice["gain"].diff().dropna() <= 0).all()
    assert (advice["weight"] == 1).all()


def test_the_fallback_stands_for_unknown_phrases():
    said = [phrase if i % 10 else "who knows" for i, phrase in enumerate(PHRASES)]
    with pytest.raises(InputError, match="'who knows'"):
        CertaintyCalibrator(WORDS, eps=0).fit(said, CORRECT)
    found = CertaintyCalibrator(WORDS, eps=0, fallback="Possibly").fit(said, CORRECT)
    assert found.transform(["never heard"]) == found.transform(["Possibly"])


def test_it_clones_and_says_when_it_is_not_fitted():
    found = CertaintyCalibrator(WORDS, eps=0)
    assert clone(found).vocabulary is not None
    with pytest.raises(NotFittedError):
        found.transform(["Maybe"])
    assert found.fit_transform(PHRASES, CORRECT)[:1] != []


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"vocabulary": None}, "a PhraseVocabulary"),
        ({"target_vocabulary": {"a": 1}}, "target vocabulary is a dict"),
        ({"eps": -1}, "eps is -1"),
        ({"eps": np.inf}, "eps is inf"),
        ({"tau": np.nan}, "tau is nan"),
        ({"validation": 1}, "validation is 1"),
        ({"n_bins": 0}, "n_bins is 0"),
        ({"search": "all"}, "search is 'all'"),
        ({"target_usage": "even"}, "target_usage is 'even'"),
        ({"target_usage": {"Maybe": -1}}, "target_usage is"),
        ({"target_usage": {"never": 1}}, "'never'"),
    ],
)
def test_parameters_out_of_range_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        CertaintyCalibrator(**({"vocabulary": WORDS, "eps": 0} | options)).fit(PHRASES, CORRECT)


def test_the_wish_for_the_same_usage_survives_a_clone():
    given = CertaintyCalibrator(WORDS, target_vocabulary=WORDS, eps=0, tau=np.inf)
    plans = [found.fit(PHRASES, CORRECT).plan_ for found in (given, clone(given))]
    assert plans[0] == pytest.approx(plans[1])
    assert plans[0].sum(axis=0) == pytest.approx(plans[0].sum(axis=1))


def test_scikit_learn_knows_that_it_takes_texts_and_leaves_its_numeric_checks_out():
    tags = CertaintyCalibrator(WORDS).__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.two_d_array, tags.target_tags.required) == (True, False, True)
    with pytest.warns(SkipTestWarning, match="Can't test estimator"):
        check_estimator(CertaintyCalibrator(WORDS))
