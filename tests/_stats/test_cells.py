import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, confusion_matrix, precision_score, recall_score

from aboveboard._stats.cells import BINARY_RATES, GroupCells, GroupMeans, accuracy, one_vs_rest, value_edges


def _rows(n, seed=0, groups=3, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    prediction = np.where(rng.random(n) < 0.7, y, rng.integers(0, classes, n))
    return rng.integers(0, groups, n), y, prediction, rng.exponential(size=n) + 0.1, rng.integers(0, max(n // 4, 1), n)


@pytest.mark.parametrize("weighted", [False, True])
def test_rates_are_those_of_scikit_learn(weighted):
    group, y, p, w, _ = _rows(2000)
    w = w if weighted else None
    cells = GroupCells.from_arrays(group, y, p, w, n_groups=3, n_labels=2)
    for g in range(3):
        rows = group == g
        arguments = {"y_true": y[rows], "y_pred": p[rows], "sample_weight": None if w is None else w[rows]}
        expected = {
            "selection_rate": np.average(p[rows], weights=arguments["sample_weight"]),
            "true_positive_rate": recall_score(**arguments),
            "false_positive_rate": 1 - recall_score(**arguments, pos_label=0),
            "precision": precision_score(**arguments),
            "accuracy": accuracy_score(**arguments),
        }
        for name, value in expected.items():
            assert cells.rate(BINARY_RATES[name]).rate[g] == pytest.approx(value, abs=1e-12)


def test_multiclass_rates_are_rows_and_columns_of_the_confusion_matrix():
    group, y, p, _, _ = _rows(3000, classes=4)
    cells = GroupCells.from_arrays(group, y, p, n_groups=3, n_labels=4)
    for g in range(3):
        matrix = confusion_matrix(y[group == g], p[group == g])
        assert cells.rate(accuracy(4)).rate[g] == pytest.approx(np.trace(matrix) / matrix.sum())
        for k in range(4):
            rates = one_vs_rest(k, 4)
            assert cells.rate(rates["selection_rate"]).rate[g] == pytest.approx(matrix[:, k].sum() / matrix.sum())
            assert cells.rate(rates["true_positive_rate"]).rate[g] == pytest.approx(matrix[k, k] / matrix[k].sum())
            assert cells.rate(rates["precision"]).rate[g] == pytest.approx(matrix[k, k] / matrix[:, k].sum())
            rest = np.delete(matrix, k, axis=0)
            fpr = cells.rate(rates["false_positive_rate"]).rate[g]
            assert fpr == pytest.approx(rest[:, k].sum() / rest.sum())


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(0, 40), st.booleans(), st.booleans())
def test_cells_and_means_of_partitions_add_up_to_the_whole(seed, n, m, weighted, clustered):
    group, y, p, w, cluster = _rows(n + m, seed)
    values = np.random.default_rng(seed).normal(size=n + m)
    edges = value_edges(np.linspace(-2, 2, 50), 8)

    def build(rows):
        extra = {
            "weights": w[rows] if weighted else None,
            "clusters": cluster[rows] if clustered else None,
            "n_groups": 3,
        }
        cells = GroupCells.from_arrays(group[rows], y[rows], p[rows], n_labels=2, **extra)
        return cells, GroupMeans.from_arrays(group[rows], values[rows], edges=edges, **extra)

    whole = build(slice(None))
    for part, other, expected in zip(pickle.loads(pickle.dumps(build(slice(0, n)))), build(slice(n, None)), whole):
        added = part + other
        for name, value in vars(expected).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_allclose(getattr(added, name), value, rtol=1e-12, atol=1e-12)
            elif value is not None:
                np.testing.assert_array_equal(getattr(added, name).ids, value.ids)
                np.testing.assert_allclose(getattr(added, name).matrix.toarray(), value.matrix.toarray(), atol=1e-12)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_margins_of_an_intersection_are_the_cells_of_its_columns(clustered):
    group, y, p, w, cluster = _rows(500, groups=6)
    clusters = cluster if clustered else None
    crossed = GroupCells.from_arrays(group, y, p, w, n_groups=6, n_labels=2, clusters=clusters)
    margin = GroupCells.from_arrays(group // 2, y, p, w, n_groups=3, n_labels=2, clusters=clusters)
    regrouped = crossed.regroup([0, 0, 1, 1, 2, 2], 3)
    for name in ("count", "weight", "square"):
        np.testing.assert_allclose(getattr(regrouped, name), getattr(margin, name))
        np.testing.assert_allclose(getattr(crossed.pooled(), name)[0], getattr(margin, name).sum(axis=0))
    if clustered:
        np.testing.assert_allclose(regrouped.clusters.matrix.toarray(), margin.clusters.matrix.toarray())


@pytest.mark.parametrize("kind", ["plain", "weighted", "clustered"])
def test_standard_errors_of_rates_are_those_of_resampling_rows_or_clusters(kind):
    group, y, p, w, cluster = _rows(600)
    w = w if kind == "weighted" else np.ones(600)
    cells = GroupCells.from_arrays(
        group,
        y,
        p,
        w if kind == "weighted" else None,
        n_groups=3,
        n_labels=2,
        clusters=cluster if kind == "clustered" else None,
    )
    specs = [BINARY_RATES[name] for name in ("selection_rate", "true_positive_rate", "precision")]
    draws = cells.bootstrap(specs, 4000, np.random.default_rng(0))
    rng, rows_of = np.random.default_rng(1), [np.flatnonzero(cluster == c) for c in np.unique(cluster)]
    direct = []
    for _ in range(1500):
        if kind == "clustered":
            rows = np.concatenate([rows_of[c] for c in rng.integers(0, len(rows_of), len(rows_of))])
        else:
            rows = rng.integers(0, 600, 600)
        sample = GroupCells.from_arrays(group[rows], y[rows], p[rows], w[rows], n_groups=3, n_labels=2)
        direct.append([[*sample.rate(s).rate, sample.pooled().rate(s).rate[0]] for s in specs])
    np.testing.assert_allclose(draws.std(axis=0), np.std(direct, axis=0), rtol=0.1)
    np.testing.assert_allclose(draws.mean(axis=0), np.mean(direct, axis=0), atol=0.01)


def test_cluster_sums_of_a_rate_add_up_to_it():
    group, y, p, w, cluster = _rows(300)
    cells = GroupCells.from_arrays(group, y, p, w, n_groups=3, n_labels=2, clusters=cluster)
    sums = cells.rate(BINARY_RATES["true_positive_rate"])
    np.testing.assert_allclose(np.asarray(sums.cluster_yes.sum(axis=0)).ravel(), sums.yes)
    np.testing.assert_allclose(np.asarray(sums.cluster_total.sum(axis=0)).ravel(), sums.total)


def test_a_rate_without_rows_does_not_exist():
    cells = GroupCells.from_arrays([0, 1], [0, 1], [1, 1], n_groups=3, n_labels=2)
    rate = cells.rate(BINARY_RATES["true_positive_rate"]).rate
    assert np.isnan(rate[0])
    assert rate[1] == 1
    assert np.isnan(rate[2])


def test_group_means_are_weighted_means():
    group, _, _, w, _ = _rows(500)
    values = np.random.default_rng(0).lognormal(size=500)
    means = GroupMeans.from_arrays(group, values, w, n_groups=3)
    for g in range(3):
        rows = group == g
        assert means.mean[g] == pytest.approx(np.average(values[rows], weights=w[rows]))
        assert means.rows[g] == rows.sum()


def test_extreme_values_have_bins_of_their_own():
    values = np.random.default_rng(0).standard_cauchy(20_000)
    means = GroupMeans.from_arrays(np.zeros(20_000, dtype=int), values, n_groups=1)
    assert means.count[0][means.count[0] > 0][[0, -1]].tolist() == [1, 1]
    assert means.count.max() <= 20_000 / 64 + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(([0, 1], [0], [0, 1]), "equally long"), (([0, 3], [0, 1], [0, 1]), "codes must lie"),
     (([0, -1], [0, 1], [0, 1]), "codes must lie")],
)  # fmt: skip
def test_bad_codes_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        GroupCells.from_arrays(*arguments, n_groups=3, n_labels=2)


def test_what_does_not_belong_together_does_not_add_up():
    one = GroupCells.from_arrays([0], [0], [0], n_groups=1, n_labels=2)
    with pytest.raises(ValueError, match="do not add up"):
        one + GroupCells.from_arrays([0], [0], [0], n_groups=2, n_labels=2)
    with pytest.raises(ValueError, match="clusters"):
        one + GroupCells.from_arrays([0], [0], [0], n_groups=1, n_labels=2, clusters=[1])
    with pytest.raises(ValueError, match="same edges"):
        GroupMeans.from_arrays([0], [1.0], n_groups=1) + GroupMeans.from_arrays([0], [2.0], n_groups=1)
