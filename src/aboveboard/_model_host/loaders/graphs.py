"""Models in ONNX files: one input per column or one matrix; labels, probabilities, both, or numbers.

A graph says its inputs and outputs by type and shape only; what is not plain from these is refused by name. Class
labels are read from the nodes that give them (``classlabels_*``), else they are 0, 1 and so on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from aboveboard._model_host.loaders import Loaded, file_sha256
from aboveboard.core.errors import InputError
from aboveboard.core.extras import require

__all__ = ["load_onnx"]

_FEATURE: Final = "A model in an ONNX file"
_DTYPES: Final[dict[str, np.dtype[Any]]] = {
    "tensor(float16)": np.dtype("float16"),
    "tensor(float)": np.dtype("float32"),
    "tensor(double)": np.dtype("float64"),
    "tensor(int8)": np.dtype("int8"),
    "tensor(int16)": np.dtype("int16"),
    "tensor(int32)": np.dtype("int32"),
    "tensor(int64)": np.dtype("int64"),
    "tensor(uint8)": np.dtype("uint8"),
    "tensor(bool)": np.dtype("bool"),
    "tensor(string)": np.dtype("object"),
}
_SCORES: Final = frozenset({"tensor(float16)", "tensor(float)", "tensor(double)"})
_LABELS: Final = frozenset({"tensor(int32)", "tensor(int64)", "tensor(string)", "tensor(bool)"})
_MAPS: Final = frozenset({"seq(map(int64,tensor(float)))", "seq(map(string,tensor(float)))"})
_SCORE_NAMES: Final = ("probabilities", "output_probability", "probability", "scores", "proba")
_LABEL_NAMES: Final = ("label", "output_label", "labels")
_CLASS_LABELS: Final = frozenset({"classlabels_ints", "classlabels_int64s", "classlabels_strings"})
_REGRESSORS: Final = frozenset({"LinearRegressor", "SVMRegressor", "TreeEnsembleRegressor"})


def load_onnx(order: Mapping[str, Any]) -> Loaded:
    """Read an ONNX graph; weights beside it must lie in its folder."""
    onnx = require("onnx", extra="onnx", feature=_FEATURE)
    runtime = require("onnxruntime", extra="onnx", feature=_FEATURE)
    path = Path(order["path"])
    try:
        proto = onnx.load(str(path), load_external_data=False)
    except Exception as error:
        raise _unreadable(path, error) from error
    beside = _external_files(proto, path, onnx)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    try:
        session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise _unreadable(path, error) from error
    inputs, names = _inputs(session, path)
    score, label = _outputs(session, path)
    graph = _Graph(session, inputs, score, label, _class_labels(proto))
    notes = [
        f"The weights of the model stand beside it in {file.name!r} (sha256 {file_sha256(file)})." for file in beside
    ]
    regressor = label is None and any(node.op_type in _REGRESSORS for node in proto.graph.node)
    classes = None if regressor else graph.classes()
    if classes is not None and graph.labels is None:
        notes.append(
            f"The graph has no class labels; its classes are the codes 0 to {len(classes) - 1} "
            "(name them with classes, --model-classes)."
        )
    return Loaded(
        model=f"ONNX graph ({proto.producer_name})" if proto.producer_name else "ONNX graph",
        questions=graph.questions(regressor=regressor, classes=classes),
        classes=classes,
        feature_names=names,
        n_features=len(names) if names is not None else inputs[0].width,
        regressor=regressor,
        packages=("onnxruntime",),
        notes=tuple(notes),
    )


@dataclass(frozen=True)
class _Input:
    """An input of a graph: a matrix of `width` columns (None: of any number), or one column (width 1)."""

    name: str
    dtype: np.dtype[Any]
    flat: bool
    width: int | None
    batch: int | None


@dataclass(frozen=True)
class _Graph:
    """A session, and how its inputs and outputs are used."""

    session: Any
    inputs: Sequence[_Input]
    score: Any
    label: Any
    labels: list[Any] | None

    def classes(self) -> Sequence[Any] | None:
        """Return the class labels: those in the graph where they fit its scores, else codes; None where unknown."""
        width = self._score_width()
        if self.labels is not None and width in (None, 1, len(self.labels)):
            return self.labels
        if width is not None and width > 1:
            return range(width)
        if width == 1 and self.label is not None and self.label.type in ("tensor(int32)", "tensor(int64)"):
            return range(2)
        return None

    def questions(self, *, regressor: bool, classes: Sequence[Any] | None) -> dict[str, Callable[[Any], np.ndarray]]:
        """Return what the graph can be asked."""
        if self.label is not None:
            asked: dict[str, Callable[[Any], np.ndarray]] = {"predict": self._said_labels}
            return asked if self.score is None or classes is None else asked | {"predict_proba": self._said_scores}
        if regressor:
            return {"predict": self._said_scores}
        if classes is None or self._score_width() == 1:
            return {"call": self._said_scores}

        def most_likely(rows: Any) -> np.ndarray:
            said: np.ndarray = np.asarray(classes)[self._said_scores(rows).argmax(axis=1)]
            return said

        return {"predict": most_likely, "predict_proba": self._said_scores}

    def _score_width(self) -> int | None:
        """Return how many scores a row gets, None where the graph does not say."""
        if self.score is None or self.score.type in _MAPS:
            return None
        shape = self.score.shape
        if len(shape) < 2:
            return 1
        return shape[1] if isinstance(shape[1], int) else None

    def _said_labels(self, rows: Any) -> np.ndarray:
        said = np.concatenate([np.asarray(part) for part in self._run(rows, self.label.name)])
        return said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said

    def _said_scores(self, rows: Any) -> np.ndarray:
        parts = self._run(rows, self.score.name)
        if self.score.type in _MAPS:
            order = self.labels or sorted(parts[0][0])
            return np.array([[row[label] for label in order] for part in parts for row in part], dtype="float64")
        said = np.concatenate([np.asarray(part, dtype="float64") for part in parts])
        return said[:, 0] if said.ndim == 2 and said.shape[1] == 1 else said

    def _run(self, rows: Any, output: str) -> list[Any]:
        """Return an output for the rows; a graph for batches of one size gets such, the last one filled up."""
        n = len(rows)
        feeds = {entry.name: _values(entry, rows, i, len(self.inputs)) for i, entry in enumerate(self.inputs)}
        batch = next((entry.batch for entry in self.inputs if entry.batch is not None), None)
        if batch is None or batch == n:
            return [self.session.run([output], feeds)[0]]
        parts = []
        for start in range(0, n, batch):
            held = min(batch, n - start)
            at = np.minimum(np.arange(start, start + batch), n - 1)
            parts.append(self.session.run([output], {name: part[at] for name, part in feeds.items()})[0][:held])
        return parts


def _inputs(session: Any, path: Path) -> tuple[list[_Input], list[str] | None]:
    """Return the inputs, and the names of the columns where there is one input for each."""
    found = []
    for entry in session.get_inputs():
        shape, dtype = entry.shape, _DTYPES.get(entry.type)
        if dtype is None or len(shape) not in (1, 2):
            raise InputError(
                f"{path.name!r} has the input {entry.name!r}, which is {entry.type} of shape {shape}",
                expected="tensors of numbers or text: one matrix (rows x columns), or one input for each column",
            )
        width = 1 if len(shape) == 1 else shape[1] if isinstance(shape[1], int) else None
        batch = shape[0] if isinstance(shape[0], int) else None
        found.append(_Input(entry.name, dtype, len(shape) == 1, width, batch))
    if not found:
        raise InputError(f"{path.name!r} has no input", expected="one matrix, or one input for each column")
    if len(found) == 1:
        return found, None
    wide = next((entry for entry in found if entry.width not in (1, None)), None)
    if wide is not None:
        raise InputError(
            f"{path.name!r} has {len(found)} inputs, and {wide.name!r} among them takes {wide.width} columns",
            expected="one matrix, or one input for each column",
        )
    return found, [entry.name for entry in found]


def _outputs(session: Any, path: Path) -> tuple[Any, Any]:
    """Return the output of scores (or numbers) and that of labels; None where there is none."""
    outputs = session.get_outputs()
    scores = [entry for entry in outputs if entry.type in _MAPS] or [
        entry for entry in outputs if entry.type in _SCORES
    ]
    labels = [entry for entry in outputs if entry.type in _LABELS]
    chosen = []
    for what, entries, names in (("scores", scores, _SCORE_NAMES), ("labels", labels, _LABEL_NAMES)):
        named = [entry for entry in entries if entry.name in names]
        best = named if len(entries) > 1 else entries
        if len(entries) > 1 and len(best) != 1:
            listed = ", ".join(repr(entry.name) for entry in entries[:10])
            raise InputError(
                f"{path.name!r} has {len(entries)} outputs that could be {what}: {listed}",
                expected=f"one, or one of them called {' or '.join(names[:2])}",
            )
        chosen.append(best[0] if best else None)
    if chosen == [None, None]:
        listed = ", ".join(f"{entry.name!r} ({entry.type})" for entry in outputs[:10])
        raise InputError(f"{path.name!r} has the outputs {listed}", expected="labels, probabilities or numbers")
    return chosen[0], chosen[1]


def _class_labels(proto: Any) -> list[Any] | None:
    """Return the labels that the last node of a graph with class labels has."""
    for node in reversed(proto.graph.node):
        for attribute in node.attribute:
            if attribute.name in _CLASS_LABELS and (attribute.ints or attribute.strings):
                return [*attribute.ints, *(text.decode("utf-8", "replace") for text in attribute.strings)]
    return None


def _values(entry: _Input, rows: Any, position: int, inputs: int) -> np.ndarray:
    """Return what an input is fed: its column, or all of them."""
    if inputs > 1:
        columns = [rows[entry.name] if isinstance(rows, pd.DataFrame) else rows[:, position]]
    elif isinstance(rows, pd.DataFrame):
        columns = [rows.iloc[:, i] for i in range(rows.shape[1])]
    else:
        columns = list(rows.T)
    cast = [_cast(entry, column) for column in columns]
    return cast[0] if entry.flat else np.column_stack(cast) if cast else np.empty((len(rows), 0), entry.dtype)


def _cast(entry: _Input, column: Any) -> np.ndarray:
    """Return a column in the type of an input, which must hold each value as it is."""
    series = pd.Series(column).reset_index(drop=True)
    if entry.dtype == object:
        if series.isna().any():
            raise ValueError(f"the input {entry.name!r} takes text, which cannot be missing")
        return np.array([_text(value) for value in series], dtype=object)
    values = pd.to_numeric(series).to_numpy(dtype="float64", na_value=np.nan)
    if entry.dtype.kind in "iub":
        if series.isna().any():
            raise ValueError(f"the input {entry.name!r} takes whole numbers, which cannot be missing")
        whole = values.astype(entry.dtype)
        if not (whole == values).all():
            raise ValueError(f"the input {entry.name!r} takes {entry.dtype}, which does not hold every value")
        return whole
    with np.errstate(over="ignore"):
        return values.astype(entry.dtype)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


# --- weights outside the file -----------------------------------------------------------------------------------------


def _external_files(proto: Any, path: Path, onnx: Any) -> list[Path]:
    """Return the files with weights beside the model.

    Raises
    ------
    InputError
        When one lies outside the model's folder, also by way of a link or of "..", or is not there.
    """
    folder = path.parent.resolve()
    found: dict[Path, None] = {}
    for tensor in _tensors(proto):
        if tensor.data_location != onnx.TensorProto.EXTERNAL:
            continue
        location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
        try:
            file = (folder / location).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise InputError(f"{path.name!r} names weights at {location!r}, which is no path") from error
        if not location or Path(location).is_absolute() or not file.is_relative_to(folder):
            raise InputError(
                f"{path.name!r} wants weights from {location!r}, which lies outside its folder",
                expected="all files of a model in one folder",
                remedy="Save the model as one file",
            )
        if not file.is_file():
            raise InputError(f"{path.name!r} wants weights from {location!r}, and there is no such file")
        found[file] = None
    return list(found)


def _tensors(proto: Any) -> Iterator[Any]:
    """Return every tensor of a model, in whatever graph or function it stands."""
    graphs = [proto.graph]
    nodes = [node for function in proto.functions for node in function.node]
    for training in proto.training_info:
        graphs += [training.initialization, training.algorithm]
    while graphs or nodes:
        if graphs:
            graph = graphs.pop()
            yield from graph.initializer
            for sparse in graph.sparse_initializer:
                yield from (sparse.values, sparse.indices)
            nodes += graph.node
            continue
        for attribute in nodes.pop().attribute:
            yield from (attribute.t, *attribute.tensors)
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
            graphs += [attribute.g, *attribute.graphs] if attribute.HasField("g") else list(attribute.graphs)


def _unreadable(path: Path, error: Exception) -> InputError:
    first = (str(error).strip().splitlines() or ["no message"])[0][:200]
    return InputError(f"{path.name!r} cannot be read as an ONNX model ({type(error).__name__}: {first})")
