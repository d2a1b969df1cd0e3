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
    from aboveboard.privacy.ldp_cdf import (
        CurrentStatusRandomizer,
        GoodnessOfFit,
        LDPCurrentStatusCDF,
    )
    from aboveboard.privacy.membership import (
        Attack,
        AttackRate,
        attack_rates,
        likelihood_ratio_attack,
        likelihood_ratios,
        membership_audit,
        score_attack,
    )
    from aboveboard.privacy.noisy_sgd import (
        NoisySGDClassifier,
        canary_lower_bound,
    )
    from aboveboard.privacy.objective_perturbation import (
        PrivateMarginals,
        Release,
        Similarity,
        alternate,
        dykstra,
        perturb_and_project,
        private_cosine_similarity,
        private_item_similarity,
        project_elliptope,
        project_psd,
        project_pseudo_moments,
        project_simplex_ball,
    )

__all__ = [
    "Attack",
    "AttackRate",
    "ConvexSmoothLoss",
    "CurrentStatusRandomizer",
    "EpsilonLowerBound",
    "GoodnessOfFit",
    "HiddenStateAccountant",
    "HolderLoss",
    "LDPCurrentStatusCDF",
    "LastIterateBound",
    "NoisySGDClassifier",
    "PrivateMarginals",
    "RDPCurve",
    "Release",
    "Similarity",
    "SmoothLoss",
    "StronglyConvexLoss",
    "alternate",
    "attack_rates",
    "canary_lower_bound",
    "dykstra",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_rdp",
    "gaussian_sigma",
    "laplace_rdp",
    "likelihood_ratio_attack",
    "likelihood_ratios",
    "membership_audit",
    "perturb_and_project",
    "poisson_gaussian_rdp",
    "private_cosine_similarity",
    "private_item_similarity",
    "project_elliptope",
    "project_psd",
    "project_pseudo_moments",
    "project_simplex_ball",
    "score_attack",
    "without_replacement_gaussian_rdp",
]

_MODULES = {
    "Attack": "membership",
    "AttackRate": "membership",
    "ConvexSmoothLoss": "hidden_state_noisy_sgd",
    "CurrentStatusRandomizer": "ldp_cdf",
    "EpsilonLowerBound": "_rdp",
    "GoodnessOfFit": "ldp_cdf",
    "HiddenStateAccountant": "hidden_state_noisy_sgd",
    "HolderLoss": "hidden_state_noisy_sgd",
    "LDPCurrentStatusCDF": "ldp_cdf",
    "LastIterateBound": "hidden_state_noisy_sgd",
    "NoisySGDClassifier": "noisy_sgd",
    "PrivateMarginals": "objective_perturbation",
    "RDPCurve": "_rdp",
    "Release": "objective_perturbation",
    "Similarity": "objective_perturbation",
    "SmoothLoss": "hidden_state_noisy_sgd",
    "StronglyConvexLoss": "hidden_state_noisy_sgd",
    "alternate": "objective_perturbation",
    "attack_rates": "membership",
    "canary_lower_bound": "noisy_sgd",
    "dykstra": "objective_perturbation",
    "epsilon_lower_bound": "_rdp",
    "gaussian_delta": "_rdp",
    "gaussian_epsilon": "_rdp",
    "gaussian_rdp": "_rdp",
    "gaussian_sigma": "_rdp",
    "laplace_rdp": "_rdp",
    "likelihood_ratio_attack": "membership",
    "likelihood_ratios": "membership",
    "membership_audit": "membership",
    "perturb_and_project": "objective_perturbation",
    "poisson_gaussian_rdp": "_rdp",
    "private_cosine_similarity": "objective_perturbation",
    "private_item_similarity": "objective_perturbation",
    "project_elliptope": "objective_perturbation",
    "project_psd": "objective_perturbation",
    "project_pseudo_moments": "objective_perturbation",
    "project_simplex_ball": "objective_perturbation",
    "score_attack": "membership",
    "without_replacement_gaussian_rdp": "_rdp",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
