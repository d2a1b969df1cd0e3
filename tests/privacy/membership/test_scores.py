"""Scores of membership: losses, and likelihood ratios against the densities of SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import log_loss

from aboveboard.core import InputError
from aboveboard.privacy import Attack, likelihood_ratios, score_attack
from aboveboard.privacy.membership._scores import confidence, logit_confidence, smallest_step


def test_the_score_is_the_negative_log_loss_of_each_row():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 200), rng.integers(0, 3, 200)
    plain, by_class = score_attack(p, y)
    assert -plain.scores.mean() == pytest.approx(log_loss(y, p, labels=[0, 1, 2]))
    assert by_class.scores.tolist() == plain.scores.tolist()
    assert by_class.by.tolist() == y.tolist()


def test_numbers_are_scored_by_their_squared_error():
    (attack,) = score_attack([1.0, 2.0], [1.5, 0.0])
    assert attack.scores.tolist() == [-0.25, -4.0]
    assert attack.by is None


def test_labels_given_as_probabilities_score_right_or_wrong():
    plain, _ = score_attack(np.eye(2)[[0, 1, 1]], [0, 0, 1])
    assert plain.scores[0] == plain.scores[2] == 0
    assert plain.scores[1] < -600


@pytest.mark.parametrize(
    ("answers", "y", "message"),
    [
        ([[0.5, 0.5]], [0, 1], "shape"),
        ([[1.0], [1.0]], [0, 0], "shape"),
        ([[0.5, 0.5]], [2], "no codes"),
        ([[0.5, 0.5]], [-1], "no codes"),
        ([[0.5, 0.5]], [0.0], "no codes"),
        ([[1.5, -0.5]], [0], "outside"),
        ([[np.nan, 0.5]], [0], "outside"),
        ([1.0, 2.0], [1.0], "truth has shape"),
        ([1.0, np.inf], [1.0, 1.0], "not finite"),
        ([], [], "one for each row"),
    ],
)
def test_answers_that_do_not_fit_are_refused(answers, y, message):
    with pytest.raises(InputError, match=message):
        score_attack(answers, y)


def test_an_attack_has_one_threshold_label_for_each_row():
    with pytest.raises(InputError, match="by"):
        Attack("mine", np.zeros(3), np.zeros(2))


def test_the_probability_of_the_other_classes_is_not_rounded_off():
    right, others = confidence([[1.0, 1e-20]], [0])
    assert (right[0], others[0]) == (1.0, 1e-20)
    assert logit_confidence(right, others, smallest_step(right, others))[0] == pytest.approx(-np.log(1e-12), rel=1e-3)


@given(st.lists(st.floats(0.001, 0.999), min_size=1, max_size=20))
def test_the_logit_is_that_of_scipy_where_no_step_is_needed(values):
    from scipy.special import logit

    p = np.array(values)
    assert logit_confidence(p, 1 - p, 0.0) == pytest.approx(logit(p))


def shadows(k=40, n=30, seed=0):
    rng = np.random.default_rng(seed)
    inside = np.zeros((k, n), dtype=bool)
    for row in range(n):
        inside[rng.permutation(k)[: k // 2], row] = True
    return rng.normal(size=n), rng.normal(size=(k, n)) * rng.uniform(0.5, 2, n) + inside, inside


@pytest.mark.parametrize(("variance", "k"), [("row", 40), ("auto", 64)])
def test_ratios_are_those_of_normal_densities_fitted_row_by_row(variance, k):
    target, values, inside = shadows(k)
    online, offline = likelihood_ratios(target, values, inside, variance=variance)
    for row in range(values.shape[1]):
        sides = [values[mask, row] for mask in (inside[:, row], ~inside[:, row])]
        fits = [stats.norm(side.mean(), side.std(ddof=1)) for side in sides]
        assert online.scores[row] == pytest.approx(fits[0].logpdf(target[row]) - fits[1].logpdf(target[row]))
        assert stats.norm.cdf(offline.scores[row]) == pytest.approx(fits[1].cdf(target[row]))


@pytest.mark.parametrize("variance", ["pooled", "auto"])
def test_with_few_shadow_models_all_rows_share_a_variance(variance):
    target, values, inside = shadows(40)
    online, _ = likelihood_ratios(target, values, inside, variance=variance)
    sides = [np.array([values[mask[:, row], row].var(ddof=1) for row in range(30)]) for mask in (inside, ~inside)]
    means = [np.array([values[mask[:, row], row].mean() for row in range(30)]) for mask in (inside, ~inside)]
    fits = [stats.norm(mean, np.sqrt(side.mean())) for mean, side in zip(means, sides, strict=True)]
    assert online.scores == pytest.approx(fits[0].logpdf(target) - fits[1].logpdf(target))


def test_models_that_never_saw_the_rows_give_the_offline_form_alone():
    target, values, _ = shadows(10)
    (offline,) = likelihood_ratios(target, values, np.zeros(values.shape, dtype=bool))
    assert offline.name == "likelihood ratio, offline"


def test_shadow_models_that_all_agree_give_finite_scores():
    _, _, inside = shadows(10)
    for attack in likelihood_ratios(np.ones(30), np.zeros(inside.shape), inside):
        assert np.isfinite(attack.scores).all()


@given(st.floats(-5, 5), st.floats(0.1, 10))
def test_the_offline_score_does_not_depend_on_the_scale_of_the_statistic(shift, scale):
    target, values, inside = shadows(10, 8)
    first = likelihood_ratios(target, values, inside, variance="row")[1].scores
    again = likelihood_ratios(shift + scale * target, shift + scale * values, inside, variance="row")[1].scores
    assert again == pytest.approx(first, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"target": np.zeros(3)}, "shapes"),
        ({"inside": np.ones((10, 30))}, "booleans"),
        ({"inside": np.ones((10, 30), dtype=bool)}, "fewer than two"),
        ({"target": np.full(30, np.nan)}, "not finite"),
        ({"variance": "own"}, "auto, row or pooled"),
    ],
)
def test_shadow_models_that_do_not_fit_are_refused(change, message):
    target, values, inside = shadows(10)
    with pytest.raises(InputError, match=message):
        likelihood_ratios(**({"target": target, "shadows": values, "inside": inside} | change))
