import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from aboveboard.auditing.checks.model_inputs import check
from aboveboard.auditing.subject import make_subject

N = 200
RNG = np.random.default_rng(0)
X = pd.DataFrame(
    {
        "a": RNG.normal(size=N),
        "k": RNG.integers(0, 9, N),
        "c": pd.Series(RNG.choice(["u", "v"], N), dtype=object),
        "d": pd.Series(RNG.choice(["s", "t"], N)).astype("category"),
        "b": RNG.random(N) < 0.5,
    }
)
Y = (X["a"] + RNG.normal(size=N) > 0).astype(int).to_numpy()


def pipeline(handle):
    numbers = (
        make_pipeline(
            SimpleImputer(),
        )
        if handle == "ignore"
        else "passthrough"
    )
    encode = make_column_transformer((OneHotEncoder(handle_unknown=handle), ["c", "d"]), (numbers, ["a", "k"]))
    return make_pipeline(encode, LogisticRegression()).fit(X, Y)


def findings(model, frame=X, y=Y, **options):
    subject = make_subject(model, frame, y, **options)
    return {f.id.partition("/")[2]: f for f in check(subject, random_state=0, effort="quick")}


def test_a_tolerant_pipeline_copes_with_all():
    found = findings(pipeline("ignore"))
    assert {f.severity for f in found.values()} == {"ok"}
    assert set(found) == {
        "single_row",
        "missing/boolean",
        "missing/category",
        "missing/number",
        "missing/text",
        "unseen_category",
        "column_order",
        "types",
        "extreme_numbers",
    }


def test_a_strict_pipeline_is_told_by_the_type_of_its_errors_and_nothing_more():
    found = findings(pipeline("error"))
    assert found["unseen_category"].severity == "warn"
    assert found["missing/number"].severity == "note"
    assert "ValueError" in found["missing/number"].statement
    text = " ".join(f.statement + f.reason for f in found.values())
    assert "unknown categories" not in text
    assert "NaN" not in text


def test_refusing_missing_values_is_worse_where_the_data_have_some():
    train = X.copy()
    train.loc[0, "a"] = np.nan
    assert findings(pipeline("error"), train=(train, Y))["missing/number"].severity == "warn"


def test_gradient_boosting_on_categories_copes():
    frame = X.astype({"c": "category"})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(frame, Y)
    found = findings(model, frame)
    assert {f.severity for f in found.values()} == {"ok"}


def test_columns_taken_by_position_are_found():
    columns = ["a", "k"]
    inner = LogisticRegression().fit(X[columns].to_numpy(), Y)
    found = findings(lambda frame: inner.predict_proba(frame.to_numpy())[:, 1], X[columns])
    assert found["column_order"].severity == "fail"
    assert (
        findings(lambda frame: inner.predict_proba(frame[columns].to_numpy())[:, 1], X[columns])[
            "column_order"
        ].severity
        == "ok"
    )


def test_a_model_that_refuses_another_order_is_safe():
    found = findings(LogisticRegression().fit(X[["a", "k"]], Y), X[["a", "k"]])
    assert found["column_order"].severity == "ok"
    assert "refuses" in found["column_order"].reason


def test_an_array_has_no_column_order():
    found = findings(LogisticRegression().fit(X[["a", "k"]].to_numpy(), Y), X[["a", "k"]].to_numpy())
    assert "column_order" not in found


def test_a_single_row_that_breaks_the_model_fails():
    def model(frame):
        return np.clip((frame["a"] - frame["a"].mean()) / frame["a"].std() * 0.1 + 0.5, 0, 1)

    assert findings(model, X[["a", "k"]])["single_row"].severity == "fail"


def test_types_that_change_the_answer_fail():
    def model(frame):
        shift = 0.2 if frame["k"].dtype.kind == "f" else 0.0
        return 1 / (1 + np.exp(-frame["a"])) * 0.8 + shift

    assert findings(model, X[["a", "k"]])["types"].severity == "fail"


def test_regression():
    found = findings(LinearRegression().fit(X[["a", "k"]], X["a"]), X[["a", "k"]], X["a"])
    assert found["missing/number"].severity == "note"
    assert found["types"].severity == "ok"


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_nullable_containers_can_be_probed(backend):
    frame = X.convert_dtypes(dtype_backend=backend)

    def model(given):
        return 1 / (1 + np.exp(-given["a"].to_numpy(dtype="float64", na_value=0.0)))

    found = findings(model, frame)
    assert {key for key, f in found.items() if f.severity != "ok"} <= {"extreme_numbers"}
