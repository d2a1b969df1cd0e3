"""Facts about findings on phrases: what fails, what is ok, and what cannot be told."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.core import InputError
from aboveboard.uncertainty import PhraseVocabulary, phrase_audit, truthfulqa_phrases
from aboveboard.uncertainty.certainty_phrases._audit import _gaps, _rates

POINTS = PhraseVocabulary.from_points({"often": 0.8, "rarely": 0.2})


def _statements(n, rates, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(2, size=n)
    return [POINTS.phrases[k] for k in codes], (rng.random(n) < np.array(rates)[codes]).astype(int)


def _by_id(findings):
    return {finding.id.partition("/")[2]: finding for finding in findings}


def test_the_published_counts_fail_and_advice_helps_on_held_out_items():
    found = _by_id(phrase_audit(*truthfulqa_phrases(), random_state=0))
    assert found["error"].severity == found["phrases"].severity == "fail"
    assert found["error"].value == pytest.approx(0.2802, abs=1e-3)
    assert "Possibly" in found["advice"].statement
    assert "Definitely" in found["advice"].statement
    assert found["advice"].remedies == ("CertaintyCalibrator",)
    assert all(finding.check == "phrase_calibration" for finding in found.values())


def test_honest_speakers_are_ok():
    found = _by_id(phrase_audit(*_statements(4000, [0.8, 0.2]), POINTS, random_state=0))
    assert [found[name].severity for name in ("error", "phrases", "advice")] == ["ok", "ok", "ok"]


def test_few_statements_are_inconclusive():
    found = _by_id(phrase_audit(*_statements(40, [0.8, 0.2]), POINTS, random_state=0))
    assert found["phrases"].status == "inconclusive"
    assert found["advice"].status == "inconclusive"
    none = _by_id(phrase_audit(*_statements(40, [0.8, 0.2]), POINTS, min_items=35, random_state=0))
    assert none["phrases"].status == "inconclusive"
    assert none["phrases"].value is None


def test_phrases_too_vague_to_judge_are_said_to_be():
    words = PhraseVocabulary.from_beta({"maybe": (0.5, 0.5)})
    found = _by_id(phrase_audit(["maybe"] * 1000, [0, 1] * 500, words, random_state=0))
    assert found["error"].status == "inconclusive"
    assert "spread alone" in found["error"].reason
    assert found["phrases"].severity == "ok"


def test_groups_show_what_pooling_hides():
    # One speaker overstates what the other understates: together they are right.
    said, rates = ["often"] * 800, {"ann": 0.95, "bob": 0.65}
    who = np.repeat(["ann", "bob"], 400)
    y = np.concatenate([np.arange(400) < 400 * rate for rate in rates.values()]).astype(int)
    found = _by_id(phrase_audit(said, y, POINTS, groups=pd.DataFrame({"speaker": who}), random_state=0))
    assert found["phrases"].severity == "ok"
    assert found["by speaker"].severity == "fail"
    assert "speaker" in found["by speaker"].statement


def test_the_level_holds_for_all_phrases_at_once():
    # At the edge of the limit a phrase is called off in at most 5 % of samples;
    # Binomial(2000, 0.05) is below 137 in 99.99 %.
    rng, wrong = np.random.default_rng(0), 0
    for _ in range(2000):
        codes = rng.integers(2, size=200)
        y = (rng.random(200) < np.array([0.7, 0.3])[codes]).astype(float)
        rates = _rates(codes, y, POINTS.mean[codes], POINTS.phrases)
        wrong += _gaps("phrases", "phrase", rates, limit=0.1, limit_source="", min_items=10).severity == "fail"
    assert wrong <= 136


def test_hostile_phrases_and_groups_are_reported(hostile_name):
    if hostile_name.split():
        words = PhraseVocabulary.from_points({hostile_name: 0.9, "plainly not": 0.1})
        said, y = [hostile_name, "plainly not"] * 100, [0, 1] * 100
        groups = pd.DataFrame([[hostile_name]] * 200, columns=pd.Index([hostile_name], dtype=object), dtype=object)
        found = phrase_audit(said, y, words, groups=groups, n_boot=20, n_splits=1, random_state=0)
        assert [finding.severity for finding in found[:2]] == ["fail", "fail"]


def test_fewer_than_thirty_statements_are_refused():
    with pytest.raises(InputError, match="at least 30"):
        phrase_audit(["often"] * 20, [0, 1] * 10, POINTS)
