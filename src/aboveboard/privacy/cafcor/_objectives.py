"""What is trained: losses whose gradient can be taken, and clipped, for each example by itself."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from aboveboard.core import InputError, require
from aboveboard.privacy._rdp.checked import checked_whole

__all__ = ["ModuleObjective", "Objective", "SoftmaxRegression", "objective_of"]

Floats = NDArray[np.float64]


class Objective(Protocol):
    """A loss of parameters on examples."""

    @property
    def dimension(self) -> int:
        """Number of parameters."""

    def initial(self) -> Floats:
        """Return the parameters that training starts from."""

    def check(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the examples of a client as arrays, or refuse them."""

    def clipped_sum(self, parameters: Floats, X: Any, y: Any, clip: float) -> Floats:
        """Return the sum of the examples' gradients, each shortened to the norm `clip`."""

    def decision(self, parameters: Floats, X: Any) -> Floats:
        """Return one score per example and class."""


class SoftmaxRegression:
    """Multinomial logistic regression with an intercept, started from 0.

    Parameters
    ----------
    n_features, n_classes : int

    Notes
    -----
    The gradient of an example is an outer product, (x, 1) (p - e_y)^T, so that its norm is the product of two norms and
    no gradient of a single example is ever formed. Cost: O(b n_features n_classes) for b examples.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.privacy import SoftmaxRegression
    >>> objective = SoftmaxRegression(n_features=3, n_classes=2)
    >>> objective.clipped_sum(objective.initial(), np.ones((5, 3)), np.zeros(5, dtype=int), clip=1.0).shape
    (8,)
    """

    def __init__(self, n_features: int, n_classes: int) -> None:
        self.n_features = checked_whole(n_features, "n_features")
        self.n_classes = checked_whole(n_classes, "n_classes", 2)

    @property
    def dimension(self) -> int:
        return (self.n_features + 1) * self.n_classes

    def initial(self) -> Floats:
        return np.zeros(self.dimension)

    def check(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return features (as they are where they are float32, else float64) and labels from 0 to n_classes - 1."""
        X, y = _arrays(X, y)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise InputError(f"features of shape {X.shape}", expected=f"{self.n_features} columns")
        if len(y) and not (np.issubdtype(y.dtype, np.integer) and set(np.unique(y)) <= set(range(self.n_classes))):
            raise InputError("labels that are no classes", expected=f"whole numbers from 0 to {self.n_classes - 1}")
        return X, y

    def clipped_sum(self, parameters: Floats, X: Any, y: Any, clip: float) -> Floats:
        errors = softmax(self.decision(parameters, X), axis=1)
        errors[np.arange(len(y)), y] -= 1.0
        norms = np.sqrt((np.einsum("ij,ij->i", X, X) + 1.0) * np.einsum("ij,ij->i", errors, errors))
        errors *= (clip / np.maximum(norms, clip))[:, None]
        gradient = np.vstack([X.T @ errors, errors.sum(axis=0)])
        return np.asarray(gradient.ravel(), dtype=np.float64)

    def decision(self, parameters: Floats, X: Any) -> Any:
        table = parameters.reshape(self.n_features + 1, self.n_classes).astype(X.dtype)
        return X @ table[:-1] + table[-1]


class ModuleObjective:
    """A PyTorch module with the log loss, or another; its gradients come from `torch.func`.

    Parameters
    ----------
    module : torch.nn.Module
        From a batch of examples to scores. It is not changed, and has no buffers that training updates.
    loss : callable, optional
        Takes the scores of one example and its label, with a leading axis of length 1, and returns a number. Default:
        `torch.nn.functional.cross_entropy`.
    chunk : int, optional
        How many examples' gradients are held at once; default 64.

    Raises
    ------
    aboveboard.core.MissingExtra
        Without PyTorch (extra ``torch``).

    Notes
    -----
    Cost: memory of `chunk` times the number of parameters.
    """

    def __init__(self, module: Any, loss: Any = None, *, chunk: int = 64) -> None:
        torch: Any = require("torch", extra="torch", feature="ModuleObjective")
        if any(isinstance(part, torch.nn.modules.batchnorm._BatchNorm) for part in module.modules()):
            raise InputError(
                "the module has batch normalisation",
                expected="layers that treat each example by itself",
                remedy="Use GroupNorm or LayerNorm: with BatchNorm no gradient belongs to one example",
            )
        self._torch, self._module, self._loss = torch, module, loss or torch.nn.functional.cross_entropy
        self._chunk = checked_whole(chunk, "chunk")
        trained = {name: value for name, value in module.named_parameters() if value.requires_grad}
        self._shapes = {name: value.shape for name, value in trained.items()}
        first = next(iter(trained.values()))
        self._like = {"dtype": first.dtype, "device": first.device}
        self._gradients = torch.func.vmap(
            torch.func.grad(self._loss_of_one), in_dims=(None, 0, 0), randomness="different"
        )

    @property
    def dimension(self) -> int:
        return sum(shape.numel() for shape in self._shapes.values())

    def initial(self) -> Floats:
        own = dict(self._module.named_parameters())
        return self._flat({name: own[name].detach() for name in self._shapes})

    def check(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return features of the module's precision and labels, on its device."""
        X, y = _arrays(X, y)
        return self._torch.as_tensor(X, **self._like), self._torch.as_tensor(y, device=self._like["device"])

    def clipped_sum(self, parameters: Floats, X: Any, y: Any, clip: float) -> Floats:
        named = self._named(parameters)
        total = np.zeros(self.dimension)
        for start in range(0, len(y), self._chunk):
            part = slice(start, start + self._chunk)
            gradients = self._gradients(named, X[part], y[part])
            flat = self._torch.cat([gradients[name].flatten(1) for name in self._shapes], dim=1)
            shares = clip / flat.norm(dim=1).clamp(min=clip)
            total += (shares @ flat).double().cpu().numpy()
        return total

    def decision(self, parameters: Floats, X: Any) -> Floats:
        inputs = self._torch.as_tensor(X, **self._like)
        with self._torch.no_grad():
            scores = self._torch.func.functional_call(self._module, self._named(parameters), (inputs,))
        return np.asarray(scores.double().cpu().numpy())

    def module(self, parameters: Floats) -> Any:
        """Return a copy of the module with these parameters."""
        from copy import deepcopy

        copied = deepcopy(self._module)
        copied.load_state_dict(self._named(parameters), strict=False)
        return copied

    def _loss_of_one(self, named: Any, x: Any, label: Any) -> Any:
        scores = self._torch.func.functional_call(self._module, named, (x.unsqueeze(0),))
        return self._loss(scores, label.unsqueeze(0))

    def _named(self, parameters: Floats) -> dict[str, Any]:
        flat = self._torch.as_tensor(parameters, **self._like)
        parts = flat.split([shape.numel() for shape in self._shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self._shapes.items(), parts, strict=True)}

    def _flat(self, named: dict[str, Any]) -> Floats:
        return np.concatenate([value.double().cpu().numpy().ravel() for value in named.values()])


def objective_of(model: Any) -> Any:
    """Return an objective for what a user gave: one already, or a PyTorch module."""
    if all(hasattr(model, name) for name in ("dimension", "initial", "check", "clipped_sum", "decision")):
        return model
    if hasattr(model, "named_parameters"):
        return ModuleObjective(model)
    raise InputError(
        f"the model is {model!r}", expected="a SoftmaxRegression, a torch.nn.Module, or an object like ModuleObjective"
    )


def _arrays(X: Any, y: Any) -> tuple[Any, Any]:
    X, y = (np.asarray(part.detach().cpu().numpy() if hasattr(part, "detach") else part) for part in (X, y))
    if not np.issubdtype(X.dtype, np.floating):
        X = X.astype(np.float64)
    if X.ndim < 2 or y.shape != (len(X),):
        raise InputError(
            f"examples of shape {X.shape} with labels of shape {y.shape}", expected="one label per example"
        )
    if not np.isfinite(X).all():
        raise InputError("some features are missing or infinite", expected="finite numbers")
    return X, y
