"""What is guaranteed to the person who answers, and to a group whose answers are shuffled."""

import math
from typing import Final

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.privacy.ldp_cdf._shuffle import shuffled_epsilon

__all__ = ["local_certificate", "shuffled_certificate"]

_PAPER: Final = Reference(
    title="Tuning-free Estimation and Inference of Cumulative Distribution Function under Local Differential Privacy",
    authors="Y. Liu, Q. Hu, L. Kong",
    venue="ICML 2024, PMLR 235",
    year=2024,
    url="https://proceedings.mlr.press/v235/",
)
_CLONES: Final = Reference(
    title="Hiding Among the Clones: A Simple and Nearly Optimal Analysis of Privacy Amplification by Shuffling",
    authors="V. Feldman, A. McMillan, K. Talwar",
    venue="FOCS 2021",
    year=2021,
    url="https://arxiv.org/abs/2012.12803",
)
_ONE_REPORT: Final = Assumption("Each person reports once; the epsilons of several reports of one person add up.")
_THRESHOLD: Final = Assumption(
    "Thresholds are drawn without looking at the values: nobody chooses, refuses or redraws one."
)
_BOUNDS: Final = Assumption("The bounds are public and were not taken from the values.")
_SIDE_CHANNELS: Final = "Who took part, when, and from which address."


def local_certificate(
    epsilon: float, lie: float, noise_source: str, *, randomised_elsewhere: bool = False
) -> Certificate:
    """Return what one report promises the person behind it."""
    elsewhere = (
        (Assumption("Every answer was given by CurrentStatusRandomizer, or one like it, at this epsilon."),)
        if randomised_elsewhere
        else ()
    )
    return Certificate(
        kind="local differential privacy",
        guarantee=(
            f"Whatever a person's value, each possible report of a threshold and an answer is at most "
            f"exp({epsilon:g}) times as likely as under any other value; so is all that is computed from it."
        ),
        parameters={
            "epsilon": epsilon,
            "delta": 0.0,
            "adjacency": "any two values of one person, who need trust nobody (local model)",
            "mechanism": "randomised response to the question whether the value is at most a random threshold",
            "lie_probability": lie,
        },
        assumptions=(_ONE_REPORT, _THRESHOLD, _BOUNDS, *elsewhere),
        numerics={
            "precision": "exact: the probability of a lie is a multiple of 2^-52, rounded towards privacy",
            "noise_source": noise_source,
        },
        does_not_cover=(_SIDE_CHANNELS, "What the distribution itself says about everybody in it."),
        library_version=aboveboard.__version__,
        reference=_PAPER,
    )


def shuffled_certificate(local: float, n: int, delta: float) -> Certificate:
    """Return what holds for each of n people when a shuffler strips and mixes their reports."""
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta!r}", expected="a number between 0 and 1, well below one over the reports")
    if local == math.inf:
        raise InputError("epsilon is infinite", expected="answers that were privatised; a shuffler alone hides little")
    epsilon = shuffled_epsilon(local, n, delta)
    return Certificate(
        kind="differential privacy in the shuffle model",
        guarantee=(
            f"The multiset of {n:,} reports, and all that is computed from it, is ({epsilon:.6g}, {delta:g})-"
            "differentially private: whatever the other values, one person's value changes the probability of any "
            "event by at most a factor of exp(epsilon), and delta."
        ),
        parameters={
            "epsilon": epsilon,
            "delta": delta,
            "epsilon_local": local,
            "reports": n,
            "adjacency": "one person's value replaced by another, among equally many people",
            "mechanism": "randomised response to a random threshold, then a uniformly random order",
        },
        assumptions=(
            Assumption("A trusted shuffler removes identities and the order before anybody sees a report."),
            Assumption("Each of the other people answers by the same randomiser, at this epsilon."),
            _ONE_REPORT,
            _THRESHOLD,
            _BOUNDS,
        ),
        numerics={"precision": "float64 sums of binomial tails", "noise_source": "where the answers were given"},
        does_not_cover=(_SIDE_CHANNELS, "People who tell the reader their answers: those no longer count as reports."),
        library_version=aboveboard.__version__,
        reference=_CLONES,
    )
