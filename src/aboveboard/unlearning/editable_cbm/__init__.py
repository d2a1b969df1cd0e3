"""Edit a trained concept bottleneck model: correct concept labels, drop concepts, forget or add rows, no retraining.

For a team whose model predicts concepts first and the label from them, and who later learn that an annotator erred,
that a concept is spurious or unlawful, or that people withdraw. `EditableCBM` takes influence steps (Newton steps on
the edited loss) and reports how far from a retrained model they may be; `compare_with_retrain` measures it.
`ConceptBottleneckClassifier` is a bottleneck of linear parts to start from; a pair of PyTorch modules works as well.

References
----------
L. Hu, C. Ren, Z. Hu, H. Lin, C.-L. Wang, Z. Tan, W. Luo, J. Zhang, H. Xiong, D. Wang, "Editable Concept Bottleneck
Models", ICML 2025. https://arxiv.org/abs/2405.15476
P. W. Koh, T. Nguyen, Y. S. Tang, S. Mussmann, E. Pierson, B. Kim, P. Liang, "Concept Bottleneck Models", ICML 2020.
https://arxiv.org/abs/2007.04612
P. W. Koh, P. Liang, "Understanding Black-box Predictions via Influence Functions", ICML 2017.
https://arxiv.org/abs/1703.04730
T. George, C. Laurent, X. Bouthillier, N. Ballas, P. Vincent, "Fast Approximate Natural Gradient Descent in a
Kronecker-factored Eigenbasis", NeurIPS 2018. https://arxiv.org/abs/1806.03884
S. Zarifzadeh, P. Liu, R. Shokri, "Low-Cost High-Power Membership Inference Attacks", ICML 2024.
https://arxiv.org/abs/2312.03262
"""

from aboveboard.unlearning.editable_cbm._classifier import ConceptBottleneckClassifier
from aboveboard.unlearning.editable_cbm._editing import EditableCBM
from aboveboard.unlearning.editable_cbm._membership import rmia_scores
from aboveboard.unlearning.editable_cbm._reports import EditReport, PartChange, RetrainComparison

__all__ = [
    "ConceptBottleneckClassifier",
    "EditReport",
    "EditableCBM",
    "PartChange",
    "RetrainComparison",
    "rmia_scores",
]
