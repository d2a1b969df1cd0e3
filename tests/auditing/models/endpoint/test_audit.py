"""An audit of an endpoint from end to end, against a server that holds a fitted model."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

pytest.importorskip("httpx")

import aboveboard
from aboveboard.auditing.models.endpoint import Endpoint
from aboveboard.auditing.models.endpoint.plan import plan
from aboveboard.auditing.suites import select
from aboveboard.cli import main
from aboveboard.core.errors import InputError, ModelError
from aboveboard.data import load_german_credit

ASKING = ("performance", "group_fairness", "model")
SECRET = "tok-9f8e7d6c5b4a"
IN_OTHER_WORDS = {
    "an error (ValueError)": "an error (status 500)",
    "Only its own probabilities can be used: LogisticRegression is no ensemble that can be asked member by member: it "
    "shows no members.": "A model from a file or an address shows its answers and not its members; give the model "
    "itself to aboveboard.audit, and the measures of an ensemble are compared.",
}
"""What is said of a model at hand, and what of the same model behind an endpoint."""
CREDIT = load_german_credit()
COLUMNS = ["duration", "amount", "purpose", "age"]
X, Y = CREDIT.X[COLUMNS].astype({"purpose": object}), CREDIT.y.astype(str)


@pytest.fixture(scope="module")
def model():
    encode = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["purpose"]), (StandardScaler(), ["duration", "amount", "age"])
    )
    return make_pipeline(encode, LogisticRegression()).fit(X[:500], Y[:500])


@pytest.fixture
def served(serve, http, model):
    """The model behind a server that wants a token where `token` is given."""

    def start(answer=None, token=None, spoil=None):
        def behave(request, connection):
            if spoil is not None and (spoilt := spoil(request)) is not None:
                return spoilt
            if token is not None and request.headers.get("authorization") != f"Bearer {token}":
                return http({"error": "who are you?"}, status=401)
            try:
                return http((answer or both)(model, pd.DataFrame(request.rows)))
            except Exception as error:
                return http({"error": type(error).__name__}, status=500)

        return serve(behave)

    return start


def both(model, rows):
    return {
        "labels": model.predict(rows).tolist(),
        "probabilities": model.predict_proba(rows).tolist(),
        "classes": model.classes_.tolist(),
    }


def audit(model, **options):
    return aboveboard.audit(
        model, X[500:], Y[500:], **{"positive": "bad", "effort": "quick", "sensitive_features": ["age:26"]} | options
    )


def findings(report):
    return [finding.to_dict() for finding in (*report.findings, *report.not_run)]


# --- findings ---------------------------------------------------------------------------------------------------------


def test_an_endpoint_gets_the_findings_of_its_model(served, model):
    server = served()
    with Endpoint(server.url, batch_rows=70) as endpoint:
        report = audit(endpoint, skip="reasons")  # of which fewer are looked into behind an address
    expected = audit(model, skip="reasons")
    found, own = (json.dumps(findings(each)) for each in (report, expected))
    for at_hand, behind in IN_OTHER_WORDS.items():
        assert at_hand in own
        own = own.replace(at_hand, behind)
    assert found == own
    assert report.subject["model"] == "HTTP endpoint"
    assert report.subject["model_source"]["format"] == "endpoint"
    assert f"{len(server.requests):,} requests" in report.subject["model_source"]["name"]
    same = set(report.subject) - {"model", "model_source"}
    assert {key: report.subject[key] for key in same} == {key: expected.subject[key] for key in same}
    assert {tuple(row) for request in server.requests for row in request.rows} <= {
        tuple(COLUMNS), tuple(reversed(COLUMNS))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "gives"),
    [
        (lambda m, rows: {"predictions": m.predict_proba(rows)[:, 0].tolist()}, "score"),  # bad is the first class
        (lambda m, rows: [dict(zip(m.classes_, row, strict=True)) for row in m.predict_proba(rows).tolist()], "score"),
        (lambda m, rows: {"predictions": m.predict_proba(rows).tolist()}, "score"),
        (lambda m, rows: {"predictions": m.predict(rows).tolist()}, "label"),
    ],
    ids=["positive", "by-name", "by-position", "labels"],
)
def test_each_form_of_answer_gives_the_same_rates(served, model, answer, gives):
    with Endpoint(served(answer).url) as endpoint:
        report = audit(endpoint, only=["performance", "group_fairness", "model"])
    assert report.subject["prediction_type"] == gives
    expected = {finding.id: finding.value for finding in audit(model, only="group_fairness").findings}
    got = {finding.id: finding.value for finding in report.findings if finding.check == "group_fairness"}
    assert {name: got[name] for name in got if "calibration" not in name} == {
        name: expected[name] for name in expected if "calibration" not in name
    }
    assert not [finding for finding in report.findings if finding.status == "error"]


def test_a_regression_behind_an_endpoint_gets_the_findings_of_its_model(serve, http):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    y = rows["a"] * 3 + rng.normal(size=300)
    model = RandomForestRegressor(5, random_state=0).fit(rows, y)

    def behave(request, connection):
        table = request.json["dataframe_split"]
        try:
            return http({"predictions": model.predict(pd.DataFrame(table["data"], columns=table["columns"])).tolist()})
        except ValueError:
            return http({"error_code": "BAD_REQUEST"}, status=400)

    options = {"effort": "quick", "only": ["performance", "model"]}
    with Endpoint(serve(behave).url, format="mlflow") as endpoint:
        report = aboveboard.audit(endpoint, rows, y, **options)
    assert [f.to_dict()["value"] for f in report.findings] == [
        f.to_dict()["value"] for f in aboveboard.audit(model, rows, y, **options).findings
    ]


def test_several_checks_at_once_give_the_same_findings(served):
    with Endpoint(served().url, concurrency=3, batch_rows=50) as endpoint:
        report = audit(endpoint, only=ASKING, n_jobs=4)
        assert findings(report) == findings(audit(endpoint, only=ASKING))


def test_answers_that_flap_are_found_by_the_check_of_determinism(served, model):
    def flapping(request):
        return None if request.number == 0 else request_answer(request)

    def request_answer(request):
        body = json.dumps({"predictions": [0.3 + 0.4 * (request.number % 2)] * len(request.rows)}).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)

    server = served(lambda m, rows: {"predictions": m.predict_proba(rows)[:, 0].tolist()}, spoil=flapping)
    with Endpoint(server.url, batch_rows=1000) as endpoint:
        report = audit(endpoint, only="model_determinism")
    assert {finding.id: finding.severity for finding in report.findings}["model_determinism/repeat"] == "fail"


def test_a_row_that_the_server_cannot_take_is_a_finding_and_not_the_end(served, http):
    def spoil(request):
        return http({"detail": "null"}, status=422) if any(None in row.values() for row in request.rows) else None

    with Endpoint(served(spoil=spoil).url) as endpoint:
        report = audit(endpoint, only="model_inputs")
    missing = next(finding for finding in report.findings if finding.id == "model_inputs/missing/number")
    assert missing.statement.endswith("with an error (status 422).")


def test_a_server_that_goes_away_in_the_middle_ends_the_audit_with_a_model_error(served):
    server = served(spoil=lambda request: b"no http\r\n\r\n" if request.number > 0 else None)
    with Endpoint(server.url) as endpoint, pytest.raises(ModelError, match="no HTTP"):
        audit(endpoint, only="model_determinism", train=None)


# --- how many requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_rows", [30, 64, 1000])
@pytest.mark.parametrize("train", [False, True])
def test_an_audit_makes_no_more_requests_than_planned(served, batch_rows, train):
    server, plans = served(), []

    def announce(question):
        plans.append(plan(question, select(ASKING), effort="quick", training_rows=500 if train else 0))
        assert server.requests == []

    with Endpoint(server.url, batch_rows=batch_rows, announce=announce) as endpoint:
        audit(endpoint, train=(X[:500], Y[:500]) if train else None, only=ASKING)
    (planned,) = plans
    assert len(server.requests) == endpoint.requests <= planned.requests
    assert planned.requests - len(server.requests) <= 5 * -(-50 // batch_rows)  # probes that do not apply
    assert planned.rows >= endpoint.rows_sent == sum(len(request.rows) for request in server.requests)


@pytest.mark.parametrize("effort", ["quick", "standard"])
def test_reasons_take_no_more_requests_and_rows_than_planned(served, effort):
    server, plans = served(), []

    def announce(question):
        plans.append(plan(question, select(("reasons",)), effort=effort))

    with Endpoint(server.url, batch_rows=500, announce=announce) as endpoint:
        report = audit(endpoint, only="reasons", effort=effort)
    assert {finding.id for finding in report.findings} >= {"reasons/importance", "reasons/resampling"}
    assert len(server.requests) == endpoint.requests <= plans[0].requests
    assert endpoint.rows_sent <= plans[0].rows <= 30_000


def test_reasons_are_skipped_when_the_queries_are_spent(served):
    with Endpoint(served().url, batch_rows=500, max_queries=5) as endpoint:
        report = audit(endpoint, only="reasons")
    assert [(finding.id, finding.status) for finding in report.not_run] == [("reasons", "skipped")]


@pytest.mark.parametrize("spare", [0, 1, 12, 30])
def test_when_the_queries_are_spent_the_rest_is_skipped_and_the_findings_stay(served, spare):
    server = served()
    with Endpoint(server.url, batch_rows=100, max_queries=5 + spare) as endpoint:
        report = audit(endpoint, only=ASKING)
    assert len(server.requests) <= 5 + spare
    skipped = [finding for finding in report.not_run if finding.status == "skipped"]
    assert skipped
    assert all("max_queries" in finding.reason for finding in skipped)
    assert {finding.check for finding in skipped} <= {"model_determinism", "model_inputs"}
    assert not [finding for finding in report.not_run if finding.status == "error"]
    with Endpoint(served().url) as other:
        expected = {finding.id: finding.to_dict() for finding in audit(other, only=ASKING).findings}
    assert all(expected[finding.id] == finding.to_dict() for finding in report.findings)
    found = {finding.id for finding in report.findings}
    assert [finding.id for finding in skipped] == [finding.check for finding in skipped]
    assert {name for name in expected if name not in found} == {
        name for name in expected if name.partition("/")[0] in {f.id for f in skipped} and name not in found
    }
    for finding in skipped:
        begun = any(name.startswith(finding.id) for name in found)
        assert ("Left out: " in finding.reason) == begun


def test_older_data_are_asked_about_as_far_as_the_queries_reach(served):
    server = served()
    for most, asked in ((10, True), (9, False)):
        with Endpoint(server.url, batch_rows=100, max_queries=most) as endpoint:
            report = audit(endpoint, reference=(X[:500], Y[:500]), only=("score_drift", "label_drift"))
        ran = {finding.check for finding in report.findings}
        assert ("score_drift" in ran) == asked
        assert "label_drift" in ran
        assert any("was not asked about the reference data" in note for note in report.notes) != asked


def test_fewer_queries_than_the_first_question_takes_are_refused(served):
    server = served()
    with Endpoint(server.url, batch_rows=100, max_queries=4) as endpoint, pytest.raises(InputError, match="5 requests"):
        audit(endpoint)
    assert server.requests == []


# --- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCORING_TOKEN", SECRET)
    rows = X[500:].assign(
        risk=Y[500:], person=range(500), weight=1.5, sex=CREDIT.X["personal_status_sex"][500:].astype(str)
    )
    rows.to_csv(tmp_path / "loans.csv", index=False)
    return tmp_path


@dataclass
class Done:
    exit_code: int
    output: str
    stderr: str


@pytest.fixture
def run(capsys):
    """Run the command line: run(*arguments) -> exit status, output and errors."""

    def start(*arguments, before=()):
        capsys.readouterr()
        with pytest.raises(SystemExit) as caught:
            main([*before, "audit", *arguments], prog_name="aboveboard")
        return Done(int(caught.value.code or 0), *capsys.readouterr())

    return start


def common(server):
    return [
        "loans.csv", "--target", "risk", "--positive", "bad", "--model", server.url, "--sensitive", "sex",
        "--sensitive", "age:26", "--drop", "sex", "--id", "person", "--weight", "weight", "--effort", "quick",
    ]  # fmt: skip


def test_the_command_line_audits_an_endpoint_and_sends_nothing_but_features(run, served, table):
    server = served(token=SECRET)
    done = run(*common(server), "--auth-env", "SCORING_TOKEN", "--batch-rows", "100", "--max-queries", "500")
    assert done.exit_code in (0, 1), done.output
    assert "The endpoint will be asked at most" in done.stderr
    assert "Of each row it gets: duration, amount, purpose, age." in done.stderr
    assert "No more than 500 requests are made, retries included." in done.stderr
    for request in server.requests:
        assert all(set(row) == set(COLUMNS) for row in request.rows)
    report = json.loads((table / "aboveboard-report" / "report.json").read_text())
    page = (table / "aboveboard-report" / "index.html").read_text()
    assert report["subject"]["model"] == "HTTP endpoint"
    for text in (done.output, done.stderr, json.dumps(report), page):
        assert SECRET not in text
        assert "127.0.0.1" not in text
        assert f":{server.port}" not in text
        assert "/v1/predict" not in text


def test_the_plan_stands_before_the_first_request(run, served, table, http):
    server = served(spoil=lambda request: http(status=500))
    done = run(*common(server))
    assert done.exit_code == 3
    lines = done.stderr.splitlines()
    assert lines[0].startswith("The endpoint will be asked at most")
    assert lines[-1] == "Error: The endpoint answered with status 500 and the text '{}'.".replace("{}", "{}")
    assert not (table / "aboveboard-report").exists()


@pytest.mark.parametrize(
    ("misbehave", "message"),
    [
        (lambda r, c: None, "closed the connection"),
        (lambda r, c: b"HTTP/1.1 301 No\r\nLocation: https://x.example\r\nContent-Length: 0\r\n\r\n", "redirects"),
        (lambda r, c: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n", "'text/html'"),
    ],
)
def test_a_server_that_misbehaves_is_exit_status_3(run, serve, table, misbehave, message, pauses):
    done = run(*common(serve(misbehave)), "--auth-env", "SCORING_TOKEN")
    assert done.exit_code == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert SECRET not in done.output + done.stderr


def test_a_traceback_that_was_asked_for_shows_no_secret(run, serve, table, pauses):
    server = serve(lambda request, connection: None)
    done = run(*common(server), "--auth-env", "SCORING_TOKEN", before=["-v"])
    assert done.exit_code == 3
    assert "Traceback" in done.stderr
    assert SECRET not in done.stderr
    assert f":{server.port}" not in done.stderr


def test_spent_queries_are_no_error_and_with_strict_they_count(run, served, table):
    server = served()
    few = ["--max-queries", "6", "--batch-rows", "100", "--only", "model_determinism"]
    done = run(*common(server), *few)
    assert done.exit_code == 0, done.stderr
    assert "checks for which they do not reach are skipped" in done.stderr
    report = json.loads((table / "aboveboard-report" / "report.json").read_text())
    assert {finding["status"] for finding in report["not_run"]} == {"skipped"}
    assert run(*common(server), *few, "--strict").exit_code == 1


def test_too_few_queries_are_refused(run, served, table):
    done = run(*common(served()), "--max-queries", "2", "--batch-rows", "100")
    assert done.exit_code == 2
    assert "the first question alone takes 5 requests" in done.stderr
    assert "--max-queries" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "http://models.example/p"], "plain http"),
        (["--model", "https://me:s3cret@models.example/p"], "user name or a password"),
        (["--model", "https://models.example/p", "--auth-env", "NO_SUCH_VARIABLE"], "'NO_SUCH_VARIABLE' is not set"),
        (["--model", "https://models.example/p", "--ca-file", "no.pem"], "no certificates could be read from 'no.pem'"),
        (["--model", "https://models.example/p", "--batch-rows", "0"], "batch_rows is 0"),
        (["--model", "model.skops", "--max-queries", "5"], "--max-queries was given and the model is no endpoint"),
        (["--predictions", "age", "--batch-rows", "5"], "--batch-rows was given and the model is no endpoint"),
        (["--predictions", "age", "--auth-env", "SCORING_TOKEN"], "--auth-env was given and no --model"),
    ],
)
def test_bad_input_is_refused_before_any_request(run, table, arguments, message):
    done = run("loans.csv", "--target", "risk", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "s3cret" not in done.stderr


def test_a_config_may_name_the_endpoint_and_never_who_gets_the_secret(run, served, table):
    server = served()
    lines = [
        'data = "loans.csv"', 'target = "risk"', 'positive = "bad"', f'model = "{server.url}"', "batch-rows = 100",
        "max-queries = 5", 'drop = ["person", "weight", "sex"]', 'only = "performance"',
    ]  # fmt: skip
    config = table / "audit.toml"
    config.write_text("\n".join(lines))
    assert run("--config", "audit.toml").exit_code == 0
    assert len(server.requests) == 5
    done = run("--config", "audit.toml", "--auth-env", "SCORING_TOKEN")
    assert done.exit_code == 2
    assert "a config must not choose who gets a secret" in done.stderr
    config.write_text("\n".join([*lines, 'auth-env = "SCORING_TOKEN"']))
    done = run("--config", "audit.toml")
    assert done.exit_code == 2
    assert "--auth-env on the command line" in done.stderr
    assert len(server.requests) == 5


def test_numbers_are_read_as_the_prediction_type_says(run, serve, http, table):
    server = serve(lambda request, connection: http([row["age"] % 2 for row in request.rows]))
    rows = pd.read_csv("loans.csv").assign(risk=lambda frame: (frame["risk"] == "bad").astype(int))
    rows.to_csv("loans.csv", index=False)
    base = ["loans.csv", "--target", "risk", "--model", server.url, "--only", "performance"]
    for kind in ("label", "score"):
        assert run(*base, "--prediction-type", kind).exit_code in (0, 1)
        report = json.loads((table / "aboveboard-report" / "report.json").read_text())
        assert report["subject"]["prediction_type"] == kind


def test_codes_are_read_by_the_classes_that_were_named(run, served, table, model):
    coded = served(lambda m, rows: {"predictions": [int(label == "bad") for label in m.predict(rows)]})
    for server, more in ((coded, ["--model-classes", "good,bad"]), (served(), [])):
        assert run(*common(server), *more, "--only", "group_fairness").exit_code in (0, 1)
        report = json.loads((table / "aboveboard-report" / "report.json").read_text())
        values = {f["id"]: f["value"] for f in report["findings"] if "calibration" not in f["id"]}
        if server is coded:
            first = values
    assert first == values


def test_without_httpx_the_message_names_the_extra(table):
    code = (
        "import sys; sys.modules['httpx'] = None\n"
        "from aboveboard.cli import main\n"
        "main(['audit', 'loans.csv', '--target', 'risk', '--model', 'https://models.example/p'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 2
    assert "pip install 'aboveboard[http]'" in done.stderr
