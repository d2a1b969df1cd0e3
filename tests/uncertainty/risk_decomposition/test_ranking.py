"""Areas against scikit-learn, their errors and intervals against simulation."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from aboveboard.core import InputError
from aboveboard.uncertainty import rank_measures
from aboveboard.uncertainty.risk_decomposition._ranking import areas_under_curve, column_text


def drawn(n=300, seed=0, k=4):
    rng = np.random.default_rng(seed)
    event = rng.random(n) < 0.3
    values = event[:, None] * np.linspace(0, 2, k) + rng.standard_normal((n, k))
    return pd.DataFrame(values, columns=[f"m{i}" for i in range(k)]), event


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_areas_are_those_of_scikit_learn(rounded, weighted):
    measures, event = drawn()
    measures = measures.round() if rounded else measures
    weight = np.random.default_rng(1).uniform(0, 2, len(event)) if weighted else None
    table = rank_measures(measures, event, sample_weight=weight)
    for name in measures:
        expected = roc_auc_score(event, measures[name], sample_weight=weight)
        assert table["auroc"][name] == pytest.approx(expected)
    assert table["auroc"].is_monotonic_decreasing
    assert table.attrs == {"n": 300, "events": int(event.sum())}


def test_the_error_is_that_of_repeated_samples():
    values = [areas_under_curve(*(np.asarray(part) for part in drawn(seed=s))).value for s in range(400)]
    measures, event = drawn(seed=1000)
    found = areas_under_curve(measures.to_numpy(), event)
    assert found.influence.sum(axis=0) == pytest.approx(0, abs=1e-10)
    assert np.sqrt((found.influence**2).sum(axis=0)) == pytest.approx(np.std(values, axis=0), rel=0.2)


def test_clusters_widen_the_intervals():
    measures, event = drawn()
    repeated, again = pd.concat([measures] * 5, ignore_index=True), np.tile(event, 5)
    alone = rank_measures(measures, event)
    apart = rank_measures(repeated, again)
    together = rank_measures(repeated, again, clusters=np.tile(np.arange(300), 5))
    width = [float((t["high"] - t["low"]).mean()) for t in (alone, apart, together)]
    assert width[2] == pytest.approx(width[0], rel=0.05)
    assert width[1] < 0.6 * width[0]


def test_a_perfect_order_and_too_few_events():
    measures, event = drawn()
    perfect = rank_measures(pd.DataFrame({"perfect": event.astype(float)}), event)
    assert perfect["auroc"].iloc[0] == 1
    assert 0.9 < perfect["low"].iloc[0] < perfect["high"].iloc[0] == 1
    few = rank_measures(measures, np.arange(300) < 9)
    assert few["low"].isna().all()


@pytest.mark.slow
def test_all_intervals_hold_at_once_in_95_percent_of_samples():
    """2,000 samples; the acceptance region is that of a rate of 95 % at 99.9 %, less one point for a finite sample."""
    truth = norm.cdf(np.linspace(0, 2, 4) / np.sqrt(2))
    held = 0
    for seed in range(2000):
        table = rank_measures(*drawn(seed=seed), random_state=seed).loc[["m0", "m1", "m2", "m3"]]
        held += bool(((table["low"] <= truth) & (truth <= table["high"])).all())
    assert held / 2000 >= 0.95 - 3.1 * np.sqrt(0.95 * 0.05 / 2000) - 0.01
    assert held / 2000 <= 0.99


@pytest.mark.parametrize(
    ("event", "options", "message"),
    [
        (np.zeros(300), {}, "happens in 0"),
        (np.zeros(10), {}, "300 values"),
        (np.full(300, 2), {}, "true or false"),
        (np.arange(300) < 50, {"sample_weight": -np.ones(300)}, "0 or more"),
    ],
)
def test_what_cannot_be_ranked_is_refused(event, options, message):
    with pytest.raises(InputError, match=message):
        rank_measures(drawn()[0], event, **options)
    with pytest.raises(InputError, match="NaN or infinite"):
        rank_measures(pd.DataFrame({"m": np.full(300, np.nan)}), np.arange(300) < 50)


def test_labels_as_text():
    assert column_text(("log", "excess", "outer", "inner")) == "log excess, outer and inner"
    assert column_text(("brier", "bayes", "central", "")) == "brier bayes, central"
    assert column_text("own") == "own"
