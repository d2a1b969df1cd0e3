"""ReDCal against brute force, its theorem, and what cannot be used."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from aboveboard.core import InputError
from aboveboard.uncertainty import ReDCal, best_response

FINE = {"alpha": 0.02, "eta": 0.005, "beta": 0.005, "min_event": 1}


def brute_disagreement(first, second, loss, alpha=0.0):
    """Return the mass of each event, row by row in plain Python."""
    masses = {}
    for p, q in zip(first, second, strict=True):
        a, b = int((p @ loss).argmin()), int((q @ loss).argmin())
        if a != b and (p - q) @ (loss[:, b] - loss[:, a]) >= alpha:
            masses[a, b] = masses.get((a, b), 0.0) + 1 / len(first)
    return masses


def brute_calibration(p, y, loss):
    """Return for each action the norm of the mean residual on the rows where it is the best response."""
    best = (p @ loss).argmin(axis=1)
    residual = np.eye(p.shape[1])[y] - p
    return [np.linalg.norm((residual * (best == a)[:, None]).mean(axis=0)) for a in range(loss.shape[1])]


# --- the theorem, on the rows of the fit ------------------------------------------------------------------------------


def test_at_the_end_no_event_and_no_residual_is_above_its_limit_by_brute_force(two_views):
    models, y, losses = two_views()
    fitted = ReDCal(losses, **FINE).fit(models, y)
    first, second = fitted.transform(models)
    assert fitted.stopped_ == "settled"
    for loss in losses:
        assert max(brute_disagreement(first, second, loss, 0.02).values(), default=0) <= 0.005 + 1e-12
        for part in (first, second):
            assert max(brute_calibration(part, y, loss)) <= 0.005 + 1e-12


def test_every_patch_gains_what_was_promised_and_there_are_no_more_than_the_bound(two_views):
    models, y, losses = two_views()
    fitted = ReDCal(losses, **FINE).fit(models, y)
    history = fitted.history_
    assert len(history) == len(fitted.patches_) > 10
    assert (history["gain"] >= history["unprojected"] - 1e-12).all()
    assert (history["unprojected"] >= history["guaranteed"]).all()
    assert len(history) <= fitted.certificate_.parameters["bound_T"]
    sides = np.linalg.norm(losses[:, :, :, None] - losses[:, :, None, :], axis=1)
    assert fitted.losses_.diameter == pytest.approx(sides.max())
    start = sum(((part - np.eye(4)[y]) ** 2).sum(axis=1).mean() for part in models)
    end = sum(((part - np.eye(4)[y]) ** 2).sum(axis=1).mean() for part in fitted.transform(models))
    assert start - end == pytest.approx(history["gain"].sum(), abs=1e-9)


def test_without_projection_the_gain_is_the_mass_times_the_squared_shift():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.35, 0.65, 4000)
    y = rng.random(4000) < np.where(p > 0.5, p + 0.1, p)
    fitted = ReDCal(mode="decision_calibration", beta=0.01).fit([p, 1 - p], y)
    assert len(fitted.history_)
    assert fitted.history_["gain"].to_numpy() == pytest.approx(fitted.history_["unprojected"].to_numpy(), abs=1e-10)


def test_the_certificate_holds_by_brute_force(two_views):
    models, y, losses = two_views(actions=4)
    fitted = ReDCal(losses, **FINE).fit(models, y)
    stated = fitted.certificate_.parameters
    gaps, regrets = [], []
    for part in fitted.transform(models):
        for loss in losses:
            best = (part @ loss).argmin(axis=1)
            paid = loss[y, best].mean()
            gaps.append(abs(paid - (part @ loss).min(axis=1).mean()))
            renamed = sum(min((loss[y, b] * (best == a)).mean() for b in range(4)) for a in range(4))
            regrets.append(paid - renamed)
    assert stated["loss_estimation_gap"] == pytest.approx(max(gaps), abs=1e-12)
    assert stated["swap_regret"] == pytest.approx(max(regrets), abs=1e-12)
    bound = 4 * 0.005 * np.linalg.norm(losses, axis=1).max()
    assert max(gaps) <= stated["loss_estimation_gap_bound"] == pytest.approx(bound)
    assert max(regrets) <= 2 * bound
    assert fitted.certificate_.holds
    assert all(a <= b + 1e-12 for a, b in zip(stated["brier_after"], stated["brier_before"], strict=True))


def test_the_truth_needs_no_patch():
    p = np.repeat([[0.2, 0.8], [0.6, 0.4]], 2, axis=0)
    y, weights = np.array([0, 1, 0, 1]), np.array([0.2, 0.8, 0.6, 0.4])
    fitted = ReDCal(**FINE).fit([p, p], y, sample_weight=weights)
    assert fitted.patches_ == ()


def test_one_model_twice_is_never_reconciled(two_views):
    models, y, losses = two_views()
    fitted = ReDCal(losses, **FINE).fit([models[0], models[0]], y)
    assert "reconcile" not in set(fitted.history_["kind"])
    assert ReDCal(losses, mode="reconcile", **FINE).fit([models[0], models[0]], y).patches_ == ()


def test_two_points_end_at_the_truth_where_models_differ():
    """Two kinds of rows that one model tells apart: the only patches that the definition allows, by hand."""
    x = np.repeat([0, 1], 500)
    y = np.r_[np.repeat([0, 1], [400, 100]), np.repeat([0, 1], [100, 400])]
    one, other = np.where(x == 1, 0.8, 0.2), np.full(1000, 0.6)  # the truth, and a model that takes 1 for all
    with pytest.warns(UserWarning, match="one action for everybody"):
        fitted = ReDCal(alpha=0.01, eta=0.01, beta=0.01).fit([one, other], y)
    first, second = fitted.transform([one, other])
    assert first[:, 1] == pytest.approx(one)
    assert second[x == 0, 1] == pytest.approx(np.full(500, 0.2))
    assert second[x == 1, 1] == pytest.approx(np.full(500, 0.8))


@pytest.mark.parametrize(("alpha", "patched"), [(0.05, False), (0.01, True)])
def test_the_margin_says_whether_a_hair_s_breadth_counts(alpha, patched):
    first, second = np.tile([0.49, 0.51], (200, 1)), np.tile([0.51, 0.49], (200, 1))
    with pytest.warns(UserWarning, match="one action for everybody"):
        fitted = ReDCal(mode="reconcile", alpha=alpha, eta=0.01).fit([first, second], np.repeat([0, 1], 100))
    assert bool(fitted.patches_) is patched


def test_fewer_decisions_differ_and_losses_fall_on_fresh_rows(two_views):
    models, y, losses = two_views(8000)
    fitted = ReDCal(losses).fit(models, y)
    fresh, truth, _ = two_views(8000, seed=1)
    found = fitted.evaluate(fresh, truth)
    apart = found["disagreement"]["disagreement"]
    assert (apart.loc["after"] < apart.loc["before"] / 3).all()
    loss = found["models"]["realised"].groupby("when", sort=False).mean()
    assert loss["after"] < loss["before"]
    assert (found["models"]["brier"].loc["after"] < found["models"]["brier"].loc["before"]).all()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10_000),
    st.integers(2, 5),
    st.integers(1, 3),
    st.integers(2, 4),
    st.sampled_from((2, 3)),
    st.booleans(),
)
def test_the_guarantees_hold_whatever_the_models(seed, d, count, actions, k, weighted):
    rng = np.random.default_rng(seed)
    n = 80
    models = [rng.dirichlet(np.full(d, 0.5), n) for _ in range(k)]
    y, losses = rng.integers(d, size=n), rng.standard_normal((count, d, actions))
    y[:d] = np.arange(d)
    weights = rng.random(n) if weighted else None
    fitted = ReDCal(losses, alpha=0.05, eta=0.05, beta=0.05, min_event=1).fit(models, y, sample_weight=weights)
    stated = fitted.certificate_.parameters
    assert fitted.stopped_ == "settled"
    assert stated["largest_event"] <= 0.05
    assert stated["loss_estimation_gap"] <= stated["loss_estimation_gap_bound"] + 1e-12
    assert stated["swap_regret"] <= stated["swap_regret_bound"] + 1e-12
    assert stated["patches"] <= stated["bound_T"]
    for part in fitted.transform(models):
        assert part.min() >= 0
        assert part.sum(axis=1) == pytest.approx(np.ones(n))


# --- replay -----------------------------------------------------------------------------------------------------------


def test_replaying_gives_the_same_bits_in_any_company(two_views):
    models, y, losses = two_views(2000, losses=5)
    fitted = ReDCal(losses, **FINE).fit(models, y)
    whole = fitted.transform(models)
    order = np.random.default_rng(0).permutation(2000)
    for rows in (order, order[:7], np.array([3])):
        part = fitted.transform([matrix[rows] for matrix in models])
        assert all((a[rows] == b).all() for a, b in zip(whole, part, strict=True))
    again = pickle.loads(pickle.dumps(fitted)).transform(models)
    assert all((a == b).all() for a, b in zip(whole, again, strict=True))


def test_more_rows_than_are_taken_at_once_get_the_same_answers(two_views, monkeypatch):
    from aboveboard.uncertainty.reconcile import _patches

    models, y, losses = two_views()
    fitted = ReDCal(losses, **FINE).fit(models, y)
    whole = fitted.transform(models)
    monkeypatch.setattr(_patches, "_ROWS_AT_ONCE", 700)
    assert all((a == b).all() for a, b in zip(whole, fitted.transform(models), strict=True))


def test_renaming_classes_commutes(two_views):
    models, y, losses = two_views()
    turned = np.array([2, 0, 3, 1])
    fitted = ReDCal(losses, **FINE).fit(models, y)
    other = ReDCal(losses[:, turned], **FINE).fit([part[:, turned] for part in models], np.argsort(turned)[y])
    for a, b in zip(fitted.transform(models), other.transform([part[:, turned] for part in models]), strict=True):
        assert a[:, turned] == pytest.approx(b, abs=1e-9)


def test_renaming_actions_changes_nothing_but_their_names(two_views):
    models, y, losses = two_views()
    fitted, other = ReDCal(losses, **FINE).fit(models, y), ReDCal(losses[:, :, [1, 2, 0]], **FINE).fit(models, y)
    for a, b in zip(fitted.transform(models), other.transform(models), strict=True):
        assert a == pytest.approx(b, abs=1e-9)
    for a, b in zip(fitted.predict(models), other.predict(models), strict=True):
        assert (np.array([2, 0, 1])[a.astype(int)] == b.astype(int)).all()


def test_actions_are_those_that_the_probabilities_make_cheapest(two_views):
    models, y, losses = two_views()
    tables = {
        f"loss {k}": pd.DataFrame(loss, columns=["a", "b", "c"], index=[0, 1, 2, 3]) for k, loss in enumerate(losses)
    }
    fitted = ReDCal(tables, **FINE).fit(models, y)
    for name, table in tables.items():
        for part, actions in zip(fitted.transform(models), fitted.predict(models, loss=name), strict=True):
            assert (best_response(part, table) == actions).all()
    assert (fitted.predict(models, loss=1)[0] == fitted.predict(models, loss="loss 1")[0]).all()


def test_the_rows_of_a_table_may_stand_in_any_order(two_views):
    models, y, losses = two_views(losses=1)
    table = pd.DataFrame(losses[0], index=list("wxyz"), columns=["a", "b", "c"])
    names = np.array(list("wxyz"))[y]
    fitted = ReDCal({"x": table.loc[list("zxwy")]}, **FINE).fit(models, names)
    plain = ReDCal(losses, **FINE).fit(models, y)
    assert all((a == b).all() for a, b in zip(fitted.transform(models), plain.transform(models), strict=True))


# --- variants ---------------------------------------------------------------------------------------------------------


def test_the_modes_leave_out_one_kind_of_patch(two_views):
    models, y, losses = two_views()
    kinds = {mode: set(ReDCal(losses, mode=mode, **FINE).fit(models, y).history_["kind"]) for mode in
             ("redcal", "reconcile", "decision_calibration")}  # fmt: skip
    assert kinds == {
        "redcal": {"reconcile", "calibrate"}, "reconcile": {"reconcile"}, "decision_calibration": {"calibrate"},
    }  # fmt: skip


def test_three_models_agree_pair_by_pair(two_views):
    models, y, losses = two_views(models=3)
    fitted = ReDCal(losses, **FINE).fit(models, y)
    parts = fitted.transform(models)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        for loss in losses:
            assert max(brute_disagreement(parts[i], parts[j], loss, 0.02).values(), default=0) <= 0.005 + 1e-12
    assert len(fitted.evaluate(models, y)["disagreement"]) == 2 * 3 * 3


def test_validation_keeps_the_best_state(two_views):
    models, y, losses = two_views(1500, losses=10)
    fresh, truth, _ = two_views(1500, seed=3)
    options = FINE | {"eta": 0.001, "beta": 0.001}
    fitted = ReDCal(losses, validation=(fresh, truth), patience=10, **options).fit(models, y)
    assert fitted.stopped_ == "validation"
    assert not fitted.certificate_.holds
    assert len(fitted.patches_) == len(fitted.history_) < 200
    score = sum(((part - np.eye(4)[truth]) ** 2).sum(axis=1).mean() for part in fitted.transform(fresh))
    assert score == pytest.approx(fitted.history_["validation"].iloc[-1])
    assert score == pytest.approx(fitted.history_["validation"].min())


def test_a_share_for_validation_is_drawn_by_the_seed(two_views):
    models, y, losses = two_views()
    one, same, other = (ReDCal(losses, validation=0.3, random_state=s, **FINE).fit(models, y) for s in (0, 0, 1))
    assert one.patches_ == same.patches_ != other.patches_
    assert one.certificate_.parameters["rows"] == 1050


def test_classifiers_and_their_rows_can_be_given_instead():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((900, 3)), columns=list("abc"))
    y = np.where(X["a"] * X["b"] + rng.standard_normal(900) > 0, "yes", "no")
    models = [m.fit(X[:300], y[:300]) for m in (LogisticRegression(), GaussianNB())]
    fitted = ReDCal(min_event=10).fit(models, y[300:], X=X[300:])
    plain = ReDCal(min_event=10).fit([m.predict_proba(X[300:]) for m in models], y[300:])
    assert fitted.classes_ == plain.classes_ == ["no", "yes"]
    assert all(
        (a == b).all()
        for a, b in zip(fitted.transform(X), plain.transform([m.predict_proba(X) for m in models]), strict=True)
    )
    assert set(fitted.predict(X)[0]) <= {"no", "yes"}
    with pytest.raises(InputError, match="without predict_proba"):
        ReDCal().fit([models[0], 3], y, X=X)


def test_outcomes_can_be_probabilities(two_views):
    models, y, losses = two_views()
    hard, soft = ReDCal(losses, **FINE).fit(models, y), ReDCal(losses, **FINE).fit(models, np.eye(4)[y])
    assert hard.patches_ == soft.patches_


def test_a_floor_keeps_probabilities_above_zero(two_views):
    models, y, losses = two_views(500)
    options = FINE | {"eta": 0.002, "beta": 0.002}
    plain, floored = ReDCal(losses, **options).fit(models, y), ReDCal(losses, floor=0.001, **options).fit(models, y)
    assert plain.transform(models)[0].min() == 0
    for a, b in zip(plain.transform(models), floored.transform(models), strict=True):
        assert b.min() >= 0.001
        assert b.sum(axis=1) == pytest.approx(np.ones(len(b)))
        assert np.abs(a - b).max() <= 0.004
    assert all((a == b).all() for a, b in zip(plain.predict(models), floored.predict(models), strict=True))


def test_small_events_are_left_and_the_certificate_says_what_is_left(two_views):
    models, y, losses = two_views(600)
    fitted = ReDCal(losses, alpha=0.01, eta=0.001, beta=0.001, min_event=60).fit(models, y)
    assert fitted.history_["rows"].min() >= 60
    assert not fitted.certificate_.holds
    assert fitted.certificate_.parameters["largest_event"] > 0.001


def test_stopping_at_the_most_patches_is_said(two_views):
    models, y, losses = two_views()
    with pytest.warns(ConvergenceWarning, match="events are left"):
        fitted = ReDCal(losses, max_patches=3, **FINE).fit(models, y)
    assert fitted.stopped_ == "max_patches"
    assert not fitted.certificate_.holds


# --- held-out rows ----------------------------------------------------------------------------------------------------


def test_the_held_out_certificate_adds_the_width_of_hoeffding(two_views):
    models, y, losses = two_views()
    fitted = ReDCal(losses, **FINE).fit(models, y)
    fresh, truth, _ = two_views(2000, seed=5)
    stated = fitted.certify(fresh, truth, level=0.9)
    measured = fitted.evaluate(fresh, truth)["models"].loc["after"]
    spans = np.array([np.ptp(loss) for loss in losses])
    width = 2 * spans * np.sqrt(np.log(2 * 6 / (0.1 / 3)) / 4000)
    gaps = (measured["realised"] - measured["forecast"]).abs().to_numpy().reshape(2, 3) + width
    assert stated.parameters["loss_estimation_gap"] == pytest.approx(gaps.max())
    assert stated.confidence == 0.9
    assert "2,000 held-out rows" in stated.guarantee
    with pytest.raises(InputError, match="level"):
        fitted.certify(fresh, truth, level=1.5)


@pytest.mark.slow
def test_the_held_out_certificate_keeps_its_level(two_views):
    """Rows are drawn from a finite population, where the truth is known: wrong in 10 % of 2,000 draws at most."""
    models, y, losses = two_views(2000)
    fitted = ReDCal(losses, **FINE).fit(models, y)
    everybody, answers, _ = two_views(5000, seed=9)
    truth = fitted.evaluate(everybody, answers)
    last = truth["models"].loc["after"]
    apart = truth["disagreement"].loc["after"]["disagreement"].max()
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(2000):
        rows = rng.integers(5000, size=250)
        stated = fitted.certify([part[rows] for part in everybody], answers[rows], level=0.9).parameters
        wrong += (
            apart > stated["disagreement"]
            or (last["realised"] - last["forecast"]).abs().max() > stated["loss_estimation_gap"]
            or last["regret"].max() > stated["swap_regret"]
        )
    assert wrong <= 2000 * 0.1 + 2.326 * np.sqrt(2000 * 0.1 * 0.9)


# --- bad input --------------------------------------------------------------------------------------------------------

GOOD = np.array([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5], [0.1, 0.9]])
Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    ("models", "y", "message"),
    [
        ([GOOD], Y, "two or more"),
        (GOOD, Y, "two or more"),
        ("ab", Y, "two or more"),
        ([GOOD, GOOD[:3]], Y, "shape"),
        ([GOOD, GOOD * 2], Y, r"run from .* to 1\.8"),
        ([GOOD, GOOD * 0.9], Y, "sum to 1"),
        ([GOOD, np.where(GOOD > 0.8, np.nan, GOOD)], Y, "missing or infinite in 1 rows"),
        ([GOOD, np.full((4, 2), "a")], Y, "not numbers"),
        ([GOOD, GOOD], Y[:3], "one for each of the 4 rows"),
        ([GOOD, GOOD], np.array([0, 1, 2, 3]), "4 classes and the models have 2"),
        ([GOOD, GOOD], np.array([0, 1, np.nan, 1]), "missing"),
        ([np.empty((0, 2))] * 2, [], "shape"),
        ([GOOD, GOOD], np.full((4, 2), 0.3), "sum to 1"),
    ],
)
def test_what_cannot_be_used_is_refused(models, y, message):
    with pytest.raises(InputError, match=message):
        ReDCal(min_event=1).fit(models, y)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha"),
        ({"eta": 0}, "eta"),
        ({"eta": 1.0}, "eta"),
        ({"beta": -1}, "beta"),
        ({"beta": np.nan}, "beta"),
        ({"mode": "both"}, "mode"),
        ({"alpha": "much"}, "alpha"),
        ({"floor": "none"}, "floor"),
        ({"max_patches": 0}, "max_patches"),
        ({"min_event": 2.5}, "min_event"),
        ({"patience": True}, "patience"),
        ({"floor": 0.5}, "floor"),
        ({"validation": 2.0}, "validation"),
        ({"validation": (1, 2, 3)}, "tuple of 3"),
        ({"min_event": 5}, "4 rows to fit on"),
        ({"losses": [[1.0], [2.0]]}, "1 actions"),
        ({"losses": np.ones((2, 3))}, "something to decide"),
        ({"losses": np.zeros((3, 2))}, "3 classes"),
        ({"losses": [[1.0, np.inf], [0, 0]]}, "infinite costs"),
        ({"losses": {}}, "no loss"),
        ({"losses": np.ones(3)}, "shape"),
        ({"losses": {"a": pd.DataFrame([[1, 0], [0, 1]], index=["x", "y"])}}, "classes"),
        ({"losses": {"a": pd.DataFrame([[1, 0], [0, 1]], columns=["a", "a"])}}, "one name"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        ReDCal(**({"min_event": 1} | options)).fit([GOOD, GOOD], Y)


def test_a_loss_that_is_a_function_is_refused_since_it_need_not_be_linear():
    with pytest.raises(TypeError, match="linear"):
        ReDCal(lambda y, a: abs(y - a)).fit([GOOD, GOOD], Y)


def test_new_rows_must_fit_the_fit(two_views):
    models, y, losses = two_views(200)
    fitted = ReDCal(losses, min_event=1).fit(models, y)
    with pytest.raises(InputError, match="the 2 that were fitted"):
        fitted.transform([*models, models[0]])
    with pytest.raises(InputError, match="2 classes"):
        fitted.transform([GOOD, GOOD])
    with pytest.raises(InputError, match="the loss is 7"):
        fitted.predict(models, loss=7)
    with pytest.raises(NotFittedError):
        ReDCal().transform(models)


def test_it_is_cloned_untouched():
    """Its rows are lists of matrices, so scikit-learn's check_estimator, which gives one matrix, does not apply."""
    estimator = ReDCal({"a": GOOD}, alpha=0.3)
    assert clone(estimator).get_params()["alpha"] == 0.3


@pytest.mark.parametrize("kind", ["object", "category", "string", "Int64", "bool"])
def test_outcomes_of_any_kind(kind):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    words = np.where(y, "b", "a")
    named = {
        "object": pd.Series(words, dtype=object),
        "category": pd.Categorical(words),
        "string": pd.Series(words, dtype="string"),
        "Int64": pd.Series(y.astype(int), dtype="Int64"),
        "bool": y,
    }[kind]
    fitted = ReDCal(min_event=5).fit([p, p[::-1]], named)
    assert fitted.patches_ == ReDCal(min_event=5).fit([p, p[::-1]], y.astype(int)).patches_
