"""Ensembles of scikit-learn are asked member by member, and the mean of the members is what they say together."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from aboveboard.core import InputError
from aboveboard.uncertainty import NAMES, RiskDecomposition, pointwise_risk, uncertainty_measures

X, y = load_digits(return_X_y=True)
LABELS = np.array(list("abcdefghij"))[y]
TREE = DecisionTreeClassifier(max_depth=6, min_samples_leaf=5, random_state=0)
MEMBERS = [("tree", TREE), ("bayes", GaussianNB())]

ENSEMBLES = {
    "forest": RandomForestClassifier(7, min_samples_leaf=3, random_state=0),
    "extra trees": ExtraTreesClassifier(7, min_samples_leaf=3, random_state=0),
    "bagging": BaggingClassifier(TREE, 5, max_features=0.5, max_samples=0.3, random_state=0),
    "bagging few rows": BaggingClassifier(GaussianNB(), 5, max_samples=15, random_state=0),
    "voting": VotingClassifier(MEMBERS, voting="soft"),
    "calibrated": CalibratedClassifierCV(GaussianNB(), cv=3),
    "pipeline": make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
    "search": GridSearchCV(RandomForestClassifier(5, random_state=0), {"max_depth": [2, 4]}, cv=2),
}


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # classes that a few rows lack
@pytest.mark.parametrize("name", list(ENSEMBLES))
@pytest.mark.parametrize("target", [y, LABELS], ids=["numbers", "letters"])
def test_the_mean_of_the_members_is_what_the_ensemble_says(name, target):
    model = clone(ENSEMBLES[name]).fit(X[:900], target[:900])
    members = RiskDecomposition(model).member_proba(X[900:1000])
    assert members.mean(axis=0) == pytest.approx(model.predict_proba(X[900:1000]), abs=1e-12)
    assert len(members) > 1


@pytest.mark.parametrize("container", ["frame", "polars", "sparse"])
def test_containers_give_the_same(container):
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    given = {"frame": frame, "polars": pl.from_pandas(frame), "sparse": sparse.csr_matrix(X)}[container]
    model = clone(ENSEMBLES["forest"]).fit(frame if container != "sparse" else X, y)
    measures = RiskDecomposition(model, scores=["brier"]).measures(given)
    expected = uncertainty_measures(np.stack([tree.predict_proba(X) for tree in model.estimators_]), ["brier"])
    assert measures.to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-12)


def test_a_frame_keeps_its_index():
    model = clone(ENSEMBLES["forest"]).fit(X, y)
    rows = pd.DataFrame(X[:20], index=[f"row {i}" for i in range(20)])
    assert list(RiskDecomposition(model, scores=["brier"]).measures(rows).index) == list(rows.index)


def test_lists_of_classifiers_with_other_classes_and_without_probabilities():
    first = GaussianNB().fit(X[y < 8], LABELS[y < 8])
    second = GaussianNB().fit(X, LABELS)
    third = RidgeClassifier().fit(X, LABELS)
    members = RiskDecomposition([first, second, third]).member_proba(X[:50])
    assert members.shape == (3, 50, 10)
    assert members[0, :, :8] == pytest.approx(first.predict_proba(X[:50]))
    assert (members[0, :, 8:] == 0).all()
    assert (np.array(list("abcdefghij"))[members[2].argmax(axis=1)] == third.predict(X[:50])).all()
    assert set(np.unique(members[2])) == {0.0, 1.0}


def test_hard_votes_are_members_too():
    model = VotingClassifier([("ridge", RidgeClassifier()), ("bayes", GaussianNB())]).fit(X, LABELS)
    assert RiskDecomposition(model).member_proba(X[:5]).shape == (2, 5, 10)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (GradientBoostingClassifier(n_estimators=2), "correct each other"),
        (HistGradientBoostingClassifier(max_iter=2), "correct each other"),
        (AdaBoostClassifier(n_estimators=2), "correct each other"),
        (StackingClassifier(MEMBERS, cv=2), "features of another model"),
        (LogisticRegression(max_iter=5), "shows no members"),
        (VotingClassifier(MEMBERS, voting="soft", weights=[1, 2]), "different weights"),
        (CalibratedClassifierCV(GaussianNB(), cv=2, ensemble=False), "ensemble=True"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_has_no_posterior_is_refused_with_the_reason(model, message):
    fitted = model.fit(X[:300], y[:300])
    with pytest.raises(InputError, match=message):
        RiskDecomposition(fitted).member_proba(X[:2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": None}, "NoneType is no ensemble"),
        ({"estimator": RandomForestClassifier()}, "not fitted"),
        ({"estimator": [GaussianNB().fit(X, y)]}, "1 members"),
        ({"estimator": [GaussianNB().fit(X, y), StandardScaler()]}, "StandardScaler"),
        ({"temperature": 2.0}, "PyTorch"),
        ({"temperature": 0.0}, "above 0"),
        ({"n_draws": 1}, "2 or more"),
        ({"batch_size": 0}, "1 or more"),
        ({"names": ["bald"]}, "names is"),
        ({"names": "epkl"}, "names is"),
        ({"names": []}, "names is"),
        ({"scores": ["crps"]}, "score is"),
    ],
)
def test_wrong_options_are_refused(options, message):
    model = clone(ENSEMBLES["forest"]).fit(X[:300], y[:300])
    with pytest.raises(InputError, match=message):
        RiskDecomposition(**({"estimator": model} | options)).measures(X[:3])


def test_no_rows_are_refused():
    model = clone(ENSEMBLES["forest"]).fit(X[:300], y[:300])
    with pytest.raises(InputError, match="no rows"):
        RiskDecomposition(model).measures(X[:0])


def test_named_measures_only():
    model = clone(ENSEMBLES["forest"]).fit(X[:300], y[:300])
    decomposition = RiskDecomposition(model, names=["member_variance", "least_confidence"])
    members = decomposition.member_proba(X[300:330])
    table = decomposition.measures(X[300:330])
    assert table["member_variance"].to_numpy() == pytest.approx(pointwise_risk(members, score="brier"))
    assert table["least_confidence"].to_numpy() == pytest.approx(1 - members.mean(0).max(1))
    assert {*table.columns} <= {*NAMES}


def test_it_compares_and_audits_errors_and_foreign_rows():
    model = RandomForestClassifier(10, max_depth=5, random_state=0).fit(X[:600], LABELS[:600])
    decomposition = RiskDecomposition(model, scores=["brier", "zero_one"])
    noise = np.random.default_rng(0).uniform(0, 16, (300, 64))
    table = decomposition.compare(X[600:], LABELS[600:], noise)
    wrong = model.predict(X[600:]) != LABELS[600:]
    assert set(table.loc["misclassification"]["events"]) == {int(wrong.sum())}
    assert set(table.loc["out_of_distribution"]["events"]) == {300}
    assert table.loc["misclassification"]["auroc"].max() > 0.75
    findings = decomposition.audit(X[600:], LABELS[600:], noise)
    assert [finding.id for finding in findings] == ["abstention/misclassification", "abstention/out_of_distribution"]
    assert [finding.severity for finding in findings] == ["ok", "ok"]
    with pytest.raises(InputError, match="neither y nor X_ood"):
        decomposition.compare(X)
    with pytest.raises(InputError, match="y has shape"):
        decomposition.compare(X, y[:5])
