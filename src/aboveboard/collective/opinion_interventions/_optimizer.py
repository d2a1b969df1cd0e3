"""Weights that lower an objective of the opinions, and what the change does to whom."""

from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

import aboveboard
from aboveboard.collective.opinion_interventions._constraints import (
    Constraint,
    FrobeniusBall,
    Projection,
    least_linear,
)
from aboveboard.collective.opinion_interventions._equilibrium import FriedkinJohnsen
from aboveboard.collective.opinion_interventions._network import mutable_edges
from aboveboard.collective.opinion_interventions._objectives import Evaluation, Objective, read_objective
from aboveboard.collective.opinion_interventions._search import METHODS, Point, Trace
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.reference import Reference

__all__ = ["InterventionReport", "OpinionInterventionOptimizer"]

Floats = NDArray[np.float64]

_FINEST: Final = 1e-10
_FIRST: Final = 1e-4
_ALTERNATIONS: Final = 50
_PACE: Final = 1e-3
_TINY: Final = float(np.finfo(np.float64).tiny)
_REFERENCE: Final = Reference(
    title="Optimizing Social Network Interventions via Hypergradient-Based Recommender System Design",
    authors="M. Kühne, P. D. Grontas, G. De Pasquale, G. Belgioioso, F. Dörfler, J. Lygeros",
    venue="ICML",
    year=2025,
    url="https://arxiv.org/abs/2502.12973",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionReport:
    """What a change of weights does to opinions, and who pays for it.

    Attributes
    ----------
    objective, polarization, disagreement : (float, float)
        Before and after. Polarization is the mean square of the opinions; disagreement is half the sum over all edges
        of w_ij (y_i - y_j)^2.
    mean_opinion : (float, float)
        Before and after.
    mean_shift : float
        By how much the mean opinion moves: an intervention can lower polarization by persuading everybody.
    largest_shift : float
        The most that what any one account says moves, without sign.
    largest_shift_account : int
    mean_shift_below, mean_shift_above : float
        Of the accounts whose own opinion is below, and above, the mean own opinion; NaN where there is none.
    weight_moved : float
        The sum of all changes of weights, without sign.
    influence_moved : float
        The share of the say in the mean opinion that changes hands, from 0 to 1.
    losing : int
        Accounts that lose influence.
    largest_loss, largest_loss_account : float, int
        The most influence that one account loses.
    decision_maker : str
        Who decides on the weights and answers for it.
    """

    objective: tuple[float, float]
    polarization: tuple[float, float]
    disagreement: tuple[float, float]
    mean_opinion: tuple[float, float]
    mean_shift: float
    largest_shift: float
    largest_shift_account: int
    mean_shift_below: float
    mean_shift_above: float
    weight_moved: float
    influence_moved: float
    losing: int
    largest_loss: float
    largest_loss_account: int
    decision_maker: str

    def __str__(self) -> str:
        return "\n".join(
            (
                f"Objective {self.objective[0]:.4g} -> {self.objective[1]:.4g}, polarization "
                f"{self.polarization[0]:.4g} -> {self.polarization[1]:.4g}, disagreement "
                f"{self.disagreement[0]:.4g} -> {self.disagreement[1]:.4g}.",
                f"The mean opinion moves by {self.mean_shift:+.4g}; the largest shift of one account is "
                f"{self.largest_shift:.4g}.",
                f"Who pays: those below the mean move by {self.mean_shift_below:+.4g}, those above it by "
                f"{self.mean_shift_above:+.4g}; {self.losing:,} accounts lose influence, and "
                f"{100 * self.influence_moved:.2f} % of all influence changes hands.",
                f"This is an analysis of a model of opinions. {self.decision_maker} decides whether to use it, and "
                "answers for it.",
            )
        )


class OpinionInterventionOptimizer(BaseEstimator):  # type: ignore[misc]
    """Finds weights of a network that lower the polarization or the disagreement of its opinions.

    Of the weights with which people listen to each other some may be changed, within a convex set; everybody's own
    opinion stays as it is. The optimizer goes downhill along the gradient of the objective in the weights, through the
    equilibrium of the opinions, which costs two sparse linear systems however many weights there are.

    Parameters
    ----------
    objective : {"polarization", "disagreement"}, objective, or callable
        What to lower: `Polarization`, `Disagreement`, `MeanOpinion`, `ShareOutside`, a `WeightedSum` of them, or a
        function of two float64 PyTorch tensors, the mutable weights (m,) and the opinions (n,), that returns a tensor
        of one element (extra ``torch``). Of pairs it gets the weights of both directions, (2m,).
    constraint : constraint, default FrobeniusBall(0.2)
        `Box`, `BudgetSimplex`, `RowSimplex`, `FrobeniusBall`, `ConvexSet` or an `Intersection`.
    mutable : "all" or (rows, cols)
        Which weights may change; account ``rows[k]`` listens to ``cols[k]``. They must be stored in the network, if
        only as zeros: `insert_edges`, `add_influencer`.
    symmetric : bool
        Whether w_ij and w_ji are one variable.
    method : {"nesterov", "momentum", "adagrad"}
    max_iter : int
    tol : float
        Ends when the objective changed by less, relatively, in two iterations in a row.
    step : float
        The most that the first step changes any weight before it is projected.
    n_starts : int
        The search starts at the weights as they are; where the objective holds weights, also at those that were best if
        opinions stood still, once and where repeating that leads (see `administrator_dynamics`); and at
        ``n_starts - 1`` random points of the set. The best end is kept.
    random_state : int, optional
        For the random starts.

    Attributes
    ----------
    weights_ : csr_array of shape (n, n)
        The network after the intervention.
    opinions_, initial_opinions_ : ndarray of shape (n,)
        What everybody says after it, and before.
    objective_, initial_objective_ : float
    history_ : ndarray of shape (n_iter_ + 1,)
        The objective at each iteration of the search that was kept. But for adagrad it never rises by more than what
        the inexact solutions were off.
    gradient_ : ndarray of shape (m,)
        Of the objective in the variables, at the end.
    stationarity_ : float
        ``|w - P(w - a g)| / a`` for the projection P and a small step a: 0 at a stationary point.
    residual_ : float
        ``max |A y - s|`` at the end: no opinion is further off.
    violation_ : float
        How far the weights are from their projection.
    converged_ : bool
    n_iter_, n_solves_, n_products_ : int
        Iterations, linear systems, and products with the network's matrix.
    rows_, cols_ : ndarray of shape (m,)
        The edges that were variables, in order.
    certificate_ : Certificate

    Raises
    ------
    aboveboard.core.InputError
        For networks, opinions, edges and parameters that do not fit.

    Notes
    -----
    Guarantee: none that is global, since the problem is not convex. The certificate states to first order how little
    any further change within the set could gain, and bounds the error of every opinion.

    With A y = s, v from A^T v = (gradient in y), the derivative in w_ij is (partial in w_ij) - v_i (y_i - y_j). Both
    systems start from their last solution and are only as exact as the progress needs. An iteration takes O(edges) per
    product, 10 to 30 products, and a projection, O(m) but for pairs with `RowSimplex` (a sparse factorisation). Memory:
    the matrix, about 12 bytes an edge; and about 15 vectors of n and of m.

    Lower polarization can be bought by persuading everybody: see `report`, which says who pays. This is a tool for
    analysis. Whoever decides on the weights answers for them.

    References
    ----------
    M. Kühne, P. D. Grontas, G. De Pasquale, G. Belgioioso, F. Dörfler, J. Lygeros, "Optimizing Social Network
    Interventions via Hypergradient-Based Recommender System Design", ICML 2025, arXiv:2502.12973.

    Examples
    --------
    A karate club that is about to split, and a fifth of its ties may be re-weighted without anybody's total changing:

    >>> import numpy as np
    >>> from aboveboard.collective import (
    ...     FrobeniusBall, Intersection, OpinionInterventionOptimizer, RowSimplex, network_from_edges,
    ... )
    >>> from aboveboard.data import load_karate
    >>> ties = load_karate().X
    >>> W = network_from_edges(ties["source"], ties["target"], direction="mutual")
    >>> s = np.zeros(34)
    >>> for end in ("source", "target"):
    ...     s[ties[end]] = np.where(ties[f"{end}_faction"] == "Mr. Hi", 1, -1)
    >>> optimizer = OpinionInterventionOptimizer(
    ...     objective="disagreement", constraint=Intersection(FrobeniusBall(0.2), RowSimplex()), symmetric=True
    ... ).fit(W, s)
    >>> round(optimizer.initial_objective_, 2), round(optimizer.objective_, 2)
    (7.24, 6.4)
    """

    def __init__(
        self,
        objective: Any = "polarization",
        *,
        constraint: Constraint | None = None,
        mutable: Any = "all",
        symmetric: bool = False,
        method: Literal["nesterov", "momentum", "adagrad"] = "nesterov",
        max_iter: int = 100,
        tol: float = 1e-5,
        step: float = 0.5,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> None:
        self.objective = objective
        self.constraint = constraint
        self.mutable = mutable
        self.symmetric = symmetric
        self.method = method
        self.max_iter = max_iter
        self.tol = tol
        self.step = step
        self.n_starts = n_starts
        self.random_state = random_state

    def fit(self, W: Any, s: ArrayLike) -> Self:
        """Find the weights.

        Parameters
        ----------
        W : sparse matrix, array or data frame of shape (n, n)
            See `FriedkinJohnsen`.
        s : array-like of shape (n,)
            Own opinions.
        """
        self._refuse_options()
        problem = _Problem(FriedkinJohnsen(W, s), self.mutable, self.symmetric, read_objective(self.objective))
        edges, constraint = problem.edges, FrobeniusBall() if self.constraint is None else self.constraint
        if not hasattr(constraint, "projection"):
            raise InputError(f"constraint is {constraint!r}", expected="a constraint, such as FrobeniusBall(0.2)")
        project = constraint.projection(edges)
        before = problem.at(edges.start, tol=_FINEST)
        self.initial_opinions_ = problem.y
        traces = []
        for start in self._starts(problem, project):
            traces.append(Trace(problem.at(start), self.max_iter, self.tol))
            METHODS[self.method](problem.try_at, problem.refined, project, traces[-1], self.step)
        trace = min(traces, key=lambda trace: trace.best.value)
        last = problem.at(trace.best.x, tol=_FINEST)
        self._keep(problem, project, before, last, trace)
        return self

    def report(self, *, decision_maker: str = "Whoever sets the weights of this network") -> InterventionReport:
        """Return what the intervention does to opinions, and who pays for it.

        Parameters
        ----------
        decision_maker : str
            Who decides on the weights, as the subject of a sentence; printing the report says that they answer for it.
        """
        check_is_fitted(self, "weights_")
        before = self.weights_.copy()
        self._edges.write(before, self._edges.start)
        was, now = FriedkinJohnsen(before, self._own), FriedkinJohnsen(self.weights_, self._own)
        y, z = self.initial_opinions_, self.opinions_
        shift = z - y
        say = was.influence(_FINEST)
        lost = say - now.influence(_FINEST)
        below, above = (shift[side] for side in (self._own < self._own.mean(), self._own > self._own.mean()))
        return InterventionReport(
            objective=(self.initial_objective_, self.objective_),
            polarization=(was.polarization(y), now.polarization(z)),
            disagreement=(was.disagreement(y), now.disagreement(z)),
            mean_opinion=(float(y.mean()), float(z.mean())),
            mean_shift=float(shift.mean()),
            largest_shift=float(np.abs(shift).max()),
            largest_shift_account=int(np.abs(shift).argmax()),
            mean_shift_below=float(below.mean()) if len(below) else float("nan"),
            mean_shift_above=float(above.mean()) if len(above) else float("nan"),
            weight_moved=float(np.abs(self.weights_.data - before.data).sum()),
            influence_moved=float(np.maximum(lost, 0.0).sum()),
            losing=int((lost > 1e-6 * say + 2.0 * _FINEST).sum()),
            largest_loss=float(max(lost.max(), 0.0)),
            largest_loss_account=int(lost.argmax()),
            decision_maker=str(decision_maker),
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _starts(self, problem: "_Problem", project: Projection) -> list[Floats]:
        """Return the weights before, those that were best if opinions stood still, and random ones of the set."""
        centre = problem.edges.start
        starts = [project(centre)]
        resting = []
        for _ in range(_ALTERNATIONS):
            slope = problem.slope_at_rest()
            if not slope.any():
                break
            resting.append(least_linear(project, centre, slope))
            if len(resting) > 1 and np.abs(resting[-1] - resting[-2]).max() <= _FINEST:
                break
            problem.settle(resting[-1])
        starts += [*resting[:1], *resting[1:][-1:]]
        rng = np.random.default_rng(self.random_state)
        reach = 1.0 + float(np.abs(centre).max())
        return starts + [project(centre + reach * rng.normal(size=len(centre))) for _ in range(self.n_starts - 1)]

    def _refuse_options(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method is {self.method!r}", expected=", ".join(METHODS))
        for name in ("max_iter", "n_starts"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"{name} is {value!r}", expected="a whole number from 1 on")
        for name, least in (("tol", "0 or more"), ("step", "above 0")):
            value = getattr(self, name)
            given = isinstance(value, int | float | np.number) and not isinstance(value, bool) and np.isfinite(value)
            if not given or value < 0 or (name == "step" and value == 0):
                raise InputError(f"{name} is {value!r}", expected=f"a number, {least}")

    def _keep(self, problem: "_Problem", project: Projection, before: Point, last: Point, trace: Trace) -> None:
        model, edges = problem.model, problem.edges
        self.weights_, self.opinions_ = model.W, problem.y
        self.initial_objective_, self.objective_ = before.value, last.value
        self.history_ = np.asarray(trace.values)
        self.converged_, self.n_iter_ = trace.converged, len(trace.values) - 1
        self.rows_, self.cols_ = edges.rows, edges.cols
        self._edges, self._own = edges, model.s
        self.gradient_ = last.gradient
        self.residual_ = model.residual(problem.y)
        self.violation_ = float(np.linalg.norm(last.x - project(last.x)))
        pace = _PACE * max(float(np.abs(last.x).max()), _PACE) / max(float(np.abs(last.gradient).max()), _TINY)
        moved = last.x - project(last.x - pace * last.gradient)
        self.stationarity_ = float(np.linalg.norm(moved)) / pace
        difference = problem.slope_error(last)
        self.n_solves_, self.n_products_ = problem.n_solves, model.n_products
        self.certificate_ = self._certify(model, last, pace, difference)

    def _certify(self, model: FriedkinJohnsen, last: Point, pace: float, difference: float) -> Certificate:
        size, slope = float(np.linalg.norm(last.x)), float(np.linalg.norm(last.gradient))
        spread = max(float(np.abs(model.s).max()), _TINY)
        return Certificate(
            kind="stationary intervention",
            guarantee=(
                "With the weights w that were found, the gradient g of the objective there, and any weights u in the "
                f"set, g (u - w) is at least -{self.stationarity_:.4g} (|u - w| + {pace * slope:.4g}); and no opinion "
                f"is further than {self.residual_:.2g} from the equilibrium of the model."
            ),
            parameters={
                "stationarity": self.stationarity_,
                "gradient": slope,
                "step": pace,
                "residual": self.residual_,
                "violation": self.violation_,
                "objective": last.value,
            },
            assumptions=(
                Assumption("People keep their own opinions and average as Friedkin and Johnsen's model says."),
                Assumption("The weights can be set, and people then listen as the weights say."),
                Assumption(
                    "The opinions are those of the equilibrium.",
                    "checked", "largest entry of A y - s", self.residual_, 1e-6 * spread,
                    self.residual_ <= 1e-6 * spread,
                ),
                Assumption(
                    "The weights lie in the set.",
                    "checked", "distance to their projection", self.violation_, 1e-6 * size,
                    self.violation_ <= 1e-6 * size,
                ),
                Assumption(
                    "The gradient is that of the objective.",
                    "checked", "relative difference from finite differences along a random direction",
                    difference, 1e-3, difference <= 1e-3,
                ),
            ),
            does_not_cover=(
                "that no better weights exist: the problem is not convex",
                "whether anybody should use this: that is for the decision-maker to answer for",
                "what else people see, and that opinions change for other reasons",
            ),
            library_version=aboveboard.__version__,
            reference=_REFERENCE,
        )  # fmt: skip


class _Problem:
    """The objective and its gradient as functions of the mutable weights; the network is changed in place."""

    def __init__(self, model: FriedkinJohnsen, mutable: Any, symmetric: bool, objective: Objective) -> None:
        self.model = model
        self.edges = mutable_edges(model.W, mutable, symmetric=symmetric)
        self.y, self._v = model.s, np.zeros(model.n)
        self.n_solves = 0
        self._objective = objective
        self._spread = max(float(np.abs(model.s).max()), _TINY)
        self._progress, self._value = 1e-3, np.inf

    def at(self, x: Floats, tol: float | None = None) -> Point:
        """Return the objective and its gradient at weights x."""
        relative = self._tolerance() if tol is None else tol
        return self._gradient(x, self._evaluate(x, relative), relative)

    def try_at(self, x: Floats, bar: float) -> Point | None:
        """Return the objective and its gradient at weights x; None where it is above `bar`."""
        relative = self._tolerance()
        found = self._evaluate(x, relative)
        if not found.value <= bar:
            return None
        self._progress = abs(self._value - found.value) / max(abs(self._value), _TINY)
        return self._gradient(x, found, relative)

    def refined(self, point: Point) -> Point:
        """Return the point evaluated ten times as exactly, unless it cannot be."""
        if self._tolerance() <= _FINEST:
            return point
        self._progress *= 0.1
        return self.at(point.x)

    def settle(self, x: Floats, relative: float = 1e-8) -> None:
        """Let opinions settle at weights x."""
        self._write(x)
        self.y = self.model.equilibrium(relative * self._spread, start=self.y)
        self.n_solves += 1

    def slope_at_rest(self) -> Floats:
        """Return the gradient at the last weights if opinions did not move."""
        parts = self._objective(self.model, self.y, self.edges).by_weight
        return np.zeros(len(self.edges.start)) if parts is None else np.sum(parts, axis=0)

    def slope_error(self, point: Point) -> float:
        """Return how far the gradient is from finite differences along a random direction, relative to its size."""
        way = np.random.default_rng(0).random(len(point.x)) * (point.x + max(float(point.x.mean()), _PACE))
        share, y = 1e-4, self.y
        near, far = (self._evaluate(point.x + k * share * way, _FINEST).value for k in (1, 2))
        self.y = y
        self._write(point.x)
        slope = (4.0 * near - far - 3.0 * point.value) / (2.0 * share)
        size = float(np.abs(point.gradient) @ way)
        return abs(slope - float(point.gradient @ way)) / max(size, _FINEST * abs(point.value), _TINY)

    def _tolerance(self) -> float:
        return min(max(0.1 * self._progress, _FINEST), _FIRST)

    def _write(self, x: Floats) -> None:
        self.edges.write(self.model.W, x)
        self.model.reweighted()

    def _evaluate(self, x: Floats, relative: float) -> Evaluation:
        self.settle(x, relative)
        return self._objective(self.model, self.y, self.edges)

    def _gradient(self, x: Floats, found: Evaluation, relative: float) -> Point:
        edges, y = self.edges, self.y
        size = float(np.abs(found.by_opinion).sum())
        if size:
            self._v = self.model.adjoint(found.by_opinion, relative * size, start=self._v)
            self.n_solves += 1
        else:
            self._v = np.zeros(len(y))
        apart = y[edges.rows] - y[edges.cols]
        gradient = -self._v[edges.rows] * apart
        if edges.paired:
            gradient += self._v[edges.cols] * apart
        for part in found.by_weight or ():
            gradient += part
        self._value = found.value
        return Point(x, found.value, gradient)
