"""Explanation: why was one answer given, and because of which data?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    "ImageMasker",
    "TabularMasker",
    "TokenMasker",
    "exact_shapley",
    "published_gefa",
    "shapley_from_game",
]

_MODULES = {
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
