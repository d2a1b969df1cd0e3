"""Which training example, at which step of the training, made the model give this answer?

For the owner of a model trained by gradient steps who asks what a single example did at a single step: helpful or
harmful for an answer, early or late, and what the model would be without it. `TrajectoryRecorder` watches a training
loop of PyTorch, `DataValueEmbedding` turns the record into influences, and `exact_tsloo` retrains, for the truth.

References
----------
J. T. Wang, D. Song, J. Zou, P. Mittal, R. Jia, "Capturing the Temporal Dependence of Training Data Influence", ICLR
2025. https://arxiv.org/abs/2412.09538
S. Hara, A. Nitanda, T. Maehara, "Data Cleansing for Models Trained with SGD", NeurIPS 2019.
https://arxiv.org/abs/1906.08473
S. K. Choe et al., "What is Your Data Worth to GPT? LLM-Scale Data Valuation with Influence Functions", 2024.
https://arxiv.org/abs/2405.13954
G. Pruthi, F. Liu, S. Kale, M. Sundararajan, "Estimating Training Data Influence by Tracing Gradient Descent", NeurIPS
2020. https://arxiv.org/abs/2002.08484
"""

from aboveboard.explanation.data_value_embedding._embedding import DataValueEmbedding, Embeddings, RetrainComparison
from aboveboard.explanation.data_value_embedding._recorder import TrajectoryRecorder
from aboveboard.explanation.data_value_embedding._retraining import exact_tsloo

__all__ = ["DataValueEmbedding", "Embeddings", "RetrainComparison", "TrajectoryRecorder", "exact_tsloo"]
