"""A real server on this machine that answers, or misbehaves, as a test says."""

import contextlib
import json
import socket
import socketserver
import ssl
import threading
import time
from dataclasses import dataclass, field

import pytest


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes
    number: int

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def rows(self):
        return self.json["rows"]


def http(body=b"{}", *, status=200, kind="application/json", **headers):
    """Return a whole answer; a header's underscores are hyphens, and None leaves one out."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    own = {"Content_Type": kind, "Content_Length": str(len(body)), **headers}
    lines = [f"HTTP/1.1 {status} Said", *(f"{k.replace('_', '-')}: {v}" for k, v in own.items() if v is not None)]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


class Connection:
    """One connection, for answers that come in pieces; `broken` ends it."""

    def __init__(self, sock, closing):
        self._sock = sock
        self._closing = closing

    def send(self, data):
        self._sock.sendall(data)

    def drip(self, data, seconds=0.02):
        for i in range(len(data)):
            if self._closing.is_set():
                break
            self._sock.sendall(data[i : i + 1])
            time.sleep(seconds)

    def hang(self):
        self._closing.wait(30)

    def reset(self):
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


@dataclass
class Server:
    """Runs `behave(request, connection)`, which returns a whole answer, or sends pieces itself and returns None."""

    behave: object
    context: ssl.SSLContext | None = None
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0

    def __post_init__(self):
        server, lock, closing = self, threading.Lock(), threading.Event()
        self._closing = closing
        busy = [0]

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
                    if server.context is not None:
                        self.request = stack.enter_context(server.context.wrap_socket(self.request, server_side=True))
                    file = stack.enter_context(self.request.makefile("rb"))
                    while True:
                        line = file.readline()
                        if not line:
                            return
                        path = line.decode("latin-1").split()[1]
                        headers = {}
                        while (line := file.readline().decode("latin-1").strip()) != "":
                            name, _, value = line.partition(":")
                            headers[name.lower()] = value.strip()
                        body = file.read(int(headers["content-length"]))
                        with lock:
                            request = Request(path, headers, body, len(server.requests))
                            server.requests.append(request)
                            busy[0] += 1
                            server.most_at_once = max(server.most_at_once, busy[0])
                        try:
                            answer = server.behave(request, Connection(self.request, closing))
                        finally:
                            with lock:
                                busy[0] -= 1
                        if answer is None:
                            return
                        self.request.sendall(answer)

        class Threads(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True
            request_queue_size = 64

            def shutdown_request(self, request):
                self.close_request(request)

            def handle_error(self, request, client_address):
                pass

        self._server = Threads(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self):
        return self._server.server_address[1]

    @property
    def url(self):
        scheme = "http" if self.context is None else "https"
        return f"{scheme}://127.0.0.1:{self.port}/v1/predict"

    def close(self):
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def serve():
    """Start a server: ``serve(behave)``, or ``serve(answer)`` with the same bytes for every request."""
    started = []

    def start(behave, **options):
        server = Server(behave if callable(behave) else lambda request, connection: behave, **options)
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


@pytest.fixture(name="http")
def give_http():
    return http


@pytest.fixture
def pauses(monkeypatch):
    """Waiting before a retry takes no time; the list that is given holds the seconds."""
    from aboveboard.auditing.models import endpoint

    seconds = []
    monkeypatch.setattr(endpoint, "_pause", lambda stop, pause: seconds.append(pause))
    return seconds
