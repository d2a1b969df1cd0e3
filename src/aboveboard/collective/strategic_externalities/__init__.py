"""Linear screening rules that still work when all applicants polish their features at once and get in each other's way.

For a university, bank or benefits office that publishes its score. `ManipulationGame` finds what applicants report when
none gains by another report; `StrategicEquilibriumClassifier` learns a score for what they will report;
`manipulation_audit` tells how far a score that is in use would fall; `EquilibriumLayer` puts the equilibrium into a
PyTorch network.

References
----------
S. Hossain, E. Micha, Y. Chen, A. Procaccia, "Strategic Classification with Externalities", ICLR 2025.
https://arxiv.org/abs/2410.08032
"""

from typing import TYPE_CHECKING, Any

from aboveboard.collective.strategic_externalities._audit import manipulation_audit
from aboveboard.collective.strategic_externalities._classifier import StrategicEquilibriumClassifier
from aboveboard.collective.strategic_externalities._game import Equilibrium, ManipulationGame
from aboveboard.collective.strategic_externalities._rounds import EquilibriumPerformance, performance_at_equilibrium

if TYPE_CHECKING:
    from aboveboard.collective.strategic_externalities._torch import EquilibriumLayer

__all__ = [
    "Equilibrium",
    "EquilibriumLayer",
    "EquilibriumPerformance",
    "ManipulationGame",
    "StrategicEquilibriumClassifier",
    "manipulation_audit",
    "performance_at_equilibrium",
]


def __getattr__(name: str) -> Any:
    if name == "EquilibriumLayer":
        from aboveboard.collective.strategic_externalities._torch import EquilibriumLayer

        return EquilibriumLayer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
