"""What an endpoint answered: JSON read with suspicion, then understood as labels, probabilities or numbers.

Reading looks at one answer alone; understanding looks at the answers about all rows of a question, since one answer of
zeros and ones does not tell labels from probabilities.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.model import Told, sorted_labels
from aboveboard.core.errors import ModelError

__all__ = ["Entry", "Kind", "ReplyError", "Said", "read_reply", "understood"]

Kind = Literal["score", "label", "code"]
Task = Literal["binary", "multiclass", "regression"]

_FORM: Final = '{"predictions": [one for each row]}'
_KEYS: Final = ("predictions", "probabilities", "labels")
_MOST_NAMES: Final = 1000


class ReplyError(Exception):
    """An answer that cannot be read; its text is the rest of a sentence that begins with "the endpoint"."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What was said about one row; None where nothing was.

    Parameters
    ----------
    prediction, label, probability : object
        A number, text or boolean; for `prediction` and `probability` also a tuple of numbers, one per class.
    """

    prediction: Any = None
    label: Any = None
    probability: Any = None


@dataclass(frozen=True, slots=True)
class Said:
    """One answer.

    Parameters
    ----------
    entries : list of Entry, one per row
    names : tuple or None
        The classes in the order of the probabilities, where the answer names them.
    """

    entries: list[Entry]
    names: tuple[Any, ...] | None

    def in_order_of(self, names: tuple[Any, ...] | None) -> list[Entry]:
        """Return the entries with probabilities in the order of `names`, those of the answers before.

        Raises
        ------
        ReplyError
            When this answer names other classes.
        """
        if names == self.names:
            return self.entries
        if names is None or self.names is None or set(names) != set(self.names):
            raise ReplyError("names other classes in one answer than in another")
        order = [self.names.index(name) for name in names]

        def turned(value: Any) -> Any:
            return tuple(value[i] for i in order) if isinstance(value, tuple) and len(value) == len(order) else value

        return [Entry(turned(e.prediction), e.label, turned(e.probability)) for e in self.entries]


def read_reply(body: bytes, n: int) -> Said:
    """Read the answer about `n` rows.

    Raises
    ------
    ReplyError
        When it is no JSON as RFC 8259 has it (NaN, Infinity, a name twice, no UTF-8), nested without end, of another
        shape, or about another number of rows.
    """
    data = _json(body)
    names: Any = None
    if isinstance(data, list):
        given = {"predictions": data}
    elif isinstance(data, dict):
        given = {key: data[key] for key in _KEYS if data.get(key) is not None}
        names = data.get("classes")
        if not given:
            raise ReplyError(f"answered with {_keys(data)} and without predictions; expected {_FORM}")
    else:
        raise ReplyError(f"answered with {_kind(data)}; expected {_FORM}")
    columns: dict[str, list[Any]] = {}
    found = None if names is None else _names(names)
    for key, values in given.items():
        if not isinstance(values, list):
            raise ReplyError(f"gave {_kind(values)} as {key}; expected a list with one entry for each row")
        if len(values) != n:
            raise ReplyError(f"gave {len(values):,} {key} for {n:,} rows")
        columns[key], own = _column(values, key)
        if own is not None:
            if found is not None and set(found) != set(own):
                raise ReplyError(f"names the classes of its {key} otherwise than under 'classes'")
            if found is not None and found != own:
                order = [own.index(name) for name in found]
                columns[key] = [tuple(value[i] for i in order) for value in columns[key]]
            found = found or own
    empty = [None] * n
    rows = zip(*(columns.get(key, empty) for key in _KEYS), strict=True)
    return Said([Entry(prediction, label, probability) for prediction, probability, label in rows], found)


def understood(
    entries: Sequence[Entry],
    names: tuple[Any, ...] | None,
    *,
    task: Task,
    classes: Sequence[Any],
    kind: Kind | None = None,
    answers: Literal["auto", "score", "label"] = "auto",
    order: Sequence[Any] = (),
) -> tuple[Told, Kind | None]:
    """Return what the answers mean, and how plain numbers among them were read.

    Parameters
    ----------
    names : tuple or None
        The classes in the order of the probabilities. None: `order`, else their natural order.
    classes : sequence
        Labels in the order of their codes; for binary tasks (negative, positive).
    kind : {"score", "label", "code"} or None
        How numbers in a classification were read before. None: as `answers` says.
    answers : {"auto", "score", "label"}
        auto: as labels where every number is a class, or a position in `order`; else as probabilities of the positive
        class.
    order : sequence
        The classes in the order of the model's codes 0, 1, ...; may be empty.

    Raises
    ------
    ModelError
        When they make no sense for the task, name an unknown class, or change their form from row to row.
    """
    predictions = _part(entries, "prediction")
    probabilities = _part(entries, "probability")
    labels = _part(entries, "label")
    if task == "regression":
        if predictions is None:
            raise _wrong("gave no predictions, and the task is regression", "numbers under 'predictions'")
        return Told(_numbers(predictions), None), kind
    if predictions is not None:
        if isinstance(predictions[0], tuple):
            if probabilities is not None:
                raise _wrong("gave probabilities twice, as predictions and as probabilities", "one of them")
            probabilities = predictions
        elif probabilities is not None or not _all_numbers(predictions):
            labels = labels or predictions
        else:
            kind = kind or _kind_of_numbers(predictions, task, classes, answers, order)
            if kind == "score":
                probabilities = predictions
            else:
                labels = labels or (_decoded(predictions, order) if kind == "code" else predictions)
    return Told(
        None if labels is None else _codes(labels, classes, "predicted the class"),
        None if probabilities is None else _ordered(probabilities, names or tuple(order), task, classes),
    ), kind


# --- reading ---------------------------------------------------------------------------------------------------------


def _json(body: bytes) -> Any:
    problem = ""
    try:
        text = body.decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_once)
    except UnicodeDecodeError:
        problem = "answered with text that is no UTF-8"
    except RecursionError:
        problem = "answered with JSON that is nested too deeply"
    except ReplyError as error:
        problem = str(error)
    except ValueError as error:
        where = f" (position {error.pos:,})" if isinstance(error, json.JSONDecodeError) else ""
        problem = f"answered with something that is no JSON{where}"
    raise ReplyError(problem)


def _refuse_constant(name: str) -> Any:
    raise ReplyError(f"answered with {name}, which is no JSON; expected finite numbers")


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ReplyError("answered with a number beyond the range of a double")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ReplyError("answered with an object that has one name twice")
    return found


def _names(given: Any) -> tuple[Any, ...]:
    if not isinstance(given, list) or not given or len(given) > _MOST_NAMES:
        raise ReplyError("gave classes that are no list of names")
    if not all(isinstance(name, str | int | float) for name in given):
        raise ReplyError("gave classes that are neither text nor numbers")
    if len({(name, isinstance(name, bool)) for name in given}) < len(given):
        raise ReplyError("names a class twice")
    return tuple(given)


def _column(values: list[Any], key: str) -> tuple[list[Any], tuple[Any, ...] | None]:
    """Return the entries of one list, all of one form, and the names of classes where each entry has them."""
    names: tuple[str, ...] | None = None
    width: int | None = None
    read = []
    for row, value in enumerate(values):
        if value is None or value == [] or value == {}:
            raise ReplyError(f"gave nothing for row {row + 1:,} of {len(values):,} ({key})")
        if isinstance(value, dict | list):
            if key == "labels":
                raise ReplyError(f"gave {_kind(value)} as a label (row {row + 1:,})")
            if isinstance(value, dict):
                own = tuple(value)
                if names is None:
                    names = own
                elif own != names:
                    if set(own) != set(names):
                        raise ReplyError(f"names other classes in row {row + 1:,} than before")
                    value = {name: value[name] for name in names}
                value = list(value.values())
            elif names is not None:
                raise ReplyError(f"changes the form of its {key} at row {row + 1:,}")
            if width == 0:
                raise ReplyError(f"changes the form of its {key} at row {row + 1:,}")
            if width not in (None, len(value)):
                raise ReplyError(f"gave {len(value):,} numbers for row {row + 1:,} and {width:,} before ({key})")
            width = len(value)
            value = tuple(_number(number, key, row) for number in value)
            if width == 1 and names is None:
                value = value[0]
        elif width not in (None, 0):
            raise ReplyError(f"changes the form of its {key} at row {row + 1:,}")
        else:
            width = 0
            if key == "probabilities":
                value = _number(value, key, row)
            elif isinstance(value, int) and not isinstance(value, bool):
                _number(value, key, row)
        read.append(value)
    if names is not None and len(names) > _MOST_NAMES:
        raise ReplyError(f"names {len(names):,} classes")
    return read, names


def _number(value: Any, key: str, row: int) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ReplyError(f"gave {_kind(value)} where a number was expected (row {row + 1:,} of its {key})")
    try:
        return float(value)
    except OverflowError:
        raise ReplyError("answered with a number beyond the range of a double") from None


def _kind(value: Any) -> str:
    """Return what a value is, without repeating it: it may be data."""
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "null"
    kinds: dict[type, str] = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number"}
    return kinds[type(value)]


def _keys(data: dict[str, Any]) -> str:
    if not data:
        return "an empty object"
    shown = ", ".join(repr(key[:30]) for key in list(data)[:5])
    return f"an object that has {shown}" + (f" and {len(data) - 5:,} more names" if len(data) > 5 else "")


# --- understanding ---------------------------------------------------------------------------------------------------


def _wrong(got: str, expected: str) -> ModelError:
    return ModelError(f"the endpoint {got}; expected {expected}")


def _part(entries: Sequence[Entry], name: str) -> list[Any] | None:
    values = [getattr(entry, name) for entry in entries]
    missing = sum(value is None for value in values)
    if missing == len(values):
        return None
    forms = {_form(value) for value in values if value is not None} if name != "label" else set()
    if missing or len(forms) > 1:
        raise _wrong("changes the form of its answers from one answer to the next", "one form for all rows")
    return values


def _form(value: Any) -> object:
    if isinstance(value, tuple):
        return len(value)
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value)


def _all_numbers(values: list[Any]) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def _numbers(values: list[Any]) -> np.ndarray:
    if not _all_numbers(values):
        odd = next(value for value in values if isinstance(value, bool) or not isinstance(value, int | float))
        got = f"a list of {len(odd)} numbers" if isinstance(odd, tuple) else _kind(odd)
        raise _wrong(f"gave {got} as a prediction, and the task is regression", "a number for each row")
    return np.array(values, dtype="float64")


def _kind_of_numbers(values: list[Any], task: Task, classes: Sequence[Any], answers: str, order: Sequence[Any]) -> Kind:
    if answers == "score":
        return "score"
    if (_looked_up(values, classes) >= 0).all():
        return "label"
    if order and all(value in range(len(order)) for value in values):
        return "code"
    if answers == "label":
        return "label"
    if task == "binary" and all(0.0 <= value <= 1.0 for value in values):
        return "score"
    if task == "binary":
        raise _wrong(
            "gave numbers that are neither classes of the target nor probabilities",
            "labels, probabilities of the positive class, or a list of probabilities for each row",
        )
    raise _wrong(
        "gave numbers that are not all classes of the target", "labels, or a list of probabilities for each row"
    )


def _decoded(values: list[Any], order: Sequence[Any]) -> list[Any]:
    odd = next((value for value in values if value not in range(len(order))), None)
    if odd is not None:
        raise _wrong(f"gave the code {odd!r}", f"whole numbers from 0 to {len(order) - 1}, as before")
    return [order[int(value)] for value in values]


def _looked_up(labels: Sequence[Any], classes: Sequence[Any]) -> np.ndarray:
    """Return class codes, -1 for unknown; a label that is none as it stands may be one as text, as JSON names are."""
    position = {label: code for code, label in enumerate(classes)}  # 1, 1.0 and True are one label
    spelled = {text: code for code, label in reversed(list(enumerate(classes))) for text in _spellings(label)}
    codes: dict[Any, int] = {}
    for label in labels:
        if label not in codes:
            codes[label] = position.get(label, spelled.get(plain_label(label), -1))
    return np.array([codes[label] for label in labels], dtype=np.int64)


def _spellings(label: Any) -> set[str]:
    texts = {plain_label(label), str(label)}
    if isinstance(label, bool):
        texts.add(str(label).lower())
    elif isinstance(label, int | float):
        texts.add(str(float(label)))
    return texts


def _codes(labels: Sequence[Any], classes: Sequence[Any], what: str) -> np.ndarray:
    if any(isinstance(label, tuple) for label in labels):
        raise _wrong("gave a list of numbers as a label", "one label for each row")
    codes = _looked_up(labels, classes)
    if (codes < 0).any():
        unknown = plain_label(labels[int(np.flatnonzero(codes < 0)[0])])
        known = ", ".join(repr(plain_label(label)) for label in list(classes)[:10])
        raise ModelError(
            f"the endpoint {what} {unknown[:60]!r}, which is not among those of the target: {known}. Where the model "
            "knows a class that the data lack, name all of them (classes, --model-classes) or give training data that "
            "have it (--train)"
        )
    return codes


def _ordered(probabilities: list[Any], names: tuple[Any, ...] | None, task: Task, classes: Sequence[Any]) -> np.ndarray:
    """Return probabilities as they came, with columns in the order of `classes`; one column for binary scalars."""
    raw = np.array(probabilities, dtype="float64")
    if raw.ndim == 1:
        if task == "binary":
            return raw
        raise _wrong(f"gave one probability for each row, and there are {len(classes)} classes", "one for each class")
    if not names:
        if raw.shape[1] != len(classes):
            raise _wrong(
                f"gave {raw.shape[1]} probabilities for each row, and there are {len(classes)} classes",
                "one for each class, or the names of the classes under 'classes'",
            )
        names = tuple(sorted_labels(classes))
    if raw.shape[1] != len(names):
        raise _wrong(f"gave {raw.shape[1]} probabilities for each row and {len(names)} classes", "as many")
    codes = _codes(names, classes, "gave probabilities of the class")
    if len(set(codes.tolist())) < len(codes):
        raise _wrong("names a class twice", "each class once")
    lacking = sorted(set(range(len(classes))) - set(codes.tolist()))
    if lacking:
        raise _wrong(f"gave no probability of the class {plain_label(classes[lacking[0]])!r}", "one for each class")
    return raw[:, np.argsort(codes)]
