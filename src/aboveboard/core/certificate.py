"""What a method guarantees: one exact sentence, and everything it rests on."""

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from aboveboard.core.finding import plain
from aboveboard.core.reference import Reference

__all__ = ["Assumption", "Certificate"]


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing a guarantee rests on.

    Parameters
    ----------
    text : str
        The assumption, as a sentence.
    basis : {"assumed", "checked"}
        Whether it was taken on trust, or tested on the data at hand.
    test : str
        How it was checked.
    statistic, limit : float, optional
        What the test gave, and what it was held against.
    passed : bool, optional
        None when it was assumed.
    """

    text: str
    basis: Literal["assumed", "checked"] = "assumed"
    test: str = ""
    statistic: float | None = None
    limit: float | None = None
    passed: bool | None = None

    def __post_init__(self) -> None:
        if self.basis == "checked" and self.passed is None:
            raise ValueError(f"the checked assumption {self.text!r} must say whether it passed")
        if self.basis == "assumed" and self.passed is not None:
            raise ValueError(f"the assumption {self.text!r} was not checked, so it cannot have passed or failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A guarantee with its assumptions.

    Parameters
    ----------
    kind : str
        ``"robust fair optimum"``, ``"exact unlearning"``, ``"differential privacy"``, ...
    guarantee : str
        One exact sentence.
    parameters : dict
        The numbers in it.
    assumptions : tuple of Assumption
    confidence : float or None
        None for a guarantee that holds with certainty given its assumptions.
    numerics : dict
        ``{"precision": "float64", "noise_source": "none"}``.
    does_not_cover : tuple of str
    subject : dict
        sha256 of the model and the data, as far as they are known.
    library_version : str
    reference : Reference or None
    """

    kind: str
    guarantee: str
    parameters: dict[str, Any] = field(default_factory=dict)
    assumptions: tuple[Assumption, ...] = ()
    confidence: float | None = None
    numerics: dict[str, str] = field(default_factory=lambda: {"precision": "float64", "noise_source": "none"})
    does_not_cover: tuple[str, ...] = ()
    subject: dict[str, str] = field(default_factory=dict)
    library_version: str = ""
    reference: Reference | None = None

    @property
    def holds(self) -> bool:
        """Whether no checked assumption failed."""
        return all(assumption.passed is not False for assumption in self.assumptions)

    def to_dict(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in ("kind", "guarantee", "confidence", "library_version")}
        data["parameters"] = {key: plain(value) for key, value in self.parameters.items()}
        data["assumptions"] = [{k: plain(v) for k, v in asdict(a).items()} for a in self.assumptions]
        data["numerics"] = dict(self.numerics)
        data["does_not_cover"] = list(self.does_not_cover)
        data["subject"] = dict(self.subject)
        data["reference"] = self.reference.to_dict() if self.reference else None
        data["holds"] = self.holds
        return data

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Certificate":
        known = {key: value for key, value in data.items() if key != "holds"}
        known["assumptions"] = tuple(Assumption(**a) for a in known["assumptions"])
        known["does_not_cover"] = tuple(known["does_not_cover"])
        known["reference"] = Reference.from_dict(known["reference"]) if known["reference"] else None
        return cls(**known)
