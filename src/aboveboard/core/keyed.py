"""Randomness that can be derived again: a keyed coin per record instead of a fresh draw."""

import hashlib
import hmac
from collections.abc import Iterable

__all__ = ["keyed_uniform", "record_bytes"]

_SCALE = 2.0**-53


def record_bytes(record_id: object) -> bytes:
    """Return an unambiguous byte string for a record id.

    Text, bytes, whole numbers and tuples of those are accepted; equal ids of different containers (a NumPy
    integer and a Python one) give the same bytes, and ids of different types (``1`` and ``"1"``) give different ones.

    Raises
    ------
    TypeError
        For anything else: a float has several spellings, so it is no identifier.
    """
    if isinstance(record_id, bool) or type(record_id).__name__ == "bool_":  # NumPy 1.26 counts its booleans
        raise TypeError(f"a record id must be text, bytes or a whole number; got {record_id!r}")
    if isinstance(record_id, bytes):
        return b"b" + record_id
    if isinstance(record_id, str):
        return b"s" + record_id.encode("utf-8", "surrogatepass")
    if isinstance(record_id, tuple):
        parts = [record_bytes(part) for part in record_id]
        return b"t" + b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    if hasattr(record_id, "__index__"):
        return b"i" + str(record_id.__index__()).encode()
    raise TypeError(
        f"a record id must be text, bytes, a whole number or a tuple of those; got {type(record_id).__name__}"
    )


def keyed_uniform(key: bytes, record_ids: Iterable[object], *, purpose: str = "") -> list[float]:
    """Map each record id to a number in [0, 1) that only the holder of `key` can predict.

    HMAC-SHA256 of the id under the key, its first 53 bits read as a fraction. The same key, purpose and id always
    give the same number, so a person who applies twice gets the same coin and an auditor can derive it again.

    Parameters
    ----------
    key : bytes
        At least 16 bytes; keep it secret.
    record_ids : iterable of str, bytes, int or tuple
    purpose : str
        Numbers for different purposes are independent of each other.

    Returns
    -------
    list of float, one per record id, in [0, 1)

    Raises
    ------
    TypeError, ValueError
        For a key that is not bytes or is too short, and for ids that are not identifiers.

    Notes
    -----
    O(n) time: about a microsecond per record.
    """
    if not isinstance(key, bytes):
        raise TypeError(f"key must be bytes; got {type(key).__name__}")
    if len(key) < 16:
        raise ValueError(f"key must hold at least 16 bytes; got {len(key)}. Make one with secrets.token_bytes(32)")
    keyed = hmac.new(key, purpose.encode() + b"\x00", hashlib.sha256)
    numbers = []
    for record_id in record_ids:
        mac = keyed.copy()
        mac.update(record_bytes(record_id))
        numbers.append((int.from_bytes(mac.digest()[:8], "big") >> 11) * _SCALE)
    return numbers
