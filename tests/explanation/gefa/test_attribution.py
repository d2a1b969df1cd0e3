"""What an explanation says: sentences, tables, findings, certificates and pictures."""

import json

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from scipy import stats

from aboveboard.core import Certificate, Finding, InputError
from aboveboard.explanation import GEFA, Attribution, TabularMasker, exact_shapley, shapley_from_game
from tests.explanation.gefa.games import monomials
from tests.hostile import HOSTILE

mpl.use("Agg")


@pytest.fixture(scope="module")
def attribution():
    game, _ = monomials(25, 30, np.random.default_rng(0))
    return shapley_from_game(game, 25, n_queries=200, random_state=0)


@pytest.fixture(scope="module")
def attributions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 14))
    return GEFA(
        lambda X: np.tanh(X[:, :3].sum(axis=1)), TabularMasker(X[:4]), n_queries=200, random_state=0
    ).explain_many(X[10:])


def axes():
    return Canvas().subplots()


def test_intervals_are_students(attribution):
    low, high = attribution.interval(0.9)
    half = stats.t.isf(0.05, attribution.dof) * attribution.stderr
    assert high - low == pytest.approx(2 * half)
    assert (low + high) / 2 == pytest.approx(attribution.values)
    assert attribution.dof == 100 - 25 - 2  # the pairs with one player and all others are listed, not drawn
    with pytest.raises(InputError, match="between 0 and 1"):
        attribution.interval(1.0)


def test_the_table_begins_with_the_largest_effect(attribution):
    frame = attribution.to_frame()
    assert frame["attribution"].abs().is_monotonic_decreasing
    assert frame["attribution"].sum() == pytest.approx(attribution.full_value - attribution.base_value)


def test_the_sentence_names_what_is_certain_and_how_far_off_it_could_be(attribution):
    low, high = attribution.interval()
    sentence = attribution.sentence("the score", top=2)
    best = attribution.feature_names[int(np.argmax(np.abs(attribution.values)))]
    assert sentence.startswith("The score is ")
    assert f"mainly because of {best} (" in sentence
    assert "could be off by" in sentence
    for name, lower, upper in zip(attribution.feature_names, low, high, strict=True):
        if lower <= 0 <= upper:
            assert f"{name} (" not in attribution.sentence(top=25)


def test_the_sentence_says_when_nothing_is_certain():
    rng = np.random.default_rng(0)
    found = shapley_from_game(lambda z: rng.normal(size=len(z)), 20, n_queries=20, random_state=0)
    if not ((found.interval(0.9999)[0] > 0) | (found.interval(0.9999)[1] < 0)).any():
        assert "cannot be told" in found.sentence(confidence=0.9999)
    assert "cannot be told" in exact_shapley(lambda z: 0.0 * z[:, 0], 3).sentence()


def test_an_exact_explanation_could_not_be_off():
    assert "off by" not in exact_shapley(lambda z: z.all(axis=1), 3).sentence()


def test_the_finding_goes_through_json(attribution):
    finding = attribution.to_finding(id="reasons/row", outcome="the score")
    assert Finding.from_dict(json.loads(json.dumps(finding.to_dict()))) == finding
    assert finding.check == "reasons"
    assert len(finding.tables[0].rows) == 20


def test_the_certificate_says_what_was_checked_and_goes_through_json(attribution):
    certificate = attribution.certificate()
    assert certificate.holds
    assert "unbiased estimate" in certificate.guarantee
    assert Certificate.from_dict(json.loads(json.dumps(certificate.to_dict()))).guarantee == certificate.guarantee
    assert exact_shapley(lambda z: z[:, 0], 3).certificate().confidence is None


def test_mean_sizes_have_intervals_and_features_without_effect_have_only_noise(attributions):
    importance = attributions.importance()
    assert set(importance.index[:3]) == {"x0", "x1", "x2"}
    assert (importance["low"] <= importance["mean_abs"]).all()
    idle = importance.iloc[3:]
    assert (idle["mean_abs"] < 5 * idle["noise"]).all()
    assert (importance["low"].iloc[:3] > 5 * importance["noise"].iloc[:3]).all()


def test_one_row_says_nothing_about_others(attributions):
    one = GEFA(lambda X: X[:, 0], TabularMasker(np.zeros(3))).explain_many(np.ones((1, 3)))
    with pytest.raises(InputError, match="two or more"):
        one.importance()


def test_the_waterfall_goes_from_the_baseline_to_the_answer_with_error_bars(attribution):
    drawn = attribution.waterfall(max_display=6, ax=axes())
    bars = drawn.patches
    assert len(bars) == 6
    assert bars[0].get_x() == pytest.approx(attribution.base_value)
    assert sum(bar.get_width() for bar in bars) == pytest.approx(attribution.full_value - attribution.base_value)
    assert bars[-1].get_x() + bars[-1].get_width() == pytest.approx(attribution.full_value)
    assert drawn.get_yticklabels()[0].get_text() == "20 more"
    low, high = attribution.interval()
    ends = drawn.containers[-1].lines[2][0].get_segments()[0][:, 0]
    best = int(np.argmax(np.abs(attribution.values)))
    assert np.ptp(ends) == pytest.approx(high[best] - low[best])


def test_the_beeswarm_shows_every_row(attributions):
    drawn = attributions.beeswarm(max_display=4, ax=axes())
    points = [collection.get_offsets() for collection in drawn.collections]
    assert [len(offsets) for offsets in points] == [50] * 4
    order = np.argsort(-np.abs(attributions.values).mean(axis=0), kind="stable")
    assert np.asarray(points[0][:, 0]) == pytest.approx(attributions.values[:, order[0]])
    assert np.abs(points[0][:, 1] - 3).max() <= 0.4


def test_pictures_need_one_feature_or_more(attribution):
    with pytest.raises(InputError, match="1 or more"):
        attribution.waterfall(max_display=0, ax=axes())


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
def test_nasty_names_are_drawn_and_said(name):
    found = Attribution(
        values=np.array([1.0, 0.5]),
        stderr=np.array([0.1, 0.1]),
        base_value=0.0,
        full_value=1.5,
        feature_names=(name, "other"),
        feature_values=(name, 1.0),
        n_queries=10,
        dof=3.0,
        method="marginal weights",
        unbiased=True,
    )
    drawn = found.waterfall(ax=axes())
    drawn.figure.canvas.draw()
    assert name in found.sentence()
