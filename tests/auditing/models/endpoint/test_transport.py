import contextlib
import gzip
import socket
import ssl
import subprocess
import sys
import threading
import zlib

import pytest

pytest.importorskip("httpx")

from aboveboard.auditing.models.endpoint.transport import (
    Address,
    ConnectionFailure,
    Secret,
    Transport,
    TransportError,
)
from aboveboard.core.errors import InputError

# --- addresses --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "host", "port", "target", "header"),
    [
        ("https://models.example/predict", b"models.example", 443, b"/predict", b"models.example"),
        ("https://models.example:8443", b"models.example", 8443, b"/", b"models.example:8443"),
        ("HTTPS://Models.Example/p?v=1#top", b"models.example", 443, b"/p?v=1", b"models.example"),
        ("https://bücher.example/ä", b"xn--bcher-kva.example", 443, b"/%C3%A4", b"xn--bcher-kva.example"),
        ("http://localhost:8000/p", b"localhost", 8000, b"/p", b"localhost:8000"),
        ("http://127.8.9.1/p", b"127.8.9.1", 80, b"/p", b"127.8.9.1"),
        ("http://[::1]:8000/p", b"::1", 8000, b"/p", b"[::1]:8000"),
    ],
)
def test_an_address_is_read_once_and_for_all(url, host, port, target, header):
    address = Address.of(url)
    assert (address.host, address.port, address.target) == (host, port, target)
    assert address.host_header == header


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://models.example/predict", "plain http, so others could read"),
        ("http://10.0.0.1/", "plain http"),
        ("http://128.0.0.1/", "plain http"),
        ("http://0.0.0.0/", "plain http"),
        ("http://127.0.0.1.evil.example/", "plain http"),
        ("http://localhost.evil.example/", "plain http"),
        ("http://2130706433/", "plain http"),
        ("http://127.1/", "plain http"),
        ("http://[::ffff:8.8.8.8]/", "plain http"),
        ("https://user:s3cret@models.example/", "user name or a password"),
        ("https://s3cret@models.example/", "user name or a password"),
        ("http://localhost:s3cret@evil.example/", "user name or a password"),
        ("ftp://s3cret.example/", "no http or https URL"),
        ("https://", "no http or https URL"),
        ("https:///s3cret", "no http or https URL"),
        ("s3cret", "no http or https URL"),
        ("", "no http or https URL"),
        ("https://s3cret.example:99999/", "no valid URL"),
        ("https://s3cret.example/\n", "no valid URL"),
        ("https://s3cret\x00.example/", "no valid URL"),
        ("https://[::1/s3cret", "no valid URL"),
        ("https://s3cret.example/" + "a" * 70_000, "no valid URL"),
    ],
)
def test_an_address_that_is_not_safe_is_refused_without_repeating_it(url, message):
    with pytest.raises(InputError, match=message) as caught:
        Address.of(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_secret_shows_itself_nowhere():
    secret = Secret(b"s3cret")
    assert "s3cret" not in f"{secret} {secret!r} {[secret]} {(b'X', secret)}" + str(secret)
    assert secret == b"s3cret"


# --- one request ------------------------------------------------------------------------------------------------------


@pytest.fixture
def connect():
    opened = []

    def start(server, **options):
        settings = {
            "ca_file": None, "connect_timeout": 20.0, "read_timeout": 20.0, "max_bytes": 10_000, "connections": 2,
        } | options  # fmt: skip
        opened.append(Transport(Address.of(server.url), **settings))
        return opened[-1]

    yield start
    for transport in opened:
        transport.close()


def post(transport, body=b"{}", timeout=20.0, stop=None):
    headers = [(b"X-Api-Key", Secret(b"s3cret"))]
    return transport.post(body, headers, timeout=timeout, stop=stop or threading.Event())


def test_request_and_answer_arrive_whole(serve, connect, http):
    server = serve(http(b'{"a": 1}', Retry_After="1", Set_Cookie="a=b"))
    transport = connect(server)
    body = b"x" * 300_000
    reply = post(transport, body)
    assert (reply.status, reply.body) == (200, b'{"a": 1}')
    assert reply.headers == {"content-type": "application/json", "content-length": "8", "retry-after": "1"}
    assert server.requests[0].body == body
    assert server.requests[0].path == "/v1/predict"
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"
    assert server.requests[0].headers["x-api-key"] == "s3cret"
    assert post(transport).status == 200


@pytest.mark.parametrize(
    ("misbehave", "error", "message"),
    [
        (lambda r, c: c.hang(), TransportError, "was silent for 0.3 seconds"),
        (lambda r, c: (c.send(b"HTTP/1.1 200 OK\r\nContent-"), c.hang())[1], TransportError, "silent for 0.3"),
        (lambda r, c: c.drip(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 999), TransportError, "longer than 1 seconds"),
        (lambda r, c: c.drip(b"HTTP/1.1 100 Continue\r\n\r\n" * 99), TransportError, "longer than 1 seconds"),
        (
            lambda r, c: (c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), c.drip(b"x" * 9999))[1],
            TransportError,
            "longer than 1 seconds",
        ),
        (lambda r, c: None, ConnectionFailure, "closed the connection before"),
        (lambda r, c: c.reset(), ConnectionFailure, "broke the connection off"),
        (lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}"), ConnectionFailure, "closed the"),
        (
            lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
            ConnectionFailure,
            "closed the connection before",
        ),
        (lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nConte"), ConnectionFailure, "closed the connection before"),
        (
            lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab"),
            TransportError,
            "is no HTTP",
        ),
        (lambda r, c: c.send(b"\x16\x03\x01 hello\r\n\r\n"), TransportError, "is no HTTP"),
        (lambda r, c: c.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n"), TransportError, "is no HTTP"),
        (
            lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
            TransportError,
            "is no HTTP",
        ),
        (lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}"), TransportError, "is no HTTP"),
        (lambda r, c: c.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 20_000), TransportError, "more than 10,000 bytes"),
        (
            lambda r, c: c.send(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n"),
            TransportError,
            "more than 10,000 bytes",
        ),
    ],
    ids=[
        "hang", "half-headers-then-hang", "endless-headers", "endless-continue", "dripping-body", "closes-at-once",
        "resets", "closes-mid-body", "closes-mid-chunk", "closes-mid-headers", "bad-chunk", "no-http", "huge-headers",
        "two-lengths", "negative-length", "huge-body", "huge-length",
    ],
)  # fmt: skip
def test_a_server_that_misbehaves_is_left_in_time_with_a_reason(serve, connect, misbehave, error, message):
    transport = connect(serve(misbehave), read_timeout=0.3 if "silent" in message else 20.0)
    with pytest.raises(TransportError, match=message) as caught:
        post(transport, timeout=1.0 if "longer" in message else 20.0)
    assert type(caught.value) is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None  # the engine's error may hold the request


def test_a_longer_body_than_announced_is_cut_where_the_length_says(serve, connect, http):
    transport = connect(serve(http(b'{"a": 1}garbage', Content_Length="8")))
    assert post(transport).body == b'{"a": 1}'
    with contextlib.suppress(TransportError):  # what is left over is never taken for the next answer
        assert post(transport).body == b'{"a": 1}'


def test_gzip_is_unfolded_up_to_the_limit_and_no_further(serve, connect, http):
    plain = b'{"predictions": [' + b"0.5, " * 1000 + b"0.5]}"
    assert post(connect(serve(http(gzip.compress(plain), Content_Encoding="gzip")))).body == plain
    bomb = gzip.compress(b"0" * 50_000_000)
    assert len(bomb) < 60_000
    with pytest.raises(TransportError, match="more than 60,000 bytes"):
        post(connect(serve(http(bomb, Content_Encoding="gzip")), max_bytes=60_000))


def test_a_bomb_is_not_unfolded_in_memory(serve, connect, http):
    import tracemalloc

    bomb = gzip.compress(b"0" * 200_000_000, compresslevel=9)
    transport = connect(serve(http(bomb, Content_Encoding="gzip")), max_bytes=1_000_000)
    post(connect(serve(http())))
    tracemalloc.start()
    with pytest.raises(TransportError, match="more than"):
        post(transport)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000_000


@pytest.mark.parametrize(
    "body",
    [
        b"plain",
        gzip.compress(b"{}")[:-4],
        gzip.compress(b"{}") + b"more",
        gzip.compress(b"{}") + gzip.compress(b"{}"),
        zlib.compress(b"{}"),
        b"",
    ],
    ids=["no-gzip", "cut", "more", "two-members", "zlib", "empty"],
)
def test_damaged_gzip_is_refused(serve, connect, http, body):
    with pytest.raises(TransportError, match="damaged gzip"):
        post(connect(serve(http(body, Content_Encoding="gzip"))))


def test_gzip_that_unfolds_to_nothing_without_end_is_refused(serve, connect, http):
    empty = gzip.compress(b"")[:10] + b"\x00\x00\x00\xff\xff" * 40_000  # blocks that hold no bytes
    with pytest.raises(TransportError, match="damaged gzip"):
        post(connect(serve(http(empty, Content_Encoding="gzip", Content_Length=None))))


def test_another_encoding_than_was_asked_for_is_refused(serve, connect, http):
    with pytest.raises(TransportError, match=r"an encoding \(br\) that"):
        post(connect(serve(http(b"x", Content_Encoding="br"))))


def test_of_an_error_only_the_beginning_is_read(serve, connect, http):
    reply = post(connect(serve(http(b"x" * 1_000_000, status=500)), max_bytes=10))
    assert reply.status == 500
    assert 0 < len(reply.body) <= 65_536


def test_nobody_listening_is_a_connection_failure(serve, connect):
    server = serve(b"")
    transport = connect(server)
    server.close()
    with pytest.raises(ConnectionFailure, match=r"could not be reached \(Connection refused\)"):
        post(transport)


def test_proxies_and_passwords_in_the_environment_are_not_looked_at(serve, connect, http, monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password pw")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    server = serve(http(Set_Cookie="a=b"))
    transport = connect(server)
    assert post(transport).status == post(transport).status == 200
    for request in server.requests:
        assert set(request.headers) == {"host", "content-length", "x-api-key"}


def test_another_thread_can_end_a_request_that_hangs(serve, connect):
    server = serve(lambda request, connection: connection.hang())
    transport = connect(server, read_timeout=60.0)
    stop, other = threading.Event(), threading.Event()
    threading.Timer(0.1, transport.abort, [other]).start()
    threading.Timer(0.3, transport.abort, [stop]).start()
    with pytest.raises(ConnectionFailure):
        post(transport, timeout=60.0, stop=stop)
    assert other.is_set()
    with pytest.raises(ConnectionFailure):  # nothing is begun any more either
        post(transport, timeout=60.0, stop=stop)
    assert len(server.requests) == 1


# --- TLS --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate of our own for 127.0.0.1, and its key."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return folder / "cert.pem", context


def test_a_certificate_that_nobody_vouches_for_is_refused_and_nothing_is_sent(serve, connect, certificate, http):
    server = serve(http(), context=certificate[1])
    with pytest.raises(TransportError, match=r"not trusted \(self-signed certificate\).*--ca-file") as caught:
        post(connect(server))
    assert type(caught.value) is TransportError
    assert server.requests == []


def test_a_certificate_is_accepted_where_its_authority_is_named(serve, connect, certificate, http):
    server = serve(http(b"[1]"), context=certificate[1])
    assert post(connect(server, ca_file=certificate[0])).body == b"[1]"


def test_a_certificate_for_another_host_is_refused(serve, connect, certificate, http):
    server = serve(http(), context=certificate[1])
    transport = Transport(
        Address.of(f"https://localhost:{server.port}/"),
        ca_file=certificate[0],
        connect_timeout=20.0,
        read_timeout=20.0,
        max_bytes=100,
        connections=1,
    )
    with pytest.raises(TransportError, match=r"not trusted.*localhost"):
        post(transport)
    transport.close()
    assert server.requests == []


def test_certificates_named_in_the_environment_are_not_trusted(serve, connect, certificate, http, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    with pytest.raises(TransportError, match="not trusted"):
        post(connect(serve(http(), context=certificate[1])))


def test_https_to_a_server_that_speaks_plain_http_is_explained():
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer():
            connection, _ = listening.accept()
            with connection:
                connection.recv(100_000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        transport = Transport(
            Address.of(f"https://127.0.0.1:{listening.getsockname()[1]}/"),
            ca_file=None,
            connect_timeout=20.0,
            read_timeout=20.0,
            max_bytes=100,
            connections=1,
        )
        with pytest.raises(TransportError, match=r"does not speak TLS as it should \(is it plain http\?\)"):
            post(transport)
        thread.join()


@pytest.mark.parametrize("content", [None, b"", b"not a certificate"])
def test_a_file_without_certificates_is_refused(serve, connect, http, tmp_path, content, certificate):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"no certificates could be read from 'ca\.pem'"):
        connect(serve(http(), context=certificate[1]), ca_file=path)


def test_the_endpoint_imports_its_engine_only_when_it_is_used():
    code = (
        "import sys, aboveboard.auditing.models.endpoint; "
        "print(*{'httpx', 'httpcore', 'h11', 'ssl'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "httpx" not in done.stdout
    assert "httpcore" not in done.stdout
