"""Facts about finding, checking, fetching and keeping the files of a data set."""

import dataclasses
import gzip
import hashlib
import http.server
import io
import threading
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.data import info, load, store
from aboveboard.data.manifest import PACKAGE, FileInfo
from aboveboard.data.store import cache_folder, combined_sha256, obtain

CONTENT = b"a,b\n1,2\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def record(*files: FileInfo, originals: tuple[FileInfo, ...] = (), **changes):
    return dataclasses.replace(info("nba_coach"), files=files, originals=originals, **changes)


@pytest.fixture
def server(tmp_path):
    """Serve a folder on this machine; return the folder, the address and the paths asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, directory=str(folder), **options)

        def log_message(self, *arguments):
            asked.append(self.path)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{web.server_address[1]}", asked
        web.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["adult", "german_credit", "credit_default", "communities_crime", "acs_employment"])
def test_each_bundled_file_has_the_checksum_of_the_bundle(name):
    for file in info(name).files:
        assert sha256((PACKAGE / "files" / file.name).read_bytes()) == file.sha256


@given(position=st.integers(0, 15_000), flip=st.integers(1, 255))
@settings(max_examples=25, deadline=None)
def test_one_changed_byte_anywhere_in_a_bundled_file_is_refused(tmp_path_factory, position, flip):
    folder = tmp_path_factory.mktemp("package")
    (folder / "files").mkdir()
    damaged = bytearray((PACKAGE / "files" / "german_credit.parquet").read_bytes())
    damaged[position] ^= flip
    (folder / "files" / "german_credit.parquet").write_bytes(damaged)
    with mock.patch.object(store, "PACKAGE", folder), pytest.raises(InputError, match="not the file that is meant"):
        load("german_credit")


def test_a_bundled_file_that_is_gone_is_named_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "PACKAGE", tmp_path)
    with pytest.raises(InputError, match=r"german_credit\.parquet.*cannot be read.*Reinstall aboveboard"):
        load("german_credit")


def test_without_a_folder_or_a_download_nothing_is_fetched_and_the_way_is_told(offline):
    with mock.patch("urllib.request.urlopen") as opened, pytest.raises(InputError) as caught:
        load("compas")
    assert not opened.called
    message = str(caught.value)
    assert "ABOVEBOARD_DATA" in message
    assert "download=True" in message
    assert "https://raw.githubusercontent.com/propublica/" in message
    assert info("compas").originals[0].sha256 in message
    assert not offline.exists()


def test_a_named_folder_that_does_not_exist_is_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"ABOVEBOARD_DATA names .*nowhere.*not a folder"):
        load("compas")


def test_a_named_folder_is_not_asked_for_bundled_data(monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path / "nowhere"))
    assert len(load("german_credit").X) == 1000


def test_a_file_in_the_named_folder_is_used(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    (tmp_path / "x.csv").write_bytes(CONTENT)
    assert obtain(record(FileInfo(name="x.csv", sha256=sha256(CONTENT)))) == {"x.csv": CONTENT}


def test_a_file_in_the_named_folder_with_another_content_is_refused(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    (tmp_path / "nba_coach_2021_rankings.csv").write_text("item_name,Someone\nNobody,1\n")
    with pytest.raises(InputError, match=r"nba_coach_2021_rankings\.csv is not the file that is meant"):
        load("nba_coach")


def test_the_published_file_in_the_named_folder_is_prepared(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    (tmp_path / "raw.txt").write_bytes(CONTENT.upper())
    wanted = record(
        FileInfo(name="x.csv", sha256=sha256(CONTENT)),
        originals=(FileInfo(name="raw.txt", sha256=sha256(CONTENT.upper())),),
    )
    assert obtain(wanted, prepare=lambda raw: {"x.csv": raw["raw.txt"].lower()}) == {"x.csv": CONTENT}


def test_what_is_prepared_must_have_the_known_checksum_too(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    (tmp_path / "raw.txt").write_bytes(CONTENT)
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT)), originals=(FileInfo(name="raw.txt"),))
    with pytest.raises(InputError, match="What was made of the published"):
        obtain(wanted, prepare=lambda raw: {"x.csv": b"something else"})


def test_a_download_is_checked_and_kept_so_that_the_next_call_needs_no_network(offline, server):
    folder, address, asked = server
    (folder / "x.csv").write_bytes(CONTENT)
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url=f"{address}/x.csv"))
    assert obtain(wanted, download=True) == {"x.csv": CONTENT}
    assert obtain(wanted, download=True) == {"x.csv": CONTENT}
    assert obtain(wanted) == {"x.csv": CONTENT}
    assert asked == ["/x.csv"]
    assert [path.name for path in offline.iterdir()] == ["x.csv"]


def test_only_what_was_made_of_a_download_is_kept(offline, server):
    folder, address, _ = server
    (folder / "raw.txt").write_bytes(CONTENT.upper())
    wanted = record(
        FileInfo(name="x.csv", sha256=sha256(CONTENT)),
        originals=(FileInfo(name="raw.txt", sha256=sha256(CONTENT.upper()), url=f"{address}/raw.txt"),),
    )
    assert obtain(wanted, prepare=lambda raw: {"x.csv": raw["raw.txt"].lower()}, download=True) == {"x.csv": CONTENT}
    assert [path.name for path in offline.iterdir()] == ["x.csv"]


def test_a_download_with_another_content_is_refused_and_not_kept(offline, server):
    folder, address, _ = server
    (folder / "x.csv").write_bytes(b"a,b\n1,3\n")
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url=f"{address}/x.csv"))
    with pytest.raises(InputError, match="not the file that is meant"):
        obtain(wanted, download=True)
    assert not offline.exists()


def test_a_download_larger_than_known_is_refused_without_reading_on(offline, server):
    folder, address, _ = server
    (folder / "x.csv").write_bytes(CONTENT * 1000)
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url=f"{address}/x.csv", bytes=len(CONTENT)))
    with pytest.raises(InputError, match="larger than 8 bytes"):
        obtain(wanted, download=True)


def test_an_address_that_answers_not_found_is_reported_with_what_to_do(offline, server):
    _, address, _ = server
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url=f"{address}/x.csv"))
    with pytest.raises(InputError, match=r"could not be fetched.*ABOVEBOARD_DATA.*its sha256 must be"):
        obtain(wanted, download=True)


def test_a_machine_without_network_is_told_how_to_get_the_file(offline):
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url="http://127.0.0.1:9/x.csv"))
    with pytest.raises(InputError, match=r"http://127\.0\.0\.1:9/x\.csv could not be fetched.*when online"):
        obtain(wanted, download=True)


def test_a_cache_that_cannot_be_written_is_reported_and_leaves_nothing_behind(offline, server):
    folder, address, _ = server
    (folder / "x.csv").write_bytes(CONTENT)
    offline.write_text("a file where a folder should be")
    wanted = record(FileInfo(name="x.csv", sha256=sha256(CONTENT), url=f"{address}/x.csv"))
    with pytest.raises(InputError, match="cannot be kept"):
        obtain(wanted, download=True)


def test_a_compressed_file_is_checked_by_what_is_inside(offline, monkeypatch, tmp_path):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    wanted = record(FileInfo(name="x.gz", sha256=sha256(CONTENT)), checked="gunzipped")
    for level in (1, 9):
        (tmp_path / "x.gz").write_bytes(gzip.compress(CONTENT, level, mtime=level))
        assert gzip.decompress(obtain(wanted)["x.gz"]) == CONTENT


@pytest.mark.parametrize("checked", ["gunzipped", "arrays"])
@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(CONTENT, mtime=0)[:-3], b"PK\x03\x04broken"])
def test_a_broken_archive_is_refused_not_crashed_on(offline, monkeypatch, tmp_path, checked, content):
    monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match="not the file that is meant"):
        obtain(record(FileInfo(name="x", sha256="0" * 64), checked=checked))


def test_arrays_are_checked_by_name_shape_and_value_however_they_are_packed():
    def packed(save, **arrays):
        out = io.BytesIO()
        save(out, **arrays)
        return store._sha256_arrays(out.getvalue())

    a, b = np.arange(6, dtype="float32").reshape(2, 3), np.ones(2, dtype="float32")
    known = packed(np.savez, a=a, b=b)
    assert packed(np.savez_compressed, b=b, a=a) == known
    assert packed(np.savez, a=a.T, b=b) != known
    assert packed(np.savez, a=a.reshape(3, 2), b=b) != known
    assert packed(np.savez, a=a, c=b) != known


def test_the_checksum_of_one_file_is_its_own_and_of_several_depends_on_each():
    one, two = FileInfo(name="a", sha256="1"), FileInfo(name="b", sha256="2")
    assert combined_sha256((one,)) == "1"
    assert combined_sha256((one, two)) == sha256(b"a 1\nb 2\n")


def test_the_cache_follows_the_systems_convention(monkeypatch, tmp_path):
    monkeypatch.setattr(store.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "aboveboard" / "data"
    monkeypatch.setattr(store.sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "aboveboard" / "data"
