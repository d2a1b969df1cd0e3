"""Both stores give back what they were given, and the one on disk after it was closed."""

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from aboveboard.explanation.data_value_embedding._store import DiskStore, MemoryStore

ARRAYS = arrays.arrays(
    st.sampled_from([np.float16, np.float32, np.float64, np.int64, np.bool_]),
    arrays.array_shapes(max_side=4, min_side=0),
)


@given(st.lists(st.tuples(st.sampled_from(["rows", "weights"]), ARRAYS), max_size=6))
def test_what_was_appended_is_read_again(pieces):
    with tempfile.TemporaryDirectory() as folder:
        written = DiskStore.created(Path(folder) / "run")
        written.write_header({"a": 1})
        memory = MemoryStore()
        for name, array in pieces:
            for store in (written, memory):
                store.append(name, array)
        if pieces:
            opened = DiskStore.opened(Path(folder) / "run")
            assert opened.header() == {"a": 1}
        stores = [written, memory, *([opened] if pieces else [])]
        for store in stores:
            assert store.nbytes == sum(array.nbytes for _, array in pieces)
            for name in ("rows", "weights"):
                expected = [array for other, array in pieces if other == name]
                assert store.count(name) == len(expected)
                for number, array in enumerate(expected):
                    found = store.read(name, number)
                    assert found.dtype == array.dtype
                    assert np.array_equal(found, array, equal_nan=array.dtype.kind == "f")


def test_the_store_in_memory_keeps_a_copy():
    store, array = MemoryStore(), np.zeros(3)
    store.append("rows", array)
    array[:] = 1
    assert not store.read("rows", 0).any()
