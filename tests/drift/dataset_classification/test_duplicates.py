"""Planted copies are found, all of them, in tables, texts and images."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core.errors import InputError
from aboveboard.data import load_adult
from aboveboard.drift import near_duplicates


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "hamming"])
def test_every_planted_copy_is_found(metric):
    adult = load_adult().X.drop_duplicates()
    train, test = adult.iloc[:1500], adult.iloc[1500:2000]
    planted = pd.concat([test, train.iloc[[3, 700, 1499]]], ignore_index=True)
    pairs = near_duplicates(planted, train, metric, quantile=0.0)
    equal = pairs[pairs["equal"]]
    assert equal[["row_a", "row_b"]].to_numpy().tolist() == [[500, 3], [501, 700], [502, 1499]]
    assert (equal["distance"] == 0).all()


@settings(max_examples=25)
@given(st.integers(0, 2**31))
def test_equal_rows_are_those_that_pandas_joins(seed):
    rng = np.random.default_rng(seed)
    A, B = (pd.DataFrame(rng.integers(3, size=(40, 3)).astype(float), columns=list("abc")) for _ in range(2))
    pairs = near_duplicates(A, B, quantile=0.0)
    joined = A.reset_index().merge(B.drop_duplicates())
    assert sorted(pairs.loc[pairs["equal"], "row_a"]) == sorted(joined["index"])


def test_a_nearly_equal_row_is_found_and_is_not_called_equal():
    rng = np.random.default_rng(0)
    B = rng.normal(size=(1000, 5))
    A = np.vstack([rng.normal(size=(20, 5)) + 3, B[[17]] + 1e-4])
    pairs = near_duplicates(A, B, quantile=0.01)
    assert pairs[["row_a", "row_b"]].iloc[0].tolist() == [20, 17]
    assert not pairs["equal"].any()
    assert pairs["distance"].iloc[0] < pairs.attrs["threshold"]


def test_without_copies_about_as_many_are_close_as_the_quantile_says():
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(3000, 4)), rng.normal(size=(3000, 4))
    assert len(near_duplicates(A, B, quantile=0.05)) == pytest.approx(150, abs=50)


def test_texts_and_images_are_compared_as_well():
    texts = [f"the {word} fox jumps over the lazy dog number {i}" for i, word in enumerate(["red", "brown"] * 20)]
    pairs = near_duplicates([*texts[:3], "nothing of the kind"], texts, "cosine", 0.0)
    assert pairs.loc[pairs["equal"], "row_b"].tolist() == [0, 1, 2]
    images = np.random.default_rng(0).integers(256, size=(50, 8, 8), dtype=np.uint8)
    found = near_duplicates(images[45:], images[:47], quantile=0.0)
    assert found.loc[found["equal"], ["row_a", "row_b"]].to_numpy().tolist() == [[0, 45], [1, 46]]


def test_missing_values_and_types_do_not_hide_a_copy():
    A = pd.DataFrame({"n": pd.array([1, None, 3], dtype="Int64"), "c": ["x", None, "z"]})
    B = pd.DataFrame({"n": [np.nan, 3.0, 7.0], "c": pd.Categorical([None, "z", "x"])})
    pairs = near_duplicates(A, B, quantile=0.0)
    assert pairs.loc[pairs["equal"], ["row_a", "row_b"]].to_numpy().tolist() == [[1, 0], [2, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0]], [[1.0]], "chebyshev"), "metric"),
        (([[1.0]], [[1.0]], "euclidean", 1.5), "quantile"),
        (([], [[1.0]]), "no rows"),
        ((pd.DataFrame({"a": [1.0]}), pd.DataFrame({"b": [1.0]})), "columns differ"),
        ((["a text"], ["a text"], "hamming"), "hamming"),
        ((np.zeros((2, 8, 8)), np.zeros((2, 8, 9))), "shapes"),
        ((["!"], ["?"]), "longer"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        near_duplicates(*arguments)
