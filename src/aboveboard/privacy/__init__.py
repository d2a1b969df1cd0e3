"""Privacy: what does a model or a release tell about one person, and how little can it be made to tell?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.privacy.membership import (
        Attack,
        AttackRate,
        attack_rates,
        likelihood_ratio_attack,
        likelihood_ratios,
        membership_audit,
        score_attack,
    )

__all__ = [
    "Attack",
    "AttackRate",
    "attack_rates",
    "likelihood_ratio_attack",
    "likelihood_ratios",
    "membership_audit",
    "score_attack",
]

_MODULES = {
    "Attack": "membership",
    "AttackRate": "membership",
    "attack_rates": "membership",
    "likelihood_ratio_attack": "membership",
    "likelihood_ratios": "membership",
    "membership_audit": "membership",
    "score_attack": "membership",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
