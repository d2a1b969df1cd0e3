"""An ensemble, asked for every measure of its uncertainty."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding
from aboveboard.uncertainty.risk_decomposition._audit import abstention_audit
from aboveboard.uncertainty.risk_decomposition._members import Ask, Members, members_of
from aboveboard.uncertainty.risk_decomposition._ranking import rank_measures
from aboveboard.uncertainty.risk_decomposition._risks import (
    ALL_SCORES,
    NAMES,
    named_measure,
    uncertainty_measures,
)

__all__ = ["RiskDecomposition"]

Floats = NDArray[np.float64]

_CELLS: Final = 1 << 23
"""Members x rows x classes that are held at once: 64 MB."""


class RiskDecomposition(BaseEstimator):  # type: ignore[misc]
    """The uncertainty measures of a fitted ensemble.

    Parameters
    ----------
    estimator : object
        A fitted forest, `BaggingClassifier`, `VotingClassifier` or `CalibratedClassifierCV` of scikit-learn, alone, at
        the end of a pipeline or in a search; a list of fitted classifiers; a list of PyTorch modules that give logits;
        or one PyTorch module with dropout, which is then asked with dropout on. It is used as it is, and never fitted.
        Boosting is refused: its members correct each other, and are no draws of one model.
    scores : sequence of str or ProperScore
        Of "log", "brier", "spherical", "zero_one", or objects with ``G`` and ``grad``.
    names : sequence of str, optional
        Of measures, from `NAMES`, instead of the whole family.
    eps : float, default=1e-12
        As for `pointwise_risk`.
    temperature : float, default=1.0
        By which the logits of PyTorch modules are divided.
    n_draws : int, default=20
        Passes of a module with dropout.
    batch_size : int, default=1024
        Rows of a pass of a PyTorch module.
    device : str, default="cpu"
        Where PyTorch modules are.
    random_state : int, default=0
        Of the dropout.

    Notes
    -----
    It predicts nothing and has no ``fit``. Memory is bounded: 64 MB of members' answers at once, and a few for the
    measures. An excess risk near zero is no certificate: members of one kind, trained alike, err alike.

    References
    ----------
    N. Kotelevskii et al., "From Risk to Uncertainty", ICLR 2025.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.uncertainty import RiskDecomposition
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> adult = load_adult(split="train")
    >>> X, y = adult.X.select_dtypes("number"), adult.y_binary
    >>> forest = RandomForestClassifier(30, min_samples_leaf=5, random_state=0).fit(X[:4000], y[:4000])
    >>> decomposition = RiskDecomposition(forest, names=["mutual_information", "predictive_entropy"])
    >>> ranked = decomposition.compare(X[4000:8000], y[4000:8000])
    >>> ranked.index[0]
    ('misclassification', 'predictive_entropy')
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        scores: Sequence[Any] = ALL_SCORES,
        names: Sequence[str] | None = None,
        eps: float = 1e-12,
        temperature: float = 1.0,
        n_draws: int = 20,
        batch_size: int = 1024,
        device: str = "cpu",
        random_state: int | None = 0,
    ) -> None:
        self.estimator = estimator
        self.scores = scores
        self.names = names
        self.eps = eps
        self.temperature = temperature
        self.n_draws = n_draws
        self.batch_size = batch_size
        self.device = device
        self.random_state = random_state

    def member_proba(self, X: Any) -> Floats:
        """Return what each member says of each row.

        Returns
        -------
        ndarray of shape (M, n, K)
            Classes in the order of the ensemble's ``classes_``; for a list of classifiers sorted.

        Raises
        ------
        InputError
            When the members cannot be asked.
        """
        return self._members().ask(X)

    def measures(self, X: Any) -> pd.DataFrame:
        """Return the measures of each row: the family, or those in `names`.

        Returns
        -------
        DataFrame of shape (n, measures)
            As from `uncertainty_measures`; with the index of `X` where it has one.
        """
        return self._asked(X)[0]

    def compare(self, X: Any, y: ArrayLike | None = None, X_ood: Any = None) -> pd.DataFrame:
        """Rank the measures by how well they tell errors, and foreign rows.

        Parameters
        ----------
        X : rows as the ensemble takes them
        y : array-like of shape (n,), optional
            The true labels: the task is to tell rows that the mean of the members gets wrong.
        X_ood : rows, optional
            From elsewhere: the task is to tell them from `X`.

        Returns
        -------
        DataFrame
            As from `rank_measures`, by task ("misclassification", "out_of_distribution") and measure, with the
            numbers of rows and events.
        """
        tables = {}
        for task, (measures, event) in self._tasks(X, y, X_ood).items():
            table = rank_measures(measures, event)
            tables[task] = table.assign(n=table.attrs["n"], events=table.attrs["events"])
        return pd.concat(tables, names=["task"])

    def audit(self, X: Any, y: ArrayLike | None = None, X_ood: Any = None) -> list[Finding]:
        """Say which measure to trust for which task: chosen on one half of the rows, shown on the other.

        Parameters
        ----------
        X, y, X_ood :
            As for `compare`.

        Returns
        -------
        list of Finding
            One for each task, ``abstention/<task>``, as from `abstention_audit`.
        """
        return [
            finding
            for task, (measures, event) in self._tasks(X, y, X_ood).items()
            for finding in abstention_audit(measures, event, task=task)
        ]

    def _tasks(self, X: Any, y: ArrayLike | None, X_ood: Any) -> dict[str, tuple[pd.DataFrame, NDArray[np.bool_]]]:
        """Return the measures and the event of each task."""
        if y is None and X_ood is None:
            raise InputError("neither y nor X_ood were given", expected="one of the two, or both")
        measures, predicted = self._asked(X)
        tasks = {}
        if y is not None:
            truth = np.asarray(y)
            if truth.shape != predicted.shape:
                raise InputError(f"y has shape {truth.shape}", expected=f"{len(predicted)} labels")
            tasks["misclassification"] = (measures, predicted != truth)
        if X_ood is not None:
            foreign = self._asked(X_ood)[0]
            event = np.arange(len(measures) + len(foreign)) >= len(measures)
            tasks["out_of_distribution"] = (pd.concat([measures, foreign], ignore_index=True), event)
        return tasks

    def _asked(self, X: Any) -> tuple[pd.DataFrame, NDArray[Any]]:
        """Return the measures of each row, and the label that the mean of the members makes likeliest."""
        self._refuse_options()
        members = self._members()
        tables, likeliest = [], []
        for block in _blocks(members.ask, X):
            tables.append(self._measured(block))
            likeliest.append(block.mean(axis=0).argmax(axis=1))
        code = np.concatenate(likeliest)
        table = pd.concat(tables, ignore_index=True)
        if isinstance(X, pd.DataFrame):
            table = table.set_axis(X.index)
        return table, code if members.classes is None else members.classes[code]

    def _measured(self, members: Floats) -> pd.DataFrame:
        if self.names is None:
            return uncertainty_measures(members, self.scores, eps=self.eps)
        return pd.DataFrame({name: named_measure(members, name, eps=self.eps) for name in self.names})

    def _members(self) -> Members:
        return members_of(
            self.estimator,
            n_draws=self.n_draws,
            temperature=self.temperature,
            batch_size=self.batch_size,
            device=self.device,
            random_state=self.random_state,
        )

    def _refuse_options(self) -> None:
        known = self.names is None or (
            not isinstance(self.names, str) and len(self.names) and {*self.names} <= {*NAMES}
        )
        if not known:
            raise InputError(f"names is {self.names!r}", expected=f"a list of {', '.join(NAMES)}, or None")
        for option, least in (("n_draws", 2), ("batch_size", 1)):
            if getattr(self, option) < least:
                raise InputError(f"{option} is {getattr(self, option)!r}", expected=f"{least} or more")
        if not self.temperature > 0:
            raise InputError(f"temperature is {self.temperature!r}", expected="a number above 0")


def _blocks(ask: Ask, X: Any) -> Iterator[Floats]:
    """Yield what the members say, some rows at a time."""
    at = X.iloc if isinstance(X, pd.DataFrame) else X
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n == 0:
        raise InputError("there are no rows", expected="one or more")
    members, _, classes = ask(at[:1]).shape
    step = max(1, _CELLS // (members * classes))
    for start in range(0, n, step):
        yield ask(at[start : start + step])
