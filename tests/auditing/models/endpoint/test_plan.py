import pandas as pd
import pytest

pytest.importorskip("httpx")

from aboveboard.auditing.models.endpoint import FirstQuestion
from aboveboard.auditing.models.endpoint.plan import Plan, plan
from aboveboard.auditing.suites import select

X = pd.DataFrame({"a": range(1000), "b": ["x"] * 1000})


def planned(checks, *, effort="quick", training_rows=0, batch_rows=100, distinct=1000, task="binary"):
    question = FirstQuestion(X, distinct, task, batch_rows)
    return plan(question, select(checks), effort=effort, training_rows=training_rows)


def test_checks_that_look_at_given_answers_ask_nothing():
    found = planned(("group_fairness", "calibration", "model_outputs", "duplicates"))
    assert (found.first, found.checks, found.rows) == (10, {}, 1000)


def test_determinism_asks_three_times_about_all_then_in_batches_of_64_then_about_single_rows():
    found = planned(("model_determinism",))  # effort quick: 500 rows, 10 of them alone
    assert found.checks == {"Determinism": 3 * 5 + 8 + 10}
    assert found.rows == 1000 + 4 * 500 + 10
    assert planned(("model_determinism",), batch_rows=10).checks == {"Determinism": 3 * 50 + 7 * 7 + 6 + 10}


def test_performance_asks_about_training_rows_where_there_are_any():
    assert planned(("performance",)).checks == {}
    assert planned(("performance",), training_rows=150).checks == {"Performance": 2}
    assert planned(("performance",), training_rows=10**6).checks == {"Performance": 20}  # effort quick: 2,000 rows


def test_older_data_are_asked_about_too():
    found = plan(FirstQuestion(X, 1000, "binary", 100), select(("score_drift",)), effort="quick", reference_rows=250)
    assert (found.requests, found.rows) == (13, 1250)
    assert "10 for the predictions, 3 for those on the reference." in found.text(None)


def test_equal_rows_are_planned_once():
    assert planned(("performance",), distinct=101).first == 2


def test_the_plan_is_told_in_plain_sentences():
    text = Plan(10, 0, {"Determinism": 33}, 3010, ("age", "job")).text(None)
    assert text == (
        "The endpoint will be asked at most 43 times, about 3,010 rows in all: 10 for the predictions, 33 by "
        "Determinism. Retries come on top. Of each row it gets: age, job."
    )
    assert Plan(1, 0, {}, 5, tuple(f"c{i}" for i in range(48))).text(None).endswith("c39 and 8 more.")


@pytest.mark.parametrize(
    ("most", "end"),
    [
        (43, "No more than 43 requests are made, retries included."),
        (42, "retries included; checks for which they do not reach are skipped."),
    ],
)
def test_the_plan_says_whether_the_queries_reach(most, end):
    assert Plan(10, 0, {"Determinism": 33}, 3010, ("age",)).text(most).endswith(end)
