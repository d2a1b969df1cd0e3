"""Publish only the final weights, and pay only for them: accounting for Noisy-(S)GD.

For whoever trains with noisy gradients, shows nothing but the last iterate, and is charged by the usual accounting for
every iterate, so that epsilon grows with the steps. `HiddenStateAccountant` gives the smaller epsilon that is true
then, for strongly convex, convex, non-convex and Hölder-smooth losses; `NoisySGDClassifier` trains by it.

References
----------
E. Chien, P. Li, "Convergent Privacy Loss of Noisy-SGD without Convexity and Smoothness", ICLR 2025.
https://arxiv.org/abs/2410.01068
"""

from aboveboard.privacy.hidden_state_noisy_sgd._accountant import HiddenStateAccountant, LastIterateBound
from aboveboard.privacy.hidden_state_noisy_sgd._losses import (
    ConvexSmoothLoss,
    HolderLoss,
    SmoothLoss,
    StronglyConvexLoss,
)

__all__ = [
    "ConvexSmoothLoss",
    "HiddenStateAccountant",
    "HolderLoss",
    "LastIterateBound",
    "SmoothLoss",
    "StronglyConvexLoss",
]
