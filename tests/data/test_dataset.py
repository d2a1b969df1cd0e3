"""Facts about the object that every loader returns."""

import dataclasses

import pandas as pd
import pytest

import aboveboard.data
from aboveboard.core import InputError
from aboveboard.data import Dataset, info, list_datasets, load

BUNDLED = [record.name for record in list_datasets() if record.bundled]
WITH_TARGET = [name for name in BUNDLED if info(name).target]


@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_set_agrees_with_what_is_known_of_it_unread(name):
    record, data = info(name), load(name)
    assert isinstance(data, Dataset)
    assert data.X.shape == (record.rows, record.columns)
    assert tuple(data.sensitive.columns) == record.sensitive
    assert ("" if data.y is None else data.y.name) == record.target
    assert record.target not in data.X
    assert data.X.index.equals(pd.RangeIndex(record.rows))
    assert data.y is None or data.y.index.equals(data.X.index)
    assert data.sensitive.index.equals(data.X.index)
    assert data.caveats == record.caveats
    assert data.synthetic is False


@pytest.mark.parametrize("name", BUNDLED)
def test_columns_are_numbers_or_categories_with_names_in_use(name):
    data = load(name)
    assert data.y is None or not data.y.isna().any()
    for column in data.X.columns.union(data.sensitive.columns):
        values = data.frame[column]
        if isinstance(values.dtype, pd.CategoricalDtype):
            assert all(isinstance(word, str) and word.strip() == word for word in values.cat.categories)
            if data.task != "network":  # the two ends of an edge have the same categories
                assert set(values.dropna().unique()) == set(values.cat.categories)
        else:
            assert pd.api.types.is_numeric_dtype(values.dtype)
            assert not pd.api.types.is_bool_dtype(values.dtype)


@pytest.mark.parametrize("name", WITH_TARGET)
def test_one_frame_holds_features_sensitive_columns_and_target_and_is_a_copy(name):
    data = load(name)
    frame = data.frame
    assert frame.columns[-1] == data.target
    assert frame.columns.is_unique
    assert set(frame.columns) == {*data.X.columns, *data.sensitive.columns, data.target}
    frame[data.target] = None
    assert data.y.notna().all()


@pytest.mark.parametrize("name", ["adult", "german_credit", "credit_default", "acs_employment"])
def test_the_binary_target_is_one_exactly_where_the_positive_label_is(name):
    data = load(name)
    assert data.y_binary.dtype == "int64"
    assert data.y_binary.sum() == (data.y.astype(str) == data.positive).sum()
    assert data.y.nunique() == 2


def test_a_regression_has_no_binary_target():
    with pytest.raises(InputError, match="its task is regression"):
        _ = load("communities_crime").y_binary


def test_a_data_set_cannot_be_changed_by_accident():
    data = load("german_credit")
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.name = "other"


def test_the_printed_form_says_size_target_share_and_sensitive_columns():
    text = repr(load("credit_default"))
    assert "30,000 rows x 23 columns" in text
    assert "default is 'yes' (counts as 1) in 22.1 %" in text
    assert "sensitive: sex, age, education, marriage" in text


def test_two_loads_do_not_share_memory_that_one_could_change():
    first = load("german_credit")
    first.X.loc[0, "age"] = -1
    assert load("german_credit").X.loc[0, "age"] == 67
    assert first.sensitive.loc[0, "age"] == 67


def test_every_public_name_can_be_imported_and_unknown_ones_are_refused():
    for name in aboveboard.data.__all__:
        assert getattr(aboveboard.data, name) is not None
    assert set(dir(aboveboard.data)) == set(aboveboard.data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'load_iris'"):
        _ = aboveboard.data.load_iris


@pytest.mark.parametrize("record", list_datasets(), ids=lambda record: record.name)
def test_every_data_set_has_a_loader_of_its_name(record):
    assert callable(getattr(aboveboard.data, f"load_{record.name}"))


def test_an_unknown_name_is_refused_before_anything_is_read():
    with pytest.raises(InputError, match="nearest is 'adult'"):
        load("adults")
