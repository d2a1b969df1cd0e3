"""The rows on which DynFrs is measured, and the measurements that run in processes of their own."""

import numpy as np
import pytest

pytest.importorskip("numba")
from aboveboard.core.errors import ModelError
from aboveboard.data import load_adult
from aboveboard.reproduce.unlearning import dynfrs


def test_adult_has_a_column_per_category_and_loses_no_row():
    X, y = dynfrs.adult_one_hot(None, 0)
    adult = load_adult()
    assert len(X) == len(y) == 48_842
    words = adult.X.select_dtypes("category")
    assert X.shape[1] == 6 + sum(words[name].nunique(dropna=False) for name in words)
    assert np.array_equal(X[:, 6:].sum(axis=1), np.full(len(X), words.shape[1]))
    assert np.array_equal(X[:, 0], adult.X["age"])
    assert y.mean() == pytest.approx(0.2393, abs=1e-4)


def test_a_sample_of_adult_is_drawn_by_the_seed():
    assert np.array_equal(dynfrs.adult_one_hot(100, 3)[0], dynfrs.adult_one_hot(100, 3)[0])
    assert not np.array_equal(dynfrs.adult_one_hot(100, 3)[0], dynfrs.adult_one_hot(100, 4)[0])


def test_the_simulated_rows_have_the_settings_of_the_paper():
    X, y = dynfrs.simulated(2000, 0)
    assert X.shape == (2000, 40)
    assert X.dtype == np.float32
    assert 0.45 < y.mean() < 0.55


def test_a_measurement_in_a_process_of_its_own_reports_time_and_memory():
    told = dynfrs._in_child("large", 2500, 0)
    assert told["peak_bytes"] > told["forest_bytes"] > 2500 * 40 * 4
    assert 0 < told["removal_seconds"] <= told["removal_high_seconds"]
    with pytest.raises(ModelError, match="ended with 1"):
        dynfrs._in_child("large", -1, 0)
