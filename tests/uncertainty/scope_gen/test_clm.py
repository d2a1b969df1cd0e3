"""Conformal language modelling against a loop that follows its rules one draft at a time."""

import math

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from aboveboard.core import InputError
from aboveboard.uncertainty import ConformalLanguageModel, GeneratedItem


def _items(n, seed, m=20):
    rng = np.random.default_rng(seed)
    items = []
    for p in rng.beta(1.5, 1.5, size=n):
        labels = rng.random(m) < p
        quality = 1 / (1 + np.exp(-rng.normal(size=m) - 2 * labels))
        place = rng.normal(size=(m, 2))
        similarity = np.exp(-np.square(place[:, None] - place[None]).sum(axis=2))
        items.append(GeneratedItem(range(m), quality=quality, similarity=similarity, labels=labels))
    return items


def _one_by_one(item, thresholds, score, m=20):
    similarity, quality, stop = thresholds
    kept = []
    q, s = item.quality_of(m), item.similarity_of(np.arange(m))
    for j in range(m):
        if q[j] < quality or any(s[i, j] > similarity for i in kept):
            continue
        kept.append(j)
        total = {"count": len(kept), "sum": sum(q[i] for i in kept), "max": max(q[i] for i in kept)}[score]
        if total >= stop:
            break
    return tuple(kept)


@pytest.mark.parametrize("score", ["count", "sum", "max"])
def test_sets_are_those_of_a_loop(score):
    items = _items(200, 0)
    clm = ConformalLanguageModel(alpha=0.4, score=score, random_state=0, n_levels=6).calibrate(items[:150])
    assert clm.n_valid_ > 0
    assert clm.n_queries_ == 150 * 20
    for item, found in zip(items[150:], clm.predict_many(items[150:]), strict=True):
        assert found.indices == _one_by_one(item, clm.thresholds_, score)
        assert found == clm.predict(item)


def test_coverage_is_at_least_the_level():
    coverage = []
    for seed in range(15):
        items = _items(400, seed)
        clm = ConformalLanguageModel(alpha=0.3, use_similarity=False, random_state=seed).calibrate(items[:200])
        sets = clm.predict_many(items[200:])
        coverage.append(np.mean([i.labels[list(s.indices)].any() or s.rejected for s, i in zip(sets, items[200:])]))
    assert np.mean(coverage) >= 0.7


def test_where_no_candidate_passes_everything_is_rejected():
    items = [GeneratedItem(range(20), quality=[0.5] * 20, labels=[0] * 20) for _ in range(40)]
    clm = ConformalLanguageModel(use_similarity=False, random_state=0).calibrate(items)
    assert clm.thresholds_ is None
    assert clm.predict(items[0]).rejected


def test_the_certificate_splits_alpha():
    certificate = ConformalLanguageModel(alpha=0.3, failure=0.1, n_levels=4, random_state=0).calibrate(_items(60, 0))
    parameters = certificate.certificate().parameters
    assert parameters["failure"] + (1 - parameters["failure"]) * parameters["risk"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    "options",
    [{"alpha": 0}, {"failure": 0.3}, {"failure": 0}, {"score": "mean"}, {"max_samples": 0}, {"n_levels": 0}],
)
def test_parameters_out_of_range_are_refused(options):
    with pytest.raises(InputError):
        ConformalLanguageModel(**options).calibrate(_items(30, 0))


def test_items_that_cannot_be_used_are_refused():
    with pytest.raises(InputError, match="20 or more"):
        ConformalLanguageModel().calibrate(_items(19, 0))
    with pytest.raises(InputError, match="no labels"):
        ConformalLanguageModel().calibrate([GeneratedItem(range(20), quality=[0.5] * 20)] * 30)
    with pytest.raises(InputError, match="has 5 drafts"):
        ConformalLanguageModel().calibrate(_items(30, 0, m=5))
    with pytest.raises(NotFittedError):
        ConformalLanguageModel().predict(_items(1, 0)[0])
    with pytest.raises(NotFittedError):
        ConformalLanguageModel().certificate()


def test_no_similarity_is_needed_without_its_threshold():
    clm = ConformalLanguageModel(alpha=0.4, use_similarity=False, random_state=0).calibrate(_items(60, 0))
    assert clm.thresholds_[0] == math.inf
