"""A bottleneck of PyTorch modules: any concept predictor, and a linear label layer.

Everything is computed in float64 and in evaluation mode, on the device that the modules are on. Only parameters that
require gradients are edited; they form one block of curvature. Importing this module needs PyTorch.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.core import InputError, require
from aboveboard.unlearning.editable_cbm._backends import class_codes
from aboveboard.unlearning.editable_cbm._curvature import Floats, KroneckerLayer
from aboveboard.unlearning.editable_cbm._linear import Fitted, LabelLayer, LinearConcepts, minimise, with_ones

torch: Any = require("torch", extra="torch", feature="EditableCBM of a pair of modules")

__all__ = ["TorchBackend", "TorchConcepts"]

_COLUMNS = 128


@dataclass(frozen=True)
class TorchConcepts:
    """A module that gives one logit per concept, under the binary cross-entropy summed over labels that are known.

    Parameters are an array of shape (1, p): those of the module that require gradients, in its own order. The methods
    are those of `LinearConcepts`.
    """

    exact_up_to: ClassVar[int] = 500

    module: Any
    names: tuple[str, ...]
    l2: float
    damping: float
    batch_size: int

    def outputs(self, theta: Floats, design: Any) -> Floats:
        """Return the concepts' probabilities, shape (n, k); O(n) forward passes."""
        parameters = self.unpacked(theta)
        with torch.no_grad():
            parts = [torch.sigmoid(self._logits(parameters, rows)) for rows in design.split(self.batch_size)]
        found: Floats = torch.cat(parts).cpu().numpy().copy()
        return found

    def gradient(self, theta: Floats, design: Any, outputs: Floats, concepts: Floats) -> Floats:  # noqa: ARG002
        """Return the gradient of the regularised sum, shape (1, p)."""
        return self._value_and_gradient(theta, design, concepts)[1]

    def hessian(self, theta: Floats, design: Any, outputs: Floats, concepts: Floats, block: int) -> Floats:  # noqa: ARG002
        """Return the Hessian of the sum without the ridge, shape (p, p); p backward passes over the rows."""
        size = theta.size
        total = np.zeros((size, size))
        for flat, parameters in self._first_derivatives(theta, design, concepts):
            for start in range(0, size, _COLUMNS):
                columns = torch.eye(size, dtype=flat.dtype, device=flat.device)[start : start + _COLUMNS]
                rows = torch.autograd.grad(
                    flat, parameters, columns, retain_graph=True, is_grads_batched=True, materialize_grads=True
                )
                stacked = torch.cat([row.reshape(len(columns), -1) for row in rows], dim=1)
                total[start : start + _COLUMNS] += stacked.cpu().numpy()
        return (total + total.T) / 2

    def operator(
        self,
        theta: Floats,
        design: Any,
        outputs: Floats,  # noqa: ARG002
        concepts: Floats,
    ) -> Callable[[Floats], Floats]:
        """Return the product of the Hessian with a flat vector, ridge and damping included: two backward passes."""

        def product(vector: Floats) -> Floats:
            image = (self.l2 + self.damping) * vector
            for flat, parameters in self._first_derivatives(theta, design, concepts):
                along = torch.as_tensor(vector, dtype=flat.dtype, device=flat.device)
                image = image + _flat(torch.autograd.grad(flat @ along, parameters, materialize_grads=True))
            return image

        return product

    def kronecker_step(
        self,
        theta: Floats,
        design: Any,
        outputs: Floats,  # noqa: ARG002
        concepts: Floats,
        vector: Floats,
    ) -> Floats:
        """Return H^{-1} V by EK-FAC over the module's linear and convolution layers.

        Labels are not sampled from the model: their expectation is taken, concept by concept, which costs k backward
        passes over the rows, twice.
        """
        layers = self._kronecker_layers()
        inputs: dict[str, Any] = dict.fromkeys(layers, 0.0)
        outer: dict[str, Any] = dict.fromkeys(layers, 0.0)
        for name, first, gradients in self._layer_gradients(theta, design, concepts, layers):
            inputs[name] = inputs[name] + torch.einsum("nla,nlb->ab", first, first)
            outer[name] = outer[name] + torch.einsum("knls,knlt->st", gradients, gradients)
        axes = {name: (_eigenvectors(inputs[name]), _eigenvectors(outer[name])) for name in layers}
        curvature: dict[str, Any] = dict.fromkeys(layers, 0.0)
        for name, first, gradients in self._layer_gradients(theta, design, concepts, layers):
            turned_in, turned_out = axes[name]
            rows = torch.einsum("knls,nla->knsa", gradients @ turned_out, first @ turned_in)
            curvature[name] = curvature[name] + rows.square().sum(dim=(0, 1))
        step = np.zeros(vector.size)
        places = self._places()
        for name, (turned_in, turned_out) in axes.items():
            layer = KroneckerLayer(*(item.cpu().numpy() for item in (turned_in, turned_out, curvature[name])))
            own = [places[f"{name}.{kind}" if name else kind] for kind in layers[name]]
            matrix = np.column_stack([vector.ravel()[place].reshape(len(layer.outputs), -1) for place in own])
            solved = layer.solve(matrix, self.l2 + self.damping)
            step[own[0]] = solved[:, : solved.shape[1] - (len(own) - 1)].ravel()
            if len(own) == 2:
                step[own[1]] = solved[:, -1]
        return step.reshape(vector.shape)

    def blocks_of(self, concepts: NDArray[np.intp]) -> list[int]:
        """Return the one block: concepts share parameters."""
        return [0] if len(concepts) else []

    def updated(self, theta: Floats, design: Any, outputs: Floats, blocks: list[int]) -> Floats:
        """Return the outputs after the parameters changed."""
        return self.outputs(theta, design) if blocks else outputs.copy()

    def fit(self, design: Any, concepts: Floats, start: Floats, tol: float, max_iter: int) -> Fitted:
        """Minimise the regularised sum with L-BFGS, to the optimum (a local one, unless convex) near `start`."""

        def objective(flat: Floats) -> tuple[float, Floats]:
            value, gradient = self._value_and_gradient(flat[None, :], design, concepts)
            return value, gradient.ravel()

        theta, steps, converged = minimise(objective, start.ravel(), len(design), tol, max_iter)
        return Fitted(theta[None, :], steps, converged)

    def packed(self) -> Floats:
        """Return the module's own parameters, shape (1, p)."""
        named = dict(self.module.named_parameters())
        return _flat([named[name] for name in self.names])[None, :]

    def unpacked(self, theta: Floats) -> dict[str, Any]:
        """Return tensors by parameter name."""
        named = dict(self.module.named_parameters())
        places = self._places()
        return {
            name: torch.as_tensor(theta.ravel()[places[name]], dtype=named[name].dtype, device=named[name].device)
            .reshape(named[name].shape)
            .clone()
            for name in self.names
        }

    def _places(self) -> dict[str, slice]:
        named, start, places = dict(self.module.named_parameters()), 0, {}
        for name in self.names:
            places[name] = slice(start, start + named[name].numel())
            start += named[name].numel()
        return places

    def _logits(self, parameters: dict[str, Any], rows: Any) -> Any:
        device = next(iter(parameters.values())).device
        return torch.func.functional_call(self.module, parameters, (rows.to(device=device, dtype=torch.float64),))

    def _batches(self, design: Any, concepts: Floats) -> Iterator[tuple[Any, Any, Any]]:
        """Yield inputs, labels with 0 for missing ones, and whether each label is known (1.0 or 0.0)."""
        targets = torch.as_tensor(np.nan_to_num(concepts, nan=0.0))
        known = torch.as_tensor((~np.isnan(concepts)).astype(np.float64))
        yield from zip(*(part.split(self.batch_size) for part in (design, targets, known)), strict=True)

    def _loss(self, parameters: dict[str, Any], rows: Any, target: Any, known: Any) -> Any:
        logits = self._logits(parameters, rows)
        target, known = target.to(logits.device), known.to(logits.device)
        return torch.nn.functional.binary_cross_entropy_with_logits(logits, target, known, reduction="sum")

    def _value_and_gradient(self, theta: Floats, design: Any, concepts: Floats) -> tuple[float, Floats]:
        parameters = _requiring_gradients(self.unpacked(theta))
        value, gradient = 0.5 * self.l2 * float(np.square(theta).sum()), self.l2 * theta.ravel()
        for rows, target, known in self._batches(design, concepts):
            loss = self._loss(parameters, rows, target, known)
            value += float(loss.detach())
            found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
            gradient = gradient + _flat(found)
        return value, gradient[None, :]

    def _first_derivatives(self, theta: Floats, design: Any, concepts: Floats) -> Iterator[tuple[Any, list[Any]]]:
        """Yield each batch's gradient as one differentiable vector, with the parameters to differentiate it by."""
        for batch in self._batches(design, concepts):
            parameters = _requiring_gradients(self.unpacked(theta))
            tensors = list(parameters.values())
            first = torch.autograd.grad(
                self._loss(parameters, *batch), tensors, create_graph=True, allow_unused=True, materialize_grads=True
            )
            yield torch.cat([part.reshape(-1) for part in first]), tensors

    def _kronecker_layers(self) -> dict[str, list[str]]:
        """Return the layers to edit and which of their parameters (weight, bias) are edited."""
        layers: dict[str, list[str]] = {}
        for name in self.names:
            layer_name, _, kind = name.rpartition(".")
            layer = self.module.get_submodule(layer_name)
            covered = isinstance(layer, torch.nn.Linear) or (
                isinstance(layer, torch.nn.Conv2d) and layer.groups == 1 and layer.padding_mode == "zeros"
            )
            if not covered or isinstance(layer.padding if hasattr(layer, "padding") else 0, str):
                raise InputError(
                    f"solver='ekfac' does not cover {name!r} of a {type(layer).__name__}",
                    expected="Linear and plain Conv2d layers",
                    remedy="Freeze it, or choose solver='cg'",
                )
            layers.setdefault(layer_name, []).append(kind)
        for layer_name, kinds in layers.items():
            kinds.sort(reverse=True)
            if kinds == ["bias"]:
                raise InputError(
                    f"solver='ekfac' needs the weight of {layer_name!r} where its bias is edited",
                    remedy="Freeze both or neither",
                )
        return layers

    def _layer_gradients(
        self, theta: Floats, design: Any, concepts: Floats, layers: dict[str, list[str]]
    ) -> Iterator[tuple[str, Any, Any]]:
        """Yield each layer's inputs (n, l, a), and the weighted gradients at its output (k, n, l, s), by batch.

        Concept j's gradient is that of its logit times sqrt(p (1 - p)): the outer products of these add up to the
        expectation over labels drawn from the model. l counts the places at which a convolution looks.
        """
        for rows, _, known in self._batches(design, concepts):
            parameters = _requiring_gradients(self.unpacked(theta))
            seen: dict[str, tuple[Any, Any]] = {}
            hooks = [self.module.get_submodule(name).register_forward_hook(_remember(seen, name)) for name in layers]
            try:
                logits = self._logits(parameters, rows)
            finally:
                for hook in hooks:
                    hook.remove()
            chances = torch.sigmoid(logits.detach())
            weights = (chances * (1 - chances) * known.to(logits.device)).sqrt()
            names = list(seen)
            found: dict[str, list[Any]] = {name: [] for name in names}
            for concept in range(logits.shape[1]):
                gradients = torch.autograd.grad(
                    logits[:, concept] @ weights[:, concept],
                    [seen[name][1] for name in names],
                    retain_graph=True,
                    allow_unused=True,
                    materialize_grads=True,
                )
                for name, gradient in zip(names, gradients, strict=True):
                    found[name].append(_by_place(gradient))
            for name in names:
                layer = self.module.get_submodule(name)
                yield name, _layer_inputs(layer, seen[name][0], "bias" in layers[name]), torch.stack(found[name])


class TorchBackend:
    """A pair of modules: concepts from inputs, and a linear layer from concepts to classes."""

    keeps_blocks = False

    def __init__(self, g: Any, f: Any, part: TorchConcepts, top: LabelLayer, names: list[str]) -> None:
        self._g, self._f = g, f
        self.part, self.top, self.names = part, top, names
        self.classes: NDArray[Any] = np.arange(f.out_features)
        self.tol, self.max_iter = 1e-6, 1000
        self.model: Any = (g, f)

    @classmethod
    def of(cls, g: Any, f: Any, l2: tuple[float, float], damping: float, batch_size: int) -> "TorchBackend":
        """Copy the modules to float64 and evaluation mode."""
        if not isinstance(g, torch.nn.Module):
            raise InputError(f"g is a {type(g).__name__}", expected="a torch.nn.Module from inputs to concept logits")
        if not isinstance(f, torch.nn.Linear) or f.bias is None:
            raise InputError(
                f"the label layer is a {type(f).__name__}"
                + (" without a bias" if isinstance(f, torch.nn.Linear) else ""),
                expected="a torch.nn.Linear with a bias: edits of other label layers are not derived",
            )
        if f.out_features < 2:
            raise InputError("the label layer has one output", expected="one logit per class, two or more")
        if not isinstance(batch_size, int) or batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}", expected="a whole number of at least 1")
        g, f = deepcopy(g).double().eval(), deepcopy(f).double().eval()
        part = _concepts(g, l2[0], damping, batch_size)
        names = [f"concept{j}" for j in range(f.in_features)]
        return cls(g, f, part, LabelLayer("log_loss", l2[1], damping), names)

    def read(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        top = np.column_stack([_array(self._f.weight), _array(self._f.bias)])
        return self.part.packed(), top, np.ones(self._f.in_features, dtype=bool)

    def write(self, theta: Floats, top: Floats, active: NDArray[np.bool_]) -> None:  # noqa: ARG002
        named = dict(self._g.named_parameters())
        with torch.no_grad():
            for name, tensor in self.part.unpacked(theta).items():
                named[name].copy_(tensor)
            self._f.weight.copy_(torch.as_tensor(top[:, :-1]))
            self._f.bias.copy_(torch.as_tensor(top[:, -1]))

    def prepare(self, X: Any) -> Any:
        try:
            inputs = X.detach() if isinstance(X, torch.Tensor) else torch.as_tensor(np.asarray(X))
        except (TypeError, ValueError) as error:
            raise InputError(f"X cannot be made a tensor ({error})", expected="a tensor or an array") from error
        if inputs.ndim < 2 or not len(inputs):
            raise InputError(f"X has shape {tuple(inputs.shape)}", expected="one or more rows of inputs")
        if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
            raise InputError("X holds NaN or infinity", expected="finite inputs")
        with torch.no_grad():
            logits = self.part._logits(self.part.unpacked(self.part.packed()), inputs[:1])
        if logits.shape != (1, len(self.names)):
            raise InputError(
                f"g gives shape {tuple(logits.shape)} for one row", expected=f"(1, {len(self.names)}), what f takes"
            )
        return inputs

    def select(self, design: Any, mask: NDArray[np.bool_]) -> Any:
        return design[torch.as_tensor(mask, device=design.device)]

    def append(self, design: Any, more: Any) -> Any:
        return torch.cat([design, more.to(dtype=design.dtype, device=design.device)])

    def codes(self, y: ArrayLike, n_rows: int) -> NDArray[np.intp]:
        return class_codes(y.cpu().numpy() if isinstance(y, torch.Tensor) else y, self.classes, n_rows)

    def extended(
        self,
        theta: Floats,  # noqa: ARG002 -- the modules have them
        design: Any,
        new: Floats,
        names: list[str],
    ) -> "tuple[TorchBackend, Floats, Any]":
        g, f = deepcopy(self._g), self._f
        sequence = g if isinstance(g, torch.nn.Sequential) else torch.nn.Sequential(g)
        last = sequence[-1] if len(sequence) else None
        if not isinstance(last, torch.nn.Linear) or not all(p is not None and p.requires_grad for p in _pair(last)):
            raise InputError(
                "concepts cannot be added to this concept predictor",
                expected="a Linear layer, or a Sequential that ends in one, unfrozen and with a bias",
            )
        q = new.shape[1]
        batches = design.split(self.part.batch_size)
        with torch.no_grad():
            body = [sequence[:-1](rows.to(device=last.weight.device, dtype=torch.float64)) for rows in batches]
        features = with_ones(_array(torch.cat(body)))
        start = np.zeros((q, features.shape[1]))
        heads = LinearConcepts("log_loss", self.part.l2).fit(features, new, start, self.tol, self.max_iter).theta
        wider = torch.nn.Linear(last.in_features, last.out_features + q).to(last.weight)
        label = torch.nn.Linear(f.in_features + q, f.out_features).to(f.weight)
        with torch.no_grad():
            wider.weight.copy_(torch.cat([last.weight, torch.as_tensor(heads[:, :-1]).to(last.weight)]))
            wider.bias.copy_(torch.cat([last.bias, torch.as_tensor(heads[:, -1]).to(last.weight)]))
        sequence[-1] = wider
        g = sequence if sequence is g else wider
        part = _concepts(g, self.part.l2, self.part.damping, self.part.batch_size)
        return TorchBackend(g, label, part, self.top, [*self.names, *names]), part.packed(), design

    def extended_start(self, origin: Floats, current: Floats) -> Floats:
        """Return the earlier parameters with the current rows of the last layer for concepts added since.

        The last layer's weight and bias are the last of the parameters, in this order.
        """
        if origin.size == current.size:
            return origin
        last = self._g[-1] if isinstance(self._g, torch.nn.Sequential) else self._g
        body = current.size - last.weight.numel() - last.out_features
        added = (current.size - origin.size) // (last.in_features + 1)
        old_weight, old_bias = np.split(origin.ravel()[body:], [last.weight.numel() - added * last.in_features])
        new_weight, new_bias = np.split(current.ravel()[body:], [last.weight.numel()])
        weight, bias = new_weight[len(old_weight) :], new_bias[len(old_bias) :]
        return np.concatenate([origin.ravel()[:body], old_weight, weight, old_bias, bias])[None, :]


def _concepts(g: Any, l2: float, damping: float, batch_size: int) -> TorchConcepts:
    names = tuple(name for name, parameter in g.named_parameters() if parameter.requires_grad)
    if not names:
        raise InputError("no parameter of g requires a gradient", expected="at least the last layer to be editable")
    return TorchConcepts(g, names, l2, damping, batch_size)


def _pair(layer: Any) -> tuple[Any, Any]:
    return layer.weight, layer.bias


def _requiring_gradients(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: tensor.requires_grad_(True) for name, tensor in parameters.items()}


def _flat(tensors: Any) -> Floats:
    flat: Floats = torch.cat([tensor.detach().reshape(-1) for tensor in tensors]).cpu().double().numpy()
    return flat


def _array(tensor: Any) -> Floats:
    array: Floats = tensor.detach().cpu().numpy()
    return array


def _eigenvectors(matrix: Any) -> Any:
    return torch.linalg.eigh(matrix).eigenvectors


def _remember(seen: dict[str, tuple[Any, Any]], name: str) -> Callable[[Any, Any, Any], None]:
    def hook(_layer: Any, inputs: Any, output: Any) -> None:
        if name in seen:
            raise InputError(f"g uses the layer {name!r} twice", remedy="Choose solver='cg'")
        seen[name] = (inputs[0].detach(), output)

    return hook


def _by_place(gradient: Any) -> Any:
    """Return gradients of shape (n, l, s): l is 1 for a linear layer on rows, and pixels for a convolution."""
    if gradient.ndim == 4:
        return gradient.flatten(2).transpose(1, 2)
    return gradient.reshape(len(gradient), -1, gradient.shape[-1])


def _layer_inputs(layer: Any, inputs: Any, with_bias: bool) -> Any:
    """Return a layer's inputs of shape (n, l, a), with a one appended where its bias is edited."""
    if isinstance(layer, torch.nn.Conv2d):
        patches = torch.nn.functional.unfold(inputs, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        rows = patches.transpose(1, 2)
    else:
        rows = inputs.reshape(len(inputs), -1, inputs.shape[-1])
    return torch.cat([rows, torch.ones_like(rows[..., :1])], dim=-1) if with_bias else rows
