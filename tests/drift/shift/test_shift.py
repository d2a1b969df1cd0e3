"""The estimator as its users meet it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from aboveboard.core.errors import InputError
from aboveboard.drift import SHIFT
from tests.hostile import HOSTILE

GROUPS = {"one": ["x0"], "two": ["x1"], "three": ["x2"]}


@pytest.fixture(scope="module")
def fitted(flipped, sign, fast):
    return SHIFT(random_state=0, **fast).fit(*flipped, model=sign, candidates=GROUPS)


def test_a_change_of_outcomes_is_found_and_told_from_a_change_of_rows(fitted):
    assert fitted.aggregate_["outcome"].reject
    assert not fitted.aggregate_["covariate"].reject


def test_the_variable_that_changed_is_kept_and_the_others_are_rejected(fitted):
    assert fitted.detailed_["candidate"].tolist() == ["one", "two", "three"]
    assert fitted.detailed_["kept"].tolist() == [False, True, False]
    assert set(fitted.detailed_["kind"]) == {"outcome"}


def test_the_decay_is_that_of_the_rows_in_the_subgroup(fitted, flipped, sign):
    """Among rows where x1 > 1, an error rate e becomes 0.6 e + 0.4 (1 - e); elsewhere nothing changes."""
    X1 = flipped[2]
    inside = fitted.subgroup("outcome").predict(X1)
    error = np.minimum(p := sign.predict_proba(X1)[:, 1], 1 - p)
    truth = np.where(X1[:, 1] > 1, 0.4 * (1 - 2 * error), 0.0)[inside].mean()
    low, high = fitted.aggregate_["outcome"].interval
    assert low <= truth <= high


def test_a_change_of_rows_is_found_and_told_from_a_change_of_outcomes(fast, sign):
    rng = np.random.default_rng(1)
    X0, X1 = rng.normal(size=(2, 4000, 3))
    X1[:, 0] *= 0.3  # more rows near the boundary
    y0, y1 = ((rng.random(4000) < sign.predict_proba(X)[:, 1]).astype(int) for X in (X0, X1))
    found = SHIFT(0.02, random_state=0, n_bootstrap=2000).fit(X0, y0, X1, y1, model=sign, candidates=GROUPS)
    assert found.aggregate_["covariate"].reject
    assert not found.aggregate_["outcome"].reject
    kept = dict(zip(found.detailed_["candidate"], found.detailed_["kept"], strict=True))
    assert kept == {"one": True, "two": False, "three": False}


def test_all_columns_explain_everything(flipped, sign, fast):
    all_columns = {"all": ["x0", "x1", "x2"]}
    found = SHIFT(random_state=0, **fast).fit(*flipped, model=sign, candidates=all_columns).detailed_
    assert found["p_value"].tolist() == [1.0]
    assert found["residual_decay"].isna().all()


def test_the_same_seed_gives_the_same_answer(flipped, sign, fast, fitted):
    again = clone(fitted).fit(*flipped, model=sign, candidates=GROUPS)
    assert again.aggregate_["outcome"].p_value == fitted.aggregate_["outcome"].p_value
    pd.testing.assert_frame_equal(again.detailed_, fitted.detailed_)


def test_stretching_a_column_and_moving_it_changes_nothing_much(flipped, fast, sign, fitted):
    X0, y0, X1, y1 = flipped
    scale = np.array([1000.0, 0.01, 7.0])
    scores = tuple(sign.predict_proba(X)[:, 1] for X in (X0, X1))
    found = clone(fitted).fit(X0 * scale + 5, y0, X1 * scale + 5, y1, predictions=scores, candidates=GROUPS)
    for kind in ("covariate", "outcome"):
        assert found.aggregate_[kind].p_value == pytest.approx(fitted.aggregate_[kind].p_value, abs=0.02)


def test_predictions_serve_as_well_as_a_model(flipped, sign, fitted):
    scores = tuple(sign.predict_proba(X)[:, 1] for X in flipped[::2])
    found = clone(fitted).fit(*flipped, predictions=scores, candidates=GROUPS)
    assert found.aggregate_["outcome"].p_value == fitted.aggregate_["outcome"].p_value
    with pytest.raises(InputError, match="predictions"):
        found.repair("outcome").predict(flipped[2])
    assert found.repair("outcome").predict(flipped[2], predictions=scores[1]).shape == (3000,)


def test_tables_of_other_kinds_give_the_same(flipped, sign, fitted):
    X0, y0, X1, y1 = flipped
    names = ["x0", "x1", "x2"]
    scores = tuple(sign.predict_proba(X)[:, 1] for X in (X0, X1))
    for make in (lambda X: pd.DataFrame(X, columns=names), lambda X: pl.DataFrame(X, schema=names)):
        found = clone(fitted).fit(make(X0), y0, make(X1), y1, predictions=scores, candidates=GROUPS)
        assert found.aggregate_["outcome"].p_value == fitted.aggregate_["outcome"].p_value


@pytest.mark.parametrize("loss", ["zero_one", "brier", "class_weighted", "ppv"])
def test_every_loss_finds_the_change(flipped, sign, fast, loss):
    found = SHIFT(0.02, loss=loss, random_state=0, **fast).fit(*flipped, model=sign, candidates=GROUPS)
    assert found.aggregate_["outcome"].reject
    if loss == "ppv":
        inside = found.subgroup("outcome").predict(flipped[2])
        assert not inside[sign.predict_proba(flipped[2])[:, 1] < 0.5].any()


def test_a_loss_of_one_s_own_is_asked_about_both_labels(flipped, sign, fast, fitted):
    def errors(X, y):
        return (sign.predict_proba(X)[:, 1] >= 0.5) != y

    own = SHIFT(random_state=0, **fast).fit(*flipped, loss_fn=errors, candidates=GROUPS)
    assert own.aggregate_["outcome"].p_value == fitted.aggregate_["outcome"].p_value
    with pytest.raises(InputError, match="no model"):
        own.repair("outcome")


def test_improvements_are_found_where_domains_are_swapped(flipped, sign):
    X0, y0, X1, y1 = flipped
    found = SHIFT(direction=-1, random_state=0, n_bootstrap=2000).fit(X1, y1, X0, y0, model=sign, candidates=GROUPS)
    assert found.aggregate_["outcome"].reject
    group = found.subgroup("outcome")
    assert group.target_loss[0] < group.source_loss[0]
    assert "fell by" in found.findings()[0].statement


def test_cross_fitting_takes_twice_the_smaller_p_value(flipped, sign, fast):
    found = SHIFT(cross_fit=True, random_state=0, **fast).fit(*flipped, model=sign, candidates=GROUPS)
    assert found.aggregate_["outcome"].p_value == pytest.approx(2 / 2001)
    assert found.aggregate_["covariate"].p_value <= 1.0
    assert found.detailed_["kept"].tolist() == [False, True, False]
    assert found.repair("outcome").trial_.n == 1500


def test_filtering_carves_from_columns_on_which_the_loss_depends(fast, sign):
    rng = np.random.default_rng(1)
    X0, X1 = rng.normal(size=(2, 4000, 3))
    X1[:, 0] *= 0.3
    X1[:, 2] += 0.7  # moved, and of no consequence
    y0, y1 = ((rng.random(4000) < sign.predict_proba(X)[:, 1]).astype(int) for X in (X0, X1))
    found = SHIFT(0.02, filter_features=True, random_state=0, n_bootstrap=2000)
    found.fit(X0, y0, X1, y1, model=sign, candidates=GROUPS)
    assert found.aggregate_["covariate"].reject
    assert dict(zip(found.detailed_["candidate"], found.detailed_["kept"], strict=True))["one"]


def test_where_the_loss_depends_on_no_column_there_is_nothing_to_carve(fast):
    rng = np.random.default_rng(5)
    X0, X1 = rng.normal(size=(2, 600, 2))
    y0, y1 = rng.integers(0, 2, (2, 600))
    found = SHIFT(0.0, filter_features=True, random_state=0, **fast)
    found.fit(X0, y0, X1 + 0.5, y1, predictions=(np.zeros(600), np.zeros(600)))
    assert found.aggregate_["covariate"].p_value == 1.0
    with pytest.raises(InputError, match="no subgroup"):
        found.subgroup("covariate")


def test_a_fitted_object_can_be_kept(fitted, flipped):
    again = pickle.loads(pickle.dumps(fitted))
    X1 = flipped[2]
    assert np.array_equal(again.subgroup("outcome").predict(X1), fitted.subgroup("outcome").predict(X1))


def test_diagnostics_say_whether_density_ratios_can_be_right(fitted):
    assert fitted.diagnostics_["mean_weight"] == pytest.approx(1.0, abs=0.05)
    assert 0.4 < fitted.diagnostics_["domain_auc"] < 0.6
    assert fitted.diagnostics_["clipped"] == 0
    assert fitted.certificate_.holds


def test_words_gaps_and_many_types_are_read(fast, flipped, sign):
    X0, y0, X1, y1 = flipped
    rng = np.random.default_rng(0)

    def table(X):
        return pd.DataFrame(
            {
                "x0": X[:, 0],
                "x1": np.where(rng.random(len(X)) < 0.1, np.nan, X[:, 1]),
                "word": pd.Categorical(np.where(X[:, 2] > 0, "yes", "no")),
                "whole": pd.array(np.where(X[:, 2] > 1, pd.NA, 3), dtype="Int64"),
                "flag": X[:, 2] > 0.3,
                "same": 1,
            }
        )

    scores = tuple(sign.predict_proba(X)[:, 1] for X in (X0, X1))
    found = SHIFT(random_state=0).fit(table(X0), y0, table(X1), y1, predictions=scores, candidates={"a": ["x1"]})
    assert found.aggregate_["outcome"].reject
    assert any("x1" in rule for rule in found.subgroup("outcome").rules)


def test_domains_that_do_not_overlap_are_refused(fast):
    rng = np.random.default_rng(0)
    X0, X1 = rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + 20
    y = rng.integers(0, 2, 500)
    with pytest.raises(InputError, match="supports do not"):
        SHIFT(**fast).fit(X0, y, X1, y, predictions=(y, y))


BAD = {
    "labels of three kinds": (lambda X0, y0, X1, y1: (X0, y0 + (X0[:, 0] > 2), X1, y1), {}, "labels"),
    "one class": (lambda X0, y0, X1, y1: (X0, np.zeros(3000), X1, y1), {}, "both classes"),
    "missing labels": (lambda X0, y0, X1, y1: (X0, np.where(X0[:, 0] > 2, np.nan, y0), X1, y1), {}, "missing"),
    "words as labels": (lambda X0, y0, X1, y1: (X0, np.where(y0 > 0, "yes", "no"), X1, y1), {}, "positive class as 1"),
    "few rows": (lambda X0, y0, X1, y1: (X0[:150], y0[:150], X1, y1), {}, "150 rows"),
    "other columns": (lambda X0, y0, X1, y1: (X0[:, :2], y0, X1, y1), {}, "columns differ"),
    "one dimension": (lambda X0, y0, X1, y1: (X0[:, 0], y0, X1, y1), {}, "dimensions"),
    "labels of another length": (lambda X0, y0, X1, y1: (X0, y0[:-1], X1, y1), {}, "2999 labels"),
    "empty": (lambda X0, y0, X1, y1: (X0[:0], y0[:0], X1, y1), {}, "0 rows"),
    "prevalence": (None, {"min_prevalence": 0.5}, "min_prevalence"),
    "tolerance": (None, {"tolerance": -0.1}, "tolerance"),
    "loss": (None, {"loss": "hinge"}, "loss"),
    "direction": (None, {"direction": 0}, "direction"),
    "split": (None, {"split": 0.001}, "each half"),
    "bootstrap": (None, {"n_bootstrap": 1.5}, "n_bootstrap"),
    "clip": (None, {"clip": "no"}, "clip"),
}


@pytest.mark.parametrize(("change", "settings", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_used_is_refused_with_its_reason(flipped, change, settings, message, fast):
    data = flipped if change is None else change(*flipped)
    with pytest.raises(InputError, match=message):
        SHIFT(**(fast | settings)).fit(*data, loss_fn=lambda X, y: np.zeros(len(y)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither a model nor predictions"),
        ({"predictions": (np.zeros(5), np.zeros(3000))}, "shape"),
        ({"predictions": (np.full(3000, 7.0), np.zeros(3000))}, "run from"),
        ({"predictions": (np.full(3000, np.nan), np.zeros(3000))}, "run from"),
        ({"predictions": (np.zeros(3000),)}, "parts"),
        ({"model": object()}, "predict_proba or predict"),
        ({"loss_fn": lambda X, y: np.full(len(y), np.inf)}, "not finite"),
        ({"loss_fn": lambda X, y: np.zeros(3)}, "shape"),
    ],
)
def test_models_and_losses_that_cannot_be_used_are_refused(flipped, arguments, message):
    with pytest.raises(InputError, match=message):
        SHIFT().fit(*flipped, **arguments)


@pytest.mark.parametrize(
    ("candidates", "message"),
    [
        ({}, "not empty"),
        (["x0"], "a dict"),
        ({"a": "x0"}, "a list"),
        ({"a": []}, "a list"),
        ({"a": ["nobody"]}, "'nobody'"),
    ],
)
def test_candidates_that_cannot_be_used_are_refused(flipped, sign, candidates, message):
    with pytest.raises(InputError, match=message):
        SHIFT().fit(*flipped, model=sign, candidates=candidates)


def test_hostile_names_pass_through_rules_findings_and_tables(flipped, sign, fast):
    X0, y0, X1, y1 = flipped
    names = list(HOSTILE)[:3]
    tables = [pd.DataFrame(X, columns=pd.Index(names, dtype=object)) for X in (X0, X1)]
    scores = tuple(sign.predict_proba(X)[:, 1] for X in (X0, X1))
    found = SHIFT(random_state=0, **fast).fit(
        tables[0], y0, tables[1], y1, predictions=scores, candidates={names[1]: [names[1]], names[2]: [names[0]]}
    )
    assert found.detailed_["candidate"].tolist() == [names[1], names[2]]
    assert any(names[1] in rule for rule in found.subgroup("outcome").rules)
    assert all(finding.to_dict() for finding in found.findings())


def test_infinite_and_huge_values_are_survived(flipped, sign, fast):
    X0, y0, X1, y1 = (part.copy() for part in flipped)
    scores = tuple(sign.predict_proba(X)[:, 1] for X in (X0, X1))
    X0[0, 2], X1[1, 2], X1[2, 2] = np.inf, -np.inf, 1e300
    found = SHIFT(random_state=0, **fast).fit(X0, y0, X1, y1, predictions=scores, candidates=GROUPS)
    assert found.aggregate_["outcome"].reject


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("default", [True, False])
def test_without_a_shift_the_level_holds(default, sign, fast):
    """2,000 fits with logistic nuisances (200 with the default learners): at most the 99 % point of a 5 % test."""
    runs, rng = (200 if default else 2000), np.random.default_rng(0)
    rejected = {"covariate": 0, "outcome": 0}
    for r in range(runs):
        X0, X1 = rng.normal(size=(2, 800, 3))
        y0, y1 = ((rng.random(800) < sign.predict_proba(X)[:, 1]).astype(int) for X in (X0, X1))
        settings = {"n_bootstrap": 2000} if default else fast
        found = SHIFT(tolerance=0.0, random_state=r, **settings).fit(X0, y0, X1, y1, model=sign, candidates=GROUPS)
        for kind, result in found.aggregate_.items():
            rejected[kind] += result.reject
    assert max(rejected.values()) <= stats.binom.ppf(0.99, runs, 0.05)


def test_a_model_that_is_refitted_by_scikit_learn_is_left_alone(flipped):
    X0, y0, X1, y1 = flipped
    model = LogisticRegression().fit(X0, y0)
    before = model.coef_.copy()
    SHIFT(random_state=0, n_bootstrap=500).fit(X0, y0, X1, y1, model=model, candidates=GROUPS)
    assert np.array_equal(model.coef_, before)
