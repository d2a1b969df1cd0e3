import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from aboveboard.auditing.columns import coded
from aboveboard.auditing.estimates import Rows
from aboveboard.auditing.single_column import assign_folds, class_power, indicator_power, number_power

N = 3000
RNG = np.random.default_rng(0)
Y = RNG.integers(0, 2, N)
ROWS = Rows(N)
FOLD = assign_folds(Y, ROWS, np.random.default_rng(1))


def power(values, y=Y, k=2, fold=FOLD, rows=ROWS):
    return class_power(coded(pd.Series(values, name="x")), y, k, fold, rows).value


def test_folds_share_each_class_alike_and_keep_clusters_whole():
    table = np.zeros((2, 5), int)
    np.add.at(table, (Y, FOLD), 1)
    assert np.ptp(table, axis=1).max() <= 1
    cluster = np.arange(N) // 7
    fold = assign_folds(Y, Rows(N, cluster=cluster), np.random.default_rng(0))
    assert all(len(np.unique(fold[cluster == c])) == 1 for c in range(20))


def test_an_id_predicts_nothing():
    assert power([f"id{i}" for i in range(N)]) == 0.5
    assert power(RNG.permutation(N)) == pytest.approx(0.5, abs=0.04)


def test_noise_predicts_nothing_whatever_its_type():
    for values in (RNG.normal(size=N), RNG.choice(list("abcdefghij"), N), RNG.integers(0, 800, N).astype(str)):
        assert power(values) == pytest.approx(0.5, abs=0.04)


def test_a_copy_predicts_all_in_every_type():
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(Y, unit="D")
    for values in (Y, Y == 1, np.where(Y == 1, "yes", "no"), day, Y + RNG.normal(size=N) * 1e-6):
        assert power(values) > 0.999


def test_a_monotone_column_orders_rows_as_well_as_its_own_values_do():
    x = RNG.normal(Y, 1)
    assert power(x) == pytest.approx(roc_auc_score(Y, x), abs=0.02)


def test_a_column_that_is_not_monotone_is_found():
    x = RNG.uniform(-1, 1, N)
    y = (np.abs(x) > 0.5).astype(int)
    assert power(x, y) > 0.98


def test_rare_levels_that_share_their_class_are_found():
    level = RNG.integers(0, 1000, N)
    assert power([f"l{v}" for v in level], (level % 2).astype(int)) > 0.85


def test_rows_of_one_person_do_not_give_each_other_away():
    person = np.arange(N) // 6
    y = RNG.integers(0, 2, N // 6)[person]
    names = [f"p{p}" for p in person]
    assert power(names, y) > 0.9
    rows = Rows(N, cluster=person)
    assert power(names, y, fold=assign_folds(y, rows, RNG), rows=rows) == 0.5


def test_a_copy_of_a_heavy_tailed_number_is_found():
    y = RNG.lognormal(0, 2, N)
    rows, fold = ROWS, assign_folds(None, ROWS, RNG)
    assert number_power(coded(pd.Series(y * 3 + 1, name="x")), y, fold, rows).value > 0.99
    assert number_power(coded(pd.Series(RNG.normal(size=N), name="x")), y, fold, rows).value < 0.05


def test_constant_and_empty_columns_predict_nothing():
    y = RNG.normal(size=N)
    for values in (np.zeros(N), np.full(N, np.nan), np.full(N, np.inf)):
        assert power(values) == 0.5
        assert abs(number_power(coded(pd.Series(values, name="x")), y, FOLD, ROWS).value) < 0.01


def test_missing_or_not_is_judged_like_any_yes_or_no():
    flag = np.where(RNG.random(N) < 0.9, Y == 1, Y == 0)
    assert indicator_power(flag, Y, 2, ROWS).value == pytest.approx(roc_auc_score(Y, flag))
    assert indicator_power(~flag, Y, 2, ROWS).value == pytest.approx(roc_auc_score(Y, flag))
    y = flag * 2.0 + RNG.normal(size=N)
    assert indicator_power(flag, y, 0, ROWS).value == pytest.approx(np.corrcoef(flag, y)[0, 1] ** 2)
