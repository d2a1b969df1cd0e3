"""What the private methods share: Rényi curves of mechanisms, their conversion, calibration, attacks, certificates."""

from aboveboard.privacy._rdp.attack import EpsilonLowerBound, epsilon_lower_bound
from aboveboard.privacy._rdp.certificate import privacy_certificate
from aboveboard.privacy._rdp.curve import DEFAULT_ORDERS, Adjacency, RDPCurve, laplace_rdp
from aboveboard.privacy._rdp.gaussian import gaussian_delta, gaussian_epsilon, gaussian_rdp, gaussian_sigma
from aboveboard.privacy._rdp.search import smallest_noise
from aboveboard.privacy._rdp.subsampled import poisson_gaussian_rdp, without_replacement_gaussian_rdp

__all__ = [
    "DEFAULT_ORDERS",
    "Adjacency",
    "EpsilonLowerBound",
    "RDPCurve",
    "epsilon_lower_bound",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_rdp",
    "gaussian_sigma",
    "laplace_rdp",
    "poisson_gaussian_rdp",
    "privacy_certificate",
    "smallest_noise",
    "without_replacement_gaussian_rdp",
]
