"""The audit of a clustering: counts against bounds by hand, whole people, withheld figures, refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from aboveboard.core import SUPPRESSED, InputError
from aboveboard.fairness import RelaxMergeFairKMeans, cluster_balance_audit


def uneven():
    """Return 100 rows in two clusters: women are 20 of 50, and 40 of 50."""
    labels = np.repeat(["north", "south"], 50)
    sex = np.array((["F"] * 20 + ["M"] * 30) + (["F"] * 40 + ["M"] * 10))
    return labels, pd.Series(sex, name="sex")


def rows_of(finding):
    return {row[:2]: row[2:] for row in finding.tables[0].rows}


def test_counts_and_shares_are_held_against_the_band_around_the_share_in_all():
    (finding,) = cluster_balance_audit(*uneven(), slack=0.2)
    # F: 60 % of all, allowed 48 to 75 %; M: 40 %, allowed 32 to 50 %
    assert finding.id == "cluster_balance/sex"
    assert finding.severity == "fail"
    assert finding.remedies == ("RelaxMergeFairKMeans",)
    rows = rows_of(finding)
    assert rows["north", "F"][:2] == (20, 0.4)
    assert rows["south", "M"][4] == pytest.approx(-6)
    assert rows["north", "M"][4] == pytest.approx(5)
    assert rows["north", "F"][4] == pytest.approx(-4)
    assert rows["south", "F"][4] == pytest.approx(2.5)
    assert finding.value == pytest.approx(6)
    assert "M is 20.0% of cluster south, where at least 32.0% is allowed: 6.0 people too few" in finding.statement
    assert finding.n == 100


def test_intervals_are_clopper_pearson_for_the_whole_family():
    (finding,) = cluster_balance_audit(*uneven())
    low, high = rows_of(finding)["north", "F"][2]
    tail = 0.05 / 4 / 2
    assert low == pytest.approx(stats.beta.ppf(tail, 20, 31))
    assert high == pytest.approx(stats.beta.ppf(1 - tail, 21, 30))
    assert "no sampling error" in finding.reason


def test_people_are_whole_so_a_miss_of_one_person_is_no_breach():
    labels, sex = np.repeat([0, 1], [3, 97]), ["F"] * 1 + ["M"] * 2 + ["F"] * 50 + ["M"] * 47
    (finding,) = cluster_balance_audit(labels, sex, slack=0.0)
    assert finding.severity == "ok"
    assert finding.value == pytest.approx(0.53)
    (finding,) = cluster_balance_audit(labels, sex, slack=0.0, tolerated=0.5)
    assert finding.severity == "fail"


def test_the_clusters_of_the_fair_method_pass_where_those_of_k_means_fail():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 400)
    X = rng.normal(size=(400, 2)) + 2 * group[:, None]
    fair = RelaxMergeFairKMeans(4, slack=0.2, random_state=0).fit(X, sensitive_features=group)
    plain = RelaxMergeFairKMeans(4, random_state=0).fit(X)
    severities = [cluster_balance_audit(model.labels_, group)[0].severity for model in (fair, plain)]
    assert severities == ["ok", "fail"]


def test_bounds_of_ones_own_and_several_columns():
    labels, sex = uneven()
    frame = pd.DataFrame({"sex": sex, "one": 1})
    found = cluster_balance_audit(labels, frame, {"sex": {"F": (0.0, 0.9)}})
    assert [finding.id for finding in found] == ["cluster_balance/sex", "cluster_balance/one"]
    assert [finding.severity for finding in found] == ["ok", "ok"]


def test_withheld_figures_are_nowhere_in_the_finding():
    labels, sex = uneven()
    (finding,) = cluster_balance_audit(labels, sex, withhold=lambda counts: counts < 25)
    assert finding.value is None
    assert "worst" not in finding.statement
    rows = rows_of(finding)
    assert rows["south", "M"][0] == rows["north", "F"][0] == SUPPRESSED
    assert rows["south", "M"][2] == rows["south", "M"][4] == SUPPRESSED
    assert rows["north", "M"][0] == 30
    (figure,) = finding.figures
    assert [series.y for series in figure.series] == [(None, 0.8), (0.6, None)]


def test_missing_labels_and_groups_are_refused():
    labels, sex = uneven()
    with pytest.raises(InputError, match="cluster is missing in 1 rows"):
        cluster_balance_audit([None, *labels[1:]], sex)
    with pytest.raises(InputError, match="missing in 1 rows"):
        cluster_balance_audit(labels, [None, *sex[1:]])
    with pytest.raises(InputError, match="sensitive_features is None"):
        cluster_balance_audit(labels, None)
    with pytest.raises(InputError, match="labels is empty"):
        cluster_balance_audit([], [])
    with pytest.raises(InputError, match="100 rows and 1 columns"):
        cluster_balance_audit(labels[1:], sex)


def test_nasty_names_survive(hostile_name):
    labels = pd.Series(np.array(["x", hostile_name], dtype=object)[[0, 1] * 20], dtype=object)
    groups = pd.Series(np.array(["y", hostile_name], dtype=object)[[0, 0, 1, 1] * 10], dtype=object, name=hostile_name)
    (finding,) = cluster_balance_audit(labels, groups)
    assert len(finding.tables[0].rows) == 4
