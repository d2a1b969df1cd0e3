"""Federated training among clients of whom some lie, under a server that nobody trusts.

Clients clip the gradient of each example, hide them in noise of their own and in noise that each pair of clients shares
and that cancels in the sum, and send a momentum of the result. The server aggregates with a filter that needs no bound
on how far honest clients differ. The noise that is left on the model is close to what a trusted server would add.

References
----------
Y. Allouah, R. Guerraoui, J. Stephan, "Towards Trustworthy Federated Learning with Untrusted Participants", ICML 2025.
https://arxiv.org/abs/2505.01874
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aboveboard.privacy.cafcor._accountant import FederatedNoise, calibrate_federated_noise
from aboveboard.privacy.cafcor._aggregators import (
    Filtered,
    caf,
    coordinate_median,
    geometric_median,
    multi_krum,
    trimmed_mean,
)
from aboveboard.privacy.cafcor._objectives import ModuleObjective, SoftmaxRegression
from aboveboard.privacy.cafcor._protocol import (
    Aggregate,
    CafCorClient,
    CafCorServer,
    ClientState,
    Rejected,
    Update,
    clipped_mean,
)
from aboveboard.privacy.cafcor._seeds import (
    PairKeys,
    PairwiseNoise,
    check_seed_tags,
    keys_fingerprint,
    seed_tags,
    simulated_seeds,
)
from aboveboard.privacy.cafcor._trainer import CafCorTrainer, Onlooker

if TYPE_CHECKING:
    from aboveboard.privacy.cafcor._flower import CafCorClientMod, CafCorStrategy, cafcor_client_app

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

_OF_FLOWER = frozenset({"CafCorClientMod", "CafCorStrategy", "cafcor_client_app"})


def __getattr__(name: str) -> Any:
    if name in _OF_FLOWER:
        return getattr(import_module("aboveboard.privacy.cafcor._flower"), name)
    raise AttributeError(f"module 'aboveboard.privacy.cafcor' has no attribute {name!r}")
