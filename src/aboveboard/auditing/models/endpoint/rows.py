"""Rows of a table as JSON: one text per row, so that equal rows can be told and batches are put together from them."""

import json
import math
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Literal

import numpy as np
import pandas as pd

from aboveboard.core.errors import InputError

__all__ = ["Format", "request_body", "row_texts"]

Format = Literal["rows", "mlflow", "kserve"]


def row_texts(frame: pd.DataFrame, form: Format) -> list[str]:
    """Return each row as the text of a JSON object (format rows) or of a JSON array (mlflow, kserve).

    A missing value of any kind is null. Whole numbers keep all their digits; other numbers are written in the fewest
    digits that give the same double back. Dates, times and moments are ISO 8601 texts with the offset they have,
    durations are ISO 8601 durations, periods and intervals are the text that pandas writes. Text is escaped to ASCII.

    Raises
    ------
    InputError
        For an infinite number, and for a value that JSON has no form for.

    Notes
    -----
    O(n d) time and memory.
    """
    columns = [_texts(frame.iloc[:, position], str(name)) for position, name in enumerate(frame.columns)]
    if form == "rows":
        keys = [json.dumps(str(name)) + ":" for name in frame.columns]
        columns = [[key + text for text in column] for key, column in zip(keys, columns, strict=True)]
    opening, closing = "{}" if form == "rows" else "[]"
    if not columns:
        return [opening + closing] * len(frame)
    return [opening + ",".join(row) + closing for row in zip(*columns, strict=True)]


def request_body(texts: Sequence[str], columns: Sequence[str], form: Format) -> bytes:
    """Return the body of a request about rows that `row_texts` wrote."""
    rows = ",".join(texts)
    if form == "rows":
        body = f'{{"rows":[{rows}]}}'
    elif form == "mlflow":
        body = f'{{"dataframe_split":{{"columns":{json.dumps(list(columns))},"data":[{rows}]}}}}'
    else:
        body = f'{{"instances":[{rows}]}}'
    return body.encode("ascii")


def _texts(series: "pd.Series[Any]", name: str) -> list[str]:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        table = [*_texts(pd.Series(series.cat.categories), name), "null"]
        return [table[code] for code in series.cat.codes]
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return list(map(str, series.tolist()))
    if isinstance(dtype, np.dtype) and dtype.kind == "f":
        values = series.to_numpy(dtype="float64")
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise _infinite(name, infinite)
        return ["null" if value != value else repr(value) for value in values.tolist()]
    known: dict[Any, str] = {}
    texts = []
    for value in series.astype(object):
        if isinstance(value, str):
            text = known.get(value)
            if text is None:
                text = known[value] = json.dumps(value)
        else:
            text = _text(value, name)
        texts.append(text)
    return texts


def _text(value: Any, name: str) -> str:
    """Return one value as JSON."""
    if value is None or value is pd.NA or value is pd.NaT:
        return "null"
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = pd.Timestamp(value) if isinstance(value, np.datetime64) else pd.Timedelta(value)
        return _text(value, name)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isinf(value):
            raise _infinite(name, 1)
        return "null" if math.isnan(value) else repr(value)
    if isinstance(value, Decimal):
        if value.is_infinite():
            raise _infinite(name, 1)
        return "null" if value.is_nan() else format(value, "f")
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, datetime | date | time):
        return json.dumps(value.isoformat())
    if isinstance(value, timedelta):
        return json.dumps(pd.Timedelta(value).isoformat())
    if isinstance(value, pd.Period | pd.Interval):
        return json.dumps(str(value))
    raise InputError(
        f"the column {name!r} holds values of the type {type(value).__name__}, which cannot be sent to an endpoint",
        expected="numbers, text, booleans, dates or missing values",
        remedy="Leave that column out (drop, --drop), or turn it into plain columns first",
    )


def _infinite(name: str, count: int) -> InputError:
    return InputError(
        f"the column {name!r} has {count:,} infinite {'value' if count == 1 else 'values'}, and JSON has none",
        expected="finite numbers or missing values",
        remedy="Replace them first, or leave the column out (drop, --drop)",
    )
