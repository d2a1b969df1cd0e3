"""What decisions cost: losses as matrices of classes x actions, many at once, and nets for too many actions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError

__all__ = ["ActionNet", "LossSet", "delta_net", "read_losses"]

_MOST_POINTS: Final = 1_000_000

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LossSet:
    """Losses on the same classes.

    Parameters
    ----------
    names : tuple of str
        One per loss.
    actions : tuple of tuples
        The labels of each loss's actions.
    matrix : ndarray of shape (d, losses, most actions)
        What an action costs when the class is true; 0 where a loss has fewer actions.
    padding : ndarray of shape (losses, most actions)
        0 for an action, inf where there is none.
    """

    names: tuple[str, ...]
    actions: tuple[tuple[Any, ...], ...]
    matrix: Floats
    padding: Floats

    @property
    def diameter(self) -> float:
        """The largest distance between the costs of two actions of one loss, over classes: D in the paper."""
        sides = [self.of(place) for place in range(len(self.names))]
        return max(float(np.linalg.norm(m[:, :, None] - m[:, None, :], axis=0).max()) for m in sides)

    @property
    def longest(self) -> float:
        """The largest norm of the costs of an action over classes."""
        return float(np.linalg.norm(self.matrix, axis=0).max())

    def of(self, place: int) -> Floats:
        """Return the matrix of one loss, shape (d, its actions)."""
        return self.matrix[:, place, : len(self.actions[place])]

    def place(self, loss: int | str) -> int:
        """Return the position of a loss that is named or counted.

        Raises
        ------
        InputError
            When there is no such loss.
        """
        if isinstance(loss, str) and loss in self.names:
            return self.names.index(loss)
        if hasattr(loss, "__index__") and not isinstance(loss, bool) and 0 <= int(loss) < len(self.names):
            return int(loss)
        raise InputError(
            f"the loss is {loss!r}", expected=f"0 to {len(self.names) - 1}, or one of {', '.join(self.names)}"
        )

    def expected(self, probabilities: Floats) -> Floats:
        """Return what each action is expected to cost, shape (n, losses, most actions); inf where there is none.

        The sum over classes is taken in order, so that a row gets the same bits whatever rows stand beside it.
        """
        total = np.zeros((len(probabilities), *self.padding.shape))
        for k, costs in enumerate(self.matrix):
            total += probabilities[:, k, None, None] * costs
        total += self.padding
        return total


def read_losses(losses: Any, classes: Sequence[Any]) -> LossSet:
    """Return losses that were given as arrays, as tables, or not at all (then a wrong class costs 1).

    Raises
    ------
    InputError
        For another number of classes, a loss with one action, costs that are not finite, or no difference between any
        two actions.
    TypeError
        For a function: losses must be linear in the outcome, which a matrix says by itself.
    """
    d = len(classes)
    if losses is None:
        found = {"zero-one": pd.DataFrame(1.0 - np.eye(d), columns=pd.Index(list(classes), dtype=object))}
    elif callable(losses):
        raise TypeError("losses is a function; expected matrices of classes x actions, since losses must be linear")
    elif isinstance(losses, Mapping):
        found = {str(name): _table(matrix, classes, f"the loss {str(name)!r}") for name, matrix in losses.items()}
    elif isinstance(losses, pd.DataFrame):
        found = {"loss 0": _table(losses, classes, "the loss")}
    else:
        try:
            stack = np.asarray(losses, dtype="float64")
        except (TypeError, ValueError) as error:
            raise InputError(
                f"losses cannot be read as numbers ({str(error)[:80]})", expected="classes x actions"
            ) from error
        if stack.ndim not in (2, 3):
            raise InputError(
                f"losses has the shape {stack.shape}",
                expected="(classes, actions), (losses, classes, actions), or a dict of tables",
            )
        stack = stack[None] if stack.ndim == 2 else stack
        found = {f"loss {place}": _table(matrix, classes, f"loss {place}") for place, matrix in enumerate(stack)}
    if not found:
        raise InputError("no loss was given", expected="one or more, or None for a cost of 1 for a wrong class")
    most = max(table.shape[1] for table in found.values())
    matrix, padding = np.zeros((d, len(found), most)), np.full((len(found), most), np.inf)
    for place, table in enumerate(found.values()):
        matrix[:, place, : table.shape[1]] = table.to_numpy()
        padding[place, : table.shape[1]] = 0.0
    result = LossSet(tuple(found), tuple(tuple(table.columns) for table in found.values()), matrix, padding)
    if result.diameter <= 0:
        raise InputError("all actions cost the same in every loss", expected="something to decide")
    return result


def _table(given: Any, classes: Sequence[Any], what: str) -> pd.DataFrame:
    """Return one loss as a table of classes x actions, its rows in the order of `classes`."""
    table = given if isinstance(given, pd.DataFrame) else pd.DataFrame(np.asarray(given))
    if isinstance(given, pd.DataFrame) and not isinstance(given.index, pd.RangeIndex):
        unknown = [label for label in classes if label not in given.index]
        if unknown or len(given) != len(classes):
            raise InputError(
                f"the rows of {what} are {list(given.index)[:10]}", expected=f"the classes {list(classes)[:10]}"
            )
        table = given.loc[list(classes)]
    if len(table) != len(classes) or table.shape[1] < 2:
        raise InputError(
            f"{what} has {len(table)} classes and {table.shape[1]} actions",
            expected=f"{len(classes)} classes and two actions or more",
        )
    if not table.columns.is_unique:
        raise InputError(f"{what} has two actions of one name")
    try:
        table = table.astype("float64")
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} holds values that are not numbers", expected="what each action costs") from error
    if not np.isfinite(table.to_numpy()).all():
        raise InputError(f"{what} has missing or infinite costs", expected="finite numbers")
    return table


class ActionNet(NamedTuple):
    """Finitely many actions that stand for all of them.

    Attributes
    ----------
    actions : ndarray of shape (k, p)
    loss : ndarray of shape (d, k)
        Their costs: a loss for `ReDCal`.
    delta : float
        Every action costs within `delta` (Euclidean norm over classes) of one in the net.
    """

    actions: Floats
    loss: Floats
    delta: float


def delta_net(
    cost: Callable[[Floats], ArrayLike], low: ArrayLike, high: ArrayLike, *, delta: float, lipschitz: float
) -> ActionNet:
    """Return a finite net of a box of actions, such as a dose or a price, for `ReDCal`.

    Parameters
    ----------
    cost : callable
        Takes actions, shape (m, p), and returns what they cost when each class is true, shape (m, d).
    low, high : float or array-like of shape (p,)
        The box.
    delta : float above 0
        How far from the net an action's costs may be, as a Euclidean norm over classes.
    lipschitz : float above 0
        The costs of two actions differ by no more than this, times the distance between the actions.

    Returns
    -------
    ActionNet

    Raises
    ------
    InputError
        When the box is empty, when more than a million grid points were needed, or when the costs of two neighbours on
        the grid differ by more than `lipschitz` allows.

    Notes
    -----
    A grid whose points are at most ``delta / lipschitz / sqrt(p)`` apart brings every action within half of `delta`,
    and points are left out that lie within the other half of one that stays. Replacing actions by the net changes
    expected losses by at most `delta`, so that much is added to every guarantee of `ReDCal`. O(grid points x net)
    time.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import delta_net
    >>> def cost(dose):  # too little harms the ill (class 1), too much the healthy
    ...     return np.column_stack([dose[:, 0] ** 2, (1 - dose[:, 0]) ** 2])
    >>> net = delta_net(cost, 0, 1, delta=0.2, lipschitz=2.9)
    >>> net.loss.shape[0], bool(len(net.actions) < 20)
    (2, True)
    """
    bottom, top = (np.atleast_1d(np.asarray(end, dtype="float64")) for end in (low, high))
    if bottom.ndim != 1 or bottom.shape != top.shape or not (np.isfinite([bottom, top]).all() and (bottom < top).all()):
        raise InputError(f"the box runs from {low!r} to {high!r}", expected="finite ends, low below high")
    for name, value in (("delta", delta), ("lipschitz", lipschitz)):
        if not (np.isfinite(value) and value > 0):
            raise InputError(f"{name} is {value!r}", expected="a finite number above 0")
    apart = delta / lipschitz / np.sqrt(len(bottom))
    counts = np.ceil((top - bottom) / apart) + 1
    if counts.prod() > _MOST_POINTS:
        raise InputError(
            f"the grid would have {counts.prod():.3g} points",
            expected=f"at most {_MOST_POINTS:,}",
            remedy="Raise delta",
        )
    axes = [np.linspace(a, b, int(m)) for a, b, m in zip(bottom, top, counts, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    actions = grid.reshape(-1, len(bottom))
    costs = np.asarray(cost(actions), dtype="float64")
    if costs.ndim != 2 or len(costs) != len(actions) or not np.isfinite(costs).all():
        raise InputError(
            f"the costs of {len(actions)} actions have the shape {costs.shape}", expected="finite, (actions, classes)"
        )
    for axis, ticks in enumerate(axes):
        steps = np.linalg.norm(np.diff(costs.reshape(*grid.shape[:-1], -1), axis=axis), axis=-1)
        if steps.size and steps.max() > lipschitz * (ticks[1] - ticks[0]) * (1 + 1e-9):
            raise InputError(
                f"the costs of two actions {ticks[1] - ticks[0]:.3g} apart differ by {steps.max():.3g}",
                expected=f"at most lipschitz times that, {lipschitz * (ticks[1] - ticks[0]):.3g}",
                remedy=f"lipschitz must be at least {steps.max() / (ticks[1] - ticks[0]):.3g}",
            )
    kept, left = [], np.arange(len(actions))
    while len(left):
        kept.append(left[0])
        left = left[np.linalg.norm(costs[left] - costs[left[0]], axis=1) > delta / 2]
    if len(kept) < 2:
        raise InputError(f"all actions cost within {delta:g} of each other", expected="a smaller delta")
    return ActionNet(actions[kept], costs[kept].T.copy(), float(delta))
