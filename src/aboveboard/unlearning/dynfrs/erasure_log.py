"""A durable record of erasure requests: what was asked and when it was done, and nothing about whom.

The log is an SQLite file. It holds, per request, its id, its times, a keyed digest (HMAC-SHA256) of each record id and
a keyed digest of the ids that were left; neither a record id nor any value of a row. A request is on disk before the
model changes, so that a crash at any moment leaves it either unwritten (and unanswered) or ready to be finished.
"""

import hashlib
import hmac
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Self

from aboveboard.core import Certificate, InputError
from aboveboard.core.keyed import record_bytes
from aboveboard.unlearning.dynfrs._input import listed, read_ids

__all__ = ["Erasure", "ErasureLog"]

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    request_id TEXT NOT NULL UNIQUE,
    accepted_at TEXT NOT NULL,
    finished_at TEXT,
    saved_at TEXT,
    n_records INTEGER NOT NULL,
    n_left INTEGER,
    digest BLOB
);
CREATE VIEW IF NOT EXISTS erasures AS
    SELECT number, request_id, accepted_at, finished_at, saved_at, n_records, n_left, digest FROM requests;
CREATE TABLE IF NOT EXISTS records (
    mac BLOB NOT NULL, number INTEGER NOT NULL REFERENCES requests (number), PRIMARY KEY (mac, number)
) WITHOUT ROWID;
"""
_VERSION: Final = b"1"
_MODULUS: Final = 1 << 256


@dataclass(frozen=True, slots=True)
class Erasure:
    """One request, as the log holds it.

    Parameters
    ----------
    request_id : str
    accepted_at : str
        When it was durable on disk, ISO 8601, UTC.
    finished_at : str or None
        When the model had forgotten; None while pending.
    saved_at : str or None
        When the model was next saved through the log: from then on its file holds none of the rows either.
    n_records : int
        How many records it named.
    n_left : int or None
        How many rows the model had afterwards.
    digest : str or None
        Keyed multiset digest of the ids left, 64 hexadecimal digits: their HMACs, summed modulo 2**256.
    """

    request_id: str
    accepted_at: str
    finished_at: str | None
    saved_at: str | None
    n_records: int
    n_left: int | None
    digest: str | None


class ErasureLog:
    """Remove rows from a model, and keep evidence of it that survives a crash and betrays nobody.

    Parameters
    ----------
    path : str or path
        SQLite file, made where there is none. Write-ahead logging; deleted content is overwritten (``secure_delete``).
    key : bytes
        At least 16 secret bytes, kept apart from the file: without it nobody can tell whether an id is in the log.

    Raises
    ------
    InputError
        When the file was made with another key, or is no erasure log.

    Guarantee
    ---------
    When `erase` returns, the request is on disk and the model has forgotten the rows. When the process is killed
    before that, the request is either not in the log, or `replay` finishes it on the model as it was last saved. An
    erased id must not be given to a new record (`admit` refuses that), since `replay` would remove it again.

    Notes
    -----
    `erase` costs one synchronous write to the disk beside the removal itself; the digest of the ids left is updated in
    O(1) per record. It is computed anew, O(n), only after the model was changed by other means than this log. Removals
    from several threads go one after another; queries do not wait for the disk.

    Examples
    --------
    >>> import secrets, tempfile, pathlib
    >>> from sklearn.datasets import load_breast_cancer
    >>> from aboveboard.unlearning import DynFrsClassifier, ErasureLog
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = DynFrsClassifier(random_state=0).fit(X, y)
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with ErasureLog(folder / "erasures.db", secrets.token_bytes(32)) as log:
    ...     done = log.erase(model, [17, 23], request_id="ticket-1")
    ...     log.save(model, folder / "model.forest")
    ...     done.n_left, log.matches(model), 17 in log
    (567, True, True)
    """

    def __init__(self, path: Any, key: bytes) -> None:
        if not isinstance(key, bytes) or len(key) < 16:
            raise InputError(
                f"the key is {type(key).__name__ if not isinstance(key, bytes) else f'{len(key)} bytes'}",
                expected="at least 16 secret bytes",
                remedy="Make one with secrets.token_bytes(32), and keep it apart from the log",
            )
        self._record_mac = hmac.new(key, b"erased record\x00", hashlib.sha256)
        self._left_mac = hmac.new(key, b"record left\x00", hashlib.sha256)
        self._lock = threading.RLock()
        self._seen: tuple[Any, int, int] | None = None  # a weak reference to the forest, its version, its digest
        self.path = Path(path)
        try:
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA secure_delete = ON")
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.executescript(_SCHEMA)
            self._check_key(hmac.new(key, b"key check\x00", hashlib.sha256).digest())
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} is no erasure log: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __contains__(self, sample_id: int) -> bool:
        """Whether a request named this record id."""
        return self._known(self._mac(sample_id))

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def erase(self, model: Any, sample_id: Any, *, request_id: str | None = None) -> Erasure:
        """Write the request down, then remove the rows from the model.

        Parameters
        ----------
        model : DynFrsClassifier, DynFrsRegressor or UnlearningPipeline
        sample_id : int or array of int
        request_id : str, optional
            Your own reference, such as a ticket number, without personal data; default a random UUID.

        Raises
        ------
        KeyError, InputError
            For ids that the model would refuse, and for a `request_id` that was used before. Neither the log nor the
            model has changed then.
        """
        with self._lock:
            ids = model.check_removal(sample_id).tolist()
            name = str(uuid.uuid4()) if request_id is None else str(request_id)
            before = self._digest(model)
            accepted = _now()
            with self._transaction():
                if self._db.execute("SELECT 1 FROM requests WHERE request_id = ?", (name,)).fetchone():
                    raise InputError(f"the request {name!r} is in the log already", expected="a new request id")
                number = self._db.execute(
                    "INSERT INTO requests (request_id, accepted_at, n_records) VALUES (?, ?, ?)",
                    (name, accepted, len(ids)),
                ).lastrowid
                self._db.executemany("INSERT INTO records VALUES (?, ?)", [(self._mac(i), number) for i in ids])
            model.remove(ids)
            self._follow(model, before - self._sum(ids))
            return self._finish(model, number)

    def replay(self, model: Any) -> list[Erasure]:
        """Finish what a crash interrupted: remove every row of the model that any request in the log names.

        Parameters
        ----------
        model : estimator
            As loaded from the last file that was saved.

        Returns
        -------
        list of Erasure
            The requests that were pending, finished now.

        Notes
        -----
        O(n): one HMAC per row of the model. Running it again changes nothing.
        """
        with self._lock:
            erased = [i for i in model.sample_ids_.tolist() if self._known(self._mac(i))]
            if erased:
                model.remove(erased)
            self._seen = None
            pending = self._db.execute("SELECT number FROM requests WHERE finished_at IS NULL ORDER BY number")
            return [self._finish(model, number) for (number,) in pending.fetchall()]

    def admit(self, model: Any, X: Any, y: Any, sample_id: Any, **options: Any) -> None:
        """Add rows to the model under ids that no request has named.

        Raises
        ------
        InputError
            For ids that were erased under this log, which it names, and where `partial_fit` refuses the rows.
        """
        with self._lock:
            ids = read_ids(sample_id)
            again = [i for i in ids.tolist() if self._known(self._mac(i))]
            if again:
                raise InputError(
                    f"{len(again):,} record ids were erased: {listed(again)}",
                    expected="ids that were never erased",
                    remedy="Give new records new ids: a replay of the log would remove these again",
                )
            before = self._digest(model)
            model.partial_fit(X, y, sample_id=ids, **options)
            self._follow(model, before + self._sum(ids.tolist()))

    def save(self, model: Any, path: Any) -> None:
        """Save the model, and note for all finished requests that its file holds their rows no longer."""
        with self._lock:
            model.save(path)
            with self._transaction():
                self._db.execute(
                    "UPDATE requests SET saved_at = ? WHERE finished_at IS NOT NULL AND saved_at IS NULL", (_now(),)
                )

    def matches(self, model: Any) -> bool:
        """Whether the rows of the model are exactly those that were left after the last request.

        False also after rows were added since. O(n).
        """
        with self._lock:
            last = self._db.execute(
                "SELECT n_left, digest FROM requests WHERE finished_at IS NOT NULL ORDER BY number DESC LIMIT 1"
            ).fetchone()
            ids = model.sample_ids_.tolist()
            return last is not None and last == (len(ids), _digest_bytes(self._sum(ids)))

    def entries(self) -> list[Erasure]:
        """Return all requests, in the order in which they were accepted."""
        with self._lock:
            rows = self._db.execute("SELECT * FROM erasures ORDER BY number").fetchall()
            return [_erasure(row) for row in rows]

    def certificate(self, model: Any, request_id: str, *, n_probe: int | None = None) -> Certificate:
        """Return the model's certificate (checked by refitting `n_probe` trees, None for all) for one request.

        Raises
        ------
        InputError
            When no such request has been finished.
        """
        with self._lock:
            row = self._db.execute("SELECT * FROM erasures WHERE request_id = ?", (request_id,)).fetchone()
            if row is None or row[3] is None:
                raise InputError(f"no finished request is called {request_id!r}", remedy="See entries()")
            entry = _erasure(row)
            certificate: Certificate = model.certify(n_probe)
            request = {
                "request_id": entry.request_id,
                "accepted_at": entry.accepted_at,
                "finished_at": entry.finished_at,
                "records": entry.n_records,
                "left": entry.n_left,
                "digest_of_ids_left": entry.digest,
            }
            return replace(certificate, parameters=certificate.parameters | request)

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _check_key(self, check: bytes) -> None:
        with self._transaction():
            self._db.executemany(
                "INSERT OR IGNORE INTO about VALUES (?, ?)", [("version", _VERSION), ("key check", check)]
            )
            about = dict(self._db.execute("SELECT name, value FROM about").fetchall())
        if about["version"] != _VERSION:
            raise InputError(f"{self.path} was written by another version", expected=f"version {_VERSION.decode()}")
        if not hmac.compare_digest(about["key check"], check):
            raise InputError(f"{self.path} was made with another key", expected="the key that it was made with")

    def _finish(self, model: Any, number: int | None) -> Erasure:
        digest = self._digest(model)
        # Losing this write in a power cut is harmless, since replay does it again; so it need not wait for the disk.
        self._db.execute("PRAGMA synchronous = NORMAL")
        try:
            with self._transaction():
                self._db.execute(
                    "UPDATE requests SET finished_at = ?, n_left = ?, digest = ? WHERE number = ?",
                    (_now(), len(model.forest_), _digest_bytes(digest), number),
                )
        finally:
            self._db.execute("PRAGMA synchronous = FULL")
        row = self._db.execute("SELECT * FROM erasures WHERE number = ?", (number,)).fetchone()
        return _erasure(row)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _known(self, mac: bytes) -> bool:
        with self._lock:
            return self._db.execute("SELECT 1 FROM records WHERE mac = ? LIMIT 1", (mac,)).fetchone() is not None

    def _mac(self, sample_id: Any) -> bytes:
        mac = self._record_mac.copy()
        mac.update(record_bytes(sample_id))
        return mac.digest()

    def _digest(self, model: Any) -> int:
        """Return the digest of the model's ids: the one at hand where only this log has changed it, else a new one."""
        forest = model.forest_
        if self._seen is None or self._seen[0]() is not forest or self._seen[1] != forest.version:
            version = forest.version
            self._seen = (weakref.ref(forest), version, self._sum(model.sample_ids_.tolist()))
        return self._seen[2]

    def _follow(self, model: Any, digest: int) -> None:
        """Keep the digest after one change by this log, unless something else has changed the model meanwhile."""
        assert self._seen is not None
        forest, version, _ = self._seen
        alone = model.forest_.version == version + 1
        self._seen = (forest, version + 1, digest % _MODULUS) if alone else None

    def _sum(self, ids: Iterable[int]) -> int:
        total = 0
        for i in ids:
            mac = self._left_mac.copy()
            mac.update(record_bytes(i))
            total += int.from_bytes(mac.digest(), "big")
        return total % _MODULUS


def _erasure(row: tuple[Any, ...]) -> Erasure:
    _, request_id, accepted, finished, saved, n_records, n_left, digest = row
    return Erasure(
        request_id, accepted, finished, saved, n_records, n_left, None if digest is None else bytes(digest).hex()
    )


def _digest_bytes(total: int) -> bytes:
    return total.to_bytes(32, "big")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
