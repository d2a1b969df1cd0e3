"""Evidence that anyone can rerun: each method's headline claim, as an experiment with criteria.

``aboveboard reproduce NAME`` runs the experiment of a method; ``--scale full --record`` writes its evidence beside
it, the only way in which evidence is written. An experiment is a module ``reproduce/<area>/<slug>.py`` with a
function ``run(scale, *, random_state) -> Outcome``.
"""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from aboveboard.core.finding import Figure, Table, plain

__all__ = ["Criterion", "Outcome", "Scale"]

Scale = Literal["quick", "full"]

_STATISTICS: Final[dict[str, Callable[[list[float]], float]]] = {
    "max": max,
    "min": min,
    "mean": statistics.fmean,
    "median": statistics.median,
}
_RELATIONS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": lambda value, bound: value <= bound,
    ">=": lambda value, bound: value >= bound,
    "<": lambda value, bound: value < bound,
    ">": lambda value, bound: value > bound,
    "==": lambda value, bound: value == bound,
}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One figure that must come out, with the values it was computed from.

    Parameters
    ----------
    id : str
        Stable name, such as ``"randomised-loss"``.
    statement : str
        What is claimed, as a sentence with the bound in it.
    values : mapping of str to float
        One value per seed, instance or setting.
    statistic : {"max", "min", "mean", "median"}
        How the values become one figure.
    relation : {"<=", ">=", "<", ">", "=="}
    bound : float
    unit : str
    tolerance : float, optional
        How far a rerun of the quick scale may stray from the recorded quick figure, absolutely; None for figures
        that depend on the machine (times, ratios of times), which are not compared.
    """

    id: str
    statement: str
    values: Mapping[str, float]
    statistic: Literal["max", "min", "mean", "median"]
    relation: Literal["<=", ">=", "<", ">", "=="]
    bound: float
    unit: str = ""
    tolerance: float | None = 1e-9

    def __post_init__(self) -> None:
        if not self.values:
            raise ValueError(f"criterion {self.id!r} has no values")

    @property
    def figure(self) -> float:
        return float(_STATISTICS[self.statistic]([float(value) for value in self.values.values()]))

    @property
    def passed(self) -> bool:
        return _RELATIONS[self.relation](self.figure, self.bound)

    def to_dict(self) -> dict[str, Any]:
        names = ("id", "statement", "statistic", "relation", "bound", "unit", "tolerance", "figure", "passed")
        return {name: plain(getattr(self, name)) for name in names} | {
            "values": {key: plain(value) for key, value in self.values.items()}
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Criterion":
        return cls(**{key: value for key, value in data.items() if key not in ("figure", "passed")})


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an experiment found.

    Parameters
    ----------
    criteria : list of Criterion
    figures, tables : tuples
        For the method's page; the first figure is the one that the page shows.
    notes : tuple of str
        What a reader must know: what did not reproduce and why.
    peers : dict
        Per peer: its frozen packages and what it measured.
    """

    criteria: list[Criterion]
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    peers: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(criterion.passed for criterion in self.criteria)

    def to_dict(self) -> dict[str, Any]:
        return {
            "criteria": [criterion.to_dict() for criterion in self.criteria],
            "figures": [figure.to_dict() for figure in self.figures],
            "tables": [table.to_dict() for table in self.tables],
            "notes": list(self.notes),
            "peers": self.peers,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Outcome":
        return cls(
            [Criterion.from_dict(item) for item in data["criteria"]],
            tuple(Figure.from_dict(item) for item in data["figures"]),
            tuple(Table.from_dict(item) for item in data["tables"]),
            tuple(data["notes"]),
            data["peers"],
        )
