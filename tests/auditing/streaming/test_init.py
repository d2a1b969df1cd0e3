import json
import runpy
import tempfile
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import aboveboard
from aboveboard.auditing import summaries
from aboveboard.auditing.checks import calibration, group_fairness, group_missingness, performance
from aboveboard.auditing.streaming import StreamedTable, read_or_stream
from aboveboard.auditing.streaming import subject as streamed_subject
from aboveboard.auditing.subject import make_subject
from aboveboard.core.errors import InputError

_SHARED = runpy.run_path(str(Path(__file__).with_name("people.py")))
CASES, audited, differences, write = (_SHARED[name] for name in ("CASES", "audited", "differences", "write"))

SUMMED = {"performance", "calibration", "group_fairness", "group_missingness"}


@pytest.mark.parametrize("case", list(CASES))
def test_a_streamed_audit_has_the_figures_of_one_in_memory(case, table, tmp_path):
    folder = write(table, tmp_path / "data", [1100, 0, 3, 1897], group=500)
    assert differences(audited(table, case), audited(folder, case, stream=True)) == []


@pytest.mark.parametrize("case", ["scores", "clusters", "numbers"])
@settings(max_examples=5)
@given(data=st.data())
def test_whatever_the_split_and_the_order_of_merging_the_figures_are_the_same(case, table, data):
    """The sums of the checks themselves, of parts of any sizes that are added in any order and any tree."""
    frame = table.iloc[:600]
    given_ = dict(CASES[case])
    subject = make_subject(None, frame, given_.pop("y"), **given_)
    checks = [performance, group_fairness, *([calibration] if subject.score is not None else [])]
    cuts = sorted(data.draw(st.lists(st.integers(0, 600), max_size=5)))
    ends = list(zip([0, *cuts], [*cuts, 600], strict=True))
    for check in checks:
        layout = check.layout(subject)
        sums = [
            check.summarise(_part(subject, first, last), layout)
            for first, last in data.draw(st.permutations([pair for pair in ends if pair[0] < pair[1]]))
        ]
        while len(sums) > 1:
            at = data.draw(st.integers(0, len(sums) - 2))
            sums[at : at + 2] = [sums[at] + sums[at + 1]]
        whole = check.check(subject, random_state=3, effort="quick")
        parts = check.judge(subject, sums[0], random_state=3, effort="quick")
        assert differences([f.to_dict() for f in whole], [f.to_dict() for f in parts]) == []


def _part(subject, first, last):
    return replace(subject.take(np.arange(first, last)), offset=first)


@settings(max_examples=3)
@given(sizes=st.lists(st.integers(0, 900), min_size=1, max_size=4), group=st.integers(50, 1200))
def test_whatever_the_files_and_row_groups_the_report_is_the_same(sizes, group, table):
    sizes = [*sizes, max(len(table) - sum(sizes), 0)]
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        only = ["performance", "group_fairness", "group_missingness"]
        first = audited(write(table, Path(one), [len(table)]), "weights", stream=True, only=only)
        second = audited(write(table, Path(other), sizes, group=group), "weights", stream=True, only=only)
    assert differences(first, second) == []


def test_the_same_seed_gives_the_same_bytes_however_many_work_at_it(table, tmp_path, monkeypatch):
    monkeypatch.setattr("aboveboard.auditing.parquet._PART_ROWS", 300)
    folder = write(table, tmp_path / "data", [1000, 2000], group=150)
    only = ["performance", "calibration", "group_fairness"]
    alone = audited(folder, "clusters", stream=True, only=only)
    assert alone == audited(folder, "clusters", stream=True, only=only, n_jobs=2)
    with joblib.parallel_config(backend="threading", n_jobs=3):
        assert alone == audited(folder, "clusters", stream=True, only=only)
    again = audited(folder, "clusters", stream=True, only=only, random_state=1)
    assert again["findings"] != alone["findings"]


def test_more_rows_than_are_drawn_give_the_same_figures_too(table, tmp_path, monkeypatch):
    for module in (summaries, "aboveboard.auditing.subject"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.SAMPLE", 500)
    folder = write(table, tmp_path / "data", [1500, 1500])
    for case in ("scores", "classes", "numbers", "clusters"):
        assert differences(audited(table, case), audited(folder, case, stream=True)) == []


def test_scores_in_more_bins_than_there_are_have_the_figures_of_scikit_learn(monkeypatch):
    """Where bins come from a sample: AUC, log loss and Brier score of 60,000 rows against those of all scores."""
    from sklearn import metrics

    monkeypatch.setattr(summaries, "SAMPLE", 2000)
    monkeypatch.setattr("aboveboard.auditing.subject.SAMPLE", 2000)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 60_000)
    score = 1 / (1 + np.exp(-(3 * rng.normal(size=60_000) + 2 * y - 1)))
    subject = make_subject(None, {"x": y}, y, predictions=score, prediction_type="score")
    sums = performance.summarise(subject, performance.layout(subject)).scores
    assert sums.auc() == pytest.approx(metrics.roc_auc_score(y, score), abs=sums.auc_resolution() + 1e-12)
    assert sums.auc_resolution() < 1e-3
    assert sums.auc() == pytest.approx(metrics.roc_auc_score(y, score), abs=1e-5)
    assert sums.log_loss() == pytest.approx(metrics.log_loss(y, score), rel=1e-12)
    assert sums.brier() == pytest.approx(metrics.brier_score_loss(y, score), rel=1e-12)


def test_a_group_and_a_class_that_come_last_are_there(tmp_path):
    n = 2000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "g": np.where(np.arange(n) < n - 40, "usual", "late"),
            "y": np.where(np.arange(n) < n - 20, rng.choice(["a", "b"], n), "c"),
            "said": rng.choice(["a", "b"], n),
        }
    )
    folder = write(frame, tmp_path / "data", [n], group=100)
    options = {"predictions": "said", "sensitive_features": ["g"], "only": ["performance", "fairness"]}
    memory = aboveboard.audit(None, frame, "y", **options, show_progress=False)
    streamed = aboveboard.audit(None, folder, "y", **options, stream=True, show_progress=False)
    assert streamed.subject["classes"] == ["a", "b", "c"]
    assert streamed.subject["sensitive"] == [{"name": "g", "groups": ["late", "usual"]}]
    assert [f.to_dict() for f in streamed.findings] == [f.to_dict() for f in memory.findings]


def test_a_third_value_of_a_binary_target_is_refused_wherever_it_comes(table, tmp_path):
    frame = table.assign(y=table["y"].where(table.index < 2999, 7))
    folder = write(frame, tmp_path / "data", [1500, 1500])
    with pytest.raises(InputError, match=r"the target has 3 values\. Expected two for a binary task"):
        audited(folder, "scores", stream=True, task="binary")


def test_categories_with_other_dictionaries_in_each_part_are_one_column(table, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    for number, (first, last) in enumerate([(0, 1000), (1000, 1300), (1300, 3000)]):
        rows = table.iloc[first:last]
        order = ["m", "f"] if number % 2 else ["f", "m"]
        coded = rows.assign(sex=pd.Categorical(rows["sex"], categories=order))
        part = coded if number < 2 else rows  # the last file holds text
        pq.write_table(pa.Table.from_pandas(part, preserve_index=False), folder / f"{number}.parquet")
    plain = audited(table, "scores", only=["performance", "fairness"])
    assert differences(plain, audited(folder, "scores", stream=True, only=["performance", "fairness"])) == []
    assert differences(plain, audited(folder, "scores", stream=False, only=["performance", "fairness"])) == []


def test_missing_values_of_a_sensitive_column_are_a_group_even_when_rare(tmp_path):
    n = 4000
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"y": rng.integers(0, 2, n), "p": rng.random(n), "g": rng.choice(["a", "b"], n)})
    frame["age"] = rng.integers(18, 90, n).astype(float)
    frame.loc[n - 12 :, ["g", "age"]] = [None, np.nan]
    folder = write(frame, tmp_path / "data", [2000, 2000])
    options = {"predictions": "p", "sensitive_features": ["g", "age"], "only": "fairness", "show_progress": False}
    memory = aboveboard.audit(None, frame, "y", **options, skip="price_of_fairness")
    streamed = aboveboard.audit(None, folder, "y", **options, skip="price_of_fairness", stream=True)
    assert streamed.subject["sensitive"] == memory.subject["sensitive"]
    assert streamed.subject["sensitive"][0]["groups"] == ["a", "b", "(missing)"]
    assert set(memory.notes) < set(streamed.notes)
    assert [f.id for f in streamed.findings] == [f.id for f in memory.findings]


def test_a_model_answers_batch_by_batch(table, tmp_path):
    asked = []

    def model(X):
        asked.append(len(X))
        score = 1 / (1 + np.exp(-X["x0"].to_numpy()))
        return np.column_stack([1 - score, score])

    columns = ["x0", "x1", "sex", "y"]
    folder = write(table[columns], tmp_path / "data", [1000, 2000])
    options = {"sensitive_features": ["sex"], "skip": ["duplicates"], "effort": "quick", "show_progress": False}
    memory = aboveboard.audit(model, table[columns], "y", **options)
    streamed = aboveboard.audit(model, folder, "y", **options, stream=True)
    assert max(asked) <= 3010
    kept = [json.loads(r.to_json())["findings"] for r in (memory, streamed)]
    assert differences(*kept) == []


def test_a_data_set_of_pyarrow_and_folders_named_for_values_are_read(table, tmp_path):
    folder = tmp_path / "data"
    pq.write_to_dataset(pa.Table.from_pandas(table, preserve_index=False), folder, partition_cols=["region"])
    ordered = pd.concat([rows for _, rows in table.groupby("region")], ignore_index=True)
    only = ["performance", "group_fairness"]
    expected = audited(ordered, "labels", only=only, sensitive_features=["region", "sex"], reference_group=None)
    for data in (folder, ds.dataset(folder, format="parquet", partitioning="hive")):
        for stream in (True, False):
            got = audited(data, "labels", only=only, sensitive_features=["region", "sex"], reference_group=None,
                          stream=stream)  # fmt: skip
            assert differences(expected["findings"], got["findings"]) == []


def test_types_of_the_user_and_of_the_training_data_are_applied_to_each_part(table, tmp_path):
    folder = write(table.assign(y=table["y"].astype(str)), tmp_path / "data", [1000, 2000])
    streamed = read_or_stream(folder, stream=True, types={"y": "number", "region": "category"})
    assert isinstance(streamed, StreamedTable)
    report = aboveboard.audit(None, streamed, "y", predictions="p", sensitive_features=["region"], only="performance")
    assert report.subject["classes"] == ["0", "1"]
    assert "y holds text values in the file and is read as number, as the [types] table says." in report.notes
    wrong = read_or_stream(folder, stream=True, types={"sex": "number"})
    with pytest.raises(InputError, match=r"part-000\.parquet: .*'sex' has the value"):
        aboveboard.audit(None, wrong, "y", predictions="p", sensitive_features=["sex"])


def test_numbers_with_many_values_are_cut_at_their_quartiles(table, tmp_path, monkeypatch):
    folder = write(table, tmp_path / "data", [1000, 2000])
    options = {"predictions": "p", "sensitive_features": ["w"], "only": "group_fairness", "show_progress": False}
    memory = aboveboard.audit(None, table, "y", **options)
    assert (
        aboveboard.audit(None, folder, "y", **options, stream=True).subject["sensitive"] == memory.subject["sensitive"]
    )
    monkeypatch.setattr("aboveboard.auditing.streaming.survey.MOST_DISTINCT", 100)
    monkeypatch.setattr(streamed_subject, "MOST_DISTINCT", 100)
    cut = aboveboard.audit(None, folder, "y", **options, stream=True)
    assert cut.subject["sensitive"] == memory.subject["sensitive"]  # quartiles of the rows drawn, here of all
    assert any("w has more than 100 distinct numbers and was cut" in note for note in cut.notes)


def test_what_does_not_stream_says_so(table, tmp_path):
    folder = write(table, tmp_path / "data", [3000])
    report = aboveboard.audit(None, folder, "y", predictions="p", stream=True, skip="leaks", effort="quick")
    (silent,) = [f for f in report.not_run if f.status == "skipped"]
    assert silent.check == "duplicates"
    assert "streamed" in silent.reason
    assert any("3,000 rows were read in parts and never held at once" in note for note in report.notes)


def test_data_are_streamed_where_they_would_not_fit(table, tmp_path, monkeypatch):
    folder = write(table, tmp_path / "data", [3000])
    assert not isinstance(read_or_stream(folder), StreamedTable)
    monkeypatch.setattr("aboveboard.auditing.streaming.available_memory", lambda: 100_000)
    assert isinstance(read_or_stream(folder), StreamedTable)
    assert not isinstance(read_or_stream(folder, stream=False), StreamedTable)
    with pytest.raises(InputError, match="cannot be streamed"):
        read_or_stream(tmp_path / "table.csv", stream=True)
    with pytest.raises(InputError, match="stream is set and X is a DataFrame"):
        aboveboard.audit(None, table, "y", predictions="p", stream=True)


def test_an_endpoint_is_not_asked_about_every_row(table, tmp_path):
    from aboveboard.auditing.model import ModelSource

    class Endpoint:
        source_ = ModelSource(format="endpoint", model="endpoint", name="scores")

        def __call__(self, X):
            raise AssertionError("it was asked")

    folder = write(table, tmp_path / "data", [3000])
    with pytest.raises(InputError, match="the model is an endpoint"):
        aboveboard.audit(Endpoint(), folder, "y", stream=True)


# --- refusals -------------------------------------------------------------------------------------------------------


def _refused(folder, message, **options):
    given_ = {"predictions": "p", "sensitive_features": ["sex"], "only": "performance", "stream": True}
    with pytest.raises(InputError, match=message) as caught:
        aboveboard.audit(None, folder, "y", **given_ | options)
    assert str(folder.parent) not in str(caught.value)


def _changed(table, folder, column, values, rows):
    """Write two files; the rows are changed in the second."""
    changed = table.copy()
    changed[column] = changed[column].astype(object if isinstance(values, str | None) else float)
    changed.loc[changed.index[rows], column] = values
    return write(changed, folder, [1500, 1500])


def test_what_is_amiss_is_said_of_the_file_that_has_it(table, tmp_path):
    late = [2000, 2001, 2999]
    for number, (column, value, message, options) in enumerate(
        [
            ("y", np.nan, r"part-001\.parquet: the target 'y' is missing in 3 rows", {}),
            ("p", np.nan, r"part-001\.parquet: the predictions 'p' have 3 missing or infinite values", {}),
            ("p", np.inf, r"part-001\.parquet: the predictions 'p' have 3 missing or infinite values", {}),
            ("p", 1.5, r"part-001\.parquet: 3 scores 'p' lie outside \[0, 1\]", {}),
            ("w", -1.0, r"part-001\.parquet: 3 weights are negative", {"sample_weight": "w"}),
            ("w", np.nan, r"part-001\.parquet: the weights 'w' have 3 missing", {"sample_weight": "w"}),
            ("who", np.nan, r"part-001\.parquet: the cluster column 'who' has 3 missing values", {"clusters": "who"}),
        ]
    ):
        _refused(_changed(table, tmp_path / f"{number}", column, value, late), message, **options)


def test_columns_that_are_not_there_or_play_two_parts_are_refused(table, tmp_path):
    folder = write(table.assign(same=1, zero=0.0), tmp_path / "data", [1000, 2000])
    _refused(folder, "no column 'sx' for the sensitive column.*Did you mean 'sex'", sensitive_features=["sx"])
    _refused(folder, "no column 'q' for the predictions", predictions="q")
    _refused(folder, "'y' is the target and cannot be the predictions too", predictions="y")
    _refused(folder, "'y' is the target and cannot be the weights too", sample_weight="y")
    _refused(folder, "'y' is the target and cannot be the sensitive column too", sensitive_features=["y"])
    _refused(folder, "'sex' was named twice", sensitive_features=["sex", "sex"])
    _refused(folder, "sensitive features are a DataFrame", sensitive_features=table[["sex"]])
    _refused(folder, "the weights is a ndarray", sample_weight=np.ones(3))
    _refused(folder, "the cluster column 'same' has one value only", clusters="same")
    _refused(folder, "all weights are zero", sample_weight="zero")
    with pytest.raises(InputError, match="in every row"):
        aboveboard.audit(None, folder, "same", predictions="p", stream=True)


def test_too_many_clusters_are_refused(table, tmp_path, monkeypatch):
    monkeypatch.setattr("aboveboard.auditing.streaming.survey.MOST_CLUSTERS", 100)
    _refused(write(table, tmp_path / "data", [3000]), "there are more than 100 clusters", clusters="who")


def test_too_many_groups_are_refused(table, tmp_path):
    folder = write(table.assign(name=[f"n{i}" for i in range(3000)]), tmp_path / "data", [3000])
    _refused(folder, "'name' has 3,000 groups", sensitive_features=["name"])


def test_no_row_and_one_row_are_refused(table, tmp_path):
    _refused(write(table.iloc[:0], tmp_path / "none", [0]), "the data have no rows")
    _refused(write(table.iloc[:1], tmp_path / "one", [1]), "the data have one row")


def test_names_of_any_kind_go_through(hostile_name, tmp_path):
    n = 60
    rng = np.random.default_rng(0)
    if any("\ud800" <= char <= "\udfff" for char in hostile_name):
        pytest.skip("half of a surrogate pair is no text, and Parquet holds none")
    frame = pd.DataFrame({"y": np.arange(n) % 2, "p": rng.random(n), "g": [hostile_name, "other"] * (n // 2)})
    frame[hostile_name if hostile_name not in frame else "z"] = rng.choice(["u", "v"], n)
    folder = write(frame, tmp_path / "data", [20, 40])
    sensitive = [str(frame.columns[-1]), "g"]
    options = {"predictions": "p", "sensitive_features": dict.fromkeys(sensitive), "only": ["group_fairness"]}
    memory = aboveboard.audit(None, frame, "y", **options)
    streamed = aboveboard.audit(None, folder, "y", **options, stream=True)
    found = [[f.to_dict() for f in report.findings] for report in (memory, streamed)]
    assert differences(*found) == []


def test_checks_that_are_summed_up_have_the_three_steps():
    from importlib import import_module

    from aboveboard.auditing.suites import TABULAR

    for spec in TABULAR:
        module = import_module(f"aboveboard.auditing.checks.{spec.name}")
        if spec.streams == "sums":
            assert all(callable(getattr(module, step)) for step in ("layout", "summarise", "judge"))
    assert {spec.name for spec in TABULAR if spec.streams == "sums"} >= SUMMED
    assert group_missingness.layout
