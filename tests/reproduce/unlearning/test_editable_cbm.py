"""The experiment: its concepts tell the clothes apart, and its refits are regressions."""

import numpy as np
from sklearn.linear_model import Ridge

from aboveboard.data import info
from aboveboard.reproduce.unlearning import editable_cbm as experiment


def test_each_concept_is_of_some_kinds_of_clothing_and_not_of_all():
    from aboveboard.data.fetched import CLOTHING

    assert len(experiment.CONCEPTS) == 12
    for kinds in experiment.CONCEPTS.values():
        assert set(kinds) < set(CLOTHING)
    assert info("fashion_mnist").rows == 70_000


def test_the_concepts_tell_all_kinds_apart_but_coats_from_shirts():
    from aboveboard.data.fetched import CLOTHING

    patterns = {kind: tuple(kind in kinds for kinds in experiment.CONCEPTS.values()) for kind in CLOTHING}
    assert patterns["coat"] == patterns["shirt"]
    assert len(set(patterns.values())) == 9


def test_the_refit_of_the_squared_loss_is_two_ridge_regressions():
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(50, 3)), rng.normal(size=(7, 3))
    C, Y = rng.integers(0, 2, (50, 2)).astype(float), np.eye(3)[rng.integers(0, 3, 50)]

    def ones(A):
        return np.column_stack([A, np.ones(len(A))])

    heads = Ridge(alpha=0.5, fit_intercept=False).fit(ones(X), C)
    top = Ridge(alpha=2.0, fit_intercept=False).fit(ones(heads.predict(ones(X))), Y)
    expected = top.predict(ones(heads.predict(ones(X_new))))
    assert np.allclose(experiment._normal_equations(X, C, Y, X_new, (0.5, 2.0)), expected)


def test_flipped_labels_are_at_the_places_that_are_told():
    rng = np.random.default_rng(0)
    concepts = rng.integers(0, 2, (4_000, 3)).astype(float)
    noisy, wrong = experiment._flipped(concepts, rng)
    assert np.array_equal(noisy != concepts, wrong)
    assert abs(wrong.mean() - 0.05) < 0.006
