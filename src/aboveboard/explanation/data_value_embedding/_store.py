"""Where a recorded training is kept: in memory, or in a folder of flat files that are read piece by piece."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError

__all__ = ["DiskStore", "MemoryStore", "Store"]

_PLACES: Final = "arrays.jsonl"
_HEADER: Final = "recorder.json"


class Store(Protocol):
    """Lists of arrays by name, which only grow."""

    nbytes: int

    def append(self, name: str, array: NDArray[Any]) -> None:
        """Keep one more array."""

    def read(self, name: str, number: int) -> NDArray[Any]:
        """Return the array that was kept as the `number`-th under this name."""

    def count(self, name: str) -> int:
        """Return how many there are."""


class MemoryStore:
    """Arrays in memory."""

    def __init__(self) -> None:
        self._arrays: dict[str, list[NDArray[Any]]] = defaultdict(list)
        self.nbytes = 0

    def append(self, name: str, array: NDArray[Any]) -> None:
        self._arrays[name].append(array.copy())
        self.nbytes += array.nbytes

    def read(self, name: str, number: int) -> NDArray[Any]:
        return self._arrays[name][number]

    def count(self, name: str) -> int:
        return len(self._arrays[name])


class DiskStore:
    """Arrays of one name lie behind each other in one file; a list of lines says where each begins.

    Whatever was appended is there after a crash: the line is written once the array is.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, list[tuple[int, str, list[int]]]] = defaultdict(list)
        self.nbytes = 0

    @classmethod
    def created(cls, folder: Path) -> "DiskStore":
        """Make the folder, which must be empty or not exist."""
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                f"{folder.name!r} is there already, and not empty",
                expected="a folder that does not exist yet, or an empty one",
                remedy="Read what was recorded there with TrajectoryRecorder.open",
            )
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    @classmethod
    def opened(cls, folder: Path) -> "DiskStore":
        """Read the list of what was kept."""
        if not (folder / _PLACES).is_file() or not (folder / _HEADER).is_file():
            raise InputError(f"{folder.name!r} holds no recorded training", expected=f"a folder with {_HEADER}")
        store = cls(folder)
        for line in (folder / _PLACES).read_text(encoding="utf-8").splitlines():
            name, start, dtype, shape = json.loads(line)
            store._note(name, start, dtype, shape)
        return store

    def append(self, name: str, array: NDArray[Any]) -> None:
        with (self.folder / f"{name}.bin").open("ab") as file:
            start = file.tell()
            file.write(np.ascontiguousarray(array).tobytes())
        place = (name, start, array.dtype.str, list(array.shape))
        with (self.folder / _PLACES).open("a", encoding="utf-8") as file:
            file.write(json.dumps(place) + "\n")
        self._note(*place)

    def read(self, name: str, number: int) -> NDArray[Any]:
        start, dtype, shape = self._places[name][number]
        count = int(np.prod(shape, dtype=np.int64))
        file = self.folder / f"{name}.bin"
        return np.fromfile(file, dtype=dtype, count=count, offset=start).reshape(shape)

    def count(self, name: str) -> int:
        return len(self._places[name])

    def write_header(self, header: dict[str, Any]) -> None:
        """Keep what is needed to read the arrays again."""
        (self.folder / _HEADER).write_text(json.dumps(header, indent=1) + "\n", encoding="utf-8")

    def header(self) -> dict[str, Any]:
        """Return what `write_header` kept."""
        found: dict[str, Any] = json.loads((self.folder / _HEADER).read_text(encoding="utf-8"))
        return found

    def _note(self, name: str, start: int, dtype: str, shape: list[int]) -> None:
        self._places[name].append((start, dtype, shape))
        self.nbytes += int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
