"""SCOPE-Gen against closed forms, brute force, and its own promise on simulated prompts."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from aboveboard.core import InputError
from aboveboard.uncertainty import GeneratedItem, SCOPEGen, from_sampler


def _items(n, rng, *, m=20, skill=(1.2, 1.6), similar=False):
    items = []
    for p in rng.beta(*skill, size=n):
        labels = rng.random(m) < p
        quality = 1 / (1 + np.exp(-rng.normal(size=m) - labels))
        similarity = None
        if similar:
            place = rng.normal(size=(m, 2))
            similarity = np.exp(-np.square(place[:, None] - place[None]).sum(axis=2))
        items.append(GeneratedItem(range(m), quality=quality, similarity=similarity, labels=labels))
    return items


def _covered(sets, items):
    return np.array([s.rejected or item.labels[list(s.indices)].any() for s, item in zip(sets, items, strict=True)])


def _labelled(*labels, quality=None):
    return GeneratedItem(range(len(labels)), quality=quality, labels=labels)


# --- thresholds -------------------------------------------------------------------------------------------------------


def test_the_count_threshold_is_the_order_statistic_of_geometric_draws():
    rng = np.random.default_rng(0)
    labels = rng.random((199, 20)) < 0.3
    items = [_labelled(*row) for row in labels]
    scope = SCOPEGen(alpha=0.1, stages=("generation",), score="count", random_state=0).calibrate(items)
    first = np.where(labels.any(axis=1), labels.argmax(axis=1) + 1.0, math.inf)
    assert scope.thresholds_ == {"generation": np.sort(first)[180 - 1]}
    assert scope.n_queries_ == np.minimum(first, 20).sum()


def test_a_rank_beyond_the_block_gives_an_infinite_threshold_and_not_the_largest_score():
    items = [_labelled(1, 0)] * 8 + [_labelled(0, 0)] * 1
    with pytest.warns(UserWarning, match="every set is rejected"):
        scope = SCOPEGen(alpha=0.1, stages=("generation",), score="count", max_samples=2).calibrate(items)
    assert scope.thresholds_["generation"] == math.inf
    assert scope.predict(_labelled(1, 1)).rejected


def test_levels_multiply_to_the_whole():
    for stages in (("generation",), ("generation", "quality"), ("generation", "duplicates", "diversity", "quality")):
        scope = SCOPEGen(alpha=0.3, stages=stages, random_state=0)
        scope.calibrate(_items(200, np.random.default_rng(0), similar=True))
        assert math.prod(1 - alpha for alpha in scope.alphas_.values()) == pytest.approx(0.7)
        assert list(scope.alphas_) == [stage for stage in stages if stage != "duplicates"]


def test_the_default_split_gives_three_fifths_to_generation():
    scope = SCOPEGen(alpha=0.3, random_state=0).calibrate(_items(200, np.random.default_rng(0), similar=True))
    assert scope.alphas_["generation"] == pytest.approx(1 - 0.7**0.6)
    assert scope.alphas_["diversity"] == scope.alphas_["quality"] == pytest.approx(1 - 0.7**0.2)


def test_blocks_are_disjoint_and_hold_every_item():
    scope = SCOPEGen(alpha=0.3, random_state=0).calibrate(_items(200, np.random.default_rng(0), similar=True))
    assert [block for block, _ in scope.stage_sizes_.values()] == [66, 67, 67]


# --- laziness ---------------------------------------------------------------------------------------------------------


def test_the_expert_is_asked_up_to_the_first_admissible_draft_only():
    asked = []
    labels = [[0, 0, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0], [0, 1, 0, 0]] * 3
    items = [GeneratedItem(list("abcd")) for _ in labels]
    scope = SCOPEGen(alpha=0.5, stages=("generation",), score="count", max_samples=4, random_state=0)
    scope.calibrate(items, lambda i, j: asked.append((i, j)) or bool(labels[i][j]))
    assert sorted(asked) == sorted((i, j) for i in range(12) for j in range([3, 1, 4, 2][i % 4]))
    assert scope.n_queries_ == len(asked) == 30


def test_a_dropped_item_costs_its_whole_current_set():
    # Generation keeps two drafts of each; the second block's items have none admissible among them.
    items = [_labelled(0, 1, 0, quality=[0.5, 0.5, 0.5]) for _ in range(40)]
    scope = SCOPEGen(alpha=0.5, stages=("generation", "quality"), score="count", max_samples=3, random_state=0)
    scope.calibrate(items)
    first_block = scope.stage_sizes_["generation"][0]
    hopeless = _labelled(0, 0, 0, quality=[0.5, 0.5, 0.5])
    mixed = items[:]
    order = np.random.RandomState(0).permutation(40)
    for i in np.array_split(order, 2)[0]:  # the block of the last stage
        mixed[i] = hopeless
    with pytest.warns(UserWarning, match="only 0 items reached"):
        scope.calibrate(mixed)
    assert scope.n_queries_ == 2 * first_block + 2 * (40 - first_block)
    assert scope.stage_sizes_["quality"] == (20, 0)


def test_labels_of_drafts_that_were_not_asked_for_change_nothing():
    rng = np.random.default_rng(1)
    items = _items(200, rng, similar=True)
    asked = set()
    truth = [item.labels for item in items]
    first = SCOPEGen(alpha=0.3, random_state=3)
    first.calibrate(items, lambda i, j: asked.add((i, j)) or bool(truth[i][j]))
    other = SCOPEGen(alpha=0.3, random_state=3)
    other.calibrate(items, lambda i, j: bool(truth[i][j]) if (i, j) in asked else bool(rng.random() < 0.5))
    assert other.thresholds_ == first.thresholds_


def test_a_sampler_draws_no_more_than_the_threshold_needs():
    scope = SCOPEGen(alpha=0.3, stages=("generation",), score="count", random_state=0)
    scope.calibrate([_labelled(*(j >= 2 for j in range(20))) for _ in range(50)])
    item = from_sampler(lambda prompt, rng: float(rng.random()), "?", seed=0)
    assert scope.predict(item).indices == (0, 1, 2)
    assert len(item.samples) == 4  # the fourth is what passes the threshold


def test_items_drawn_lazily_and_items_at_hand_give_the_same():
    draws = np.random.default_rng(0).random((80, 20))
    labels = draws > 0.8
    eager = [GeneratedItem(row.tolist(), quality=row, labels=row > 0.8) for row in draws]

    def lazy(row):
        left = iter(row.tolist())
        return from_sampler(lambda prompt, rng: next(left), None, quality_fn=lambda draft: draft)

    options = {"alpha": 0.4, "stages": ("generation", "quality"), "random_state": 0}
    one = SCOPEGen(**options).calibrate(eager[:60])
    two = SCOPEGen(**options).calibrate([lazy(row) for row in draws[:60]], lambda i, j: bool(labels[i][j]))
    assert one.thresholds_ == two.thresholds_
    assert [one.predict(item).indices for item in eager[60:]] == [two.predict(lazy(row)).indices for row in draws[60:]]


# --- the promise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["count", "sum", "max"])
def test_coverage_is_at_least_the_level_on_average(score):
    coverage = []
    for seed in range(60):
        items = _items(160, np.random.default_rng(seed))
        options = {"alpha": 0.35, "stages": ("generation", "quality"), "score": score, "random_state": seed}
        scope = SCOPEGen(**options).calibrate(items[:100])
        coverage.append(_covered(scope.predict_many(items[100:]), items[100:]).mean())
    assert np.mean(coverage) >= 0.65 - 3 * np.std(coverage) / np.sqrt(60)


@pytest.mark.slow
def test_coverage_over_many_designs_is_at_least_the_level():
    gaps = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        alpha, m, n = rng.uniform(0.25, 0.6), int(rng.integers(5, 25)), int(rng.integers(60, 200))
        items = _items(n + 100, rng, m=m, skill=(2, 2), similar=True)
        scope = SCOPEGen(alpha=alpha, max_samples=m, random_state=seed)
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scope.calibrate(items[:n])
        gaps.append(_covered(scope.predict_many(items[n:]), items[n:]).mean() - (1 - alpha))
    assert np.mean(gaps) >= -3 * np.std(gaps) / np.sqrt(300)


def test_one_calibration_falls_below_the_stated_quantile_in_one_of_twenty():
    # Continuous scores and one stage: the coverage given the calibration is Beta(k, m + 1 - k).
    rng = np.random.default_rng(5)
    below = 0
    for seed in range(400):
        items = [GeneratedItem([0], quality=[q], labels=[1]) for q in rng.random(49)]
        scope = SCOPEGen(alpha=0.2, stages=("generation",), max_samples=1, random_state=seed).calibrate(items)
        stated = scope.certificate_.parameters["coverage_5_percent_of_calibrations_fall_below"]
        below += scope.thresholds_["generation"] - 0.5 < stated  # P(uniform quality <= threshold - gamma)
    assert 8 <= below <= 34  # 99.9 % of Binomial(400, 0.05)


def test_confidence_makes_all_but_few_calibrations_cover():
    rng = np.random.default_rng(6)
    short = 0
    for seed in range(400):
        items = [GeneratedItem([0], quality=[q], labels=[1]) for q in rng.random(60)]
        scope = SCOPEGen(alpha=0.2, stages=("generation",), max_samples=1, confidence=0.9, random_state=seed)
        short += scope.calibrate(items).thresholds_["generation"] - 0.5 < 0.8
    assert short <= 61  # 99.9 % of Binomial(400, 0.1)


def test_a_smaller_alpha_never_keeps_fewer_drafts_of_generation():
    items = _items(300, np.random.default_rng(0))
    kept = []
    for alpha in (0.2, 0.3, 0.4, 0.5):
        scope = SCOPEGen(alpha=alpha, stages=("generation",), random_state=0).calibrate(items[:200])
        kept.append([set(range(20)) if s.rejected else set(s.indices) for s in scope.predict_many(items[200:])])
    for small, large in zip(kept[1:], kept[:-1], strict=True):
        assert all(one <= other for one, other in zip(small, large, strict=True))


def test_where_every_draft_is_admissible_one_is_kept():
    items = [_labelled(1, 1, 1, quality=[0.5, 0.5, 0.5]) for _ in range(60)]
    scope = SCOPEGen(alpha=0.2, stages=("generation", "quality"), max_samples=3, random_state=0).calibrate(items)
    assert scope.predict(items[0]).indices == (0,)


def test_where_no_draft_is_admissible_everything_is_rejected():
    items = [_labelled(0, 0, 0) for _ in range(60)]
    with pytest.warns(UserWarning, match="in 100 % of the items none of 3 drafts is admissible"):
        scope = SCOPEGen(alpha=0.2, stages=("generation",), score="count", max_samples=3).calibrate(items)
    assert all(s.rejected and not s.indices for s in scope.predict_many(items))


# --- stages -----------------------------------------------------------------------------------------------------------


def test_the_quality_filter_keeps_the_best_drafts():
    items = _items(300, np.random.default_rng(0))
    scope = SCOPEGen(alpha=0.4, stages=("generation", "quality"), random_state=0).calibrate(items[:200])
    for item, s in zip(items[200:], scope.predict_many(items[200:]), strict=True):
        if s.rejected:
            continue
        drawn = item.quality_of(s.trace["generation"])
        assert list(s.indices) == np.argsort(-drawn, kind="stable")[: len(s)].tolist()


def test_the_diversity_order_is_farthest_first():
    from aboveboard.uncertainty.scope_gen._stages import diversity_walk

    rng = np.random.default_rng(0)
    (item,) = _items(1, rng, m=12, similar=True)
    kept = np.arange(12)
    order, scores = diversity_walk(item, kept, 0.1, np.random.default_rng(4))
    similarity = item.similarity_of(kept)
    for k in range(1, 12):
        left = [i for i in range(12) if i not in order[:k]]
        nearest = {i: similarity[i, order[:k]].max() for i in left}
        assert nearest[order[k]] == min(nearest.values())
        pairs = similarity[np.ix_(order[: k + 1], order[: k + 1])][~np.eye(k + 1, dtype=bool)]
        assert scores[k] == pytest.approx(pairs.max() + 0.1 * (k + 1))
    assert scores[0] == -1
    assert sorted(order) == list(range(12))


def test_equal_drafts_are_kept_once():
    items = [GeneratedItem(list("aabbc"), labels=[0, 0, 1, 1, 0]) for _ in range(50)]
    options = {"alpha": 0.3, "score": "count", "max_samples": 5, "random_state": 0}
    scope = SCOPEGen(stages=("generation", "duplicates"), **options).calibrate(items)
    s = scope.predict(items[0])
    assert s.indices == (0, 2)
    assert s.trace == {"generation": 3, "duplicates": 2}


def test_the_random_order_of_an_item_depends_on_the_item_alone():
    items = _items(300, np.random.default_rng(0), similar=True)
    scope = SCOPEGen(alpha=0.3, random_state=0).calibrate(items[:200])
    together = scope.predict_many(items[200:])
    assert [scope.predict(item) for item in reversed(items[200:])] == together[::-1]


# --- parameters, files, certificates ----------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same():
    items = _items(300, np.random.default_rng(0), similar=True)
    one, two = (SCOPEGen(alpha=0.3, random_state=7).calibrate(items[:200]) for _ in range(2))
    assert one.thresholds_ == two.thresholds_
    assert one.predict_many(items[200:]) == two.predict_many(items[200:])


def test_a_saved_calibration_predicts_as_before(tmp_path):
    items = _items(300, np.random.default_rng(0), similar=True)
    scope = SCOPEGen(alpha=np.float64(0.3), gamma={"quality": 0.3}, random_state=7).calibrate(items[:200])
    scope.save(tmp_path / "scope.json")
    again = SCOPEGen.load(tmp_path / "scope.json")
    assert again.predict_many(items[200:]) == scope.predict_many(items[200:])
    assert again.thresholds_ == scope.thresholds_
    assert again.stage_sizes_ == scope.stage_sizes_
    assert again.certificate() == scope.certificate_


def test_infinite_thresholds_survive_the_file(tmp_path):
    with pytest.warns(UserWarning, match="every set is rejected"):
        scope = SCOPEGen(stages=("generation",), score="count", max_samples=2).calibrate([_labelled(0, 0)] * 20)
    scope.save(tmp_path / "scope.json")
    json.loads((tmp_path / "scope.json").read_text(), parse_constant=pytest.fail)
    assert SCOPEGen.load(tmp_path / "scope.json").thresholds_ == {"generation": math.inf}


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "other"}', '{"format": "aboveboard.scope_gen/1"}'])
def test_a_file_of_another_kind_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(InputError, match="no calibration"):
        SCOPEGen.load(tmp_path / "x.json")


def test_parameters_can_be_cloned():
    assert clone(SCOPEGen(alpha=0.2, stages=("generation",))).get_params()["alpha"] == 0.2


def test_the_certificate_names_level_assumptions_and_limits():
    scope = SCOPEGen(alpha=0.3, stages=("generation", "quality"), random_state=0)
    certificate = scope.calibrate(_items(600, np.random.default_rng(0))).certificate_
    assert "at least 0.7" in certificate.guarantee
    assert certificate.confidence is None
    assert 0.6 < certificate.parameters["coverage_5_percent_of_calibrations_fall_below"] < 0.7
    assert any("exchangeable" in assumption.text for assumption in certificate.assumptions)
    assert certificate.holds


def test_unfitted_is_said():
    for call in (lambda s: s.predict(_labelled(1)), lambda s: s.certificate()):
        with pytest.raises(NotFittedError, match="calibrate"):
            call(SCOPEGen())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha"),
        ({"alpha": 1.0}, "alpha"),
        ({"alpha": float("nan")}, "alpha"),
        ({"alpha": "0.3"}, "alpha"),
        ({"stages": ()}, "stages"),
        ({"stages": ("quality",)}, "stages"),
        ({"stages": ("generation", "generation")}, "stages"),
        ({"stages": ("generation", "beauty")}, "stages"),
        ({"stages": "generation"}, "stages"),
        ({"score": "mean"}, "score"),
        ({"max_samples": 0}, "max_samples"),
        ({"max_samples": 2.5}, "max_samples"),
        ({"max_samples": 21}, "has 20 drafts and max_samples is 21"),
        ({"gamma": 0}, "gamma"),
        ({"gamma": {"qualty": 1}}, "gamma names"),
        ({"alpha_split": (1,)}, "alpha_split"),
        ({"alpha_split": (1, -1)}, "alpha_split"),
        ({"confidence": 1}, "confidence"),
        ({"alpha": 0.001}, "calibrated stages"),
        ({"confidence": 0.9999, "alpha": 0.05}, "calibrated stages"),
    ],
)
def test_parameters_out_of_range_are_refused_before_any_question(options, message):
    items = _items(100, np.random.default_rng(0))
    scope = SCOPEGen(**{"stages": ("generation", "quality"), **options})
    if options.get("stages") == "generation":
        scope.stages = "generation,quality"
    with pytest.raises(InputError, match=message):
        scope.calibrate(items, lambda i, j: pytest.fail("a question was asked"))


def test_the_number_of_items_that_is_needed_is_named():
    with pytest.raises(InputError, match="70 or more"):  # twice ceil(1 / (1 - 0.945^(1/2))) - 1
        SCOPEGen(alpha=0.055, stages=("generation", "quality"), alpha_split=(1, 1)).calibrate(
            _items(60, np.random.default_rng(0))
        )


def test_a_stage_without_its_input_is_refused():
    bare = [GeneratedItem(range(20), labels=[1] * 20) for _ in range(100)]
    with pytest.raises(InputError, match="item 0 has no quality"):
        SCOPEGen(stages=("generation",)).calibrate(bare)
    with pytest.raises(InputError, match="item 0 has no similarity"):
        SCOPEGen(stages=("generation", "diversity"), score="count").calibrate(bare)
    with pytest.raises(InputError, match="item 0 has no labels"):
        SCOPEGen(stages=("generation",), score="count").calibrate([GeneratedItem(range(20))] * 100)
    unhashable = [GeneratedItem([[1]] * 2, labels=[1, 1])] * 20
    scope = SCOPEGen(stages=("generation", "duplicates"), score="count", max_samples=2).calibrate(unhashable)
    with pytest.raises(InputError, match="type list"):
        scope.predict(unhashable[0])


def test_an_answer_that_is_neither_true_nor_false_is_refused():
    with pytest.raises(InputError, match="returned None"):
        SCOPEGen(stages=("generation",)).calibrate(_items(50, np.random.default_rng(0)), lambda i, j: None)


# --- items ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": []}, "samples"),
        ({"samples": "text"}, "samples"),
        ({"samples": 3}, "samples"),
        ({"quality": [0.5]}, "shape"),
        ({"quality": [0.5, 1.5]}, "outside"),
        ({"quality": [0.5, float("nan")]}, "outside"),
        ({"similarity": [[1, 0.5], [0.4, 1]]}, "symmetric"),
        ({"similarity": [[0.9, 0.5], [0.5, 1]]}, "diagonal"),
        ({"similarity": [1, 0.5]}, "shape"),
        ({"labels": [1]}, "labels"),
        ({"labels": [1, 2]}, "labels"),
        ({"samples": ["a", "a"], "labels": [1, 0]}, "in one place and not in another"),
    ],
)
def test_items_that_cannot_be_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        GeneratedItem(options.pop("samples", ["a", "b"]), **options)


def test_what_a_sampler_item_computes_is_checked():
    item = from_sampler(lambda p, r: 1, None, quality_fn=lambda d: 2.0, similarity_fn=lambda a, b: -1.0, max_samples=2)
    with pytest.raises(InputError, match="quality_fn"):
        item.quality_of(1)
    item.draw(2)
    with pytest.raises(InputError, match="similarity_fn"):
        item.similarity_of(np.arange(2))
    with pytest.raises(InputError, match="at most 2"):
        item.draw(3)
    with pytest.raises(InputError, match="max_samples"):
        from_sampler(lambda p, r: 1, None, max_samples=0)


# --- properties -------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    m=st.integers(1, 8),
    score=st.sampled_from(["count", "sum", "max"]),
    stages=st.permutations(["diversity", "quality", "duplicates"]).flatmap(
        lambda order: st.integers(0, 3).map(lambda k: ("generation", *order[:k]))
    ),
)
def test_any_chain_gives_sets_of_drafts_that_were_drawn(seed, m, score, stages):
    import warnings

    items = _items(80, np.random.default_rng(seed), m=m, similar=True)
    scope = SCOPEGen(alpha=0.5, stages=stages, score=score, max_samples=m, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scope.calibrate(items[:60])
    for s in scope.predict_many(items[60:]):
        counts = list(s.trace.values())
        assert counts == sorted(counts, reverse=True)
        assert len(set(s.indices)) == len(s)
        assert set(s.indices) <= set(range(s.trace["generation"]))
        assert not (s.rejected and s.indices)
