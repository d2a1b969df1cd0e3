"""The equilibrium as a layer of a PyTorch network. Importing this module needs PyTorch."""

from typing import Any

import numpy as np

from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.core import require

torch: Any = require("torch", extra="torch", feature="EquilibriumLayer")

__all__ = ["EquilibriumLayer"]


class EquilibriumLayer(torch.nn.Module):  # type: ignore[misc]
    """What applicants report to a linear score, with gradients by their true features and by the score's weights.

    Parameters
    ----------
    game : ManipulationGame, optional
        Without a callable as its externality, if gradients by the features are wanted. Default ``ManipulationGame()``.

    Raises
    ------
    aboveboard.core.MissingExtra
        Without PyTorch (extra ``torch``).

    Notes
    -----
    ``layer(X, weight)`` takes tensors of shape (..., n, d) and (d,) and returns one of shape (..., n, d), of the same
    type and on the same device; the equilibrium itself is computed in double precision on the CPU. An intercept is not
    asked for: it moves nobody. The backward pass is the implicit function theorem, solved exactly in O(n d); at kinks
    (whoever just stays, a feature that just meets its bound) it is the derivative of one side.

    Examples
    --------
    >>> import torch
    >>> from aboveboard.collective import EquilibriumLayer, ManipulationGame
    >>> layer = EquilibriumLayer(ManipulationGame(cost="squared_l2", bounds=(-2, 2)))
    >>> weight = torch.ones(3, requires_grad=True)
    >>> reported = layer(torch.zeros(8, 3), weight)
    >>> reported.sum().backward()
    >>> weight.grad.shape
    torch.Size([3])
    """

    def __init__(self, game: ManipulationGame | None = None) -> None:
        super().__init__()
        self.game = ManipulationGame() if game is None else game

    def forward(self, X: Any, weight: Any) -> Any:
        """Return the reports, a tensor of the shape of X."""
        return _Equilibrium.apply(X, weight, self.game)

    def extra_repr(self) -> str:
        return repr(self.game)


class _Equilibrium(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(context: Any, X: Any, weight: Any, game: ManipulationGame) -> Any:
        true, coef = _array(X), _array(weight)
        reported = game.equilibrium(true, coef).X_reported
        context.game, context.arrays = game, (true, reported, coef)
        context.like = (X, weight)
        return _tensor(reported, X)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(context: Any, gradient: Any) -> Any:
        by_X, by_coef = context.game._pulled_back(
            *context.arrays, _array(gradient), for_X=bool(context.needs_input_grad[0])
        )
        X, weight = context.like
        return None if by_X is None else _tensor(by_X, X), _tensor(by_coef, weight), None


def _array(tensor: Any) -> Any:
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _tensor(array: Any, like: Any) -> Any:
    return torch.as_tensor(array, dtype=like.dtype, device=like.device)
