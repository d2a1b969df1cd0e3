"""Privacy: what does a model or a release tell about one person, and how little can it be made to tell?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.privacy.cafcor import (
        Aggregate,
        CafCorClient,
        CafCorClientMod,
        CafCorServer,
        CafCorStrategy,
        CafCorTrainer,
        ClientState,
        FederatedNoise,
        Filtered,
        ModuleObjective,
        Onlooker,
        PairKeys,
        PairwiseNoise,
        Rejected,
        SoftmaxRegression,
        Update,
        caf,
        cafcor_client_app,
        calibrate_federated_noise,
        check_seed_tags,
        clipped_mean,
        coordinate_median,
        geometric_median,
        keys_fingerprint,
        multi_krum,
        seed_tags,
        simulated_seeds,
        trimmed_mean,
    )

__all__ = [
    "Aggregate",
    "CafCorClient",
    "CafCorClientMod",
    "CafCorServer",
    "CafCorStrategy",
    "CafCorTrainer",
    "ClientState",
    "FederatedNoise",
    "Filtered",
    "ModuleObjective",
    "Onlooker",
    "PairKeys",
    "PairwiseNoise",
    "Rejected",
    "SoftmaxRegression",
    "Update",
    "caf",
    "cafcor_client_app",
    "calibrate_federated_noise",
    "check_seed_tags",
    "clipped_mean",
    "coordinate_median",
    "geometric_median",
    "keys_fingerprint",
    "multi_krum",
    "seed_tags",
    "simulated_seeds",
    "trimmed_mean",
]

_MODULES = {
    "Aggregate": "cafcor",
    "CafCorClient": "cafcor",
    "CafCorClientMod": "cafcor",
    "CafCorServer": "cafcor",
    "CafCorStrategy": "cafcor",
    "CafCorTrainer": "cafcor",
    "ClientState": "cafcor",
    "FederatedNoise": "cafcor",
    "Filtered": "cafcor",
    "ModuleObjective": "cafcor",
    "Onlooker": "cafcor",
    "PairKeys": "cafcor",
    "PairwiseNoise": "cafcor",
    "Rejected": "cafcor",
    "SoftmaxRegression": "cafcor",
    "Update": "cafcor",
    "caf": "cafcor",
    "cafcor_client_app": "cafcor",
    "calibrate_federated_noise": "cafcor",
    "check_seed_tags": "cafcor",
    "clipped_mean": "cafcor",
    "coordinate_median": "cafcor",
    "geometric_median": "cafcor",
    "keys_fingerprint": "cafcor",
    "multi_krum": "cafcor",
    "seed_tags": "cafcor",
    "simulated_seeds": "cafcor",
    "trimmed_mean": "cafcor",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
