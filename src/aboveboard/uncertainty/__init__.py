"""Uncertainty: when can an answer be trusted, and how sure does it claim to be?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.uncertainty.scope_gen import (
        AnswerTakenBack,
        ConformalLanguageModel,
        GeneratedItem,
        PredictionSet,
        SampledItem,
        SCOPEGen,
        TerminalExpert,
        from_sampler,
        read_items,
    )

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

_MODULES = {
    "AnswerTakenBack": "scope_gen",
    "ConformalLanguageModel": "scope_gen",
    "GeneratedItem": "scope_gen",
    "PredictionSet": "scope_gen",
    "SCOPEGen": "scope_gen",
    "SampledItem": "scope_gen",
    "TerminalExpert": "scope_gen",
    "from_sampler": "scope_gen",
    "read_items": "scope_gen",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.uncertainty.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.uncertainty' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
