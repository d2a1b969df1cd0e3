import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks.sensitive_proxies import check
from aboveboard.auditing.subject import make_subject

N = 1500


def findings(X, groups, **options):
    y = np.random.default_rng(0).integers(0, 2, len(X))
    subject = make_subject(
        None, X, y, predictions=np.full(len(X), 0.5), prediction_type="score", sensitive_features=groups, **options
    )
    return {finding.id: finding for finding in check(subject, random_state=0, effort="quick")}


def people(seed=0):
    rng = np.random.default_rng(seed)
    sex = pd.Series(rng.choice(["F", "M"], N), name="sex")
    X = pd.DataFrame({"noise": rng.normal(size=N), "town": rng.choice(list("abc"), N)})
    return X, sex, rng


def test_features_that_know_nothing_are_fine():
    X, sex, _ = people()
    found = findings(X, sex)
    assert set(found) == {"sensitive_proxies/sex"}
    assert (found["sensitive_proxies/sex"].severity, found["sensitive_proxies/sex"].status) == ("ok", "ran")
    assert found["sensitive_proxies/sex"].value == pytest.approx(0.5, abs=0.05)


def test_a_proxy_is_found_and_named():
    X, sex, rng = people()
    X["height"] = (sex == "M") * 13 + rng.normal(167, 7, N)
    finding = findings(X, sex)["sensitive_proxies/sex"]
    assert finding.severity in ("note", "warn")
    assert "'height'" in finding.statement
    assert finding.tables[0].rows[0][0] == "height"
    assert finding.tables[0].rows[0][2] == pytest.approx(0.905, abs=0.03)  # Phi(13 / (7 sqrt 2))


def test_columns_that_tell_only_together_are_found():
    X, sex, rng = people()
    X["one"] = rng.integers(0, 2, N)
    X["two"] = X["one"] ^ (sex == "M").to_numpy()
    finding = findings(X, sex)["sensitive_proxies/sex"]
    assert finding.severity == "warn"
    assert finding.value > 0.98
    assert finding.tables[0].rows[0][2] < 0.6


@pytest.mark.parametrize(
    "copy",
    [
        lambda sex: sex.map({"F": 0, "M": 1}),
        lambda sex: sex == "F",
        lambda sex: sex.map({"F": "woman", "M": "man"}).astype("category"),
    ],
    ids=["number", "boolean", "category"],
)
def test_a_copy_under_another_name_is_no_proxy_but_named(copy):
    X, sex, _ = people()
    found = findings(X.assign(code=copy(sex)), sex)
    assert "'code'" in found["sensitive_proxies/sex/itself"].statement
    assert found["sensitive_proxies/sex"].severity == "ok"


def test_the_attribute_itself_is_left_out_and_named():
    X, sex, _ = people()
    found = findings(X.assign(sex=sex), ["sex"])
    assert found["sensitive_proxies/sex/itself"].severity == "note"
    assert found["sensitive_proxies/sex"].severity == "ok"


def test_numbers_from_which_groups_were_cut_are_no_proxies():
    X, _, rng = people()
    X["age"] = rng.integers(18, 90, N)
    X["birth"] = 2020.5 - X["age"]
    found = findings(X, ["age:25,40,60"])
    assert "'birth'" in found["sensitive_proxies/age/itself"].statement
    assert found["sensitive_proxies/age"].severity == "ok"


def test_an_id_is_neither_proxy_nor_copy():
    X, sex, _ = people()
    found = findings(X.assign(id=[f"i{k}" for k in range(N)], number=np.arange(N)), sex)
    assert set(found) == {"sensitive_proxies/sex"}
    assert found["sensitive_proxies/sex"].severity == "ok"


def test_a_single_or_a_tiny_group_cannot_be_guessed():
    X, _, _ = people()
    for groups in (pd.Series(["F"] * N, name="sex"), pd.Series(["F"] * (N - 5) + ["M"] * 5, name="sex")):
        assert findings(X, groups)["sensitive_proxies/sex"].status == "inconclusive"


def test_more_than_two_groups_and_missing_values():
    X, _, rng = people()
    race = pd.Series(rng.choice(["a", "b", "c"], N), name="race", dtype=object)
    X["skin"] = race.map({"a": 0.0, "b": 5.0, "c": 10.0}) + rng.normal(size=N)
    race[:100] = None
    finding = findings(X, race)["sensitive_proxies/race"]
    assert finding.severity == "warn"
    assert finding.n == N - 100


def test_rows_of_one_person_do_not_give_each_other_away():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(300), 5)
    sex = pd.Series(rng.choice(["F", "M"], 300)[person], name="sex")
    X = pd.DataFrame({"face": rng.normal(size=300)[person], "noise": rng.normal(size=N)})
    assert findings(X, sex)["sensitive_proxies/sex"].severity != "ok"
    assert findings(X, sex, clusters=person)["sensitive_proxies/sex"].severity == "ok"


def test_nothing_to_guess_from_is_hardly_ever_noted():
    alarms = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.normal(size=(150, 5)), columns=list("abcde"))
        groups = pd.Series(rng.choice(["F", "M"], 150), name="sex")
        alarms += any(finding.severity != "ok" for finding in findings(X, groups).values())
    assert alarms == 0
