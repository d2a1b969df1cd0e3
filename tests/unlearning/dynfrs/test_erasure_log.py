import hashlib
import hmac
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

pytest.importorskip("numba")
from aboveboard.core import InputError
from aboveboard.unlearning import DynFrsClassifier, ErasureLog

KEY = b"a key of thirty-two bytes or so."


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(400, 4)), rng.integers(0, 2, 400)


@pytest.fixture
def model(rows):
    return DynFrsClassifier(20, random_state=0).fit(*rows, sample_id=np.arange(400) + 5_000_000)


def test_an_erasure_is_written_down_and_done(tmp_path, model, rows):
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        done = log.erase(model, [5_000_001, 5_000_002], request_id="ticket-7")
        assert (done.n_records, done.n_left) == (2, 398)
        assert done.accepted_at <= done.finished_at
        assert log.entries() == [done]
        assert 5_000_001 in log
        assert 5_000_003 not in log
        with pytest.raises(KeyError, match="unknown"):
            model.remove(5_000_001)
        certificate = log.certificate(model, "ticket-7", n_probe=3)
        assert certificate.holds
        assert certificate.parameters["digest_of_ids_left"] == done.digest
        log.save(model, tmp_path / "model")
        assert log.entries()[0].saved_at >= done.finished_at


def test_the_digest_is_the_sum_of_the_hmacs_of_the_ids_left(tmp_path, model):
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.erase(model, 5_000_010)
        done = log.erase(model, [5_000_020, 5_000_030])
    left = set(range(5_000_000, 5_000_400)) - {5_000_010, 5_000_020, 5_000_030}
    macs = (hmac.digest(KEY, b"record left\x00i%d" % i, hashlib.sha256) for i in left)
    total = sum(int.from_bytes(mac, "big") for mac in macs) % 2**256
    assert done.digest == total.to_bytes(32, "big").hex()


def test_the_digest_follows_changes_made_without_the_log(tmp_path, model, rows):
    X, y = rows
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.erase(model, 5_000_010)
        model.partial_fit(X[:3], y[:3], sample_id=[1, 2, 3])
        assert not log.matches(model)
        log.erase(model, 2)
        assert log.matches(model)
        log.admit(model, X[:1], y[:1], [9])
        log.erase(model, 9)
        assert log.matches(model)


def test_the_files_hold_neither_an_id_nor_a_plain_hash_nor_a_value(tmp_path, model, rows):
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.erase(model, [5_000_123])
        everything = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    text = b"5000123"
    for secret in (text, np.int64(5_000_123).tobytes(), (5_000_123).to_bytes(4, "big"), KEY):
        assert secret not in everything
    for name in ("md5", "sha1", "sha256", "blake2b"):
        for form in (text, b"i" + text, np.int64(5_000_123).tobytes()):
            assert hashlib.new(name, form).digest() not in everything
    assert np.float32(rows[0][123, 0]).tobytes() not in everything


def test_a_request_that_fails_leaves_no_line_and_changes_nothing(tmp_path, model):
    before = model.fingerprint()
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        with pytest.raises(KeyError, match="unknown"):
            log.erase(model, [5_000_001, 1])
        with pytest.raises(InputError, match="repeated"):
            log.erase(model, [5_000_001, 5_000_001])
        assert log.entries() == []
        assert model.fingerprint() == before
        log.erase(model, 5_000_001, request_id="one")
        with pytest.raises(InputError, match="in the log already"):
            log.erase(model, 5_000_002, request_id="one")
        assert len(model.sample_ids_) == 399
        with pytest.raises(InputError, match="no finished request"):
            log.certificate(model, "two")


def test_an_erased_id_is_not_admitted_again(tmp_path, model, rows):
    X, y = rows
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.erase(model, 5_000_001)
        with pytest.raises(InputError, match="were erased: 5000001"):
            log.admit(model, X[:1], y[:1], [5_000_001])
        assert len(model.sample_ids_) == 399


def test_another_key_or_another_file_is_refused(tmp_path):
    ErasureLog(tmp_path / "log.db", KEY).close()
    with pytest.raises(InputError, match="another key"):
        ErasureLog(tmp_path / "log.db", b"x" * 32)
    (tmp_path / "text").write_text("hello, this is no database" * 50)
    with pytest.raises(InputError, match="is no erasure log"):
        ErasureLog(tmp_path / "text", KEY)
    with pytest.raises(InputError, match="3 bytes"):
        ErasureLog(tmp_path / "log.db", b"abc")


def test_the_file_is_set_to_survive_and_to_overwrite_what_is_deleted(tmp_path):
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        settings = [log._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("journal_mode", "secure_delete")]
        assert settings == ["wal", 1]
        assert log._db.execute("PRAGMA synchronous").fetchone()[0] == 2


def test_erasures_from_several_threads_are_all_written_and_done(tmp_path, model):
    with ErasureLog(tmp_path / "log.db", KEY) as log:

        def work(start):
            for i in range(start, 60, 3):
                log.erase(model, 5_000_000 + i)

        threads = [threading.Thread(target=work, args=(start,)) for start in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(entry.n_left for entry in log.entries()) == list(range(340, 400))
        assert log.matches(model)
    assert model.certify().holds


def test_a_removal_that_was_accepted_but_not_done_is_finished_by_replay(tmp_path, model, monkeypatch):
    model.save(tmp_path / "model")
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.erase(model, 5_000_001)

        def crash(_):
            raise MemoryError

        monkeypatch.setattr(model, "remove", crash)
        with pytest.raises(MemoryError):
            log.erase(model, 5_000_002)
        assert [entry.finished_at is None for entry in log.entries()] == [False, True]
    again = DynFrsClassifier.load(tmp_path / "model")
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        assert [entry.n_records for entry in log.replay(again)] == [1]
        assert all(entry.finished_at for entry in log.entries())
        assert len(again.sample_ids_) == 398
        assert log.matches(again)
        assert log.replay(again) == []
    assert again.certify().holds


CHILD = """
import os, sys
from aboveboard.unlearning import DynFrsClassifier, ErasureLog
folder = sys.argv[1]
model = DynFrsClassifier.load(folder + "/model")
log = ErasureLog(folder + "/log.db", {key!r})
log.replay(model)
out = os.open(folder + "/said", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.write(out, b"ready\\n")
for step, i in enumerate(model.sample_ids_.tolist()[:-10]):
    os.write(out, b"asked %d\\n" % i)
    log.erase(model, i)
    os.write(out, b"done %d\\n" % i)
    if step % 25 == 24:
        log.save(model, folder + "/model")
"""


def _killed_at_random(tmp_path, model, rows, delays):
    model.save(tmp_path / "model")
    said = tmp_path / "said"
    for delay in delays:
        lines = said.read_text().count("ready") if said.exists() else 0
        child = subprocess.Popen([sys.executable, "-c", CHILD.format(key=KEY), str(tmp_path)])
        while not said.exists() or said.read_text().count("ready") == lines:
            assert child.poll() is None
            time.sleep(0.01)
        time.sleep(delay)
        child.send_signal(signal.SIGKILL)
        child.wait()
    words = [line.split() for line in said.read_text().splitlines()]
    asked = {int(w[1]) for w in words if w[0] == "asked" and len(w) == 2}
    done = {int(w[1]) for w in words if w[0] == "done" and len(w) == 2}
    again = DynFrsClassifier.load(tmp_path / "model")
    with ErasureLog(tmp_path / "log.db", KEY) as log:
        log.replay(again)
        left = set(again.sample_ids_.tolist())
        logged = {i for i in asked if i in log}
        assert done <= logged
        assert not left & logged
        assert left == set(range(5_000_000, 5_000_400)) - logged
        assert len(asked - done) <= len(delays)
        assert all(entry.finished_at for entry in log.entries())
        assert sum(entry.n_records for entry in log.entries()) == len(logged)
        assert len(done) > 0
    with sqlite3.connect(tmp_path / "log.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    X, y = rows
    kept = np.array(sorted(left)) - 5_000_000
    afresh = DynFrsClassifier(20, random_state=0).fit(X[kept], y[kept], sample_id=kept + 5_000_000)
    assert again.fingerprint() == afresh.fingerprint()


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_killed_twice_at_random_nothing_is_lost_and_nothing_half_removed(tmp_path, model, rows):
    _killed_at_random(tmp_path, model, rows, np.random.default_rng().uniform(0.005, 0.15, 2))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is POSIX")
def test_killed_thirty_times_at_random_nothing_is_lost_and_nothing_half_removed(tmp_path, model, rows):
    _killed_at_random(tmp_path, model, rows, np.random.default_rng().uniform(0.0, 0.02, 30))
