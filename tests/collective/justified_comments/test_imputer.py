"""Votes that were hidden are predicted, and the chances are calibrated."""

import numpy as np
import pytest
from scipy import sparse

from aboveboard.collective import ApprovalImputer, justified_representation
from aboveboard.core import InputError


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(150, 2)), rng.normal(size=(60, 2))
    chance = 1.0 / (1.0 + np.exp(-2.0 * left @ right.T))
    votes = np.where(rng.random(chance.shape) < chance, 1, -1)
    seen = rng.random(votes.shape) < 0.4
    return chance, votes, np.where(seen, votes, 0)


@pytest.fixture(scope="module")
def fitted(case):
    return ApprovalImputer(rank=3, random_state=0).fit(case[2])


def test_hidden_votes_are_predicted_far_better_than_by_the_overall_share(case, fitted):
    chance, votes, cast = case
    hidden = cast == 0
    p = fitted.predict_proba()[hidden]
    truth = votes[hidden] > 0
    loss = -np.log(np.where(truth, p, 1 - p)).mean()
    best = -(chance * np.log(chance) + (1 - chance) * np.log(1 - chance))[hidden].mean()
    assert best < loss < 0.5 * (best + np.log(2))
    assert fitted.cv_log_loss_ == pytest.approx(loss, abs=0.05)
    assert fitted.baseline_log_loss_ == pytest.approx(np.log(2), abs=0.01)


def test_chances_are_calibrated_on_hidden_votes(case, fitted):
    _, votes, cast = case
    hidden = cast == 0
    p, truth = fitted.predict_proba()[hidden], votes[hidden] > 0
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (p >= low) & (p < low + 0.2)
        assert truth[inside].mean() == pytest.approx(p[inside].mean(), abs=0.06)


def test_the_penalised_loss_never_rises(fitted):
    assert (np.diff(fitted.loss_path_) <= 1e-9).all()


def test_votes_that_were_cast_are_kept(case, fitted):
    _, _, cast = case
    for filled in (fitted.approvals(), fitted.sample(1)):
        dense = filled.toarray()
        assert (dense[cast != 0] == (cast[cast != 0] > 0)).all()
    assert ((fitted.predict_proba() >= 0.5) == fitted.approvals().toarray())[cast == 0].all()
    assert (fitted.predict_proba([3, 5]) == fitted.predict_proba()[[3, 5]]).all()


def test_sparse_votes_and_the_same_seed_give_the_same_chances(case, fitted):
    again = ApprovalImputer(rank=3, random_state=0).fit(sparse.csr_array(case[2]))
    assert (again.predict_proba() == fitted.predict_proba()).all()
    assert (fitted.sample(7) != fitted.sample(7)).nnz == 0


def test_the_chance_of_representation_is_one_or_zero_where_nothing_is_missing():
    votes = np.array([[1, 1, -1, -1]] * 6 + [[-1, -1, 1, 1]] * 6)
    fitted = ApprovalImputer(rank=1, random_state=0).fit(votes)
    for selected in ([0, 1], [0, 2]):
        truth = justified_representation(votes > 0, selected, 2).satisfied
        assert fitted.probability_of_jr(selected, 2, n_draws=5, random_state=0) == truth


def test_features_carry_over_to_comments_that_nobody_voted_on():
    rng = np.random.default_rng(1)
    features, taste = rng.normal(size=(40, 2)), rng.normal(size=(120, 2)) * 2
    votes = np.where(taste @ features.T > 0, 1, -1)
    votes[:, 30:] = 0
    fitted = ApprovalImputer(random_state=0).fit(votes, features)
    right = (fitted.predict_proba()[:, 30:] > 0.5) == (taste @ features[30:].T > 0)
    assert right.mean() > 0.85


@pytest.mark.parametrize(
    ("votes", "features", "options", "message"),
    [
        (np.ones(3), None, {}, "have shape"),
        (np.full((5, 5), 2), None, {}, "hold 2"),
        (np.full((5, 5), np.nan), None, {}, "hold nan"),
        (np.ones((5, 5)), None, {}, "0 disagree"),
        (np.array([["a"]]), None, {}, "type"),
        (np.array([[1, -1]] * 9), np.ones(2), {}, "features have shape"),
        (np.array([[1, -1]] * 9), [[1.0], [np.nan]], {}, "not all finite"),
        (np.array([[1, -1]] * 9), [["a"], ["b"]], {}, "not all numbers"),
        (np.array([[1, -1]] * 9), None, {"rank": 0}, "rank is 0"),
        (np.array([[1, -1]] * 9), None, {"penalty": 0}, "penalty is 0"),
        (np.array([[1, -1]] * 9), None, {"max_iter": 1.5}, "max_iter is 1.5"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(votes, features, options, message):
    with pytest.raises(InputError, match=message):
        ApprovalImputer(**options).fit(votes, features)


def test_too_few_draws_are_refused(fitted):
    with pytest.raises(InputError, match="n_draws is 0"):
        fitted.probability_of_jr([0], 1, n_draws=0)
