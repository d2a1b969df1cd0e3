"""Dataset classification: can a model tell which data set a row came from? A bias, leak and drift audit.

For teams that pool sources, trust a benchmark, or watch a deployed model: where a classifier names the source of single
rows, the sources are not exchangeable, and a model will learn the source instead of the task.

References
----------
Z. Liu, K. He: "A Decade's Battle on Dataset Bias: Are We There Yet?", ICLR 2025, https://arxiv.org/abs/2403.08632.
A. Torralba, A. A. Efros: "Unbiased Look at Dataset Bias", CVPR 2011.
"""

from aboveboard.drift.dataset_classification._classification import DatasetClassification
from aboveboard.drift.dataset_classification._duplicates import near_duplicates
from aboveboard.drift.dataset_classification._result import SourceTest
from aboveboard.drift.dataset_classification._sequential import SequentialTwoSample
from aboveboard.drift.dataset_classification._statistics import binomial_p_value, permutation_p_value, tv_lower_bound
from aboveboard.drift.dataset_classification._usefulness import TargetLink

__all__ = [
    "DatasetClassification",
    "SequentialTwoSample",
    "SourceTest",
    "TargetLink",
    "binomial_p_value",
    "near_duplicates",
    "permutation_p_value",
    "tv_lower_bound",
]
