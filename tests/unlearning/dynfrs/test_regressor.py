import numpy as np
import pytest
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

pytest.importorskip("numba")
from aboveboard.core import InputError
from aboveboard.unlearning import DynFrsRegressor

EXPECTED_FAILURES = {
    "check_sample_weight_equivalence_on_dense_data": (
        "A row of weight 2 stands twice in the same trees; two equal records have ids of their own and stand in trees "
        "of their own. At occurrence=1 the two are equal, which another test asserts."
    ),
}


@pytest.mark.parametrize(
    ("estimator", "check"),
    list(
        estimator_checks_generator(
            DynFrsRegressor(random_state=0), expected_failed_checks=EXPECTED_FAILURES, mark="skip"
        )
    ),
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_it_is_a_scikit_learn_regressor(estimator, check):
    check(estimator)


def test_it_is_about_as_good_as_extra_trees():
    X, y = make_friedman1(3000, noise=1.0, random_state=0)
    model = DynFrsRegressor(occurrence=0.3, random_state=0).fit(X[:2000], y[:2000])
    peer = ExtraTreesRegressor(100, min_samples_split=10, random_state=0).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) > peer.score(X[2000:], y[2000:]) - 0.05


def test_a_large_offset_costs_no_digits():
    X, y = load_diabetes(return_X_y=True)
    plain = DynFrsRegressor(20, random_state=0).fit(X, y)
    shifted = DynFrsRegressor(20, random_state=0).fit(X, y + 2.0**30)
    assert np.allclose(shifted.predict(X) - 2.0**30, plain.predict(X), atol=1e-6)


def test_zero_depth_gives_the_mean_of_what_is_left():
    X, y = load_diabetes(return_X_y=True)
    model = DynFrsRegressor(10, occurrence=1.0, max_depth=0).fit(X, y)
    assert model.predict(X[:1])[0] == pytest.approx(y.mean(), abs=1e-9)
    assert model.remove(range(100)).predict(X[:1])[0] == pytest.approx(y[100:].mean(), abs=1e-9)


def test_sums_are_exact_in_any_order_for_targets_of_very_different_size():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (500, 3)).astype(float)
    y = np.exp(rng.normal(0, 6, 500))
    model = DynFrsRegressor(20, random_state=0).fit(X, y)
    for i in rng.permutation(500)[:250]:
        model.remove(int(i))
    left = model.sample_ids_[::-1]
    afresh = DynFrsRegressor(20, random_state=0).fit(X[left], y[left], sample_id=left)
    assert model.fingerprint() == afresh.fingerprint()
    assert np.array_equal(model.predict(X), afresh.predict(X))


def test_at_occurrence_one_a_weight_of_w_is_w_equal_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(200, 4)), rng.normal(size=200), rng.integers(0, 4, 200)
    options = {"n_estimators": 7, "occurrence": 1.0, "random_state": 1}
    weighted = DynFrsRegressor(**options).fit(X, y, sample_weight=weight)
    repeated = DynFrsRegressor(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(weighted.predict(X), repeated.predict(X))


def test_a_constant_target_gives_no_split():
    model = DynFrsRegressor(5, occurrence=1.0).fit(np.arange(40.0).reshape(-1, 1), np.full(40, 3.25))
    assert model.predict([[7.0]])[0] == 3.25
    assert all(tree.meta[0] == 1 for tree in model.forest_.trees)


def test_a_step_that_is_too_coarse_is_warned_of_and_one_that_is_too_fine_refused():
    X, y = load_diabetes(return_X_y=True)
    with pytest.warns(UserWarning, match="target_step=1 is coarse"):
        DynFrsRegressor(5, target_step=1.0).fit(X, y)
    with pytest.raises(InputError, match="Set a larger target_step"):
        DynFrsRegressor(5, target_step=1e-15).fit(X, y)
    with pytest.raises(InputError, match="target_step is 0"):
        DynFrsRegressor(5, target_step=0).fit(X, y)
    model = DynFrsRegressor(5).fit(X, y)
    with pytest.raises(InputError, match="absolute targets sum to"):
        model.partial_fit(X[:1], [4.4e12])
    with pytest.raises(InputError, match="NaN"):
        model.partial_fit(X[:1], [np.nan])


def test_rows_may_come_one_after_another():
    X, y = load_diabetes(return_X_y=True)
    model = DynFrsRegressor(10, random_state=0).partial_fit(X[:200], y[:200])
    for i in range(200, 442):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.fingerprint() == DynFrsRegressor(10, random_state=0).fit(X, y).fingerprint()
    assert model.certify().holds
