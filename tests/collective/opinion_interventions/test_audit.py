"""The audit of a network says what is so, and nothing of too few."""

import numpy as np
import pytest

from aboveboard.collective import FriedkinJohnsen, opinion_audit
from aboveboard.core import InputError

CAMPS = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
CAMPS[0, 10] = CAMPS[10, 0] = 1.0
SIDES = np.repeat([1.0, -1.0], 10)


def by_id(*arguments, **options):
    return {finding.id.partition("/")[2]: finding for finding in opinion_audit(*arguments, **options)}


def dense(W):
    return np.linalg.inv(np.eye(len(W)) + np.diag(W.sum(axis=1)) - W)


def random_network(seed, n=30):
    rng = np.random.default_rng(seed)
    W = (rng.random((n, n)) < 0.2) * rng.random((n, n)) * 3
    np.fill_diagonal(W, 0.0)
    return W, rng.normal(size=n)


def test_the_figures_are_those_of_dense_algebra():
    W, s = random_network(0)
    found, inverse = by_id(W, s), dense(W)
    y = inverse @ s
    assert found["amplification"].value == pytest.approx(y.var() / s.var(), abs=1e-6)
    heard = (W * (s[:, None] - s[None, :]) ** 2).sum() / W.sum()
    assert found["disagreement"].value == pytest.approx(heard / (2 * s.var()))
    influence = inverse.mean(axis=0)
    assert found["influence"].value == pytest.approx(1 / (influence @ influence) / 30, abs=1e-6)
    centre = np.eye(30) - 1 / 30
    assert found["contrast"].value == pytest.approx(np.linalg.norm(centre @ inverse @ centre, 2) ** 2, rel=0.02)


def test_the_contrast_of_a_mutual_network_is_that_of_its_spectral_gap():
    gap = np.sort(np.linalg.eigvalsh(np.diag(CAMPS.sum(axis=1)) - CAMPS))[1]
    found = by_id(CAMPS)["contrast"]
    assert found.value == pytest.approx(1 / (1 + gap) ** 2, rel=0.01)
    assert "spectral gap" in found.statement


def test_no_opinions_are_spread_more_than_the_contrast_allows():
    W, _ = random_network(1)
    most = by_id(W)["contrast"].value
    rng = np.random.default_rng(0)
    for _ in range(100):
        s = rng.normal(size=30)
        assert (dense(W) @ s).var() <= most * s.var() * 1.02


def test_two_camps_hear_little_of_each_other():
    found = by_id(CAMPS, SIDES)
    assert found["disagreement"].severity == "warn"
    assert found["disagreement"].remedies == ("OpinionInterventionOptimizer",)
    assert by_id(CAMPS, SIDES, mixing=0.01)["disagreement"].severity == "ok"
    assert found["amplification"].severity == "ok"


def test_one_loud_account_can_add_to_division():
    W = np.zeros((40, 40))
    W[1:6, 0] = 100.0
    s = np.zeros(40)
    s[0] = 1.0
    found = by_id(W, s)
    assert found["amplification"].severity == "fail"
    assert found["amplification"].value > 1
    assert found["influence"].severity == "ok"
    W[1:, 0] = 100.0
    assert by_id(W, s)["influence"].severity == "warn"
    assert by_id(W, s, voices=1e-3)["influence"].severity == "ok"


def test_the_repair_says_what_it_would_do_to_whom_and_who_decides():
    found = by_id(CAMPS, SIDES, decision_maker="the board of the club")["repair"]
    assert 0 < found.value < 1
    assert "mean opinion would move" in found.statement
    assert "moves most" in found.statement
    assert "lose influence" in found.statement
    assert "analysis" in found.reason
    assert "the board of the club decides" in found.reason


def test_without_opinions_only_what_holds_for_any_is_said():
    found = by_id(CAMPS)
    assert set(found) == {"amplification", "influence", "contrast"}
    assert found["amplification"].status == "not_applicable"


def test_too_few_accounts_are_inconclusive_and_show_no_figure():
    for findings in (opinion_audit([[0, 1], [1, 0]], [1, 0]), opinion_audit([[0, 1], [1, 0]])):
        assert {finding.status for finding in findings} == {"inconclusive"}
        assert all(finding.value is None for finding in findings)


@pytest.mark.parametrize(("W", "s"), [(np.zeros((20, 20)), SIDES), (CAMPS, np.ones(20)), (np.zeros((20, 20)), None)])
def test_where_nothing_can_be_judged_the_audit_says_so(W, s):
    findings = opinion_audit(W, s)
    assert findings[0].status == "not_applicable"
    assert all(finding.severity in ("note", "ok") for finding in findings)


def test_accounts_are_named_only_where_they_were_given_names():
    names = [f"person {i}" for i in range(20)]
    assert "person" not in repr(opinion_audit(CAMPS, SIDES))
    assert "person 0" in repr(by_id(CAMPS, SIDES, labels=names)["influence"].evidence)


def test_fewer_accounts_than_may_be_shown_are_not():
    table = by_id(*random_network(2), min_accounts=10)["influence"].evidence[0]
    assert [row[0] for row in table.rows] == ["50 % with the most"]


def test_hostile_names_are_passed_on_as_they_are(hostile_name):
    findings = {f.id: f for f in opinion_audit(CAMPS, SIDES, labels=[hostile_name] * 20, decision_maker=hostile_name)}
    assert hostile_name in findings["opinions/repair"].reason
    assert findings["opinions/influence"].evidence[1].rows[0][0] == hostile_name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": ["a"]}, "1 labels"),
        ({"mixing": 0}, "mixing is 0"),
        ({"voices": np.nan}, "voices is nan"),
        ({"amplification": np.inf}, "amplification is inf"),
    ],
)
def test_what_does_not_fit_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        opinion_audit(CAMPS, SIDES, **options)


def test_the_network_is_left_alone():
    model = FriedkinJohnsen(CAMPS, SIDES)
    opinion_audit(model.W, model.s)
    assert (model.W.toarray() == CAMPS).all()
