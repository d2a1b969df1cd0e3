"""Membership in the audit: which rows take part, what is attacked with what, certificates and groups."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import aboveboard
from aboveboard.auditing.checks import membership
from aboveboard.auditing.subject import make_subject
from aboveboard.core import Certificate
from aboveboard.core.errors import ModelError, QueriesSpent
from aboveboard.privacy import NoisySGDClassifier

N = 2400


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.normal(size=n) for name in "abc"})
    frame["town"] = rng.choice(["Aix", "Brest"], n)
    frame["y"] = np.where((frame["a"] > 0) ^ (rng.random(n) < 0.2), "yes", "no")
    return frame


TRAIN, TEST = table(seed=1), table(seed=2)
FEATURES = list("abc")


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(20, random_state=0).fit(TRAIN[FEATURES], TRAIN["y"])


def subject(model, test=TEST, train=TRAIN, **options):
    options = {"sensitive_features": ["town"], "drop": []} | options
    return make_subject(model, test, "y", train=train, **options)


def check(given, effort="standard", seed=11):
    found = membership.check(given, random_state=seed, effort=effort)
    return {finding.id.removeprefix("membership/"): finding for finding in found}


# --- what is found ----------------------------------------------------------------------------------------------------


def test_a_forest_that_learned_by_heart_is_found(forest):
    found = check(subject(forest))
    assert set(found) == {"attack", "epsilon", "kinds", "town"}
    assert found["attack"].severity == "warn"
    assert "trained with effort full" in found["attack"].reason
    assert found["attack"].limit_source == "a convention of this project"


def test_limits_are_named_with_whoever_set_them(forest):
    found = check(subject(forest, limits={"membership.group": 0.3, "membership.epsilon": 9.0}))
    assert [(found[name].limit, found[name].limit_source) for name in ("attack", "epsilon", "town")] == [
        (0.05, "a convention of this project"),
        (9.0, "the user"),
        (0.3, "the user"),
    ]


def test_a_model_of_little_capacity_is_not():
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(TRAIN[FEATURES], TRAIN["y"])
    found = check(subject(model))
    assert found["attack"].severity in ("ok", "note")
    assert found["attack"].interval.low < 0.02
    assert found["epsilon"].value < 0.2


def test_with_effort_full_shadow_models_are_trained_and_find_more(forest, monkeypatch):
    monkeypatch.setattr(membership, "_SHADOWS", 8)
    small = subject(forest, TEST[:1200], TRAIN)
    attacks = {row[0]: row for row in check(small, "full")["attack"].tables[0].rows if row[1].startswith("10 %")}
    assert attacks["likelihood ratio, online"][2] > attacks["loss threshold"][2] + 0.1


def test_a_copy_that_cannot_be_fitted_leaves_the_score_attack(forest, monkeypatch):
    class Spent(RandomForestClassifier):
        def fit(self, X, y):
            raise MemoryError

    model = Spent(20).set_params(random_state=0)
    model.__dict__.update(forest.__dict__)
    found = check(subject(model), "full")["attack"]
    assert found.severity == "warn"
    assert "fitting a copy raised MemoryError" in found.reason


def test_a_function_has_no_shadow_models(forest):
    found = check(subject(lambda X: forest.predict_proba(X[FEATURES])[:, 1], positive="yes"), "full")["attack"]
    assert "could not be fitted again" in found.reason
    assert found.severity == "warn"


def test_labels_alone_are_told_by_how_often_they_are_right(forest):
    class Labels:
        classes_ = forest.classes_
        feature_names_in_ = forest.feature_names_in_
        predict = staticmethod(forest.predict)

    found = check(subject(Labels()))["attack"]
    gap = (forest.predict(TRAIN[FEATURES]) == TRAIN["y"]).mean() - (forest.predict(TEST[FEATURES]) == TEST["y"]).mean()
    assert found.value == pytest.approx(gap, abs=0.05)
    assert found.severity == "warn"


def test_numbers_are_told_by_their_error():
    train, test = (part.assign(y=part["a"] + np.random.default_rng(9).normal(size=N)) for part in (TRAIN, TEST))
    model = RandomForestRegressor(20, random_state=0).fit(train[FEATURES], train["y"])
    found = check(subject(model, test, train), "full")
    assert found["attack"].severity == "warn"
    assert {row[0] for row in found["attack"].tables[0].rows} == {"loss threshold", "without the model"}
    assert found["attack"].remedies == ()


# --- which rows -------------------------------------------------------------------------------------------------------


def test_rows_in_both_tables_take_no_part(forest):
    both = pd.concat([TEST, TRAIN[:1000]], ignore_index=True)
    kept = membership._apart(subject(forest, both), np.random.default_rng(0), None)
    assert kept.audited.tolist() == list(range(N))
    assert kept.train.tolist() == list(range(1000, N))
    nothing = check(subject(forest, TRAIN[:200], TRAIN[:200]))["attack"]
    assert nothing.status == "inconclusive"


def test_of_rows_that_belong_together_one_is_drawn(forest):
    households = TEST.assign(household=np.arange(N) // 4)
    kept = membership._apart(subject(forest, households, clusters="household"), np.random.default_rng(0), None)
    assert len(kept.audited) == N // 4
    assert len(np.unique(kept.audited // 4)) == N // 4


def test_training_rows_are_drawn_up_to_the_effort_and_asked_about_once(forest, monkeypatch):
    monkeypatch.setitem(membership._TRAIN_ROWS, "quick", 500)
    assert membership.questions(TEST, effort="quick", training_rows=N) == [500]
    assert membership.questions(TEST, effort="full", training_rows=N) == [N]
    found = check(subject(forest), "quick")["attack"]
    assert found.n == 250 + N // 2


def test_tables_that_differ_by_themselves_are_said_to():
    moved = TRAIN.assign(b=TRAIN["b"] + 1.5)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.01)).fit(moved[FEATURES], moved["y"])
    found = check(subject(model, train=moved))["attack"]
    assert "never asks the model" in found.statement
    assert found.severity != "warn"


@pytest.mark.parametrize("error", [QueriesSpent("No more."), ModelError("It broke.", kind="time limit")])
def test_a_model_that_will_not_answer_about_its_training_rows_ends_the_check_and_not_the_audit(forest, error):
    given = subject(forest)

    class Tired:
        model = forest

        def answer(self, X):
            raise error

    object.__setattr__(given, "model", Tired())
    (finding,) = check(given).values()
    assert finding.status == ("skipped" if isinstance(error, QueriesSpent) else "inconclusive")


# --- groups -----------------------------------------------------------------------------------------------------------


def test_groups_are_read_from_the_training_table_too_and_cut_alike(forest):
    given = subject(forest, sensitive_features=["town", "b:0"])
    assert list(given.train.sensitive.columns) == ["town", "b"]
    assert (given.train.sensitive["town"].astype(str) == TRAIN["town"]).all()
    low = given.train.sensitive["b"].cat.categories[0]
    assert ((given.train.sensitive["b"] == low) == (TRAIN["b"] < 0)).all()
    assert list(given.train.sensitive["b"].cat.categories)[:2] == list(given.sensitive["b"].cat.categories)[:2]
    assert {"town", "b"} <= set(check(given))


def test_groups_that_the_training_table_lacks_are_open(forest):
    found = check(subject(forest, train=(TRAIN[FEATURES], TRAIN["y"])))["town"]
    assert found.status == "inconclusive"
    assert "do not have this column" in found.reason


# --- certificates -----------------------------------------------------------------------------------------------------


def certified(forest, inside_pipeline=False, **parameters):
    model = RandomForestClassifier(20)
    model.__dict__.update(forest.__dict__)
    model.certificate_ = Certificate(kind="differential privacy", guarantee="It is private.", parameters=parameters)
    if inside_pipeline:
        return make_pipeline(StandardScaler().set_output(transform="pandas").fit(TRAIN[FEATURES]), model)
    return model


def test_a_certificate_that_the_attack_contradicts_is_a_failure(forest):
    found = check(subject(certified(forest, epsilon=0.1, delta=1e-5)))["epsilon"]
    assert (found.severity, found.limit) == ("fail", 0.1)
    kept = check(subject(certified(forest, epsilon=20.0, delta=1e-5)))["epsilon"]
    assert (kept.severity, kept.limit) == ("ok", 20.0)


def test_a_certificate_for_adding_a_row_holds_twice_for_replacing_one(forest):
    given = subject(certified(forest, epsilon=1.0, delta=1e-5, adjacency="add_remove"))
    assert membership._promised(given) == (2.0, pytest.approx(1e-5 * (1 + np.e)))
    again = subject(certified(forest, epsilon=1.0, delta=1e-5, adjacency="replace_one", inside_pipeline=False))
    assert membership._promised(again) == (1.0, 1e-5)


def test_the_certificate_of_the_last_step_of_a_pipeline_counts(forest):
    given = subject(certified(forest, inside_pipeline=True, epsilon=3.0))
    assert membership._promised(given) == (3.0, 0.0)


def test_a_model_with_steps_of_another_kind_is_no_pipeline(forest):
    model = certified(forest, epsilon=3.0)
    model.steps = None
    assert membership._promised(subject(model)) == (3.0, 0.0)


@pytest.mark.filterwarnings("ignore:rows longer than data_norm")
def test_a_model_that_was_trained_privately_is_not_accused_and_its_certificate_not_contradicted():
    public = [-4.0] * 3, [4.0] * 3
    model = NoisySGDClassifier(epsilon=1.0, bounds=public, random_state=0).fit(TRAIN[FEATURES], TRAIN["y"])
    found = check(subject(model))
    assert found["attack"].severity != "warn"
    assert (found["epsilon"].severity, found["epsilon"].limit) == ("ok", model.epsilon_)
    assert found["attack"].remedies == ()


def test_the_remedy_is_private_training_where_the_task_is_one_that_it_learns(forest):
    assert check(subject(forest))["attack"].remedies == ("NoisySGDClassifier", "PrivateWeightedLogisticRegression")
    train, test = (part.assign(y=part["y"].where(part["c"] < 1, "perhaps")) for part in (TRAIN, TEST))
    model = RandomForestClassifier(20, random_state=0).fit(train[FEATURES], train["y"])
    assert check(subject(model, test, train))["attack"].remedies == ("NoisySGDClassifier",)


@pytest.mark.parametrize("parameters", [{}, {"epsilon": float("inf")}])
def test_a_certificate_without_a_finite_epsilon_promises_nothing(forest, parameters):
    assert membership._promised(subject(certified(forest, **parameters))) == (None, 1e-5)


# --- the audit --------------------------------------------------------------------------------------------------------


def test_the_audit_has_a_section_on_privacy_and_says_the_same_twice(forest):
    one, two = (
        aboveboard.audit(
            forest, TEST, "y", train=TRAIN, sensitive_features=["town"], only="privacy", effort="quick"
        ).to_dict()
        for _ in range(2)
    )
    assert one["findings"] == two["findings"]
    assert {finding["area"] for finding in one["findings"]} == {"privacy"}


def test_without_training_rows_it_does_not_apply(forest):
    (silent,) = aboveboard.audit(forest, TEST, "y", only="membership").not_run
    assert "No training data" in silent.reason


def test_hostile_names_pass(forest, hostile_name):
    names = {"Aix": hostile_name, "Brest": "b"}
    train, test = (
        part.assign(town=pd.Series([names[town] for town in part["town"]], dtype=object)) for part in (TRAIN, TEST)
    )
    for finding in check(subject(forest, test, train)).values():
        json.dumps(finding.to_dict(), allow_nan=False)
