"""The estimator: it finds the patches, and replays them on new rows."""

import warnings
from collections.abc import Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.certificate import Certificate
from aboveboard.core.errors import InputError
from aboveboard.uncertainty.reconcile._certificate import fitted_certificate, held_out_certificate
from aboveboard.uncertainty.reconcile._input import (
    is_real,
    read_classes,
    read_outcomes,
    read_probabilities,
    read_weights,
)
from aboveboard.uncertainty.reconcile._losses import read_losses
from aboveboard.uncertainty.reconcile._measures import Measures, measured
from aboveboard.uncertainty.reconcile._patches import Board, Patch, replayed
from aboveboard.uncertainty.reconcile._search import Search, brier_scores

__all__ = ["ReDCal"]

_MODES: Final = ("redcal", "reconcile", "decision_calibration")

Floats = NDArray[np.float64]


class ReDCal(BaseEstimator):  # type: ignore[misc]
    """Make two or more models agree on what to do, and know what their decisions cost.

    The models' probabilities are patched on rows with known answers. Where two models would act differently for a loss,
    and the difference matters to them (`alpha`), the one that is more wrong is shifted to the truth on these rows;
    where a model is wrong on the rows for which it takes one action, it is shifted too. Each patch lowers a Brier
    score.

    Parameters
    ----------
    losses : array-like of shape (losses, d, actions) or (d, actions), or dict of str to DataFrame, optional
        What each action costs when a class is true: a matrix of classes x actions for each decision that will be made.
        A table's index are classes, its columns the labels of actions. Default: a wrong class costs 1.
    mode : {"redcal", "reconcile", "decision_calibration"}
        Both kinds of patch in turn (the paper's algorithm 1), only those where models would act differently (its
        baseline), or only those that make a model know its own losses (algorithm 2).
    alpha : float above 0
        Models that would act differently are reconciled where they differ by at least this much, in units of the loss,
        on what it is worth to act as the one and not as the other.
    eta : float in (0, 1)
        ... and where that happens, for one loss and two actions, in more than this share of rows.
    beta : float above 0
        The norm of E[(y - f) 1{f would take the action}] that is tolerated.
    max_patches : int
    min_event : int
        No patch is fitted on fewer rows.
    validation : float in (0, 1) or pair, optional
        A share of the rows, drawn at random, or (probabilities, y) (with `X` in fit: (X, y)), on which the Brier scores
        are watched: the fit stops after `patience` patches without a new best, and goes back to it.
    patience : int
    floor : float in [0, 1/d)
        Probabilities that `transform` returns are at least this, for downstream log-losses: mixed with the uniform
        distribution. Decisions (`predict`) and guarantees are about those before.
    random_state : int, optional
        Of the rows for validation.

    Attributes
    ----------
    patches_ : tuple of Patch
    history_ : DataFrame
        A line per patch: ``kind``, ``model``, ``loss``, ``action``, ``other_action``, ``rows`` and ``mass`` of the
        event, ``gain`` (by how much the model's Brier score fell), ``unprojected`` (mass times squared shift: the least
        that it must fall by), ``guaranteed`` (the least that the theory promises) and ``validation`` (the sum of Brier
        scores there).
    classes_ : list
    losses_ : LossSet
        The losses as they were read.
    models_ : list or None
        The classifiers, where `X` was given.
    n_models_ : int
    stopped_ : {"settled", "validation", "max_patches"}
        Settled: no event is left that is large enough. Validation: later patches were taken back.
    certificate_ : Certificate
        What holds on the rows of the fit. For others see `certify`.

    Raises
    ------
    InputError
        For probabilities, outcomes or losses that cannot be used, and settings out of range.

    Guarantee
    ---------
    For the distribution that the patches were fitted on, at the end, for every loss: models act differently by a margin
    of alpha on at most eta of the rows for each two actions; the loss that a model expects from its own decisions is
    within (actions) x beta x (longest costs) of the one it gets; no rule that renames actions would lower it by more
    than twice that. No model's Brier score is higher than before. There are at most
    (sum of Brier scores) / min(eta alpha^2 / (4 D^2), beta^2) patches, D the largest distance between the costs of two
    actions. Events on fewer than `min_event` rows are left, so the certificate gives what was measured.

    Notes
    -----
    Decisions that must be linear in the outcome: what a patient pays at the worst of times (CVaR) is no such loss.
    alpha and beta are in units of the loss: costs in thousands want larger ones. O(n losses (d actions + models)) time
    a patch at most, and O(models n losses actions) memory; `transform` takes 65,536 rows at once.

    References
    ----------
    A. Du, D. Ngo, Z. S. Wu, "Reconciling Model Multiplicity for Downstream Decision Making", ICLR 2025.

    Examples
    --------
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.uncertainty import ReDCal
    >>> adult = load_adult()
    >>> X, y = adult.X.select_dtypes("number"), adult.y_binary
    >>> forest = RandomForestClassifier(50, min_samples_leaf=5, random_state=0)
    >>> models = [model.fit(X[:5000], y[:5000]) for model in (forest, GaussianNB())]
    >>> redcal = ReDCal(alpha=0.01, eta=0.005).fit(models, y[5000:10000], X=X[5000:10000])
    >>> tables = redcal.evaluate(X[10000:15000], y[10000:15000])
    >>> before, after = tables["disagreement"]["disagreement"]
    >>> bool(after < before / 3)
    True
    """

    __metadata_request__fit = {"models": UNUSED}  # noqa: RUF012 - scikit-learn reads the class
    __metadata_request__transform = {"models": UNUSED}  # noqa: RUF012
    __metadata_request__predict = {"models": UNUSED, "loss": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        losses: Any = None,
        *,
        mode: Literal["redcal", "reconcile", "decision_calibration"] = "redcal",
        alpha: float = 0.05,
        eta: float = 0.01,
        beta: float = 0.005,
        max_patches: int = 10_000,
        min_event: int = 50,
        validation: Any = None,
        patience: int = 20,
        floor: float = 0.0,
        random_state: Any = None,
    ) -> None:
        self.losses = losses
        self.mode = mode
        self.alpha = alpha
        self.eta = eta
        self.beta = beta
        self.max_patches = max_patches
        self.min_event = min_event
        self.validation = validation
        self.patience = patience
        self.floor = floor
        self.random_state = random_state

    def fit(self, models: Any, y: ArrayLike, *, X: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Find the patches.

        Parameters
        ----------
        models : list of array-like of shape (n, d)
            Each model's probabilities for the same rows, which no model was trained on; shape (n,) for the second of
            two classes. Or, with `X`, fitted classifiers.
        y : array-like of shape (n,) or (n, d)
            The true classes; or their probabilities.
        X : table of n rows, optional
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        ReDCal
        """
        probabilities = read_probabilities(models, X)
        n, d = probabilities[0].shape
        self._refuse_settings(d)
        self.classes_ = read_classes(models, y, d, from_models=X is not None)
        self.losses_ = read_losses(self.losses, self.classes_)
        outcomes, weights = read_outcomes(y, self.classes_, n), read_weights(sample_weight, n)
        self.models_ = None if X is None else list(models)
        self.n_models_ = len(probabilities)
        kept, watched = self._watched(probabilities, outcomes)
        probabilities = [part[kept] for part in probabilities]
        outcomes = outcomes[kept]
        weights = read_weights(weights[kept], len(outcomes))
        if len(outcomes) < self.min_event:
            raise InputError(
                f"there are {len(outcomes):,} rows to fit on", expected=f"min_event ({self.min_event}) or more"
            )
        for place, matrix in enumerate(probabilities):
            if not np.ptp(matrix, axis=0).any():
                warnings.warn(
                    f"model {place} gives every row the same probabilities, so it takes one action for everybody",
                    stacklevel=2,
                )
        lines = self._patch(Board(probabilities, self.losses_), outcomes, weights, watched)
        self.history_ = pd.DataFrame(lines, columns=list(_COLUMNS))
        board = Board(probabilities, self.losses_).replay(self.patches_)
        start = measured(Board(probabilities, self.losses_), outcomes, weights, self.alpha)
        self.certificate_ = fitted_certificate(
            self, start, measured(board, outcomes, weights, self.alpha), rows=len(outcomes)
        )
        return self

    def transform(self, models: Any) -> list[Floats]:
        """Return the reconciled probabilities of every model.

        Parameters
        ----------
        models : list of array-like of shape (n, d), or the table X where classifiers were fitted

        Returns
        -------
        list of ndarray of shape (n, d)
        """
        parts = [board.probabilities for board in self._boards(models)]
        joined = [np.concatenate(matrices) for matrices in zip(*parts, strict=True)]
        share = self.floor * len(self.classes_)
        return [(1.0 - share) * matrix + self.floor for matrix in joined] if self.floor else joined

    def predict(self, models: Any, *, loss: int | str = 0) -> list[NDArray[Any]]:
        """Return the action that each reconciled model recommends for each row.

        Parameters
        ----------
        models : as for `transform`
        loss : int or str
            By which loss: its position, or its name.

        Returns
        -------
        list of ndarray of shape (n,)
            Labels of actions.
        """
        check_is_fitted(self)
        place = self.losses_.place(loss)
        actions = np.array([*self.losses_.actions[place], None], dtype=object)[:-1]
        parts = [[best[place] for best in board.best] for board in self._boards(models)]
        return [actions[np.concatenate(codes)] for codes in zip(*parts, strict=True)]

    def evaluate(self, models: Any, y: ArrayLike, *, sample_weight: ArrayLike | None = None) -> dict[str, pd.DataFrame]:
        """Return what the patches change on any rows with known answers, best on rows that the fit has not seen.

        Parameters
        ----------
        models : as for `transform`
        y : as for `fit`
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        dict of str to DataFrame
            ``"models"``: for each model (and ``when``: before, after) its ``brier`` score, for each loss the
            ``realised`` and the ``forecast`` loss, and the swap ``regret``. ``"disagreement"``: for each loss and two
            models the share of rows where they would act differently, at all and by a ``margin`` of alpha.
        """
        check_is_fitted(self)
        probabilities = self._read(models)
        n = len(probabilities[0])
        outcomes, weights = read_outcomes(y, self.classes_, n), read_weights(sample_weight, n)
        stages = {
            "before": measured(Board(probabilities, self.losses_), outcomes, weights, self.alpha),
            "after": measured(Board(probabilities, self.losses_).replay(self.patches_), outcomes, weights, self.alpha),
        }
        return _tables(stages, self.losses_.names)

    def certify(self, models: Any, y: ArrayLike, *, level: float = 0.95) -> Certificate:
        """Return what holds for the population that held-out rows were drawn from.

        Parameters
        ----------
        models : as for `transform`
            Rows that neither the models nor the patches were fitted on.
        y : as for `fit`
        level : float in (0, 1)

        Returns
        -------
        Certificate
            Bounds that all hold at once with probability `level`, for independent rows.
        """
        check_is_fitted(self)
        if not 0 < level < 1:
            raise InputError(f"the level is {level!r}", expected="a number between 0 and 1")
        probabilities = self._read(models)
        n = len(probabilities[0])
        outcomes = read_outcomes(y, self.classes_, n)
        board = Board(probabilities, self.losses_).replay(self.patches_)
        found = measured(board, outcomes, np.full(n, 1.0 / n), self.alpha)
        return held_out_certificate(self, found, rows=n, level=level)

    def _read(self, models: Any) -> list[Floats]:
        check_is_fitted(self)
        given = models if self.models_ is None else self.models_
        probabilities = read_probabilities(given, None if self.models_ is None else models, expected=self.n_models_)
        if probabilities[0].shape[1] != len(self.classes_):
            raise InputError(
                f"the probabilities are of {probabilities[0].shape[1]} classes", expected=f"{len(self.classes_)}"
            )
        return probabilities

    def _boards(self, models: Any) -> Any:
        return replayed(self._read(models), self.losses_, self.patches_)

    def _refuse_settings(self, d: int) -> None:
        if self.mode not in _MODES:
            raise InputError(f"the mode is {self.mode!r}", expected=", ".join(_MODES))
        for name, low, high in (("alpha", 0, np.inf), ("eta", 0, 1), ("beta", 0, np.inf)):
            value = getattr(self, name)
            if not (is_real(value) and low < value < high):
                raise InputError(f"{name} is {value!r}", expected=f"a number above {low} and below {high}")
        for name in ("max_patches", "min_event", "patience"):
            value = getattr(self, name)
            if not hasattr(value, "__index__") or isinstance(value, bool) or value < 1:
                raise InputError(f"{name} is {value!r}", expected="a whole number, 1 or more")
        if not (is_real(self.floor) and 0 <= self.floor < 1 / d):
            raise InputError(f"the floor is {self.floor!r}", expected=f"a number from 0 to below 1/{d}")

    def _watched(self, probabilities: list[Floats], outcomes: Floats) -> tuple[Any, tuple[Board, Floats] | None]:
        """Return the rows of the fit, and the board and outcomes on which it is watched."""
        n = len(outcomes)
        if self.validation is None:
            return slice(None), None
        if isinstance(self.validation, tuple):
            if len(self.validation) != 2:
                raise InputError(f"validation is a tuple of {len(self.validation)}", expected="(probabilities, y)")
            given, y = self.validation
            held = self._read_held(given)
            return slice(None), (Board(held, self.losses_), read_outcomes(y, self.classes_, len(held[0])))
        share: Any = self.validation
        if not (isinstance(share, float) and 0 < share < 1):
            raise InputError(f"validation is {self.validation!r}", expected="a share between 0 and 1, or a pair")
        order = np.random.default_rng(self.random_state).permutation(n)
        held_rows, kept = np.split(order, [round(share * n)])
        if not len(held_rows):
            raise InputError(f"validation is {self.validation!r} of {n:,} rows", expected="one row or more")
        board = Board([part[held_rows] for part in probabilities], self.losses_)
        return np.sort(kept), (board, outcomes[held_rows])

    def _read_held(self, given: Any) -> list[Floats]:
        held = (
            read_probabilities(given, expected=self.n_models_)
            if self.models_ is None
            else read_probabilities(self.models_, given)
        )
        if held[0].shape[1] != len(self.classes_):
            raise InputError(f"validation has {held[0].shape[1]} classes", expected=f"{len(self.classes_)}")
        return held

    def _patch(
        self, board: Board, outcomes: Floats, weights: Floats, watched: tuple[Board, Floats] | None
    ) -> list[tuple[Any, ...]]:
        """Find patches until none is called for, and keep those up to the best state on the watched rows."""
        search = Search(
            board,
            outcomes,
            weights,
            mode=self.mode,
            alpha=self.alpha,
            eta=self.eta,
            beta=self.beta,
            least=self.min_event,
        )
        patches: list[Patch] = []
        lines: list[tuple[Any, ...]] = []
        best, kept = (np.inf, 0) if watched is None else (float(brier_scores(*watched).sum()), 0)
        self.stopped_: Literal["settled", "validation", "max_patches"] = "settled"
        while (step := search.next()) is not None:
            if len(patches) == self.max_patches:
                self.stopped_ = "max_patches"
                warnings.warn(
                    f"{self.max_patches:,} patches were made and events are left; raise max_patches, alpha or eta",
                    ConvergenceWarning,
                    stacklevel=3,
                )
                break
            patches.append(step.patch)
            gain = search.apply(step)
            seen = np.nan
            if watched is not None:
                watched[0].replay([step.patch])
                seen = float(brier_scores(*watched).sum())
                if seen < best:
                    best, kept = seen, len(patches)
            lines.append((*self._told(step.patch), len(step.rows), step.mass, gain, *step.promised, seen))
            if watched is not None and len(patches) - kept >= self.patience:
                break
        size = len(patches) if watched is None else kept
        if size < len(patches):
            self.stopped_ = "validation"
        self.patches_ = tuple(patches[:size])
        return lines[:size]

    def _told(self, patch: Patch) -> tuple[Any, ...]:
        actions = self.losses_.actions[patch.loss]
        other = None if patch.other_action < 0 else actions[patch.other_action]
        return patch.kind, patch.model, self.losses_.names[patch.loss], actions[patch.action], other


_COLUMNS: Final = (
    "kind", "model", "loss", "action", "other_action", "rows", "mass", "gain", "unprojected", "guaranteed",
    "validation",
)  # fmt: skip


def _tables(stages: dict[str, Measures], names: Sequence[str]) -> dict[str, pd.DataFrame]:
    models = [
        (when, model, name, found.brier[model], found.realised[model, place], found.forecast[model, place],
         found.regret[model, place])
        for when, found in stages.items()
        for model in range(len(found.brier))
        for place, name in enumerate(names)
    ]  # fmt: skip
    pairs = [
        (when, name, pair, float(found.total[pair][place]), float(found.margin[pair][place]))
        for when, found in stages.items()
        for pair in found.total
        for place, name in enumerate(names)
    ]
    apart = pd.DataFrame(pairs, columns=["when", "loss", "pair", "disagreement", "margin"])
    return {
        "models": pd.DataFrame(
            models, columns=["when", "model", "loss", "brier", "realised", "forecast", "regret"]
        ).set_index(["when", "model", "loss"]),
        "disagreement": apart.set_index(["when", "loss", "pair"]),
    }
