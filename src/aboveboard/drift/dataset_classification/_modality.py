"""What tables, images and texts have in common."""

from collections.abc import Mapping
from typing import Any, Protocol

import pandas as pd
from numpy.typing import NDArray

from aboveboard.drift.dataset_classification._controls import Candidates, Rung, Trial
from aboveboard.drift.dataset_classification._learners import Trained
from aboveboard.drift.dataset_classification._splits import Split
from aboveboard.drift.dataset_classification._tables import Features, named_frame

__all__ = ["IMPORTANCE_COLUMNS", "Modality", "no_importance"]

IMPORTANCE_COLUMNS = ("column", "log_loss_increase", "accuracy_drop")


class Modality(Protocol):
    """How rows of one kind are read, told apart, and robbed of something."""

    excluded_: dict[str, str]
    """Columns left out, and why."""

    def check(self, name: str, data: Any) -> Any:
        """Return one source in the form that the other methods take, or refuse it."""

    def take(self, data: Any, rows: NDArray[Any]) -> Any: ...

    def same(self, one: Any, other: Any) -> bool:
        """Tell whether two sources hold the same rows."""

    def join(self, parts: Mapping[str, Any], codes: NDArray[Any]) -> Any:
        """Return the rows of all sources as one."""

    def features(self, data: Any, split: Split) -> Features:
        """Return what the classifier sees; anything learned for it is learned from training rows."""

    def read(self, X: Any) -> Features:
        """Return what the classifier sees of new rows."""

    def candidates(self, estimator: Any) -> Candidates: ...

    def default_rungs(self, data: Any) -> tuple[str, ...]: ...

    def check_rung(self, name: str, features: Features) -> None:
        """Refuse a name that stands for nothing."""

    def rung(self, name: str, importance: pd.DataFrame, trial: Trial) -> list[Rung]:
        """Return the rungs of a name; none where there is nothing to take away."""

    def importance(self, trained: Trained, trial: Trial, seed: int) -> pd.DataFrame:
        """Return what the parts of a row contribute, the most telling first."""


def no_importance() -> pd.DataFrame:
    """Return the table for rows whose parts have no meaning of their own."""
    return named_frame([], IMPORTANCE_COLUMNS)
