"""The risks against their definitions in double loops, closed forms, SciPy, scikit-learn, and the identities."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import logsumexp, softmax
from scipy.stats import entropy
from sklearn.metrics import brier_score_loss, log_loss

from aboveboard.core import InputError
from aboveboard.uncertainty import NAMES, central_prediction, named_measure, pointwise_risk, uncertainty_measures

SCORES = ("log", "brier", "spherical", "zero_one")
STANDS = ("outer", "inner", "central")
CONVEX = {
    "log": (lambda p: (p * np.log(p)).sum(-1), lambda p: 1 + np.log(p)),
    "brier": (lambda p: -(p * (1 - p)).sum(-1), lambda p: 2 * p - 1),
    "spherical": (
        lambda p: np.linalg.norm(p, axis=-1) - 1,
        lambda p: p / np.linalg.norm(p, axis=-1, keepdims=True),
    ),
    "zero_one": (lambda p: p.max(-1) - 1, lambda p: np.eye(p.shape[-1])[p.argmax(-1)]),
}


def draws(M=4, n=50, K=3, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(K, 0.7), size=(M, n))


def total(score, p, q):
    """The total risk as it is defined: <grad G(q), q - p> - G(q)."""
    G, grad = CONVEX[score]
    return (grad(q) * (q - p)).sum(-1) - G(q)


def by_definition(score, kind, truth, prediction, members):
    """Every pair of members in a loop, as the measures are defined."""
    stand = {
        "outer": list(members),
        "inner": [members.mean(0)],
        "central": [central_prediction(members, score)],
    }
    G = CONVEX[score][0]
    if kind == "bayes":
        return np.mean([-G(p) for p in stand[truth]], axis=0)
    pairs = list(itertools.product(stand[truth], stand[prediction]))
    risks = [total(score, p, q) + (G(p) if kind == "excess" else 0) for p, q in pairs]
    return np.mean(risks, axis=0)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("kind", ["bayes", "excess", "total"])
def test_every_measure_is_the_one_of_its_definition(score, kind):
    members = draws()
    for truth, prediction in itertools.product(STANDS, STANDS):
        options = {} if kind == "bayes" else {"prediction": prediction}
        got = pointwise_risk(members, kind=kind, score=score, truth=truth, **options)
        assert got == pytest.approx(by_definition(score, kind, truth, prediction, members), abs=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_family_holds_the_same_measures(score):
    members = draws(n=30)
    family = uncertainty_measures(members, [score])
    assert family.shape == (30, 16)
    for _, kind, truth, prediction in family.columns:
        expected = by_definition(score, kind, truth, prediction, members)
        assert family[score, kind, truth, prediction].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", SCORES)
def test_the_identities_hold(score):
    family = uncertainty_measures(draws(M=7, n=400, K=5, seed=1), [score])[score]
    excess, bayes = family["excess"], family["bayes"]
    assert np.allclose(excess["outer", "outer"], excess["outer", "inner"] + excess["inner", "outer"], atol=1e-12)
    assert np.allclose(excess["outer", "inner"], bayes["inner", ""] - bayes["outer", ""], atol=1e-12)
    for truth, prediction in family["total"].columns:
        added = bayes[truth, ""] + (0 if truth == prediction else excess[truth, prediction])
        assert np.allclose(family["total"][truth, prediction], added, atol=1e-12)


@pytest.mark.parametrize("score", ["log", "brier", "spherical"])
def test_three_points_satisfy_the_law_of_the_centre(score):
    """mean_m D(p || p_m) = D(p || c) + mean_m D(c || p_m), for the mean as p."""
    excess = uncertainty_measures(draws(M=5, n=200, K=4, seed=2), [score])[score]["excess"]
    assert np.allclose(excess["inner", "outer"], excess["inner", "central"] + excess["central", "outer"], atol=1e-12)


def test_for_the_brier_score_pairs_differ_twice_the_variance():
    members = draws(M=6)
    pairs = pointwise_risk(members, score="brier", truth="outer", prediction="outer")
    assert pairs == pytest.approx(2 * members.var(axis=0).sum(axis=-1), abs=1e-12)


def test_entropies_are_those_of_scipy():
    members = draws(M=3, K=6)
    assert named_measure(members, "predictive_entropy") == pytest.approx(entropy(members.mean(0), axis=-1))
    expected = entropy(members, axis=-1).mean(0)
    assert named_measure(members, "expected_entropy") == pytest.approx(expected)
    information = np.mean([entropy(p, members.mean(0), axis=-1) for p in members], axis=0)
    assert named_measure(members, "mutual_information") == pytest.approx(information)
    reverse = np.mean([entropy(members.mean(0), p, axis=-1) for p in members], axis=0)
    assert named_measure(members, "reverse_mutual_information") == pytest.approx(reverse)


def test_the_energy_gap_is_that_of_the_logits():
    logits = np.random.default_rng(3).normal(scale=4, size=(5, 60, 7))
    gap = logsumexp(logits, axis=-1).mean(0) - logsumexp(logits.mean(0), axis=-1)
    # logits may be shifted by member; the gap of what is left of them after softmax is the same
    assert named_measure(None, "energy_gap", logits=logits) == pytest.approx(gap, abs=1e-10)
    assert named_measure(softmax(logits, axis=-1), "energy_gap") == pytest.approx(gap, abs=1e-7)


def test_logits_keep_what_probabilities_lose():
    logits = np.array([[[0.0, 100.0]], [[100.0, 0.0]]])
    pairs = pointwise_risk(logits=logits, truth="outer", prediction="outer")
    assert pairs == pytest.approx([50.0])
    with pytest.warns(UserWarning, match="below 1e-300"):
        family = uncertainty_measures(logits=logits * 1e5)
    assert np.isfinite(family.to_numpy()).all()


def test_the_total_risk_is_the_expected_loss_of_scikit_learn():
    p, q = np.array([0.7, 0.3]), np.array([0.4, 0.6])
    members = np.array([[p], [p]])
    labels, times = [0, 1], p
    said = np.array([q, q])
    expected = {
        "log": log_loss(labels, said, sample_weight=times),
        "brier": 2 * brier_score_loss(labels, said[:, 1], sample_weight=times),
    }
    for score, value in expected.items():
        assert total(score, p, q) == pytest.approx(value)
        own = pointwise_risk(members, kind="total", score=score, truth="inner")
        assert own == pytest.approx([total(score, p, p)])


def test_members_that_contradict_each_other():
    members = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    assert pointwise_risk(members, score="brier") == pytest.approx([0.5])
    assert pointwise_risk(members, score="zero_one", truth="outer", prediction="outer") == pytest.approx([0.5])
    with pytest.warns(UserWarning, match="1 of 1 rows"):
        assert named_measure(members, "mutual_information") == pytest.approx([np.log(2)], abs=1e-9)


@pytest.mark.parametrize("score", SCORES)
def test_members_that_agree_leave_no_excess(score):
    members = np.repeat(draws(M=1, n=40), 3, axis=0)
    family = uncertainty_measures(members, [score])[score]
    assert family["excess"].to_numpy() == pytest.approx(0, abs=1e-12)
    for kind in ("bayes", "total"):
        spread = np.ptp(family[kind].to_numpy(), axis=1)
        assert spread == pytest.approx(0, abs=1e-12)


probabilities = hnp.arrays(
    np.float64, st.tuples(st.integers(2, 5), st.integers(1, 4), st.integers(2, 5)), elements=st.floats(0.01, 1)
).map(lambda a: a / a.sum(-1, keepdims=True))


@given(probabilities, st.sampled_from(SCORES))
def test_excess_is_never_negative_and_members_are_surer_than_their_mean(members, score):
    family = uncertainty_measures(members, [score])[score]
    raw = family["total"]["inner", "outer"] - family["bayes"]["inner", ""]
    assert raw.min() >= -1e-12
    assert (family["excess"] >= 0).all(axis=None)
    assert (family["bayes"]["outer", ""] <= family["bayes"]["inner", ""] + 1e-12).all()


@given(probabilities, st.sampled_from(["log", "brier", "spherical"]), st.randoms(use_true_random=False))
def test_order_of_members_and_of_classes_does_not_matter(members, score, random):
    order, classes = list(range(len(members))), list(range(members.shape[2]))
    random.shuffle(order)
    random.shuffle(classes)
    mixed = members[order][:, :, classes]
    first, second = (uncertainty_measures(part, [score]).to_numpy() for part in (members, mixed))
    assert second == pytest.approx(first, abs=1e-10)


@given(probabilities, st.sampled_from(["log", "brier", "spherical"]), st.floats(0.1, 0.9))
def test_members_moved_towards_their_mean_disagree_less(members, score, share):
    nearer = (1 - share) * members + share * members.mean(0)
    for truth, prediction in (("outer", "inner"), ("inner", "outer"), ("outer", "outer")):
        far, near = (pointwise_risk(p, score=score, truth=truth, prediction=prediction) for p in (members, nearer))
        assert (near <= far + 1e-12).all()


def test_blocks_of_rows_do_not_show():
    members = draws(M=3, n=30_000, K=4).astype(np.float32)
    members /= members.sum(-1, keepdims=True)
    whole = uncertainty_measures(members)
    for rows in (slice(0, 7), slice(29_990, None), slice(10_920, 10_930)):
        part = uncertainty_measures(members[:, rows])
        assert whole.iloc[rows].to_numpy() == pytest.approx(part.to_numpy(), abs=1e-12)


def test_ties_of_the_zero_one_score_go_to_the_first_class():
    members = np.array([[[0.5, 0.5]], [[0.0, 1.0]]])
    assert pointwise_risk(members, score="zero_one", truth="inner", prediction="outer") == pytest.approx([0.25])


def test_rows_with_zeros_are_counted_and_eps_decides_how_they_rank():
    members = np.array([[[1.0, 0.0], [0.9, 0.1]], [[0.5, 0.5], [0.9, 0.1]]])
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        small = pointwise_risk(members, truth="outer", prediction="outer")
    with pytest.warns(UserWarning, match="below 0.001"):
        large = pointwise_risk(members, truth="outer", prediction="outer", eps=1e-3)
    assert small[0] > large[0] > small[1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the peak memory as Linux tells it")
def test_memory_is_bounded_by_input_and_output():
    """Pairs of members would take 20 times the input, 1.6 GB; all measures take less than 60 MB besides in and out."""
    code = """
import numpy as np
from aboveboard.uncertainty import uncertainty_measures
def peak():  # of this program; that of getrusage is inherited from the process that started it
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
uncertainty_measures(np.full((20, 10, 10), 0.1))
members = np.random.default_rng(0).random((20, 50_000, 10))
for member in members:
    member /= member.sum(-1, keepdims=True)
before = peak()
family = uncertainty_measures(members)
print((peak() - before) / 1024 - family.memory_usage().sum() / 2**20)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(done.stdout) < 60


@pytest.mark.parametrize(
    ("probs", "options", "message"),
    [
        (np.ones((3, 2)) / 2, {}, "members first"),
        (np.ones((2, 3, 1)), {}, "two classes"),
        (np.ones((2, 0, 3)) / 3, {}, "a row or more"),
        (np.full((2, 3, 3), np.nan), {}, "NaN"),
        (np.full((2, 3, 2), 0.4), {}, "sum to 1"),
        (np.array([[[1.2, -0.2]]] * 2), {}, r"\[0, 1\]"),
        (np.array([[["a", "b"]]] * 2), {}, "not all numbers"),
        (np.array([[[0.5, 0.5]]]), {}, "one member"),
        (None, {}, "neither"),
        (np.full((2, 3, 2), 0.5), {"logits": np.zeros((2, 3, 2))}, "both"),
        (np.full((2, 3, 2), 0.5), {"eps": 0.0}, "eps"),
        (np.full((2, 3, 2), 0.5), {"kind": "variance"}, "kind is"),
        (np.full((2, 3, 2), 0.5), {"truth": "mean"}, "truth is"),
        (np.full((2, 3, 2), 0.5), {"prediction": "mean"}, "prediction is"),
        (np.full((2, 3, 2), 0.5), {"score": "crps"}, "score is"),
        (np.full((2, 3, 2), 0.5), {"score": None}, "score is"),
        (np.full((2, 3, 2), 0.5), {"kind": "bayes", "prediction": "inner"}, "no prediction"),
    ],
)
def test_what_cannot_be_members_is_refused(probs, options, message):
    with pytest.raises(InputError, match=message):
        pointwise_risk(probs, **options)


def test_scores_of_a_family_are_one_or_more_and_differ():
    members = draws()
    for scores, message in (([], "one or more"), ("log", "one or more"), (["log", "log"], "a name for each")):
        with pytest.raises(InputError, match=message):
            uncertainty_measures(members, scores)
    with pytest.raises(InputError, match="one member"):
        uncertainty_measures(members[:1])
    with pytest.raises(InputError, match="the measure is 'bald'"):
        named_measure(members, "bald")


def test_one_member_has_a_total_and_a_bayes_risk():
    members = draws(M=1)
    assert pointwise_risk(members, kind="total", truth="inner") == pytest.approx(entropy(members[0], axis=-1))


def test_every_name_is_in_the_family():
    columns = set(uncertainty_measures(draws(n=2)).columns)
    for place in NAMES.values():
        assert (place["score"], place["kind"], place["truth"], place.get("prediction", "")) in columns
