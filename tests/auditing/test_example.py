import numpy as np
import pytest

from aboveboard.auditing.example import EXAMPLE_SENSITIVE, bundled_example
from aboveboard.auditing.subject import make_subject
from aboveboard.data import load_adult


@pytest.fixture(scope="module")
def example():
    return bundled_example(rows=2000)


def test_it_is_fitted_to_the_published_training_rows_and_audited_on_the_test_rows(example):
    train, test = (load_adult(split=split).X.drop(columns="fnlwgt")[:2000] for split in ("train", "test"))
    assert example.X_train.equals(train)
    assert example.X.equals(test)
    assert len(example.y) == len(example.y_train) == 2000


def test_it_is_much_better_than_guessing_and_no_survey_weight_is_a_feature(example):
    accuracy = (example.model.predict(example.X) == example.y).mean()
    assert accuracy > 0.82  # always saying <=50K is right in 76 % of the cases
    assert "fnlwgt" not in example.X.columns


def test_the_same_seed_gives_the_same_model(example):
    again = bundled_example(rows=2000)
    np.testing.assert_array_equal(example.model.predict_proba(example.X), again.model.predict_proba(again.X))


def test_its_groups_are_sex_race_and_bands_of_age(example):
    subject = make_subject(
        example.model,
        example.X,
        example.y,
        sensitive_features=list(EXAMPLE_SENSITIVE),
        train=(example.X_train, example.y_train),
    )
    assert list(subject.sensitive.columns) == ["sex", "race", "age"]
    assert list(subject.sensitive["age"].cat.categories) == [
        "under 25", "25 to under 40", "40 to under 60", "60 and over",
    ]  # fmt: skip
    assert subject.classes == ("<=50K", ">50K")


def test_it_survives_a_category_that_training_did_not_have(example):
    changed = example.X.head().copy()
    changed["occupation"] = "astronaut"
    changed["occupation"] = changed["occupation"].astype("category")
    assert np.isfinite(example.model.predict_proba(changed)).all()
