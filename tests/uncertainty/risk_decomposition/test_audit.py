"""The chosen measure: never shown on the rows that chose it, and inconclusive where there is too little to tell."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from aboveboard.core import InputError
from aboveboard.uncertainty import abstention_audit, uncertainty_measures
from aboveboard.uncertainty.risk_decomposition._audit import measure_name


def drawn(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    event = rng.random(n) < 0.2
    return pd.DataFrame({"blind": rng.random(n), "good": event + rng.standard_normal(n)}), event


def test_the_best_measure_is_shown_on_rows_that_did_not_choose_it():
    measures, event = drawn()
    chooses = np.arange(2000) % 2 == 0
    (finding,) = abstention_audit(measures, event, chooses=chooses)
    assert (finding.severity, finding.status, finding.id) == ("ok", "ran", "abstention/misclassification")
    assert finding.value == pytest.approx(roc_auc_score(event[~chooses], measures["good"][~chooses]))
    assert finding.n == 1000
    assert finding.tables[0].rows[0][0] == "good"


def test_measures_that_know_nothing_are_a_warning_and_few_rows_are_inconclusive():
    rng = np.random.default_rng(0)
    (finding,) = abstention_audit(pd.DataFrame({"blind": rng.random(4000)}), rng.random(4000) < 0.3)
    assert (finding.severity, finding.status) == ("warn", "ran")
    measures, event = drawn(120)
    (finding,) = abstention_audit(measures[["blind"]], event)
    assert finding.status == "inconclusive"
    for nothing in (np.zeros(120), np.ones(120), np.arange(120) < 12):
        (finding,) = abstention_audit(measures, nothing)
        assert (finding.status, finding.value) == ("inconclusive", None)


def test_choosing_among_many_blind_measures_does_not_deceive():
    """Of 40 measures without any knowledge the best on one half is no better on the other."""
    rng = np.random.default_rng(1)
    shown = []
    for seed in range(60):
        measures = pd.DataFrame(rng.random((200, 40)))
        (finding,) = abstention_audit(measures, rng.random(200) < 0.3, random_state=seed)
        shown.append(finding.value)
    assert np.mean(shown) == pytest.approx(0.5, abs=3 * np.std(shown) / np.sqrt(len(shown)))


def test_it_is_compared_with_the_least_confidence():
    members = np.random.default_rng(0).dirichlet([1, 1, 1], size=(5, 1500))
    family = uncertainty_measures(members)
    wrong = np.random.default_rng(1).random(1500) < family["log", "excess", "outer", "inner"]
    (finding,) = abstention_audit(family, wrong)
    assert "beside the least confidence" in finding.statement
    assert len(finding.tables[0].rows) == 15


def test_clusters_stay_together():
    measures, event = drawn(400)
    clusters = np.repeat(np.arange(40), 10)
    (finding,) = abstention_audit(measures, event, clusters=clusters)
    assert finding.n == 200


def test_rows_that_choose_are_booleans():
    measures, event = drawn(50)
    with pytest.raises(InputError, match="booleans"):
        abstention_audit(measures, event, chooses=np.arange(50))


def test_measures_are_called_by_their_names():
    assert measure_name(("log", "excess", "outer", "inner")) == "mutual information"
    assert measure_name(("log", "bayes", "outer", "")) == "expected entropy"
    assert measure_name(("spherical", "bayes", "outer", "")) == "spherical bayes, outer"
    assert measure_name("epkl") == "epkl"


def test_hostile_names_pass(hostile_name):
    measures, event = drawn(400)
    (finding,) = abstention_audit(measures.set_axis(pd.Index(["blind", hostile_name], dtype=object), axis=1), event)
    assert hostile_name in finding.statement
