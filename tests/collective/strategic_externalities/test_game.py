"""The game against its definition, closed forms, brute force and best replies that are played out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from aboveboard.collective import ManipulationGame
from aboveboard.core import InputError

BOX = (-2.0, 2.0)
KINDS = {
    "l2-congestion": {"cost": "l2", "externality": "congestion", "alpha": 0.1, "beta": 0.05},
    "squared-congestion": {"cost": "squared_l2", "externality": "congestion", "alpha": 0.3, "beta": 0.05},
    "squared-proportional": {"cost": "squared_l2", "externality": "proportional", "alpha": 0.3, "beta": 0.2},
    "squared-alone": {"cost": "squared_l2", "externality": None, "alpha": 0.3},
    "l2-alone": {"cost": "l2", "externality": None, "alpha": 0.7},
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def people(n=6, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return np.clip(rng.normal(size=(n, d)), *BOX), rng.normal(size=d)


def congestion(x_i, r_i, x_j, r_j, beta=0.05):
    """The built-in congestion, as a user would write it; smooth at 0."""
    own, theirs = (np.sqrt(((r - x) ** 2).sum(-1) + 1e-12) for r, x in ((r_i, x_i), (r_j, x_j)))
    both = own + theirs
    return beta * both**2, (2 * beta * both / own)[..., None] * (r_i - x_i)


# --- closed forms -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "length"),
    [
        ({"cost": "l2", "externality": "congestion"}, lambda G, a, b, n: max(G - a, 0) / (4 * b * (n - 1))),
        ({"cost": "squared_l2", "externality": "congestion"}, lambda G, a, b, n: G / (2 * a + 4 * b * (n - 1))),
        ({"cost": "squared_l2", "externality": "proportional"}, lambda G, a, b, n: G / (2 * a + b * (n - 1))),
        ({"cost": "squared_l2", "externality": None}, lambda G, a, b, n: G / (2 * a)),
        ({"cost": "squared_l2", "externality": "congestion", "beta": 0.0}, lambda G, a, b, n: G / (2 * a)),
    ],
    ids=["l2-congestion", "squared-congestion", "squared-proportional", "squared-alone", "no-beta"],
)
@pytest.mark.parametrize("n", [3, 8, 50])
@pytest.mark.parametrize("gain", [0.2, 3.0])
def test_without_bounds_everybody_moves_as_far_as_the_closed_form_says(options, length, n, gain):
    game = ManipulationGame(alpha=0.3, gain=gain, **({"beta": 0.1} | options))
    X, w = people(n)
    found = game.equilibrium(X, w)
    expected = length(gain * np.linalg.norm(w), 0.3, game.beta, n)
    assert found.displacement == pytest.approx(np.full(n, expected), rel=1e-12)
    assert found.X_reported - X == pytest.approx(np.tile(expected * w / np.linalg.norm(w), (n, 1)), rel=1e-9)


@pytest.mark.parametrize("bounds", [None, BOX])
@pytest.mark.parametrize("externality", ["congestion", None])
def test_nobody_moves_where_moving_costs_more_than_the_score_is_worth(bounds, externality):
    X, w = people()
    game = ManipulationGame(alpha=1.01 * np.linalg.norm(w), externality=externality, bounds=bounds)
    found = game.equilibrium(X, w)
    assert (found.X_reported == X).all()
    assert (found.displacement == 0).all()


def test_a_single_applicant_has_nobody_in_his_way():
    X, w = people(1)
    for externality in ("congestion", "proportional"):
        game = ManipulationGame(cost="squared_l2", alpha=0.4, externality=externality, beta=0.3)
        assert game.equilibrium(X, w).displacement == pytest.approx(np.linalg.norm(w) / 0.8)


def test_two_applicants_with_a_proportional_externality_and_unequal_costs():
    """Two linear equations in the two lengths, solved by hand."""
    X, w = people(2)
    game = ManipulationGame(cost="squared_l2", alpha=0.5, externality="proportional", beta=0.2)
    found = game.equilibrium(X, w, cost_factor=[1.0, 3.0])
    G = np.linalg.norm(w)
    assert found.displacement == pytest.approx(np.linalg.solve([[1.0, 0.2], [0.2, 3.0]], [G, G]))


# --- against the definition -------------------------------------------------------------------------------------------


@each_kind
def test_a_deviation_changes_the_potential_by_what_it_gains(kind, definition):
    utility, potential = definition
    game = ManipulationGame(**KINDS[kind], gain=1.3, cost_weights=[1.0, 2.0, 0.5, 1.0])
    rng = np.random.default_rng(1)
    X, w = people()
    for _ in range(20):
        R, i = X + rng.normal(size=X.shape), int(rng.integers(len(X)))
        other = R.copy()
        other[i] += rng.normal(size=X.shape[1])
        gained = utility(game, X, other, w, i, 0.4) - utility(game, X, R, w, i, 0.4)
        assert game.potential(X, other, w, 0.4) - game.potential(X, R, w, 0.4) == pytest.approx(gained, abs=1e-10)
        assert game.potential(X, R, w, 0.4) == pytest.approx(potential(game, X, R, w, 0.4), abs=1e-10)


@each_kind
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_maximum_of_the_potential_that_a_general_solver_finds(kind, seed, definition):
    _, potential = definition
    game = ManipulationGame(**KINDS[kind], bounds=BOX)
    X, w = people(seed=seed)
    found = game.equilibrium(X, w, 0.2)
    start = np.clip(X + 0.01 * np.random.default_rng(seed).normal(size=X.shape), *BOX)
    general = minimize(
        lambda r: -potential(game, X, r.reshape(X.shape), w, 0.2),
        start.ravel(),
        bounds=[BOX] * X.size,
        method="L-BFGS-B",
        options={"ftol": 1e-15, "maxfun": 100_000},
    )
    assert found.potential == pytest.approx(potential(game, X, found.X_reported, w, 0.2), rel=1e-10)
    assert found.potential >= -general.fun - 1e-9
    assert found.X_reported.ravel() == pytest.approx(general.x, abs=2e-2)


@each_kind
def test_no_search_finds_a_better_report_for_anybody(kind, definition):
    utility, _ = definition
    game = ManipulationGame(**KINDS[kind], bounds=BOX)
    X, w = people(seed=4)
    R = game.equilibrium(X, w).X_reported
    rng = np.random.default_rng(0)
    for i in range(len(X)):
        now = utility(game, X, R, w, i)
        for scale in (2.0, 0.3, 0.03, 0.003):
            for _ in range(50):
                other = R.copy()
                other[i] = np.clip(R[i] + scale * rng.normal(size=X.shape[1]), *BOX)
                assert utility(game, X, other, w, i) <= now + 1e-9


@each_kind
def test_a_best_response_beats_what_a_general_solver_finds_and_the_gap_is_what_it_gains(kind, definition):
    utility, _ = definition
    game = ManipulationGame(**KINDS[kind], bounds=BOX, cost_weights=[1.0, 2.0, 0.5, 1.0])
    rng = np.random.default_rng(2)
    X, w = people()
    R = np.clip(X + 0.5 * rng.normal(size=X.shape), *BOX)
    gains = []
    for i in range(len(X)):

        def gets(r, i=i):
            other = R.copy()
            other[i] = r
            return utility(game, X, other, w, i)

        best = gets(game.best_response(X, R, w, i))
        general = minimize(lambda r, gets=gets: -gets(r), R[i], bounds=[BOX] * X.shape[1], method="L-BFGS-B")
        assert best >= -general.fun - 1e-9
        gains.append(best - gets(R[i]))
    assert game.nash_gap(X, R, w) == pytest.approx(max(gains), abs=1e-9)


@each_kind
def test_best_responses_in_turn_from_any_start_lead_to_it(kind):
    game = ManipulationGame(**KINDS[kind], bounds=BOX)
    X, w = people(4, seed=3)
    found = game.equilibrium(X, w)
    rng = np.random.default_rng(0)
    for _ in range(5):
        R = rng.uniform(*BOX, size=X.shape)
        for _ in range(20):
            for i in range(len(X)):
                R[i] = game.best_response(X, R, w, i)
        assert pytest.approx(found.X_reported, abs=1e-4) == R


@each_kind
def test_nobody_s_place_in_the_list_matters(kind):
    game = ManipulationGame(**KINDS[kind], bounds=BOX)
    X, w = people(7)
    order = np.random.default_rng(0).permutation(7)
    assert game.equilibrium(X[order], w).X_reported == pytest.approx(
        game.equilibrium(X, w).X_reported[order], abs=1e-12
    )


def test_equilibria_move_no_faster_than_the_lipschitz_bound():
    rng = np.random.default_rng(0)
    for options in KINDS.values():
        for weights in (None, [1.0, 2.0, 0.5, 1.0]):
            game = ManipulationGame(**options, bounds=BOX, gain=0.7, cost_weights=weights)
            X, _ = people(5)
            for _ in range(40):
                w, v = rng.normal(size=(2, 4))
                v = w + (v - w) * rng.choice([1.0, 0.01])
                moved = np.linalg.norm(game.equilibrium(X, w).X_reported - game.equilibrium(X, v).X_reported)
                assert moved <= game.lipschitz(5) * np.linalg.norm(w - v) * (1 + 1e-9)


# --- batches, masks, weights ------------------------------------------------------------------------------------------


def test_games_in_a_batch_are_solved_as_if_alone():
    rng = np.random.default_rng(0)
    X, w = np.clip(rng.normal(size=(3, 4, 6, 5)), *BOX), rng.normal(size=5)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX)
    found = game.equilibrium(X, w)
    assert found.displacement.shape == (3, 4, 6)
    assert found.nash_gap.shape == found.potential.shape == (3, 4)
    alone = game.equilibrium(X[1, 2], w)
    assert found.X_reported[1, 2] == pytest.approx(alone.X_reported, abs=1e-12)
    assert found.potential[1, 2] == pytest.approx(float(alone.potential))


def test_games_too_large_for_one_piece_are_solved_in_several(monkeypatch):
    from aboveboard.collective.strategic_externalities import _crowd

    X, w = np.clip(np.random.default_rng(0).normal(size=(50, 6, 3)), *BOX), np.ones(3)
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX)
    whole = game.equilibrium(X, w)
    monkeypatch.setattr(_crowd, "_NUMBERS_AT_ONCE", 40)
    assert game.equilibrium(X, w).X_reported == pytest.approx(whole.X_reported, abs=1e-12)


def test_cost_weights_are_a_change_of_units():
    X, w = people()
    c = np.array([1.0, 3.0, 0.2, 5.0])
    low, high = np.full(4, -2.0), np.full(4, 2.0)
    options = {"cost": "squared_l2", "alpha": 0.2, "beta": 0.02}
    one = ManipulationGame(**options, bounds=(low, high), cost_weights=c).equilibrium(X, w)
    other = ManipulationGame(**options, bounds=(low * c, high * c)).equilibrium(X * c, w / c)
    assert one.X_reported * c == pytest.approx(other.X_reported)
    assert one.displacement == pytest.approx(other.displacement)


def test_what_cannot_be_moved_stays_and_the_rest_plays_by_itself():
    X, w = people()
    free = np.array([True, False, True, True])
    game = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX, manipulable=free)
    found = game.equilibrium(X, w)
    assert (found.X_reported[:, 1] == X[:, 1]).all()
    rest = ManipulationGame(alpha=0.1, beta=0.05, bounds=BOX).equilibrium(X[:, free], w[free])
    assert found.X_reported[:, free] == pytest.approx(rest.X_reported)


def test_whoever_pays_more_moves_less():
    X = np.zeros((4, 3))
    game = ManipulationGame(cost="squared_l2", alpha=0.2, beta=0.05)
    found = game.equilibrium(X, [1.0, 1.0, 1.0], cost_factor=[1.0, 2.0, 4.0, 8.0])
    assert (np.diff(found.displacement) < 0).all()
    assert found.nash_gap < 1e-12


def test_reports_that_meet_a_bound_lie_on_it_exactly():
    X, w = people(40)
    X = X / 3
    game = ManipulationGame(cost="squared_l2", alpha=0.01, beta=0.001, bounds=(-0.7, 0.7), cost_weights=[3, 0.3, 7, 1])
    R = game.equilibrium(np.clip(X, -0.7, 0.7), w).X_reported
    assert (np.abs(R) == 0.7).mean() > 0.5
    assert np.abs(R).max() == 0.7


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    kind=st.sampled_from(sorted(KINDS)),
    n=st.integers(3, 30),
    d=st.integers(1, 6),
    size=st.sampled_from([1e-6, 1e-2, 1.0, 1e3]),
    box=st.booleans(),
)
def test_the_gap_is_nil_for_games_of_any_size(seed, kind, n, d, size, box):
    rng = np.random.default_rng(seed)
    X = np.round(np.clip(rng.normal(size=(n, d)), *BOX), 1)  # ties, and applicants on a bound
    w = size * rng.normal(size=d) * (rng.random(d) < 0.8)
    if kind == "l2-alone" and not box:
        box = True
    found = ManipulationGame(**KINDS[kind], bounds=BOX if box else None).equilibrium(X, w)
    worth = 1.0 + np.abs(w).sum() * np.abs(found.X_reported).max()
    assert found.nash_gap <= 1e-9 * worth
    assert ((found.X_reported - X) @ w >= -1e-12).all()


# --- an externality of one's own --------------------------------------------------------------------------------------


def test_a_callable_gives_what_the_built_in_one_gives():
    X, w = people(5, 3)
    own = ManipulationGame(cost="squared_l2", alpha=0.3, externality=congestion, bounds=BOX)
    built_in = ManipulationGame(cost="squared_l2", alpha=0.3, externality="congestion", beta=0.05, bounds=BOX)
    one, other = own.equilibrium(X, w, 0.3), built_in.equilibrium(X, w, 0.3)
    assert one.X_reported == pytest.approx(other.X_reported, abs=1e-4)
    assert one.potential == pytest.approx(float(other.potential), abs=1e-6)
    assert one.nash_gap < 1e-5
    assert one.unverified_symmetry
    assert not other.unverified_symmetry
    assert not own.is_unique(5)[0]


def test_a_callable_with_costs_in_proportion_to_the_distance_leaves_some_where_they_are():
    def crowded_features(x_i, r_i, x_j, r_j):
        own, theirs = r_i - x_i, r_j - x_j
        return 0.2 * ((own + theirs) ** 2).sum(-1), 0.4 * (own + theirs)

    X, w = people(4, 3, seed=5)
    game = ManipulationGame(cost="l2", alpha=0.5 * np.linalg.norm(w), externality=crowded_features, bounds=BOX)
    found = game.equilibrium(np.stack([X, X / 2]), w)
    assert found.nash_gap.shape == (2,)
    assert (found.nash_gap < 1e-5).all()
    R = found.X_reported[0]
    assert game.nash_gap(X, R, w) < 1e-5
    assert game.best_response(X, R, w, 2) == pytest.approx(R[2], abs=1e-3)
    still = ManipulationGame(cost="l2", alpha=1.1 * np.linalg.norm(w), externality=crowded_features, bounds=BOX)
    assert (still.equilibrium(X, w).displacement == 0).all()


@pytest.mark.parametrize(
    ("term", "message"),
    [
        (lambda a, b, c, d: (((b - a) ** 2).sum(-1), 2 * (b - a)), "not symmetric"),
        (lambda a, b, c, d: (((b - a + d - c) ** 2).sum(-1), 3 * (b - a + d - c)), "gradient"),
        (lambda a, b, c, d: (-10 * ((b - a + d - c) ** 2).sum(-1), -20 * (b - a + d - c)), "not convex"),
        (lambda a, b, c, d: (np.zeros(3), np.zeros(3)), "gave shapes"),
    ],
    ids=["one-sided", "wrong-gradient", "concave", "shape"],
)
def test_a_callable_that_makes_no_potential_game_is_refused(term, message):
    X, w = people(4, 3)
    with pytest.raises(InputError, match=message):
        ManipulationGame(externality=term, bounds=BOX).equilibrium(X, w)


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cost": "l1"}, "cost is 'l1'"),
        ({"externality": "crowding"}, "externality is 'crowding'"),
        ({"alpha": 0.0}, "alpha is 0.0"),
        ({"alpha": float("nan")}, "alpha is nan"),
        ({"alpha": True}, "alpha is True"),
        ({"beta": -0.1}, "beta is -0.1"),
        ({"gain": 0}, "gain is 0"),
        ({"bounds": 3}, "bounds is 3"),
        ({"bounds": (1, 0)}, "lies above"),
        ({"bounds": ([0, 1], [2, 3, 4])}, "2 lower and 3 upper"),
        ({"bounds": (float("nan"), 1)}, "bounds are no numbers"),
        ({"cost_weights": [1.0, 0.0]}, "not all above 0"),
        ({"cost_weights": ["a"]}, "not made of numbers"),
        ({"manipulable": [1, 0]}, "true and false"),
    ],
)
def test_values_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ManipulationGame(**options)


@pytest.mark.parametrize(
    ("options", "n", "message"),
    [
        ({"cost": "l2"}, 2, "share out their moves"),
        ({"cost": "l2", "externality": "proportional"}, 5, "2 alpha must exceed beta"),
        (
            {"cost": "squared_l2", "alpha": 0.1, "externality": "proportional", "beta": 0.2},
            5,
            "2 alpha must exceed beta",
        ),
    ],
)
def test_games_without_a_single_equilibrium_are_refused(options, n, message):
    X, w = people(n)
    game = ManipulationGame(**options)
    assert not game.is_unique(n)[0]
    assert game.lipschitz(n) == float("inf")
    with pytest.raises(InputError, match=message):
        game.equilibrium(X, w)


def test_a_cheap_applicant_can_break_the_single_equilibrium():
    game = ManipulationGame(cost="squared_l2", alpha=0.2, externality="proportional", beta=0.3)
    X, w = people(3)
    game.equilibrium(X, w)
    with pytest.raises(InputError, match="no single equilibrium"):
        game.equilibrium(X, w, cost_factor=[1.0, 1.0, 0.5])


def test_moves_without_end_are_refused():
    X, w = people()
    game = ManipulationGame(alpha=0.5 * np.linalg.norm(w), externality=None)
    assert not game.is_unique(6)[0]
    with pytest.raises(InputError, match="nothing stops an applicant"):
        game.equilibrium(X, w)
    assert game.nash_gap(X, X, w) == float("inf")
    assert ManipulationGame(externality=None, bounds=BOX).is_unique(6)[0]


@pytest.mark.parametrize(
    ("X", "w", "message"),
    [
        (np.zeros(3), np.ones(3), "X has shape"),
        (np.zeros((0, 3)), np.ones(3), "X has shape"),
        (np.full((4, 3), np.nan), np.ones(3), "missing or infinite"),
        (np.full((4, 3), "a"), np.ones(3), "not made of numbers"),
        (np.zeros((4, 3)), np.ones(2), "coef has shape"),
        (np.zeros((4, 3)), [1.0, np.inf, 0.0], "coef holds"),
        (np.full((4, 3), 9.0), np.ones(3), "outside the bounds"),
    ],
)
def test_features_that_cannot_be_used_are_refused(X, w, message):
    with pytest.raises(InputError, match=message):
        ManipulationGame(bounds=BOX).equilibrium(X, w)


def test_reports_and_factors_that_do_not_fit_are_refused():
    X, w = people()
    game = ManipulationGame(bounds=BOX, manipulable=[True, True, True, False])
    with pytest.raises(InputError, match="was moved and cannot be"):
        game.nash_gap(X, X + 0.01, w)
    with pytest.raises(InputError, match="X_reported has shape"):
        game.nash_gap(X, X[:2], w)
    with pytest.raises(InputError, match="cost_factor has shape"):
        game.equilibrium(X, w, cost_factor=[1.0])
    with pytest.raises(InputError, match="applicant 9"):
        game.best_response(X, X, w, 9)
    with pytest.raises(InputError, match="4, one per feature"):
        ManipulationGame(cost_weights=[1.0, 2.0]).equilibrium(X, w)
    with pytest.raises(InputError, match="n is 0"):
        game.is_unique(0)
    with pytest.raises(InputError, match="function of your own"):
        ManipulationGame(externality=congestion).strong_convexity(3)


def test_games_can_be_compared_and_shown():
    one = ManipulationGame(bounds=(np.zeros(2), np.ones(2)), cost_weights=np.ones(2))
    assert one == ManipulationGame(bounds=([0, 0], [1, 1]), cost_weights=[1, 1])
    assert "congestion" in repr(one)
