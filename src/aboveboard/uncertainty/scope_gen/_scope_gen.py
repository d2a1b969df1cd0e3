"""Calibrate a chain of greedy filters, each on its own block of items, and predict with it."""

import json
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference
from aboveboard.uncertainty.scope_gen._order_statistics import (
    conformal_threshold,
    coverage_quantile,
    fewest_scores,
    marginal_rank,
    reliable_rank,
)
from aboveboard.uncertainty.scope_gen._stages import (
    DEFAULT_GAMMA,
    FILTERS,
    SCORES,
    Item,
    Score,
    diversity_walk,
    generation_scores,
    quality_walk,
    unequal,
)

__all__ = ["REFERENCE", "PredictionSet", "SCOPEGen"]

Floats = NDArray[np.float64]
Chosen = NDArray[np.intp]
Oracle = Callable[[int, int], bool]

REFERENCE: Final = Reference(
    title="Conformal Generative Modeling with Improved Sample Efficiency through Sequential Greedy Filtering",
    authors="K.-R. Kladny, B. Schölkopf, M. Muehlebach",
    venue="ICLR",
    year=2025,
    url="https://arxiv.org/abs/2410.01660",
)
_PARTS: Final = {1: (1.0,), 2: (4.0, 1.0), 3: (3.0, 1.0, 1.0)}
_FORMAT: Final = "aboveboard.scope_gen/1"
_THIS_ONE: Final = (
    "This one calibration: one in twenty covers less than {:.3f} of prompts, if scores have no ties. Set confidence "
    "for a claim about the one at hand."
)
_LEARNED: Final = ("alphas_", "stage_sizes_", "n_items_", "n_queries_")


@dataclass(frozen=True, slots=True)
class PredictionSet:
    """The drafts that are kept for one prompt.

    Attributes
    ----------
    indices : tuple of int
        Places of the kept drafts among the item's samples, in the order of the last stage; may be empty.
    rejected : bool
        True where as many drafts as may be drawn do not reach the threshold: nothing is claimed for this prompt, and
        the set counts as that of all possible answers.
    trace : dict of str to int
        How many drafts each stage left.
    """

    indices: tuple[int, ...]
    rejected: bool
    trace: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.indices)


class SCOPEGen(BaseEstimator):  # type: ignore[misc]
    """Reduce what a generator drafts to a short set that holds an admissible draft with a stated probability.

    For whoever shows drafts of a language model or of any other generator to a reviewer: how many must be shown so
    that one of them is acceptable? An expert says for some prompts which drafts are admissible; each is asked about
    one draft after the other only until the first admissible one.

    Parameters
    ----------
    alpha : float, default=0.3
        In (0, 1): the probability, at most, that a set holds no admissible draft.
    stages : sequence of str, default=("generation", "diversity", "quality")
        ``"generation"`` first (draw until a score is passed), then any of ``"diversity"`` (keep the drafts least like
        each other), ``"quality"`` (keep the best) and ``"duplicates"`` (keep one of equal drafts, at no cost in level).
    score : {"count", "sum", "max"}, default="sum"
        Of the drafts drawn so far: their number, the sum or the maximum of their quality; the latter two plus `gamma`
        per draft.
    alpha_split : sequence of float, optional
        What part of log(1 - alpha) each calibrated stage gets. Default: (3, 1, 1) for three, (4, 1) for two.
    max_samples : int, default=20
        Most drafts for one prompt.
    gamma : float or mapping of str to float, optional
        What each further draft adds to a score: by stage or score, or one value for all. Default: 1 for ``"count"``,
        0.5 for ``"sum"`` and ``"quality"``, 0.1 for ``"max"`` and ``"diversity"``.
    confidence : float, optional
        In (0, 1). Left out, `alpha` holds on average over calibrations. With it, the calibration made here serves any
        number of prompts with `alpha`, except for a share 1 - confidence of calibrations; sets are larger then.
    random_state : int, RandomState instance or None, default=None
        Splits the items into blocks and starts the order of ``"diversity"``.

    Attributes
    ----------
    thresholds_ : dict of str to float
        Per calibrated stage; infinity where the block was too small or too few items had an admissible draft.
    alphas_ : dict of str to float
        The level of each: the product of 1 - alphas is 1 - alpha.
    stage_sizes_ : dict of str to tuple of int
        Items of the stage's block, and how many of them gave a score.
    n_queries_ : int
        How often it was asked whether a draft is admissible.
    n_items_ : int
    certificate_ : Certificate

    Notes
    -----
    **Guarantee.** Where the items of calibration and use are exchangeable, drafts are drawn independently given the
    prompt, labels depend on the draft alone, and no order looks at labels,
    P(the set holds an admissible draft, or is rejected) >= 1 - alpha over calibration and prompt together. Stage s
    takes the ceil((m + 1)(1 - alpha_s))-th smallest of its m scores; given that an admissible draft reached a stage,
    the new score and those of the stage's own block are exchangeable, so it stays with probability 1 - alpha_s, and
    stages multiply. The published code takes the largest score where the rank exceeds m, which covers too little in
    small blocks; here the threshold is infinite then.

    **Cost.** Calibration asks as many questions per item as there are drafts up to the first admissible one. Time
    O(n M) for n items of M drafts, O(n M^2) with ``"diversity"``; memory O(M^2) beyond the items.

    References
    ----------
    K.-R. Kladny, B. Schölkopf, M. Muehlebach, "Conformal Generative Modeling with Improved Sample Efficiency through
    Sequential Greedy Filtering", ICLR 2025, arXiv:2410.01660.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.uncertainty import GeneratedItem, SCOPEGen
    >>> rng = np.random.default_rng(0)
    >>> def item(skill):
    ...     good = rng.random(20) < skill
    ...     quality = np.clip(0.3 * good + rng.uniform(0, 0.7, 20), 0, 1)
    ...     return GeneratedItem([f"draft {i}" for i in range(20)], quality=quality, labels=good)
    >>> items = [item(skill) for skill in rng.beta(2, 2, size=400)]
    >>> scope = SCOPEGen(alpha=0.2, stages=("generation", "quality"), random_state=0).calibrate(items[:200])
    >>> scope.n_queries_  # of 4,000 drafts
    372
    >>> sets = scope.predict_many(items[200:])
    >>> covered = [s.rejected or item.labels[list(s.indices)].any() for s, item in zip(sets, items[200:])]
    >>> float(np.mean(covered)), float(np.mean([len(s) for s in sets]))
    (0.83, 1.84)
    """

    def __init__(
        self,
        *,
        alpha: float = 0.3,
        stages: Sequence[str] = ("generation", "diversity", "quality"),
        score: Score = "sum",
        alpha_split: Sequence[float] | None = None,
        max_samples: int = 20,
        gamma: float | Mapping[str, float] | None = None,
        confidence: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.alpha = alpha
        self.stages = stages
        self.score = score
        self.alpha_split = alpha_split
        self.max_samples = max_samples
        self.gamma = gamma
        self.confidence = confidence
        self.random_state = random_state

    def calibrate(self, items: Sequence[Item], admissible: Oracle | None = None) -> Self:
        """Find the threshold of each stage.

        Parameters
        ----------
        items : sequence of GeneratedItem or of what `from_sampler` makes
            Exchangeable with those that will be predicted.
        admissible : callable, optional
            ``admissible(i, j)`` says whether draft j of item i is admissible; called only for the drafts that matter,
            in an order that the same items and `random_state` repeat. Default: the items' own labels.

        Returns
        -------
        self

        Raises
        ------
        InputError
            For parameters out of range, a stage without its input, too few items, or an item with fewer drafts than
            `max_samples`. Before any question is asked.
        """
        alphas = self._check_parameters()
        self._check_items(items, need_labels=admissible is None)
        failure = None if self.confidence is None else 1 - self.confidence ** (1 / len(alphas))
        self._check_number(len(items), alphas, failure)
        rng = check_random_state(self.random_state)
        blocks = np.array_split(rng.permutation(len(items)), len(alphas))
        questions = _Questions(items, admissible)

        self._seed = int(rng.randint(2**31))
        self.alphas_, self.thresholds_, self.stage_sizes_ = alphas, {}, {}
        ranks = {}
        for (stage, alpha), block in zip(alphas.items(), reversed(blocks), strict=True):
            scores = self._scores(stage, items, block, questions)
            m = len(scores)
            ranks[stage] = marginal_rank(m, alpha) if failure is None else reliable_rank(m, alpha, failure)
            self.thresholds_[stage] = conformal_threshold(scores, ranks[stage])
            self.stage_sizes_[stage] = (len(block), m)
            self._warn_if_useless(stage, scores, ranks[stage])
        self.n_items_, self.n_queries_ = len(items), questions.asked
        self.certificate_ = self._certificate(ranks, checked_labels=admissible is None)
        return self

    def predict(self, item: Item) -> PredictionSet:
        """Return which drafts of an item are kept; draws no more of a `from_sampler` item than it needs.

        Raises
        ------
        NotFittedError, InputError
        """
        if not hasattr(self, "thresholds_"):
            raise NotFittedError("This SCOPEGen has no thresholds yet; call 'calibrate' first.")
        self._check_items([item], need_labels=False)
        trace: dict[str, int] = {}
        kept = self._run(item, len(self.stages), trace)
        return PredictionSet(() if kept is None else tuple(kept.tolist()), kept is None, trace)

    def predict_many(self, items: Sequence[Item]) -> list[PredictionSet]:
        """Return `predict` of each item; one item's set does not depend on the others."""
        return [self.predict(item) for item in items]

    def certificate(self) -> Certificate:
        """Return `certificate_`."""
        if not hasattr(self, "certificate_"):
            raise NotFittedError("This SCOPEGen has no certificate yet; call 'calibrate' first.")
        return self.certificate_

    def save(self, path: str | Path) -> None:
        """Write parameters, thresholds and certificate to a JSON file."""
        content = {
            "format": _FORMAT,
            "parameters": {**self.get_params(), "stages": list(self.stages), "random_state": None},
            "seed": self._seed,
            "learned": {name: getattr(self, name) for name in _LEARNED},
            "thresholds": {stage: _number(value) for stage, value in self.thresholds_.items()},
            "certificate": self.certificate().to_dict(),
        }
        text = json.dumps(content, indent=2, allow_nan=False, default=lambda value: value.item())
        Path(path).write_text(text + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> "SCOPEGen":
        """Read what `save` wrote.

        Raises
        ------
        InputError
            For a file of another kind.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT:
                raise KeyError("format")
            scope = cls(**content["parameters"])
            scope._seed = int(content["seed"])
            for name in _LEARNED:
                setattr(scope, name, content["learned"][name])
            scope.thresholds_ = {stage: float(value) for stage, value in content["thresholds"].items()}
            scope.stage_sizes_ = {stage: (block, m) for stage, (block, m) in scope.stage_sizes_.items()}
            scope.certificate_ = Certificate.from_dict(content["certificate"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                f"{Path(path).name} holds no calibration that this version can read", expected="a file made by save"
            ) from error
        return scope

    # --- the stages ---------------------------------------------------------------------------------------------------

    def _scores(self, stage: str, items: Sequence[Item], block: Chosen, questions: "_Questions") -> list[float]:
        """Return the score with which the first admissible draft enters, for each item of the block that gets there.

        For ``"generation"`` that is infinity where no draft is admissible; a later stage drops such items, since it
        speaks of those that still have one.
        """
        place = list(self.stages).index(stage)
        found = []
        for i in block.tolist():
            if place == 0:
                score = self._generation_score(items[i], i, questions)
            else:
                kept = self._run(items[i], place, {})
                if kept is None or not len(kept):
                    continue
                order, scores = self._walk(stage, items[i], kept)
                first = next((j for j, draft in enumerate(order.tolist()) if questions.ask(i, draft)), None)
                if first is None:
                    continue
                score = float(scores[first])
            found.append(score)
        return found

    def _generation_score(self, item: Item, i: int, questions: "_Questions") -> float:
        for j in range(self.max_samples):
            item.draw(j + 1)
            if questions.ask(i, j):
                return float(generation_scores(item, j + 1, self.score, self._weight(self.score))[-1])
        return math.inf

    def _run(self, item: Item, n_stages: int, trace: dict[str, int]) -> Chosen | None:
        """Send an item through the first stages; None where it is rejected."""
        kept = self._generate(item)
        trace["generation"] = self.max_samples if kept is None else len(kept)
        for stage in self.stages[1:n_stages]:
            if kept is None:
                return None
            if stage == "duplicates":
                kept = unequal(item, kept)
            elif len(kept):
                order, scores = self._walk(stage, item, kept)
                kept = order[: np.searchsorted(scores, self.thresholds_[stage], side="right")]
            trace[stage] = len(kept)
        return kept

    def _generate(self, item: Item) -> Chosen | None:
        """Keep the longest run of first drafts within the threshold; None where even all stay below it."""
        threshold, n = self.thresholds_["generation"], 0
        while n < self.max_samples:
            n = min(item.draw(n + 1), self.max_samples)
            scores = generation_scores(item, n, self.score, self._weight(self.score))
            if scores[-1] > threshold:
                return np.arange(int(np.searchsorted(scores, threshold, side="right")), dtype=np.intp)
        return None if scores[-1] < threshold else np.arange(n, dtype=np.intp)

    def _walk(self, stage: str, item: Item, kept: Chosen) -> tuple[Chosen, Floats]:
        if stage == "quality":
            return quality_walk(item, kept, self._weight(stage))
        return diversity_walk(item, kept, self._weight(stage), item.stream(self._seed, int(kept.max()) + 1))

    def _weight(self, name: str) -> float:
        if isinstance(self.gamma, Mapping):
            return float(self.gamma.get(name, DEFAULT_GAMMA[name]))
        return DEFAULT_GAMMA[name] if self.gamma is None else float(self.gamma)

    # --- what is refused, and what is said ----------------------------------------------------------------------------

    def _check_parameters(self) -> dict[str, float]:
        """Return the level of each calibrated stage."""
        _check_share(self.alpha, "alpha")
        if self.confidence is not None:
            _check_share(self.confidence, "confidence")
        stages = list(self.stages) if not isinstance(self.stages, str) else [self.stages]
        if not stages or stages[0] != "generation" or len(set(stages)) < len(stages) or set(stages[1:]) - set(FILTERS):
            raise InputError(
                f"stages is {self.stages!r}", expected=f"'generation', then any of {', '.join(FILTERS)}, each once"
            )
        if self.score not in SCORES:
            raise InputError(f"score is {self.score!r}", expected=f"one of {', '.join(SCORES)}")
        if not isinstance(self.max_samples, Integral) or self.max_samples < 1:
            raise InputError(f"max_samples is {self.max_samples!r}", expected="a whole number, 1 or more")
        used = [self.score, *(stage for stage in stages[1:] if stage != "duplicates")]
        if isinstance(self.gamma, Mapping) and (unknown := set(self.gamma) - set(DEFAULT_GAMMA)):
            raise InputError(f"gamma names {sorted(unknown)}", expected=f"names among {', '.join(DEFAULT_GAMMA)}")
        if not all(0 < self._weight(name) < math.inf for name in used):
            raise InputError(f"gamma is {self.gamma!r}", expected="numbers above 0")
        calibrated = [stage for stage in stages if stage != "duplicates"]
        parts = _PARTS[len(calibrated)] if self.alpha_split is None else tuple(self.alpha_split)
        if len(parts) != len(calibrated) or not all(0 < part < math.inf for part in parts):
            raise InputError(
                f"alpha_split is {self.alpha_split!r}", expected=f"{len(calibrated)} numbers above 0, one per stage"
            )
        return {
            stage: 1 - (1 - self.alpha) ** (part / sum(parts)) for stage, part in zip(calibrated, parts, strict=True)
        }

    def _check_number(self, n: int, alphas: Mapping[str, float], failure: float | None) -> None:
        needed = max(fewest_scores(alpha, failure) for alpha in alphas.values())
        if n // len(alphas) < needed:
            raise InputError(
                f"there are {n} items for {len(alphas)} calibrated stages",
                expected=f"{needed * len(alphas)} or more, since the smallest level needs {needed} in its own block",
                remedy="Give more items, fewer stages, a larger alpha or a less even alpha_split",
            )

    def _check_items(self, items: Sequence[Item], *, need_labels: bool) -> None:
        needs = {
            "quality": "quality" in self.stages or self.score != "count",
            "similarity": "diversity" in self.stages,
        }
        for place, item in enumerate(items):
            if len(item) < self.max_samples:
                raise InputError(
                    f"item {place} has {len(item)} drafts and max_samples is {self.max_samples}",
                    expected="as many drafts for every item",
                    remedy="Draw more, or lower max_samples",
                )
            for what, needed in needs.items():
                if needed and what not in item.has:
                    raise InputError(
                        f"item {place} has no {what}",
                        expected=f"{what} for stages={tuple(self.stages)!r} with score={self.score!r}",
                        remedy="Give it, or leave out the stage; score='count' needs no quality",
                    )
            if need_labels and item.labels is None:
                raise InputError(f"item {place} has no labels", expected="labels, or a function admissible")

    def _warn_if_useless(self, stage: str, scores: Sequence[float], rank: int) -> None:
        if math.isfinite(self.thresholds_[stage]):
            return
        if stage != "generation":
            text = f"only {len(scores)} items reached the stage {stage!r}, so it keeps every draft"
        elif rank > len(scores):
            text = f"{len(scores)} items are too few for the stage 'generation', so every set is rejected"
        else:
            hopeless = float(np.mean(np.isinf(scores)))
            text = (
                f"in {100 * hopeless:.0f} % of the items none of {self.max_samples} drafts is admissible, more than "
                f"the {100 * self.alphas_[stage]:.0f} % that the stage 'generation' may miss, so every set is "
                "rejected. Use a better generator, more max_samples or a larger alpha"
            )
        warnings.warn(f"SCOPEGen: {text}.", UserWarning, stacklevel=3)

    def _certificate(self, ranks: Mapping[str, int], *, checked_labels: bool) -> Certificate:
        sizes = {stage: m for stage, (_, m) in self.stage_sizes_.items()}
        low = coverage_quantile(np.array(list(ranks.values())), np.array(list(sizes.values())))
        claim = f"holds an admissible draft or is rejected with probability at least {1 - self.alpha:g}"
        if self.confidence is None:
            guarantee = f"A new prompt's set {claim}, over the calibration items and the prompt together."
        else:
            guarantee = (
                f"With probability {self.confidence:g} over the calibration items, every new prompt's set {claim}, "
                "over the prompt alone."
            )
        labels = "The label of a draft depends on the draft alone: equal drafts have equal labels."
        return Certificate(
            kind="conformal admissibility",
            guarantee=guarantee,
            parameters={
                "level": 1 - self.alpha,
                "alphas": dict(self.alphas_),
                "thresholds": {stage: _number(value) for stage, value in self.thresholds_.items()},
                "items": {stage: block for stage, (block, _) in self.stage_sizes_.items()},
                "scores": sizes,
                "queries": self.n_queries_,
                "coverage_5_percent_of_calibrations_fall_below": low,
            },
            assumptions=(
                Assumption("Items of calibration and use are exchangeable: same source of prompts, same generator."),
                Assumption("Drafts are drawn independently given the prompt, and taken in the order they were drawn."),
                Assumption(labels, "checked", "labels of equal drafts compared within each item", passed=True)
                if checked_labels
                else Assumption(labels),
                Assumption("Quality and similarity do not come from the judge of admissibility."),
            ),
            confidence=self.confidence,
            numerics={"precision": "float64", "noise_source": "pseudo-random"},
            does_not_cover=(
                "Any single prompt, or a group of prompts: the probability is an average over all.",
                *(() if self.confidence else (_THIS_ONE.format(low),)),
                "Prompts whose sets are rejected: nothing is claimed for them beyond being told apart.",
            ),
            library_version=aboveboard.__version__,
            reference=REFERENCE,
        )


class _Questions:
    """Asks whether a draft is admissible, and counts."""

    def __init__(self, items: Sequence[Item], admissible: Oracle | None) -> None:
        self._items, self._admissible, self.asked = items, admissible, 0

    def ask(self, i: int, j: int) -> bool:
        self.asked += 1
        if self._admissible is None:
            return bool(self._items[i].labels[j])  # type: ignore[index]
        answer = self._admissible(i, j)
        if not isinstance(answer, (bool, np.bool_)):
            raise InputError(f"admissible({i}, {j}) returned {answer!r:.60}", expected="True or False")
        return bool(answer)


def _check_share(value: Any, name: str) -> None:
    if not isinstance(value, (int, float)) or not 0 < value < 1:
        raise InputError(f"{name} is {value!r}", expected="a number between 0 and 1")


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else "infinity"
