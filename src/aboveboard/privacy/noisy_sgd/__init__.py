"""Logistic regression that keeps a promised epsilon and proves it, and the attack that tries to refute it.

For whoever wants to publish a classifier of personal data and say what it can tell about one person.
`NoisySGDClassifier` is trained by noisy gradient descent, with the noise that `HiddenStateAccountant` finds for the
last iterate alone; `canary_lower_bound` trains any estimator again and again with and without a conspicuous row, and
returns the epsilon that its releases refute.

References
----------
E. Chien, P. Li, "Convergent Privacy Loss of Noisy-SGD without Convexity and Smoothness", ICLR 2025.
https://arxiv.org/abs/2410.01068
M. Jagielski, J. Ullman, A. Oprea, "Auditing Differentially Private Machine Learning: How Private is Private SGD?",
NeurIPS 2020. https://arxiv.org/abs/2006.07709
"""

from aboveboard.privacy.noisy_sgd._canary import canary_lower_bound
from aboveboard.privacy.noisy_sgd._classifier import NoisySGDClassifier

__all__ = ["NoisySGDClassifier", "canary_lower_bound"]
