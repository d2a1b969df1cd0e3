"""Edits of a trained bottleneck: the concept predictor first, then the label layer on what it now predicts."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import f1_score, roc_auc_score

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._backends import Backend, LinearBackend
from aboveboard.unlearning.editable_cbm._classifier import (
    ConceptBottleneckClassifier,
    checked_concepts,
    checked_l2,
    concept_names,
)
from aboveboard.unlearning.editable_cbm._curvature import (
    EXACT_LIMIT,
    Floats,
    Solver,
    conjugate_gradient,
    solve_exactly,
)
from aboveboard.unlearning.editable_cbm._linear import LinearConcepts, with_ones
from aboveboard.unlearning.editable_cbm._reports import TOO_LARGE, EditReport, PartChange, RetrainComparison

__all__ = ["EditableCBM"]

_STATIONARY: Final = 1e-3
_POLISH_NEWTON: Final = 3
_POLISH_STEPS: Final = 200
_HALVINGS: Final = 30
_LEAK_ROWS, _LEAK_STEPS = 5_000, 6
_LEAKS: Final = 0.7
_UNMOVED: Final = 1e-4

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class _State:
    """The data as edited so far and the model's parameters; an edit makes a new one, so a failed edit changes nothing.

    `outputs` are what the concept predictor gives for the rows, 0 for dropped concepts. `hessians` holds, by block,
    Hessians at these parameters and rows, without the ridge. `more_steps` counts Newton steps beyond the edit's own.
    """

    design: Any
    concepts: Floats
    labels: Indices
    ids: Indices
    outputs: Floats
    active: NDArray[np.bool_]
    theta: Floats
    top: Floats
    hessians: dict[int, Floats] = field(default_factory=dict)
    more_steps: int = 0

    @property
    def inputs(self) -> Floats:
        return with_ones(self.outputs)


class EditableCBM:
    """A trained concept bottleneck model that takes corrections, erasures and additions without retraining.

    The model is copied; `model` is the copy, which every edit changes. Each edit is a Newton step on the edited loss,
    of the concept predictor first and then of the label layer, and returns an `EditReport`.

    Parameters
    ----------
    model : ConceptBottleneckClassifier, or pair ``(g, f)`` of torch modules
        Fitted, at the optimum of its regularised loss. Of a pair, ``g`` maps inputs to one logit per concept and is
        edited in the parameters that require gradients (freeze the trunk); ``f`` is a ``torch.nn.Linear`` with a bias
        from the concepts' probabilities to one logit per class. Both are used in evaluation mode, in float64.
    X : array or data frame of shape (n, d); tensor or array of shape (n, ...) for a pair
    C : array or data frame of shape (n, k)
        Concept labels 0, 1 or NaN (unknown).
    y : array-like of shape (n,)
        Labels; class numbers from 0 for a pair.
    l2 : pair of float > 0, optional
        Ridges of the two parts, on the scale of losses summed over rows. Default: the classifier's own, or (1e-2, 1e-2)
        for a pair.
    solver : {"auto", "exact", "cg", "ekfac"}, default "auto"
        How inverse-Hessian products are taken: a Cholesky factor (5,000 parameters per block at most; each linear
        concept head is a block, the label layer another), conjugate gradients on exact products, or EK-FAC. ``"auto"``
        is exact where the block has at most 5,000 parameters (500 for a torch ``g``), else conjugate gradients.
    hessian : {"retained", "all"}, default "retained"
        Whether the Hessian is that of the edited loss, or that of the loss before the edit, as the paper has it.
    damping : float >= 0, default 1e-3
        Added to the Hessian by ``"cg"`` and ``"ekfac"``.
    polish_above : float > 0 or None, default 1e-3
        When an edit leaves a residual gradient norm above this, more Newton steps follow (L-BFGS where the concept
        predictor is no linear one, with EK-FAC, or where Newton steps do not help), and the report says so.
    batch_size : int, default 1024
        Rows per pass of a torch ``g``.

    Attributes
    ----------
    model : the edited copy
    concept_names : list of str
    row_ids : ndarray of int
        The rows that are still in the data. Rows are numbered as they were given, 0 to n - 1; added rows follow.
    reports : list of EditReport
    prepare_seconds : float
        What checking the model and computing its curvature took, once, before the first edit.

    Raises
    ------
    InputError
        For a model that is not at its optimum (see `polished`), a label layer that is not linear, rows or concepts that
        do not exist or are repeated, labels that already have the new value, options out of range.
    MissingExtra
        For a pair when PyTorch is not installed.

    Guarantee
    ---------
    With the squared loss and ``hessian="retained"`` an edit equals the refit up to rounding. With the log loss the
    distance to the refit is of second order in the edit's size: halving the edit quarters it. This is no certificate of
    erasure: the residual gradient tells how far the model is from one that never saw the rows, and no noise hides the
    rest.

    Notes
    -----
    With sums over rows and both ridges in every Hessian, one step is theta - H^{-1} gradient of the edited sum. At an
    optimum this is the paper's difference of gradients; away from it, it also corrects what earlier edits left over.
    Cost of an edit with linear heads: O(n k (d + m)) for the passes, O(r d^2) per removed row and head or O(n d^2) per
    head where the curvature has to be computed again, O(k d^3) to solve, and O(n m^2 k^2) for the label layer.

    References
    ----------
    L. Hu et al., "Editable Concept Bottleneck Models", ICML 2025.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.unlearning import ConceptBottleneckClassifier, EditableCBM
    >>> data = load_breast_cancer(as_frame=True)
    >>> worst = data.data.filter(like="worst")
    >>> concepts = (worst > worst.median()).astype(int)
    >>> X = StandardScaler().fit_transform(data.data.filter(like="mean"))
    >>> model = ConceptBottleneckClassifier(l2=(1.0, 1.0)).fit(X, concepts, data.target)
    >>> editable = EditableCBM(model, X, concepts, data.target)
    >>> editable.forget([3, 14, 15]).warning
    ''
    >>> editable.drop_concepts(["worst texture"]).n_edits
    1
    >>> bool(editable.compare_with_retrain().f1_gap < 0.01)
    True
    """

    _backend: Backend
    _state: _State
    _origin: _State
    reports: list[EditReport]
    prepare_seconds: float

    def __init__(
        self,
        model: Any,
        X: Any,
        C: Any,
        y: ArrayLike,
        *,
        l2: Sequence[float] | None = None,
        solver: Literal["auto", "exact", "cg", "ekfac"] = "auto",
        hessian: Literal["retained", "all"] = "retained",
        damping: float = 1e-3,
        polish_above: float | None = 1e-3,
        batch_size: int = 1024,
    ) -> None:
        self._prepare(model, X, C, y, l2, solver, hessian, damping, polish_above, batch_size, polish=False)

    @classmethod
    def polished(cls, model: Any, X: Any, C: Any, y: ArrayLike, **options: Any) -> "EditableCBM":
        """Bring the model to the optimum of its regularised loss with L-BFGS first, then wrap it.

        Parameters
        ----------
        model, X, C, y, **options
            As for the class. The polished parameters count as those before any edit.
        """
        defaults = {
            "l2": None, "solver": "auto", "hessian": "retained", "damping": 1e-3, "polish_above": 1e-3,
            "batch_size": 1024,
        }  # fmt: skip
        unknown = options.keys() - defaults.keys()
        if unknown:
            raise TypeError(f"EditableCBM has no option {sorted(unknown)[0]!r}")
        editable = cls.__new__(cls)
        editable._prepare(model, X, C, y, **(defaults | options), polish=True)
        return editable

    @property
    def model(self) -> Any:
        """The edited model."""
        return self._backend.model

    @property
    def concept_names(self) -> list[str]:
        """Names of all concepts, dropped ones too."""
        return list(self._backend.names)

    @property
    def row_ids(self) -> Indices:
        """Numbers of the rows that are still in the data."""
        return self._state.ids.copy()

    @property
    def concept_labels(self) -> Floats:
        """Concept labels of the rows that are still in the data, as edited; NaN where unknown or dropped."""
        return self._state.concepts.copy()

    def relabel(self, rows: ArrayLike, concepts: Any, new_values: ArrayLike) -> EditReport:
        """Correct concept labels; also give labels that were missing, or withdraw them.

        Parameters
        ----------
        rows : int or array-like of shape (e,)
        concepts : int, str or sequence of shape (e,)
            Number or name of the concept, one per row of `rows`, or one for all.
        new_values : 0, 1 or NaN, or array-like of shape (e,)
            NaN withdraws a label.

        Returns
        -------
        EditReport
        """
        start = time.perf_counter()
        state = self._state
        places, columns, values = self._checked_labels(rows, concepts, new_values)
        edited = state.concepts.copy()
        edited[places, columns] = values
        blocks = self._backend.part.blocks_of(columns)
        moved = np.isnan(values) | np.isnan(state.concepts[places, columns])
        stale = self._backend.part.blocks_of(columns[moved]) if self._hessian == "retained" else []
        ready = self._curvature(state, [block for block in blocks if block not in stale])
        after = replace(state, concepts=edited, hessians=_without(ready.hessians, stale))
        after = self._move_concepts(after, blocks, self._curvature_source(state, after))
        after = self._label_step(after, before=state)
        return self._commit("relabel", len(values), after, start)

    def forget(self, rows: ArrayLike) -> EditReport:
        """Remove rows from the training data and their influence from the model.

        Parameters
        ----------
        rows : int or array-like of shape (e,)
            Row numbers; see `row_ids`.

        Returns
        -------
        EditReport
        """
        start = time.perf_counter()
        state = self._state
        gone = np.zeros(len(state.ids), dtype=bool)
        gone[self._places(rows)] = True
        if gone.all():
            raise InputError("all rows would be forgotten", expected="at least one row that stays")
        after = self._changed_rows(state, keep=~gone)
        notes = [
            f"class {self._backend.classes.tolist()[label]!r} has no rows left; the ridge alone speaks for it"
            for label in np.setdiff1d(state.labels, after.labels)
        ]
        after = self._refit_rows(state, after)
        return self._commit("forget", int(gone.sum()), after, start, notes)

    def add(self, X: Any, C: Any, y: ArrayLike) -> EditReport:
        """Add rows to the training data and let the model learn from them.

        Parameters
        ----------
        X, C, y : as for the class
            Rows with the same features and concepts; labels of known classes. Labels of dropped concepts are ignored.

        Returns
        -------
        EditReport
        """
        start = time.perf_counter()
        state = self._state
        design = self._backend.prepare(X)
        concepts = checked_concepts(C, len(design))
        if concepts.shape[1] != len(state.active):
            raise InputError(f"C has {concepts.shape[1]} concepts", expected=f"{len(state.active)}, dropped ones too")
        concepts[:, ~state.active] = np.nan
        labels = self._backend.codes(y, len(design))
        after = self._changed_rows(state, added=(design, concepts, labels))
        after = self._refit_rows(state, after)
        report = self._commit("add", len(labels), after, start)
        self._n_rows += len(labels)
        return report

    def drop_concepts(self, concepts: Any, *, n_newton: int = 2) -> EditReport:
        """Take concepts out of the model: their heads, their weights in the label layer, and their labels.

        What the other concepts predict of a concept linearly (its mean at least) is absorbed into their weights and the
        bias, its own weights become 0, and Newton steps on the new objective follow. Numbers of other concepts stay as
        they are. Heads of their own are untouched; a torch ``g`` takes L-BFGS steps on the loss of the others.

        Parameters
        ----------
        concepts : int, str or sequence of them
        n_newton : int >= 1, default 2
            Newton steps of the label layer; the paper takes one. See `EditReport.residual_gradient_norm`.

        Returns
        -------
        EditReport
            With `repredictability`: a dropped concept is not unlearned where the others tell it.
        """
        start = time.perf_counter()
        state = self._state
        _checked_steps(n_newton)
        gone = self._columns(concepts)
        active = state.active.copy()
        active[gone] = False
        if not active.any():
            raise InputError("all concepts would be dropped", expected="at least one concept that stays")
        edited = state.concepts.copy()
        edited[:, gone] = np.nan
        after = replace(state, concepts=edited, active=active)
        after = self._drop_heads(after, gone)
        top = _absorbed(state, gone, self._backend.top.l2)
        after = self._label_newton(replace(after, top=top), n_newton)
        leaks = {self.concept_names[j]: _told_by_others(state.concepts[:, j], after) for j in gone}
        notes = [
            f"{name!r} can still be told from the remaining concepts (area under the ROC curve {leak:.2f})"
            for name, leak in leaks.items()
            if leak is not None and leak >= _LEAKS
        ]
        return self._commit("drop_concepts", len(gone), after, start, notes, reference=top, leaks=leaks)

    def add_concepts(self, C: Any, *, n_newton: int = 2) -> EditReport:
        """Add concepts: a head is fitted for each alone, then the label layer takes Newton steps.

        Parameters
        ----------
        C : array or data frame of shape (rows that are still in the data, q)
            Labels 0, 1 or NaN, in the order of `row_ids`. A torch ``g`` must be a ``Sequential`` that ends in a
            ``Linear`` layer.
        n_newton : int >= 1, default 2

        Returns
        -------
        EditReport
        """
        start = time.perf_counter()
        state = self._state
        _checked_steps(n_newton)
        new = checked_concepts(C, len(state.ids))
        if np.isnan(new).all(axis=0).any():
            raise InputError("a new concept has no label", expected="at least one row with 0 or 1 in each column")
        k, q = len(state.active), new.shape[1]
        names = concept_names(C, q) if hasattr(C, "columns") else [f"concept{k + j}" for j in range(q)]
        if set(names) & set(self.concept_names):
            raise InputError(f"there is already a concept called {sorted(set(names) & set(self.concept_names))[0]!r}")
        backend, theta, design = self._backend.extended(state.theta, state.design, new, names)
        outputs = backend.part.outputs(theta, design)
        active = np.append(state.active, np.ones(q, dtype=bool))
        outputs[:, ~active] = 0.0
        weights = np.insert(state.top, [k] * q, 0.0, axis=1)
        after = _State(
            design, np.column_stack([state.concepts, new]), state.labels, state.ids, outputs, active, theta, weights,
            state.hessians if backend.keeps_blocks else {},
        )  # fmt: skip
        after = self._label_newton(after, n_newton)
        unused = np.append(self._origin.active, np.zeros(q, dtype=bool))
        self._origin = replace(self._origin, top=np.insert(self._origin.top, [k] * q, 0.0, axis=1), active=unused)
        self._backend = backend
        return self._commit("add_concepts", q, after, start, before=replace(after, theta=theta, top=weights))

    def predict_concepts(self, X: Any) -> Floats:
        """Return each concept's probability, shape (rows, k); NaN where dropped."""
        outputs = self._outputs(self._state, X)
        outputs[:, ~self._state.active] = np.nan
        return outputs

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the edited model's most likely class of each row."""
        predicted: NDArray[Any] = self._backend.classes[self._scores(self._state, X).argmax(axis=1)]
        return predicted

    def predict_proba(self, X: Any) -> Floats:
        """Return the classes' probabilities, shape (rows, m); values under the squared loss."""
        return self._scores(self._state, X)

    def compare_with_retrain(self, X: Any = None, y: ArrayLike | None = None) -> RetrainComparison:
        """Fit the model again to the edited data, from the unedited parameters, and compare.

        Parameters
        ----------
        X, y : optional
            Rows to compute F1 and agreement on; better held-out ones. Default: the edited training rows.

        Returns
        -------
        RetrainComparison
        """
        if (X is None) != (y is None):
            raise InputError("X was given without y, or y without X", expected="both or neither")
        state, backend = self._state, self._backend
        start = time.perf_counter()
        retrained, converged = self._refit(state, self._start_theta(), self._origin.top, backend.tol, backend.max_iter)
        seconds = time.perf_counter() - start
        unedited = replace(self._origin, theta=self._start_theta())
        if X is None or y is None:
            truth = state.labels
            scores = [
                self._backend.top.outputs(s.top, with_ones(self._masked(s, s.theta, state.design)))
                for s in (state, retrained, unedited)
            ]
        else:
            truth = backend.codes(y, len(backend.prepare(X)))
            scores = [self._scores(s, X) for s in (state, retrained, unedited)]
        classes = np.arange(len(backend.classes))
        votes = [score.argmax(axis=1) for score in scores]
        f1 = [float(f1_score(truth, vote, labels=classes, average="macro", zero_division=0.0)) for vote in votes]
        return RetrainComparison(
            concept_gap=_gap(*(self._living(s.theta, state) for s in (state, retrained, unedited))),
            label_gap=_gap(state.top, retrained.top, unedited.top),
            f1=dict(zip(("edited", "retrained", "unedited"), f1, strict=True)),
            agreement=float((votes[0] == votes[1]).mean()),
            edit_seconds=sum(report.seconds for report in self.reports),
            retrain_seconds=seconds,
            retrain_converged=converged,
            residual_gradient_norm=max(self._residuals(state)),
        )

    # --- set-up ------------------------------------------------------------------------------------------------------

    def _prepare(
        self,
        model: Any,
        X: Any,
        C: Any,
        y: ArrayLike,
        l2: Sequence[float] | None,
        solver: str,
        hessian: str,
        damping: float,
        polish_above: float | None,
        batch_size: int,
        *,
        polish: bool,
    ) -> None:
        begin = time.perf_counter()
        if solver not in ("auto", "exact", "cg", "ekfac"):
            raise InputError(f"solver is {solver!r}", expected="'auto', 'exact', 'cg' or 'ekfac'")
        if hessian not in ("retained", "all"):
            raise InputError(f"hessian is {hessian!r}", expected="'retained' or 'all'")
        if not (np.isfinite(damping) and damping >= 0):
            raise InputError(f"damping is {damping!r}", expected="a number of at least 0")
        if polish_above is not None and not polish_above > 0:
            raise InputError(f"polish_above is {polish_above!r}", expected="a number above 0, or None")
        ridges = None if l2 is None else checked_l2(l2)
        self._hessian, self._polish_above = hessian, polish_above
        self._backend = _backend(model, ridges, damping, batch_size)
        theta, top, active = self._backend.read()
        self._solver = self._solver_for(solver, theta.shape[1], self._backend.part.exact_up_to)
        self._top_solver = self._solver_for(solver, top.size, EXACT_LIMIT)

        design = self._backend.prepare(X)
        concepts = checked_concepts(C, len(design))
        if concepts.shape[1] != len(active):
            raise InputError(f"C has {concepts.shape[1]} concepts", expected=f"{len(active)}, as the model has")
        concepts[:, ~active] = np.nan
        labels = self._backend.codes(y, len(design))
        outputs = self._backend.part.outputs(theta, design)
        outputs[:, ~active] = 0.0
        self._n_rows = len(labels)
        self._state = _State(design, concepts, labels, np.arange(len(labels)), outputs, active, theta, top)
        if polish:
            self._state, _ = self._refit(self._state, theta, top, self._backend.tol, self._backend.max_iter)
            self._backend.write(self._state.theta, self._state.top, active)
        self._refuse_unstationary(self._state)
        if self._solver == "exact":
            every = self._backend.part.blocks_of(np.flatnonzero(active))
            self._state = self._curvature(self._state, every)
        self._origin = replace(self._state, design=None, outputs=np.empty((0, 0)), hessians={})
        self.reports = []
        self.prepare_seconds = time.perf_counter() - begin

    def _solver_for(self, solver: str, n_parameters: int, exact_up_to: int) -> Solver:
        if solver == "auto":
            return "exact" if n_parameters <= exact_up_to else "cg"
        if solver == "exact" and n_parameters > EXACT_LIMIT:
            raise InputError(
                f"solver='exact' for a block of {n_parameters:,} parameters",
                expected=f"at most {EXACT_LIMIT:,}",
                remedy="Choose solver='cg' or 'ekfac', or freeze the trunk",
            )
        return solver  # type: ignore[return-value]

    def _refuse_unstationary(self, state: _State) -> None:
        for part, norm in zip(("concept predictor", "label layer"), self._residuals(state), strict=True):
            if not norm <= _STATIONARY:
                raise InputError(
                    f"the {part} is not at the optimum of its loss: its mean gradient has norm {norm:.3g}",
                    expected=f"at most {_STATIONARY:g}, since an influence step means nothing elsewhere",
                    remedy="Check that l2 is the ridge it was trained with (on the scale of summed losses), or let "
                    "EditableCBM.polished(...) bring it there",
                )

    # --- steps -------------------------------------------------------------------------------------------------------

    def _move_concepts(self, state: _State, blocks: list[int], curvature: _State) -> _State:
        """Take a Newton step of some blocks, and more where they leave too large a gradient (see `polish_above`)."""
        state = self._concept_step(state, blocks, curvature)
        if self._polish_above is None or not self._newton_polishes:
            return state
        part, n = self._backend.part, len(state.labels)
        norms = np.full(len(state.theta), np.inf)
        for steps in range(_POLISH_NEWTON + 1):
            gradient = part.gradient(state.theta, state.design, state.outputs, state.concepts)
            left = np.linalg.norm(gradient, axis=1) / n
            total = float(np.linalg.norm(left))
            if total <= self._polish_above or not total < float(np.linalg.norm(norms)) or steps == _POLISH_NEWTON:
                break
            rough = np.flatnonzero(left > self._polish_above / (2 * np.sqrt(len(left)))).tolist()
            norms, state = left, replace(self._concept_step(state, rough, state), more_steps=state.more_steps + 1)
        return state

    @property
    def _newton_polishes(self) -> bool:
        return isinstance(self._backend.part, LinearConcepts) and self._solver != "ekfac"

    def _concept_step(self, state: _State, blocks: list[int], curvature: _State) -> _State:
        """Take a Newton step of some blocks on the state's loss, with the Hessian of `curvature`'s rows and labels."""
        part = self._backend.part
        gradient = part.gradient(state.theta, state.design, state.outputs, state.concepts)
        others = np.setdiff1d(np.arange(len(gradient)), blocks)
        gradient[others] = 0.0
        at = (curvature.theta, curvature.design, curvature.outputs, curvature.concepts)
        if self._solver == "exact":
            step = np.zeros_like(gradient)
            for block, hessian in self._curvature(curvature, blocks).hessians.items():
                if block in blocks:
                    step[block] = solve_exactly(hessian + part.l2 * np.eye(len(hessian)), gradient[block])
        elif self._solver == "cg":
            step = conjugate_gradient(part.operator(*at), gradient.ravel()).reshape(gradient.shape)
        else:
            step = part.kronecker_step(*at, gradient)
            step[others] = 0.0
        theta = state.theta - step
        outputs = part.updated(theta, state.design, state.outputs, blocks)
        outputs[:, ~state.active] = 0.0
        return replace(state, theta=theta, outputs=outputs, hessians=_without(state.hessians, blocks))

    def _label_step(self, state: _State, before: _State) -> _State:
        """Take a Newton step of the label layer; ``hessian="all"`` takes the Hessian at the inputs before the edit."""
        source = state if self._hessian == "retained" else replace(before, top=state.top)
        layer, inputs = self._backend.top, state.inputs
        gradient = layer.gradient(state.top, inputs, state.labels, layer.outputs(state.top, inputs))
        where = inputs if source is state else source.inputs
        step = layer.step(state.top, where, layer.outputs(state.top, where), gradient, self._top_solver)
        return replace(state, top=state.top - step)

    def _label_newton(self, state: _State, n_newton: int) -> _State:
        """Take Newton steps of the label layer, each halved until the loss falls."""
        layer, inputs, labels = self._backend.top, state.inputs, state.labels
        top = state.top
        value = layer.value(top, inputs, labels)
        for _ in range(n_newton):
            outputs = layer.outputs(top, inputs)
            step = layer.step(top, inputs, outputs, layer.gradient(top, inputs, labels, outputs), self._top_solver)
            for _ in range(_HALVINGS):
                candidate = layer.value(top - step, inputs, labels)
                if candidate <= value:
                    top, value = top - step, candidate
                    break
                step = step / 2
        return replace(state, top=top)

    def _refit_rows(self, before: _State, after: _State) -> _State:
        """Let both parts follow a change of rows.

        With the Hessian before the edit the label layer takes two steps, as the paper has it: other rows first, then
        other concepts. With the edited Hessian one step to both is as accurate.
        """
        blocks = self._backend.part.blocks_of(np.flatnonzero(after.active))
        if self._hessian == "retained":
            return self._label_step(self._move_concepts(after, blocks, after), before=after)
        rows = self._label_step(after, before)
        return self._label_step(self._move_concepts(rows, blocks, before), before=rows)

    def _drop_heads(self, state: _State, gone: Indices) -> _State:
        """Take the heads of dropped concepts away; where concepts share parameters, let the others settle.

        Leaving a concept's loss out is no small change of a shared predictor, whose Hessian need not stay positive
        definite: L-BFGS steps take the place of the paper's single one.
        """
        part = self._backend.part
        if isinstance(part, LinearConcepts):
            theta, outputs = state.theta.copy(), state.outputs.copy()
            theta[gone], outputs[:, gone] = 0.0, 0.0
            return replace(state, theta=theta, outputs=outputs, hessians=_without(state.hessians, gone.tolist()))
        tol = (self._polish_above or _STATIONARY) / np.sqrt(state.theta.size)
        theta = part.fit(state.design, state.concepts, state.theta, tol, _POLISH_STEPS).theta
        return replace(state, theta=theta, outputs=self._masked(state, theta, state.design), hessians={})

    def _curvature_source(self, before: _State, after: _State) -> _State:
        return after if self._hessian == "retained" else before

    def _curvature(self, state: _State, blocks: list[int]) -> _State:
        """Return the state with the Hessians of these blocks, computed where they are missing."""
        if self._solver != "exact":
            return state
        at = (state.theta, state.design, state.outputs, state.concepts)
        found = dict(state.hessians)
        for block in blocks:
            if block not in found:
                found[block] = self._backend.part.hessian(*at, block)
        return replace(state, hessians=found)

    def _changed_rows(
        self,
        state: _State,
        keep: NDArray[np.bool_] | None = None,
        added: tuple[Any, Floats, Indices] | None = None,
    ) -> _State:
        """Return the state with fewer or more rows, its Hessians brought up to date at the same parameters."""
        backend = self._backend
        if keep is not None:
            design, outputs, concepts = backend.select(state.design, ~keep), state.outputs[~keep], state.concepts[~keep]
            after = replace(
                state,
                design=backend.select(state.design, keep),
                concepts=state.concepts[keep],
                labels=state.labels[keep],
                ids=state.ids[keep],
                outputs=state.outputs[keep],
            )
            sign = -1.0
        else:
            assert added is not None
            design, concepts, labels = added
            outputs = self._masked(state, state.theta, design)
            after = replace(
                state,
                design=backend.append(state.design, design),
                concepts=np.concatenate([state.concepts, concepts]),
                labels=np.concatenate([state.labels, labels]),
                ids=np.concatenate([state.ids, np.arange(self._n_rows, self._n_rows + len(labels))]),
                outputs=np.concatenate([state.outputs, outputs]),
            )
            sign = 1.0
        if 2 * len(concepts) > len(after.concepts):
            return replace(after, hessians={})
        changed = {
            block: hessian + sign * backend.part.hessian(state.theta, design, outputs, concepts, block)
            for block, hessian in state.hessians.items()
        }
        return replace(after, hessians=changed)

    def _refit(self, state: _State, theta: Floats, top: Floats, tol: float, max_iter: int) -> tuple[_State, bool]:
        fitted = self._backend.part.fit(state.design, state.concepts, theta, tol, max_iter)
        outputs = self._masked(state, fitted.theta, state.design)
        start = top.copy()
        start[:, :-1][:, ~state.active] = 0.0
        layer = self._backend.top.fit(with_ones(outputs), state.labels, start, tol, max_iter)
        after = replace(state, theta=fitted.theta, top=layer.theta, outputs=outputs, hessians={})
        return after, fitted.converged and layer.converged

    # --- reports -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        kind: Any,
        n_edits: int,
        after: _State,
        start: float,
        notes: Sequence[str] = (),
        *,
        before: _State | None = None,
        reference: Floats | None = None,
        leaks: dict[str, float | None] | None = None,
    ) -> EditReport:
        """Polish where it is needed, make the edit the model's own, and report."""
        old = self._state if before is None else before
        residuals, notes = self._residuals(after), list(notes)
        if self._polish_above is not None and max(residuals) > self._polish_above:
            theta = after.theta
            after = self._polish(after, self._polish_above)
            residuals = self._residuals(after)
            if after.theta is not theta:
                notes.append("steps of L-BFGS followed, since Newton steps left too large a gradient")
                after = replace(after, more_steps=max(1, after.more_steps))
        if after.more_steps:
            notes.append(f"Newton steps beyond the edit's own: {after.more_steps}")
        polished, after = after.more_steps > 0, replace(after, more_steps=0)
        changes = [
            PartChange(float(np.linalg.norm(new - was)), _relative(new - was, was), residual)
            for new, was, residual in (
                (after.theta, old.theta, residuals[0]),
                (after.top, old.top if reference is None else reference, residuals[1]),
            )
        ]
        if kind == "drop_concepts" and isinstance(self._backend.part, LinearConcepts):
            changes[0] = replace(changes[0], relative_step=0.0)
        self._backend.write(after.theta, after.top, after.active)
        self._state = after
        report = EditReport(
            kind=kind,
            n_edits=n_edits,
            seconds=time.perf_counter() - start,
            concepts=changes[0],
            labels=changes[1],
            polished=polished,
            warning="" if polished else _warning(changes),
            notes=tuple(notes),
            repredictability=leaks or {},
        )
        self.reports.append(report)
        return report

    def _polish(self, state: _State, enough: float) -> _State:
        """Take Newton steps of the label layer while they help, then L-BFGS steps of both parts if need be."""
        first, second = self._residuals(state)
        if first <= enough and self._newton_polishes:
            for _ in range(_POLISH_NEWTON):
                closer = self._label_newton(state, 1)
                left = self._label_residual(closer)
                if not left < second:
                    break
                state, second = replace(closer, more_steps=state.more_steps + 1), left
                if second <= enough:
                    return state
        tol = enough / np.sqrt(max(state.theta.size, state.top.size))
        return self._refit(state, state.theta, state.top, float(tol), _POLISH_STEPS)[0]

    def _residuals(self, state: _State) -> tuple[float, float]:
        """Return the norms of the mean gradients of both parts."""
        first = self._backend.part.gradient(state.theta, state.design, state.outputs, state.concepts)
        return float(np.linalg.norm(first)) / len(state.labels), self._label_residual(state)

    def _label_residual(self, state: _State) -> float:
        layer, inputs = self._backend.top, state.inputs
        gradient = layer.gradient(state.top, inputs, state.labels, layer.outputs(state.top, inputs))
        return float(np.linalg.norm(gradient)) / len(state.labels)

    def _masked(self, state: _State, theta: Floats, design: Any) -> Floats:
        outputs: Floats = self._backend.part.outputs(theta, design)
        outputs[:, ~state.active] = 0.0
        return outputs

    def _outputs(self, state: _State, X: Any) -> Floats:
        return self._masked(state, state.theta, self._backend.prepare(X))

    def _scores(self, state: _State, X: Any) -> Floats:
        return self._backend.top.outputs(state.top, with_ones(self._outputs(state, X)))

    def _living(self, theta: Floats, state: _State) -> Floats:
        """Return the parameters without the heads of dropped concepts, where heads are apart."""
        return theta[state.active] if isinstance(self._backend.part, LinearConcepts) else theta

    def _start_theta(self) -> Floats:
        """Return the unedited concept parameters, in the shape that they have now; heads added since as they are."""
        return self._backend.extended_start(self._origin.theta, self._state.theta)

    # --- input -------------------------------------------------------------------------------------------------------

    def _places(self, rows: ArrayLike) -> Indices:
        """Return where in the current data the rows with these numbers are."""
        numbers = np.atleast_1d(np.asarray(rows))
        if numbers.ndim != 1 or not numbers.size or not np.issubdtype(numbers.dtype, np.integer):
            raise InputError(f"rows are {rows!r}", expected="row numbers, at least one")
        outside = (numbers < 0) | (numbers >= self._n_rows)
        if outside.any():
            raise InputError(f"there is no row {numbers[outside][0]}", expected=f"numbers from 0 to {self._n_rows - 1}")
        unique, counts = np.unique(numbers, return_counts=True)
        if (counts > 1).any():
            raise InputError(f"row {unique[counts > 1][0]} is given twice", expected="each row once")
        return self._located(numbers)

    def _located(self, numbers: NDArray[Any]) -> Indices:
        ids = self._state.ids
        places = np.searchsorted(ids, numbers)
        found = ids[np.minimum(places, len(ids) - 1)] == numbers
        if not found.all():
            raise InputError(f"row {numbers[~found][0]} was forgotten already", expected="rows that are in row_ids")
        return places

    def _columns(self, concepts: Any) -> Indices:
        """Return the numbers of concepts given by number or name."""
        given = [concepts] if isinstance(concepts, str) or np.isscalar(concepts) else list(concepts)
        columns = np.array([self._column(concept) for concept in given], dtype=np.intp)
        unique, counts = np.unique(columns, return_counts=True)
        if not len(columns) or (counts > 1).any():
            which = f"concept {self.concept_names[unique[counts > 1][0]]!r} is given twice" if len(columns) else "none"
            raise InputError(f"concepts: {which}", expected="at least one concept, each once")
        return columns

    def _column(self, concept: Any) -> int:
        names = self._backend.names
        if isinstance(concept, str):
            if concept not in names:
                raise InputError(f"no concept is called {concept!r}", expected=f"one of {', '.join(names)}")
            number = names.index(concept)
        elif isinstance(concept, int | np.integer) and not isinstance(concept, bool | np.bool_):
            if not 0 <= concept < len(names):
                raise InputError(f"there is no concept {concept}", expected=f"numbers from 0 to {len(names) - 1}")
            number = int(concept)
        else:
            raise InputError(f"{concept!r} is no concept", expected="a number or a name")
        if not self._state.active[number]:
            raise InputError(f"concept {names[number]!r} was dropped", expected="a concept that the model still has")
        return number

    def _checked_labels(self, rows: ArrayLike, concepts: Any, new_values: ArrayLike) -> tuple[Indices, Indices, Floats]:
        numbers = np.atleast_1d(np.asarray(rows))
        if numbers.ndim != 1 or not numbers.size or not np.issubdtype(numbers.dtype, np.integer):
            raise InputError(f"rows are {rows!r}", expected="row numbers, at least one")
        outside = (numbers < 0) | (numbers >= self._n_rows)
        if outside.any():
            raise InputError(f"there is no row {numbers[outside][0]}", expected=f"numbers from 0 to {self._n_rows - 1}")
        one = isinstance(concepts, str) or np.isscalar(concepts)
        known: dict[Any, int] = {}
        given = [concepts] if one else list(concepts)
        for concept in given:
            if concept not in known:
                known[concept] = self._column(concept)
        columns = np.array([known[concept] for concept in given], dtype=np.intp)
        try:
            values = np.atleast_1d(np.asarray(new_values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"new_values are {new_values!r}", expected="0, 1 or NaN") from error
        if not all(array.shape in ((1,), numbers.shape) for array in (columns, values)):
            raise InputError(
                f"there are {len(numbers)} rows, {len(columns)} concepts and {values.size} new values",
                expected="equally many, or one concept or value for all",
            )
        places = self._located(numbers)
        columns, values = np.broadcast_to(columns, numbers.shape), np.broadcast_to(values, numbers.shape)
        wrong = ~(np.isnan(values) | (values == 0) | (values == 1))
        if wrong.any():
            raise InputError(f"a new value is {values[wrong][0]:g}", expected="0, 1 or NaN")
        pairs = places * len(self._state.active) + columns
        _, first, counts = np.unique(pairs, return_index=True, return_counts=True)
        if (counts > 1).any():
            at = first[counts > 1][0]
            raise InputError(
                f"concept {self._backend.names[columns[at]]!r} of row {numbers[at]} is given twice",
                expected="each label once",
            )
        old = self._state.concepts[places, columns]
        same = (old == values) | (np.isnan(old) & np.isnan(values))
        if same.any():
            at = int(np.flatnonzero(same)[0])
            raise InputError(
                f"concept {self._backend.names[columns[at]]!r} of row {numbers[at]} is {values[at]:g} already",
                expected="labels that change",
            )
        return places, columns, values


def _backend(model: Any, l2: tuple[float, float] | None, damping: float, batch_size: int) -> Backend:
    if isinstance(model, ConceptBottleneckClassifier):
        return LinearBackend.of(model, l2, damping)
    if isinstance(model, tuple | list) and len(model) == 2:
        from aboveboard.unlearning.editable_cbm._torch import TorchBackend

        return TorchBackend.of(model[0], model[1], l2 or (1e-2, 1e-2), damping, batch_size)
    raise InputError(
        f"the model is a {type(model).__name__}",
        expected="a fitted ConceptBottleneckClassifier, or a pair (g, f) of torch modules",
    )


def _checked_steps(n_newton: int) -> None:
    if not isinstance(n_newton, int | np.integer) or isinstance(n_newton, bool) or n_newton < 1:
        raise InputError(f"n_newton is {n_newton!r}", expected="a whole number of at least 1")


def _without(hessians: dict[int, Floats], blocks: Sequence[int]) -> dict[int, Floats]:
    return {block: hessian for block, hessian in hessians.items() if block not in blocks}


def _relative(step: Floats, was: Floats) -> float:
    size = float(np.linalg.norm(was))
    return float(np.linalg.norm(step)) / size if size > 0 else 0.0


def _warning(changes: Sequence[PartChange]) -> str:
    long = [
        f"{part} {100 * change.relative_step:.0f} %"
        for part, change in zip(("concept predictor", "label layer"), changes, strict=True)
        if change.relative_step > TOO_LARGE
    ]
    if not long:
        return ""
    return (
        f"The step is long beside the parameters ({', '.join(long)}), so the edit may be far from a retrained model. "
        "Look at the residual gradient and compare_with_retrain(), or retrain."
    )


def _absorbed(state: _State, gone: Indices, l2: float) -> Floats:
    """Return the label weights with those of dropped concepts given to what predicts them: the others, and the bias."""
    kept = np.append(np.delete(np.arange(len(state.active)), gone), len(state.active))
    inputs = state.inputs
    others = inputs[:, kept]
    shares = solve_exactly(others.T @ others + l2 * np.eye(len(kept)), others.T @ state.outputs[:, gone])
    top = state.top.copy()
    top[:, kept] += top[:, gone] @ shares.T
    top[:, gone] = 0.0
    return top


def _gap(edited: Floats, retrained: Floats, unedited: Floats) -> float | None:
    """Return the edited distance to the retrained parameters as a share of the unedited one."""
    moved = float(np.linalg.norm(unedited - retrained))
    if moved <= _UNMOVED * float(np.linalg.norm(retrained)):
        return None
    return float(np.linalg.norm(edited - retrained)) / moved


def _told_by_others(labels: Floats, state: _State) -> float | None:
    """Return the area under the ROC curve with which a logistic head on the remaining concepts tells a dropped one."""
    known = np.flatnonzero(~np.isnan(labels))
    known = known[:: max(1, len(known) // _LEAK_ROWS)]
    fit, held = known[::2], known[1::2]
    if len(np.unique(labels[fit])) < 2 or len(np.unique(labels[held])) < 2:
        return None
    design = with_ones(state.outputs[:, state.active])
    rows, target = design[fit], labels[fit, None]
    head, theta = LinearConcepts("log_loss", 1.0), np.zeros((1, design.shape[1]))
    for _ in range(_LEAK_STEPS):
        outputs = head.outputs(theta, rows)
        hessian = head.hessian(theta, rows, outputs, target, 0) + head.l2 * np.eye(theta.size)
        theta = theta - solve_exactly(hessian, head.gradient(theta, rows, outputs, target).ravel())
    return float(roc_auc_score(labels[held], design[held] @ theta[0]))
