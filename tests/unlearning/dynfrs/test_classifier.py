import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import estimator_checks_generator

pytest.importorskip("numba")
from aboveboard.core import Certificate, InputError
from aboveboard.unlearning import DynFrsClassifier

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
            DynFrsClassifier(random_state=0), expected_failed_checks=EXPECTED_FAILURES, mark="skip"
        )
    ),
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
def test_it_is_a_scikit_learn_classifier(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def cancer():
    return load_breast_cancer(return_X_y=True)


def test_it_is_about_as_accurate_as_extra_trees(cancer):
    X, y = cancer
    ours = cross_val_score(DynFrsClassifier(occurrence=0.3, random_state=0), X, y, cv=5).mean()
    theirs = cross_val_score(ExtraTreesClassifier(100, random_state=0), X, y, cv=5).mean()
    assert ours > theirs - 0.03


def test_ten_classes_are_told_apart():
    X, y = load_digits(return_X_y=True)
    model = DynFrsClassifier(occurrence=0.3, random_state=0).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.9
    gone = np.arange(0, 1200, 5)
    left = np.setdiff1d(np.arange(1200), gone)
    afresh = DynFrsClassifier(occurrence=0.3, random_state=0).fit(X[left], y[left], sample_id=left)
    assert model.remove(gone).fingerprint() == afresh.fingerprint()


def test_at_occurrence_one_a_weight_of_w_is_w_equal_rows():
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(200, 4)), rng.integers(0, 3, 200), rng.integers(0, 4, 200)
    options = {"n_estimators": 7, "occurrence": 1.0, "random_state": 1}
    weighted = DynFrsClassifier(**options).fit(X, y, sample_weight=weight)
    repeated = DynFrsClassifier(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


def test_a_row_of_weight_zero_has_no_influence_and_can_be_removed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80)
    weight = np.ones(80, dtype=int)
    weight[[3, 5]] = 0
    model = DynFrsClassifier(random_state=0).fit(X, y, sample_weight=weight)
    without = np.delete(np.arange(80), [3, 5])
    afresh = DynFrsClassifier(random_state=0).fit(X[without], y[without], sample_id=without)
    assert np.array_equal(model.predict_proba(X), afresh.predict_proba(X))
    assert model.remove([3, 5]).fingerprint() == afresh.fingerprint()


def test_categories_may_be_text_and_are_learnt():
    rng = np.random.default_rng(0)
    town = rng.choice(["Bern", "Oslo", "Rom", "<b>Ur</b>", None], 600)
    y = np.isin(town.astype(str), ["Oslo", "<b>Ur</b>", "None"]).astype(int)
    frame = pd.DataFrame({"town": town, "noise": rng.normal(size=600)})
    model = DynFrsClassifier(categorical_features=["town"], occurrence=0.3, random_state=0).fit(frame, y)
    assert model.score(frame, y) == 1.0
    unseen = pd.DataFrame({"town": ["Lima"], "noise": [0.0]})
    assert model.predict_proba(unseen).sum() == pytest.approx(1.0)


def test_an_unseen_category_may_be_added_and_removed_again():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": rng.choice(list("abc"), 200), "x": rng.normal(size=200)})
    y = rng.integers(0, 2, 200)
    model = DynFrsClassifier(categorical_features=["kind"], random_state=0).fit(frame, y)
    before = model.fingerprint()
    model.partial_fit(pd.DataFrame({"kind": ["new"] * 20, "x": np.arange(20.0)}), [1, 0] * 10)
    assert model.fingerprint() != before
    assert model.remove(np.arange(200, 220)).fingerprint() == before


def test_pandas_polars_and_arrays_give_one_forest(cancer):
    X, y = cancer[0][:100, :4], cancer[1][:100]
    names = ["a", "b", "c", "d"]
    prints = {
        DynFrsClassifier(20, random_state=0).fit(table, y).fingerprint()
        for table in (X, pd.DataFrame(X, columns=names), pl.DataFrame(X, schema=names))
    }
    assert len(prints) == 1
    mixed = {
        DynFrsClassifier(20, random_state=0, categorical_features=columns).fit(table, y).fingerprint()
        for table, columns in (
            (pd.DataFrame(X.round(), columns=names), ["b"]),
            (pl.DataFrame(X.round(), schema=names), ["b"]),
            (X.round(), [1]),
            (X.round(), [False, True, False, False]),
        )
    }
    assert len(mixed) == 1


def test_zero_depth_gives_the_base_rate(cancer):
    X, y = cancer
    model = DynFrsClassifier(10, occurrence=1.0, max_depth=0).fit(X, y).remove(np.flatnonzero(y == 1)[:57])
    assert model.predict_proba(X[:1])[0, 1] == pytest.approx(300 / 512)


def test_the_seed_decides_and_fresh_seeds_differ(cancer):
    X, y = cancer
    assert DynFrsClassifier(5, random_state=0).fit(X, y).seed_ == DynFrsClassifier(5, random_state=0).fit(X, y).seed_
    assert DynFrsClassifier(5).fit(X, y).seed_ != DynFrsClassifier(5).fit(X, y).seed_


def test_a_removed_id_is_unknown_and_an_id_in_use_is_refused(cancer):
    X, y = cancer
    model = DynFrsClassifier(10, random_state=0).fit(X, y)
    before = model.fingerprint()
    with pytest.raises(KeyError, match="2 record ids are unknown, nothing was removed: 569, 9999"):
        model.remove([1, 569, 9999])
    with pytest.raises(InputError, match="record ids are repeated: 4"):
        model.remove([4, 5, 4])
    with pytest.raises(InputError, match="in use already: 3"):
        model.partial_fit(X[:1], y[:1], sample_id=[3])
    with pytest.raises(InputError, match="would leave 1"):
        model.remove(np.arange(568))
    with pytest.raises(InputError, match="not among the classes: 7"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(InputError, match="whole number"):
        model.remove([1.5])
    assert model.fingerprint() == before
    with pytest.raises(KeyError, match="unknown"):
        model.remove(5).remove(5)


def test_an_empty_request_changes_nothing(cancer):
    X, y = cancer
    model = DynFrsClassifier(10, random_state=0).fit(X, y)
    before = model.fingerprint()
    assert model.remove([]).fingerprint() == before


def test_new_rows_get_ids_above_all_that_ever_were(cancer):
    X, y = cancer
    model = DynFrsClassifier(10, random_state=0).fit(X, y).remove(568)
    assert model.partial_fit(X[:2], y[:2]).sample_ids_[-2:].tolist() == [569, 570]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"occurrence": 0.0}, "occurrence is 0.0"),
        ({"occurrence": 1.5}, "occurrence is 1.5"),
        ({"n_estimators": 0}, "n_estimators is 0"),
        ({"n_thresholds": 2.5}, "n_thresholds is 2.5"),
        ({"max_depth": -1}, "max_depth is -1"),
        ({"min_samples_split": 1}, "min_samples_split is 1"),
        ({"max_features": 31}, "max_features is 31"),
        ({"max_features": "log2"}, "max_features is 'log2'"),
        ({"categorical_features": ["town"]}, "names 'town'"),
        ({"categorical_features": [30]}, "holds 30"),
    ],
)
def test_bad_settings_are_named(cancer, options, message):
    with pytest.raises(InputError, match=message):
        DynFrsClassifier(**options).fit(*cancer)


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN.*column 'b'"), (np.inf, "infinity in column 'b'"), (1e39, "column 'b' holds 1e\\+39")],
)
def test_awkward_values_are_refused_with_the_name_of_their_column(value, message):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [0.0, value, 1.0]})
    with pytest.raises(InputError, match=message):
        DynFrsClassifier(5).fit(frame, [0, 1, 0])


@pytest.mark.parametrize(
    ("weight", "message"),
    [([1, 2, 0.5], "holds 0.5"), ([1, -1, 1], "holds -1"), ([2**31, 1, 1], "sum to"), ([1, 1], "shape")],
)
def test_weights_must_be_whole(weight, message):
    with pytest.raises(InputError, match=message):
        DynFrsClassifier(5).fit([[0.0], [1.0], [2.0]], [0, 1, 0], sample_weight=weight)


def test_the_extremes_of_single_precision_are_no_trouble():
    top = float(np.finfo(np.float32).max)
    X = np.array([[-top], [top], [0.0], [1e-40]] * 20)
    y = np.array([0, 1, 0, 1] * 20)
    model = DynFrsClassifier(10, occurrence=1.0, min_samples_split=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    left = np.arange(4, 80)
    afresh = DynFrsClassifier(10, occurrence=1.0, min_samples_split=2, random_state=0)
    assert model.remove(range(4)).fingerprint() == afresh.fit(X[4:], y[4:], sample_id=left).fingerprint()


def test_minus_zero_is_zero():
    X, y = np.array([[0.0], [1.0], [-1.0], [2.0]] * 10), np.arange(40) % 2
    same = X.copy()
    same[same == 0] = -0.0
    model = DynFrsClassifier(10, random_state=0)
    assert model.fit(X, y).fingerprint() == DynFrsClassifier(10, random_state=0).fit(same, y).fingerprint()


def test_the_fingerprint_sees_rows_ids_and_settings(cancer):
    X, y = cancer[0][:60], cancer[1][:60]
    other = X.copy()
    other[0, 0] += 1.0
    prints = [
        DynFrsClassifier(5, random_state=0).fit(X, y).fingerprint(),
        DynFrsClassifier(5, random_state=0).fit(other, y).fingerprint(),
        DynFrsClassifier(5, random_state=0).fit(X, y, sample_id=np.arange(60) + 1).fingerprint(),
        DynFrsClassifier(5, random_state=1).fit(X, y).fingerprint(),
        DynFrsClassifier(5, random_state=0, n_thresholds=29).fit(X, y).fingerprint(),
        DynFrsClassifier(5, random_state=0).fit(X, np.where(y, "yes", "no")).fingerprint(),
    ]
    assert len(set(prints)) == 6
    assert DynFrsClassifier(5, random_state=0, n_jobs=2, lazy=False).fit(X, y).fingerprint() == prints[0]


def test_pickles_and_copies_have_the_same_fingerprint_and_live_apart(cancer):
    X, y = cancer
    model = DynFrsClassifier(10, random_state=0).fit(X, y).remove([1, 2])
    before = model.fingerprint()
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert other.fingerprint() == before
        other.remove(range(3, 300))
        assert np.isfinite(other.predict_proba(X)).all()
    assert model.fingerprint() == before


def test_the_certificate_says_what_was_compared_and_what_it_does_not_cover(cancer):
    X, y = cancer
    model = DynFrsClassifier(20, random_state=0).fit(X, y).remove(range(50))
    certificate = model.certify()
    assert certificate.holds
    assert certificate.subject["model"] == model.fingerprint()
    assert certificate.parameters["trees_compared"] == 20
    assert certificate.parameters["rows"] == 519
    assert any("before the forest" in line for line in certificate.does_not_cover)
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert model.certify(n_probe=3).parameters["trees_compared"] == 3
    assert model.certificate_.assumptions[0].basis == "assumed"
    with pytest.raises(InputError, match="n_probe is 21"):
        model.certify(n_probe=21)


def test_a_tampered_forest_is_not_certified(cancer):
    X, y = cancer
    model = DynFrsClassifier(20, random_state=0).fit(X, y).resolve()
    tree = model.forest_.trees[4]
    tree.threshold[np.flatnonzero(tree.child >= 0)[0]] += 1.0
    certificate = model.certify()
    assert not certificate.holds
    assert certificate.assumptions[0].statistic == 1


def test_partial_fit_from_nothing_is_fit():
    X, y = load_iris(return_X_y=True)
    model = DynFrsClassifier(10, random_state=0)
    order = np.random.default_rng(0).permutation(150)
    for part in np.array_split(order, 5):
        model.partial_fit(X[part], y[part], classes=[0, 1, 2], sample_id=part)
    assert model.fingerprint() == DynFrsClassifier(10, random_state=0).fit(X, y).fingerprint()


def test_without_numba_the_error_names_the_extra(monkeypatch, cancer):
    import importlib

    real = importlib.import_module

    def missing(name, *rest):
        if name == "numba":
            raise ModuleNotFoundError(name="numba")
        return real(name, *rest)

    monkeypatch.setattr("aboveboard.core.extras.importlib.import_module", missing)
    with pytest.raises(ImportError, match=r"aboveboard\[fast\]"):
        DynFrsClassifier().fit(*cancer)
