"""Gradients of linear layers, projected before they are formed.

The gradient of a linear layer's weight is the sum over places of an outer product b a': b the gradient at its output,
a its input (with a one for the bias). With random matrices P_b and P_a, that of P_b b and P_a a is the gradient under
the Kronecker product of the two, and is all that is ever formed. Importing this module needs PyTorch.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError, require
from aboveboard.explanation.data_value_embedding._losses import Batch, Losses, evaluating

torch: Any = require("torch", extra="torch", feature="DataValueEmbedding")

__all__ = ["ProjectedLayers", "linear_layers"]

Floats = NDArray[np.float64]


def linear_layers(model: Any, layers: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the names of the linear layers to follow, or say which cannot be."""
    modules = dict(model.named_modules())
    names = tuple(name for name, module in modules.items() if _plain(module)) if layers is None else layers
    for name in names:
        if name not in modules or not _plain(modules[name]):
            kind = type(modules[name]).__name__ if name in modules else "nothing"
            raise InputError(f"{name!r} is {kind}", expected="linear layers with weights to train, for a projection")
    if not names:
        raise InputError("the model has no linear layer to train", remedy="Leave out the projection")
    return names


@dataclass(frozen=True)
class ProjectedLayers:
    """Linear layers, each with two random matrices, or none where the layer is not wider than the projection.

    `into` and `out` have one entry per layer: shape (k_in, a) and (k_out, b), or None.
    """

    losses: Losses
    names: tuple[str, ...]
    into: tuple[Any, ...]
    out: tuple[Any, ...]

    @classmethod
    def drawn(
        cls, losses: Losses, names: tuple[str, ...], sizes: tuple[int, int], rng: np.random.Generator
    ) -> "ProjectedLayers":
        """Draw Gaussian matrices with E[P'P] = I, so that products of gradients keep their expectation."""
        matrices: list[Floats | None] = []
        for name in names:
            layer = losses.model.get_submodule(name)
            wide = layer.in_features + (layer.bias is not None)
            matrices += [_gaussian(k, n, rng) for k, n in zip(sizes, (wide, layer.out_features))]
        return cls.of(losses, names, matrices)

    @classmethod
    def of(cls, losses: Losses, names: tuple[str, ...], matrices: list[Floats | None]) -> "ProjectedLayers":
        """Take given matrices, two per layer."""
        tensors = [
            None if m is None else torch.as_tensor(m).to(device=losses.device, dtype=losses.dtype) for m in matrices
        ]
        return cls(losses, names, tuple(tensors[::2]), tuple(tensors[1::2]))

    @property
    def matrices(self) -> list[Floats | None]:
        """Two per layer, as `of` takes them."""
        pairs = zip(self.into, self.out, strict=True)
        return [None if part is None else part.cpu().double().numpy() for pair in pairs for part in pair]

    @property
    def blocks(self) -> list[slice]:
        """Where each layer's numbers lie in a row."""
        ends = np.cumsum([a * b for a, b in map(self._shape, range(len(self.names)))]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends)]

    @property
    def size(self) -> int:
        """Length of a row."""
        return int(self.blocks[-1].stop)

    def gradients(self, theta: Any, batch: Batch) -> Any:
        """Return each example's projected gradient, shape (B, size)."""
        inputs, targets = batch
        seen: list[list[tuple[Any, Any]]] = [[] for _ in self.names]
        handles = [
            self.losses.model.get_submodule(name).register_forward_hook(_remember(calls))
            for name, calls in zip(self.names, seen, strict=True)
        ]
        weights = {name: part.detach().requires_grad_() for name, part in self.losses.unpacked(theta).items()}
        try:
            with evaluating(self.losses.model):
                outputs = torch.func.functional_call(self.losses.model, weights, inputs)
        finally:
            for handle in handles:
                handle.remove()
        for name, calls in zip(self.names, seen, strict=True):
            if not calls:
                raise InputError(f"the model does not use its layer {name!r}", remedy="Leave it out of layers")
        total = torch.func.vmap(self.losses.per_row)(outputs, targets).sum()
        slopes = iter(torch.autograd.grad(total, [output for calls in seen for _, output in calls]))
        rows = []
        for number, calls in enumerate(seen):
            row: Any = 0.0
            for a, _ in calls:
                row = row + self._outer(number, a, next(slopes))
            rows.append(row.flatten(1))
        return torch.cat(rows, dim=1)

    def _outer(self, number: int, a: Any, b: Any) -> Any:
        a, b = a.reshape(len(a), -1, a.shape[-1]), b.reshape(len(b), -1, b.shape[-1])
        if self.losses.model.get_submodule(self.names[number]).bias is not None:
            a = torch.cat([a, torch.ones_like(a[..., :1])], dim=-1)
        into, out = self.into[number], self.out[number]
        a, b = (x if matrix is None else x @ matrix.T for x, matrix in ((a, into), (b, out)))
        return torch.einsum("nlb,nla->nba", b, a)

    def _shape(self, number: int) -> tuple[int, int]:
        layer = self.losses.model.get_submodule(self.names[number])
        into, out = self.into[number], self.out[number]
        wide = layer.in_features + (layer.bias is not None) if into is None else len(into)
        return wide, layer.out_features if out is None else len(out)


def _plain(module: Any) -> bool:
    return isinstance(module, torch.nn.Linear) and all(p.requires_grad for p in module.parameters())


def _gaussian(k: int, n: int, rng: np.random.Generator) -> Floats | None:
    return None if k >= n else rng.standard_normal((k, n)) / np.sqrt(k)


def _remember(calls: list[tuple[Any, Any]]) -> Any:
    def hook(_layer: Any, inputs: Any, output: Any) -> Any:
        calls.append((inputs[0].detach(), output))
        return output.clone()  # what follows may change its input in place

    return hook
