"""The whole distribution of a sensitive number, from one privatised yes or no per person.

For whoever must publish how incomes, doses or scores are distributed and may not see a single one. Each person is asked
whether the number is at most a threshold drawn at random, and lies with a probability that `CurrentStatusRandomizer`
fixes; from these answers `LDPCurrentStatusCDF` estimates the distribution function, quantiles and the mean, with
intervals, and without a number of bins or a stopping rule to choose.

References
----------
Y. Liu, Q. Hu, L. Kong, "Tuning-free Estimation and Inference of Cumulative Distribution Function under Local
Differential Privacy", ICML 2024, PMLR 235.
"""

from aboveboard.privacy.ldp_cdf._estimator import GoodnessOfFit, LDPCurrentStatusCDF
from aboveboard.privacy.ldp_cdf._randomizer import CurrentStatusRandomizer

__all__ = ["CurrentStatusRandomizer", "GoodnessOfFit", "LDPCurrentStatusCDF"]
