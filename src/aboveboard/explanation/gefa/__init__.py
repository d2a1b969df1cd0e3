"""Which columns, words or pixels drove a decision, how much each, and how far off that may be: GEFA.

For whoever must give reasons for the answers of a model that can only be asked: an address, a forest, a language model
behind a service. Features are switched off at random in many ways, and Shapley values, the one fair way to share the
answer among them, are estimated without bias, with standard errors, and so that they sum to the answer exactly.

References
----------
Y. Cai, T. Ardoin, G. Wunder, "GEFA: A General Feature Attribution Framework Using Proxy Gradient Estimation",
ICML 2025. https://openreview.net/forum?id=QyG0ilz5ju
"""

from aboveboard.explanation.gefa._attribution import Attribution, Attributions
from aboveboard.explanation.gefa._explainer import GEFA
from aboveboard.explanation.gefa._games import exact_shapley, published_gefa, shapley_from_game
from aboveboard.explanation.gefa._maskers import ImageMasker, TabularMasker, TokenMasker

__all__ = [
    "GEFA",
    "Attribution",
    "Attributions",
    "ImageMasker",
    "TabularMasker",
    "TokenMasker",
    "exact_shapley",
    "published_gefa",
    "shapley_from_game",
]
