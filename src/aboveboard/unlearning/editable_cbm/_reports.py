"""What an edit did, and how it compares with retraining."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from aboveboard.core.finding import plain

__all__ = ["TOO_LARGE", "EditReport", "PartChange", "RetrainComparison"]

TOO_LARGE: Final = 0.5
"""A step longer than this share of the parameters is no small perturbation."""


@dataclass(frozen=True, slots=True)
class PartChange:
    """How an edit moved one part of the model.

    Parameters
    ----------
    step_norm : float
        Euclidean length of the step.
    relative_step : float
        The same as a share of the length of the parameters before the step.
    residual_gradient_norm : float
        Length of the gradient of the mean regularised loss, after the edit, on the edited data: 0 at a retrained model.
    """

    step_norm: float
    relative_step: float
    residual_gradient_norm: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    """What one edit did.

    Parameters
    ----------
    kind : {"relabel", "forget", "add", "drop_concepts", "add_concepts"}
    n_edits : int
        Concept labels, rows or concepts that were edited.
    seconds : float
        Wall-clock time, all included.
    concepts, labels : PartChange
        The concept predictor and the label layer.
    polished : bool
        Whether more steps followed, because the residual gradient was above `polish_above`; `notes` say which.
    warning : str
        Not empty when a single step was too long to be trusted, and no more steps followed.
    notes : tuple of str
        What else the reader should know.
    repredictability : dict
        By dropped concept: how well it can be told from the remaining concepts' outputs, as the area under the ROC
        curve on held-out rows. 0.5 is not at all; near 1 the model still knows it. None where it cannot be measured.
    """

    kind: Literal["relabel", "forget", "add", "drop_concepts", "add_concepts"]
    n_edits: int
    seconds: float
    concepts: PartChange
    labels: PartChange
    polished: bool = False
    warning: str = ""
    notes: tuple[str, ...] = ()
    repredictability: dict[str, float | None] = field(default_factory=dict)

    @property
    def residual_gradient_norm(self) -> float:
        """The larger of the two parts' residual gradient norms."""
        return max(self.concepts.residual_gradient_norm, self.labels.residual_gradient_norm)

    @property
    def step_norm(self) -> float:
        """Length of the step of both parts together."""
        return math.hypot(self.concepts.step_norm, self.labels.step_norm)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        data = asdict(self)
        data["notes"] = list(self.notes)
        return data | {"residual_gradient_norm": self.residual_gradient_norm, "step_norm": self.step_norm}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrainComparison:
    """The edited model beside one that was fitted again to the edited data.

    Parameters
    ----------
    concept_gap, label_gap : float or None
        Distance of the edited parameters from the retrained ones, as a share of the distance of the unedited ones. 0 is
        a perfect edit, 1 is as far as no edit at all. None where retraining does not move the part.
    f1 : dict
        Macro-averaged F1 of ``"edited"``, ``"retrained"`` and ``"unedited"`` models on the rows given.
    agreement : float
        Share of those rows for which the edited and the retrained model predict the same class.
    edit_seconds : float
        Of all edits so far.
    retrain_seconds : float
        Of the fit with L-BFGS, started from the unedited model.
    retrain_converged : bool
        Whether the fit reached its tolerance.
    residual_gradient_norm : float
        Of the edited model.
    """

    concept_gap: float | None
    label_gap: float | None
    f1: dict[str, float]
    agreement: float
    edit_seconds: float
    retrain_seconds: float
    retrain_converged: bool
    residual_gradient_norm: float

    @property
    def f1_gap(self) -> float:
        """How far the F1 of the edited model is from the retrained one's."""
        return abs(self.f1["edited"] - self.f1["retrained"])

    @property
    def time_ratio(self) -> float:
        """How many times longer retraining took than the edits did."""
        return self.retrain_seconds / self.edit_seconds if self.edit_seconds > 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return asdict(self) | {"f1_gap": self.f1_gap, "time_ratio": plain(self.time_ratio)}
