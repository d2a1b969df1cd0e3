"""One HTTP request after another to one address, with every way in which a server can misbehave bounded or refused.

Nothing here follows a redirect, reads a proxy, a certificate file or a password from the environment, keeps a cookie,
or logs an address. This module imports httpx and httpcore: import it where they are needed.
"""

import contextlib
import ipaddress
import logging
import socket
import ssl
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpcore
import httpx

from aboveboard.core.errors import InputError

__all__ = ["Address", "ConnectionFailure", "Reply", "Secret", "Transport", "TransportError"]

_PORTS: Final = {"http": 80, "https": 443}
_CHUNK: Final = 65_536
_READ_HEADERS: Final = frozenset({b"content-length", b"content-type", b"content-encoding", b"retry-after"})
_ENGINE_LOGS: Final = ("httpcore.connection", "httpcore.http11")
_SHOWN_BODY: Final = 65_536  # of an answer that is an error: enough for a message


class TransportError(Exception):
    """No usable answer came; asking again would not help.

    Parameters
    ----------
    message : str
        What the endpoint did, as the rest of a sentence: ``"was silent for 30 seconds"``.
    kind : str
        In a word or two.
    """

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ConnectionFailure(TransportError):
    """The connection could not be made, or broke; asking again may help."""


class Secret(bytes):
    """Bytes that do not show themselves, also not where a traceback shows its variables."""

    def __repr__(self) -> str:
        return "<hidden>"

    __str__ = __repr__


@dataclass(frozen=True, slots=True)
class Address:
    """Where an endpoint is: what is checked here is what is connected to.

    Parameters
    ----------
    scheme, host, target : bytes
        The host in the form in which it is looked up; the target with its query.
    port : int
    """

    scheme: bytes
    host: bytes
    port: int
    target: bytes

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read the address of an endpoint.

        Raises
        ------
        InputError
            When it is no http(s) address, holds a user or password, or is plain http to another machine. The message
            does not repeat it.
        """
        expected = "something like https://host/predict"
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, TypeError, UnicodeError):
            raise InputError("the address of the endpoint is no valid URL", expected=expected) from None
        if parsed.scheme not in _PORTS or not parsed.host:
            raise InputError("the address of the endpoint is no http or https URL with a host", expected=expected)
        port = parsed.port or _PORTS[parsed.scheme]
        if port > 65_535:
            raise InputError("the address of the endpoint is no valid URL: there is no such port", expected=expected)
        if parsed.userinfo:
            raise InputError(
                "the address of the endpoint holds a user name or a password",
                expected="an address without them",
                remedy="Put the secret into an environment variable and name it with auth_env (--auth-env)",
            )
        if parsed.scheme == "http" and not _is_loopback(parsed.host):
            raise InputError(
                "the address of the endpoint is plain http, so others could read the rows on their way",
                expected="https; http only to this machine (localhost, 127.0.0.0/8, ::1)",
            )
        return cls(parsed.raw_scheme, parsed.raw_host, port, parsed.raw_path)

    @property
    def host_header(self) -> bytes:
        host = b"[" + self.host + b"]" if b":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme.decode()] else host + b":" + str(self.port).encode()


def _is_loopback(host: str) -> bool:
    if host.casefold().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back.

    Parameters
    ----------
    status : int
    headers : dict of str to str
        Those that are read here, names in lower case; of a header that comes twice the last.
    body : bytes
        Decompressed; of an error no more than 64 KiB.
    """

    status: int
    headers: dict[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Transport:
    """Connections to one address; safe to use from several threads.

    Parameters
    ----------
    address : Address
    ca_file : Path or None
        Certificates (PEM) that vouch for the endpoint, instead of the usual ones.
    connect_timeout, read_timeout : float
        Seconds until a connection stands, and between two pieces of an answer.
    max_bytes : int
        The largest body, before and after decompression.
    connections : int
        The most at once.

    Raises
    ------
    InputError
        When `ca_file` holds no certificates.
    """

    def __init__(
        self,
        address: Address,
        *,
        ca_file: Path | None,
        connect_timeout: float,
        read_timeout: float,
        max_bytes: int,
        connections: int,
    ) -> None:
        self._address = address
        self._read_timeout = read_timeout
        self._connect_timeout = connect_timeout
        self._max_bytes = max_bytes
        self._clock = _Clock()
        self._lock = threading.Lock()
        self._streams: weakref.WeakSet[_TimedStream] = weakref.WeakSet()
        self._pool = httpcore.ConnectionPool(
            ssl_context=_tls(ca_file) if address.scheme == b"https" else None,
            max_connections=connections,
            keepalive_expiry=15.0,
            network_backend=_TimedBackend(self._clock, self._keep),
        )

    def post(self, body: bytes, headers: list[tuple[bytes, bytes]], *, timeout: float, stop: threading.Event) -> Reply:
        """Send a request and read the answer, all in at most `timeout` seconds, and not after `abort` of `stop`.

        Raises
        ------
        ConnectionFailure
            When the connection cannot be made, or is closed before the answer is complete.
        TransportError
            When the answer is late, too large, or no HTTP; when the certificate is not trusted.
        """
        place = self._address
        url = httpcore.URL(scheme=place.scheme, host=place.host, port=place.port, target=place.target)
        every = [(b"Host", place.host_header), (b"Content-Length", str(len(body)).encode()), *headers]
        limits = {"connect": self._connect_timeout, "pool": timeout, "read": self._read_timeout, "write": timeout}
        problem: TransportError
        self._clock.start(timeout, stop)
        try:
            with (
                _unlogged(),
                self._pool.stream("POST", url, headers=every, content=body, extensions={"timeout": limits}) as response,
            ):
                own = {
                    name.decode("latin-1").lower(): value.decode("latin-1")
                    for name, value in response.headers
                    if name.lower() in _READ_HEADERS
                }
                return Reply(response.status, own, self._body(response.status, own, response.iter_stream()))
        except TransportError as error:
            problem = error
        except httpcore.TimeoutException as error:
            problem = self._late(error, timeout)
        except httpcore.ConnectError as error:
            problem = _unconnected(error)
        except httpcore.UnsupportedProtocol:
            problem = TransportError("has an address that is no http or https URL", "address")
        except httpcore.RemoteProtocolError as error:
            problem = _broken(error)
        except httpcore.NetworkError:
            problem = ConnectionFailure("broke the connection off", "connection")
        except httpcore.ProtocolError:
            problem = TransportError("cannot be asked: the request breaks the rules of HTTP", "no HTTP")
        raise problem  # outside of the handlers: an error of the engine may hold the request, and is not chained

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    def abort(self, stop: threading.Event) -> None:
        """End the requests that other threads are making under `stop`."""
        stop.set()
        with self._lock:
            streams = list(self._streams)
        for stream in streams:
            if stream.stop is stop:
                stream.end()

    def _keep(self, stream: "_TimedStream") -> None:
        with self._lock:
            self._streams.add(stream)

    def _body(self, status: int, headers: dict[str, str], chunks: Iterable[bytes]) -> bytes:
        keep = self._max_bytes if status == 200 else _SHOWN_BODY
        announced = headers.get("content-length", "")
        if status == 200 and announced.isdigit() and int(announced[:20]) > keep:
            raise self._too_large()
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding == "gzip":
            chunks = _unzipped(chunks, keep)
        elif encoding not in ("identity", ""):
            if status != 200:
                return b""
            name = f" ({encoding})" if encoding in ("br", "deflate", "zstd", "compress") else ""
            raise TransportError(f"answered in an encoding{name} that it was not asked for", "encoding")
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > keep:
                if status != 200:
                    return bytes(body[:keep])
                raise self._too_large()
        return bytes(body)

    def _too_large(self) -> TransportError:
        return TransportError(
            f"answered with more than {self._max_bytes:,} bytes; smaller batches (batch_rows, --batch-rows) get "
            "smaller answers",
            "too large an answer",
        )

    def _late(self, error: httpcore.TimeoutException, timeout: float) -> TransportError:
        if self._clock.left() <= 0:
            return TransportError(f"took longer than {timeout:g} seconds to answer", "time limit")
        if isinstance(error, httpcore.ConnectTimeout):
            return ConnectionFailure(f"could not be reached within {self._connect_timeout:g} seconds", "connection")
        return TransportError(f"was silent for {self._read_timeout:g} seconds", "time limit")


class _Silence(threading.local, logging.Filter):
    """Keeps the engine from logging, in a thread that is making a request, what a server sent: it may be a secret."""

    on = False

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return not self.on


_SILENCE: Final = _Silence()
for _name in _ENGINE_LOGS:
    logging.getLogger(_name).addFilter(_SILENCE)


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    _SILENCE.on = True
    try:
        yield
    finally:
        _SILENCE.on = False


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    if ca_file is None:
        return httpx.create_ssl_context(verify=True, trust_env=False)
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ssl.SSLError, ValueError) as error:
        reason = getattr(error, "strerror", None) if not isinstance(error, ssl.SSLError) else "it holds none"
        raise InputError(
            f"no certificates could be read from {ca_file.name!r} ({reason or 'it holds none'})",
            expected="a PEM file with the certificate of the authority that vouches for the endpoint",
        ) from None


def _unconnected(error: httpcore.ConnectError) -> TransportError:
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return TransportError(
            f"has a certificate that is not trusted ({cause.verify_message.rstrip('.')}); where it is your own, name "
            "its authority with ca_file (--ca-file)",
            "certificate",
        )
    if isinstance(cause, ssl.SSLError):
        return TransportError("does not speak TLS as it should (is it plain http?)", "certificate")
    reason = next((getattr(step, "strerror", None) for step in _chain(error) if getattr(step, "strerror", None)), "")
    return ConnectionFailure(f"could not be reached{f' ({reason})' if reason else ''}", "connection")


def _chain(error: BaseException) -> Iterator[BaseException]:
    step: BaseException | None = error
    while step is not None:
        yield step
        step = step.__cause__ or step.__context__


def _broken(error: httpcore.RemoteProtocolError) -> TransportError:
    """Tell a connection that was closed early from an answer that is no HTTP."""
    text = str(error)
    if "without sending" in text or "closed connection" in text or "without sending complete" in text:
        return ConnectionFailure("closed the connection before its answer was complete", "connection")
    return TransportError("answered with something that is no HTTP", "no HTTP")


def _unzipped(chunks: Iterable[bytes], most: int) -> Iterator[bytes]:
    """Decompress in pieces, and stop one byte past `most`: a small body may unfold to a huge one."""
    machine = zlib.decompressobj(16 + zlib.MAX_WBITS)
    total = read = 0
    damaged = TransportError("answered with damaged gzip", "encoding")
    for chunk in chunks:
        rest = chunk
        read += len(chunk)
        if read > most + _CHUNK:  # without end, and unfolding to nothing
            raise damaged
        while rest and not machine.eof:
            try:
                piece = machine.decompress(rest, min(_CHUNK, most + 1 - total))
            except zlib.error:
                raise damaged from None
            total += len(piece)
            yield piece
            if total > most:
                return
            rest = machine.unconsumed_tail
        if machine.unused_data or (machine.eof and rest):
            raise damaged
    if not machine.eof:
        raise damaged


class _Clock(threading.local):
    """When the request that this thread is making must be over, and what ends it before."""

    _end = float("inf")
    stop: threading.Event | None = None

    def start(self, seconds: float, stop: threading.Event) -> None:
        self._end = time.monotonic() + seconds
        self.stop = stop

    def left(self) -> float:
        return self._end - time.monotonic()

    def within(self, timeout: float | None) -> float:
        """Return how long the next step may wait."""
        left = self.left()
        if left <= 0:
            raise httpcore.ReadTimeout
        if self.stop is not None and self.stop.is_set():
            raise httpcore.ReadError
        return left if timeout is None else min(timeout, left)


class _TimedBackend(httpcore.NetworkBackend):
    """Sockets under which a request ends in time, however slowly its pieces come."""

    def __init__(self, clock: _Clock, keep: "Callable[[_TimedStream], None]") -> None:
        self._inner = httpcore.SyncBackend()
        self._clock = clock
        self._keep = keep

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = _TimedStream(
            self._inner.connect_tcp(host, port, self._clock.within(timeout), local_address, socket_options),
            self._clock,
        )
        self._keep(stream)
        return stream


class _TimedStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, clock: _Clock) -> None:
        self._inner = inner
        self._clock = clock
        self.stop = clock.stop

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self.stop = self._clock.stop
        return self._inner.read(max_bytes, self._clock.within(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self.stop = self._clock.stop
        for start in range(0, len(buffer), _CHUNK):
            self._inner.write(buffer[start : start + _CHUNK], self._clock.within(timeout))

    def close(self) -> None:
        self._inner.close()

    def end(self) -> None:
        """Shut the socket down, which wakes whoever reads from it."""
        with contextlib.suppress(OSError):
            self._inner.get_extra_info("socket").shutdown(socket.SHUT_RDWR)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        self._inner = self._inner.start_tls(ssl_context, server_hostname, self._clock.within(timeout))
        return self

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
