"""The accountant: what a run of Noisy-SGD that shows only its last iterate leaks."""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.privacy._rdp import (
    DEFAULT_ORDERS,
    RDPCurve,
    privacy_certificate,
    smallest_noise,
    without_replacement_gaussian_rdp,
)
from aboveboard.privacy._rdp.checked import checked_positive, checked_whole
from aboveboard.privacy.hidden_state_noisy_sgd._losses import LossClass
from aboveboard.privacy.hidden_state_noisy_sgd._shifts import GridPlanner, LinearPlanner, Plan, Uses

__all__ = ["HiddenStateAccountant", "LastIterateBound", "Sampling"]

Floats = NDArray[np.float64]

Sampling = Literal["full", "cyclic", "shuffled", "without_replacement"]

PAPER: Final = Reference(
    title="Convergent Privacy Loss of Noisy-SGD without Convexity and Smoothness",
    authors="E. Chien, P. Li",
    venue="ICLR",
    year=2025,
    url="https://arxiv.org/abs/2410.01068",
)
_LEAST_FACTOR: Final = 1e-9  # a step may as well contract to a point
_SPLITS: Final = 24
_PLACES: Final = 64
_WHICH: Final = {
    "full": "full batches",
    "cyclic": "batches of {b:,} in one fixed order",
    "shuffled": "batches of {b:,} in one secret random order",
    "without_replacement": "batches of {b:,} drawn without replacement for each step",
}
_ORDER: Final = {
    "full": "Every step uses all records.",
    "cyclic": "The order of the batches is fixed before the data are seen, and is the same in every epoch.",
    "shuffled": "The order of the records is drawn uniformly, is kept secret, and is the same in every epoch.",
    "without_replacement": "Every batch is drawn afresh and uniformly without replacement, and is kept secret.",
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HiddenStateAccountant:
    """Privacy of Noisy-(S)GD when only the last iterate is shown: a bound that stops growing with the steps.

    Composition charges every step, as if all iterates were published. Where only the last one is, the noise of later
    steps hides the earlier ones, and the bound converges: for strongly convex losses without further ado, for convex,
    non-convex and Hölder-smooth ones if iterates are projected onto a bounded set. It is never above composition.

    The run is ``x <- project(x - lr * (mean of batch gradients + noise))`` with ``noise ~ N(0, noise_std**2 I)``, from
    a start that does not depend on the data. **The noise is added to the mean gradient, before the step size**: other
    papers and libraries add it to the sum of gradients (divide theirs by the batch size) or to the iterate (divide
    theirs by `lr`).

    Parameters
    ----------
    loss : StronglyConvexLoss, ConvexSmoothLoss, SmoothLoss or HolderLoss
        What is known of the loss of every record, its penalty included.
    lr : float > 0
        Step size.
    grad_bound : float > 0
        Largest norm of the part of a record's gradient that depends on the record, over all records that could be and
        all points of the set; a penalty that is the same for all does not count.
    n : int >= 1
        Number of records; public.
    batch_size : int, optional
        Not for full batches. Cyclic and shuffled orders need one that divides `n`.
    sampling : {"full", "cyclic", "shuffled", "without_replacement"}, default "full"
        All records in every step; batches in one order that is fixed beforehand and used in every epoch (the bound is
        for the worst place a record can have); the same in one uniform, secret order; or a fresh uniform batch for
        every step.
    diameter : float > 0, default infinity
        Of the convex set onto which every iterate is projected.
    orders : sequence of float
        Rényi orders of the curves.
    grid : int, default 1000
        Points of the grid of distances, for `HolderLoss`; more are tighter. 50 to 30,000.

    Raises
    ------
    InputError
        When `lr` is beyond the range in which the loss class says anything, or something else makes no sense.

    Guarantee
    ---------
    The last iterate has Rényi divergence at most ``curve`` between any two data sets of `n` records that differ in one,
    at every order. Assumed: the class of the loss and `grad_bound` hold for every record that could be; gradients are
    not clipped, unless what is then descended is still of the class; every iterate is projected; nothing but the last
    one is shown (no average, no losses, no choice of the best one on private data).

    Notes
    -----
    Let s be how far one step can take apart two runs at the same point, 2 lr grad_bound / batch_size, and z a distance
    that steps take to h(z) at most. A run with D_tau of distance after step tau is made to meet the other one by shifts
    a_t of its noise: z_t = h(z_{t-1}) + s - a_t from z_tau = D_tau to z_T = 0. The divergence of order alpha is at most
    alpha / (2 lr^2 noise_std^2) times the least sum of a_t^2. For a linear h the best shifts are found exactly, for any
    h by dynamic programming that rounds upwards. For fresh batches part of the noise hides the record and the rest pays
    for the shifts.

    In a fixed order the last batch is the worst place for a record, since what follows its last use is the same for
    both data sets. For a shuffled order the curves of at most 64 places are averaged, each standing for those after it.

    Cost: milliseconds for any number of steps where h is linear, up to a second for `HolderLoss`, some seconds for
    fresh batches; up to 64 times as much for shuffled orders.

    References
    ----------
    E. Chien, P. Li, "Convergent Privacy Loss of Noisy-SGD without Convexity and Smoothness", ICLR 2025.
    https://arxiv.org/abs/2410.01068
    J. Altschuler, K. Talwar, "Privacy of Noisy Stochastic Gradient Descent: More Iterations without More Privacy Loss",
    NeurIPS 2022. https://arxiv.org/abs/2205.13710

    Examples
    --------
    >>> from aboveboard.privacy import HiddenStateAccountant, StronglyConvexLoss
    >>> run = HiddenStateAccountant(loss=StronglyConvexLoss(L=0.35, m=0.1), lr=0.5, grad_bound=1.0, n=1000)
    >>> bound = run.last_iterate(steps=1000, noise_std=0.02)
    >>> round(bound.epsilon(1e-5), 2), round(bound.composition.epsilon(1e-5), 2)
    (2.77, 19.05)
    >>> round(run.calibrate(steps=1000, epsilon=1.0, delta=1e-5), 4)
    0.0505
    """

    loss: LossClass
    lr: float
    grad_bound: float
    n: int
    batch_size: int | None = None
    sampling: Sampling = "full"
    diameter: float = math.inf
    orders: Any = DEFAULT_ORDERS
    grid: int = 1000

    def __post_init__(self) -> None:
        checked_positive(self.lr, "lr")
        checked_positive(self.grad_bound, "grad_bound")
        checked_whole(self.n, "n")
        if not hasattr(self.loss, "modulus"):
            raise InputError(
                f"loss is {self.loss!r}", expected="a class of losses, such as StronglyConvexLoss(L=1, m=0.1)"
            )
        self.loss.modulus(self.lr)
        if self.diameter != math.inf:
            checked_positive(self.diameter, "diameter")
        if checked_whole(self.grid, "grid", 50) > 30_000:
            raise InputError(f"grid is {self.grid}", expected="50 to 30,000")
        self._check_batches()

    # --- what is asked ------------------------------------------------------------------------------------------------

    def last_iterate(self, steps: int, noise_std: float) -> "LastIterateBound":
        """Return the bound for a run of so many steps.

        Parameters
        ----------
        steps : int >= 1
        noise_std : float > 0
            sigma in ``x - lr * (mean gradient + N(0, sigma**2 I))``.
        """
        return self._bound(self._planned(steps), steps, checked_positive(noise_std, "noise_std"))

    def calibrate(self, steps: int, epsilon: float, delta: float) -> float:
        """Return the least `noise_std` with which the last iterate of so many steps is (epsilon, delta)-private.

        Parameters
        ----------
        steps : int >= 1
        epsilon : float > 0
        delta : float in (0, 1)

        Returns
        -------
        float
            At most a hundred-thousandth (a thousandth for fresh batches) above the least one.
        """
        planned = self._planned(steps)
        relative = 1e-3 if self.sampling == "without_replacement" else 1e-5
        start = self._sensitivity / self.lr
        return smallest_noise(
            lambda noise: self._bound(planned, steps, noise).epsilon(delta), epsilon, start=start, relative=relative
        )

    def composition(self, steps: int, noise_std: float) -> RDPCurve:
        """Return the curve that charges every step, as if all iterates were published."""
        steps, ratio = checked_whole(steps, "steps"), self._ratio(checked_positive(noise_std, "noise_std"))
        if self.sampling == "without_replacement":
            return self._sampled(1 / ratio).repeated(steps)
        curves = [self._concentrated(uses.count * ratio**2 / 2) for uses in self._all_uses(steps)]
        return self._over_orders(curves)

    def altschuler_talwar(self, steps: int, noise_std: float) -> RDPCurve:
        """Return the earlier convergent bound for full batches of convex losses: half the noise hides, half pays.

        Where its analysis does not apply (other losses, batches, no bounded set), it is plain composition.
        """
        steps = checked_whole(steps, "steps")
        deviation = self.lr * checked_positive(noise_std, "noise_std")
        plain = self.composition(steps, noise_std)
        factor = self.loss.contraction(self.lr)
        if self.sampling != "full" or factor is None or factor > 1 or math.isinf(self.diameter):
            return plain
        k = np.unique(np.geomspace(1, steps, 2000).round())
        logarithm = math.log(max(factor, _LEAST_FACTOR))
        squares = np.expm1(2 * k * logarithm) / math.expm1(2 * logarithm) if logarithm else k
        costs = 2 * self._sensitivity**2 * k + 2 * self.diameter**2 * np.exp(2 * k * logarithm) / squares
        rho = float(costs.min()) / deviation**2 / 2
        return self._concentrated(min(rho, plain.rho or math.inf))

    def output_perturbation(self, steps: int, noise_std: float) -> RDPCurve:
        """Return the bound that only the noise of the last step gives."""
        steps, noise = checked_whole(steps, "steps"), checked_positive(noise_std, "noise_std")
        planner = self._planner()
        uses = Uses(steps, self._sensitivity)
        if isinstance(planner, LinearPlanner):
            before = planner.distance(uses, steps - 1)
        else:
            before = float(planner.distances(uses)[steps - 1])
        apart = float(self.loss.modulus(self.lr)(np.array([before]))[0]) + self._sensitivity
        return self._concentrated((apart / (self.lr * noise)) ** 2 / 2)

    # --- planning -----------------------------------------------------------------------------------------------------

    def _planned(self, steps: int) -> "list[Plan] | tuple[Floats, Floats]":
        """Return what does not depend on the noise: plans, one per place of the record, or costs by their length."""
        steps = checked_whole(steps, "steps")
        if self._cannot_converge:
            warnings.warn(
                "without a bounded set (diameter) steps that do not contract hide nothing: the bound is composition",
                UserWarning,
                stacklevel=4,
            )
        planner = self._planner()
        if self.sampling == "without_replacement":
            if self._cannot_converge:
                return np.empty(0), np.empty(0)
            return planner.costs_without_uses(Uses(steps, self._sensitivity))
        if self._cannot_converge:
            return [uses.at_once() for uses in self._all_uses(steps)]
        return [planner.plan(uses) for uses in self._all_uses(steps)]

    def _bound(self, planned: "list[Plan] | tuple[Floats, Floats]", steps: int, noise_std: float) -> "LastIterateBound":
        plain = self.composition(steps, noise_std)
        plan = None
        if isinstance(planned, list):
            deviation = self.lr * noise_std
            plan = planned[0]
            curve = self._over_orders([self._concentrated(found.cost / deviation**2 / 2) for found in planned])
        else:
            curve = self._split(plain, *planned, noise_std)
        return LastIterateBound(
            curve=curve, composition=plain, accountant=self, steps=steps, noise_std=noise_std, plan=plan
        )

    def _split(self, plain: RDPCurve, lengths: Floats, costs: Floats, noise_std: float) -> RDPCurve:
        """Return the least, order by order, of composition and of splits of the noise between hiding and shifting."""
        values = np.array(plain.values)
        finite = np.isfinite(plain.orders)
        alpha = plain.orders[finite, None]
        deviation = self.lr * noise_std
        for share in (1 / (1 + np.exp(-np.linspace(-2.0, 6.0, _SPLITS)))).tolist() if lengths.size else ():
            hidden = self._sampled(math.sqrt(share) / self._ratio(noise_std)).values[finite, None]
            both = lengths * hidden + alpha * costs / (2 * (1 - share) * deviation**2)
            values[finite] = np.minimum(values[finite], both.min(axis=1))
        return RDPCurve(orders=plain.orders, values=values, adjacency="replace_one", mechanism=self._mechanism)

    def _over_orders(self, curves: list[RDPCurve]) -> RDPCurve:
        """Return one curve from those of the places that the record can have in the order."""
        if self.sampling != "shuffled":
            return curves[0]
        orders = curves[0].orders
        finite = np.isfinite(orders)
        exponents = (orders[finite] - 1) * np.array([curve.values[finite] for curve in curves])
        places = self._places()
        shares = np.diff(places, append=self._period)[:, None] / self._period
        values = np.full(orders.shape, curves[0].values[-1])
        values[finite] = logsumexp(exponents, axis=0, b=shares) / (orders[finite] - 1)
        return RDPCurve(orders=orders, values=values, adjacency="replace_one", mechanism=self._mechanism)

    def _all_uses(self, steps: int) -> list[Uses]:
        return [Uses(steps, self._sensitivity, self._period, place) for place in self._places().tolist()]

    def _places(self) -> NDArray[np.int64]:
        """Return places in the order, counted from its end, each of which is worse than those up to the next one.

        What comes after the last use of a record is the same for both data sets, so that the last place is the worst.
        """
        if self.sampling != "shuffled":
            return np.zeros(1, dtype=np.int64)
        return np.unique(np.linspace(0, self._period - 1, min(self._period, _PLACES)).astype(np.int64))

    @property
    def _period(self) -> int:
        return 1 if self.sampling == "full" else self.n // self._batch_size

    @property
    def _batch_size(self) -> int:
        return self.n if self.batch_size is None else self.batch_size

    def _planner(self) -> LinearPlanner | GridPlanner:
        factor = self.loss.contraction(self.lr)
        if factor is None:
            return GridPlanner(self.loss.modulus(self.lr), self.diameter, self.grid)
        return LinearPlanner(max(factor, _LEAST_FACTOR), self.diameter)

    @property
    def _cannot_converge(self) -> bool:
        factor = self.loss.contraction(self.lr)
        return math.isinf(self.diameter) and (factor is None or factor >= 1)

    # --- the run ------------------------------------------------------------------------------------------------------

    @property
    def _sensitivity(self) -> float:
        """How far apart one step that uses the record takes two runs at the same point."""
        return 2 * self.lr * self.grad_bound / self._batch_size

    def _ratio(self, noise_std: float) -> float:
        return self._sensitivity / (self.lr * noise_std)

    def _concentrated(self, rho: float) -> RDPCurve:
        return RDPCurve.concentrated(rho, adjacency="replace_one", mechanism=self._mechanism, orders=self.orders)

    def _sampled(self, multiplier: float) -> RDPCurve:
        return without_replacement_gaussian_rdp(multiplier, self._batch_size / self.n, orders=self.orders)

    @property
    def _mechanism(self) -> str:
        batches = _WHICH[self.sampling].format(b=self._batch_size)
        return f"noisy gradient descent with {batches}, of which only the last iterate is released"

    def _check_batches(self) -> None:
        if self.sampling not in get_args(Sampling):
            raise InputError(f"sampling is {self.sampling!r}", expected=f"one of {', '.join(get_args(Sampling))}")
        if self.sampling == "full":
            if self.batch_size not in (None, self.n):
                raise InputError(f"batch_size is {self.batch_size} with full batches", expected="none, or n")
            return
        size = checked_whole(self.batch_size, "batch_size")
        if size > self.n:
            raise InputError(f"batch_size is {size}", expected=f"at most n = {self.n}")
        if self.sampling != "without_replacement" and self.n % size:
            raise InputError(
                f"batch_size {size} does not divide n = {self.n}",
                expected="batches of equal size",
                remedy="Leave out records at random, take another batch_size, or sample without replacement",
            )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastIterateBound:
    """What the last iterate of a run leaks.

    Parameters
    ----------
    curve : RDPCurve
        For neighbours that differ in one record (``"replace_one"``).
    composition : RDPCurve
        What charging every step would give.
    accountant : HiddenStateAccountant
    steps : int
    noise_std : float
    plan : Plan or None
        The shifts behind the bound, at the worst place of the record; None for fresh batches, where they depend on the
        order. ``plan.start`` is the step after which the first one is made, ``plan.shifts`` has one for each later
        step.
    """

    curve: RDPCurve
    composition: RDPCurve
    accountant: HiddenStateAccountant
    steps: int
    noise_std: float
    plan: Plan | None

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that is proved at `delta`."""
        return min(self.curve.epsilon(delta), self.composition.epsilon(delta))

    def delta(self, epsilon: float) -> float:
        """Return the delta that is proved at `epsilon`."""
        return min(self.curve.delta(epsilon), self.composition.delta(epsilon))

    def certificate(self, delta: float) -> Certificate:
        """Return the guarantee at `delta`, for a run that is planned: who makes it must keep to what is assumed."""
        return privacy_certificate(
            release="the coefficients of the last iterate",
            epsilon=self.epsilon(delta),
            delta=delta,
            adjacency="replace_one",
            mechanism=f"{self.curve.mechanism}; {self.steps:,} steps, noise of standard deviation {self.noise_std:g}",
            noise=None,
            parameters=self.parameters(delta),
            assumptions=self.assumptions(),
            does_not_cover=NOT_COVERED,
            reference=PAPER,
        )

    def parameters(self, delta: float) -> dict[str, Any]:
        """Return the numbers behind the guarantee, with the epsilon of composition beside them."""
        run = self.accountant
        found: dict[str, Any] = {
            "steps": self.steps,
            "lr": run.lr,
            "noise_std": self.noise_std,
            "grad_bound": run.grad_bound,
            "n": run.n,
            "batch_size": run.n if run.batch_size is None else run.batch_size,
            "sampling": run.sampling,
            "diameter": None if math.isinf(run.diameter) else run.diameter,
            "epsilon_of_composition": self.composition.epsilon(delta),
        }
        if self.plan is not None:
            found |= {"first_shift_after_step": self.plan.start, "sum_of_squared_shifts": self.plan.cost}
        return found

    def assumptions(self) -> tuple[Assumption, ...]:
        """Return what the guarantee rests on."""
        run = self.accountant
        factor = run.loss.contraction(run.lr)
        found = [
            Assumption(f"The loss of every record that could be, its penalty included, {run.loss.assumption}."),
            Assumption(
                f"The gradient of the part of the loss that depends on the record has norm {run.grad_bound:g} at most, "
                "for every record that could be and wherever an iterate can be."
            ),
            Assumption(_ORDER[run.sampling]),
            Assumption("The run starts at a point that does not depend on the data."),
            Assumption("Nothing but the last iterate is released, and when to stop was decided beforehand."),
        ]
        if not math.isinf(run.diameter):
            found.append(Assumption(f"Every iterate is projected onto a convex set of diameter {run.diameter:g}."))
        if factor is not None:
            found.append(
                Assumption(
                    "The step size is within the range in which the loss takes no two points further apart than said.",
                    "checked",
                    "factor by which one step changes distances at most",
                    factor,
                    None,
                    True,
                )
            )
        return tuple(found)


NOT_COVERED: Final = (
    "Gradients that were clipped: what is descended then need not be of the class of the loss any more.",
    "Averages of iterates, losses during the run, or a stop that was chosen on private data: each shows more than the "
    "last iterate.",
    "Scaling, selection of features and settings that were chosen by looking at the data.",
)
