"""The equations against closed forms, simulation, and what must not change."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.fairness import bias_amplification, bias_curve, group_risk, simulate_group_risk


def _same(d, groups=2):
    return np.full((groups, d), d**-0.5)


def _rotated(power, d, seed):
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    values = np.arange(1.0, d + 1) ** -power
    return (basis * (values * d / values.sum())) @ basis.T


@pytest.fixture(scope="module")
def turned():
    """Covariances that do not commute, and targets that half agree."""
    d = 60
    rng = np.random.default_rng(0)
    first = rng.standard_normal(d) / np.sqrt(d)
    return [_rotated(0.5, d, 1), _rotated(1.0, d, 2)], np.array([first, first + 0.5 * rng.standard_normal(d) / d**0.5])


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("phi", [0.2, 0.5, 0.8])
def test_least_squares_without_penalty_has_the_classical_variance(phi):
    d, noise = 400, 0.3
    found = group_risk([np.ones(d)], _same(d, 1), noise, [d / phi], penalty=0)
    assert found.converged
    assert found.risk[0] == pytest.approx(noise * phi / (1 - phi), rel=1e-7)
    assert found.risk_bias[0] == pytest.approx(0, abs=1e-7)


@pytest.mark.parametrize("phi", [1.6, 4.0])
def test_interpolation_has_the_risk_of_hastie_and_others(phi):
    d, noise = 400, 0.3
    found = group_risk([np.ones(d)], _same(d, 1), noise, [d / phi], penalty=0)
    assert found.converged
    assert found.risk[0] == pytest.approx((1 - 1 / phi) + noise / (phi - 1), rel=1e-7)


def test_ridge_on_white_features_has_the_risk_of_the_marchenko_pastur_law():
    # R = lam^2 m'(-lam) |w|^2 + noise phi (m(-lam) - lam m'(-lam)), m the Stieltjes transform
    phi, lam, noise = 0.7, 0.2, 0.4

    def m(z):
        return (-(1 - phi + z) + np.sqrt((1 - phi + z) ** 2 + 4 * phi * z)) / (2 * phi * z)

    step = 1e-6
    slope = -(m(lam + step) - m(lam - step)) / (2 * step)
    expected = lam**2 * slope + noise * phi * (m(lam) - lam * slope)
    found = group_risk([np.ones(500)], _same(500, 1), noise, [500 / phi], penalty=lam)
    assert found.risk[0] == pytest.approx(expected, rel=1e-6)


def test_an_infinite_penalty_predicts_nothing(turned):
    covariances, weights = turned
    found = group_risk(covariances, weights, 0.3, [100, 50], penalty=1e8)
    expected = [w @ sigma @ w for w, sigma in zip(weights, covariances, strict=True)]
    assert found.risk == pytest.approx(expected, rel=1e-5)


def test_with_all_rows_in_one_group_the_other_pays_for_the_difference(turned):
    covariances, weights = turned
    found = group_risk(covariances, weights, 0.3, [1e9, 1], penalty=1e-9)
    difference = weights[1] - weights[0]
    assert found.risk[0] == pytest.approx(0, abs=1e-5)
    assert found.risk[1] == pytest.approx(difference @ covariances[1] @ difference, rel=1e-4)


@pytest.mark.parametrize("width_ratio", [None, 0.5, 2.0])
@pytest.mark.parametrize("rows", [(300, 100), (30, 370)])
def test_groups_that_are_alike_are_one_group_however_they_are_split(width_ratio, rows):
    sigma = _rotated(0.7, 80, 3)
    w = np.random.default_rng(4).standard_normal(80) / 9
    split = group_risk([sigma, sigma], [w, w], 0.2, rows, penalty=0.05, width_ratio=width_ratio)
    whole = group_risk([sigma], [w], 0.2, [400], penalty=0.05, width_ratio=width_ratio)
    assert split.risk == pytest.approx(np.repeat(whole.risk, 2), rel=1e-8)


def test_many_projections_are_no_projections():
    sigma, w = _rotated(0.5, 60, 5), np.full(60, 60**-0.5)
    wide = group_risk([sigma], [w], 0.2, [90], penalty=0.1 * 2000, width_ratio=2000)
    plain = group_risk([sigma], [w], 0.2, [90], penalty=0.1)
    assert wide.risk == pytest.approx(plain.risk, rel=1e-3)


# --- simulation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width_ratio", [None, 0.5, 2.0])
def test_it_agrees_with_fitted_regressions(width_ratio):
    d = 120
    rng = np.random.default_rng(7)
    first = rng.standard_normal(d) / np.sqrt(d)
    setting = {
        "covariances": [_rotated(0.4, d, 8), _rotated(0.9, d, 9)],
        "weights": [first, first + 0.4 * rng.standard_normal(d) / np.sqrt(d)],
        "noise_var": [0.2, 0.5],
        "n_per_group": [240, 120],
        "penalty": 0.1,
        "width_ratio": width_ratio,
    }
    theory = group_risk(**setting)
    drawn = simulate_group_risk(**setting, n_repeats=60, random_state=0)
    assert np.all(np.abs(theory.risk - drawn.risk) <= 4 * drawn.standard_error + 0.02 * drawn.risk)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_it_agrees_with_fitted_regressions_on_random_covariances(seed):
    rng = np.random.default_rng(seed)
    d = 300
    first = rng.standard_normal(d) / np.sqrt(d)
    setting = {
        "covariances": [
            _rotated(rng.uniform(0, 1), d, 10 * seed + 1),
            2 * _rotated(rng.uniform(0, 1), d, 10 * seed + 2),
        ],
        "weights": [first, first + rng.uniform(0, 1) * rng.standard_normal(d) / np.sqrt(d)],
        "noise_var": rng.uniform(0.1, 1, 2),
        "n_per_group": [int(rng.integers(300, 900)), int(rng.integers(100, 400))],
        "penalty": float(10 ** rng.uniform(-1.5, 0.5)),
        "width_ratio": [None, 0.4, 1.5][seed % 3],
    }
    theory = group_risk(**setting)
    drawn = simulate_group_risk(**setting, n_repeats=20, random_state=seed)
    assert np.all(np.abs(theory.risk - drawn.risk) <= 4 * drawn.standard_error + 0.02 * drawn.risk)


# --- one algebra for diagonals, common bases and others ---------------------------------------------------------------


@pytest.mark.parametrize("width_ratio", [None, 0.7])
def test_diagonals_common_bases_and_matrices_give_the_same(width_ratio):
    d = 40
    rng = np.random.default_rng(11)
    values = [rng.uniform(0.2, 2, d), rng.uniform(0.2, 2, d)]
    weights = rng.standard_normal((2, d)) / np.sqrt(d)
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    common = {"noise_var": [0.1, 0.4], "n_per_group": [70, 30], "penalty": 0.05, "width_ratio": width_ratio}
    plain = group_risk(values, weights, **common)
    matrices = group_risk([np.diag(v) for v in values], weights, **common)
    turned = group_risk([(basis * v) @ basis.T for v in values], weights @ basis.T, **common)
    # a change of 1e-6 in one entry keeps it from having a common basis, and hardly changes the risk
    nudge = np.zeros((d, d))
    nudge[0, 1] = nudge[1, 0] = 1e-6
    dense = group_risk([np.diag(values[0]) + nudge, np.diag(values[1])], weights, **common)
    assert matrices.risk == pytest.approx(plain.risk, rel=1e-10)
    assert turned.risk == pytest.approx(plain.risk, rel=1e-9)
    assert dense.risk == pytest.approx(plain.risk, rel=1e-5)


def test_second_moments_of_fixed_targets_are_the_targets(turned):
    covariances, weights = turned
    moments = np.einsum("ja,kb->jkab", weights, weights)
    common = {"noise_var": 0.3, "n_per_group": [100, 50], "penalty": 0.1, "width_ratio": 1.5}
    assert group_risk(covariances, moments, **common).risk == pytest.approx(
        group_risk(covariances, weights, **common).risk, rel=1e-9
    )


def test_second_moments_of_random_targets_give_the_mean_over_them(turned):
    covariances, _ = turned
    d = len(covariances[0])
    rng = np.random.default_rng(12)
    drawn = rng.standard_normal((200, 2, d)) / np.sqrt(d)
    common = {"noise_var": 0.3, "n_per_group": [100, 50], "penalty": 0.1}
    mean = np.mean([group_risk(covariances, w, **common).risk for w in drawn], axis=0)
    moments = np.einsum("rja,rkb->jkab", drawn, drawn) / len(drawn)
    assert group_risk(covariances, moments, **common).risk == pytest.approx(mean, rel=1e-9)


def test_diagonal_second_moments_are_those_in_full(turned):
    covariances, _ = turned
    d = len(covariances[0])
    diagonal = np.random.default_rng(13).uniform(0, 1, (2, 2, d)) / d
    diagonal[0, 1] = diagonal[1, 0] = np.minimum(diagonal[0, 0], diagonal[1, 1]) / 2
    full = np.einsum("jka,ab->jkab", diagonal, np.eye(d))
    common = {"noise_var": 0.3, "n_per_group": [100, 50], "penalty": 0.1}
    for sigma in (covariances, [np.diag(part) for part in covariances]):
        assert group_risk(sigma, diagonal, **common).risk == pytest.approx(
            group_risk(sigma, full, **common).risk, rel=1e-9
        )


# --- properties -------------------------------------------------------------------------------------------------------

amounts = st.floats(0.05, 5.0)


@settings(max_examples=25)
@given(st.lists(amounts, min_size=4, max_size=4), st.floats(1e-6, 10), st.sampled_from([None, 0.4, 1.0, 3.0]))
def test_the_fixed_point_solves_its_equations(values, penalty, width_ratio):
    d = 30
    sigma = [np.linspace(values[0], values[1], d), np.linspace(values[2], values[3], d)]
    found = group_risk(sigma, _same(d), 0.2, [25, 60], penalty=penalty, width_ratio=width_ratio)
    assert found.converged
    share = np.array([25, 60]) / 85
    Q = 1 / (share / (1 + found.e) @ np.array(sigma) + found.kappa)
    assert found.e == pytest.approx(np.array([part @ Q for part in sigma]) / 85, rel=1e-8)
    if width_ratio is None:
        assert found.kappa == penalty
    else:
        assert found.kappa * (width_ratio - 1 + found.kappa * Q.sum() / d) == pytest.approx(penalty, rel=1e-7)


@settings(max_examples=20)
@given(st.floats(0.0, 3.0), st.floats(1e-3, 3), st.floats(0.1, 10))
def test_variance_is_linear_in_the_noise_and_bias_quadratic_in_the_targets(noise, penalty, factor):
    d = 20
    rng = np.random.default_rng(14)
    sigma, w = rng.uniform(0.1, 2, (2, d)), rng.standard_normal((2, d)) / np.sqrt(d)
    one = group_risk(sigma, w, [noise, 2 * noise], [30, 20], penalty=penalty)
    more = group_risk(sigma, factor * w, [factor * noise, 2 * factor * noise], [30, 20], penalty=penalty)
    assert more.risk_variance == pytest.approx(factor * one.risk_variance, rel=1e-9, abs=1e-15)
    assert more.risk_bias == pytest.approx(factor**2 * one.risk_bias, rel=1e-8)
    assert one.risk == pytest.approx(one.risk_bias + one.risk_variance)
    assert one.test_error == pytest.approx(one.risk + np.array([noise, 2 * noise]))


def test_naming_the_groups_otherwise_only_reorders_the_answer(turned):
    covariances, weights = turned
    one = group_risk(covariances, weights, [0.1, 0.4], [100, 50], penalty=0.1, width_ratio=0.5)
    other = group_risk(covariances[::-1], weights[::-1], [0.4, 0.1], [50, 100], penalty=0.1, width_ratio=0.5)
    assert other.risk == pytest.approx(one.risk[::-1], rel=1e-10)
    assert other.u == pytest.approx(one.u[::-1, ::-1], rel=1e-10)


# --- amplification ----------------------------------------------------------------------------------------------------


def test_amplification_compares_the_joint_model_with_one_for_each():
    d = 300
    common = {"noise_var": 0.25, "n_per_group": [200, 200]}
    found = bias_amplification([np.full(d, 2.0), np.ones(d)], _same(d), **common, penalty=0.1)
    alone = [group_risk([np.full(d, v)], _same(d, 1), 0.25, [200], penalty=0.1).risk[0] for v in (2.0, 1.0)]
    assert found.edd == pytest.approx(abs(alone[0] - alone[1]), rel=1e-9)
    assert found.odd == pytest.approx(abs(np.diff(found.joint.risk)[0]))
    assert found.add == pytest.approx(found.odd / found.edd)
    assert found.pooling == pytest.approx(alone - found.joint.risk)
    assert found.signed_odd == pytest.approx(found.joint.risk[0] - found.joint.risk[1])


def test_weak_penalties_amplify_and_the_best_cures():
    # the shape of the brief's worked example: above 1 at both ends, below in between
    d = 300
    curve = bias_curve(
        [np.full(d, 2.0), np.ones(d)], _same(d), 0.25, [200, 200], penalties=[1e-3, 1e-2, 0.1, 0.5, 2, 10]
    )
    assert list(curve["amplification"] > 1) == [True, True, False, False, True, True]
    assert curve["converged"].all()


def test_the_curve_holds_what_single_points_give(turned):
    covariances, weights = turned
    common = {"noise_var": [0.1, 0.4], "n_per_group": [100, 50]}
    curve = bias_curve(covariances, weights, **common, penalties=[0.3, 0.01], width_ratios=[None, 0.5])
    assert list(curve["penalty"]) == [0.3, 0.01, 0.3, 0.01]
    for row in curve.to_dict("records"):
        width = None if np.isnan(row["width_ratio"]) else row["width_ratio"]
        point = bias_amplification(covariances, weights, **common, penalty=row["penalty"], width_ratio=width)
        assert row["amplification"] == pytest.approx(point.add, rel=1e-7)
        assert row["risk_1"] == pytest.approx(point.joint.risk[1], rel=1e-8)
        assert row["separate_risk_0"] == pytest.approx(point.separate[0].risk[0], rel=1e-8)


def test_groups_that_are_alike_have_no_inherent_gap_and_it_is_said():
    with pytest.warns(UserWarning, match="all but zero"):
        found = bias_amplification([np.ones(50)] * 2, _same(50), 0.2, [100, 100], penalty=0.1)
    assert np.isinf(found.add)


def test_disparities_of_test_errors_include_the_noise():
    common = {"noise_var": [0.1, 0.6], "n_per_group": [200, 100], "penalty": 0.1}
    sigma = [np.ones(50), np.full(50, 2.0)]
    risk = bias_amplification(sigma, _same(50), **common)
    error = bias_amplification(sigma, _same(50), **common, of="test_error")
    assert error.signed_odd == pytest.approx(risk.signed_odd - 0.5)
    assert error.signed_edd == pytest.approx(risk.signed_edd - 0.5)


def test_three_groups_are_compared_by_their_widest_gap():
    sigma = [np.full(40, v) for v in (0.5, 1.0, 4.0)]
    found = bias_amplification(sigma, _same(40, 3), 0.2, [80, 80, 80], penalty=0.2)
    assert found.odd == pytest.approx(np.ptp(found.joint.risk))
    assert len(found.separate) == 3


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = {
    "covariances": [np.ones(4), np.ones(4)],
    "weights": np.ones((2, 4)),
    "noise_var": 0.1,
    "n_per_group": [5, 5],
    "penalty": 0.1,
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"covariances": []}, "no covariance"),
        ({"covariances": [np.ones(4), np.ones(3)]}, "shapes"),
        ({"covariances": [np.ones((2, 3))] * 2}, "expected"),
        ({"covariances": [np.ones(4), np.array([1, 1, 1, -0.1])]}, "positive semidefinite"),
        ({"covariances": [np.eye(4), np.eye(4) - 0.6]}, "group 1 is not positive semidefinite"),
        ({"covariances": [np.eye(4), np.triu(np.ones((4, 4)))]}, "not symmetric"),
        ({"covariances": [np.ones(4), np.array([1, 1, np.nan, 1])]}, "not finite"),
        ({"covariances": [np.ones(4), np.zeros(4)]}, "zero"),
        ({"weights": np.ones((2, 3))}, "weights have shape"),
        ({"weights": np.full((2, 4), np.inf)}, "not finite"),
        ({"noise_var": -1.0}, "0 or more"),
        ({"noise_var": [1.0, 1.0, 1.0]}, "noise_var has shape"),
        ({"n_per_group": [5, 0]}, "at least one row"),
        ({"n_per_group": [5]}, "n_per_group has shape"),
        ({"penalty": -0.1}, "0 or more"),
        ({"penalty": np.nan}, "0 or more"),
        ({"width_ratio": 0}, "above 0"),
    ],
)
def test_what_cannot_be_used_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        group_risk(**(GOOD | change))


def test_other_things_that_cannot_be_used_are_refused():
    with pytest.raises(ValueError, match="two or more"):
        bias_amplification([np.ones(4)], np.ones((1, 4)), 0.1, [5], penalty=0.1)
    with pytest.raises(ValueError, match="penalty_separate"):
        bias_amplification(**GOOD, penalty_separate=[0.1, 0.1, 0.1])
    with pytest.raises(ValueError, match="of is"):
        bias_amplification(**GOOD, of="regret")
    with pytest.raises(ValueError, match="two or more"):
        bias_curve([np.ones(4)], np.ones((1, 4)), 0.1, [5], penalties=[0.1])
    with pytest.raises(ValueError, match="whole numbers"):
        simulate_group_risk(**(GOOD | {"n_per_group": [5.5, 5]}))
    with pytest.raises(ValueError, match="above 0"):
        simulate_group_risk(**(GOOD | {"penalty": 0.0}))
    with pytest.raises(ValueError, match="n_repeats"):
        simulate_group_risk(**GOOD, n_repeats=1)


@pytest.mark.parametrize("phi", [4.0, 10.0])
def test_tiny_penalties_with_more_columns_than_rows_converge(phi):
    d = 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = group_risk([np.full(d, 2.0), np.ones(d)], _same(d), 0.1, [d / phi / 2] * 2, penalty=1e-9)
    limit = group_risk([np.full(d, 2.0), np.ones(d)], _same(d), 0.1, [d / phi / 2] * 2, penalty=0)
    assert found.converged
    assert found.risk == pytest.approx(limit.risk, rel=1e-6)
