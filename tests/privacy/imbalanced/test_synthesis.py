"""Codebooks, measured tables, independent synthetic rows and the balancer."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax
from scipy.stats import chisquare
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from aboveboard.core import InputError, MissingExtra
from aboveboard.privacy import (
    IndependentSynthesizer,
    PrivateSyntheticBalancer,
    PrivateWeightedSGDClassifier,
    RDPCurve,
)
from aboveboard.privacy._noise import noise_source
from aboveboard.privacy.imbalanced._codebook import Codebook
from aboveboard.privacy.imbalanced._marginals import (
    L1_SENSITIVITY,
    L2_SENSITIVITY,
    counts,
    exponential_choice,
    gaussian_scale,
    workload,
)


def table(n=4000, seed=0):
    """A number, a whole number, a category and a truth value; the rare class is higher in all of them."""
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    colours = np.array(["red", "green", "blue"])
    X = pd.DataFrame(
        {
            "height": np.clip(rng.normal(size=n) + y, -4, 5),
            "children": np.minimum(rng.poisson(1 + y), 5),
            "colour": pd.Categorical(colours[np.minimum(rng.integers(3, size=n) + y, 2)], categories=colours),
            "member": rng.random(n) < 0.3 + 0.4 * y,
        }
    )
    return X, y


BOUNDS = {"height": (-4.0, 5.0), "children": (0, 5)}


# --- codes -----------------------------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), bins=st.integers(2, 40))
def test_rows_drawn_from_codes_have_those_codes_and_the_kinds_that_were_given(seed, bins):
    X, _ = table(50, seed)
    book = Codebook.build(X, BOUNDS, bins)
    codes = book.encode(X)
    drawn = book.decode(codes, np.random.default_rng(seed))
    assert list(drawn.columns) == list(X.columns)
    assert (drawn.dtypes == X.dtypes).all()
    exact = ["colour", "member"] + (["children"] if bins >= 6 else [])
    assert drawn[exact].equals(X[exact])
    assert np.array_equal(book.encode(drawn)[:, [0, 2, 3]], codes[:, [0, 2, 3]])
    assert (codes < np.array(book.sizes)).all()
    assert drawn["children"].between(0, 5).all()


def test_values_beyond_the_bounds_fall_into_the_outer_bins():
    book = Codebook.build(np.zeros((1, 1)), (0.0, 1.0), 4)
    assert book.encode(np.array([[-9.0], [0.1], [0.3], [9.0]]))[:, 0].tolist() == [0, 0, 1, 3]


def test_without_bounds_a_warning_says_that_they_leak_and_the_certificate_does_not_hold():
    X, y = table(500)
    with pytest.warns(UserWarning, match="leak"):
        leaky = IndependentSynthesizer(random_state=0).fit(X, y)
    assert not leaky.certificate_.holds
    assert IndependentSynthesizer(bounds=BOUNDS, random_state=0).fit(X, y).certificate_.holds


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({"height": np.nan}, {}, "missing in height"),
        ({"colour": "text"}, {}, "dtype"),
        ({}, {"bounds": {"height": (0, 1)}}, "children"),
        ({}, {"bounds": [(0, 1)] * 3}, "shape"),
        ({}, {"bounds": (1.0, 0.0)}, "smaller and a larger"),
        ({}, {"bounds": (0.0, np.inf)}, "smaller and a larger"),
        ({}, {"bins": 1}, "bins"),
        ({}, {"epsilon": 0}, "epsilon"),
        ({}, {"delta": 0}, "delta"),
        ({}, {"delta": 1.5}, "delta"),
    ],
)
def test_bad_input_is_refused(change, options, said):
    X, y = table(100)
    with pytest.raises(InputError, match=said):
        IndependentSynthesizer(**({"bounds": BOUNDS} | options)).fit(X.assign(**change), y)


# --- tables ----------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), n=st.integers(1, 30))
def test_replacing_a_row_changes_a_table_by_no_more_than_the_sensitivities(seed, n):
    rng = np.random.default_rng(seed)
    codes = rng.integers([3, 2, 2], size=(n + 1, 3))
    for query in workload(2):
        change = counts(codes[:-1], (3, 2, 2), query) - counts(codes[1:], (3, 2, 2), query)
        assert np.abs(change).sum() <= L1_SENSITIVITY
        assert np.linalg.norm(change) <= L2_SENSITIVITY + 1e-12


def test_the_workload_is_all_pairs_and_the_triples_with_the_label():
    assert sorted(workload(3)) == sorted(
        [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    )


def test_tables_count_rows():
    codes = np.array([[0, 1, 0], [0, 1, 1], [2, 0, 1]])
    assert counts(codes, (3, 2, 2), (0, 2)).tolist() == [[1, 1], [0, 0], [0, 1]]


def test_the_exponential_mechanism_chooses_in_proportion_to_the_exponential_of_the_scores():
    scores, rho = np.array([0.0, 3.0, 5.0, 9.0]), 0.05
    source = noise_source(1)
    chosen = np.bincount([exponential_choice(scores, rho, source) for _ in range(4000)], minlength=4)
    expected = softmax(math.sqrt(8 * rho) * scores / (2 * L1_SENSITIVITY))
    assert chisquare(chosen, 4000 * expected).pvalue > 0.01


@given(rho=st.floats(1e-6, 10))
def test_measuring_costs_what_it_says(rho):
    assert L2_SENSITIVITY**2 / (2 * gaussian_scale(rho) ** 2) == pytest.approx(rho)


# --- independent rows ------------------------------------------------------------------------------------------------


def test_the_ledger_of_independent_tables_sums_to_rho_and_rho_gives_epsilon():
    X, y = table(1000)
    parameters = IndependentSynthesizer(0.7, 1e-5, bounds=BOUNDS, random_state=0).fit(X, y).certificate_.parameters
    assert 4 * L2_SENSITIVITY**2 / (2 * parameters["noise_std"] ** 2) == pytest.approx(parameters["rho"])
    assert RDPCurve.concentrated(parameters["rho"], adjacency="replace_one").epsilon(1e-5) == pytest.approx(
        0.7, rel=1e-4
    )


def test_with_a_huge_budget_rows_have_the_shares_of_each_column_in_each_class():
    X, y = table(4000)
    synthesizer = IndependentSynthesizer(1e7, 1e-6, bounds=BOUNDS, random_state=0).fit(X, y)
    for label in (0, 1):
        rows, labels = synthesizer.sample(20_000, y=label)
        assert (labels == label).all()
        for column in ("children", "colour", "member"):
            real = X.loc[y == label, column].value_counts(normalize=True)
            drawn = rows[column].value_counts(normalize=True).reindex(real.index, fill_value=0.0)
            assert np.abs(real - drawn).max() < 0.02
    assert synthesizer.sample(20_000)[1].mean() == pytest.approx(y.mean(), abs=0.01)


def test_a_column_that_was_measured_as_empty_is_drawn_evenly():
    y = np.arange(20) % 2
    synthesizer = IndependentSynthesizer(1e-4, 1e-9, bins=4, bounds=(0, 1), random_state=0).fit(np.zeros((20, 1)), y)
    rows, _ = synthesizer.sample(50)
    assert np.isfinite(rows).all()


def test_an_unknown_label_is_refused():
    X, y = table(200)
    synthesizer = IndependentSynthesizer(bounds=BOUNDS, random_state=0).fit(X, y)
    with pytest.raises(InputError, match="y is 2"):
        synthesizer.sample(10, y=2)


# --- the balancer ----------------------------------------------------------------------------------------------------


def balanced(**options):
    return PrivateSyntheticBalancer(**({"synthesizer": "independent", "bounds": BOUNDS, "random_state": 0} | options))


def test_rows_are_balanced_and_a_boosted_tree_learns_from_them():
    X, y = table(8000)
    rows, labels = balanced(epsilon=1.0).fit_resample(X[:6000], np.where(y[:6000] == 1, "yes", "no"))
    assert pd.Series(labels).value_counts().to_dict() == {"no": 3000, "yes": 3000}
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0).fit(rows, labels)
    assert roc_auc_score(y[6000:], model.predict_proba(X[6000:])[:, 1]) > 0.8


def test_arrays_come_back_as_arrays_of_the_size_that_was_asked_for():
    X, y = table(500)
    rows, labels = balanced(bounds=[(-4, 5), (0, 5)], n_samples=31).fit_resample(
        X[["height", "children"]].to_numpy(), y
    )
    assert rows.shape == (31, 2)
    assert np.bincount(labels).tolist() == [16, 15]


def test_the_same_seed_gives_the_same_rows_and_none_gives_others():
    X, y = table(300)
    draws = [balanced(random_state=seed).fit_resample(X, y)[0]["height"].to_numpy() for seed in (5, 5, None, None)]
    assert np.array_equal(draws[0], draws[1])
    assert not np.array_equal(draws[2], draws[3])


class Repeater:
    """A synthesizer of a user's own: it repeats the first row of a class."""

    def fit(self, X, y):
        self.first = {label: X[np.flatnonzero(y == label)[0]] for label in np.unique(y)}
        return self

    def sample(self, n, y):
        return np.tile(self.first[y], (n, 1)), np.full(n, y)


def test_a_synthesizer_of_ones_own_is_used_as_it_is():
    X, y = np.arange(20.0).reshape(10, 2), np.array([0] * 8 + [1] * 2)
    balancer = balanced(synthesizer=Repeater())
    rows, labels = balancer.fit_resample(X, y)
    assert rows[labels == 1].tolist() == [[16.0, 17.0]] * 5
    assert balancer.certificate_ is None


@pytest.mark.parametrize(
    ("options", "said"),
    [({"synthesizer": "gan"}, "synthesizer"), ({"synthesizer": 3}, "synthesizer"), ({"n_samples": 1}, "n_samples")],
)
def test_bad_options_of_the_balancer_are_refused(options, said):
    X, y = table(50)
    with pytest.raises(InputError, match=said):
        balanced(**options).fit_resample(X, y)
    with pytest.raises(InputError, match="Only binary"):
        balanced().fit_resample(X, np.arange(50) % 3)


def test_without_its_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = table(50)
    with pytest.raises(MissingExtra, match=r"GEMSynthesizer.*aboveboard\[torch\]"):
        balanced(synthesizer="gem").fit_resample(X, y)
    with pytest.raises(MissingExtra, match=r"PrivateWeightedSGDClassifier.*aboveboard\[torch\]"):
        PrivateWeightedSGDClassifier().fit(X[["height"]], y)
