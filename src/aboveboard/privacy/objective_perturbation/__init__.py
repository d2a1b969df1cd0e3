"""Similarities and marginals, published once: Gaussian noise, then the nearest thing that data could have produced.

For whoever wants to publish which items go together, or all two-, three- and four-way tables of a survey, under
differential privacy. Noise on so many numbers drowns them; most of it cannot come from any data set, and projecting
onto those that can takes it off again, at no cost in privacy. `private_item_similarity` and `private_cosine_similarity`
release matrices, `PrivateMarginals` tables, and `perturb_and_project` any query with a projection of one's own.

References
----------
V. Cohen-Addad, T. d'Orsi, A. Epasto, V. Mirrokni, P. Zhong, "Perturb-and-Project: Differentially Private Similarities
and Marginals", ICML 2024. https://arxiv.org/abs/2406.04868
"""

from aboveboard.privacy.objective_perturbation._marginals import PrivateMarginals
from aboveboard.privacy.objective_perturbation._mechanism import Release, perturb_and_project
from aboveboard.privacy.objective_perturbation._projections import (
    alternate,
    dykstra,
    project_elliptope,
    project_psd,
    project_simplex_ball,
)
from aboveboard.privacy.objective_perturbation._pseudo_moments import project_pseudo_moments
from aboveboard.privacy.objective_perturbation._similarity import (
    Similarity,
    private_cosine_similarity,
    private_item_similarity,
)

__all__ = [
    "PrivateMarginals",
    "Release",
    "Similarity",
    "alternate",
    "dykstra",
    "perturb_and_project",
    "private_cosine_similarity",
    "private_item_similarity",
    "project_elliptope",
    "project_psd",
    "project_pseudo_moments",
    "project_simplex_ball",
]
