"""A model behind an http(s) address: rows go out as JSON, answers come back checked, and every request is counted.

For whoever audits a model that is served and not at hand. Only the model's features are sent; what the endpoint may do
to the audit is bounded in time, size and number of requests.
"""

import hashlib
import os
import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import pandas as pd

from aboveboard.auditing.model import ModelSource, Told
from aboveboard.auditing.models import ENDPOINT_FORMATS
from aboveboard.auditing.models.endpoint.replies import Entry, Kind, ReplyError, Said, read_reply, understood
from aboveboard.auditing.models.endpoint.rows import Format, request_body, row_texts
from aboveboard.core.errors import InputError, ModelError, QueriesSpent
from aboveboard.core.extras import require
from aboveboard.core.progress import progress

if TYPE_CHECKING:
    from aboveboard.auditing.models.endpoint.transport import Reply

__all__ = ["Endpoint", "FirstQuestion"]

Task = Literal["binary", "multiclass", "regression"]

_RETRIED: Final = frozenset({429, 502, 503, 504})
_FIRST_WAIT: Final = 0.5
_MOST_AT_ONCE: Final = 32
_SHOWN: Final = 200
_HIDDEN_RUN: Final = 6
"""So many characters of a secret in a row, anywhere in what a server says, and it is not repeated."""


@dataclass(frozen=True, slots=True)
class FirstQuestion:
    """What is known just before the first request.

    Parameters
    ----------
    frame : DataFrame
        The rows and columns that will be sent.
    distinct : int
        Different rows among them: equal ones are sent once.
    task : {"binary", "multiclass", "regression"}
    batch_rows : int
        Rows in a request.
    """

    frame: pd.DataFrame
    distinct: int
    task: Task
    batch_rows: int


class Endpoint:
    """A model that answers HTTP requests, to be given to `aboveboard.audit` as the model.

    Parameters
    ----------
    url : str
        ``https://host/path``; plain http only to this machine. Never shown in a message or a report.
    format : {"rows", "mlflow", "kserve"}
        How rows are sent: ``{"rows": [{name: value, ...}, ...]}``, MLflow's ``dataframe_split``, or KServe's (version
        1) ``instances``, in which values have no names and stand in the order of the columns.
    answers : {"auto", "score", "label"}
        How plain numbers in the answer to a classification are read. auto: as labels where every number is one of the
        classes, else as probabilities of the positive class.
    classes : sequence
        All classes that the model knows, in the order of its codes 0, 1, ... and of probabilities without names.
        Default: those of the target, in their natural order.
    auth_env : str, optional
        Name of the environment variable that holds the secret. It is read when a request is made, and kept nowhere.
    auth_header : str
        The header that carries it: with ``"Authorization"`` as ``Bearer SECRET``, else as it is.
    ca_file : path, optional
        PEM file of the authority that vouches for the endpoint, instead of the usual ones.
    batch_rows : int
        Rows in a request.
    max_queries : int, optional
        The most requests that are made, retries included. Default: no limit.
    concurrency : int in [1, 32]
        Requests under way at once.
    retries : int
        How often a request is repeated after 429, 502, 503, 504 or a failed connection.
    connect_timeout, read_timeout, timeout : float
        Seconds until a connection stands, between two pieces of an answer, and for a request in all.
    max_wait : float
        The most seconds waited before a retry; an endpoint that asks for more (Retry-After) is not asked again.
    max_bytes : int
        The largest answer.
    random_state : int
        Spreads the waiting times, so that equal audits wait equally.
    announce : callable, optional
        Called once with a `FirstQuestion`, before the first request.

    Attributes
    ----------
    requests, retried, rows_sent : int
        What was sent so far: requests with retries, retries, rows.
    source_ : ModelSource
        What a report says of it: no address, no host.

    Raises
    ------
    InputError
        For an address or an option that cannot be used; no request has been made then.
    MissingExtra
        Without httpx.

    Notes
    -----
    Answers are remembered by row, about 300 bytes for each different row, and equal rows are asked about once; checks
    of repeatability ask again. O(n d) time beside the endpoint's own.

    Examples
    --------
    >>> from aboveboard.auditing.models.endpoint import Endpoint
    >>> endpoint = Endpoint("https://models.example/predict", max_queries=1_000)
    >>> endpoint
    Endpoint(format='rows', batch_rows=500, max_queries=1000)
    >>> Endpoint("http://models.example/predict")
    Traceback (most recent call last):
        ...
    aboveboard.core.errors.InputError: the address of the endpoint is plain http, ...
    """

    def __init__(
        self,
        url: str,
        *,
        format: Format = "rows",
        answers: Literal["auto", "score", "label"] = "auto",
        classes: Sequence[Any] = (),
        auth_env: str | None = None,
        auth_header: str = "Authorization",
        ca_file: str | Path | None = None,
        batch_rows: int = 500,
        max_queries: int | None = None,
        concurrency: int = 1,
        retries: int = 4,
        connect_timeout: float = 10.0,
        read_timeout: float = 60.0,
        timeout: float = 120.0,
        max_wait: float = 60.0,
        max_bytes: int = 67_108_864,
        random_state: int = 0,
        announce: Callable[[FirstQuestion], None] | None = None,
    ) -> None:
        for package in ("httpx", "httpcore"):
            require(package, extra="http", feature="An http(s) endpoint as the model")
        from aboveboard.auditing.models.endpoint.transport import Address, Transport

        _refuse_choice("format", format, ENDPOINT_FORMATS)
        _refuse_choice("answers", answers, ("auto", "score", "label"))
        _refuse_number("batch_rows", batch_rows, 1)
        _refuse_number("concurrency", concurrency, 1, _MOST_AT_ONCE)
        _refuse_number("retries", retries, 0)
        _refuse_number("max_bytes", max_bytes, 1)
        _refuse_number("random_state", random_state, 0)
        if max_queries is not None:
            _refuse_number("max_queries", max_queries, 1)
        for name, value in (("connect_timeout", connect_timeout), ("read_timeout", read_timeout), ("timeout", timeout)):
            _refuse_seconds(name, value)
        if max_wait != 0:
            _refuse_seconds("max_wait", max_wait)
        self._format: Format = format
        self._batch_rows = batch_rows
        self._max_queries = max_queries
        self._concurrency = concurrency
        self._retries = retries
        self._timeout = timeout
        self._max_wait = max_wait
        self._random_state = random_state
        self._announce = announce
        self._answers: Literal["auto", "score", "label"] = answers
        self._order = tuple(classes)
        self._auth_env = auth_env
        self._auth_header = _header_name(auth_header)
        if len(set(self._order)) < len(self._order):
            raise InputError("a class is named twice (classes, --model-classes)")
        if self._order:
            self.classes_ = list(self._order)
        _headers(auth_env, self._auth_header)  # refuses a secret that is not there before any work
        self._transport = Transport(
            Address.of(url),
            ca_file=None if ca_file is None else Path(ca_file),
            connect_timeout=connect_timeout,
            read_timeout=read_timeout,
            max_bytes=max_bytes,
            connections=concurrency,
        )
        self._lock = threading.Lock()
        self._at_once = threading.BoundedSemaphore(concurrency)  # whatever the number of checks that run at once
        self._known: dict[bytes, Entry] = {}
        self._names: tuple[Any, ...] | None = None
        self._has_answered = False
        self._columns: tuple[str, ...] | None = None
        self._kind: Kind | None = None
        self._gives: tuple[bool, bool] | None = None
        self._questions = 0
        self.requests = self.retried = self.rows_sent = 0

    def __repr__(self) -> str:
        return f"Endpoint(format={self._format!r}, batch_rows={self._batch_rows}, max_queries={self._max_queries})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; a later question opens new ones."""
        self._transport.close()

    @property
    def gives_scores(self) -> bool:
        """Whether the answers to a classification hold probabilities; known once something was asked."""
        return self._gives is not None and self._gives[1]

    @property
    def gives_labels(self) -> bool:
        """Whether they hold labels."""
        return self._gives is not None and self._gives[0]

    @property
    def source_(self) -> ModelSource:
        tried = f" ({self.retried:,} of them retries)" if self.retried else ""
        requests, rows = (
            f"{n:,} {what}{'s' * (n != 1)}" for n, what in ((self.requests, "request"), (self.rows_sent, "row"))
        )
        return ModelSource(
            format="endpoint",
            model="HTTP endpoint",
            name=f"{requests}{tried} about {rows}",
            versions={name: metadata.version(name) for name in ("httpx", "httpcore")},
        )

    def answers_about(
        self, frame: pd.DataFrame, *, task: Task, classes: Sequence[Any] = (), afresh: bool = False
    ) -> Told:
        """Ask about the rows of `frame`.

        Parameters
        ----------
        frame : DataFrame of shape (n, d)
            Exactly what is sent.
        classes : sequence
            Labels in the order of their codes; for binary tasks (negative, positive).
        afresh : bool
            Ask about each row as often as it stands there, also where its answer is known.

        Raises
        ------
        InputError
            Before any request: for a value that cannot be sent, or when `max_queries` does not even reach for the first
            question.
        ModelError
            When no usable answer comes.
        QueriesSpent
            When `max_queries` does not reach for this question.
        """
        if self._format == "kserve":
            frame = self._in_first_order(frame)
        columns = tuple(map(str, frame.columns))
        try:
            texts = row_texts(frame, self._format)
        except InputError as error:
            if self._gives is None:
                raise
            raise ModelError(str(error).rstrip("."), kind="a value that cannot be sent") from None
        keys = [_digest(columns, text) for text in texts]
        if afresh:
            asked = list(range(len(texts)))
        else:
            first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
            asked = sorted(row for key, row in first.items() if key not in self._known)
        if self._announce is not None:
            announce, self._announce = self._announce, None
            announce(FirstQuestion(frame, len(asked), task, self._batch_rows))
        starts = range(0, len(asked), self._batch_rows)
        batches = [[texts[row] for row in asked[start : start + self._batch_rows]] for start in starts]
        self._refuse_too_many(len(batches))
        new: list[Entry] = []
        for said in self._said(batches, columns):
            new += self._aligned(said)
        fresh = dict(zip([keys[row] for row in asked], new, strict=True))
        entries = new if afresh else [fresh[key] if key in fresh else self._known[key] for key in keys]
        told, kind = self._understood(entries, task, classes)
        with self._lock:
            for key, entry in fresh.items():
                self._known.setdefault(key, entry)
            if self._gives is None:
                self._kind = kind
                self._gives = (told.labels is not None, told.probabilities is not None)
        if (told.labels is not None, told.probabilities is not None) != self._gives:
            raise ModelError("the endpoint gives labels in one answer and probabilities in another")
        return told

    def _in_first_order(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Values go without names, so their order is the model's and must not change."""
        names = tuple(map(str, frame.columns))
        if self._columns is None:
            self._columns = names
        if names == self._columns or set(names) != set(self._columns):
            return frame
        return frame.loc[:, list(self._columns)]

    def _understood(self, entries: list[Entry], task: Task, classes: Sequence[Any]) -> tuple[Told, Kind | None]:
        try:
            return understood(
                entries,
                self._names,
                task=task,
                classes=classes,
                kind=self._kind,
                answers=self._answers,
                order=self._order,
            )
        except ModelError as error:
            failure = self._error(str(error))
        raise failure

    def _aligned(self, said: Said) -> list[Entry]:
        with self._lock:
            if not self._has_answered:
                self._names, self._has_answered = said.names, True
        try:
            return said.in_order_of(self._names)
        except ReplyError as error:
            failure = self._error(f"the endpoint {error}")
        raise failure

    # --- requests -----------------------------------------------------------------------------------------------------

    def _refuse_too_many(self, needed: int) -> None:
        if self._max_queries is None or self.requests + needed <= self._max_queries:
            return
        if self._gives is None:
            raise InputError(
                f"the first question alone takes {needed:,} requests, and max_queries allows {self._max_queries:,}",
                remedy="Allow more (max_queries, --max-queries), send more rows in a request (batch_rows, "
                "--batch-rows), or audit fewer rows",
            )
        raise self._spent(needed)

    def _spent(self, needed: int) -> QueriesSpent:
        return QueriesSpent(
            f"The endpoint may be asked {self._max_queries:,} times (max_queries, --max-queries) and was asked "
            f"{self.requests:,} times; this needs {needed:,} more."
        )

    def _said(self, batches: list[list[str]], columns: tuple[str, ...]) -> list[Said]:
        """Return the answer to each batch, in their order."""
        question, self._questions = self._questions, self._questions + 1
        with progress(len(batches), enabled=None if self._gives is None and len(batches) > 1 else False) as bar:
            stop = threading.Event()

            def ask(at: int) -> Said:
                return self._ask(batches[at], columns, f"{question}/{at}", stop)

            if self._concurrency == 1 or len(batches) < 2:
                answers = []
                for at in range(len(batches)):
                    bar.step("Asking the endpoint")
                    answers.append(ask(at))
                return answers
            pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="aboveboard-endpoint")
            try:
                answers = []
                for answer in pool.map(ask, range(len(batches))):
                    bar.step("Asking the endpoint")
                    answers.append(answer)
                return answers
            except BaseException:
                self._transport.abort(stop)
                raise
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _ask(self, texts: list[str], columns: tuple[str, ...], name: str, stop: threading.Event) -> Said:
        """Make a request, and repeat it while that is worth trying."""
        from aboveboard.auditing.models.endpoint.transport import ConnectionFailure, TransportError

        body = request_body(texts, columns, self._format)
        for attempt in range(self._retries + 1):
            problem: TransportError | None = None
            reply: Reply | None = None
            with self._at_once:
                if stop.is_set():
                    raise ModelError("the endpoint was not asked further, since another request failed")
                self._count(len(texts), again=attempt > 0)
                try:
                    headers = _headers(self._auth_env, self._auth_header)
                    reply = self._transport.post(body, headers, timeout=self._timeout, stop=stop)
                except TransportError as error:
                    problem = error
            if reply is not None and reply.status not in _RETRIED:
                return self._read(reply, len(texts))
            if problem is not None and not isinstance(problem, ConnectionFailure):
                raise ModelError(f"the endpoint {problem}", kind=problem.kind)
            if attempt == self._retries:
                break
            _pause(stop, self._seconds(attempt, name, reply))
        tried = f" ({self._retries + 1} attempts)" if self._retries else ""
        if reply is None:
            assert problem is not None
            raise ModelError(f"the endpoint {problem}{tried}", kind=problem.kind)
        raise self._error(self._refusal(reply) + tried, kind=f"status {reply.status}")

    def _count(self, rows: int, *, again: bool) -> None:
        with self._lock:
            if self._max_queries is not None and self.requests >= self._max_queries:
                if self._gives is None:
                    raise ModelError(
                        f"the endpoint had to be asked again so often that all {self._max_queries:,} queries "
                        "(max_queries, --max-queries) were spent before it had answered about every row"
                    )
                raise self._spent(1)
            self.requests += 1
            self.retried += again
            self.rows_sent += rows

    def _seconds(self, attempt: int, name: str, reply: "Reply | None") -> float:
        """Return how long to wait: twice as long each time, spread alike in equal audits, or as the endpoint asks."""
        spread = random.Random(f"{self._random_state}/{name}/{attempt}").uniform(0.5, 1.5)  # noqa: S311 - no secret
        seconds = min(_FIRST_WAIT * 2.0**attempt * spread, self._max_wait)
        asked = None if reply is None else _retry_after(reply.headers.get("retry-after", ""))
        if asked is not None and reply is not None:
            if asked > self._max_wait:
                raise ModelError(
                    f"the endpoint answered with status {reply.status} and asks to be left alone for {asked:,.0f} "
                    f"seconds; at most {self._max_wait:g} are waited",
                    kind=f"status {reply.status}",
                )
            seconds = max(seconds, asked)
        return seconds

    def _read(self, reply: "Reply", n: int) -> Said:
        if reply.status != 200:
            raise self._error(self._refusal(reply), kind=f"status {reply.status}")
        if not _is_json(reply):
            raise self._error(_other_kind(reply))
        try:
            return read_reply(reply.body, n)
        except ReplyError as error:
            failure = self._error(f"the endpoint {error}")
        raise failure

    def _refusal(self, reply: "Reply") -> str:
        status = reply.status
        if 300 <= status < 400:
            return (
                f"the endpoint redirects (status {status}), and rows are sent to no address but the one that was "
                "given; give the final one"
            )
        said = self._shown(reply.body)
        hint = ""
        if status in (401, 403):
            hint = (
                f"; is the secret in the environment variable {self._auth_env} right?"
                if self._auth_env
                else "; it may want a secret: name its environment variable with auth_env (--auth-env)"
            )
        elif status == 413:
            hint = "; try smaller batches (batch_rows, --batch-rows)"
        elif status in (400, 404, 405, 415, 422) and not self._gives:
            hint = f"; was the address right, and does it take rows in the format {self._format!r}?"
        return f"the endpoint answered with status {status}{said}{hint}".removesuffix("?")

    def _shown(self, body: bytes) -> str:
        """Return the beginning of what an error says."""
        text = " ".join(body.decode("utf-8", "replace").split())
        if self._repeats_secret(text):
            return ", and its text is not shown because it repeats a part of the secret"
        text = "".join(char if char.isprintable() else "\ufffd" for char in text[:_SHOWN])
        return f" and the text {text!r}" if text else ""

    def _error(self, message: str, kind: str = "") -> ModelError:
        """Return the error for an answer, whose words may be the endpoint's own."""
        if self._repeats_secret(message):
            message = "the endpoint answered with something of no use, which is not shown because it repeats the secret"
        return ModelError(message, kind=kind)

    def _repeats_secret(self, text: str) -> bool:
        """Return whether a piece of the secret stands in a text."""
        secret = os.environ.get(self._auth_env, "").casefold() if self._auth_env else ""
        text = text.casefold()
        pieces = range(max(1, len(secret) - _HIDDEN_RUN + 1))
        return bool(secret) and any(secret[start : start + _HIDDEN_RUN] in text for start in pieces)


def _media(reply: "Reply") -> str:
    return reply.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_json(reply: "Reply") -> bool:
    kind, _, subtype = _media(reply).partition("/")
    return kind == "application" and (subtype == "json" or subtype.endswith("+json"))


def _other_kind(reply: "Reply") -> str:
    media = _media(reply)
    what = f"with {media[:60]!r}" if media else "without saying what kind of content it is"
    return f"the endpoint answered {what}; expected JSON (Content-Type: application/json)"


def _pause(stop: threading.Event, seconds: float) -> None:
    stop.wait(seconds)


def _digest(columns: tuple[str, ...], text: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    if not text.startswith("{"):  # values without names
        digest.update(repr(columns).encode("utf-8", "surrogatepass"))
    digest.update(text.encode("ascii"))
    return digest.digest()


def _headers(auth_env: str | None, auth_header: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request; the secret is read here, from the environment, and nowhere else."""
    from aboveboard.auditing.models.endpoint.transport import Secret

    headers: list[tuple[bytes, bytes]] = [
        (b"User-Agent", b"aboveboard"),
        (b"Accept", b"application/json"),
        (b"Accept-Encoding", b"identity"),
        (b"Content-Type", b"application/json"),
    ]
    if auth_env is None:
        return headers
    secret = Secret(os.environ.get(auth_env, "").encode("utf-8", "surrogateescape"))
    if not secret.strip():
        raise InputError(
            f"the environment variable {auth_env!r} is not set, or empty",
            expected="the secret of the endpoint in it (auth_env, --auth-env)",
        )
    if not all(0x21 <= byte <= 0x7E or byte == 0x20 for byte in secret) or secret != secret.strip():
        raise InputError(
            f"the secret in the environment variable {auth_env!r} has characters that no header can hold, such as "
            "a line break at its end",
            expected="printable ASCII without spaces around it",
        )
    value = Secret(b"Bearer " + secret) if auth_header.casefold() == "authorization" else secret
    return [*headers, (auth_header.encode("ascii"), value)]


def _header_name(name: str) -> str:
    allowed = set("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    taken = {"host", "content-length", "content-type", "transfer-encoding", "connection", "accept-encoding"}
    if not isinstance(name, str) or not name or not set(name) <= allowed or name.casefold() in taken:
        raise InputError(
            f"the header for the secret is {name!r}",
            expected="the name of a header, such as Authorization or X-Api-Key",
        )
    return name


def _retry_after(text: str) -> float | None:
    """Return the seconds in a Retry-After header, which holds seconds or a date; None where it holds neither."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())


def _refuse_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise InputError(f"{name} is {value!r}", expected=f"one of {', '.join(choices)}")


def _refuse_number(name: str, value: Any, least: int, most: int | None = None) -> None:
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < least or (most and value > most):
        bounds = f"from {least} to {most}" if most else f"{least} or more"
        raise InputError(f"{name} is {value!r}", expected=f"a whole number, {bounds}")


def _refuse_seconds(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise InputError(f"{name} is {value!r}", expected="a number of seconds above 0")
