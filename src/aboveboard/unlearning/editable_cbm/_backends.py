"""How an editable model is read and written: here the classifier of linear parts."""

from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._classifier import ConceptBottleneckClassifier
from aboveboard.unlearning.editable_cbm._curvature import Floats
from aboveboard.unlearning.editable_cbm._linear import LabelLayer, LinearConcepts, with_ones

__all__ = ["Backend", "LinearBackend", "class_codes"]


class Backend(Protocol):
    """A model with its two losses.

    `part` has the methods of `LinearConcepts`; concept parameters have shape (blocks, p), and blocks share no
    curvature. `keeps_blocks` tells whether blocks stay as they are when concepts are added.
    """

    model: Any
    part: Any
    top: LabelLayer
    names: list[str]
    classes: NDArray[Any]
    tol: float
    max_iter: int
    keeps_blocks: bool

    def read(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the parameters of the concept predictor and the label layer, and which concepts are active."""

    def write(self, theta: Floats, top: Floats, active: NDArray[np.bool_]) -> None:
        """Give the model these parameters."""

    def prepare(self, X: Any) -> Any:
        """Return checked inputs as `part` takes them."""

    def select(self, design: Any, mask: NDArray[np.bool_]) -> Any:
        """Return some of the rows."""

    def append(self, design: Any, more: Any) -> Any:
        """Return the rows followed by more rows."""

    def codes(self, y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
        """Return the class number of each label."""

    def extended(self, theta: Floats, design: Any, new: Floats, names: list[str]) -> "tuple[Backend, Floats, Any]":
        """Return a backend with more concepts, each with a head fitted alone, its parameters, and the inputs."""

    def extended_start(self, origin: Floats, current: Floats) -> Floats:
        """Return parameters from before concepts were added, completed from the current ones."""


class LinearBackend:
    """A fitted `ConceptBottleneckClassifier`."""

    keeps_blocks = True

    def __init__(self, model: ConceptBottleneckClassifier, part: LinearConcepts, top: LabelLayer) -> None:
        self.model, self.part, self.top = model, part, top
        self.names: list[str] = list(model.concept_names_)
        self.classes: NDArray[Any] = model.classes_
        self.tol, self.max_iter = float(model.tol), int(model.max_iter)

    @classmethod
    def of(cls, model: ConceptBottleneckClassifier, l2: tuple[float, float] | None, damping: float) -> "LinearBackend":
        """Copy the model; `l2` overrides its own ridges."""
        check_is_fitted(model)
        copied = deepcopy(model)
        if l2 is not None:
            copied.set_params(l2=l2)
        concepts, labels = copied.parts()
        part = LinearConcepts(concepts.loss, concepts.l2, damping)
        return cls(copied, part, LabelLayer(labels.loss, labels.l2, damping))

    def read(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        model = self.model
        theta = np.column_stack([model.concept_coef_, model.concept_intercept_])
        top = np.column_stack([model.coef_, model.intercept_])
        return theta, top, model.active_concepts_.copy()

    def write(self, theta: Floats, top: Floats, active: NDArray[np.bool_]) -> None:
        self.model.set_parameters(theta, top)
        self.model.active_concepts_ = active.copy()
        self.model.concept_names_ = list(self.names)

    def prepare(self, X: Any) -> Floats:
        return with_ones(validate_data(self.model, X, dtype=np.float64, reset=False))

    def select(self, design: Floats, mask: NDArray[np.bool_]) -> Floats:
        return design[mask]

    def append(self, design: Floats, more: Floats) -> Floats:
        return np.concatenate([design, more])

    def codes(self, y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
        return class_codes(y, self.classes, n_rows)

    def extended(
        self, theta: Floats, design: Floats, new: Floats, names: list[str]
    ) -> "tuple[LinearBackend, Floats, Floats]":
        heads = self.part.fit(design, new, np.zeros((new.shape[1], theta.shape[1])), self.tol, self.max_iter)
        backend = LinearBackend(self.model, self.part, self.top)
        backend.names = [*self.names, *names]
        return backend, np.concatenate([theta, heads.theta]), design

    def extended_start(self, origin: Floats, current: Floats) -> Floats:
        return np.concatenate([origin, current[len(origin) :]])


def class_codes(y: ArrayLike, classes: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """Return the class number of each label, or say which label is unknown."""
    labels = column_or_1d(np.asarray(y))
    if len(labels) != n_rows:
        raise InputError(f"y has {len(labels)} labels for {n_rows} rows", expected="one per row")
    known = np.isin(labels, classes)
    if not known.all():
        raise InputError(
            f"y holds {labels[~known].tolist()[0]!r}, which the model does not know",
            expected=f"one of {', '.join(map(repr, classes.tolist()))}",
        )
    codes: NDArray[np.intp] = np.searchsorted(classes, labels).astype(np.intp)
    return codes
