"""What an endpoint may do to an audit, and what it gets to see."""

import inspect
import json
import logging
import threading
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("httpx")

from aboveboard.auditing.models.endpoint import Endpoint
from aboveboard.core.errors import InputError, ModelError, QueriesSpent

X = pd.DataFrame({"age": [39, 40, 41, 42], "job": ["a", "b", None, "a"]})
SECRET = "tok-9f8e7d6c5b4a"


def score(row):
    return (row["age"] - 30) / 20


def scoring(http, function=score):
    """Answer with a number for each row."""
    return lambda request, connection: http({"predictions": [function(row) for row in request.rows]})


def in_turn(*answers):
    """Give each answer once, the last one for ever."""
    return lambda request, connection: answers[min(request.number, len(answers) - 1)]


@pytest.fixture
def opened():
    made = []

    def make(server, **options):
        made.append(Endpoint(server.url, **{"read_timeout": 20.0, "timeout": 20.0, "connect_timeout": 20.0} | options))
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()


def ask(endpoint, frame=X, **options):
    return endpoint.answers_about(frame, **{"task": "binary", "classes": ("no", "yes")} | options)


# --- a server that behaves --------------------------------------------------------------------------------------------


def test_rows_are_sent_in_batches_and_answers_come_back_in_order(serve, opened, http):
    server = serve(scoring(http))
    endpoint = opened(server, batch_rows=3)
    told = ask(endpoint)
    np.testing.assert_allclose(told.probabilities, [0.45, 0.5, 0.55, 0.6])
    assert [request.rows for request in server.requests] == [
        [{"age": 39, "job": "a"}, {"age": 40, "job": "b"}, {"age": 41, "job": None}],
        [{"age": 42, "job": "a"}],
    ]
    assert (endpoint.requests, endpoint.rows_sent, endpoint.retried) == (2, 4, 0)
    assert endpoint.gives_scores
    assert not endpoint.gives_labels


def test_a_request_says_what_it_is_and_nothing_about_this_machine(serve, opened, http):
    server = serve(scoring(http))
    ask(opened(server))
    headers = server.requests[0].headers
    assert headers.pop("host") == f"127.0.0.1:{server.port}"
    assert headers.pop("content-length") == str(len(server.requests[0].body))
    assert headers == {
        "user-agent": "aboveboard",
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
    }


def test_equal_rows_are_asked_about_once_and_known_rows_not_again(serve, opened, http):
    server = serve(scoring(http))
    endpoint = opened(server)
    twice = pd.concat([X, X.iloc[::-1]])
    np.testing.assert_array_equal(ask(endpoint, twice).probabilities, [0.45, 0.5, 0.55, 0.6, 0.6, 0.55, 0.5, 0.45])
    assert len(server.requests[0].rows) == 4
    ask(endpoint, X.iloc[:2])
    assert len(server.requests) == 1
    ask(endpoint, pd.concat([X.iloc[:2], X.iloc[:1].assign(age=50)]))
    assert [row["age"] for row in server.requests[1].rows] == [50]


def test_afresh_asks_about_every_row_again(serve, opened, http):
    server = serve(scoring(http))
    endpoint = opened(server)
    ask(endpoint)
    ask(endpoint, pd.concat([X, X]), afresh=True)
    assert len(server.requests[1].rows) == 8


def test_the_same_values_under_other_names_are_another_row(serve, opened, http):
    server = serve(lambda request, connection: http([0.5] * len(request.json["dataframe_split"]["data"])))
    endpoint = opened(server, format="mlflow")
    ask(endpoint, pd.DataFrame({"a": [1], "b": [2]}))
    ask(endpoint, pd.DataFrame({"b": [1], "a": [2]}))
    assert [request.json["dataframe_split"]["columns"] for request in server.requests] == [["a", "b"], ["b", "a"]]


def test_values_without_names_always_stand_in_the_first_order(serve, opened, http):
    server = serve(lambda request, connection: http({"predictions": [0.5] * len(request.json["instances"])}))
    endpoint = opened(server, format="kserve")
    ask(endpoint)
    ask(endpoint, X[["job", "age"]], afresh=True)
    assert (
        server.requests[0].json
        == server.requests[1].json
        == {"instances": [[39, "a"], [40, "b"], [41, None], [42, "a"]]}
    )


@pytest.mark.parametrize("concurrency", [1, 3])
def test_no_more_requests_than_allowed_are_under_way_at_once(serve, opened, http, concurrency):
    barrier = threading.Barrier(concurrency, timeout=5)

    def behave(request, connection):
        barrier.wait()
        return http({"predictions": [score(row) for row in request.rows]})

    server = serve(behave)
    rows = pd.DataFrame({"age": np.arange(30, 42)})
    endpoint = opened(server, batch_rows=1, concurrency=concurrency, read_timeout=10.0, timeout=10.0)
    threads = [threading.Thread(target=ask, args=(endpoint, part)) for part in (rows[:6], rows[6:])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.most_at_once == concurrency
    np.testing.assert_array_equal(ask(endpoint, rows).probabilities, [score({"age": age}) for age in rows["age"]])
    assert len(server.requests) == 12


def test_of_requests_at_once_the_first_failure_ends_the_others(serve, opened, http):
    def behave(request, connection):
        if request.rows[0]["age"] == 39:
            return http({"error": "boom"}, status=500)
        return connection.hang()

    server = serve(behave)
    with pytest.raises(ModelError, match="status 500"):
        ask(opened(server, batch_rows=1, concurrency=2, read_timeout=60.0, timeout=60.0))
    assert len(server.requests) < 4


# --- servers that do not ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message", "kind"),
    [
        ({"body": b"<html>Sign in</html>", "kind": "text/html"}, "answered with 'text/html'; expected JSON", ""),
        ({"body": [0.5] * 4, "kind": None}, "without saying what kind of content", ""),
        ({"body": [0.5] * 4, "kind": "text/plain"}, "'text/plain'", ""),
        ({"body": b'{"predictions": [NaN, 1, 1, 1]}'}, "NaN, which is no JSON", ""),
        ({"body": b'{"predictions": [Infinity, 1, 1, 1]}'}, "Infinity, which is no JSON", ""),
        ({"body": [0.5] * 3}, "gave 3 predictions for 4 rows", ""),
        ({"body": [[0.5, 0.3, 0.2]] * 4}, "3 probabilities for each row, and there are 2 classes", ""),
        ({"body": ["0.5"] * 4}, "predicted the class '0.5'", ""),
        ({"body": ["maybe"] * 4}, "predicted the class 'maybe'", ""),
        ({"body": [{"maybe": 1.0, "no": 0.0}] * 4}, "of the class 'maybe'", ""),
        ({"body": b'{"predictions": ["\xc3\x28"]}'}, "no UTF-8", ""),
        ({"body": b"[" * 500_000}, "nested too deeply", ""),
        ({"body": {"error": "no"}}, "without predictions", ""),
        ({"status": 400, "body": {"detail": "no column age"}}, "status 400 and the text '.*no col.*'", "status 400"),
        ({"status": 401}, r"status 401.*--auth-env", "status 401"),
        ({"status": 404}, "status 404.*was the address right", "status 404"),
        ({"status": 413}, "status 413.*--batch-rows", "status 413"),
        ({"status": 422}, "status 422", "status 422"),
        ({"status": 500, "body": b"", "kind": None}, "status 500$", "status 500"),
        ({"status": 204, "body": b""}, "status 204", "status 204"),
        ({"status": 301, "Location": "https://elsewhere.example/?k"}, "redirects.*no address but the", "status 301"),
        ({"status": 307, "Location": "/other"}, "redirects", "status 307"),
        ({"body": b"x" * 3_000_000}, "more than 2,000,000 bytes.*--batch-rows", "too large an answer"),
        ({"body": b"x", "Content_Encoding": "br"}, r"encoding \(br\)", "encoding"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)  # fmt: skip
def test_an_answer_that_is_no_use_is_a_model_error_and_not_asked_for_again(serve, opened, http, answer, message, kind):
    server = serve(http(**{"body": {}} | answer))
    with pytest.raises(ModelError, match=f"^the endpoint .*{message}") as caught:
        ask(opened(server, max_bytes=2_000_000))
    assert len(server.requests) == 1
    assert caught.value.kind == kind
    assert "elsewhere" not in str(caught.value)
    assert f":{server.port}" not in str(caught.value)


def test_a_redirect_sends_no_row_to_another_address(serve, opened, http):
    other = serve(scoring(http))
    server = serve(http(status=308, Location=other.url))
    with pytest.raises(ModelError, match="redirects"):
        ask(opened(server))
    assert other.requests == []


def test_a_server_that_says_nothing_is_not_asked_again(serve, opened):
    server = serve(lambda request, connection: connection.hang())
    with pytest.raises(ModelError, match=r"silent for 0.3 seconds") as caught:
        ask(opened(server, read_timeout=0.3))
    assert caught.value.kind == "time limit"
    assert len(server.requests) == 1


def test_what_an_error_says_is_shown_in_few_printable_characters(serve, opened, http, hostile_name):
    body = (hostile_name * 50).encode("utf-8", "surrogatepass")
    with pytest.raises(ModelError) as caught:
        ask(opened(serve(http(body, status=500))))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 1700


def test_answers_that_change_their_form_between_requests_are_refused(serve, opened, http):
    for first, second in (
        ([0.5], ["yes"]),
        ([0.5], [[0.5, 0.5]]),
        ([{"no": 0.5, "yes": 0.5}], [{"nay": 0.5, "yes": 0.5}]),
        ({"labels": ["no"], "probabilities": [0.5]}, {"labels": ["no"]}),
    ):
        server = serve(in_turn(http(first), http(second)))
        with pytest.raises(ModelError, match=r"another|one answer to the next"):
            ask(opened(server, batch_rows=1), X.iloc[:2])


def test_answers_that_change_their_form_between_questions_are_refused(serve, opened, http):
    server = serve(in_turn(http([0, 1]), http([0.3, 0.4])))
    endpoint = opened(server)
    assert ask(endpoint, X.iloc[:2], classes=(0, 1)).labels.tolist() == [0, 1]
    with pytest.raises(ModelError, match=r"predicted the class '0\.3'"):
        ask(endpoint, X.iloc[:2], classes=(0, 1), afresh=True)
    server = serve(in_turn(http(["no", "yes"]), http([[0.3, 0.7], [0.4, 0.6]])))
    endpoint = opened(server)
    ask(endpoint, X.iloc[:2])
    with pytest.raises(ModelError, match="labels in one answer and probabilities in another"):
        ask(endpoint, X.iloc[:2], afresh=True)


def test_the_order_of_the_classes_may_change_between_answers(serve, opened, http):
    server = serve(
        in_turn(
            http({"predictions": [[0.9, 0.1]], "classes": ["no", "yes"]}),
            http({"predictions": [[0.2, 0.8]], "classes": ["yes", "no"]}),
        )
    )
    told = ask(opened(server, batch_rows=1), X.iloc[:2])
    np.testing.assert_array_equal(told.probabilities, [[0.9, 0.1], [0.8, 0.2]])


def test_a_class_that_the_data_lack_is_known_once_it_is_named(serve, opened, http):
    server = serve(http({"predictions": [[0.2, 0.3, 0.5]] * 4, "classes": ["a", "b", "c"]}))
    with pytest.raises(ModelError, match="--model-classes"):
        ask(opened(server), task="multiclass", classes=("a", "b"))
    endpoint = opened(server, classes=["a", "b", "c"])
    told = ask(endpoint, task="multiclass", classes=("a", "b", "c"))
    np.testing.assert_array_equal(told.probabilities, [[0.2, 0.3, 0.5]] * 4)
    assert endpoint.classes_ == ["a", "b", "c"]
    assert not hasattr(opened(server), "classes_")


# --- trying again -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(serve, opened, http, pauses, status):
    server = serve(in_turn(http(status=status), http(status=status), http([0.5] * 4)))
    endpoint = opened(server)
    assert ask(endpoint).probabilities.tolist() == [0.5] * 4
    assert (endpoint.requests, endpoint.retried, endpoint.rows_sent) == (3, 2, 12)
    assert len(pauses) == 2
    assert 0.25 <= pauses[0] <= 0.75
    assert 0.5 <= pauses[1] <= 1.5


def test_a_broken_connection_is_tried_again(serve, opened, http, pauses):
    def behave(request, connection):
        if request.number == 0:
            return None
        if request.number == 1:
            return connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
        return http([0.5] * 4)

    server = serve(behave)
    assert ask(opened(server)).probabilities.tolist() == [0.5] * 4
    assert len(server.requests) == 3


def test_in_the_end_trying_again_ends(serve, opened, http, pauses):
    server = serve(http(b"busy", status=503))
    with pytest.raises(ModelError, match=r"status 503 and the text 'busy' \(4 attempts\)"):
        ask(opened(server, retries=3))
    assert len(server.requests) == 4
    server = serve(lambda request, connection: None)
    with pytest.raises(ModelError, match=r"closed the connection.*\(2 attempts\)"):
        ask(opened(server, retries=1))
    with pytest.raises(ModelError, match=r"complete$"):
        ask(opened(server, retries=0))


def test_equal_seeds_wait_equally_and_others_otherwise(serve, opened, http):
    def waits(seed, monkeypatch):
        from aboveboard.auditing.models import endpoint as module

        seconds = []
        monkeypatch.setattr(module, "_pause", lambda stop, pause: seconds.append(pause))
        with pytest.raises(ModelError):
            ask(opened(serve(http(status=503)), random_state=seed))
        return seconds

    with pytest.MonkeyPatch.context() as monkeypatch:
        first, again, other = waits(0, monkeypatch), waits(0, monkeypatch), waits(1, monkeypatch)
    assert first == again
    assert len(first) == 4
    assert first != other


@pytest.mark.parametrize("kind", ["seconds", "date"])
def test_a_server_that_asks_for_time_is_given_it(serve, opened, http, pauses, kind):
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    server = serve(in_turn(http(status=429, Retry_After="30" if kind == "seconds" else later), http([0.5] * 4)))
    ask(opened(server))
    assert 25 <= pauses[0] <= 30.001


def test_a_server_that_asks_for_more_time_than_there_is_ends_the_audit(serve, opened, http, pauses):
    server = serve(http(status=503, Retry_After="3600"))
    with pytest.raises(ModelError, match="status 503 and asks to be left alone for 3,600 seconds; at most 60 are"):
        ask(opened(server))
    assert len(server.requests) == 1
    assert pauses == []


@pytest.mark.parametrize("text", ["soon", "-5", "1e9", "Wed, 99 Foo 2026", "", "٣"])
def test_a_retry_after_that_says_nothing_is_not_heeded(serve, opened, http, pauses, text):
    answer = http(status=503, Retry_After=text.encode().decode("latin-1"))
    ask(opened(serve(in_turn(answer, http([0.5] * 4)))))
    assert pauses[0] <= 0.75


# --- how many requests ------------------------------------------------------------------------------------------------


def test_a_first_question_that_takes_too_many_requests_is_refused_before_any(serve, opened, http):
    server = serve(scoring(http))
    with pytest.raises(InputError, match=r"first question alone takes 4 requests, and max_queries allows 3.*-rows"):
        ask(opened(server, batch_rows=1, max_queries=3))
    assert server.requests == []


def test_a_later_question_that_takes_too_many_requests_is_not_begun(serve, opened, http):
    server = serve(scoring(http))
    endpoint = opened(server, batch_rows=1, max_queries=6)
    ask(endpoint)
    with pytest.raises(QueriesSpent, match=r"may be asked 6 times .*--max-queries\) and was asked 4 times"):
        ask(endpoint, afresh=True)
    ask(endpoint, X.iloc[:2], afresh=True)
    assert len(server.requests) == 6
    ask(endpoint)  # known
    with pytest.raises(QueriesSpent):
        ask(endpoint, X.iloc[:1], afresh=True)
    assert len(server.requests) == 6


def test_retries_count(serve, opened, http, pauses):
    server = serve(http(status=503))
    with pytest.raises(ModelError, match=r"all 2 queries .* were spent before"):
        ask(opened(server, max_queries=2))
    assert len(server.requests) == 2
    server = serve(in_turn(http([0.5] * 4), http(status=503)))
    endpoint = opened(server, max_queries=3)
    ask(endpoint)
    with pytest.raises(QueriesSpent):
        ask(endpoint, afresh=True)
    assert len(server.requests) == 3


def test_what_is_about_to_be_asked_is_announced_once_before_any_request(serve, opened, http):
    server = serve(scoring(http))
    seen = []
    endpoint = opened(server, announce=lambda question: seen.append((question, len(server.requests))))
    ask(endpoint, pd.concat([X, X]))
    ask(endpoint, afresh=True)
    ((question, before),) = seen
    assert (question.distinct, question.task, len(question.frame), before) == (4, "binary", 8, 0)
    assert question.batch_rows == 500


# --- bad input --------------------------------------------------------------------------------------------------------


def test_an_infinite_number_is_refused_before_any_request_and_later_is_a_failure(serve, opened, http):
    server = serve(scoring(http))
    endpoint = opened(server)
    bad = pd.DataFrame({"age": [1.0, np.inf], "job": ["a", "b"]})
    with pytest.raises(InputError, match="'age' has 1 infinite value"):
        ask(endpoint, bad)
    assert server.requests == []
    ask(endpoint)
    with pytest.raises(ModelError, match="infinite"):
        ask(endpoint, bad)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format is 'xml'. Expected one of rows, mlflow, kserve"),
        ({"classes": ["a", "a"]}, "a class is named twice"),
        ({"answers": "maybe"}, "answers is 'maybe'"),
        ({"batch_rows": 0}, "batch_rows is 0"),
        ({"batch_rows": 2.5}, "batch_rows is 2.5"),
        ({"max_queries": 0}, "max_queries is 0"),
        ({"max_queries": True}, "max_queries is True"),
        ({"concurrency": 33}, "concurrency is 33. Expected a whole number, from 1 to 32"),
        ({"retries": -1}, "retries is -1"),
        ({"timeout": 0}, "timeout is 0"),
        ({"read_timeout": float("nan")}, "read_timeout is nan"),
        ({"connect_timeout": "1"}, "connect_timeout is '1'"),
        ({"max_wait": float("inf")}, "max_wait is inf"),
        ({"auth_header": "X: y\r\n"}, "the header for the secret is"),
        ({"auth_header": "Host"}, "the header for the secret is 'Host'"),
        ({"auth_env": "ABOVEBOARD_NO_SUCH"}, "environment variable 'ABOVEBOARD_NO_SUCH' is not set"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(options, message):
    with pytest.raises(InputError, match=message):
        Endpoint("http://127.0.0.1:9/", **options)


# --- the secret -------------------------------------------------------------------------------------------------------


@pytest.fixture
def secret(monkeypatch):
    monkeypatch.setenv("SCORING_TOKEN", SECRET)
    return SECRET


def test_the_secret_is_sent_as_a_bearer_token_or_in_a_header_of_its_own(serve, opened, http, secret):
    server = serve(scoring(http))
    ask(opened(server, auth_env="SCORING_TOKEN"))
    assert server.requests[0].headers["authorization"] == f"Bearer {SECRET}"
    ask(opened(server, auth_env="SCORING_TOKEN", auth_header="X-Api-Key"))
    assert server.requests[1].headers["x-api-key"] == SECRET
    assert "authorization" not in server.requests[1].headers


@pytest.mark.parametrize("value", ["", "  ", f"{SECRET}\n", f" {SECRET}", f"{SECRET}\r\nX-Evil: 1", f"{SECRET}é"])
def test_a_secret_that_no_header_can_hold_is_refused_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("SCORING_TOKEN", value)
    with pytest.raises(InputError, match="'SCORING_TOKEN'") as caught:
        Endpoint("http://127.0.0.1:9/", auth_env="SCORING_TOKEN")
    assert SECRET not in str(caught.value)


def _everything(error):
    """All that a traceback can show of an error: its text, its causes, and, in our code, the variables on the way."""
    texts = traceback.format_exception(error)
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if "/aboveboard/" in frame.f_code.co_filename:
            texts += [repr(value) for value in frame.f_locals.values()]
    assert error.__context__ is None or error.__suppress_context__
    return "\n".join(texts)


@pytest.mark.parametrize(
    "behave",
    [
        lambda r, c: None,
        lambda r, c: c.hang(),
        lambda r, c: c.send(b"no http\r\n\r\n"),
        lambda r, c: b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n%b" % (len(SECRET), SECRET.encode()),
        lambda r, c: (lambda body: b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))(
            json.dumps(r.headers).encode()
        ),
        lambda r, c: b"HTTP/1.1 401 No\r\nContent-Length: 20\r\n\r\ntoken ending D6C5B4A",
        lambda r, c: b"HTTP/1.1 302 No\r\nLocation: https://x.example/?token=%b\r\nContent-Length: 0\r\n\r\n"
        % SECRET.encode(),
        lambda r, c: b"HTTP/1.1 200 OK\r\nContent-Type: text/%b\r\nContent-Length: 0\r\n\r\n" % SECRET.encode(),
        lambda r, c: b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n[1]",
    ],
    ids=[
        "closes", "hangs", "no-http", "echoes", "echoes-headers", "echoes-a-part", "redirects", "kind", "wrong-count",
    ],
)  # fmt: skip
def test_no_misbehaviour_makes_the_secret_show(serve, opened, secret, behave, pauses, caplog, capsys):
    caplog.set_level(logging.DEBUG)
    endpoint = opened(serve(behave), auth_env="SCORING_TOKEN", retries=1, read_timeout=0.5)
    with pytest.raises(ModelError) as caught:
        ask(endpoint)
    shown = [_everything(caught.value), repr(endpoint), repr(vars(endpoint)), caplog.text, *capsys.readouterr()]
    shown += [json.dumps(endpoint.source_.to_dict())]
    for text in shown:
        assert SECRET not in text
        assert SECRET[-7:].casefold() not in text.casefold()


@pytest.mark.parametrize("body", [[SECRET] * 4, [{SECRET: 0.5, "no": 0.5}] * 4, {SECRET: 1}])
def test_an_answer_that_repeats_the_secret_is_not_quoted(serve, opened, http, secret, body):
    with pytest.raises(ModelError, match="not shown because it repeats the secret") as caught:
        ask(opened(serve(http(body)), auth_env="SCORING_TOKEN"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_the_address_stands_in_no_log_message_or_source(serve, opened, http, caplog, pauses):
    caplog.set_level(logging.DEBUG)
    server = serve(http(status=500))
    made = Endpoint(server.url + "?key=hunter2", retries=0)
    with pytest.raises(ModelError) as caught:
        ask(made)
    made.close()
    shown = [str(caught.value), repr(made), repr(made.source_), caplog.text]
    assert not any("hunter2" in text or "predict" in text for text in shown)
    assert server.requests[0].path.endswith("?key=hunter2")


def test_the_source_tells_what_was_sent_and_not_where(serve, opened, http):
    endpoint = opened(serve(scoring(http)), batch_rows=2)
    ask(endpoint)
    source = endpoint.source_
    assert (source.format, source.model) == ("endpoint", "HTTP endpoint")
    assert source.name == "2 requests about 4 rows"
    assert set(source.versions) == {"httpx", "httpcore"}
    assert "127.0.0.1" not in json.dumps(source.to_dict())


def test_the_secret_is_no_argument():
    assert not {"token", "secret", "password", "auth"} & set(inspect.signature(Endpoint).parameters)
