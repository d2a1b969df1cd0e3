import hashlib
import hmac
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.core.keyed import keyed_uniform, record_bytes

KEY = b"0123456789abcdef"
ids = st.recursive(st.text() | st.binary() | st.integers(), lambda inner: st.lists(inner, max_size=3).map(tuple))


def test_the_number_is_the_first_53_bits_of_the_hmac():
    digest = hmac.new(KEY, b"coin\x00" + b"sAnn", hashlib.sha256).digest()
    expected = (int.from_bytes(digest, "big") >> (256 - 53)) / 2**53
    assert keyed_uniform(KEY, ["Ann"], purpose="coin") == [expected]


def test_the_same_record_always_gets_the_same_number_whatever_stands_beside_it():
    alone = keyed_uniform(KEY, ["b"])
    assert keyed_uniform(KEY, ["a", "b", "c"])[1:2] == alone


def test_another_key_or_purpose_gives_other_numbers():
    numbers = {
        keyed_uniform(KEY, [1])[0],
        keyed_uniform(KEY[::-1], [1])[0],
        keyed_uniform(KEY, [1], purpose="p")[0],
    }
    assert len(numbers) == 3


def test_a_numpy_integer_is_the_same_id_as_a_python_one_and_text_is_another():
    assert record_bytes(np.int64(7)) == record_bytes(7)
    assert record_bytes("7") != record_bytes(7) != record_bytes(b"7")


def test_numbers_are_spread_evenly():
    # Kolmogorov-Smirnov at the 0.1 % level: 1.95 / sqrt(n)
    n = 20_000
    numbers = np.sort(keyed_uniform(KEY, range(n)))
    distance = np.abs(numbers - (np.arange(n) + 0.5) / n).max() + 0.5 / n
    assert distance < 1.95 / math.sqrt(n)


@given(st.lists(ids, unique_by=repr, max_size=20))
def test_different_ids_have_different_bytes(records):
    distinct = {record for record in records if not _equal_to_another(record, records)}
    assert len({record_bytes(record) for record in distinct}) == len(distinct)


def _equal_to_another(record, records):
    return sum(record == other and type(record) is type(other) for other in records) > 1


@pytest.mark.parametrize("value", [1.0, None, True, np.True_, ["list"], (1, 2.0)])
def test_what_is_no_identifier_is_refused(value):
    with pytest.raises(TypeError, match="record id"):
        record_bytes(value)


def test_a_short_key_or_one_that_is_text_is_refused():
    with pytest.raises(ValueError, match="16 bytes; got 4"):
        keyed_uniform(b"abcd", [1])
    with pytest.raises(TypeError, match="bytes"):
        keyed_uniform("0123456789abcdef", [1])
