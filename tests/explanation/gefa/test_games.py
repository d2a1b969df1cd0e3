"""Shapley values of games: against closed forms, brute force over orders, quadrature, and simulation."""

from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from aboveboard.core import InputError, ModelError
from aboveboard.explanation import exact_shapley, published_gefa, shapley_from_game
from aboveboard.explanation.gefa._coalitions import draw_by_path, draw_by_size, every_coalition
from aboveboard.explanation.gefa._estimates import estimate
from tests.explanation.gefa.games import by_orders, monomials, table_game

OPTIONS = [
    {"weights": "marginal", "control": "linear", "antithetic": True},
    {"weights": "marginal", "control": "linear", "antithetic": False},
    {"weights": "marginal", "control": "size", "antithetic": True},
    {"weights": "score", "control": None, "antithetic": True},
]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# --- exact values -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 5, 6])
def test_exact_values_are_the_mean_gain_over_all_orders(n, rng):
    game, _ = table_game(n, rng)
    assert exact_shapley(game, n).values == pytest.approx(by_orders(game, n), abs=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 10), st.integers(0, 10**6))
def test_a_product_is_shared_equally_among_its_factors(n, seed):
    game, truth = monomials(n, 8, np.random.default_rng(seed))
    assert exact_shapley(game, n).values == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("n", [2, 5, 8])
def test_the_score_functions_integral_over_the_path_is_the_shapley_value(n, rng):
    """Owen's theorem by Gauss-Legendre quadrature: exact for the polynomial of degree n - 1 that is integrated."""
    game, values = table_game(n, rng)
    z = every_coalition(n).astype(float)
    nodes, weights = np.polynomial.legendre.leggauss(n)
    t, weights = (nodes + 1) / 2, weights / 2
    phi = np.zeros(n)
    for path, weight in zip(t, weights, strict=True):
        chance = path ** z.sum(axis=1) * (1 - path) ** (n - z.sum(axis=1))
        phi += weight * (chance * values) @ (z / path - (1 - z) / (1 - path))
    assert phi == pytest.approx(exact_shapley(game, n).values, abs=1e-12)


@pytest.mark.parametrize("n", [3, 6])
def test_the_weights_by_size_have_the_shapley_value_as_their_expectation(n, rng):
    game, values = table_game(n, rng)
    inner = every_coalition(n)[1:-1]
    size = inner.sum(axis=1)
    chance = np.array([1 / ((n - 1) * len([1 for other in size if other == s])) for s in size])
    weight = (n - 1) * (inner / size[:, None] - ~inner / (n - size)[:, None])
    interior = (chance * values[1:-1]) @ weight
    assert interior + (values[-1] - values[0]) / n == pytest.approx(exact_shapley(game, n).values, abs=1e-12)
    assert chance @ weight == pytest.approx(np.zeros(n), abs=1e-12)
    assert (chance * size**2) @ weight == pytest.approx(np.zeros(n), abs=1e-11)


# --- estimates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o.values())))
def test_estimates_are_unbiased_for_every_player(options, rng):
    """2,000 draws of a game with no structure; all players at once at level 1e-4."""
    n, draws = 5, 2000
    game, _ = table_game(n, rng)
    truth = by_orders(game, n)
    found = np.array(
        [shapley_from_game(game, n, n_queries=16, random_state=rng, **options).values for _ in range(draws)]
    )
    z = (found.mean(axis=0) - truth) / (found.std(axis=0, ddof=1) / np.sqrt(draws))
    assert np.abs(z).max() < stats.norm.isf(1e-4 / (2 * n))


def test_the_published_estimator_lacks_the_ends_and_the_scale_but_for_the_bias_of_its_grid(rng):
    n, draws = 5, 500
    game, values = table_game(n, rng)
    truth = by_orders(game, n)
    found = np.array([published_gefa(game, n, n_queries=400, random_state=rng).values for _ in range(draws)])
    interior = (truth - (values[-1] - values[0]) / n) * (n + 1) / (n - 1)
    assert np.abs(found.mean(axis=0) - interior).max() < 0.35 * np.abs(interior).max()
    assert np.abs(found.mean(axis=0) - truth).max() > np.abs(found.mean(axis=0) - interior).max()
    assert not published_gefa(game, n, random_state=0).unbiased


def test_intervals_cover_the_truth_as_often_as_they_say():
    """2,000 draws of a non-additive game; the acceptance region is 99.9 % of the binomial of single draws."""
    n, draws = 10, 2000
    game, truth = monomials(n, 20, np.random.default_rng(3))
    hits = np.zeros(n)
    for seed in range(draws):
        low, high = shapley_from_game(game, n, n_queries=200, random_state=seed).interval(0.95)
        hits += (low <= truth) & (truth <= high)
    assert np.all((hits / draws > 0.92) & (hits / draws < 0.975))


@settings(deadline=None, max_examples=40)
@given(
    st.integers(2, 40),
    st.integers(4, 60),
    st.sampled_from(["linear", "size", None]),
    st.booleans(),
    st.sampled_from(["marginal", "score"]),
    st.integers(0, 1000),
    st.floats(1e-6, 1e6),
)
def test_values_sum_to_the_answer_less_the_baselines(n, half, control, antithetic, weights, seed, scale):
    rng = np.random.default_rng(seed)
    offset = rng.normal()
    game = lambda z: scale * (offset + np.tanh(z @ np.linspace(-1, 1, n)) ** 2)  # noqa: E731
    found = shapley_from_game(
        game, n, n_queries=2 * half, weights=weights, control=control, antithetic=antithetic, random_state=seed
    )
    assert abs(found.residual) <= 1e-12 * max(1.0, abs(found.full_value), abs(found.base_value))


@pytest.mark.parametrize("antithetic", [True, False])
@pytest.mark.parametrize("n", [13, 60])
def test_an_additive_game_is_found_exactly(n, antithetic, rng):
    weight = rng.normal(size=n)
    found = shapley_from_game(lambda z: 3 + z @ weight, n, n_queries=10 * n, antithetic=antithetic, random_state=0)
    assert found.values == pytest.approx(weight, abs=1e-12)
    assert found.stderr.max() < 1e-12


def test_few_players_are_enumerated(rng):
    game, _ = table_game(6, rng)
    found = shapley_from_game(game, 6, n_queries=62, random_state=0)
    assert found.method == "exact enumeration"
    assert found.values == pytest.approx(by_orders(game, 6), abs=1e-12)
    assert found.stderr.max() == 0
    assert shapley_from_game(game, 6, n_queries=60, random_state=0).method == "marginal weights"


def test_more_players_than_queries(rng):
    game, truth = monomials(2000, 30, rng)
    found = shapley_from_game(game, 2000, n_queries=500, random_state=0)
    assert abs(found.residual) < 1e-12
    z = (found.values - truth) / found.stderr
    assert np.abs(z).max() < stats.t.isf(1e-4 / 4000, found.dof)


def test_a_player_without_effect_gets_nothing_within_its_error(rng):
    game, _ = monomials(29, 40, rng)
    found = shapley_from_game(lambda z: game(z[:, :29]), 30, random_state=1)
    assert abs(found.values[29]) < 4 * found.stderr[29]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10**6), st.floats(-3, 3), st.floats(-3, 3))
def test_estimates_are_linear_in_the_game_without_a_surrogate(seed, a, b):
    rng = np.random.default_rng(seed)
    first, second = monomials(12, 6, rng)[0], monomials(12, 6, rng)[0]
    options = {"n": 12, "n_queries": 60, "control": None, "random_state": seed}
    both = shapley_from_game(lambda z: a * first(z) + b * second(z), **options).values
    apart = a * shapley_from_game(first, **options).values + b * shapley_from_game(second, **options).values
    assert both == pytest.approx(apart, abs=1e-9)


def test_same_seed_same_values_and_another_seed_others(rng):
    game, _ = monomials(20, 20, rng)
    first, again, other = (shapley_from_game(game, 20, random_state=seed).values for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_many_games_at_once_are_what_each_is_alone(rng):
    draw = draw_by_size(15, 100, rng, paired=True)
    games = [monomials(15, 10, rng)[0] for _ in range(4)]
    answers = np.column_stack([game(draw.present) for game in games])
    full, base = (np.array([game(np.full((1, 15), on))[0] for game in games], dtype=float) for on in (True, False))
    together = estimate(draw, answers, base, full, "linear")
    for k in range(4):
        alone = estimate(draw, answers[:, [k]], base[[k]], full[[k]], "linear")
        assert together.values[k] == pytest.approx(alone.values[0], abs=1e-12)
        assert together.stderr[k] == pytest.approx(alone.stderr[0], abs=1e-12)


# --- coalitions -------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 12), st.integers(4, 200), st.booleans(), st.integers(0, 99))
def test_sizes_are_listed_whole_or_drawn_equally_often_in_each_fold(n, half, paired, seed):
    assume(2**n - 2 > 2 * half)  # else all are asked about
    draw = draw_by_size(n, 2 * half, np.random.default_rng(seed), paired=paired)
    assert draw.present.shape == (2 * half, n)
    size = draw.first.sum(axis=1)
    size = np.minimum(size, n - size) if paired else size
    listed = draw.first[draw.fold < 0]
    assert len(np.unique(listed, axis=0)) == len(listed)
    for s in np.unique(size[draw.fold < 0]):
        assert not (size[draw.fold >= 0] == s).any()
        assert (size == s).sum() == comb(n, int(s)) // (2 if paired and 2 * s == n else 1)
    for fold in (0, 1):
        drawn = size[draw.fold == fold]
        chance = np.array([1 if paired and 2 * s == n else 2 for s in range(1, n // 2 + 1 if paired else n)])
        chance = np.where(np.isin(np.arange(1, len(chance) + 1), size[draw.fold < 0]), 0, chance)
        counts = np.bincount(drawn, minlength=len(chance) + 1)[1:]
        assert np.abs(counts - len(drawn) * chance / chance.sum()).max() < 1 + 1e-9


@pytest.mark.parametrize(("n", "queries", "paired"), [(6, 50, True), (6, 50, False), (9, 300, True), (30, 60, True)])
def test_weights_of_listed_and_drawn_coalitions_are_right_for_functions_of_the_size(n, queries, paired, rng):
    """Each coalition's weights by size sum to 1/size and 1/(n - size), on average over the draws."""
    totals = np.zeros(n - 1)
    for _ in range(400):
        draw = draw_by_size(n, queries, rng, paired=paired)
        size = draw.first.sum(axis=1)
        scale = np.where(draw.fold < 0, 1.0, 0.5) * draw.on * size / (n - 1)
        for s, weight in zip(size, scale, strict=True):
            totals[s - 1] += weight / (2 if paired else 1)
            if paired:
                totals[n - s - 1] += weight / 2
    assert totals / 400 == pytest.approx(np.full(n - 1, 1 / (n - 1)), rel=0.15)
    assert totals.sum() / 400 == pytest.approx(1.0)


def test_complements_come_in_pairs(rng):
    for draw in (draw_by_size(9, 40, rng, paired=True), draw_by_path(9, 40, rng, paired=True, nodes=11)):
        assert np.array_equal(draw.present[20:], ~draw.present[:20])


def test_by_path_too_all_sizes_are_equally_likely(rng):
    n, m = 6, 50_000
    draw = draw_by_path(n, m, rng, paired=False)
    counts = np.bincount(draw.present.sum(axis=1), minlength=n + 1)[1:n]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_all_coalitions_are_listed_from_none_to_all():
    assert sorted(map(tuple, every_coalition(3).astype(int))) == sorted(product((0, 1), repeat=3))
    assert not every_coalition(4)[0].any()
    assert every_coalition(4)[-1].all()


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n": 1}, "2 or more"),
        ({"n": 2.5}, "2 or more"),
        ({"n_queries": 6}, "8 or more"),
        ({"n_queries": 101}, "even"),
        ({"weights": "published"}, "'marginal' or 'score'"),
        ({"control": "ridge"}, "'linear', 'size' or None"),
        ({"feature_names": ["a"]}, "1 feature names for 20"),
    ],
)
def test_options_are_refused_before_the_game_is_asked(changed, message):
    def game(z):
        raise AssertionError("asked")

    with pytest.raises(InputError, match=message):
        shapley_from_game(game, **({"n": 20} | changed))


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (lambda z: np.ones((len(z), 2)), r"shape \(502, 2\)"),
        (lambda z: 1.0, "shape"),
        (lambda z: np.where(z[:, 0], np.nan, 1.0), "not finite"),
    ],
)
def test_a_game_must_give_one_finite_number_for_each_coalition(game, message):
    with pytest.raises(ModelError, match=message):
        shapley_from_game(game, 20, random_state=0)


def test_too_many_players_are_not_enumerated():
    with pytest.raises(InputError, match="shapley_from_game"):
        exact_shapley(lambda z: z[:, 0], 21)
