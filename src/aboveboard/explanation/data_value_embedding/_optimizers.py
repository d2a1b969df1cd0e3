"""One step of an optimiser, as a function of flat vectors, and as the linear map that its derivative is.

With d the gradient of the step, weight decay included, m the momentum and v the mean square, every step has the form

    m' = mu m + kappa d,    v' = nu v + (1 - nu) d^2,    theta' = shrink theta - direct d - f(m', v'),

with f = gain m' for SGD, where v plays no part, and f = A m' / (sqrt(v' / c) + eps) for Adam.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from aboveboard.core import InputError

__all__ = ["Optimizer", "State", "StepMap"]


@dataclass(frozen=True)
class StepMap:
    """Derivatives of one step: `gain` is that of f by m', `square_gain` that by v', and `slope` that of v' by d.

    `decay` is the part of weight decay that belongs to d. `gain`, `square_gain` and `slope` are vectors for Adam; the
    last two are None for SGD.
    """

    direct: float
    gain: Any
    mu: float
    kappa: float
    shrink: float
    decay: float
    nu: float = 0.0
    square_gain: Any = None
    slope: Any = None


@dataclass(frozen=True)
class State:
    """What a step starts from: weights, momentum, mean square, all of shape (..., p), and how many steps there were."""

    theta: Any
    momentum: Any
    square: Any
    count: int


@dataclass(frozen=True)
class Optimizer:
    """The options of a `torch.optim` optimiser that a step depends on, besides the learning rate."""

    kind: Literal["sgd", "adam", "adamw"] = "sgd"
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8

    @classmethod
    def of(cls, optimizer: Any) -> "Optimizer":
        """Read the options of SGD, Adam or AdamW, and refuse what the formulas here do not cover."""
        kind = type(optimizer).__name__
        if kind not in ("SGD", "Adam", "AdamW"):
            raise InputError(
                f"the optimiser is {kind}",
                expected="torch.optim.SGD, Adam or AdamW",
                remedy="Train with one of these: the step of another one has another derivative",
            )
        first, *others = optimizer.param_groups
        options = {name: value for name, value in first.items() if name not in ("params", "initial_lr")}
        if any(other.get(name) != value for other in others for name, value in options.items()):
            raise InputError("the optimiser has groups of parameters with different options", expected="one group")
        for name in ("dampening", "maximize", "amsgrad"):
            if options.get(name):
                raise InputError(f"the optimiser has {name}={options[name]!r}", expected=f"{name} off")
        if kind == "SGD":
            return cls("sgd", options["momentum"], options["nesterov"], options["weight_decay"])
        # newer versions of PyTorch spell AdamW as Adam with decoupled decay
        decoupled = kind == "AdamW" or bool(options.get("decoupled_weight_decay"))
        beta1, beta2 = map(float, options["betas"])
        name_here: Literal["adam", "adamw"] = "adamw" if decoupled else "adam"
        return cls(name_here, 0.0, False, options["weight_decay"], beta1, beta2, options["eps"])

    @property
    def moments(self) -> int:
        """How many vectors besides the weights a step depends on."""
        return int(self.momentum > 0) if self.kind == "sgd" else 2

    @property
    def stable_below(self) -> float:
        """Learning rate times curvature from which on a quadratic diverges; infinite where there is no such figure."""
        if self.kind != "sgd":
            return float("inf")
        bound = 2 * (1 + self.momentum)
        return bound / (1 + 2 * self.momentum) if self.nesterov else bound

    def read(self, optimizer: Any, parameters: list[Any], theta: Any) -> State:
        """Return the state in which the optimiser is; its moments lie in its own tensors."""
        nothing = theta.new_zeros(theta.shape)
        if optimizer is None:
            return State(theta, nothing, nothing, 0)

        def moment(name: str) -> Any:
            flat, start = nothing.clone(), 0
            for parameter in parameters:
                part = optimizer.state.get(parameter, {}).get(name)
                if part is not None:
                    flat[start : start + parameter.numel()] = part.detach().reshape(-1)
                start += parameter.numel()
            return flat

        if self.kind == "sgd":
            return State(theta, moment("momentum_buffer"), nothing, 0)
        count = max(int(optimizer.state.get(p, {}).get("step", 0)) for p in parameters)
        return State(theta, moment("exp_avg"), moment("exp_avg_sq"), count)

    def advance(self, state: State, gradient: Any, lr: float) -> State:
        """Take one step from a gradient of the shape of the weights."""
        d = self._with_decay(state, gradient)
        after = self._moved(state, d)
        if self.kind == "sgd":
            used = d + self.momentum * after.momentum if self.nesterov else after.momentum
            return replace(after, theta=state.theta - lr * used)
        shrunk = self._shrink(lr) * state.theta
        return replace(after, theta=shrunk - self._rate(lr, after.count) * after.momentum / self._root(after)[1])

    def vectors(self, state: State, gradient: Any, lr: float) -> tuple[Any, Any, Any]:
        """Return the three vectors of Adam's `step_map`, each of shape (p,)."""
        d = self._with_decay(state, gradient)
        after = self._moved(state, d)
        root, divisor = self._root(after)
        rate, correction = self._rate(lr, after.count), 1 - self.beta2**after.count
        # where the root is 0, no gradient has ever been other than 0, and neither momentum nor step depends on v
        square_gain = -rate * after.momentum / (2 * correction * divisor.square() * root.where(root > 0, 1.0))
        return rate / divisor, square_gain, 2 * (1 - self.beta2) * d

    def step_map(self, lr: float, vectors: tuple[Any, Any, Any] | None) -> StepMap:
        """Return the derivatives of a step; `vectors` is None for SGD."""
        if vectors is None:
            mu = self.momentum
            direct, gain = (lr, lr * mu) if self.nesterov else (0.0, lr)
            return StepMap(direct, gain, mu, 1.0, 1.0, self.weight_decay)
        decay = self.weight_decay if self.kind == "adam" else 0.0
        gain, square_gain, slope = vectors
        return StepMap(0.0, gain, self.beta1, 1 - self.beta1, self._shrink(lr), decay, self.beta2, square_gain, slope)

    def _with_decay(self, state: State, gradient: Any) -> Any:
        return gradient if self.kind == "adamw" else gradient + self.weight_decay * state.theta

    def _moved(self, state: State, d: Any) -> State:
        """Return the state with the moments and the count after the step."""
        if self.kind == "sgd":
            return replace(state, momentum=self.momentum * state.momentum + d, count=state.count + 1)
        momentum = self.beta1 * state.momentum + (1 - self.beta1) * d
        square = self.beta2 * state.square + (1 - self.beta2) * d.square()
        return State(state.theta, momentum, square, state.count + 1)

    def _shrink(self, lr: float) -> float:
        return 1 - lr * self.weight_decay if self.kind == "adamw" else 1.0

    def _rate(self, lr: float, count: int) -> float:
        return lr / (1 - self.beta1**count)

    def _root(self, after: State) -> tuple[Any, Any]:
        root = (after.square / (1 - self.beta2**after.count)).sqrt()
        return root, root + self.eps
