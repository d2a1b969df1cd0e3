"""Audits among the tests: what passes, what fails, and what the failure says."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from aboveboard.core import Finding, InputError, Interval, Report
from aboveboard.testing import assert_no_findings, assert_no_worse


def finding(name, severity="ok", status="ran", **more):
    check = name.partition("/")[0]
    return Finding(
        id=name, check=check, area="fairness", statement=f"{name} says.", severity=severity, status=status, **more
    )


def report(*findings, **options):
    ran = [f for f in findings if f.status in ("ran", "inconclusive")]
    rest = [f for f in findings if f.status not in ("ran", "inconclusive")]
    about = {"task": "binary", "target": "y"}
    return Report(subject=about, findings=tuple(ran), not_run=tuple(rest), **options)


FAIL = finding(
    "group_fairness/rate/sex", "fail", value=0.2, interval=Interval(0.1, 0.3), limit=0.05, n=900, reason="Beyond.",
    remedies=("RandomizedFairClassifier",),
)  # fmt: skip
GROUP = finding("group_fairness/rate/sex=Female", "fail", group="sex=Female")


def test_a_report_without_findings_that_count_is_returned():
    one = report(finding("calibration/ece", "warn"))
    assert assert_no_findings(one) is one


def test_the_message_says_what_counts_how_sure_it_is_and_what_can_mend_it():
    with pytest.raises(AssertionError) as caught:
        assert_no_findings(report(FAIL, GROUP, finding("calibration/ece", "warn")))
    assert str(caught.value).splitlines() == [
        '1 finding counts (fail_on="fail"):',
        "",
        "✖ Fail  group_fairness/rate/sex",
        "    group_fairness/rate/sex says.",
        "    95\u00a0% interval 0.1 to 0.3, 900 rows; limit 0.05",
        "    Beyond.",
        "    Groups: group_fairness/rate/sex=Female",
        "    Remedy: RandomizedFairClassifier (aboveboard methods RandomizedFairClassifier)",
        "",
        'What somebody decided to live with: accept=[{"id": "group_fairness/rate/sex", "reason": "..."}]',
    ]


@pytest.mark.parametrize(
    ("one", "options"),
    [
        (finding("calibration/ece", "warn"), {"fail_on": "warn"}),
        (finding("calibration/ece", "note"), {"fail_on": "note"}),
        (finding("calibration/ece", status="inconclusive"), {"strict": True}),
        (finding("calibration", status="skipped"), {"strict": True}),
        (finding("calibration/ece", "fail"), {"only": "calibration"}),
        (finding("calibration/ece", "fail"), {"only": ["performance", "calibration"]}),
        (finding("calibration/ece", "fail"), {"accept": [{"id": "calibration/gap", "reason": "known"}]}),
        (
            finding("calibration/ece", "fail"),
            {"accept": [{"id": "calibration/ece", "reason": "known", "expires": "2020-01-01"}]},
        ),
        (finding("calibration", status="error", reason="It broke."), {}),
    ],
)
def test_what_counts_fails(one, options):
    with pytest.raises(AssertionError, match="calibration"):
        assert_no_findings(report(one), **options)


@pytest.mark.parametrize(
    ("one", "options"),
    [
        (finding("calibration/ece", "warn"), {}),
        (finding("calibration/ece", status="inconclusive"), {}),
        (finding("calibration/ece", "fail"), {"only": "fairness"}),
        (finding("calibration/ece", "fail"), {"skip": "calibration"}),
        (finding("calibration", status="error"), {"skip": ["calibration"]}),
        (finding("calibration/ece", "fail"), {"accept": [{"id": "calibration/ece", "reason": "known"}]}),
        (finding("calibration/ece", "fail"), {"baseline": report(finding("calibration/ece", "fail"))}),
    ],
)
def test_what_does_not_count_passes(one, options):
    assert_no_findings(report(one), **options)


def test_an_audit_that_was_interrupted_proves_nothing():
    with pytest.raises(AssertionError, match=r"Not every check ran.*\n.*interrupted"):
        assert_no_findings(report(complete=False))


def test_reports_are_read_from_files(tmp_path):
    report(FAIL).to_json(tmp_path / "r.json")
    assert_no_findings(tmp_path / "r.json", baseline=str(tmp_path / "r.json"))
    with pytest.raises(AssertionError, match="group_fairness/rate/sex"):
        assert_no_findings(str(tmp_path / "r.json"))


def test_a_model_or_its_predictions_are_audited():
    rng = np.random.default_rng(0)
    sex, score = rng.choice(["f", "m"], 600), rng.random(600)
    y = (rng.random(600) < score).astype(int)
    frame = pd.DataFrame({"sex": sex, "score": score})
    options = {"sensitive_features": ["sex"], "only": "group_fairness", "effort": "quick", "show_progress": False}
    fair = assert_no_findings(None, frame, y, predictions="score", **options)
    assert {f.check for f in fair.findings} == {"group_fairness"}
    frame["score"] = np.where(sex == "f", 0.0, frame["score"])
    with pytest.raises(AssertionError, match=r"✖ Fail  group_fairness/selection_rate/sex\n.*sex=f"):
        assert_no_findings(None, frame, y, predictions="score", **options)
    with pytest.raises(AssertionError, match="true_positive_rate"):
        assert_no_findings(
            None, frame, y, predictions="score",
            accept=[{"id": f"group_fairness/selection_rate/sex{g}", "reason": "known"} for g in ("", "=f", "=m")],
            **options,
        )  # fmt: skip


def test_what_cannot_be_used_is_refused():
    for arguments, options, message in (
        ((3,), {}, "int was given as the report"),
        ((report(),), {"sensitive_features": ["sex"]}, "sensitive_features was given and no X"),
        ((report(), None, [1]), {}, "y was given and no X"),
        ((report(),), {"only": "calibraton"}, "calibraton"),
        ((report(),), {"accept": [{"id": "x"}]}, "an accepted finding has id"),
    ):
        with pytest.raises(InputError, match=message):
            assert_no_findings(*arguments, **options)


def test_nothing_worse_gives_the_comparison():
    comparison = assert_no_worse(report(finding("c/x")), report(finding("c/x", "fail")))
    assert comparison.counts == {"better": 1}


def test_what_is_worse_is_told_with_what_it_was():
    with pytest.raises(AssertionError) as caught:
        assert_no_worse(report(finding("c/x", "fail"), finding("c/y", "warn")), report(finding("c/x")))
    text = str(caught.value)
    assert text.startswith('2 findings are new or worse and count (fail_on="warn"):')
    assert "✖ Fail  c/x  (was OK)" in text
    assert "▲ Warning  c/y  (new)" in text
    assert assert_no_worse(report(finding("c/y", "warn")), report(), fail_on="fail").counts == {"new": 1}


def test_a_long_list_is_cut():
    with pytest.raises(AssertionError, match=r"10 more: c/20, "):
        assert_no_findings(report(*(finding(f"c/{at}", "fail") for at in range(30))))


def test_a_hostile_name_forges_no_line_of_the_message(hostile_name):
    hostile = dataclasses.replace(
        FAIL, id=f"c/{hostile_name}", statement=hostile_name, reason=hostile_name, remedies=(hostile_name,)
    )
    with pytest.raises(AssertionError) as caught:
        assert_no_findings(report(hostile, dataclasses.replace(GROUP, id=f"c/{hostile_name}=", group=hostile_name)))
    lines = str(caught.value).split("\n")
    assert not re.search(
        r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", str(caught.value)
    )
    assert len(lines) <= 16
    assert not [line for line in lines if line.startswith("::")]


def test_pytest_shows_the_message_and_the_test_not_our_code(tmp_path):
    report(FAIL).to_json(tmp_path / "r.json")
    (tmp_path / "test_model.py").write_text(
        "from aboveboard.testing import assert_no_findings\n\n\ndef test_fair():\n    assert_no_findings('r.json')\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "test_model.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUTF8": "1"},
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^E +AssertionError: 1 finding counts", done.stdout, re.MULTILINE)
    assert re.search(r"^E +✖ Fail  group_fairness/rate/sex$", done.stdout, re.MULTILINE)
    assert "def assert_no_findings" not in done.stdout
    assert Path("test_model.py").name in done.stdout
