"""How many drafts of a generator must be shown so that one of them is acceptable? Short sets with a stated
probability, for whoever reviews what a language model or another generator makes, from few verdicts of an expert.

References
----------
K.-R. Kladny, B. Schölkopf, M. Muehlebach, "Conformal Generative Modeling with Improved Sample Efficiency through
Sequential Greedy Filtering", ICLR 2025, arXiv:2410.01660.
"""

from aboveboard.uncertainty.scope_gen._clm import ConformalLanguageModel
from aboveboard.uncertainty.scope_gen._expert import AnswerTakenBack, TerminalExpert, read_items
from aboveboard.uncertainty.scope_gen._items import GeneratedItem, SampledItem, from_sampler
from aboveboard.uncertainty.scope_gen._scope_gen import PredictionSet, SCOPEGen

__all__ = [
    "AnswerTakenBack",
    "ConformalLanguageModel",
    "GeneratedItem",
    "PredictionSet",
    "SCOPEGen",
    "SampledItem",
    "TerminalExpert",
    "from_sampler",
    "read_items",
]
