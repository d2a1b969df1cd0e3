"""The steps of which edits are made: data and parameters go in, and others come out; nothing is changed in place."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from aboveboard.unlearning.editable_cbm._backends import Backend
from aboveboard.unlearning.editable_cbm._curvature import Floats, Solver, conjugate_gradient, solve_exactly
from aboveboard.unlearning.editable_cbm._linear import LinearConcepts, with_ones

__all__ = ["STATIONARY", "State", "Steps", "absorbed", "told_by_others", "without"]

STATIONARY: Final = 1e-3
"""Largest norm of the mean gradient at which a model counts as being at its optimum."""
_POLISH_SECANT: Final = 6
_POLISH_NEWTON, _POLISH_LABEL_NEWTON = 3, 8
_POLISH_STEPS: Final = 200
_HALVINGS: Final = 30
_LEAK_ROWS, _LEAK_STEPS = 5_000, 6

Indices = NDArray[np.intp]


@dataclass(frozen=True)
class State:
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
        """What the label layer sees: the outputs with a one appended."""
        return with_ones(self.outputs)


@dataclass(frozen=True)
class Steps:
    """How steps are taken: by which solver for each part, with which Hessian, and how far they are polished."""

    backend: Backend
    solver: Solver
    top_solver: Solver
    hessian: Literal["retained", "all"]
    polish_above: float | None

    def move_concepts(self, state: State, blocks: list[int], curvature: State) -> State:
        """Take a Newton step of some blocks, and more where they leave too large a gradient (see `polish_above`).

        Further steps use the same Hessian first, each block's mixed with the step before it (Anderson's method of depth
        one), since they cost a pass over the rows and no new Hessian; where that stalls, Newton steps follow.
        """
        moved = self.concept_step(state, blocks, curvature)
        if self.polish_above is None or not self.newton_polishes:
            return moved
        left = self._by_block(moved)
        last_theta, last_step = state.theta, moved.theta - state.theta
        for _ in range(_POLISH_SECANT):
            rough = self._rough(left)
            if not rough:
                return moved
            step = np.zeros_like(moved.theta)
            step[rough] = -self._direction(moved, rough, curvature)[rough]
            change = step - last_step
            squared = np.square(change).sum(axis=1)
            share = (step * change).sum(axis=1) / np.where(squared > 0, squared, 1.0)
            theta = moved.theta.copy()
            theta[rough] += (step - share[:, None] * (moved.theta - last_theta + change))[rough]
            closer = replace(self._at(moved, theta, rough), more_steps=moved.more_steps + 1)
            found = self._by_block(closer)
            if not np.linalg.norm(found) < 0.5 * np.linalg.norm(left):
                break
            last_theta, last_step, moved, left = moved.theta, step, closer, found
        for _ in range(_POLISH_NEWTON):
            rough = self._rough(left)
            closer = (
                replace(self.concept_step(moved, rough, moved), more_steps=moved.more_steps + 1) if rough else moved
            )
            found = self._by_block(closer)
            if not np.linalg.norm(found) < np.linalg.norm(left):
                break
            moved, left = closer, found
        return moved

    def _by_block(self, state: State) -> Floats:
        """Return the norm of each block's mean gradient."""
        gradient = self.backend.part.gradient(state.theta, state.design, state.outputs, state.concepts)
        norms: Floats = np.linalg.norm(gradient, axis=1) / len(state.labels)
        return norms

    def _rough(self, left: Floats) -> list[int]:
        """Return the blocks to move further; none where the whole gradient is small enough."""
        enough = self.polish_above or 0.0
        if np.linalg.norm(left) <= enough:
            return []
        return np.flatnonzero(left > enough / (2 * np.sqrt(len(left)))).tolist()

    @property
    def newton_polishes(self) -> bool:
        """Whether further steps are Newton's: the loss is convex and the Hessian not approximated."""
        return isinstance(self.backend.part, LinearConcepts) and self.solver != "ekfac"

    def concept_step(self, state: State, blocks: list[int], curvature: State) -> State:
        """Take a Newton step of some blocks on the state's loss, with the Hessian of `curvature`'s rows and labels."""
        return self._at(state, state.theta - self._direction(state, blocks, curvature), blocks)

    def _at(self, state: State, theta: Floats, blocks: list[int]) -> State:
        """Return the state with other parameters in some blocks."""
        outputs = self.backend.part.updated(theta, state.design, state.outputs, blocks)
        outputs[:, ~state.active] = 0.0
        return replace(state, theta=theta, outputs=outputs, hessians=without(state.hessians, blocks))

    def _direction(self, state: State, blocks: list[int], curvature: State) -> Floats:
        """Return the inverse Hessian's product with the gradient, 0 in the other blocks."""
        part = self.backend.part
        gradient = part.gradient(state.theta, state.design, state.outputs, state.concepts)
        others = np.setdiff1d(np.arange(len(gradient)), blocks)
        gradient[others] = 0.0
        at = (curvature.theta, curvature.design, curvature.outputs, curvature.concepts)
        if self.solver == "cg":
            return conjugate_gradient(part.operator(*at), gradient.ravel()).reshape(gradient.shape)
        if self.solver == "ekfac":
            step: Floats = part.kronecker_step(*at, gradient)
            step[others] = 0.0
            return step
        step = np.zeros_like(gradient)
        hessians = self.curvature(curvature, blocks).hessians
        for block in blocks:
            step[block] = solve_exactly(hessians[block] + part.l2 * np.eye(gradient.shape[1]), gradient[block])
        return step

    def label_step(self, state: State, before: State) -> State:
        """Take a Newton step of the label layer; ``hessian="all"`` takes the Hessian at the inputs before the edit."""
        source = state if self.hessian == "retained" else replace(before, top=state.top)
        layer, inputs = self.backend.top, state.inputs
        gradient = layer.gradient(state.top, inputs, state.labels, layer.outputs(state.top, inputs))
        where = inputs if source is state else source.inputs
        step = layer.step(state.top, where, layer.outputs(state.top, where), gradient, self.top_solver)
        return replace(state, top=state.top - step)

    def label_newton(self, state: State, n_newton: int) -> State:
        """Take Newton steps of the label layer, each halved until the loss falls."""
        kept = np.append(state.active, True)  # weights of dropped concepts are 0 and stay so
        layer, inputs, labels = self.backend.top, state.inputs[:, kept], state.labels
        top = state.top[:, kept]
        value = layer.value(top, inputs, labels)
        for _ in range(n_newton):
            outputs = layer.outputs(top, inputs)
            step = layer.step(top, inputs, outputs, layer.gradient(top, inputs, labels, outputs), self.top_solver)
            for _ in range(_HALVINGS):
                candidate = layer.value(top - step, inputs, labels)
                if candidate <= value:
                    top, value = top - step, candidate
                    break
                step = step / 2
        weights = np.zeros_like(state.top)
        weights[:, kept] = top
        return replace(state, top=weights)

    def refit_rows(self, before: State, after: State) -> State:
        """Let both parts follow a change of rows.

        With the Hessian before the edit the label layer takes two steps, as the paper has it: other rows first, then
        other concepts. With the edited Hessian one step to both is as accurate.
        """
        blocks = self.backend.part.blocks_of(np.flatnonzero(after.active))
        if self.hessian == "retained":
            return self.label_step(self.move_concepts(after, blocks, after), before=after)
        rows = self.label_step(after, before)
        return self.label_step(self.move_concepts(rows, blocks, before), before=rows)

    def drop_heads(self, state: State, gone: Indices) -> State:
        """Take the heads of dropped concepts away; where concepts share parameters, let the others settle.

        Leaving a concept's loss out is no small change of a shared predictor, whose Hessian need not stay positive
        definite: L-BFGS steps take the place of the paper's single one.
        """
        part = self.backend.part
        if isinstance(part, LinearConcepts):
            theta, outputs = state.theta.copy(), state.outputs.copy()
            theta[gone], outputs[:, gone] = 0.0, 0.0
            return replace(state, theta=theta, outputs=outputs, hessians=without(state.hessians, gone.tolist()))
        tol = (self.polish_above or STATIONARY) / np.sqrt(state.theta.size)
        theta = part.fit(state.design, state.concepts, state.theta, tol, _POLISH_STEPS).theta
        return replace(state, theta=theta, outputs=self.masked(state, theta, state.design), hessians={})

    def curvature_source(self, before: State, after: State) -> State:
        """Return the state whose Hessian a step takes."""
        return after if self.hessian == "retained" else before

    def curvature(self, state: State, blocks: list[int]) -> State:
        """Return the state with the Hessians of these blocks, computed where they are missing."""
        if self.solver != "exact":
            return state
        at = (state.theta, state.design, state.outputs, state.concepts)
        found = dict(state.hessians)
        for block in blocks:
            if block not in found:
                found[block] = self.backend.part.hessian(*at, block)
        return replace(state, hessians=found)

    def changed_rows(
        self,
        state: State,
        keep: NDArray[np.bool_] | None = None,
        added: tuple[Any, Floats, Indices, Indices] | None = None,
    ) -> State:
        """Return the state with fewer or more rows, its Hessians brought up to date at the same parameters."""
        backend = self.backend
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
            design, concepts, labels, ids = added
            outputs = self.masked(state, state.theta, design)
            after = replace(
                state,
                design=backend.append(state.design, design),
                concepts=np.concatenate([state.concepts, concepts]),
                labels=np.concatenate([state.labels, labels]),
                ids=np.concatenate([state.ids, ids]),
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

    def refit(self, state: State, theta: Floats, top: Floats, tol: float, max_iter: int) -> tuple[State, bool]:
        """Fit both parts from the parameters given, and say whether both reached the tolerance."""
        fitted = self.backend.part.fit(state.design, state.concepts, theta, tol, max_iter)
        outputs = self.masked(state, fitted.theta, state.design)
        start = top.copy()
        start[:, :-1][:, ~state.active] = 0.0
        layer = self.backend.top.fit(with_ones(outputs), state.labels, start, tol, max_iter)
        after = replace(state, theta=fitted.theta, top=layer.theta, outputs=outputs, hessians={})
        return after, fitted.converged and layer.converged

    def polish(self, state: State, enough: float) -> State:
        """Take Newton steps of the label layer while they help, then L-BFGS steps of both parts if need be."""
        first, second = self.residuals(state)
        if first <= enough and self.newton_polishes:
            for _ in range(_POLISH_LABEL_NEWTON):
                closer = self.label_newton(state, 1)
                left = self.label_residual(closer)
                if not left < second:
                    break
                state, second = replace(closer, more_steps=state.more_steps + 1), left
                if second <= enough:
                    return state
        tol = enough / np.sqrt(max(state.theta.size, state.top.size))
        return self.refit(state, state.theta, state.top, float(tol), _POLISH_STEPS)[0]

    def residuals(self, state: State) -> tuple[float, float]:
        """Return the norms of the mean gradients of both parts."""
        first = self.backend.part.gradient(state.theta, state.design, state.outputs, state.concepts)
        return float(np.linalg.norm(first)) / len(state.labels), self.label_residual(state)

    def label_residual(self, state: State) -> float:
        """Return the norm of the label layer's mean gradient."""
        layer, inputs = self.backend.top, state.inputs
        gradient = layer.gradient(state.top, inputs, state.labels, layer.outputs(state.top, inputs))
        return float(np.linalg.norm(gradient)) / len(state.labels)

    def masked(self, state: State, theta: Floats, design: Any) -> Floats:
        """Return outputs with 0 for the concepts that the state has dropped."""
        outputs: Floats = self.backend.part.outputs(theta, design)
        outputs[:, ~state.active] = 0.0
        return outputs


def without(hessians: dict[int, Floats], blocks: Sequence[int]) -> dict[int, Floats]:
    """Return the Hessians of the other blocks."""
    return {block: hessian for block, hessian in hessians.items() if block not in blocks}


def absorbed(state: State, gone: Indices, l2: float) -> Floats:
    """Return the label weights with those of dropped concepts given to what predicts them: the others, and the bias."""
    kept = np.append(np.delete(np.arange(len(state.active)), gone), len(state.active))
    inputs = state.inputs
    others = inputs[:, kept]
    shares = solve_exactly(others.T @ others + l2 * np.eye(len(kept)), others.T @ state.outputs[:, gone])
    top = state.top.copy()
    top[:, kept] += top[:, gone] @ shares.T
    top[:, gone] = 0.0
    return top


def told_by_others(labels: Floats, state: State) -> float | None:
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
