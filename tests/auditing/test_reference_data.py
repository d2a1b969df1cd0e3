import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import aboveboard
from aboveboard.auditing.subject import make_subject
from aboveboard.core.errors import InputError, ModelError

N = 80
RNG = np.random.default_rng(0)


def table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "sex": pd.Series(rng.choice(["F", "M"], n), dtype=object),
            "who": rng.integers(0, 30, n),
            "w": rng.random(n) + 0.5,
            "y": rng.permutation([0, 1] * (n // 2)),
            "p": rng.random(n),
        }
    )


NEW, OLD = table(seed=0), table(120, seed=1)


def given(new=NEW, old=OLD, y="y", **options):
    return make_subject(None, new, y, reference=old, **({"predictions": "p"} | options))


def test_columns_that_are_spoken_for_are_no_features_of_the_reference_either():
    subject = given(sample_weight="w", clusters="who", drop=["income"])
    assert list(subject.reference.X.columns) == list(subject.X.columns) == ["age", "sex"]
    np.testing.assert_array_equal(subject.reference.y, OLD["y"])
    np.testing.assert_array_equal(subject.reference.score, OLD["p"])
    np.testing.assert_array_equal(subject.reference.prediction, OLD["p"] >= 0.5)
    np.testing.assert_array_equal(subject.reference.weight, OLD["w"])
    assert subject.describe()["reference_rows"] == 120
    assert given(old=None).describe()["reference_rows"] is None


@pytest.mark.parametrize("convert", [pl.from_pandas, lambda t: t.convert_dtypes(), lambda t: t.astype(object)])
def test_the_container_of_the_reference_does_not_matter(convert):
    expected, got = given().reference, given(old=convert(OLD)).reference
    np.testing.assert_array_equal(got.y, expected.y)
    np.testing.assert_array_equal(got.score, expected.score)
    assert list(got.X.columns) == list(expected.X.columns)


def test_a_reference_without_labels_and_predictions_is_compared_as_far_as_it_goes():
    subject = given(old=OLD.drop(columns=["y", "p"]))
    assert subject.reference.y is None
    assert subject.reference.prediction is None
    notes = " ".join(subject.notes)
    assert "no labels: there is no column 'y' for the target" in notes
    assert "no predictions: there is no column 'p'" in notes
    subject = given(old=OLD.assign(y=np.nan, p=np.nan))
    assert (subject.reference.y, subject.reference.prediction) == (None, None)
    assert "the column 'y' holds nothing" in " ".join(subject.notes)


def test_labels_and_predictions_can_be_given_beside_the_reference():
    reference = (OLD.drop(columns=["y", "p"]), OLD["y"], OLD["p"])
    subject = given(NEW.drop(columns=["y", "p"]), reference, y=NEW["y"], predictions=NEW["p"])
    np.testing.assert_array_equal(subject.reference.score, OLD["p"])
    np.testing.assert_array_equal(subject.reference.y, OLD["y"])
    bare = given(NEW.drop(columns=["y", "p"]), (OLD, None), y=NEW["y"], predictions=NEW["p"])
    assert bare.reference.y is None
    assert "The reference data have no predictions." in bare.notes


def test_the_model_is_asked_about_the_reference():
    features = ["age", "w"]
    model = LogisticRegression().fit(NEW[features], NEW["y"])
    subject = make_subject(model, NEW, "y", reference=OLD)
    np.testing.assert_allclose(subject.reference.score, model.predict_proba(OLD[features])[:, 1])
    lacking = make_subject(model, NEW, "y", reference=OLD.drop(columns="w"))
    assert lacking.reference.prediction is None
    assert lacking.reference.absent == ("w",)
    assert "The model cannot be asked about the reference data, which lack 'w'." in lacking.notes


def test_a_model_that_fails_on_the_reference_is_said_to_fail_there():
    model = LinearRegression().fit(NEW[["age", "w"]], NEW["p"])
    with pytest.raises(ModelError, match="on the reference data, the model raised ValueError"):
        make_subject(model, NEW, "p", reference=OLD.assign(w=np.nan))


def test_columns_that_only_one_of_the_two_has_are_told():
    reference = given(NEW.assign(fresh=1.0), OLD.assign(gone=2.0)).reference
    assert (reference.absent, reference.extra) == (("fresh",), ("gone",))


def test_groups_are_those_of_the_audited_data_and_what_is_gone_comes_last():
    new = NEW.assign(sex=np.where(NEW["sex"] == "F", "F", "X"))
    subject = given(new, sensitive_features=["sex"])
    assert list(subject.reference.sensitive["sex"].cat.categories) == ["F", "X", "M"]


def test_numbers_are_cut_where_the_audited_ones_were():
    subject = given(NEW, OLD.assign(age=OLD["age"] + 100), sensitive_features=["age"])
    names = list(subject.sensitive["age"].cat.categories)
    counts = subject.reference.sensitive["age"].value_counts()
    assert counts[names[-1]] == len(OLD)
    assert list(subject.reference.sensitive["age"].cat.categories) == names
    few = given(NEW.assign(age=NEW["age"] % 3), OLD, sensitive_features=["age"])
    assert list(few.reference.sensitive["age"].cat.categories)[:3] == ["0", "1", "2"]


def test_a_sensitive_column_that_the_reference_lacks_is_noted():
    subject = given(old=OLD.drop(columns="sex"), sensitive_features=["sex"])
    assert subject.reference.sensitive.shape == (120, 0)
    assert "The reference data have no column 'sex', so its groups cannot be compared with." in subject.notes


@pytest.mark.parametrize("convert", [lambda s: s, lambda s: s.astype(float), lambda s: s.astype(str)])
def test_a_cluster_has_one_number_in_both_tables(convert):
    subject = given(old=OLD.assign(who=convert(OLD["who"])), clusters="who")
    for person in range(30):
        numbers = set(subject.cluster[NEW["who"] == person]) | set(subject.reference.cluster[OLD["who"] == person])
        assert len(numbers) <= 1


def test_without_a_cluster_column_each_row_of_the_reference_stands_alone():
    subject = given(old=OLD.drop(columns="who"), clusters="who")
    assert len(set(subject.reference.cluster)) == 120
    assert not set(subject.reference.cluster) & set(subject.cluster)


def test_labels_that_the_audited_data_do_not_know_are_kept_and_noted():
    subject = given(NEW.assign(y=NEW["y"].map({0: "a", 1: "b"})), OLD.assign(y=["a", "b", "c"] * 40))
    assert list(np.unique(subject.reference.y)) == [-1, 0, 1]
    assert "The reference has labels that the audited data do not know: 'c'." in subject.notes


@pytest.mark.parametrize(
    ("old", "options", "message"),
    [
        (OLD[:0], {}, "the reference data have 0 rows"),
        (OLD[:1], {}, "the reference data have 1 row. Expected two or more"),
        (OLD[["y", "p"]], {}, "the reference data have none of the 5 features. Expected 'age'"),
        (OLD.assign(y=[np.nan, *[1] * 119]), {}, "target of the reference is missing in 1 of 120 rows"),
        (OLD.assign(y=7), {}, "only values that the audited data do not know, such as '7'"),
        (OLD.assign(p=2.0), {}, "the reference data: 120 scores lie outside"),
        (OLD.assign(p="x"), {}, "the reference data: the scores hold values that are not numbers"),
        (OLD.assign(w=-1.0), {"sample_weight": "w"}, "weights of the reference are negative or all zero"),
        (OLD.assign(w="x"), {"sample_weight": "w"}, "weight column of the reference holds values that are not"),
        (OLD.assign(who=[None, *[1] * 119]), {"clusters": "who"}, "1 missing values"),
        (
            OLD.assign(age="x"),
            {"sensitive_features": ["age:30"]},
            "'age' of the reference holds text. Expected numbers",
        ),
        ((OLD,), {}, "reference is a tuple of 1"),
        ((OLD, "y"), {}, "target of the reference is a name"),
        ((OLD, OLD["y"][:-1]), {}, "119 values"),
        (7, {}, "the reference is a int"),
    ],
)
def test_a_reference_that_cannot_be_used_is_refused_and_said(old, options, message):
    with pytest.raises(InputError, match=message):
        given(old=old, **options)


def test_a_sample_is_drawn_from_both_tables_by_one_seed():
    subject = given()
    picked = subject.sample(50, 3)
    assert (len(picked), len(picked.reference)) == (50, 50)
    pd.testing.assert_frame_equal(picked.reference.X, subject.sample(50, 3).reference.X)
    assert picked.reference.X.index.is_monotonic_increasing
    assert len(subject.sample(100, 3)) == N
    assert len(subject.sample(100, 3).reference) == 100


@pytest.mark.parametrize("mode", ["regression", "multiclass", "labels"])
def test_every_task_takes_a_reference(mode):
    rng = np.random.default_rng(5)
    new, old = NEW.copy(), OLD.copy()
    for frame in (new, old):
        if mode == "regression":
            frame["y"], frame["p"] = rng.normal(size=len(frame)), rng.normal(size=len(frame))
        else:
            frame["y"], frame["p"] = (rng.choice(["a", "b", "c"], len(frame)) for _ in range(2))
    if mode == "multiclass":
        for frame in (new, old):
            scores = rng.dirichlet(np.ones(3), len(frame))
            frame[["p_a", "p_b", "p_c"]] = scores
        options = {"predictions": ["p_a", "p_b", "p_c"], "drop": ["p"]}
    else:
        options = {}
    subject = given(new, old, **options)
    assert len(subject.reference.prediction) == 120
    assert (subject.reference.score is None) == (mode != "multiclass")
    report = aboveboard.audit(None, new, "y", reference=old, only="drift", **({"predictions": "p"} | options))
    assert not [finding for finding in report.not_run if finding.status == "error"]
    assert report.subject["reference_rows"] == 120


def test_any_names_are_accepted(hostile_name):
    name = hostile_name.encode("utf-8", "replace").decode()
    new, old = NEW.rename(columns={"age": name}), OLD.rename(columns={"age": name})
    report = aboveboard.audit(None, new, "y", predictions="p", reference=old.assign(**{name + "!": 1}), only="drift")
    assert not [finding for finding in report.not_run if finding.status == "error"]
