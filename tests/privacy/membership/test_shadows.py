"""Shadow models: halves, seeds, labels, and an attack that finds what was learned by heart."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from aboveboard.core import InputError
from aboveboard.privacy import attack_rates, likelihood_ratio_attack, score_attack
from aboveboard.privacy.membership._shadows import _halves


def rows(n=1600, noise=0.35, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, ((X[:, 0] > 0) ^ (rng.random(n) < noise)).astype(int)


MEMBER = np.arange(1600) < 800


@pytest.fixture(scope="module")
def overfitted():
    X, y = rows()
    return DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(X[MEMBER], y[MEMBER]), X, y


def test_every_row_is_inside_half_of_the_models_and_classes_are_split_evenly():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 101)
    inside = _halves(codes, 6, rng)
    assert (inside.sum(axis=0) == 3).all()
    assert (inside[0] != inside[1]).all()
    assert not (inside[0] == inside[2]).all()
    for code in range(3):
        counts = inside[:, codes == code].sum(axis=1)
        assert abs(counts - (codes == code).sum() / 2).max() <= 1


def test_what_was_learned_by_heart_is_found_and_by_more_than_the_loss_tells(overfitted):
    model, X, y = overfitted
    attacks = [*likelihood_ratio_attack(model, X, y, n_shadows=16), *score_attack(model.predict_proba(X), y)]
    found = {rate.attack: rate for rate in attack_rates(attacks, MEMBER) if rate.aim == 0.1}
    assert found["likelihood ratio, online"].interval.low > 0
    for form in ("online", "offline"):
        assert found[f"likelihood ratio, {form}"].excess > found["loss threshold"].excess


def test_a_model_that_cannot_remember_is_not_accused():
    X, y = rows()
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X[MEMBER], y[MEMBER])
    attacks = [*likelihood_ratio_attack(model, X, y, n_shadows=16), *score_attack(model.predict_proba(X), y)]
    assert all(rate.interval.low < 0.02 for rate in attack_rates(attacks, MEMBER))


def test_the_same_seed_gives_the_same_scores_whatever_the_model_is_seeded_with(overfitted):
    _, X, y = overfitted
    model = DecisionTreeClassifier(max_features=1).fit(X[MEMBER], y[MEMBER])  # without a seed of its own
    first, again, other = (
        likelihood_ratio_attack(model, X, y, n_shadows=4, random_state=seed)[1].scores for seed in (1, 1, 2)
    )
    assert first.tolist() == again.tolist()
    assert first.tolist() != other.tolist()


def test_several_threads_give_the_same_scores(overfitted):
    model, X, y = overfitted
    one, two = (likelihood_ratio_attack(model, X, y, n_shadows=4, n_jobs=n)[0].scores for n in (1, 2))
    assert one.tolist() == two.tolist()


def test_labels_of_any_kind_and_frames_give_the_same_scores(overfitted):
    model, X, y = overfitted
    words, frame = np.array(["no", "yes"], dtype=object)[y], pd.DataFrame(X, columns=list("abcd"))
    named = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(frame[MEMBER], words[MEMBER])
    expected = likelihood_ratio_attack(model, X, y, n_shadows=4)[0].scores
    assert likelihood_ratio_attack(named, frame, words, n_shadows=4)[0].scores.tolist() == expected.tolist()


def test_the_audited_model_is_left_as_it_was(overfitted):
    model, X, y = overfitted
    before = model.get_params(), model.predict_proba(X).tolist()
    likelihood_ratio_attack(model, X, y, n_shadows=4)
    assert (model.get_params(), model.predict_proba(X).tolist()) == before


@pytest.mark.parametrize("model", [LinearRegression(), LinearSVC(), DecisionTreeClassifier()])
def test_models_that_cannot_be_copied_or_give_no_probabilities_are_refused(model):
    X, y = rows(40)
    fitted = model if isinstance(model, DecisionTreeClassifier) else model.fit(X, y)  # the tree is left unfitted
    with pytest.raises(InputError, match="cannot be copied"):
        likelihood_ratio_attack(fitted, X, y)


@pytest.mark.parametrize("n_shadows", [2, 5, 4.0, True])
def test_the_number_of_shadow_models_is_even_and_four_at_least(overfitted, n_shadows):
    model, X, y = overfitted
    with pytest.raises(InputError, match="even number"):
        likelihood_ratio_attack(model, X, y, n_shadows=n_shadows)


def test_unknown_labels_and_classes_of_one_row_are_refused(overfitted):
    model, X, y = overfitted
    with pytest.raises(InputError, match="no classes of the model"):
        likelihood_ratio_attack(model, X, y + 1)
    with pytest.raises(InputError, match="a single row"):
        likelihood_ratio_attack(model, X[:4], [0, 0, 0, 1])
