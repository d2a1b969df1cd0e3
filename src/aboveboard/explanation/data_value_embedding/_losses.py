"""The losses of a PyTorch module as functions of one flat vector of weights, and their derivatives.

Weights of shape (p,) are all that require gradients, in the module's order; derivatives are by the q of them that are
tracked. The module runs in evaluation mode. Importing this module needs PyTorch.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aboveboard.core import InputError, require

torch: Any = require("torch", extra="torch", feature="DataValueEmbedding")

__all__ = ["Batch", "Losses", "checked_batch", "evaluating"]

Batch = tuple[tuple[Any, ...], Any]
"""Inputs, one tensor or more, and targets; the first dimension counts examples."""

_VECTORS: Final = 256


class Losses:
    """A module with the loss of one example.

    Parameters
    ----------
    model : torch.nn.Module
    loss_fn : callable ``(outputs, targets) -> loss``
        Called with one example at a time, with a first dimension of 1.
    layers : sequence of str or None
        Names of submodules whose weights are tracked; None for all.
    """

    def __init__(self, model: Any, loss_fn: Callable[[Any, Any], Any], layers: tuple[str, ...] | None) -> None:
        self.model, self.loss_fn, self.layers = model, loss_fn, layers
        self._named = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if not self._named:
            raise InputError("no parameter of the model requires a gradient", expected="a model to be trained")
        kinds = {p.dtype for p in self._named.values()}
        if not kinds <= {torch.float32, torch.float64} or len(kinds) > 1:
            raise InputError(
                f"the parameters have type {', '.join(sorted(map(str, kinds)))}", expected="all float32 or all float64"
            )
        self._tracked = self._names_of(layers)
        self.size = sum(p.numel() for p in self._named.values())
        self.tracked_size = sum(self._named[name].numel() for name in self._tracked)

    @property
    def parameters(self) -> list[Any]:
        """The parameters, in the order in which they are packed."""
        return list(self._named.values())

    @property
    def device(self) -> Any:
        """Where the module is."""
        return self.parameters[0].device

    @property
    def dtype(self) -> Any:
        """Type of the weights."""
        return self.parameters[0].dtype

    def packed(self) -> Any:
        """Return a copy of the module's own weights, shape (p,)."""
        return torch.cat([p.detach().reshape(-1) for p in self.parameters])

    def tracked(self, theta: Any) -> Any:
        """Return the tracked weights, shape (..., q), of weights of shape (..., p)."""
        if self.tracked_size == self.size:
            return theta
        parts = self._split(theta)
        return torch.cat([parts[name] for name in self._tracked], dim=-1)

    def losses(self, theta: Any, batch: Batch, tracked: Any = None) -> Any:
        """Return the loss of each example, shape (B,)."""
        inputs, targets = batch
        outputs = torch.func.functional_call(self.model, self.unpacked(theta, tracked), inputs)
        return self.losses_of(outputs, targets)

    def gradients(self, theta: Any, batch: Batch) -> Any:
        """Return the gradient of each example's loss, shape (B, q)."""

        def loss(tracked: Any, inputs: tuple[Any, ...], target: Any) -> Any:
            rows = (tuple(part[None] for part in inputs), target[None])
            return self.losses(theta, rows, tracked).sum()

        with evaluating(self.model):
            return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(self.tracked(theta), *batch)

    def total_gradient(self, theta: Any, batch: Batch) -> Any:
        """Return the gradient of the sum of losses by all weights, shape (p,)."""
        with evaluating(self.model):
            return torch.func.grad(lambda weights: self.losses(weights, batch).sum())(theta)

    def weighted_gradients(self, thetas: Any, batch: Batch, weights: Any) -> Any:
        """Return the gradient of weighted sums of losses, shape (R, p), each at its own weights."""

        def total(theta: Any, weight: Any) -> Any:
            return self.losses(theta, batch) @ weight

        with evaluating(self.model):
            return torch.func.vmap(torch.func.grad(total))(thetas, weights)

    def all_losses(self, thetas: Any, batch: Batch) -> Any:
        """Return the losses at several weights, shape (R, B)."""
        with evaluating(self.model):
            return torch.func.vmap(lambda theta: self.losses(theta, batch))(thetas)

    def hessian_product(self, theta: Any, batch: Batch, vectors: Any) -> Any:
        """Return the products, shape (r, q), of the Hessian of the sum of losses with vectors of that shape."""

        def gradient(tracked: Any) -> Any:
            return torch.func.grad(lambda weights: self.losses(theta, batch, weights).sum())(tracked)

        with evaluating(self.model):
            _, pull = torch.func.vjp(gradient, self.tracked(theta))
            return torch.func.vmap(lambda vector: pull(vector)[0], chunk_size=_VECTORS)(vectors)

    def gauss_newton_product(self, theta: Any, batch: Batch, vectors: Any) -> Any:
        """Return the products, shape (r, q), of J' H J with vectors: J is of the outputs, H of the loss by them."""
        inputs, targets = batch
        start = self.tracked(theta)

        def outputs(tracked: Any) -> Any:
            return torch.func.functional_call(self.model, self.unpacked(theta, tracked), inputs)

        def slope(values: Any) -> Any:
            return torch.func.grad(lambda given: self.losses_of(given, targets).sum())(values)

        with evaluating(self.model):
            found, pull = torch.func.vjp(outputs, start)
            # the transpose of the pullback, which is linear, is J itself: no need of forward differentiation
            _, push = torch.func.vjp(lambda cotangent: pull(cotangent)[0], torch.zeros_like(found))
            _, bend = torch.func.vjp(slope, found)
            return torch.func.vmap(lambda vector: pull(bend(push(vector)[0])[0])[0], chunk_size=_VECTORS)(vectors)

    def losses_of(self, outputs: Any, targets: Any) -> Any:
        """Return the loss of each row of outputs, shape (B,)."""
        return torch.func.vmap(self.per_row)(outputs, targets)

    def unpacked(self, theta: Any, tracked: Any = None) -> dict[str, Any]:
        """Return tensors by parameter name, the tracked ones from `tracked` where it is given."""
        parts = self._split(theta)
        if tracked is not None:
            sizes = [self._named[name].numel() for name in self._tracked]
            parts |= dict(zip(self._tracked, tracked.split(sizes, dim=-1), strict=True))
        return {name: part.view(self._named[name].shape) for name, part in parts.items()}

    def per_row(self, outputs: Any, target: Any) -> Any:
        """Return the loss of one example from its outputs without the first dimension."""
        loss = self.loss_fn(outputs[None], target[None])
        if loss.numel() != 1:
            raise InputError(
                f"loss_fn gives {loss.numel()} numbers for one example", expected="one number, such as a mean or a sum"
            )
        return loss.reshape(())

    def _split(self, theta: Any) -> dict[str, Any]:
        sizes = [p.numel() for p in self.parameters]
        return dict(zip(self._named, theta.split(sizes, dim=-1), strict=True))

    def _names_of(self, layers: tuple[str, ...] | None) -> list[str]:
        if layers is None:
            return list(self._named)
        prefixes = tuple(f"{layer}." if layer else "" for layer in layers)
        for layer, prefix in zip(layers, prefixes, strict=True):
            if not any(name.startswith(prefix) for name in self._named):
                raise InputError(
                    f"there is no layer {layer!r} with weights to train",
                    expected=f"some of {', '.join(sorted({name.rpartition('.')[0] for name in self._named}))}",
                )
        return [name for name in self._named if name.startswith(prefixes)]


def checked_batch(batch: Any, device: Any) -> Batch:
    """Return inputs and targets on the model's device, or say what is wrong with them."""
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        raise InputError(
            f"a batch is a {type(batch).__name__}",
            expected="a pair (inputs, targets); inputs may be a tuple of tensors",
        )
    inputs, targets = batch
    parts = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    if not parts or not all(isinstance(part, torch.Tensor) and part.ndim for part in (*parts, targets)):
        raise InputError("a batch holds something that is no tensor of rows", expected="tensors, examples first")
    lengths = {len(part) for part in (*parts, targets)}
    if len(lengths) > 1 or lengths == {0}:
        raise InputError(
            f"inputs and targets have {sorted(lengths)} rows", expected="the same number of each, one or more"
        )
    for part in (*parts, targets):
        if part.is_floating_point() and not bool(torch.isfinite(part).all()):
            raise InputError("a batch holds NaN or infinity", expected="finite numbers")
    return tuple(part.detach().to(device) for part in parts), targets.detach().to(device)


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Run the block with the model in evaluation mode and attention that can be differentiated twice."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            yield
    finally:
        for module, mode in modes:
            module.training = mode
