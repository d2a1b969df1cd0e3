import hashlib
import json

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import aboveboard
from aboveboard.core.errors import InputError, ModelError
from aboveboard.data import load_german_credit

CREDIT = load_german_credit()
X, Y = CREDIT.X.select_dtypes("number"), CREDIT.y.astype(str)
IN_OTHER_WORDS = {
    "Only its own probabilities can be used: LogisticRegression is no ensemble that can be asked member by member: it "
    "shows no members.": "A model from a file or an address shows its answers and not its members; give the model "
    "itself to aboveboard.audit, and the measures of an ensemble are compared.",
    "Shadow models, which find more, are trained with effort full.": "The model could not be fitted again, so that no "
    "shadow models were trained, which find more.",
}
"""What is said of a model at hand, and what of the same model from a file."""


def test_a_model_in_a_skops_file_answers_as_the_same_model_in_this_process(tmp_path):
    fitted = LogisticRegression(max_iter=1000).fit(X, Y)
    skops.io.dump(fitted, tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops") as model:
        assert (model.predict_proba(X) == fitted.predict_proba(X)).all()
        assert (model.predict(X) == fitted.predict(X)).all()
        assert list(model.classes_) == list(fitted.classes_)
        assert list(model.feature_names_in_) == list(X.columns)


def test_types_that_nobody_vouched_for_are_named_with_the_flag_that_would_trust_each(tmp_path):
    boosted = HistGradientBoostingClassifier(max_iter=3).fit(X, Y)
    skops.io.dump(boosted, tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"_hist_gradient_boosting\.predictor\.TreePredictor' \(--trust known\)"):
        aboveboard.open_model(tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops", trust="known") as model:
        assert np.array_equal(model.predict_proba(X), boosted.predict_proba(X))
        assert model.source_.trusted_types[-1] == "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def mixed():
    """A pipeline of numbers and words, and the rows that it was not fitted on."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(handle_unknown="ignore"), make_column_selector(dtype_exclude="number")),
    )
    rows = CREDIT.X.astype(dict.fromkeys(CREDIT.X.select_dtypes("category"), "object"))
    return make_pipeline(columns, LogisticRegression(max_iter=1000)).fit(rows[:600], Y[:600]), rows


def told(findings):
    """What findings say, and values up to rounding: numbers in another layout are summed in another order."""
    whole = [finding.to_dict() for finding in findings]
    return [one | {"value": None if one["value"] is None else round(one["value"], 12)} for one in whole]


def as_from_a_file(said):
    text = json.dumps(said)
    for at_hand, from_a_file in IN_OTHER_WORDS.items():
        assert at_hand in text
        text = text.replace(at_hand, from_a_file)
    return json.loads(text)


def test_a_whole_audit_through_the_process_finds_what_the_audit_of_the_same_object_does(tmp_path):
    fitted, rows = mixed()
    skops.io.dump(fitted, tmp_path / "model.skops")
    options = {
        "sensitive_features": ["age:30"], "train": (rows[:600], Y[:600]), "positive": "bad", "effort": "quick",
        "skip": "forgetting", "n_jobs": 2,
    }  # fmt: skip
    with aboveboard.open_model(tmp_path / "model.skops", trust="known") as model:
        theirs = aboveboard.audit(model, rows[600:], Y[600:], **options)
    ours = aboveboard.audit(fitted, rows[600:], Y[600:], **options)
    assert json.loads(json.dumps(told(theirs.findings))) == as_from_a_file(told(ours.findings))
    assert told(theirs.not_run) == told(ours.not_run)
    assert not [f for f in theirs.not_run if f.status == "error"]
    subject, plain = theirs.subject, ours.subject
    source = subject.pop("model_source")
    assert plain.pop("model_source") is None
    assert subject == plain
    assert source["name"] == "model.skops"
    assert source["sha256"] == hashlib.sha256((tmp_path / "model.skops").read_bytes()).hexdigest()


def test_a_model_that_cannot_be_fitted_again_says_so_where_forgetting_is_asked(tmp_path):
    joblib.dump(LogisticRegression(max_iter=1000).fit(X, Y), tmp_path / "model.joblib")
    with aboveboard.open_model(tmp_path / "model.joblib", trust_pickle=True) as model:
        report = aboveboard.audit(model, X[500:], Y[500:], train=(X[:500], Y[:500]), only="forgetting", effort="quick")
    (finding,) = report.findings
    assert finding.statement.startswith("Nothing shows how to take a row out of this model")
    assert "'model.joblib' was unpickled (--trust-pickle), which runs whatever code the file names." in report.notes


def test_a_file_that_changes_during_the_audit_is_not_read_again(tmp_path):
    joblib.dump(LogisticRegression(max_iter=1000).fit(X, Y), tmp_path / "model.pkl")
    with aboveboard.open_model(tmp_path / "model.pkl", trust_pickle=True) as model:
        joblib.dump(LogisticRegression(C=0.1, max_iter=1000).fit(X, Y), tmp_path / "model.pkl")
        model.predict(X)
        model._process.close()
        with pytest.raises(ModelError, match=r"'model\.pkl' was changed during the audit"):
            model.predict(X)


def test_many_rows_go_in_parts_that_make_one_answer(tmp_path, monkeypatch):
    (tmp_path / "own_parts.py").write_text("def size(rows): return [len(rows)] * len(rows)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with aboveboard.open_model("own_parts:size") as model:
        said = model(pd.DataFrame({"a": np.zeros(250_000)}))
    assert [len(run) for run in np.split(said, np.flatnonzero(np.diff(said)) + 1)] == [200_000, 50_000]
    assert set(said) == {100_000, 50_000}


def test_a_hostile_name_of_a_file_reaches_every_form_of_the_report_harmlessly(tmp_path):
    path = tmp_path / "<script>\x1b[31m\u202e.pkl"
    joblib.dump(LogisticRegression(max_iter=1000).fit(X, Y), str(path))
    with aboveboard.open_model(path, trust_pickle=True) as model:
        report = aboveboard.audit(model, X, Y, only="model_outputs")
    page = report.to_html()
    assert "<script>\x1b" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert r"\x1b[31m\u202e.pkl" in page
    assert str(tmp_path) not in report.to_json()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"loaded": {}}, "malformed"),
        ({"loaded": {"model": 1}}, "malformed"),
        ({"raised": 1}, "malformed"),
        ({}, "malformed"),
        ({"raised": ["MemoryError", ""]}, "ran out of memory"),
    ],
)
def test_a_process_that_tells_nonsense_of_its_model_is_an_error_of_the_model(monkeypatch, tmp_path, told, message):
    (tmp_path / "m.skops").write_bytes(b"x")
    monkeypatch.setattr("aboveboard.auditing.models.process.ModelProcess.ask", lambda *_, **__: (told, bytearray()))
    with pytest.raises(ModelError, match=message):
        aboveboard.open_model(tmp_path / "m.skops")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"timeout": 0}, "time limit is 0"),
        ({"timeout": float("nan")}, "time limit"),
        ({"memory": -1}, "memory limit is -1"),
        ({"memory": float("inf")}, "memory limit"),
        ({"trust": "all"}, "trust is 'all'"),
        ({"trust_types": "a.B"}, "a list of names"),
        ({"trust_pickle": True}, "pickles were trusted"),
        ({"memory": 0.001}, "GiB that it may"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, message):
    skops.io.dump(LogisticRegression(), tmp_path / "m.skops")
    with pytest.raises((InputError, ModelError), match=message):
        aboveboard.open_model(tmp_path / "m.skops", **options)
