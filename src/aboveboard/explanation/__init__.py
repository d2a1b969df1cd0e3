"""Explanation: why does a model answer as it does, and which of its training data made it do so?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.explanation.data_value_embedding import (
        DataValueEmbedding,
        Embeddings,
        RetrainComparison,
        TrajectoryRecorder,
        exact_tsloo,
    )
    from aboveboard.explanation.gefa import (
        GEFA,
        Attribution,
        Attributions,
        ImageMasker,
        TabularMasker,
        TokenMasker,
        exact_shapley,
        published_gefa,
        shapley_from_game,
    )

__all__ = [
    "GEFA",
    "Attribution",
    "Attributions",
    "DataValueEmbedding",
    "Embeddings",
    "ImageMasker",
    "RetrainComparison",
    "TabularMasker",
    "TokenMasker",
    "TrajectoryRecorder",
    "exact_shapley",
    "exact_tsloo",
    "published_gefa",
    "shapley_from_game",
]

_MODULES: dict[str, str] = {
    "DataValueEmbedding": "data_value_embedding",
    "Embeddings": "data_value_embedding",
    "RetrainComparison": "data_value_embedding",
    "TrajectoryRecorder": "data_value_embedding",
    "exact_tsloo": "data_value_embedding",
    "GEFA": "gefa",
    "Attribution": "gefa",
    "Attributions": "gefa",
    "ImageMasker": "gefa",
    "TabularMasker": "gefa",
    "TokenMasker": "gefa",
    "exact_shapley": "gefa",
    "published_gefa": "gefa",
    "shapley_from_game": "gefa",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.explanation.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.explanation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
