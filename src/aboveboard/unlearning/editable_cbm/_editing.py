"""Edits of a trained bottleneck: the concept predictor first, then the label layer on what it now predicts."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import f1_score

from aboveboard.core import InputError
from aboveboard.unlearning.editable_cbm._backends import Backend, LinearBackend
from aboveboard.unlearning.editable_cbm._checking import changed_labels, concept_columns, row_places
from aboveboard.unlearning.editable_cbm._classifier import (
    ConceptBottleneckClassifier,
    checked_concepts,
    checked_l2,
    concept_names,
)
from aboveboard.unlearning.editable_cbm._curvature import EXACT_LIMIT, Floats, Solver
from aboveboard.unlearning.editable_cbm._linear import LinearConcepts, with_ones
from aboveboard.unlearning.editable_cbm._reports import TOO_LARGE, EditReport, PartChange, RetrainComparison
from aboveboard.unlearning.editable_cbm._steps import STATIONARY, State, Steps, absorbed, told_by_others, without

__all__ = ["EditableCBM"]

_LEAKS: Final = 0.7
_UNMOVED: Final = 1e-4

Indices = NDArray[np.intp]


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
    _steps: Steps
    _state: State
    _origin: State
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
        places, columns, values = changed_labels(
            rows, concepts, new_values, state.concepts, state.ids, self._n_rows, self._backend.names, state.active
        )
        edited = state.concepts.copy()
        edited[places, columns] = values
        blocks = self._backend.part.blocks_of(columns)
        moved = np.isnan(values) | np.isnan(state.concepts[places, columns])
        stale = self._backend.part.blocks_of(columns[moved]) if self._steps.hessian == "retained" else []
        ready = self._steps.curvature(state, [block for block in blocks if block not in stale])
        after = replace(state, concepts=edited, hessians=without(ready.hessians, stale))
        after = self._steps.move_concepts(after, blocks, self._steps.curvature_source(ready, after))
        after = self._steps.label_step(after, before=state)
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
        gone[row_places(rows, state.ids, self._n_rows)] = True
        if gone.all():
            raise InputError("all rows would be forgotten", expected="at least one row that stays")
        after = self._steps.changed_rows(state, keep=~gone)
        notes = [
            f"class {self._backend.classes.tolist()[label]!r} has no rows left; the ridge alone speaks for it"
            for label in np.setdiff1d(state.labels, after.labels)
        ]
        after = self._steps.refit_rows(state, after)
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
        ids = np.arange(self._n_rows, self._n_rows + len(labels))
        after = self._steps.changed_rows(state, added=(design, concepts, labels, ids))
        after = self._steps.refit_rows(state, after)
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
        gone = concept_columns(concepts, self._backend.names, state.active)
        active = state.active.copy()
        active[gone] = False
        if not active.any():
            raise InputError("all concepts would be dropped", expected="at least one concept that stays")
        edited = state.concepts.copy()
        edited[:, gone] = np.nan
        after = replace(state, concepts=edited, active=active)
        after = self._steps.drop_heads(after, gone)
        top = absorbed(state, gone, self._backend.top.l2)
        after = self._steps.label_newton(replace(after, top=top), n_newton)
        leaks = {self.concept_names[j]: told_by_others(state.concepts[:, j], after) for j in gone}
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
            Labels 0, 1 or NaN, in the order of `row_ids`. A torch ``g`` must be a ``Linear`` layer, or a
            ``Sequential`` that ends in one.
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
        after = State(
            design, np.column_stack([state.concepts, new]), state.labels, state.ids, outputs, active, theta, weights,
            state.hessians if backend.keeps_blocks else {},
        )  # fmt: skip
        after = self._steps.label_newton(after, n_newton)
        unused = np.append(self._origin.active, np.zeros(q, dtype=bool))
        self._origin = replace(self._origin, top=np.insert(self._origin.top, [k] * q, 0.0, axis=1), active=unused)
        self._backend, self._steps = backend, replace(self._steps, backend=backend)
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
        retrained, converged = self._steps.refit(
            state, self._start_theta(), self._origin.top, backend.tol, backend.max_iter
        )
        seconds = time.perf_counter() - start
        unedited = replace(self._origin, theta=self._start_theta())
        if X is None or y is None:
            truth = state.labels
            scores = [
                self._backend.top.outputs(s.top, with_ones(self._steps.masked(s, s.theta, state.design)))
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
            residual_gradient_norm=max(self._steps.residuals(state)),
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
        hessian: Literal["retained", "all"],
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
        self._backend = _backend(model, ridges, damping, batch_size)
        theta, top, active = self._backend.read()
        self._steps = Steps(
            self._backend,
            _solver_for(solver, theta.shape[1], self._backend.part.exact_up_to),
            _solver_for(solver, top.size, EXACT_LIMIT),
            hessian,
            polish_above,
        )

        design = self._backend.prepare(X)
        concepts = checked_concepts(C, len(design))
        if concepts.shape[1] != len(active):
            raise InputError(f"C has {concepts.shape[1]} concepts", expected=f"{len(active)}, as the model has")
        concepts[:, ~active] = np.nan
        labels = self._backend.codes(y, len(design))
        outputs = self._backend.part.outputs(theta, design)
        outputs[:, ~active] = 0.0
        self._n_rows = len(labels)
        self._state = State(design, concepts, labels, np.arange(len(labels)), outputs, active, theta, top)
        if polish:
            self._state, _ = self._steps.refit(self._state, theta, top, self._backend.tol, self._backend.max_iter)
            self._backend.write(self._state.theta, self._state.top, active)
        self._refuse_unstationary(self._state)
        if self._steps.solver == "exact":
            every = self._backend.part.blocks_of(np.flatnonzero(active))
            self._state = self._steps.curvature(self._state, every)
        # kept to compare with: parameters alone, so that nothing of forgotten rows stays
        none = np.empty(0, dtype=np.intp)
        start = self._state
        self._origin = State(None, np.empty((0, 0)), none, none, np.empty((0, 0)), active, start.theta, start.top)
        self.reports = []
        self.prepare_seconds = time.perf_counter() - begin

    def _refuse_unstationary(self, state: State) -> None:
        for part, norm in zip(("concept predictor", "label layer"), self._steps.residuals(state), strict=True):
            if not norm <= STATIONARY:
                raise InputError(
                    f"the {part} is not at the optimum of its loss: its mean gradient has norm {norm:.3g}",
                    expected=f"at most {STATIONARY:g}, since an influence step means nothing elsewhere",
                    remedy="Check that l2 is the ridge it was trained with (on the scale of summed losses), or let "
                    "EditableCBM.polished(...) bring it there",
                )

    # --- reports -----------------------------------------------------------------------------------------------------

    def _commit(
        self,
        kind: Any,
        n_edits: int,
        after: State,
        start: float,
        notes: Sequence[str] = (),
        *,
        before: State | None = None,
        reference: Floats | None = None,
        leaks: dict[str, float | None] | None = None,
    ) -> EditReport:
        """Polish where it is needed, make the edit the model's own, and report."""
        old = self._state if before is None else before
        residuals, notes = self._steps.residuals(after), list(notes)
        enough = self._steps.polish_above
        if enough is not None and max(residuals) > enough:
            theta = after.theta
            after = self._steps.polish(after, enough)
            residuals = self._steps.residuals(after)
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

    def _outputs(self, state: State, X: Any) -> Floats:
        return self._steps.masked(state, state.theta, self._backend.prepare(X))

    def _scores(self, state: State, X: Any) -> Floats:
        return self._backend.top.outputs(state.top, with_ones(self._outputs(state, X)))

    def _living(self, theta: Floats, state: State) -> Floats:
        """Return the parameters without the heads of dropped concepts, where heads are apart."""
        return theta[state.active] if isinstance(self._backend.part, LinearConcepts) else theta

    def _start_theta(self) -> Floats:
        """Return the unedited concept parameters, in the shape that they have now; heads added since as they are."""
        return self._backend.extended_start(self._origin.theta, self._state.theta)


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


def _solver_for(solver: str, n_parameters: int, exact_up_to: int) -> Solver:
    if solver == "auto":
        return "exact" if n_parameters <= exact_up_to else "cg"
    if solver == "exact" and n_parameters > EXACT_LIMIT:
        raise InputError(
            f"solver='exact' for a block of {n_parameters:,} parameters",
            expected=f"at most {EXACT_LIMIT:,}",
            remedy="Choose solver='cg' or 'ekfac', or freeze the trunk",
        )
    return solver  # type: ignore[return-value]


def _checked_steps(n_newton: int) -> None:
    if not isinstance(n_newton, int | np.integer) or isinstance(n_newton, bool) or n_newton < 1:
        raise InputError(f"n_newton is {n_newton!r}", expected="a whole number of at least 1")


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


def _gap(edited: Floats, retrained: Floats, unedited: Floats) -> float | None:
    """Return the edited distance to the retrained parameters as a share of the unedited one."""
    moved = float(np.linalg.norm(unedited - retrained))
    if moved <= _UNMOVED * float(np.linalg.norm(retrained)):
        return None
    return float(np.linalg.norm(edited - retrained)) / moved
