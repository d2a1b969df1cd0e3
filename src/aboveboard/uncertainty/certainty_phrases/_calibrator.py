"""Say phrases that come true: restate each by others, so that the calibration error falls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.errors import InputError
from aboveboard.uncertainty.certainty_phrases._calibration import Phrases, Residuals, brier, tallied, tallied_input
from aboveboard.uncertainty.certainty_phrases._transport import entropic_plan, joint_plan
from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary, normalised

__all__ = ["CertaintyCalibrator"]

Floats = NDArray[np.float64]

_NEVER: Final = 10.0  # costs are differences of errors over usages, and moves of phrases that are not used never pay
_ROUNDS: Final = 3
_STEPS: Final = np.linspace(0.05, 1.0, 20)
_RARE: Final = 0.05


class CertaintyCalibrator(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Restate phrases of certainty so that they come true as often as they say.

    A plan of optimal transport says which phrase to use instead of which, at a price: the change of the expected
    calibration error if all uses of the one were restated as the other. It can be applied at random, as solved, or as
    one replacement for each phrase, which a person can follow.

    Parameters
    ----------
    vocabulary : PhraseVocabulary
        What the phrases in use mean.
    target_vocabulary : PhraseVocabulary, optional
        The phrases to use from now on; default: the same.
    target_usage : "same", or mapping of str to float
        How often each target phrase is wished: as now (where the phrases are the same; else all alike), or shares
        by phrase, those left out 0.
    eps : float
        Weight of the entropy (of ``KL(T || ab')``): above 0 plans are smooth, found by Sinkhorn iterations; 0 is a
        linear program.
    tau : float
        Weight of the wished usage. 0: each phrase goes to its best substitute, whatever comes of the others. Infinite:
        the usage is met exactly.
    n_bins : int
        Bins of the calibration error.
    search : {"linear", "relinearised", "joint"}
        Price moves one at a time, from where the speaker is now, as published; price them anew from the plan found,
        three times, and go along only as far as the error falls; or minimise the error of all moves together, which is
        a linear program (`eps` is not used).
    deterministic : bool
        Whether to use for each phrase its heaviest replacement alone.
    validation : float in [0, 1)
        The share of the items that is held out for the guard; 0 judges by the items that were fitted.
    fallback : str, optional
        The phrase that stands for those that are not in the vocabulary.
    random_state : int, RandomState or None
        Draws the items held out, and the phrases where the plan is random.

    Attributes
    ----------
    plan_ : ndarray of shape (K, L)
        Mass moved from each phrase to each target; rows sum to `usage_`.
    rule_ : ndarray of shape (K, L)
        The probability of each replacement, one row per phrase; only ones and zeros where `deterministic`.
    cost_ : ndarray of shape (K, L)
        Change of the calibration error per use, if all uses of the one were restated as the other.
    usage_ : ndarray of shape (K,)
        Share of the items that bear each phrase.
    scores_ : DataFrame
        ``ece``, ``brier`` and ``entropy`` of the phrases ``before`` and ``after``, on the items that the guard saw.
    accepted_ : bool
        Whether neither error nor Brier score rose there; else `transform` leaves all phrases as they are.
    target_vocabulary_ : PhraseVocabulary
    solver_ : {"sinkhorn", "linear program"}

    Raises
    ------
    aboveboard.core.InputError
        For no vocabulary, phrases outside it, outcomes outside [0, 1], fewer than 30 items, a parameter out of range.

    Guarantee
    ---------
    None beyond the guard: no theorem says that a plan lowers the error, since prices are those of single moves. The
    error is convex in the plan, so that with ``search="relinearised"`` the random rule never has a larger error on the
    fitted items than the first plan, and with ``"joint"`` and ``tau=0`` no rule has a smaller one.

    Notes
    -----
    Phrases whose meanings differ between speakers or subjects want a calibrator each: pooling hides that one overstates
    what another understates. An error can also fall because everything is restated by one vague phrase: look at the
    Brier score and the entropy beside it.

    O(n + K L bins) for the prices, then O(K L) per iteration.

    References
    ----------
    P. Wang and others, "Calibrating Expressions of Certainty", ICLR 2025.
    L. Chizat, G. Peyré, B. Schmitzer, F.-X. Vialard, "Scaling algorithms for unbalanced optimal transport problems",
    Mathematics of Computation 87, 2018.

    Examples
    --------
    >>> from aboveboard.uncertainty import CertaintyCalibrator, truthfulqa_phrases
    >>> phrases, correct, vocabulary = truthfulqa_phrases()
    >>> calibrator = CertaintyCalibrator(vocabulary, eps=0, deterministic=True).fit(phrases, correct)
    >>> calibrator.transform(["Definitely"])
    ['Possibly']
    """

    def __init__(
        self,
        vocabulary: PhraseVocabulary | None = None,
        *,
        target_vocabulary: PhraseVocabulary | None = None,
        target_usage: Literal["same"] | Mapping[str, float] = "same",
        eps: float = 1e-3,
        tau: float = 1e-3,
        n_bins: int = 100,
        search: Literal["linear", "relinearised", "joint"] = "linear",
        deterministic: bool = False,
        validation: float = 0.0,
        fallback: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.target_vocabulary = target_vocabulary
        self.target_usage = target_usage
        self.eps = eps
        self.tau = tau
        self.n_bins = n_bins
        self.search = search
        self.deterministic = deterministic
        self.validation = validation
        self.fallback = fallback
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    def fit(self, phrases: Phrases, outcomes: ArrayLike) -> Self:
        """Find the plan.

        Parameters
        ----------
        phrases : sequence of str, length n
        outcomes : array-like of shape (n,)
            0, 1, or the probability that the label is 1.
        """
        self._check_parameters()
        own = self.vocabulary
        codes, y = tallied_input(phrases, outcomes, own, self.fallback)  # type: ignore[arg-type]
        assert own is not None
        target = own if self.target_vocabulary is None else self.target_vocabulary
        fitted, judged = self._split(len(y))
        n, s = tallied(codes[fitted], y[fitted], len(own))
        self.target_vocabulary_ = target
        self.usage_ = n / n.sum()
        used = n > 0
        wished = self._wished(target)
        prices = _Prices(own, target, n, s, self.n_bins)
        plan, self.solver_ = self._searched(prices, wished)
        self.plan_, self.cost_ = np.zeros((len(own), len(target))), _idle_cost(own, target)
        self.plan_[used], self.cost_[used] = plan, prices.cost()
        self.rule_ = self._rule(used)
        self.scores_ = self._scored(codes[judged], y[judged])
        before, after = self.scores_[["ece", "brier"]].to_numpy()
        self.accepted_ = bool((after <= before + 1e-12).all())
        return self

    def transform(self, phrases: Phrases) -> list[str]:
        """Return the phrases to say instead; the same ones where the guard refused the plan.

        Parameters
        ----------
        phrases : sequence of str
        """
        check_is_fitted(self, "rule_")
        assert self.vocabulary is not None
        given = [phrases] if isinstance(phrases, str) else list(phrases)
        codes = self.vocabulary.codes(given, fallback=self.fallback)
        if not self.accepted_:
            return given
        draws = check_random_state(self.random_state).random_sample(len(codes))
        chosen = (np.cumsum(self.rule_, axis=1)[codes] <= draws[:, None]).sum(axis=1)
        return [self.target_vocabulary_.phrases[min(place, self.rule_.shape[1] - 1)] for place in chosen]

    def advice(self) -> pd.DataFrame:
        """Return what to say instead of what, the most useful first.

        Returns
        -------
        DataFrame
            ``say``, ``instead_of``, ``weight`` (the share of its uses), and ``gain``: how far the calibration error
            falls if all its uses were restated so, and nothing else. Those below 5 % of the uses are left out.
        """
        check_is_fitted(self, "rule_")
        assert self.vocabulary is not None
        said, target = self.vocabulary.phrases, self.target_vocabulary_.phrases
        rows = [
            (target[j], said[k], self.rule_[k, j], -self.cost_[k, j] * self.usage_[k])
            for k, j in zip(*np.nonzero(self.rule_ >= _RARE))
            if self.usage_[k] > 0 and normalised(said[k]) != normalised(target[j])
        ]
        frame = pd.DataFrame(rows, columns=["say", "instead_of", "weight", "gain"], dtype=object)
        frame = frame.astype({"weight": float, "gain": float})
        return frame.sort_values("gain", ascending=False, ignore_index=True)

    def evaluate(self, phrases: Phrases, outcomes: ArrayLike) -> pd.DataFrame:
        """Return ``ece``, ``brier`` and ``entropy`` of other items, ``before`` and ``after`` the rule.

        The guard has no say here. Replacements are counted at their probability, not drawn.

        Parameters
        ----------
        phrases : sequence of str, length n
        outcomes : array-like of shape (n,)
        """
        check_is_fitted(self, "rule_")
        codes, y = tallied_input(phrases, outcomes, self.vocabulary, self.fallback)  # type: ignore[arg-type]
        return self._scored(codes, y)

    # --- the steps of fit ---------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        for name, value in (("eps", self.eps), ("tau", self.tau)):
            if not value >= 0 or (name == "eps" and np.isinf(value)):
                raise InputError(f"{name} is {value!r}", expected="0 or more" + ("" if name == "tau" else ", finite"))
        if not 0 <= self.validation < 1:
            raise InputError(f"validation is {self.validation!r}", expected="a share from 0 to below 1")
        if not self.n_bins >= 1:
            raise InputError(f"n_bins is {self.n_bins!r}", expected="1 or more")
        if self.search not in ("linear", "relinearised", "joint"):
            raise InputError(f"search is {self.search!r}", expected="'linear', 'relinearised' or 'joint'")
        if not isinstance(self.target_vocabulary, PhraseVocabulary | None):
            raise InputError(
                f"the target vocabulary is a {type(self.target_vocabulary).__name__}", expected="a PhraseVocabulary"
            )

    def _split(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the items to fit and those to judge by: the same ones where none are held out."""
        held = round(self.validation * n)
        if not held:
            return np.arange(n), np.arange(n)
        order = check_random_state(self.random_state).permutation(n)
        return order[held:], order[:held]

    def _wished(self, target: PhraseVocabulary) -> Floats:
        if isinstance(self.target_usage, str):
            if self.target_usage != "same":
                raise InputError(f"target_usage is {self.target_usage!r}", expected="'same', or shares by phrase")
            assert self.vocabulary is not None
            same = target.phrases == self.vocabulary.phrases
            return self.usage_ if same else np.full(len(target), 1 / len(target))
        shares = np.zeros(len(target))
        for phrase, share in self.target_usage.items():
            shares[target.codes([phrase])] = share
        if not (np.isfinite(shares) & (shares >= 0)).all() or not shares.sum() > 0:
            raise InputError(f"target_usage is {dict(self.target_usage)!r}", expected="shares of 0 or more, not all 0")
        wished: Floats = shares / shares.sum()
        return wished

    def _searched(self, prices: _Prices, wished: Floats) -> tuple[Floats, str]:
        if self.search == "joint":
            return joint_plan(prices.residuals, prices.a, wished, tau=self.tau), "linear program"
        solve = {"eps": self.eps, "tau": self.tau}
        plan, solver = entropic_plan(prices.cost(), prices.a, wished, **solve)
        for _ in range(_ROUNDS if self.search == "relinearised" else 0):
            other, solver = entropic_plan(prices.cost(plan), prices.a, wished, **solve)
            steps = [(1 - step) * plan + step * other for step in _STEPS]
            best = min(steps, key=prices.ece)
            if prices.ece(best) >= prices.ece(plan):
                break
            plan = best
        return plan, solver

    def _rule(self, used: NDArray[np.bool_]) -> Floats:
        """Turn the plan into probabilities; phrases that were not used go to the target of the nearest mean."""
        assert self.vocabulary is not None
        rule = np.zeros_like(self.plan_)
        rule[used] = self.plan_[used] / self.plan_[used].sum(axis=1, keepdims=True)
        idle = np.flatnonzero(~used)
        rule[idle, _nearest(self.vocabulary, self.target_vocabulary_)[idle]] = 1.0
        if self.deterministic:
            rule = np.eye(rule.shape[1])[rule.argmax(axis=1)]
        return rule

    def _scored(self, codes: NDArray[np.int64], y: Floats) -> pd.DataFrame:
        assert self.vocabulary is not None
        n, s = tallied(codes, y, len(self.vocabulary))
        rows = {}
        for name, vocabulary, uses, hits in (
            ("before", self.vocabulary, n, s),
            ("after", self.target_vocabulary_, n @ self.rule_, s @ self.rule_),
        ):
            share = uses[uses > 0] / uses.sum()
            error = Residuals(vocabulary, self.n_bins).ece(uses, hits)
            rows[name] = (float(error), float(brier(vocabulary, uses, hits)), float(-share @ np.log(share)))
        return pd.DataFrame.from_dict(rows, orient="index", columns=["ece", "brier", "entropy"])


class _Prices:
    """What each restatement does to the calibration error, for the phrases in use."""

    def __init__(self, own: PhraseVocabulary, target: PhraseVocabulary, n: Floats, s: Floats, n_bins: int) -> None:
        used = n > 0
        self.a = n[used] / n.sum()
        rate = (s[used] / n[used])[:, None]
        now, to = Residuals(own, n_bins), Residuals(target, n_bins)
        self._parts = self.a[:, None] * (rate * now.W[used] - now.P[used])
        self.residuals = rate[:, :, None] * to.W - to.P  # (K, L, bins), of one use

    def ece(self, plan: Floats) -> float:
        return float(np.abs(np.einsum("kl,klm->m", plan, self.residuals)).sum())

    def cost(self, plan: Floats | None = None) -> Floats:
        """Return the change of the error per use if a whole row moved to a target, from where things are, or a plan."""
        parts = self._parts if plan is None else np.einsum("kl,klm->km", plan, self.residuals)
        total = parts.sum(axis=0)
        moved = (total - parts)[:, None, :] + self.a[:, None, None] * self.residuals
        change: Floats = (np.abs(moved).sum(axis=2) - np.abs(total).sum()) / self.a[:, None]
        return change


def _nearest(own: PhraseVocabulary, target: PhraseVocabulary) -> NDArray[np.intp]:
    """Return for each phrase its place in the target, or that of the nearest mean."""
    nearest: NDArray[np.intp] = np.abs(own.mean[:, None] - target.mean).argmin(axis=1)
    for k, phrase in enumerate(own.phrases):
        if phrase in target:
            nearest[k] = target.codes([phrase])[0]
    return nearest


def _idle_cost(own: PhraseVocabulary, target: PhraseVocabulary) -> Floats:
    """Return the costs of phrases that are not used: nothing for staying, far too much for anything else."""
    cost = np.full((len(own), len(target)), _NEVER)
    cost[np.arange(len(own)), _nearest(own, target)] = 0.0
    return cost
