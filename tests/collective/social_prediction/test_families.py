"""Tests are what they say, and those that no forecaster could meet are refused."""

import numpy as np
import pandas as pd
import pytest

from aboveboard.collective import BumpTests, GroupTests, LinearTests, PolynomialTests, ProductTests
from aboveboard.collective.social_prediction._families import (
    CallableTests,
    bind_tests,
    default_tests,
    names_of,
    refuse_unusable,
    values_of,
)
from aboveboard.collective.social_prediction._people import Columns
from aboveboard.core import InputError

TABLE = pd.DataFrame({"age": [20.0, 30.0, 40.0, 90.0], "sex": ["f", "m", None, "f"]})


def bound(families, groups=("sex",), table=TABLE):
    columns = Columns.learn(table, groups)
    Z = columns.encode(table)
    return bind_tests(families, columns, Z), Z


def test_values_are_those_of_the_formulas():
    tests, Z = bound(default_tests())
    p = np.array([0.1, 0.5, 0.9, 0.0])
    found = pd.DataFrame(values_of(tests, Z, p), columns=names_of(tests))
    assert found["1"].tolist() == [1.0] * 4
    assert found["p"].tolist() == p.tolist()
    ages = TABLE["age"].to_numpy()
    assert found["age"].to_numpy() == pytest.approx(np.clip((ages - ages.mean()) / ages.std(), -1, 1))
    assert found["sex=f"].tolist() == [1.0, 0.0, 0.0, 1.0]
    assert found["sex=(missing)"].tolist() == [0.0, 0.0, 1.0, 0.0]
    assert found["sex=f x p"].tolist() == [0.1, 0.0, 0.0, 0.0]
    assert found["p near 0.0625"].to_numpy() == pytest.approx(np.exp(-0.5 * ((p - 1 / 16) * 8) ** 2))
    assert found.shape[1] == 2 + 1 + 2 * 3 + 8


def test_products_hold_every_pair():
    tests, Z = bound([ProductTests(LinearTests(2.0), ProductTests(GroupTests(), BumpTests([0.0, 1.0])))])
    p = np.array([0.0, 1.0, 0.5, 0.2])
    found = pd.DataFrame(values_of(tests, Z, p), columns=names_of(tests))
    assert len(found.columns) == 1 * 3 * 2
    assert found["age x sex=m x p near 1"].tolist() == [0.0, pytest.approx(-15 / (2 * 26.9258240)), 0.0, 0.0]


@pytest.mark.parametrize("family", [*default_tests(), ProductTests(GroupTests(), BumpTests(3))])
def test_the_score_along_p_is_the_sum_of_the_tests(family):
    rng = np.random.default_rng(0)
    (test,), Z = bound([family])
    S = rng.normal(size=(4, len(test.names())))
    p = rng.random((4, 5))
    expected = [[test.values(Z[[i]], p[i, [j]])[0] @ S[i] for j in range(5)] for i in range(4)]
    assert test.score(Z, S)(p) + np.zeros((4, 5)) == pytest.approx(np.array(expected))


def test_features_keep_their_scale_and_constant_columns_are_no_trouble():
    table = pd.DataFrame({"huge": [1e300, -1e300, 1e300, 0.0], "same": [3.0] * 4})
    (test,), Z = bound([LinearTests()], (), table)
    values = test.features(Z)
    assert np.isfinite(values).all()
    assert np.abs(values).max() <= 1
    assert values[:, 1].tolist() == [0.0] * 4
    assert refuse_unusable((test,), Z) == 0.0


def step(X, p):
    return (p <= 0.5).astype(float)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (step, "'step' jumps by 1 .*continuous in p"),
        (lambda X, p: 2 * p, "reaches 2.*Divide"),
        (lambda X, p: p / 0 if len(p) else p, "no finite number"),
        (lambda X, p: 1.0, r"gives shape \(\)"),
        (lambda X, p: np.exp(-0.5 * ((p - 0.5) / 0.005) ** 2), "jumps by"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning", "ignore:invalid value:RuntimeWarning")
def test_a_test_that_nobody_can_meet_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        refuse_unusable((CallableTests((call,)),), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BumpTests(0), "centers is 0"),
        (lambda: BumpTests([0.5, 1.5]), "positions between 0 and 1"),
        (lambda: BumpTests(3, 0), "width is 0"),
        (lambda: PolynomialTests(-1), "degree is -1"),
        (lambda: PolynomialTests(True), "degree is True"),
        (lambda: LinearTests(0), "scale is 0"),
        (lambda: ProductTests(GroupTests(), step), "product was asked for with function"),
        (lambda: bound([LinearTests(columns=["sex"])]), "both a group and a number"),
        (lambda: bound([LinearTests(columns=["weight"])]), "no column 'weight'"),
    ],
)
def test_families_refuse_what_makes_no_sense(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_groups_that_are_new_belong_nowhere_and_that_is_said():
    columns = Columns.learn(TABLE, ["sex"])
    (groups,) = bind_tests([GroupTests()], columns, columns.encode(TABLE))
    with pytest.warns(UserWarning, match="1 people have a value of 'sex'"):
        Z = columns.encode(TABLE.assign(sex=["f", "x", "m", None]))
    assert groups.features(Z).sum(axis=1).tolist() == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "column",
    [
        pd.array([1, 2, None, 1], dtype="Int64"),
        [1.0, 2.0, np.nan, 1.0],
        pd.Categorical(["1", "2", None, "1"]),
        pd.array(["1", "2", None, "1"], dtype="string"),
        pd.array([1, 2, None, 1], dtype="object"),
    ],
)
def test_groups_of_any_type_have_the_same_levels(column):
    columns = Columns.learn(pd.DataFrame({"g": column}), ["g"])
    assert columns.levels[0] == ("1", "2", "(missing)")
    assert columns.encode(pd.DataFrame({"g": column})).ravel().tolist() == [0.0, 1.0, 2.0, 0.0]


def test_tables_of_other_libraries_are_read():
    import pyarrow as pa

    columns = Columns.learn(pa.table({"a": [1.0, 2.0], "g": ["u", "v"]}), ["g"])
    assert columns.encode(pa.table({"a": [1.0, 2.0], "g": ["u", "v"]})).tolist() == [[1.0, 0.0], [2.0, 1.0]]
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, 2.0], "g": ["u", "v"]})
    assert columns.encode(frame).tolist() == [[1.0, 0.0], [2.0, 1.0]]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pd.DataFrame({"a": ["x", "y"]}), "'a' of X holds .*Name it among the groups"),
        (pd.DataFrame({"a": pd.Categorical(["1", "2"])}), "holds category"),
        (pd.DataFrame({"a": pd.to_datetime(["2020-01-01", "2020-01-02"])}), "holds datetime"),
        (pd.DataFrame({"a": [1.0, np.nan]}), "holds nan in 1 of 2 rows.*Impute"),
        (pd.DataFrame({"a": [1.0, np.inf]}), "holds inf"),
        (pd.DataFrame({"b": [1.0, 2.0]}), r"columns \['b'\].*Expected \['a'\]"),
        (np.zeros(3), "1 dimension"),
        ("people", "X is a str"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(table, message):
    columns = Columns.learn(pd.DataFrame({"a": [1.0, 2.0]}), ())
    with pytest.raises(InputError, match=message):
        columns.encode(table)


def test_a_column_with_hundreds_of_groups_is_refused():
    with pytest.raises(InputError, match="101 values"):
        Columns.learn(pd.DataFrame({"g": range(101)}), ["g"])
