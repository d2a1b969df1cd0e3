"""The risks, row by row: total, Bayes and excess, with truth and prediction replaced by what the members say.

With losses ``L_b`` of each class under a prediction ``b`` and probabilities ``p_a`` that stand for the truth, the total
risk is ``<p_a, L_b>``, the Bayes risk ``<p_a, L_a>``, and the excess risk their difference. It is linear in the truth,
so that members are averaged before anything is multiplied, and no pair of members is ever formed.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard.core.errors import InputError
from aboveboard.uncertainty.risk_decomposition._scores import Loss, loss_of, score_name

__all__ = [
    "ALL_SCORES",
    "NAMES",
    "Kind",
    "Stand",
    "central_prediction",
    "family_frame",
    "named_measure",
    "pointwise_risk",
    "refuse_one_member",
    "uncertainty_measures",
]

Floats = NDArray[np.float64]
Kind = Literal["total", "bayes", "excess"]
Stand = Literal["outer", "inner", "central"]

ALL_SCORES: Final = ("log", "brier", "spherical", "zero_one")

NAMES: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "predictive_entropy": {"score": "log", "kind": "total", "truth": "inner", "prediction": "inner"},
        "expected_entropy": {"score": "log", "kind": "bayes", "truth": "outer"},
        "mutual_information": {"score": "log", "kind": "excess", "truth": "outer", "prediction": "inner"},
        "reverse_mutual_information": {"score": "log", "kind": "excess", "truth": "inner", "prediction": "outer"},
        "epkl": {"score": "log", "kind": "excess", "truth": "outer", "prediction": "outer"},
        "energy_gap": {"score": "log", "kind": "excess", "truth": "central", "prediction": "outer"},
        "gini_impurity": {"score": "brier", "kind": "total", "truth": "inner", "prediction": "inner"},
        "member_variance": {"score": "brier", "kind": "excess", "truth": "outer", "prediction": "inner"},
        "least_confidence": {"score": "zero_one", "kind": "total", "truth": "inner", "prediction": "inner"},
    }
)
"""Names that members of the family are known by: what to hand to `pointwise_risk`."""

_CELLS: Final = 1 << 17
"""Numbers of a block: what is held besides input and output is a few times 1 MB."""
_SUM: Final = 1e-6
_LOGIT_FLOOR: Final = 1e-300

_Column = tuple[str, str, str]
_FAMILY: Final[tuple[_Column, ...]] = (
    *(("bayes", truth, "") for truth in get_args(Stand)),
    *(
        ("excess", truth, prediction)
        for truth in get_args(Stand)
        for prediction in get_args(Stand)
        if not (truth == prediction != "outer")  # zero
    ),
    *(("total", truth, prediction) for truth in ("inner", "central") for prediction in get_args(Stand)),
)
"""Every different measure of a score once: a total risk is the same for an outer and an inner truth."""


def pointwise_risk(
    probs: ArrayLike | None = None,
    *,
    kind: Kind = "excess",
    score: Any = "log",
    truth: Stand = "outer",
    prediction: Stand | None = None,
    logits: ArrayLike | None = None,
    eps: float = 1e-12,
) -> Floats:
    """Return one risk of every row.

    Parameters
    ----------
    probs : array-like of shape (M, n, K)
        What each of M members says of each row: probabilities of K classes. Or None, with `logits`.
    kind : {"excess", "total", "bayes"}
        Excess is what the members' disagreement costs (epistemic), Bayes what would stay if the truth were known
        (aleatoric), total their sum.
    score : {"log", "brier", "spherical", "zero_one"} or ProperScore
    truth, prediction : {"outer", "inner", "central"}
        What stands for the unknown truth, and for the prediction: each member in turn, with the mean taken over the
        risks; the mean of the members; or their centre (`central_prediction`). The prediction defaults to inner; the
        Bayes risk has none.
    logits : array-like of shape (M, n, K), optional
        Instead of `probs`, where they are known: probabilities are then exact down to 1e-300.
    eps : float, default=1e-12
        For the log score, where a probability of zero would cost infinitely much: smaller ones are raised to this,
        with a warning. How members that say zero rank depends on it.

    Returns
    -------
    ndarray of shape (n,)
        In nats for the log score.

    Raises
    ------
    InputError
        For other shapes, values that are no probabilities, unknown names, an excess risk of one member, or a Bayes risk
        with a prediction.

    Notes
    -----
    O(M n K) time, also where truth and prediction are both outer: that is the sum of the two with one inner. A few MB
    besides input and output.

    Examples
    --------
    Two members that contradict each other: their mutual information is ln 2.

    >>> from aboveboard.uncertainty import pointwise_risk
    >>> members = [[[0.999, 0.001]], [[0.001, 0.999]]]
    >>> round(float(pointwise_risk(members, kind="excess", score="log")[0]), 3)
    0.685
    >>> round(float(pointwise_risk(members, kind="bayes", score="log")[0]), 3)
    0.008
    """
    _refuse_choice("kind", kind, Kind)
    _refuse_choice("truth", truth, Stand)
    if kind == "bayes" and prediction is not None:
        raise InputError(f"a Bayes risk was asked for with prediction={prediction!r}", expected="no prediction")
    _refuse_choice("prediction", prediction or "inner", Stand)
    members = _Members(probs, logits, eps)
    if kind == "excess":
        refuse_one_member(members.shape[0])
    loss = loss_of(score)
    out = np.empty(members.shape[1])
    for rows, (block,) in members.blocks([loss]):
        risks = _Risks(loss, block)
        out[rows] = risks.bayes(truth) if kind == "bayes" else getattr(risks, kind)(truth, prediction or "inner")
    return out


def uncertainty_measures(
    probs: ArrayLike | None = None,
    scores: Sequence[Any] = ALL_SCORES,
    *,
    logits: ArrayLike | None = None,
    eps: float = 1e-12,
) -> pd.DataFrame:
    """Return all measures of the family for every row.

    Parameters
    ----------
    probs, logits, eps :
        As for `pointwise_risk`.
    scores : sequence of str or ProperScore

    Returns
    -------
    DataFrame of shape (n, 16 per score)
        Columns are labelled score, kind, truth and prediction (empty for a Bayes risk). What is zero for all members is
        left out, and so is the total risk with an outer truth, which equals that with an inner one. Some coincide for
        a score: the centre of the Brier score is the mean.

    Raises
    ------
    InputError
        As for `pointwise_risk`.

    Notes
    -----
    O(M n K) time for each score, and a few MB besides input and output: 10 members of 1,000,000 rows and 10 classes
    take seconds, see the recorded evidence.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import uncertainty_measures
    >>> members = np.random.default_rng(0).dirichlet([1, 1, 1], size=(5, 100))
    >>> family = uncertainty_measures(members)
    >>> family.shape
    (100, 64)
    >>> total, bayes = family["log", "total", "inner", "inner"], family["log", "bayes", "outer", ""]
    >>> bool(np.allclose(total - bayes, family["log", "excess", "outer", "inner"]))
    True
    """
    members = _Members(probs, logits, eps)
    refuse_one_member(members.shape[0])
    return family_frame(members, scores)


def named_measure(
    probs: ArrayLike | None = None, name: str = "mutual_information", *, logits: ArrayLike | None = None, **options: Any
) -> Floats:
    """Return a measure by the name that it is known by.

    Parameters
    ----------
    probs, logits, **options :
        As for `pointwise_risk`.
    name : str
        One of `NAMES`: ``"mutual_information"`` (BALD), ``"predictive_entropy"``, ``"expected_entropy"``, ``"epkl"``
        (expected pairwise divergence), ``"reverse_mutual_information"``, ``"energy_gap"`` (mean of the energies minus
        energy of the mean logits), ``"gini_impurity"``, ``"member_variance"`` (summed over classes),
        ``"least_confidence"`` (1 minus the largest mean probability).

    Returns
    -------
    ndarray of shape (n,)

    Examples
    --------
    >>> from aboveboard.uncertainty import named_measure
    >>> round(float(named_measure([[[0.9, 0.1]], [[0.5, 0.5]]], "least_confidence")[0]), 3)
    0.3
    """
    if name not in NAMES:
        raise InputError(f"the measure is {name!r}", expected=", ".join(NAMES))
    return pointwise_risk(probs, logits=logits, **{**options, **NAMES[name]})


def central_prediction(
    probs: ArrayLike | None = None, score: Any = "log", *, logits: ArrayLike | None = None, eps: float = 1e-12
) -> Floats:
    """Return the prediction in the middle of the members: ``argmin_z mean_m D(z || p_m)`` over probabilities.

    For the log score the normalised geometric mean (the softmax of the mean logits), for the Brier score the mean; for
    the zero-one score, where it is not unique, the mean as well.

    Parameters
    ----------
    probs, logits, eps :
        As for `pointwise_risk`.
    score : str or ProperScore

    Returns
    -------
    ndarray of shape (n, K)

    Notes
    -----
    O(M n K) time; a score of your own without ``central`` takes some milliseconds a row.

    Examples
    --------
    >>> from aboveboard.uncertainty import central_prediction
    >>> central_prediction([[[0.8, 0.2]], [[0.2, 0.8]]], "log").round(3).tolist()
    [[0.5, 0.5]]
    """
    members, loss = _Members(probs, logits, eps), loss_of(score)
    out = np.empty(members.shape[1:])
    for rows, (block,) in members.blocks([loss]):
        out[rows] = loss.central(block)
    return out


def family_frame(members: "_Members", scores: Sequence[Any]) -> pd.DataFrame:
    """Return the measures of each score as columns."""
    if isinstance(scores, str) or not len(scores):
        raise InputError(f"the scores are {scores!r}", expected="a sequence of one or more")
    names = [score_name(score) for score in scores]
    if len(set(names)) < len(names):
        raise InputError(f"the scores are called {', '.join(names)}", expected="a name for each (attribute name)")
    out = np.empty((len(names) * len(_FAMILY), members.shape[1]))
    losses = [loss_of(score) for score in scores]
    for rows, blocks in members.blocks(losses):
        position = 0
        for loss, block in zip(losses, blocks, strict=True):
            risks = _Risks(loss, block)
            for kind, *stands in _FAMILY:
                out[position, rows] = getattr(risks, kind)(*stands)
                position += 1
    columns = pd.MultiIndex.from_tuples(
        [(name, *column) for name in names for column in _FAMILY], names=["score", "kind", "truth", "prediction"]
    )
    return pd.DataFrame(out.T, columns=columns, copy=False)


def refuse_one_member(count: int) -> None:
    """Refuse what one member cannot tell."""
    if count < 2:
        raise InputError(
            "there is one member, which disagrees with nobody",
            expected="two members or more for excess risks",
            remedy="For one model use pointwise_risk(..., kind='total', truth='inner')",
        )


class _Risks:
    """The risks of a block of rows under one score; what has been worked out is kept."""

    def __init__(self, loss: Loss, members: Floats) -> None:
        self._loss = loss
        self._members = members
        self._points: dict[str, Floats] = {}
        self._lost: dict[str, Floats] = {}
        self._known: dict[tuple[str, ...], Floats] = {}

    def bayes(self, truth: str, _: str = "") -> Floats:
        if truth != "outer":
            return self.total(truth, truth)
        if ("outer",) not in self._known:
            self._losses("outer")
        return self._known["outer",]

    def total(self, truth: str, prediction: str) -> Floats:
        truth = "inner" if truth == "outer" else truth  # linear in the truth
        key = (truth, prediction)
        if key not in self._known:
            self._known[key] = np.einsum("nk,nk->n", self._point(truth), self._losses(prediction))
        return self._known[key]

    def excess(self, truth: str, prediction: str) -> Floats:
        if truth == prediction != "outer":
            return np.zeros(self._members.shape[1])
        return np.maximum(self.total(truth, prediction) - self.bayes(truth), 0.0)  # below zero only by rounding

    def _point(self, stand: str) -> Floats:
        if stand not in self._points:
            self._points[stand] = self._members.mean(axis=0) if stand == "inner" else self._loss.central(self._members)
        return self._points[stand]

    def _losses(self, stand: str) -> Floats:
        if stand not in self._lost:
            if stand == "outer":
                each = self._loss.losses(self._members)
                self._known["outer",] = np.einsum("mnk,mnk->n", self._members, each) / len(each)
                self._lost[stand] = each.mean(axis=0)
            else:
                self._lost[stand] = self._loss.losses(self._point(stand))
        return self._lost[stand]


class _Members:
    """What members say, checked, and handed out in blocks of rows of float64 that sum to one.

    Raises
    ------
    InputError
        When it cannot be the probabilities, or logits, of M members, n rows and K classes.
    """

    def __init__(self, probs: ArrayLike | None, logits: ArrayLike | None, eps: float) -> None:
        if (probs is None) == (logits is None):
            got = "neither probs nor logits were" if probs is None else "both probs and logits were"
            raise InputError(f"{got} given", expected="one of the two")
        if not 0 < eps < 0.01:
            raise InputError(f"eps is {eps!r}", expected="a small number above 0, such as 1e-12")
        self._logits = probs is None
        self._floor = _LOGIT_FLOOR if self._logits else float(eps)
        self._values = _numbers(logits if self._logits else probs)
        self.shape: tuple[int, int, int] = self._values.shape
        self._refuse_values()

    def blocks(self, losses: Sequence[Loss]) -> Iterator[tuple[slice, list[Floats]]]:
        """Yield rows, and what members say of them, for each loss; where it needs it, raised to the floor."""
        raised = 0
        for rows in self._slices():
            block = self._values[:, rows].astype(np.float64)
            if self._logits:
                block -= block.max(axis=-1, keepdims=True)
                np.exp(block, out=block)
            block /= _sums(block)
            above = block
            if any(loss.floor for loss in losses) and block.min() < self._floor:
                raised += int((block.min(axis=(0, 2)) < self._floor).sum())
                above = np.maximum(block, self._floor)
                above /= _sums(above)
            yield rows, [above if loss.floor else block for loss in losses]
        if raised:
            warnings.warn(
                f"In {raised:,} of {self.shape[1]:,} rows a member gives some class a probability below "
                f"{self._floor:g}, which costs the log score too much: raised to that. How these rows rank by excess "
                "risk depends on that floor.",
                UserWarning,
                stacklevel=4,
            )

    def _slices(self) -> Iterator[slice]:
        M, n, K = self.shape
        step = max(1, _CELLS // (M * K))
        return (slice(start, min(start + step, n)) for start in range(0, n, step))

    def _refuse_values(self) -> None:
        for rows in self._slices():
            block = self._values[:, rows]
            if not np.isfinite(block).all():
                raise InputError("some values are NaN or infinite", expected="finite numbers")
            if self._logits:
                continue
            if block.min() < 0 or block.max() > 1 + _SUM:
                raise InputError(
                    f"the values lie between {block.min():.4g} and {block.max():.4g}",
                    expected="probabilities in [0, 1]",
                    remedy="Hand over logits as logits=",
                )
            off = float(np.abs(block.sum(axis=-1, dtype=np.float64) - 1).max())
            if off > _SUM:
                raise InputError(
                    f"the probabilities of a row sum to 1 up to {off:.2g}",
                    expected=f"1 up to {_SUM:g}, over the last axis",
                    remedy="The axes are (members, rows, classes)",
                )


def _numbers(values: ArrayLike | None) -> NDArray[Any]:
    try:
        array = np.asarray(values)
        array = array if array.dtype.kind == "f" else array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("the members' probabilities are not all numbers", expected="an array of numbers") from error
    if array.ndim != 3 or array.shape[0] < 1 or array.shape[1] < 1 or array.shape[2] < 2:
        raise InputError(
            f"the members' probabilities have shape {array.shape}",
            expected="(members, rows, classes), members first, with a row or more and two classes or more",
        )
    return array


def _sums(block: Floats) -> Floats:
    """Return the sums over classes, with the axis kept; a product with ones is faster than a sum of few numbers."""
    return np.asarray((block @ np.ones(block.shape[-1]))[..., None])


def _refuse_choice(what: str, got: Any, choices: Any) -> None:
    if got not in get_args(choices):
        raise InputError(f"{what} is {got!r}", expected=", ".join(get_args(choices)))
