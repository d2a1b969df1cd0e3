"""The two passes over data that are streamed, cut into tasks that any process or machine can do.

A task holds all that it needs, and what it gives back is small; it keeps nothing where it ran. So a scheduler may run
it anew elsewhere when a worker is lost. Results are joined in the order of the parts, so that the figures do not depend
on who did what, or when.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard._stats.blocks import scrambled
from aboveboard.auditing.frames import ColumnKind
from aboveboard.auditing.parquet import Part
from aboveboard.auditing.reading import ReadTable, with_types
from aboveboard.auditing.streaming.survey import Role, Survey, survey_batch
from aboveboard.auditing.subject import Subject, part_subject
from aboveboard.core.errors import InputError
from aboveboard.core.progress import progress

__all__ = ["PartSums", "Reader", "Roles", "SumTask", "SurveyTask", "run_tasks"]

_LANES: Final = (0x51ED270B7A1F2C39, 0x2545F4914F6CDD1D)  # two sums, so that the fingerprint has 128 bits


@dataclass(frozen=True, slots=True)
class Reader:
    """How rows are read: with the types that the user or the training data ask for.

    Parameters
    ----------
    types : mapping of column to kind
    like : ReadTable or None
        The kinds and levels of the training data (its rows are not needed).
    """

    types: Mapping[str, ColumnKind] = field(default_factory=dict)
    like: ReadTable | None = None

    def batches(self, part: Part, columns: Sequence[str]) -> Iterator[tuple[int, pd.DataFrame, tuple[str, ...]]]:
        """Yield ``(position of the first row, rows, notes)``; an error in the rows names the file."""
        for start, frame in part.batches(columns):
            with _Named(part.file.name):
                read = with_types(frame, types=self.types, like=self.like)
            yield start, read.frame, read.notes


@dataclass(frozen=True, slots=True)
class Roles:
    """Which columns play which part.

    Parameters
    ----------
    target : str
    predictions : str, tuple of str or None
        None where a model is asked.
    sensitive : dict of str to list of float or None
        With cut points.
    weight, cluster : str or None
    features : tuple of str
    """

    target: str
    predictions: str | tuple[str, ...] | None
    sensitive: dict[str, list[float] | None]
    weight: str | None
    cluster: str | None
    features: tuple[str, ...] = ()

    def pairs(self) -> tuple[tuple[str, Role], ...]:
        """Return every column with its part, features apart."""
        predictions = (self.predictions,) if isinstance(self.predictions, str) else self.predictions or ()
        named: list[tuple[str | None, Role]] = [
            (self.target, "target"),
            *((name, "predictions") for name in predictions),
            *((name, "sensitive") for name in self.sensitive),
            (self.weight, "weights"),
            (self.cluster, "cluster"),
        ]
        return tuple((name, role) for name, role in named if name is not None)

    def columns(self, *, features: bool) -> list[str]:
        """Return the columns that are read, each once."""
        return list(dict.fromkeys([*(name for name, _ in self.pairs()), *(self.features if features else ())]))


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """Look at a part, and pick the rows of it that were drawn at random.

    Parameters
    ----------
    part : Part
    reader : Reader
    roles : Roles
    features : bool
        Whether the features of the rows that are picked are wanted.
    positions : ndarray of int
        Those in this part.
    """

    part: Part
    reader: Reader
    roles: Roles
    features: bool
    positions: NDArray[np.intp]

    def run(self) -> Survey:
        found: Survey | None = None
        name = self.part.file.name
        for start, frame, notes in self.reader.batches(self.part, self.roles.columns(features=self.features)):
            rows = _within(self.positions, start, len(frame)) - start
            with _Named(name):
                seen = survey_batch(frame, self.roles.pairs(), self.roles.sensitive, name, rows, notes)
            found = seen if found is None else found + seen
        assert found is not None  # a part has rows
        return found


@dataclass(frozen=True, slots=True)
class PartSums:
    """What one part gives: the sums of the checks, the rows that were drawn for others, and a fingerprint.

    Parameters
    ----------
    sums : dict of str to sums
        By the name of the check.
    samples : dict of str to tuple of Subject
        Likewise; rows in order.
    group_rows : dict of str to ndarray
        Rows of each group of each sensitive column.
    fingerprint : tuple of int
        Sums of hashes of rows, modulo 2^64.
    """

    sums: dict[str, Any]
    samples: dict[str, tuple[Subject, ...]]
    group_rows: dict[str, NDArray[np.intp]]
    fingerprint: tuple[int, ...]

    def __add__(self, other: "PartSums") -> "PartSums":
        """Return that of both parts; `other` follows on this one."""
        return PartSums(
            {name: sums + other.sums[name] for name, sums in self.sums.items()},
            {name: (*rows, *other.samples[name]) for name, rows in self.samples.items()},
            {name: rows + other.group_rows[name] for name, rows in self.group_rows.items()},
            tuple((a + b) % 2**64 for a, b in zip(self.fingerprint, other.fingerprint, strict=True)),
        )


@dataclass(frozen=True, slots=True)
class SumTask:
    """Sum a part up for the checks, and pick the rows of it that were drawn for others.

    Parameters
    ----------
    part : Part
    reader : Reader
    roles : Roles
    whole : Subject
        What was decided about all rows; it has none itself.
    layouts : dict of str to layout
        By the name of the check that is summed up.
    positions : dict of str to (ndarray of int, bool)
        By the name of the check that looks at a sample: the positions of its rows in this part, and whether it looks
        at features.
    features : frozenset of str
        The checks among those summed up that look at features.
    """

    part: Part
    reader: Reader
    roles: Roles
    whole: Subject
    layouts: dict[str, Any]
    positions: dict[str, tuple[NDArray[np.intp], bool]]
    features: frozenset[str]

    def run(self) -> PartSums:
        found: PartSums | None = None
        wanted = (
            self.whole.model is not None
            or bool(self.features)
            or any(features and len(rows) for rows, features in self.positions.values())
        )
        for start, frame, _ in self.reader.batches(self.part, self.roles.columns(features=wanted)):
            with _Named(self.part.file.name):
                subject = part_subject(
                    self.whole,
                    frame,
                    offset=start,
                    predictions=self.roles.predictions,
                    edges=self.roles.sensitive,
                    weight=self.roles.weight,
                    cluster=self.roles.cluster,
                )
            summed = self._summed(subject)
            found = summed if found is None else found + summed
        assert found is not None  # a part has rows
        return found

    def _summed(self, subject: Subject) -> PartSums:
        sums = {
            name: import_module(f"aboveboard.auditing.checks.{name}").summarise(subject, layout)
            for name, layout in self.layouts.items()
        }
        samples: dict[str, tuple[Subject, ...]] = {}
        for name, (positions, features) in self.positions.items():
            rows = _within(positions, subject.offset, len(subject)) - subject.offset
            picked = subject if features else subject.without_features()
            samples[name] = (picked.take(rows).unmodelled(),) if len(rows) else ()
        return PartSums(sums, samples, subject.group_rows, _fingerprint(subject))


def run_tasks(
    tasks: Sequence[SurveyTask] | Sequence[SumTask],
    *,
    n_jobs: int | None,
    what: str,
    show_progress: bool | None,
    here: bool = False,
) -> Any:
    """Run tasks, and return the sum of what they give, in their order.

    Parameters
    ----------
    tasks : sequence
    n_jobs : int or None
        As in joblib, whose ``parallel_config`` also decides where they run.
    what : str
        What is being done, for the progress bar.
    show_progress : bool or None
    here : bool
        Run them in this process: a model that is asked need not be at hand in another.
    """
    from joblib import Parallel, delayed

    whole = None
    parallel = Parallel(n_jobs=n_jobs, return_as="generator", batch_size=1)
    results = map(_run, tasks) if here else parallel(delayed(_run)(task) for task in tasks)
    with progress(len(tasks), enabled=show_progress) as bar:
        for number, result in enumerate(results):
            bar.step(f"{what}: part {number + 1} of {len(tasks)}")
            whole = result if whole is None else whole + result
    return whole


def _run(task: SurveyTask | SumTask) -> Any:
    return task.run()


class _Named:
    """Puts the name of the file before an error about its rows."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, InputError):
            raise InputError(f"{self.name}: {error.got}", expected=error.expected, remedy=error.remedy) from error


def _within(positions: NDArray[np.intp], start: int, rows: int) -> NDArray[np.intp]:
    """Return those of the ascending positions that lie in so many rows from `start` on."""
    first, last = np.searchsorted(positions, [start, start + rows])
    return positions[first:last]


def _fingerprint(part: Subject) -> tuple[int, ...]:
    """Return sums of hashes of target, predictions and groups of each row with its position."""
    position = np.arange(part.offset, part.offset + len(part), dtype=np.uint64)
    columns = [part.y, part.prediction]
    if part.score is not None:
        columns += [part.score] if part.score.ndim == 1 else list(part.score.T)
    columns += [part.sensitive[name].cat.codes.to_numpy() for name in part.sensitive.columns]
    row = scrambled(position)
    for values in columns:
        bits = np.ascontiguousarray(values, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        row = scrambled(row ^ bits.view(np.uint64))
    return tuple(int(scrambled(row ^ np.uint64(lane)).sum(dtype=np.uint64)) for lane in _LANES)
