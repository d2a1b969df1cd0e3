"""The most accurate classifier under exact group parity, which flips a coin for at most one score value.

For whoever must give groups equal acceptance, true positive or false positive rates, cannot tell people that a coin
decided about thousands of them, and fears that a poisoned or drifting sample makes the fair model collapse.
`RandomizedFairClassifier` turns the scores of any classifier into one threshold per group; `fair_bayes_optimal` is the
exact optimum over atoms that it rests on, and `price_of_parity` says what parity costs in accuracy, from scores alone.

References
----------
S. Agarwal, A. Deshpande, R. Rajaraman, R. Sundaram, "Optimal Fair Learning Robust to Adversarial Distribution Shift",
ICML 2025, PMLR 267. https://proceedings.mlr.press/v267/agarwal25b.html
S. Agarwal, A. Deshpande, "On the Power of Randomization in Fair Classification and Representation", FAccT 2022.
https://arxiv.org/abs/2406.03142
"""

from aboveboard.fairness.randomized_fair_boc._classifier import RandomizedFairClassifier
from aboveboard.fairness.randomized_fair_boc._optimum import (
    FairBOC,
    deterministic_fair_bayes_optimal,
    fair_bayes_optimal,
    robustness_constant,
)
from aboveboard.fairness.randomized_fair_boc._poison import Poisoned, poison
from aboveboard.fairness.randomized_fair_boc._price import PriceOfParity, price_of_parity

__all__ = [
    "FairBOC",
    "Poisoned",
    "PriceOfParity",
    "RandomizedFairClassifier",
    "deterministic_fair_bayes_optimal",
    "fair_bayes_optimal",
    "poison",
    "price_of_parity",
    "robustness_constant",
]
