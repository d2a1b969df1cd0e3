"""What an intervention should lower, with its gradients in the weights and in the opinions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from aboveboard.collective.opinion_interventions._equilibrium import FriedkinJohnsen
from aboveboard.collective.opinion_interventions._network import Edges
from aboveboard.core.errors import InputError
from aboveboard.core.extras import require

__all__ = [
    "Disagreement",
    "Evaluation",
    "MeanOpinion",
    "Objective",
    "Polarization",
    "ShareOutside",
    "WeightedSum",
    "read_objective",
]

Floats = NDArray[np.float64]


class Evaluation(NamedTuple):
    """A value, and its partial derivatives with the opinions and the weights held fixed in turn.

    Attributes
    ----------
    value : float
    by_opinion : ndarray of shape (n,)
    by_weight : tuple of ndarray of shape (m,), or None
        One for each direction of the edges (see `Edges.positions`); None where the weights do not enter.
    """

    value: float
    by_opinion: Floats
    by_weight: tuple[Floats, ...] | None = None


class Objective(Protocol):
    """Anything that can be lowered: called with the model, the opinions that are said, and the mutable edges."""

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation: ...


@dataclass(frozen=True)
class Polarization:
    """The mean square of the opinions.

    Parameters
    ----------
    center : float or None
        Around which opinion; None for their own mean, which makes it their variance.
    """

    center: float | None = 0.0

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:  # noqa: ARG002
        off = y - (y.mean() if self.center is None else self.center)
        return Evaluation(float(np.mean(off**2)), 2.0 * off / len(y))


@dataclass(frozen=True)
class Disagreement:
    """Half the sum over all edges of w_ij (y_i - y_j)^2; for mutual edges, the sum over pairs."""

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:
        around = y - y.mean()
        heard = np.bincount(model.W.indices, weights=model.W.data, minlength=model.n)
        both = model.degrees + heard
        said = model.W @ around
        value = float(0.5 * np.dot(both, around**2) - np.dot(around, said))
        squares = 0.5 * (y[edges.rows] - y[edges.cols]) ** 2
        return Evaluation(value, both * around - said - model.W.T @ around, (squares,) * len(edges.positions))


@dataclass(frozen=True)
class MeanOpinion:
    """The mean opinion. With weight -1 in a `WeightedSum` it is raised instead."""

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:  # noqa: ARG002
        return Evaluation(float(y.mean()), np.full(len(y), 1.0 / len(y)))


@dataclass(frozen=True)
class ShareOutside:
    """The share of opinions outside [-threshold, threshold], smoothed.

    Parameters
    ----------
    threshold : float
    width : float
        Over which width an opinion goes from counting little to counting nearly 1: the scale of a logistic curve.
    """

    threshold: float = 0.5
    width: float = 0.05

    def __post_init__(self) -> None:
        if not self.threshold >= 0 or not self.width > 0:
            raise InputError(
                f"threshold is {self.threshold!r} and width {self.width!r}", expected="0 or more, and a width above 0"
            )

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:  # noqa: ARG002
        share = expit((np.abs(y) - self.threshold) / self.width)
        return Evaluation(float(share.mean()), np.sign(y) * share * (1.0 - share) / (self.width * len(y)))


@dataclass(frozen=True)
class WeightedSum:
    """A weighted sum of objectives.

    Parameters
    ----------
    parts : sequence of (float, objective)
        Objectives, or the names "polarization" and "disagreement".

    Examples
    --------
    >>> from aboveboard.collective import Disagreement, Polarization, WeightedSum
    >>> both = WeightedSum([(1.0, Polarization()), (0.01, Disagreement())])
    """

    parts: Sequence[tuple[float, Any]]

    def __post_init__(self) -> None:
        if not len(self.parts) or not all(np.isfinite(weight) for weight, _ in self.parts):
            raise InputError(f"the parts are {self.parts!r}", expected="pairs of a finite weight and an objective")

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:
        value, by_opinion = 0.0, np.zeros(len(y))
        by_weight: tuple[Floats, ...] | None = None
        for factor, term in self.parts:
            one = read_objective(term)(model, y, edges)
            value += factor * one.value
            by_opinion += factor * one.by_opinion
            if one.by_weight is not None:
                more = tuple(factor * part for part in one.by_weight)
                by_weight = more if by_weight is None else tuple(map(np.add, by_weight, more))
        return Evaluation(value, by_opinion, by_weight)


@dataclass(frozen=True)
class _Differentiated:
    """A function of PyTorch tensors (weights, opinions), differentiated by PyTorch."""

    function: Callable[[Any, Any], Any]

    def __call__(self, model: FriedkinJohnsen, y: Floats, edges: Edges) -> Evaluation:
        torch = require("torch", extra="torch", feature="an objective of your own")
        weights = [
            torch.tensor(model.W.data[places], dtype=torch.float64, requires_grad=True) for places in edges.positions
        ]
        opinions = torch.tensor(y, dtype=torch.float64, requires_grad=True)
        value = self.function(weights[0] if len(weights) == 1 else torch.cat(weights), opinions)
        if not torch.is_tensor(value) or value.numel() != 1:
            raise InputError("the objective returned no single number", expected="a tensor of one element")
        if not torch.isfinite(value):
            raise InputError(f"the objective is {float(value.detach())}", expected="a finite number")
        if not value.requires_grad:
            return Evaluation(float(value), np.zeros(len(y)))
        found = torch.autograd.grad(value, [opinions, *weights], allow_unused=True)
        like = [y, *(model.W.data[places] for places in edges.positions)]
        by_opinion, *by_weight = (
            np.zeros(len(held)) if part is None else part.numpy() for part, held in zip(found, like)
        )
        return Evaluation(float(value.detach()), by_opinion, tuple(by_weight))


_NAMED: Final[dict[str, Objective]] = {"polarization": Polarization(), "disagreement": Disagreement()}
_BUILT_IN: Final = (Polarization, Disagreement, MeanOpinion, ShareOutside, WeightedSum)


def read_objective(objective: Any) -> Objective:
    """Return an objective by name, as it is, or made of a function of tensors."""
    if isinstance(objective, str):
        if objective not in _NAMED:
            raise InputError(
                f"objective is {objective!r}", expected=f"{' or '.join(map(repr, _NAMED))}, an objective, or a function"
            )
        return _NAMED[objective]
    if isinstance(objective, _BUILT_IN):
        return objective
    if callable(objective):
        return _Differentiated(objective)
    raise InputError(
        f"objective is {objective!r}",
        expected="a name, an objective such as Polarization(), or a function of the weights and the opinions",
    )
