import json
import math

import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.group_fairness import check
from aboveboard.auditing.checks.group_fairness.partitions import MOST_CELLS, partitions_of_rows
from aboveboard.auditing.limits import Limits
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import SUPPRESSED

RATES = {
    "selection_rate": lambda y, p: p.mean(),
    "true_positive_rate": lambda y, p: p[y == 1].mean(),
    "false_positive_rate": lambda y, p: p[y == 0].mean(),
    "precision": lambda y, p: y[p == 1].mean(),
    "accuracy": lambda y, p: (y == p).mean(),
}


def _subject(y, prediction, sensitive, **given):
    frame = pd.DataFrame({name: pd.Categorical(values) for name, values in sensitive.items()})
    known = {
        "X": pd.DataFrame({"x": np.zeros(len(y))}),
        "y": np.asarray(y),
        "task": "binary",
        "classes": ("no", "yes"),
        "target": "y",
        "prediction": np.asarray(prediction),
        "score": None,
        "sensitive": frame,
    }
    return Subject(**(known | given))


def _check(subject):
    findings = check(subject, random_state=0, effort="quick")
    assert len({f.id for f in findings}) == len(findings)
    return {f.id.removeprefix("group_fairness/"): f for f in findings}


def _table(finding):
    (table,) = finding.tables
    names = [c.name for c in table.columns]
    return {row[0]: dict(zip(names, row)) for row in table.rows}


def _biased(n=6000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    y = (rng.random(n) < 0.4).astype(int)
    chance = np.where(sex == "f", 0.2, 0.5)
    return y, (rng.random(n) < chance).astype(int), sex


def _fair(n=40_000, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    return y, (rng.random(n) < 0.2 + 0.5 * y).astype(int), rng.choice(["a", "b", "c"], n)


def test_every_rate_in_the_tables_is_that_of_the_rows():
    y, p, sex = _biased()
    found = _check(_subject(y, p, {"sex": sex}))
    for name, rate in RATES.items():
        rows = _table(found[f"{name}/sex"])
        title = next(c.name for c in found[f"{name}/sex"].tables[0].columns[2:3])
        for group in ("f", "m"):
            assert rows[f"sex={group}"][title] == pytest.approx(rate(y[sex == group], p[sex == group]), abs=1e-12)
            expected = rate(y[sex == group], p[sex == group]) - rate(y, p)
            assert rows[f"sex={group}"]["Difference"] == pytest.approx(expected, abs=1e-12)
        assert rows["everybody"][title] == pytest.approx(rate(y, p), abs=1e-12)


def test_a_group_that_is_selected_less_often_fails_with_a_sentence_and_a_remedy():
    y, p, sex = _biased()
    found = _check(_subject(y, p, {"sex": sex}))
    family, group = found["selection_rate/sex"], found["selection_rate/sex=f"]
    assert family.severity == group.severity == "fail"
    assert "sex=f: the share predicted 'yes' is 1" in group.statement
    assert "lower than for everybody (95 % interval -1" in group.statement
    assert "limit 5 points" in group.statement
    assert group.group == "sex=f"
    assert group.interval.simultaneous
    assert group.interval.high < -group.limit
    assert "RandomizedFairClassifier" in group.remedies
    assert family.figures[0].kind == "intervals"
    assert {line.value for line in family.figures[0].lines} == {-0.05, 0.0, 0.05}


def test_equal_groups_pass_when_there_are_enough_people_and_are_inconclusive_when_not():
    y, p, group = _fair()
    assert {f.severity for f in _check(_subject(y, p, {"g": group})).values()} == {"ok"}
    few = _check(_subject(y[:300], p[:300], {"g": group[:300]}))
    assert {f.status for f in few.values()} == {"inconclusive"}
    assert "cannot be told" in few["selection_rate/g"].statement


def test_a_verdict_never_rests_on_the_largest_minus_the_smallest():
    y, p, group = _fair()
    note = _check(_subject(y, p, {"g": group}))["selection_rate/g"].tables[0].note
    rates = [p[group == g].mean() for g in "abc"]
    assert f"Largest minus smallest shown: {100 * (max(rates) - min(rates)):.1f} points" in note
    assert "not judged" in note


def test_the_limit_of_the_user_decides():
    y, p, sex = _biased()
    found = _check(_subject(y, p, {"sex": sex}, limits=Limits({"group_fairness.selection_rate": 0.3})))
    assert found["selection_rate/sex"].severity == "ok"
    assert found["selection_rate/sex"].limit == 0.3
    assert found["selection_rate/sex"].limit_source == "the user"


def test_groups_are_compared_with_the_reference_group_where_one_is_named():
    y, p, sex = _biased()
    found = _check(_subject(y, p, {"sex": sex}, reference_groups={"sex": "m"}))
    rows = _table(found["selection_rate/sex"])
    assert rows["sex=f"]["Difference"] == pytest.approx(p[sex == "f"].mean() - p[sex == "m"].mean())
    assert rows["sex=m"]["Verdict"] == "reference group"
    assert "everybody" not in rows
    assert "lower than for sex=m" in found["selection_rate/sex=f"].statement


def test_intersections_find_what_single_columns_hide():
    rng = np.random.default_rng(1)
    n = 20_000
    a, b = rng.choice(["0", "1"], n), rng.choice(["0", "1"], n)
    p = (rng.random(n) < np.where(a == b, 0.6, 0.2)).astype(int)
    found = _check(_subject((rng.random(n) < 0.5).astype(int), p, {"a": a, "b": b}))
    assert found["selection_rate/a"].severity == found["selection_rate/b"].severity == "ok"
    assert found["selection_rate/a & b"].severity == "fail"
    assert found["selection_rate/a=0 & b=1"].severity == "fail"


def test_a_group_with_one_label_has_no_true_positive_rate_and_is_not_given_zero():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "none"], 400)
    y = np.where(group == "none", 0, rng.integers(0, 2, 1200))
    found = _check(_subject(y, rng.integers(0, 2, 1200), {"g": group}))
    row = _table(found["true_positive_rate/g"])["g=none"]
    assert row["True positive rate"] is None
    assert row["Verdict"] == "does not exist"
    assert (
        "Does not exist for g=none: nobody there is among those who are 'yes'" in found["true_positive_rate/g"].reason
    )


def test_an_observed_zero_has_an_interval_of_some_width():
    y, p = np.tile([0, 1], 100), np.zeros(200, dtype=int)
    found = _check(_subject(y, p, {"g": np.repeat(["a", "b"], 100)}))
    row = _table(found["selection_rate/g"])["g=a"]
    assert row["Selection rate"] == 0
    assert row["95 % interval"][1] > 0.01
    low, high = row["95 % interval of the difference"]
    assert low < 0 < high
    assert found["precision/g"].status == "not_applicable"


def _texts(found):
    return json.dumps([f.to_dict() for f in found.values()])


def test_small_groups_are_named_and_nothing_about_them_is_said():
    y, p, _ = _fair(2000)
    group = np.array(["big"] * 1200 + ["mid"] * 794 + ["tiny"] * 6)
    found = _check(_subject(y, p, {"g": group}))
    for finding in found.values():
        rows = _table(finding)
        assert set(list(rows["g=tiny"].values())[1:-1]) == {SUPPRESSED}
        # the next smallest goes with it, else everybody minus the others would tell
        assert set(list(rows["g=mid"].values())[1:-1]) == {SUPPRESSED}
        assert isinstance(rows["g=big"]["n"], int)
        assert all("tiny" not in str(s.x) and "mid" not in str(s.x) for f in finding.figures for s in f.series)
        assert finding.status == "inconclusive"
        assert "g=tiny" in finding.reason


def test_a_group_withheld_for_the_sake_of_another_still_fails_but_without_figures():
    y, p, sex = _biased()
    sex = sex.astype(object)
    sex[:4] = "x"
    found = _check(_subject(y, p, {"sex": sex}, limits=Limits({"group_fairness.selection_rate": 0.02})))
    smaller = min("fm", key=lambda g: (sex == g).sum())
    finding = found[f"selection_rate/sex={smaller}"]
    assert finding.severity == "fail"
    assert (finding.value, finding.interval, finding.n) == (None, None, None)
    assert "withheld" in finding.reason
    assert f"{100 * p[sex == smaller].mean():.1f}" not in _texts({"": finding})


def test_a_group_that_lies_outside_but_is_small_is_not_failed():
    y, p, _ = _fair(3000)
    group = np.array(["a"] * 1500 + ["b"] * 1491 + ["tiny"] * 9)
    p = p.copy()
    p[group == "tiny"] = 1
    found = _check(_subject(y, p, {"g": group}))
    assert "selection_rate/g=tiny" not in found
    assert found["selection_rate/g"].status == "inconclusive"


def test_rates_on_few_people_are_withheld_together_with_what_they_follow_from():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c"], 500)
    y = rng.integers(0, 2, 1500)
    y[group == "c"] = 0
    y[np.flatnonzero(group == "c")[:5]] = 1  # five positives in c
    found = _check(_subject(y, rng.integers(0, 2, 1500), {"g": group}))
    for name in ("true_positive_rate", "false_positive_rate", "precision"):
        assert _table(found[f"{name}/g"])["g=c"]["n"] == SUPPRESSED
    assert _table(found["selection_rate/g"])["g=c"]["n"] == 500


def test_people_are_clusters_where_rows_come_in_clusters():
    y, p, _ = _fair(1200)
    group = np.repeat(["a", "b", "c"], 400)
    cluster = np.where(group == "c", 10_000 + np.arange(1200) % 4, np.arange(1200))  # c: 400 rows of four persons
    found = _check(_subject(y, p, {"g": group}, cluster=cluster))
    assert _table(found["selection_rate/g"])["g=c"]["n"] == SUPPRESSED


def test_clusters_widen_the_intervals():
    y, p, group = _fair(900)
    many = {name: np.repeat(a, 5) for name, a in {"y": y, "p": p, "g": group, "c": np.arange(900)}.items()}
    single = _check(_subject(y, p, {"g": group}))["selection_rate/g"].interval
    rows = _check(_subject(many["y"], many["p"], {"g": many["g"]}))["selection_rate/g"].interval
    clusters = _check(_subject(many["y"], many["p"], {"g": many["g"]}, cluster=many["c"]))["selection_rate/g"].interval
    assert clusters.high - clusters.low == pytest.approx(single.high - single.low, rel=0.05)
    assert rows.high - rows.low < 0.6 * (single.high - single.low)


def test_weights_count():
    y, p, sex = _biased()
    w = np.where(p == 1, 3.0, 1.0)
    rows = _table(_check(_subject(y, p, {"sex": sex}, weight=w))["selection_rate/sex"])
    assert rows["sex=f"]["Selection rate"] == pytest.approx(np.average(p[sex == "f"], weights=w[sex == "f"]))
    assert rows["everybody"]["Selection rate"] == pytest.approx(np.average(p, weights=w))


def test_scores_add_the_calibration_gap():
    rng = np.random.default_rng(0)
    n = 20_000
    score, group = rng.random(n), rng.choice(["a", "b"], n)
    y = (rng.random(n) < np.where(group == "b", np.minimum(score + 0.2, 1), score)).astype(int)
    found = _check(_subject(y, (score > 0.5).astype(int), {"g": group}, score=score))
    assert found["calibration_gap/g=b"].severity == "fail"
    gap = (score - y)[group == "b"].mean() - (score - y).mean()
    assert found["calibration_gap/g=b"].value == pytest.approx(gap)


def test_several_classes_are_compared_one_against_the_rest():
    rng = np.random.default_rng(0)
    n = 12_000
    group, y = rng.choice(["a", "b"], n), rng.integers(0, 3, n)
    p = np.where((group == "b") & (y == 2), 0, y)  # group b is never recognised as class "z"
    found = _check(_subject(y, p, {"g": group}, task="multiclass", classes=("x", "y", "z")))
    assert found["true_positive_rate/g=b [z]"].severity == "fail"
    assert "true_positive_rate/g=b [y]" not in found
    assert found["selection_rate/g=b [x]"].severity == "fail"
    assert found["accuracy/g"].severity == "fail"
    table = found["true_positive_rate/g"].tables[0]
    row = next(r for r in table.rows if r[:2] == ("g=a", "z"))
    assert row[3] == 1.0


def test_regression_compares_mean_errors_in_standard_deviations_and_absolute_errors_in_percent():
    rng = np.random.default_rng(0)
    n = 8000
    group, y = rng.choice(["a", "b"], n), rng.normal(10, 2, n)
    p = y + rng.normal(np.where(group == "b", 1.0, 0.0), 1.0)
    found = _check(_subject(y, p, {"g": group}, task="regression", classes=()))
    error = p - y
    value = (error[group == "b"].mean() - error.mean()) / y.std()
    assert found["mean_error/g=b"].value == pytest.approx(value)
    assert "higher than for everybody" in found["mean_error/g=b"].statement
    absolute = np.abs(error)
    relative = absolute[group == "b"].mean() / absolute.mean() - 1
    assert found["mean_absolute_error/g"].tables[0].rows[1][4] == pytest.approx(relative)


def test_an_exact_regression_is_inconclusive_and_does_not_crash():
    y = np.arange(100.0)
    found = _check(_subject(y, y, {"g": np.repeat(["a", "b"], 50)}, task="regression", classes=()))
    assert {f.status for f in found.values()} == {"inconclusive"}


def test_a_single_group_has_nothing_to_compare():
    found = _check(_subject([0, 1] * 20, [0, 1] * 20, {"g": ["a"] * 40}))
    assert {f.status for f in found.values()} == {"not_applicable"}


def test_everybody_in_groups_of_one_shows_nothing():
    y, p, _ = _fair(60)
    found = _check(_subject(y, p, {"g": [f"p{i}" for i in range(60)]}))
    assert {f.status for f in found.values()} <= {"inconclusive", "not_applicable"}
    for finding in found.values():
        assert finding.value is None


def test_the_same_seed_gives_the_same_findings_and_a_new_column_changes_no_other():
    y, p, sex = _biased()
    other = np.random.default_rng(3).choice(["u", "v"], len(y))
    one = _check(_subject(y, p, {"sex": sex}))
    again = _check(_subject(y, p, {"sex": sex}))
    more = _check(_subject(y, p, {"sex": sex, "other": other}))
    assert _texts(one) == _texts(again)
    assert all(more[key].to_dict() == finding.to_dict() for key, finding in one.items())


def test_groups_named_by_hostile_text_go_through():
    y, p, _ = _fair(400)
    names = ["<script>", "a & b", "x=y", "{positive}", "\u202e\x00", "💥"]
    found = _check(_subject(y, p, {"{0}%s": np.array(names)[np.arange(400) % 6]}))
    assert "selection_rate/{0}%s" in found


def test_up_to_three_columns_are_crossed_together_and_more_in_pairs():
    rng = np.random.default_rng(0)

    def frame(sizes):
        return pd.DataFrame(
            {f"c{i}": pd.Categorical(rng.integers(0, k, 2000).astype(str)) for i, k in enumerate(sizes)}
        )

    names = [split.name for split in partitions_of_rows(frame([2, 2, 3]), {})[0]]
    assert names == ["c0", "c1", "c2", "c0 & c1 & c2"]
    splits, left_out = partitions_of_rows(frame([2, 2, 2, 2, 2]), {})
    assert len(splits) == 5 + 6
    assert len(left_out) == 4
    splits, left_out = partitions_of_rows(frame([2, 8, 9]), {})
    assert [s.name for s in splits[3:]] == ["c0 & c1", "c0 & c2", "c1 & c2"]
    assert "has 144 groups" in left_out[0]
    assert max(len(s.labels) for s in splits) <= MOST_CELLS


def test_what_was_not_compared_is_said():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3000)
    columns = {name: rng.integers(0, 11, 3000).astype(str) for name in ("a", "b")}
    finding = _check(_subject(y, y, columns))["not_compared"]
    assert finding.status == "skipped"
    assert "a & b was not looked at: it has 121 groups" in finding.reason


def _published(found, name):
    """Return what a reader of the table of `name` knows: for each group (rows, hits), None where suppressed."""
    rows = _table(found[name])
    title = found[name].tables[0].columns[2].name
    known = {}
    for group, row in rows.items():
        hidden = row["n"] == SUPPRESSED
        known[group] = None if hidden else (row["n"], round(row["n"] * row[title]))
    return known


@pytest.mark.parametrize("seed", range(6))
def test_nothing_withheld_can_be_computed_from_the_tables_of_all_columns(seed):
    rng = np.random.default_rng(seed)
    n = 700
    a = rng.choice(["0", "1", "2"], n, p=[0.6, 0.39, 0.01])
    b = rng.choice(["0", "1", "2", "3"], n, p=[0.5, 0.45, 0.04, 0.01])
    p = rng.integers(0, 2, n)
    found = _check(_subject(rng.integers(0, 2, n), p, {"a": a, "b": b}))
    cells = sorted({f"a={i} & b={j}" for i, j in zip(a, b)})
    tables = {split: _published(found, f"selection_rate/{split}") for split in ("a", "b", "a & b")}
    published, hidden = [np.ones(len(cells))], []
    for table in tables.values():
        for group, known in table.items():
            if group == "everybody":
                continue
            row = np.array([all(part in cell.split(" & ") for part in group.split(" & ")) for cell in cells], float)
            people = sum(row[cells.index(f"a={i} & b={j}")] for i, j in zip(a, b))
            if known is not None:
                assert people >= 10
                published.append(row)
            elif people < 10:
                hidden.append(row)
    rank = np.linalg.matrix_rank(np.array(published))
    for row in hidden:
        assert np.linalg.matrix_rank(np.array([*published, row])) == rank + 1


def _false_fails(groups, n, p, draws, limit, shift=0.0):
    rng = np.random.default_rng(groups)
    labels = np.repeat([f"g{i}" for i in range(groups)], n)
    chance = np.full(groups * n, p)
    chance[:n] += shift
    wrong = 0
    for _ in range(draws):
        prediction = (rng.random(groups * n) < chance).astype(int)
        subject = _subject(
            rng.integers(0, 2, groups * n),
            prediction,
            {"g": labels},
            limits=Limits({"group_fairness.selection_rate": limit}),
        )
        found = check(subject, random_state=int(rng.integers(2**31)), effort="quick")
        wrong += next(f for f in found if f.id == "group_fairness/selection_rate/g").severity == "fail"
    return wrong / draws


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("groups", "n"), [(8, 200), (10, 500)])
def test_the_check_fails_at_most_5_percent_of_equal_groups_even_at_limit_0(groups, n):
    rate = _false_fails(groups, n, 0.3, 2000, 0.0)
    assert rate <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("groups", "n"), [(8, 200), (10, 500)])
def test_the_check_fails_at_most_5_percent_where_one_group_lies_at_the_limit(groups, n):
    shift = 0.05 / (1 - 1 / groups)
    assert _false_fails(groups, n, 0.3, 2000, 0.05, shift) <= 0.05
