"""Audits of data that do not fit into memory: read part by part, by one process or many, and summed up."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aboveboard.auditing.frames import ColumnKind
from aboveboard.auditing.parquet import is_parquet, open_source
from aboveboard.auditing.reading import ReadTable, read_source, read_table
from aboveboard.auditing.streaming.memory import available_memory
from aboveboard.auditing.streaming.subject import StreamedSubject, StreamedTable, stream_subject
from aboveboard.core.errors import InputError

__all__ = ["StreamedSubject", "StreamedTable", "available_memory", "read_or_stream", "stream_subject"]


def read_or_stream(
    data: Any,
    *,
    stream: bool | None = None,
    types: Mapping[str, ColumnKind] | None = None,
    like: ReadTable | None = None,
) -> ReadTable | StreamedTable:
    """Read a table into memory, or have it streamed.

    Parameters
    ----------
    data : path or pyarrow.dataset.Dataset
    stream : bool, optional
        Default: where it is in Parquet format and an audit of it would take more memory than there is.
    types, like :
        As for `aboveboard.auditing.reading.read_table`.

    Raises
    ------
    InputError
        When it cannot be read; when it is to be streamed and is not in Parquet format.

    Notes
    -----
    Only the footers of files that are streamed are read here; `aboveboard.audit` takes what is returned as its `X`.

    Examples
    --------
    >>> import aboveboard, tempfile
    >>> from pathlib import Path
    >>> from aboveboard.auditing.streaming import read_or_stream
    >>> from aboveboard.reproduce.auditing.audit_streaming import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_table(Path(folder) / "scores.parquet", 5_000)
    ...     report = aboveboard.audit(
    ...         None, read_or_stream(path, stream=True), "y", predictions="p", sensitive_features=["sex"],
    ...         only="performance", effort="quick",
    ...     )
    >>> report.subject["rows"]
    5000
    """
    types = types or {}
    if not is_parquet(data):
        if stream:
            raise InputError(
                f"{Path(data).name!r} cannot be streamed",
                expected="a Parquet file, or a folder of Parquet files",
                remedy="Write the table in Parquet format",
            )
        return read_table(data, types=types, like=like)
    source = open_source(data)
    if stream or (stream is None and source.bytes_in_memory > available_memory()):
        return StreamedTable(source, types, like)
    if len(source.files) == 1 and not source.files[0].constants and isinstance(data, str | Path):
        path = Path(data)
        if path.is_file():  # one file may carry an index of pandas
            return read_table(path, types=types, like=like)
    return read_source(source, types=types, like=like)
