"""aboveboard: audit, repair and prove things about machine-learning models.

``aboveboard.audit(model, X, y, sensitive_features=[...])`` returns a `Report`, and ``aboveboard.compare(old, new)``
says what changed between two. Methods live in the areas: ``aboveboard.fairness``, ... and bundled data in
``aboveboard.data``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Report", "__version__", "audit", "compare", "open_model"]

if TYPE_CHECKING:
    from aboveboard.auditing import Report, audit, compare, open_model

_SUBPACKAGES = frozenset(
    {
        "auditing", "collective", "core", "data", "drift", "fairness", "privacy", "reproduce", "testing", "uncertainty",
        "unlearning",
    }
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in ("audit", "compare", "open_model", "Report"):
        return getattr(import_module("aboveboard.auditing"), name)
    if name in _SUBPACKAGES:
        return import_module(f"aboveboard.{name}")
    raise AttributeError(f"module 'aboveboard' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_SUBPACKAGES})
