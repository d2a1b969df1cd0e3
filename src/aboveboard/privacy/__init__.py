"""Privacy: what does a model or a release tell about one person, and how little can it be made to tell?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.privacy._rdp import (
        EpsilonLowerBound,
        RDPCurve,
        epsilon_lower_bound,
        gaussian_delta,
        gaussian_epsilon,
        gaussian_rdp,
        gaussian_sigma,
        laplace_rdp,
        poisson_gaussian_rdp,
        without_replacement_gaussian_rdp,
    )
    from aboveboard.privacy.hidden_state_noisy_sgd import (
        ConvexSmoothLoss,
        HiddenStateAccountant,
        HolderLoss,
        LastIterateBound,
        SmoothLoss,
        StronglyConvexLoss,
    )

__all__ = [
    "ConvexSmoothLoss",
    "EpsilonLowerBound",
    "HiddenStateAccountant",
    "HolderLoss",
    "LastIterateBound",
    "RDPCurve",
    "SmoothLoss",
    "StronglyConvexLoss",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_rdp",
    "gaussian_sigma",
    "laplace_rdp",
    "poisson_gaussian_rdp",
    "without_replacement_gaussian_rdp",
]

_MODULES = {
    "ConvexSmoothLoss": "hidden_state_noisy_sgd",
    "HiddenStateAccountant": "hidden_state_noisy_sgd",
    "HolderLoss": "hidden_state_noisy_sgd",
    "LastIterateBound": "hidden_state_noisy_sgd",
    "SmoothLoss": "hidden_state_noisy_sgd",
    "StronglyConvexLoss": "hidden_state_noisy_sgd",
    "EpsilonLowerBound": "_rdp",
    "RDPCurve": "_rdp",
    "epsilon_lower_bound": "_rdp",
    "gaussian_delta": "_rdp",
    "gaussian_epsilon": "_rdp",
    "gaussian_rdp": "_rdp",
    "gaussian_sigma": "_rdp",
    "laplace_rdp": "_rdp",
    "poisson_gaussian_rdp": "_rdp",
    "without_replacement_gaussian_rdp": "_rdp",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
