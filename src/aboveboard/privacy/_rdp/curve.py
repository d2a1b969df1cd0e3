"""A Rényi-DP curve: how far apart the releases of two neighbouring data sets can be, order by order.

References
----------
I. Mironov, "Rényi Differential Privacy", CSF 2017. https://arxiv.org/abs/1702.07476
C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, Proposition 12.
https://arxiv.org/abs/2004.00010
M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016. https://arxiv.org/abs/1605.02065
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_delta, checked_epsilon, checked_positive, checked_whole

__all__ = ["DEFAULT_ORDERS", "Adjacency", "RDPCurve", "laplace_rdp"]

Floats = NDArray[np.float64]

Adjacency = Literal["add_remove", "replace_one"]
"""Which data sets are neighbours: one has a record more, or one record is another."""

DEFAULT_ORDERS: Final[Sequence[float]] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *map(float, range(11, 65)),
    *(80.0, 96.0, 128.0, 192.0, 256.0, 512.0, 1024.0, math.inf),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RDPCurve:
    """Bounds on the Rényi divergence between the releases of any two neighbouring data sets, by order.

    Curves of one adjacency are composed with ``+`` and `repeated`: their divergences add up, also where a mechanism was
    chosen after seeing what earlier ones released.

    Parameters
    ----------
    orders : array-like of float, shape (m,)
        Ascending, above 1; the last may be infinite, which stands for pure differential privacy.
    values : array-like of float, shape (m,)
        Divergence in nats, 0 or more, infinite where there is no bound.
    adjacency : {"add_remove", "replace_one"}
        Which data sets are neighbours. Curves of different adjacency are never added.
    mechanism : str
        What the curve belongs to, for certificates.
    rho : float, optional
        Where the divergence is at most ``rho * order`` for every order above 1: see `concentrated`.

    Raises
    ------
    InputError
        When orders or values are no such curve.

    Notes
    -----
    An (alpha, r) bound gives (epsilon, delta) with epsilon = r + log((alpha - 1) / alpha) - log(delta alpha) /
    (alpha - 1); the best order is taken. Where it is at most delta, sqrt(1 - exp(-r)) bounds the total variation
    distance, and epsilon is 0.

    Examples
    --------
    >>> from aboveboard.privacy import gaussian_rdp
    >>> year = gaussian_rdp(20.0, adjacency="replace_one").repeated(100)
    >>> round(year.epsilon(1e-6), 3)
    2.419
    """

    orders: Floats
    values: Floats
    adjacency: Adjacency
    mechanism: str = ""
    rho: float | None = None

    def __post_init__(self) -> None:
        if self.adjacency not in get_args(Adjacency):
            raise InputError(f"adjacency is {self.adjacency!r}", expected="'add_remove' or 'replace_one'")
        orders, values = checked_orders(self.orders), np.array(self.values, dtype=np.float64)
        if values.shape != orders.shape:
            raise InputError(f"{values.size} values for {orders.size} orders", expected="one value for each order")
        if np.isnan(values).any() or (values < 0).any():
            raise InputError("values that are negative or NaN", expected="divergences of 0 or more")
        if self.rho is not None and not np.allclose(values, _line(self.rho, orders), rtol=1e-9, atol=0):
            raise InputError("values that are not rho times the orders", remedy="Leave rho out")
        for name, array in (("orders", orders), ("values", values)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @classmethod
    def concentrated(
        cls, rho: float, *, adjacency: Adjacency, mechanism: str = "", orders: ArrayLike = DEFAULT_ORDERS
    ) -> "RDPCurve":
        """Return the curve ``rho * order`` (zero-concentrated privacy), whose conversion searches all orders above 1.

        Parameters
        ----------
        rho : float >= 0
            Half the squared ratio of sensitivity to standard deviation, for Gaussian noise.
        adjacency, mechanism, orders
            As for the class; the orders only say at which ones the curve can be composed with others.
        """
        if not 0 <= rho < math.inf:
            raise InputError(f"rho is {rho!r}", expected="a finite number of at least 0")
        alpha = checked_orders(orders)
        return cls(orders=alpha, values=_line(rho, alpha), adjacency=adjacency, mechanism=mechanism, rho=rho)

    def __add__(self, other: "RDPCurve") -> "RDPCurve":
        """Compose two releases about the same data."""
        if not isinstance(other, RDPCurve):
            return NotImplemented
        if other.adjacency != self.adjacency:
            raise InputError(
                f"one curve is for {self.adjacency} neighbours and the other for {other.adjacency} neighbours",
                expected="curves of one adjacency",
                remedy="Make both for the same one; replacing a record moves a sum twice as far as adding one",
            )
        if not np.array_equal(self.orders, other.orders):
            raise InputError("the curves have different orders", expected="the same orders in both")
        rho = None if self.rho is None or other.rho is None else self.rho + other.rho
        parts = " + ".join(part for part in (self.mechanism, other.mechanism) if part)
        return self._with(self.values + other.values, rho, parts)

    def repeated(self, times: int) -> "RDPCurve":
        """Compose `times` releases of this kind about the same data."""
        times = checked_whole(times, "times")
        rho = None if self.rho is None else times * self.rho
        return self._with(times * self.values, rho, f"{times:,} x ({self.mechanism})" if times > 1 else self.mechanism)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon for which the release is (epsilon, delta)-differentially private by this curve.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        float
            Infinite where the curve gives no bound.
        """
        return self.best(delta)[0]

    def best(self, delta: float) -> tuple[float, float]:
        """Return the smallest epsilon, and the order that gives it (NaN where total variation alone makes it 0)."""
        delta = checked_delta(delta)
        smallest = min(self.values.min(), math.inf if self.rho is None else self.rho)
        if smallest == 0 or -math.expm1(-smallest) <= delta**2:
            return 0.0, math.nan
        orders, values = self.orders, self.values
        if self.rho is not None and delta > 0:
            orders = np.array([_best_order(self.rho, delta)])
            values = self.rho * orders
        epsilons = _epsilons(orders, values, delta)
        place = int(np.argmin(epsilons))
        return max(float(epsilons[place]), 0.0), float(orders[place])

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta for which the release is (epsilon, delta)-differentially private by this curve."""
        epsilon = checked_epsilon(epsilon)
        smallest = min(self.values.min(), math.inf if self.rho is None else self.rho)
        orders, values = self.orders, self.values
        if self.rho is not None and self.rho > 0:
            orders = np.array([_best_order_for_delta(self.rho, epsilon)])
            values = self.rho * orders
        total_variation = math.sqrt(-math.expm1(-smallest))
        return float(min(_deltas(orders, values, epsilon).min(), total_variation))

    def _with(self, values: Floats, rho: float | None, mechanism: str) -> "RDPCurve":
        return RDPCurve(orders=self.orders, values=values, adjacency=self.adjacency, mechanism=mechanism, rho=rho)


def laplace_rdp(
    scale: float, *, adjacency: Adjacency, sensitivity: float = 1.0, orders: ArrayLike = DEFAULT_ORDERS
) -> RDPCurve:
    """Return the exact curve of the Laplace mechanism.

    Parameters
    ----------
    scale : float > 0
        Of the noise; its standard deviation over sqrt(2).
    adjacency : {"add_remove", "replace_one"}
        For which `sensitivity` holds.
    sensitivity : float > 0, default 1
        How far, in the sum of absolute differences, neighbours can move what is released.
    orders : array-like of float

    Notes
    -----
    Mironov 2017, Proposition 6; with several coordinates it is an upper bound.
    """
    shift = checked_positive(sensitivity, "sensitivity") / checked_positive(scale, "scale")
    alpha = checked_orders(orders)
    finite = alpha[np.isfinite(alpha)]
    near = np.log(finite / (2 * finite - 1)) + (finite - 1) * shift
    far = np.log((finite - 1) / (2 * finite - 1)) - finite * shift
    values = np.full(alpha.shape, shift)
    values[: finite.size] = np.clip(np.logaddexp(near, far) / (finite - 1), 0.0, shift)
    return RDPCurve(orders=alpha, values=values, adjacency=adjacency, mechanism=f"Laplace noise of scale {scale:g}")


def checked_orders(orders: ArrayLike) -> Floats:
    """Return ascending orders above 1."""
    found = np.array(orders, dtype=np.float64)
    if found.ndim != 1 or not found.size or not (found > 1).all() or not (np.diff(found) > 0).all():
        raise InputError("orders that are not ascending, or not all above 1", expected="a list such as [1.5, 2, 4, 8]")
    return found


def _line(rho: float, alpha: Floats) -> Floats:
    return rho * alpha if rho else np.zeros_like(alpha)


def _epsilons(alpha: Floats, values: Floats, delta: float) -> Floats:
    """Return the epsilon that each order gives."""
    if delta == 0:
        return np.where(np.isinf(alpha), values, np.inf)
    finite = np.where(np.isinf(alpha), 2.0, alpha)
    epsilons = values + np.log1p(-1 / finite) - np.log(delta * finite) / (finite - 1)
    return np.where(np.isinf(alpha), values, epsilons)


def _deltas(alpha: Floats, values: Floats, epsilon: float) -> Floats:
    """Return the delta that each order gives."""
    finite = np.where(np.isinf(alpha), 2.0, alpha)
    logarithm = (finite - 1) * (values - epsilon + np.log1p(-1 / finite)) - np.log(finite)
    return np.where(np.isinf(alpha), values > epsilon, np.exp(np.minimum(logarithm, 0.0)))


def _best_order(rho: float, delta: float) -> float:
    """Return the order that gives the smallest epsilon: where rho (alpha - 1)^2 = -log(delta alpha)."""
    highest = -math.log(delta)
    # in u = alpha - 1, which may be tiny: at the upper end, rho u^2 is at least -log(delta)
    root = brentq(lambda u: rho * u * u - highest + math.log1p(u), 0.0, math.sqrt(highest / rho), xtol=1e-300)
    return 1.0 + max(float(root), 1e-12)


def _best_order_for_delta(rho: float, epsilon: float) -> float:
    """Return the order that gives the smallest delta: where rho (2 alpha - 1) + log(1 - 1 / alpha) = epsilon."""

    def slope(logarithm: float) -> float:
        u = math.exp(logarithm)
        return rho * (2 * u + 1) - math.log1p(1 / u) - epsilon

    root = brentq(slope, -500.0, math.log(epsilon / rho + 1 / math.sqrt(rho) + 2.0))
    return 1.0 + max(math.exp(float(root)), 1e-12)
