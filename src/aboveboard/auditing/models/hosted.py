"""A model from a file, seen from the audit: its questions are answered by a process of its own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from aboveboard._model_host.wire import Malformed, Unsendable, pack_rows, read_numbers, read_scalar
from aboveboard.auditing.model import ModelSource
from aboveboard.auditing.models.process import ModelProcess, printable
from aboveboard.auditing.models.trust import untrusted_message
from aboveboard.core.errors import InputError, MissingExtra, ModelError

__all__ = ["HostedModel", "Order", "labels_of", "read_told"]

_Rows = pd.DataFrame | np.ndarray

_ROWS_AT_ONCE: Final = 100_000
_WIDEST: Final = 1_000
_OVERHEAD: Final = 1 << 20
_QUESTIONS: Final = frozenset({"predict", "predict_proba", "call"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the process is to read.

    Parameters
    ----------
    format : str
    path : Path or None
    function : str or None
        ``module:function``, looked for in `folder` first.
    folder : str
    trusted : tuple of str
        Types that a skops file may hold besides those that skops trusts by itself.
    """

    format: str
    path: Path | None = None
    function: str | None = None
    folder: str = ""
    trusted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What is read, without its folder."""
        return self.path.name if self.path is not None else str(self.function)

    def to_dict(self) -> dict[str, Any]:
        path = None if self.path is None else str(self.path)
        return {
            "format": self.format,
            "path": path,
            "function": self.function,
            "folder": self.folder,
            "trusted": list(self.trusted),
        }


class HostedModel:
    """A model in a process of its own, with the questions that it can answer: ``predict``, ``predict_proba``.

    A process that crashed, hung or took too much memory is started anew with the next question. Closing it, leaving
    its ``with`` block, or the end of the program ends the process.

    Parameters
    ----------
    order : Order
    timeout : float
        Seconds that reading the model, or one question about up to 100,000 rows, may take.
    memory : int
        Bytes.
    classes : sequence
        Labels for the codes 0, 1 and so on of a model that has none of its own.

    Attributes
    ----------
    source_ : ModelSource
    classes_ : list, where the model knows them
    feature_names_in_ : list of str, where the model knows them
    n_features_in_ : int, where the model knows it

    Raises
    ------
    InputError
        When the file is no such model, or holds what is not trusted.
    ModelError
        When the model crashes, hangs or takes too much memory while it is read.
    """

    def __init__(self, order: Order, *, timeout: float, memory: int, classes: Sequence[Any] = ()) -> None:
        self._order = order
        self._timeout = timeout
        self._memory = memory
        self._lock = threading.RLock()
        self._closed = False
        self._process = ModelProcess(timeout=timeout, memory=memory)
        self._sha256: str | None = None
        try:
            self._told = self._read_model()
            self._labels = _named(self._told, classes, order.name)
        except BaseException:
            self.close()
            raise
        told = self._told
        self._sha256 = told.sha256
        if self._labels is not None:
            self.classes_ = self._labels
        if told.feature_names is not None:
            self.feature_names_in_ = told.feature_names
        if told.n_features is not None:
            self.n_features_in_ = told.n_features
        self.source_ = ModelSource(
            format=order.format,
            model=told.model,
            name=order.name,
            sha256=told.sha256,
            trusted_types=told.trusted,
            versions=told.versions,
            notes=tuple(note for note in told.notes if not classes or "--model-classes" not in note),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{self._order.name}: {self.source_.model} ({self.source_.format})>"

    def close(self) -> None:
        """End the model's process; the model answers no more."""
        self._closed = True
        self._process.close()

    @property
    def predict(self) -> Callable[[_Rows], np.ndarray]:
        """Labels, or numbers for regression, of shape (n,); where the model gives them."""
        return self._question("predict")

    @property
    def predict_proba(self) -> Callable[[_Rows], np.ndarray]:
        """Probabilities of shape (n, n_classes); where the model gives them."""
        return self._question("predict_proba")

    def __call__(self, X: _Rows) -> np.ndarray:
        """Return the numbers of a model that is a plain function."""
        return self._answer("call", X)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        kind = "regressor" if self._told.regressor else None
        return Tags(estimator_type=kind, target_tags=TargetTags(required=False))

    def _question(self, question: str) -> Callable[[_Rows], np.ndarray]:
        if question not in self._told.questions:
            raise AttributeError(f"the model gives no {question}")
        return partial(self._answer, question)

    def _answer(self, question: str, X: _Rows) -> np.ndarray:
        with self._lock:
            at = X.iloc if isinstance(X, pd.DataFrame) else X
            parts = [
                self._asked(question, at[start : start + _ROWS_AT_ONCE])
                for start in range(0, max(len(X), 1), _ROWS_AT_ONCE)
            ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _asked(self, question: str, X: _Rows) -> np.ndarray:
        try:
            head, body = pack_rows(X)
        except Unsendable as error:
            raise InputError(str(error), expected="numbers, text, dates, or categories of them") from error
        self._start_again_if_ended()
        classes = self._told.classes
        widest = _WIDEST if classes is None else max(len(classes), 2)
        reply, answer = self._process.ask(
            {"do": "ask", "question": question, **head}, body, most=8 * len(X) * widest + _OVERHEAD
        )
        if "raised" in reply:
            raise _raised(reply["raised"])
        try:
            values = read_numbers(answer, rows=len(X), widest=widest)
            said = values if reply.get("numbers") is True else labels_of(values, reply.get("labels"))
        except Malformed as error:
            raise ModelError(f"the model gave {error}") from None
        return said if self._labels == classes or question != "predict" else self._renamed(said)

    def _renamed(self, codes: np.ndarray) -> np.ndarray:
        """Return the labels that the user gave for the codes that the model says."""
        assert self._labels is not None
        if codes.dtype.kind not in "bi" or (codes.size and not (codes.min() >= 0 and codes.max() < len(self._labels))):
            raise ModelError("the model predicted a class that is none of its codes")
        values = np.empty(len(self._labels), dtype=object)
        values[:] = self._labels
        renamed: np.ndarray = values[codes.astype(np.int64)]
        return renamed

    def _start_again_if_ended(self) -> None:
        if self._closed:
            raise ModelError("the model was closed, and answers no more")
        if not self._process.alive:
            self._process.close()
            self._process = ModelProcess(timeout=self._timeout, memory=self._memory)
            self._read_model()

    def _read_model(self) -> "_Told":
        order = self._order
        reply, _ = self._process.ask({"do": "load", **order.to_dict(), "sha256": self._sha256})
        match reply:
            case {"loaded": dict(told)}:
                return read_told(told)
            case {"changed": True}:
                raise ModelError(f"the model file {order.name!r} was changed during the audit")
            case {"untrusted": list(types)}:
                raise untrusted_message(order.name, [str(name) for name in types])
            case {"refused": [str(got), str(expected), str(remedy)]}:
                raise InputError(got, expected=expected, remedy=remedy)
            case {"missing": [str(package), str(extra), str(feature)]}:
                raise MissingExtra(package, extra=extra, feature=feature)
            case {"raised": raised}:
                raise _raised(raised)
            case _:
                raise ModelError("the model's process gave a malformed message")


@dataclass(frozen=True, slots=True)
class _Told:
    """What the process said of the model that it read, held to its types: the process is not trusted."""

    model: str
    questions: frozenset[str]
    classes: list[Any] | None
    feature_names: list[str] | None
    n_features: int | None
    regressor: bool
    trusted: tuple[str, ...]
    versions: dict[str, str]
    notes: tuple[str, ...]
    sha256: str | None


def read_told(told: Mapping[str, Any]) -> _Told:
    """Return what a process says of its model.

    Raises
    ------
    ModelError
        When it is not of that form.
    """
    match told:
        case {
            "model": str(model),
            "questions": list(questions),
            "classes": list() | None as classes,
            "feature_names": list() | None as names,
            "n_features": int() | None as count,
            "regressor": bool(regressor),
            "trusted": list(trusted),
            "versions": dict(versions),
            "notes": list(notes),
            "sha256": str() | None as sha256,
        } if (
            _texts(questions, names or [], trusted, notes, versions.values())
            and {*questions} <= _QUESTIONS
            and questions
        ):
            try:
                labels = None if classes is None else [read_scalar(label) for label in classes]
            except Malformed as error:
                raise ModelError("the model's process gave a malformed message") from error
            return _Told(
                model, frozenset(questions), labels, names, count, regressor, tuple(trusted), versions,
                tuple(notes), sha256,
            )  # fmt: skip
    raise ModelError("the model's process gave a malformed message")


def _named(told: _Told, classes: Sequence[Any], name: str) -> list[Any] | None:
    """Return the labels of the classes: those that the user gave for codes, else the model's own."""
    if not classes:
        return told.classes
    coded = told.classes == list(range(len(told.classes or ()))) or (
        told.classes is None and told.questions == {"call"}
    )
    if not coded:
        own = "labels of its own" if told.classes is not None else "no classes"
        raise InputError(f"{len(classes)} class labels were given, and {name!r} has {own}", expected="no labels for it")
    if told.classes is not None and len(classes) != len(told.classes):
        raise InputError(f"{len(classes)} class labels were given", expected=f"{len(told.classes)} for {name!r}")
    if len(set(classes)) != len(classes):
        raise InputError("two of the class labels given are the same", expected="one label for each class")
    return list(classes)


def _texts(*lists: Any) -> bool:
    return all(isinstance(item, str) for items in lists for item in items)


def labels_of(codes: np.ndarray, labels: Any) -> np.ndarray:
    """Return the labels that an answer of codes stands for."""
    if not isinstance(labels, list) or codes.dtype != np.int64:
        raise Malformed("labels that are none")
    values = np.empty(len(labels) + 1, dtype=object)
    values[:] = [*(read_scalar(label) for label in labels), None]
    if codes.size and not (codes.min() >= -1 and codes.max() < len(labels)):
        raise Malformed("labels that are none")
    return values[codes]


def _raised(raised: Any) -> ModelError:
    match raised:
        case ["MemoryError", _]:
            return ModelError("the model ran out of memory", kind="MemoryError")
        case [str(kind), str(text)]:
            kind, text = printable(kind[:100]), printable(text[:300])
            return ModelError(f"the model raised {kind}: {text or 'no message'}", kind=kind)
        case _:
            return ModelError("the model's process gave a malformed message")
