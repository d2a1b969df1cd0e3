"""What an explanation says: how much each feature moved one answer, and by how much that could be off."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from aboveboard import __version__
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Column, Figure, Finding, Series, Table, plain
from aboveboard.core.reference import Reference
from aboveboard.explanation.gefa._coalitions import Floats
from aboveboard.explanation.gefa._plots import draw_beeswarm, draw_waterfall

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["REFERENCE", "Attribution", "Attributions"]

REFERENCE: Final = Reference(
    title="GEFA: A General Feature Attribution Framework Using Proxy Gradient Estimation",
    authors="Y. Cai, T. Ardoin, G. Wunder",
    venue="ICML 2025",
    year=2025,
    url="https://openreview.net/forum?id=QyG0ilz5ju",
)
_SHOWN: Final = 20
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, eq=False, kw_only=True)
class Attribution:
    """How much each feature moved one answer.

    Attributes
    ----------
    values : ndarray of shape (n,)
        In the unit of the answer; positive where the feature's value raised it.
    stderr : ndarray of shape (n,)
        Standard errors of `values` from the choice of coalitions; zero where all were asked about.
    base_value, full_value : float
        The answer with no feature (the baseline) and with all.
    feature_names : tuple of str
    feature_values : tuple
        What the features were, as they are to be shown; empty where that is not known.
    n_queries : int
        Coalitions that were asked about, with the full and the empty one.
    dof : float
        Degrees of freedom of the standard errors.
    method : str
        ``"exact enumeration"``, ``"marginal weights"``, ``"score weights"`` or ``"as published"``.
    unbiased : bool
        Whether `values` estimate the Shapley values without bias.
    target : int or None
        Which of the model's outputs.
    baseline : object
        What absent features were replaced by.
    deterministic : bool or None
        Whether the model gave the same answer twice; None where it was not asked twice.
    """

    values: Floats
    stderr: Floats
    base_value: float
    full_value: float
    feature_names: tuple[str, ...]
    n_queries: int
    dof: float
    method: str
    unbiased: bool
    feature_values: tuple[Any, ...] = ()
    target: int | None = None
    baseline: Any = field(default=None, repr=False)
    deterministic: bool | None = None

    @property
    def residual(self) -> float:
        """By how much `values` miss the difference between the answer with all features and that with none."""
        return float(self.values.sum() - (self.full_value - self.base_value))

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Return a confidence interval for each feature by itself, from Student's distribution.

        Returns
        -------
        low, high : ndarray of shape (n,)

        Raises
        ------
        InputError
            For a confidence outside of (0, 1).
        """
        half = _critical(confidence, self.dof) * self.stderr
        return self.values - half, self.values + half

    def to_frame(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return features, their values, attributions and intervals, the largest effect first."""
        low, high = self.interval(confidence)
        frame = pd.DataFrame(
            {"attribution": self.values, "stderr": self.stderr, "low": low, "high": high},
            index=pd.Index(self.feature_names, name="feature"),
        )
        if self.feature_values:
            frame.insert(0, "value", pd.Series(self.feature_values, index=frame.index, dtype=object))
        return frame.iloc[_largest_first(self.values)]

    def sentence(self, outcome: str = "the answer", *, top: int = 3, confidence: float = 0.95) -> str:
        """Say in one sentence why the answer is what it is.

        Parameters
        ----------
        outcome : str
            What the answer is: ``"the probability of 'yes'"``.
        top : int
            The most features that are named. Features whose interval holds zero are not.
        confidence : float

        Examples
        --------
        >>> from aboveboard.explanation import exact_shapley
        >>> attribution = exact_shapley(lambda z: 0.2 + 0.5 * z[:, 0] - 0.1 * z[:, 1] * z[:, 2], 3)
        >>> attribution.sentence("the score")
        'The score is 0.6 and not 0.2, mainly because of x0 (+0.5), x1 (-0.05) and x2 (-0.05).'
        """
        low, high = self.interval(confidence)
        certain = [i for i in _largest_first(self.values) if low[i] > 0 or high[i] < 0][: max(top, 1)]
        opening = f"{outcome[:1].upper()}{outcome[1:]} is {_number(self.full_value)} and not {_number(self.base_value)}"
        if not certain:
            return f"{opening}; which features that is due to cannot be told from {self.n_queries:,} queries."
        reasons = _enumerated([f"{self._named(i)} ({_signed(self.values[i])})" for i in certain])
        off = float((high - low)[certain].max() / 2.0)
        doubt = f"; each of these could be off by {_number(off)}" if off > 0 else ""
        return f"{opening}, mainly because of {reasons}{doubt}."

    def to_finding(self, *, id: str = "gefa", outcome: str = "the answer", confidence: float = 0.95) -> Finding:
        """Return the explanation as a finding of an audit: one person's row, to be shown only where that is meant."""
        frame = self.to_frame(confidence).head(_SHOWN)
        cells = [self._named(i) for i in _largest_first(self.values)[:_SHOWN]]
        low, high = frame["low"].tolist(), frame["high"].tolist()
        table = Table(
            "What moved the answer",
            (Column("feature", "text"), Column("effect"), Column(f"{100 * confidence:.3g} % interval", "interval")),
            tuple(zip(cells, frame["attribution"].tolist(), zip(low, high, strict=True), strict=True)),
            note=f"{self.n_queries:,} queries, {self.method}. Effects of all features sum to "
            f"{_number(self.full_value - self.base_value)}, what the answer differs by from that of the baseline.",
        )
        figure = Figure(
            "intervals",
            "What moved the answer",
            "feature",
            "effect on the answer",
            (Series("effect", tuple(cells), tuple(frame["attribution"].tolist()), tuple(low), tuple(high)),),
            alt=self.sentence(outcome, confidence=confidence),
        )
        return Finding(
            id=id,
            check=id.partition("/")[0],
            area="explanation",
            statement=self.sentence(outcome, confidence=confidence),
            severity="note",
            reason="An effect is a Shapley value of the answer under replacement by the baseline; it is no cause.",
            value=self.full_value,
            evidence=(table, figure),
        )

    def certificate(self, confidence: float = 0.95) -> Certificate:
        """Return what holds of these values, and what that rests on."""
        exact = self.method == "exact enumeration"
        what = "is the Shapley value" if exact else "is an unbiased estimate of the Shapley value"
        if not self.unbiased:
            what = "estimates, with a bias, the Shapley value"
        scale = max(1.0, abs(self.full_value), abs(self.base_value))
        drawn = () if exact else (
            Assumption("The coalitions were drawn at random, independently of the model."),
            Assumption("The mean over coalitions is close to normal, which the intervals rest on."),
        )  # fmt: skip
        return Certificate(
            kind="Shapley attribution",
            guarantee=(
                f"Each of {len(self.values)} values {what} of the game in which absent features are replaced by the "
                f"baseline, and the values sum to the answer less the baseline's, but for {abs(self.residual):.2g}."
            ),
            parameters={
                "n_queries": self.n_queries,
                "method": self.method,
                "largest_stderr": float(self.stderr.max()),
                "residual": self.residual,
                "dof": None if math.isinf(self.dof) else self.dof,
            },
            assumptions=(
                self._determinism(),
                Assumption(
                    "The values sum to what they must.",
                    basis="checked",
                    test="absolute residual by max(1, |answer|)",
                    statistic=abs(self.residual) / scale,
                    limit=_ROUNDING,
                    passed=abs(self.residual) <= _ROUNDING * scale,
                ),
                *drawn,
            ),
            confidence=None if exact else confidence,
            does_not_cover=(
                "Whether the model, the baseline or the features are the right ones.",
                "Causes: a feature that matters to the model need not matter in the world.",
                "Masked inputs that could not occur, about which the model is asked all the same.",
            ),
            library_version=__version__,
            reference=REFERENCE,
        )

    def waterfall(self, *, max_display: int = 10, confidence: float = 0.95, ax: "Axes | None" = None) -> "Axes":
        """Draw how the answer comes about, from the baseline upwards, with an error bar at each step.

        Parameters
        ----------
        max_display : int, default=10
            The smallest effects beyond that are added up, with an error bar for their sum.
        confidence : float
        ax : matplotlib Axes, optional
        """
        _refuse_few(max_display)
        low, high = self.interval(confidence)
        return draw_waterfall(
            [self._named(i) for i in range(len(self.values))],
            self.values,
            (high - low) / 2.0,
            (self.base_value, self.full_value),
            max_display,
            ax,
        )

    def _named(self, i: int) -> str:
        name = self.feature_names[i]
        return f"{name} = {shown(self.feature_values[i])}" if self.feature_values else name

    def _determinism(self) -> Assumption:
        text = "The model is deterministic."
        if self.deterministic is None:
            return Assumption(text)
        return Assumption(text, basis="checked", test="one input, asked about twice", passed=self.deterministic)


@dataclass(frozen=True, eq=False, kw_only=True)
class Attributions:
    """How much each feature moved each of several answers: `Attribution`, row by row.

    Attributes
    ----------
    values, stderr : ndarray of shape (rows, n)
    base_value, full_value : ndarray of shape (rows,)
    feature_names : tuple of str
    feature_values : list of tuple
    targets : list of int or None
    baselines : list
    n_queries, dof, method, unbiased, deterministic :
        As for `Attribution`; queries are those about each row.
    """

    values: Floats
    stderr: Floats
    base_value: Floats
    full_value: Floats
    feature_names: tuple[str, ...]
    feature_values: list[tuple[Any, ...]]
    targets: list[int | None]
    baselines: list[Any] = field(repr=False)
    n_queries: int
    dof: float
    method: str
    unbiased: bool
    deterministic: bool | None = None

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Attribution]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, row: int) -> Attribution:
        return Attribution(
            values=self.values[row],
            stderr=self.stderr[row],
            base_value=float(self.base_value[row]),
            full_value=float(self.full_value[row]),
            feature_names=self.feature_names,
            feature_values=self.feature_values[row],
            n_queries=self.n_queries,
            dof=self.dof,
            method=self.method,
            unbiased=self.unbiased,
            target=self.targets[row],
            baseline=self.baselines[row],
            deterministic=self.deterministic,
        )

    def importance(self, confidence: float = 0.95) -> pd.DataFrame:
        """Return how far each feature moves an answer, on average over the rows.

        Returns
        -------
        DataFrame
            Per feature ``mean_abs``, the mean size of its effect, with a normal interval for the rows as a sample of
            others (``low``, ``high``), and ``noise``: what the mean size would be for a feature of no effect, from the
            choice of coalitions alone. The largest first.

        Raises
        ------
        InputError
            With fewer than two rows.
        """
        if len(self) < 2:
            raise InputError(f"there are {len(self)} rows", expected="two or more, to tell how far they differ")
        size = np.abs(self.values)
        mean, error = size.mean(axis=0), size.std(axis=0, ddof=1) / math.sqrt(len(self))
        half = _critical(confidence, len(self) - 1) * error
        frame = pd.DataFrame(
            {
                "mean_abs": mean,
                "low": np.maximum(mean - half, 0.0),
                "high": mean + half,
                "noise": math.sqrt(2.0 / math.pi) * self.stderr.mean(axis=0),
            },
            index=pd.Index(self.feature_names, name="feature"),
        )
        return frame.iloc[_largest_first(mean)]

    def beeswarm(self, *, max_display: int = 10, ax: "Axes | None" = None) -> "Axes":
        """Draw every row's effects, feature by feature, coloured from the lowest value of the feature to the highest.

        Values that are no numbers are grey. The grey bar behind each feature spans 1.96 median standard errors to
        either side of zero: effects within it may be none.

        Parameters
        ----------
        max_display : int, default=10
            The features of the largest mean effects.
        ax : matplotlib Axes, optional
        """
        _refuse_few(max_display)
        order = _largest_first(np.abs(self.values).mean(axis=0))[:max_display]
        levels = [_ranks([row[i] if row else None for row in self.feature_values]) for i in order]
        return draw_beeswarm(
            [self.feature_names[i] for i in order],
            self.values[:, order],
            levels,
            1.96 * np.median(self.stderr[:, order], axis=0),
            ax,
        )


def shown(value: Any) -> str:
    """Return a feature's value as text."""
    value = plain(value)
    return _number(value) if isinstance(value, float) else str(value)


def _largest_first(values: Floats) -> list[int]:
    return [int(i) for i in np.argsort(-np.abs(values), kind="stable")]


def _critical(confidence: float, dof: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence!r}", expected="a number between 0 and 1")
    return float(stats.t.ppf(0.5 + confidence / 2.0, dof))


def _refuse_few(max_display: int) -> None:
    if max_display < 1:
        raise InputError(f"max_display is {max_display!r}", expected="1 or more")


def _ranks(values: Sequence[Any]) -> Floats:
    """Return where each value lies between the lowest, 0, and the highest, 1; NaN for what is no number."""
    numbers = pd.to_numeric(pd.Series(list(values), dtype=object), errors="coerce").astype("float64")
    if numbers.nunique() < 2:
        return np.where(numbers.isna(), np.nan, 0.5).astype(np.float64)
    place = numbers.rank(method="average")
    return ((place - place.min()) / (place.max() - place.min())).to_numpy(dtype=np.float64)  # type: ignore[return-value]


def _number(value: float) -> str:
    return f"{value:.3g}"


def _signed(value: float) -> str:
    return f"{value:+.3g}"


def _enumerated(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
