"""Privacy: what does a model or a release tell about one person, and how little can it be made to tell?"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aboveboard.privacy.ldp_cdf import CurrentStatusRandomizer, GoodnessOfFit, LDPCurrentStatusCDF

__all__ = [
    "CurrentStatusRandomizer",
    "GoodnessOfFit",
    "LDPCurrentStatusCDF",
]

_MODULES = {
    "CurrentStatusRandomizer": "ldp_cdf",
    "GoodnessOfFit": "ldp_cdf",
    "LDPCurrentStatusCDF": "ldp_cdf",
}
"""The method that each name belongs to; its module is loaded when the name is asked for."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"aboveboard.privacy.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'aboveboard.privacy' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
