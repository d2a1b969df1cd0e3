"""A suite through `aboveboard.audit`: options that it shares with all, and those that it refuses."""

import numpy as np
import pandas as pd
import pytest

import aboveboard
from aboveboard.auditing import suite_audit
from aboveboard.auditing.subjects import ranking
from aboveboard.core import InputError

VOTES = pd.DataFrame(np.tile([3.0, 2.0, 1.0], (20, 1)), columns=["a", "b", "c"])


def audited(data=VOTES, **options):
    return aboveboard.audit(
        None, data, suite="ranking", **({"settings": {"votes": "score"}, "effort": "quick"} | options)
    )


def test_only_its_own_checks_can_be_named():
    assert {f.check for f in audited(only="rank_audit").findings} == {"rank_audit"}
    with pytest.raises(InputError, match="It belongs to the suite tabular"):
        audited(only="group_fairness")
    with pytest.raises(InputError, match="It belongs to the suite ranking"):
        aboveboard.audit(None, VOTES, "a", predictions="b", only="rank_audit")
    with pytest.raises(InputError, match="no check to run"):
        audited(skip="ranking")


def test_acceptances_limits_seed_and_smallest_cell_are_those_of_every_audit():
    report = audited(
        accept=[{"id": "rank_audit/order", "reason": "known"}],
        limits={"rank_audit.dissent": 0.2},
        min_cell=5,
        random_state=7,
    )
    assert report.accepted[0]["found"]
    assert {limit["name"]: limit["value"] for limit in report.limits}["rank_audit.dissent"] == 0.2
    assert report.subject["min_cell"] == 5
    assert report.seed == 7
    assert report.to_dict()["subject"] == audited(min_cell=5).to_dict()["subject"]


def test_an_array_is_a_table_with_numbered_columns():
    assert audited(VOTES.to_numpy()).subject["facts"][0] == {"name": "Items", "value": 3}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": "a"}, "y was given and the suite is ranking"),
        ({"predictions": "a"}, "predictions was given"),
        ({"task": "binary"}, "task was given"),
        ({"drop": ["a"]}, "drop was given"),
        ({"sensitive_features": ["a"]}, "sensitive_features was given"),
        ({"columns": {"judges": "a"}}, "has no role called 'judges'.*Did you mean 'judge'"),
        ({"settings": {"vote": "rank"}}, "has no setting called 'vote'"),
        ({"min_cell": 0}, "the smallest cell is 0"),
        ({"n_jobs": 0}, "the number of jobs is 0"),
        ({"limits": {"rank_audit.x": 1}}, "no limit is called"),
        ({"data": VOTES.head(0)}, "the data have no rows"),
        ({"data": "votes.csv"}, "the data is a str"),
        ({"data": None, "columns": {"item": "a"}}, "columns were named and no data were given"),
    ],
)
def test_what_a_suite_cannot_use_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        audited(**options)


def test_a_model_and_an_unknown_suite_are_refused():
    with pytest.raises(InputError, match="model was given"):
        aboveboard.audit(object(), VOTES, suite="ranking")
    with pytest.raises(InputError, match=r"no suite is called 'rankings'.*Did you mean 'ranking'"):
        aboveboard.audit(None, VOTES, suite="rankings")


@pytest.mark.parametrize("option", ["columns", "settings"])
def test_the_tabular_suite_takes_no_roles(option):
    with pytest.raises(InputError, match=f"{option} were given and the suite is tabular"):
        aboveboard.audit(None, VOTES, "a", predictions="b", **{option: {"x": "y"}})


def test_findings_on_simulated_data_say_so(monkeypatch):
    made = ranking.example(random_state=0)
    monkeypatch.setattr(
        ranking,
        "example",
        lambda *, random_state: suite_audit.Example(
            frame=made.frame, columns=made.columns, settings=made.settings, data="simulated", note="Made up."
        ),
    )
    report = aboveboard.audit(None, suite="ranking", effort="quick")
    assert {finding.data for finding in report.findings} == {"simulated"}
    assert report.subject["data"] == "simulated"
    assert "Made up." in report.notes
    assert "simulated" in report.to_html()


def test_settings_of_the_user_win_over_those_of_the_example():
    report = aboveboard.audit(None, suite="ranking", settings={"missing": "rescale"}, effort="quick")
    assert {"name": "Missing votes count as", "value": "rescale"} in report.subject["facts"]


def test_an_interrupt_keeps_what_was_found(monkeypatch):
    from aboveboard.auditing.checks import rank_stability

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rank_stability, "check", stop)
    report = audited()
    assert not report.complete
    assert {finding.check for finding in report.findings} == {"rank_audit"}
