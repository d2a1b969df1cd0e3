"""DynFrs: random forests from which any training row can be removed, or to which rows can be added, exactly.

After any sequence of additions, removals and queries the forest is bit-identical to one fitted afresh, with the same
seed, on the rows that are left. For owners of a deployed model who must honour erasure requests and late corrections
the same day, and show that they did.

References
----------
S. Wang, Z. Shen, X. Qiao, T. Zhang, M. Zhang: "DynFrs: An Efficient Framework for Machine Unlearning in Random Forest",
ICLR 2025, https://arxiv.org/abs/2410.01588.
"""

from aboveboard.unlearning.dynfrs.classifier import DynFrsClassifier
from aboveboard.unlearning.dynfrs.erasure_log import Erasure, ErasureLog
from aboveboard.unlearning.dynfrs.pipeline import RememberedWarning, UnlearningPipeline
from aboveboard.unlearning.dynfrs.regressor import DynFrsRegressor

__all__ = ["DynFrsClassifier", "DynFrsRegressor", "Erasure", "ErasureLog", "RememberedWarning", "UnlearningPipeline"]
