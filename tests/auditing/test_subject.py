import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from aboveboard.auditing.subject import make_subject
from aboveboard.core.errors import InputError, ModelError

N = 60
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "age": RNG.integers(18, 80, N),
        "income": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
        "sex": pd.Series(RNG.choice(["F", "M"], N), dtype=object),
        "owner": RNG.random(N) < 0.5,
        "y": RNG.permutation([0, 1] * (N // 2)),
        "p": RNG.random(N),
    }
)
TABLE.loc[5, "sex"] = None
NUMBERS = TABLE[["age", "owner"]].astype(float)
MODEL = LogisticRegression().fit(NUMBERS, TABLE["y"])


def given(table=TABLE, **options):
    return make_subject(None, table, "y", **({"predictions": "p"} | options))


# --- the same in every container --------------------------------------------------------------------------------------

CONTAINERS = {
    "nullable": lambda t: t.convert_dtypes(),
    "arrow": lambda t: t.convert_dtypes(dtype_backend="pyarrow"),
    "objects": lambda t: t.astype(object),
    "small": lambda t: t.astype({"age": "int8", "y": "uint8"}),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "mapping": lambda t: t.to_dict("list"),
    "category": lambda t: t.astype({"sex": "category"}),
    "shuffled index": lambda t: t.set_axis(range(N)[::-1]),
}


@pytest.mark.parametrize("container", list(CONTAINERS))
def test_a_table_gives_the_same_subject_in_every_container(container):
    expected, got = (
        given(table, sensitive_features=["sex", "age:25,40"]) for table in (TABLE, CONTAINERS[container](TABLE))
    )
    assert got.notes == expected.notes
    np.testing.assert_array_equal(got.y, expected.y)
    np.testing.assert_array_equal(got.score, expected.score)
    pd.testing.assert_frame_equal(got.sensitive.reset_index(drop=True), expected.sensitive)
    differing = {"features"} if container == "category" else set()
    assert {k: v for k, v in got.describe().items() if k not in differing} == {
        k: v for k, v in expected.describe().items() if k not in differing
    }


def test_the_fingerprint_changes_with_any_value():
    before = given().describe()["data_sha256"]
    for column, value in {"age": 17, "income": 0.125, "sex": "X", "owner": not TABLE["owner"][9], "p": 0.125}.items():
        table = TABLE.copy()
        table.loc[9, column] = value
        assert given(table).describe()["data_sha256"] != before, column


# --- features ---------------------------------------------------------------------------------------------------------


def test_columns_that_are_spoken_for_are_no_features_and_sensitive_ones_are():
    table = TABLE.assign(w=1.0, who=range(N), family=[i // 2 for i in range(N)], junk=0)
    subject = given(table, sensitive_features="sex", sample_weight="w", ids="who", clusters="family", drop=["junk"])
    assert list(subject.X.columns) == ["age", "income", "sex", "owner"]
    assert subject.describe()["clusters"] == N // 2
    assert subject.describe()["weighted"]


def test_one_name_to_drop_is_a_name_and_no_list_of_letters():
    assert "owner" not in given(drop="owner").X.columns


def test_a_model_gets_the_columns_it_was_fitted_on():
    subject = make_subject(MODEL, TABLE, "y")
    assert list(subject.X.columns) == ["age", "owner"]
    np.testing.assert_allclose(subject.score, MODEL.predict_proba(NUMBERS)[:, 1], rtol=1e-12)


def test_a_pipeline_of_an_array_is_given_an_array():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(NUMBERS.to_numpy(), TABLE["y"])
    for X in (NUMBERS.to_numpy(), pl.from_pandas(NUMBERS)):
        subject = make_subject(pipeline, X, TABLE["y"].to_numpy())
        np.testing.assert_array_equal(subject.score, pipeline.predict_proba(NUMBERS.to_numpy())[:, 1])


def test_a_table_without_features_can_still_be_audited_and_says_so():
    subject = given(TABLE[["y", "p"]])
    assert subject.X.shape == (N, 0)
    assert any("No column is left" in note for note in subject.notes)
    assert subject.take(np.arange(3)).X.shape == (3, 0)


# --- the task ---------------------------------------------------------------------------------------------------------


def task_of(y, predictions, **options):
    y = np.asarray(y)
    return make_subject(None, pd.DataFrame({"a": range(len(y))}), y, predictions=predictions, **options)


@pytest.mark.parametrize(
    ("y", "predictions", "task"),
    [
        ([0, 1, 1, 0], [0.1, 0.9, 0.4, 0.2], "binary"),
        ([1.5, 2.5, 1.5, 2.5], [1.5, 2.5, 2.5, 2.5], "binary"),
        (["a", "b", "a", "b"], ["a", "a", "a", "b"], "binary"),
        ([True, False, True, False], [0.1, 0.9, 0.4, 0.2], "binary"),
        ([0, 1, 2, 0], [0, 1, 1, 0], "multiclass"),
        (["a", "b", "c", "a"], ["a", "b", "b", "a"], "multiclass"),
        (["a", "b", "a", "b"], ["a", "c", "a", "b"], "multiclass"),  # the test set lacks a class
        ([0, 1, 0, 1], [0, 2, 0, 1], "multiclass"),
        ([0.5, 1.0, 2.0, 3.0], [0.4, 1.1, 2.0, 3.0], "regression"),
        (list(range(30)), list(range(30)), "regression"),
        ([0, 1, 2, 5], [0.3, 1.2, 2.0, 4.4], "regression"),  # counts, predicted as numbers
    ],
)
def test_the_task_is_guessed_from_target_and_predictions(y, predictions, task):
    assert task_of(y, predictions).task == task


def test_the_model_tells_the_task_where_there_is_one():
    y = np.array([0, 1] * (N // 2))
    assert make_subject(LinearRegression().fit(NUMBERS, y), NUMBERS, y).task == "regression"
    three = LogisticRegression().fit(NUMBERS, np.arange(N) % 3)
    subject = make_subject(three, NUMBERS, y)
    assert subject.task == "multiclass"
    assert subject.score.shape == (N, 3)
    assert "The data have no row of the class 2." in subject.notes


def test_a_class_that_only_the_training_data_have_is_a_class():
    X, y = pd.DataFrame({"a": range(4)}), ["a", "b", "a", "b"]
    train = (pd.DataFrame({"a": range(3)}), ["a", "b", "c"])
    subject = make_subject(None, X, y, predictions=["a", "b", "b", "b"], train=train)
    assert subject.classes == ("a", "b", "c")
    assert subject.train.y.tolist() == [0, 1, 2]


def test_a_class_that_only_the_score_columns_have_is_a_class():
    scores = pd.DataFrame({"p_a": [0.6, 0.2], "p_c": [0.1, 0.2], "p_b": [0.3, 0.6]})
    subject = make_subject(None, pd.DataFrame({"x": [1, 2]}), ["a", "b"], predictions=scores)
    assert subject.classes == ("a", "b", "c")
    np.testing.assert_array_equal(subject.score, scores[["p_a", "p_b", "p_c"]])
    numbered = scores.set_axis(["p_0", "p_10", "p_1"], axis=1)
    assert make_subject(None, pd.DataFrame({"x": [1, 2]}), [0, 1], predictions=numbered).classes == (0, 1, 10)


@pytest.mark.parametrize(
    ("y", "positive", "classes"),
    [
        ([0, 1, 0], None, (0, 1)),
        ([0, 1, 0], 0, (1, 0)),
        ([0, 1, 0], "0", (1, 0)),
        ([1, 2, 1], None, (2, 1)),  # 1 is a name of the positive class
        (["no", "yes", "no"], None, ("no", "yes")),
        (["good", "bad", "bad"], None, ("bad", "good")),
        (["<=50K", ">50K", ">50K"], None, ("<=50K", ">50K")),
        ([False, True, True], None, (False, True)),
        (["x", "z", "x"], None, ("x", "z")),
        (["x", "z", "x"], "x", ("z", "x")),
    ],
)
def test_the_positive_class_is_the_one_that_is_named_or_sounds_so(y, positive, classes):
    subject = task_of(y, [0.5] * 3, positive=positive)
    assert subject.classes == classes
    assert subject.y.tolist() == [classes.index(label) for label in y]
    assert any("is read as the positive class" in note for note in subject.notes) == (positive is None)


# --- predictions ------------------------------------------------------------------------------------------------------


def test_scores_are_cut_at_the_threshold_or_at_a_half():
    assert task_of([0, 1, 1], [0.2, 0.5, 0.7]).prediction.tolist() == [0, 1, 1]
    subject = task_of([0, 1, 1], [0.2, 0.5, 0.7], threshold=0.7)
    assert subject.prediction.tolist() == [0, 0, 1]
    assert subject.threshold == 0.7


def test_two_columns_of_scores_are_cut_like_one():
    scores = np.array([[0.8, 0.2], [0.5, 0.5], [0.3, 0.7]])
    assert task_of([0, 1, 1], scores).prediction.tolist() == [0, 1, 1]
    assert task_of([0, 1, 1], scores, threshold=0.7).prediction.tolist() == [0, 0, 1]
    named = pd.DataFrame(scores, columns=["p_1", "p_0"])
    assert task_of([0, 1, 1], named).score.tolist() == [0.8, 0.5, 0.3]


def test_labels_that_are_ones_and_zeros_are_labels_unless_they_are_said_to_be_scores():
    assert task_of([0, 1, 1], [0, 1, 0]).score is None
    assert task_of([0, 1, 1], [0, 1, 0], prediction_type="score").score.tolist() == [0.0, 1.0, 0.0]


def test_unnamed_columns_of_scores_are_in_the_order_of_the_labels_and_it_is_said():
    scores = np.array([[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
    subject = task_of(["b", "a", "c"], scores)
    np.testing.assert_array_equal(subject.score, scores)
    assert subject.prediction.tolist() == [0, 1, 2]
    assert any("read in order: x0 = a, x1 = b, x2 = c" in note for note in subject.notes)


def test_predictions_can_be_values_of_any_container():
    for values in (TABLE["p"], TABLE["p"].tolist(), TABLE["p"].to_numpy(), pl.Series(TABLE["p"]), pa.array(TABLE["p"])):
        np.testing.assert_array_equal(given(predictions=values).score, TABLE["p"])


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "features",
    [
        "sex", ["sex"], {"sex": None}, TABLE["sex"], TABLE[["sex"]],
        pl.from_pandas(TABLE[["sex"]]), pl.Series("sex", TABLE["sex"].tolist()), pa.Table.from_pandas(TABLE[["sex"]]),
    ],
    ids=["name", "names", "mapping", "series", "frame", "polars", "polars series", "pyarrow"],
)  # fmt: skip
def test_groups_can_be_named_or_given(features):
    subject = given(sensitive_features=features)
    assert subject.describe()["sensitive"] == [{"name": "sex", "groups": ["F", "M", "(missing)"]}]


def test_groups_can_be_values_that_are_no_column():
    subject = given(TABLE.drop(columns="sex"), sensitive_features={"sex": TABLE["sex"].tolist()})
    assert list(subject.sensitive.columns) == ["sex"]
    assert list(given(sensitive_features=np.array(TABLE["owner"])).sensitive.columns) == ["group"]


@pytest.mark.parametrize("features", [["age:25,40"], {"age": [25, 40]}, {"age": (25, 40)}])
def test_numbers_can_be_cut_into_groups(features):
    subject = given(sensitive_features=features)
    expected = pd.cut(TABLE["age"], [-np.inf, 25, 40, np.inf], right=False).cat.codes
    np.testing.assert_array_equal(subject.sensitive["age"].cat.codes, expected)


def test_a_column_whose_name_holds_a_colon_can_be_named():
    subject = given(TABLE.rename(columns={"sex": "a:b"}), sensitive_features=["a:b"])
    assert list(subject.sensitive.columns) == ["a:b"]


def test_small_missing_and_single_groups_are_noted_without_their_counts():
    table = TABLE.assign(one="x", g=["rare"] + ["a"] * 29 + [None] * 30)
    notes = " ".join(given(table, sensitive_features=["one", "g", "sex"]).group_notes())
    assert "one has a single group, x" in notes
    assert "g: too few rows (fewer than 10) to say anything about rare." in notes
    assert "g is missing in 30 rows, which are a group of their own: (missing)." in notes
    assert "sex is missing in fewer than 10 rows" in notes


def test_a_reference_group_must_exist():
    assert given(sensitive_features="sex", reference_group={"sex": "M"}).reference_groups == {"sex": "M"}
    with pytest.raises(InputError, match="no group 'm'"):
        given(sensitive_features="sex", reference_group={"sex": "m"})
    with pytest.raises(InputError, match="no column 'sec' for the reference group"):
        given(sensitive_features="sex", reference_group={"sec": "M"})


# --- what is refused --------------------------------------------------------------------------------------------------

BAD = TABLE.assign(
    minus=-1.0, zero=0.0, holes=[np.nan, *[1.0] * (N - 1)], word="x", log=RNG.normal(size=N) * 5, third="maybe",
    when=pd.Timestamp("2020-01-01"), constant=1, letters=["a", "b"] * (N // 2),
)  # fmt: skip


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ("z", {}, "no column 'z' for the target"),
        ("Y", {}, "Did you mean 'y'"),
        (None, {}, "no target"),
        ("constant", {}, "'constant' is '1' in every row"),
        ("holes", {}, "missing in 1 of 60 rows"),
        (TABLE["y"][:-1], {}, "59 values and X has 60 rows"),
        (TABLE["y"][::-1], {}, "the index of the target is not that of X"),
        ("y", {"predictions": None}, "neither a model nor predictions"),
        ("y", {"predictions": "y"}, "cannot be the predictions too"),
        ("y", {"predictions": "q"}, "no column 'q' for the predictions"),
        ("y", {"predictions": "log"}, r"scores lie outside \[0, 1\]"),
        ("y", {"predictions": "third"}, "value 'maybe', which is no class"),
        ("y", {"predictions": "holes"}, "predictions are missing in 1 rows"),
        ("y", {"predictions": ["p", "p"]}, "named twice"),
        ("y", {"predictions": ["p", "q"]}, "no column 'q' for the predictions"),
        ("y", {"predictions": ["p", "constant"]}, "do not sum to 1"),
        ("y", {"predictions": ["p", "constant", "zero"]}, "3 score columns were given and the target has 2 classes"),
        ("y", {"prediction_type": "label"}, "no class of the target"),
        ("y", {"prediction_type": "probability"}, "score or label"),
        ("y", {"task": "clustering"}, "the task is 'clustering'"),
        ("age", {"task": "binary"}, "two for a binary task"),
        ("letters", {"task": "regression"}, "not numbers"),
        ("when", {"task": "regression"}, "not numbers|in every row"),
        ("y", {"task": "multiclass"}, "Probabilities need one column per class"),
        ("y", {"task": "multiclass", "prediction_type": "score"}, "one column of scores was given for several"),
        ("y", {"positive": "yes"}, "'yes' is no class"),
        ("age", {"positive": 1, "task": "regression"}, "positive label was given for a regression"),
        ("y", {"threshold": 1.5}, r"\[0, 1\]"),
        ("y", {"threshold": "half"}, r"\[0, 1\]"),
        ("age", {"threshold": 0.5, "task": "regression"}, "threshold was given and the task is regression"),
        ("y", {"threshold": 0.5, "predictions": TABLE["y"].tolist()}, "threshold was given with predictions that are"),
        ("y", {"sample_weight": "minus"}, "60 weights are negative"),
        ("y", {"sample_weight": "zero"}, "all weights are zero"),
        ("y", {"sample_weight": "holes"}, "1 missing or infinite"),
        ("y", {"sample_weight": "word"}, "not numbers"),
        ("y", {"sample_weight": "when"}, "not numbers"),
        ("y", {"sample_weight": "wieght"}, "no column 'wieght' for the weights"),
        ("y", {"clusters": "constant"}, "one value only"),
        ("y", {"clusters": "holes"}, "1 missing values"),
        ("y", {"sensitive_features": "sx"}, "no column 'sx' for the sensitive column"),
        ("y", {"sensitive_features": ["sex", "sex"]}, "named twice"),
        ("y", {"sensitive_features": "y"}, "is the target"),
        ("y", {"sensitive_features": "age:a,b"}, "not numbers"),
        ("y", {"sensitive_features": {"age": "25"}}, "cut points"),
        ("y", {"sensitive_features": {"sex": [1]}}, "holds text"),
        ("y", {"sensitive_features": "when"}, "holds dates"),
        ("y", {"sensitive_features": TABLE["sex"][:-1]}, "59 values"),
        ("y", {"drop": ["nothing"]}, "no column 'nothing' for the drop"),
        ("y", {"min_cell": 0}, "smallest cell"),
        ("y", {"min_cell": 2.5}, "smallest cell"),
        ("y", {"n_jobs": 0}, "jobs"),
        ("y", {"limits": {"no.such": 1}}, "no limit is called 'no.such'"),
        ("y", {"train": TABLE.drop(columns="age")}, "no column 'age' for the training data"),
        ("y", {"train": TABLE.drop(columns="y")}, "target of the training data"),
        ("y", {"train": TABLE[:0]}, "training data have no rows"),
        ("y", {"train": (TABLE, TABLE["y"], 1)}, "tuple of 3"),
        ("y", {"train": (TABLE, TABLE["y"][:-1])}, "59 values"),
        ("holes", {"train": BAD, "task": "regression"}, "missing in 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_and_said(y, options, message):
    with pytest.raises(InputError, match=message):
        make_subject(None, BAD, y, **({"predictions": "p"} | options))


@pytest.mark.parametrize(("rows", "message"), [(0, "no rows"), (1, "one row")])
def test_tables_without_rows_or_with_one_are_refused(rows, message):
    with pytest.raises(InputError, match=message):
        given(TABLE[:rows])


def test_a_nan_inside_a_nullable_target_is_a_missing_value():
    y = pd.Series(pd.arrays.FloatingArray(np.array([1.0, np.nan, 0.0]), np.zeros(3, dtype=bool)))
    with pytest.raises(InputError, match="missing in 1 of 3 rows"):
        make_subject(None, pd.DataFrame({"a": [1, 2, 3]}), y, predictions=[0.1, 0.2, 0.3])


def test_a_model_and_predictions_are_one_too_many():
    with pytest.raises(InputError, match="both"):
        make_subject(MODEL, TABLE, "y", predictions="p")


def test_a_target_that_the_model_does_not_know_is_refused():
    with pytest.raises(InputError, match="value '7', which the model does not know"):
        make_subject(MODEL, NUMBERS, [7, *[0] * (N - 1)])


def test_what_is_no_model_is_refused_and_a_model_that_fails_is_a_model_error():
    with pytest.raises(InputError, match="without predict"):
        make_subject(object(), TABLE, "y")
    with pytest.raises(InputError, match="is a regressor"):
        make_subject(LinearRegression().fit(NUMBERS, TABLE["y"]), NUMBERS, TABLE["y"], task="binary")
    with pytest.raises(ModelError, match="KeyError"):
        make_subject(lambda X: X["nothing"], TABLE, "y")


def test_options_are_refused_before_the_model_is_asked():
    def never(X):
        raise AssertionError("asked")

    for options in ({"limits": {"no.such": 1}}, {"reference_group": {"a": "b"}}, {"train": TABLE[:0]}):
        with pytest.raises(InputError):
            make_subject(never, TABLE, "y", **options)


def test_any_names_of_columns_groups_and_labels_are_accepted(hostile_name):
    column = hostile_name.replace("\ud800", "").replace("\udfff", "")
    names = pd.Index([column + "a", column], dtype=object)
    table = pd.DataFrame([["x", 0.1], [hostile_name, 0.9]] * 5, columns=names, dtype=object)
    y = pd.Series(["other", hostile_name] * 5, name=hostile_name, dtype=object)
    subject = make_subject(None, table, y, predictions=column, sensitive_features=[column + "a"], positive=hostile_name)
    assert subject.positive == hostile_name
    assert len(subject.describe()["data_sha256"]) == 64


# --- rows -------------------------------------------------------------------------------------------------------------


def test_taking_rows_takes_them_everywhere():
    table = TABLE.assign(w=np.arange(N) + 1.0, who=range(N), family=[i // 2 for i in range(N)])
    subject = given(table, sensitive_features="sex", sample_weight="w", ids="who", clusters="family")
    rows = np.array([3, 1, 50])
    part = subject.take(rows)
    assert len(part) == 3
    assert part.ids.tolist() == [3, 1, 50]
    assert part.weight.tolist() == [4.0, 2.0, 51.0]
    for name in ("y", "prediction", "score", "cluster"):
        np.testing.assert_array_equal(getattr(part, name), getattr(subject, name)[rows])
    assert part.X.index.tolist() == part.sensitive.index.tolist() == [3, 1, 50]


def test_a_sample_is_drawn_without_replacement_in_the_old_order_and_by_its_seed():
    subject = given()
    part = subject.sample(20, 7)
    rows = part.X.index.to_numpy()
    assert len(set(rows)) == 20
    assert (np.diff(rows) > 0).all()
    assert subject.sample(20, 7).X.index.equals(part.X.index)
    assert not subject.sample(20, 8).X.index.equals(part.X.index)
    assert subject.sample(N, 0) is subject


def test_weights_are_one_where_none_were_given():
    np.testing.assert_array_equal(given().weights, np.ones(N))
