"""The sparse barycenter: closed forms, transport costs by linear programming, ratio against brute force, refusals."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.cluster import KMeans

from aboveboard.core import Certificate, InputError
from aboveboard.fairness import sparse_wasserstein_barycenter
from aboveboard.fairness.fair_kmeans._assignment import squared_distances


def transport_cost(X, p, Y, q):
    """Return the squared Wasserstein distance by a linear program."""
    n, k = len(X), len(Y)
    rows = [np.kron(np.eye(n)[i], np.ones(k)) for i in range(n)] + [np.kron(np.ones(n), np.eye(k)[j]) for j in range(k)]
    found = linprog(squared_distances(X, Y).ravel(), A_eq=np.array(rows), b_eq=np.r_[p, q])
    assert found.status == 0
    return found.fun


def measures(seed, count=3, n=6, d=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) + i for i in range(count)], [rng.dirichlet(np.ones(n)) for _ in range(count)]


def test_the_middle_of_two_points_is_half_way():
    for weight, atom, cost in ((0.5, 0.5, 0.25), (0.25, 0.75, 0.1875)):
        middle = sparse_wasserstein_barycenter([[[0.0]], [[1.0]]], [[1], [1]], 1, weights=[weight, 1 - weight])
        assert middle.atoms == pytest.approx(np.array([[atom]]))
        assert middle.cost == pytest.approx(cost)
        assert middle.masses.tolist() == [1.0]


def test_one_measure_gives_weighted_k_means():
    X, p = (part[0] for part in measures(0, 1, 30))
    found = sparse_wasserstein_barycenter([X], [p], 3, random_state=0, refine=50)
    assert found.cost == pytest.approx(KMeans(3, n_init=10, random_state=0).fit(X, sample_weight=p).inertia_, rel=0.02)


def test_a_measure_with_few_atoms_is_its_own_barycenter():
    X, p = np.array([[0.0, 0.0], [1.0, 2.0], [5.0, 1.0]]), np.array([0.2, 0.3, 0.5])
    found = sparse_wasserstein_barycenter([X] * 4, [p] * 4, 3, random_state=0)
    assert found.cost == pytest.approx(0, abs=1e-12)
    order = np.argsort(found.atoms[:, 0])
    assert found.atoms[order] == pytest.approx(X)
    assert found.masses[order] == pytest.approx(p)


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(1, 4), st.sampled_from(["points", "kmeans"]))
def test_the_couplings_carry_the_masses_and_the_cost_is_that_of_optimal_transport(seed, k, candidates):
    X, p = measures(seed)
    weights = np.array([0.5, 0.3, 0.2])
    found = sparse_wasserstein_barycenter(X, p, k, weights=weights, candidates=candidates, random_state=0)
    assert len(found.atoms) <= k
    assert found.masses.sum() == pytest.approx(1)
    for coupling, masses in zip(found.couplings, p, strict=True):
        assert coupling.toarray().min() >= 0
        assert coupling.sum(axis=1) == pytest.approx(masses)
        assert coupling.sum(axis=0) == pytest.approx(found.masses, abs=1e-7)
    true = sum(w * transport_cost(x, q, found.atoms, found.masses) for w, x, q in zip(weights, X, p, strict=True))
    assert found.cost == pytest.approx(true, rel=1e-6)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_with_all_points_as_candidates_it_is_within_eight_times_the_best_on_a_fine_search(seed):
    rng = np.random.default_rng(seed)
    X, p = [rng.normal(size=(2, 1)) for _ in range(2)], [np.array([0.5, 0.5])] * 2
    # on a line with equal masses the barycenter pairs points in order; one atom: the mean of all
    pairs = np.sort(X[0], axis=0) / 2 + np.sort(X[1], axis=0) / 2
    best = {
        2: sum(0.5 * transport_cost(x, q, pairs, [0.5, 0.5]) for x, q in zip(X, p, strict=True)),
        1: float(np.mean((np.vstack(X) - np.vstack(X).mean()) ** 2)),
    }
    for k, least in best.items():
        found = sparse_wasserstein_barycenter(X, p, k, candidates="points", kmeans_n_init=20, random_state=0)
        assert least - 1e-9 <= found.cost <= 8 * least + 1e-9


def test_points_without_mass_change_nothing():
    X, p = measures(1)
    wide = [np.vstack([x, [[100.0, 100.0]]]) for x in X]
    padded = [np.r_[q, 0.0] for q in p]
    plain, more = (sparse_wasserstein_barycenter(*pair, 3, random_state=0) for pair in ((X, p), (wide, padded)))
    assert more.cost == pytest.approx(plain.cost)
    assert all(coupling.toarray()[-1].sum() == 0 for coupling in more.couplings)


@pytest.mark.parametrize(("candidates", "ratio"), [("points", (2, 6)), ("kmeans", None), ("array", (1, 4))])
def test_the_certificate_states_the_ratio_of_the_mode(candidates, ratio):
    X, p = measures(2)
    given_atoms = np.vstack(X) if candidates == "array" else candidates
    certificate = sparse_wasserstein_barycenter(X, p, 2, candidates=given_atoms, random_state=0).certificate()
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    if ratio is None:
        assert "ratio" not in certificate.parameters
        return
    stated = [float(part.split()[0]) for part in certificate.parameters["ratio"].split(" + ")]
    assert stated == pytest.approx(ratio, rel=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masses": [[0.5, 0.4], [1.0]]}, "masses of measure 0 add up to 0.9"),
        ({"masses": [[1.5, -0.5], [1.0]]}, "some are negative"),
        ({"masses": [[1.0], [1.0]]}, r"measure 0 has a support of shape \(2, 1\) and masses of shape \(1,\)"),
        ({"masses": [[0.5, 0.5]]}, "2 supports and 1 masses"),
        ({"supports": [[[0.0], [np.nan]], [[1.0]]]}, "measure 0 holds NaN"),
        ({"supports": [[[0.0], [1.0]], [[1.0, 2.0]]]}, "measure 1"),
        ({"n_atoms": 0}, "n_atoms is 0"),
        ({"n_atoms": 1.5}, "n_atoms is 1.5"),
        ({"weights": [1.0]}, "2 numbers above 0"),
        ({"weights": [1.0, 0.0]}, "2 numbers above 0"),
        ({"candidates": "all"}, "candidates is 'all'"),
        ({"supports": [], "masses": []}, "0 supports"),
    ],
)
def test_measures_that_cannot_be_used_are_refused(change, message):
    arguments = {"supports": [[[0.0], [1.0]], [[1.0]]], "masses": [[0.5, 0.5], [1.0]], "n_atoms": 1} | change
    with pytest.raises(InputError, match=message):
        sparse_wasserstein_barycenter(**arguments)


def test_moving_all_measures_moves_the_barycenter():
    X, p = measures(3)
    here, there = (sparse_wasserstein_barycenter([x + shift for x in X], p, 2, random_state=0) for shift in (0.0, 10.0))
    assert there.cost == pytest.approx(here.cost, rel=1e-6)
    pairs = itertools.permutations(range(2))
    assert any(there.atoms[list(order)] - 10 == pytest.approx(here.atoms, abs=1e-5) for order in pairs)
