"""The estimator: two domains and a fixed model in; who suffers, whether it is real, and what explains it out."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, Self

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from aboveboard.core.certificate import Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding
from aboveboard.core.progress import progress
from aboveboard.drift.dataset_classification._tables import named_frame
from aboveboard.drift.shift import _findings
from aboveboard.drift.shift._fold import Fold, Halves, Stage, settings_of
from aboveboard.drift.shift._inference import Family, MaxTest, max_test
from aboveboard.drift.shift._mending import mend
from aboveboard.drift.shift._reader import Domain, column_groups, read_domains
from aboveboard.drift.shift._repair import RepairedClassifier
from aboveboard.drift.shift._result import TestResult
from aboveboard.drift.shift._rows import LOSSES
from aboveboard.drift.shift._subgroup import Subgroup, describe, importances, loss_interval

__all__ = ["SHIFT"]

FAMILIES: Final[tuple[Family, ...]] = ("covariate", "outcome")
_APART: Final = 0.99
_ONE_THREAD: Final = 100_000
_POWER_Z: Final = 0.8416  # four times in five
_DETAILED: Final = (
    "candidate",
    "kind",
    "residual_decay",
    "se",
    "p_value",
    "kept",
    "n_in_subgroup",
)


class SHIFT(BaseEstimator):  # type: ignore[misc]
    """Find who suffers when a model decays, test that it is real, and say what changed.

    Parameters
    ----------
    tolerance : float, at least 0
        Increase of the loss that is acceptable.
    min_prevalence : float in (0, 0.5)
        Smallest share of the rows that counts as a subgroup.
    alpha : float in (0, 1)
        Level of each of the two tests (rows that came to be others, outcomes that came to be others) and of each test
        of an explanation.
    loss : {"zero_one", "brier", "class_weighted", "ppv"}
        Errors; squared errors of the probability; errors weighted so that both classes of the source count the same; or
        errors among rows that are predicted positive. Or give `loss_fn` to `fit`.
    direction : {1, -1}
        -1 looks for improvements instead.
    threshold : float
        Probability from which on class 1 is predicted.
    n_detectors : int
        Most subgroups tested per family.
    n_bins : int
        Bins of the old risk, which an explanation of changed outcomes may always use.
    outcome_model, density_model : classifier, optional
        With ``fit`` and ``predict_proba``; cloned, fitted once and taken as calibrated. They get finite, standardised
        numbers and a column per common word. Default: logistic regression or gradient-boosted trees, whichever has the
        better log-loss in a 3-fold cross-validation, then calibrated (Platt).
    clip : float in (0, 0.5)
        Probabilities of the domain are kept within [clip, 1 - clip].
    n_bootstrap : int
    filter_features : bool
        Carve subgroups of the covariate family only from columns on which the loss depends by a test of independence;
        its p-value on the test half then joins that of the decay (the larger of the two).
    split : float in (0, 1)
        Share of the rows of each domain to learn from; the others test.
    cross_fit : bool
        Swap the halves as well, and take twice the smaller p-value, which is valid however the two depend.
    random_state : int, RandomState, Generator or None
    n_jobs : int or None
        Threads that test explanations.

    Attributes
    ----------
    aggregate_ : dict of {"covariate", "outcome"} to TestResult
        Covariate: the same outcomes, another mix of rows. Outcome: other outcomes for the same rows.
    detailed_ : DataFrame
        For each family that was rejected and each candidate: whether a change of these variables alone is *sufficient*
        to explain it. ``residual_decay`` is the largest (by its p-value) that is left in any subgroup (NaN: no subgroup
        is left), ``kept`` says that the candidate was not rejected. That is no proof: look at the residual and its
        ``se`` as well.
    diagnostics_ : dict
        ``domain_auc``, ``mean_weight`` with ``mean_weight_se`` (the density ratio should average 1 over source rows),
        ``clipped`` (test rows whose probability was clipped), ``outcome_model`` and ``density_model`` (which was
        picked).
    candidates_ : dict of str to tuple of str
    own_loss_ : bool
        Whether the loss is that of `loss_fn`.
    certificate_ : Certificate

    Raises
    ------
    InputError
        For columns that differ, labels other than 0 and 1, fewer than 200 rows in a domain, settings or candidates that
        cannot be used, and domains that a classifier tells apart with an AUC above 0.99: their supports do not overlap.

    Guarantee
    ---------
    If no subgroup of the smallest prevalence or more decayed by more than the tolerance, each test rejects with a
    probability that tends to `alpha` at most as rows grow. Subgroups come from the training half, so that they are
    fixed for the test half. Assumed: independent rows; bounded density ratios within subgroups; and products of the
    errors of outcome model and density ratio that vanish faster than ``n ** -0.5``. Nothing is said of subgroups that
    the detectors did not propose, and a candidate that is kept is not proven.

    Notes
    -----
    ``Z_d(x)`` is the expected loss of a row under the outcome law of domain d (0 source, 1 target). The tests ask
    whether ``E_1[Z_0 | A] - E_0[Z_0 | A]``, or ``E_1[Z_1 - Z_0 | A]``, exceeds the tolerance for some subgroup A.

    Cost: O(n d) per tree or step of the learners, 60 sorts of the training rows, and one test per candidate and
    family, each with up to `n_detectors` pairs of small fits. Memory O(n d).

    ``check_estimator`` does not apply: `fit` takes two tables with labels.

    References
    ----------
    H. Singh, F. Xia, A. Gossmann, A. Chuang, J. C. Hong, J. Feng: "Who experiences large model decay and why? A
    Hierarchical Framework for Diagnosing Heterogeneous Performance Drift", ICML 2025,
    https://arxiv.org/abs/2506.00756.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.drift import SHIFT
    >>> rng = np.random.default_rng(0)
    >>> X0, X1 = rng.normal(size=(2, 3000, 3))
    >>> y0, y1 = (rng.random(3000) < 1 / (1 + np.exp(-3 * X[:, 0])) for X in (X0, X1))
    >>> y1 = np.where((X1[:, 1] > 1) & (rng.random(3000) < 0.4), ~y1, y1)  # labels changed where x1 > 1
    >>> shift = SHIFT(random_state=0).fit(X0, y0, X1, y1, predictions=(X0[:, 0] > 0, X1[:, 0] > 0))
    >>> shift.aggregate_["outcome"].reject, shift.aggregate_["covariate"].reject
    (True, False)
    """

    def __init__(
        self,
        tolerance: float = 0.05,
        *,
        min_prevalence: float = 0.05,
        alpha: float = 0.05,
        loss: Literal["zero_one", "brier", "class_weighted", "ppv"] = "zero_one",
        direction: Literal[1, -1] = 1,
        threshold: float = 0.5,
        n_detectors: int = 5,
        n_bins: int = 40,
        outcome_model: Any = None,
        density_model: Any = None,
        clip: float = 1e-3,
        n_bootstrap: int = 10_000,
        filter_features: bool = False,
        split: float = 0.5,
        cross_fit: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.tolerance = tolerance
        self.min_prevalence = min_prevalence
        self.alpha = alpha
        self.loss = loss
        self.direction = direction
        self.threshold = threshold
        self.n_detectors = n_detectors
        self.n_bins = n_bins
        self.outcome_model = outcome_model
        self.density_model = density_model
        self.clip = clip
        self.n_bootstrap = n_bootstrap
        self.filter_features = filter_features
        self.split = split
        self.cross_fit = cross_fit
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X0: Any,
        y0: Any,
        X1: Any,
        y1: Any,
        *,
        model: Any = None,
        predictions: tuple[Any, Any] | None = None,
        loss_fn: Any = None,
        candidates: Mapping[str, Sequence[Any]] | None = None,
    ) -> Self:
        """Look for decay between a source (0) and a target (1).

        Parameters
        ----------
        X0, X1 : tables of shape (n0, d) and (n1, d)
            Data frames (pandas, Polars, Arrow) or arrays, with the same columns: numbers, words, missing values.
        y0, y1 : arrays of 0 and 1
        model : object, optional
            The audited classifier, with ``predict_proba`` (or ``predict``); asked with the tables as given.
        predictions : pair of arrays, optional
            Instead of a model: its probabilities of class 1 (or labels) for the rows of both tables.
        loss_fn : callable, optional
            ``loss_fn(X, y) -> (n,)``: the loss of each row if it had the label y. Takes the place of `loss`.
        candidates : dict of str to list of columns, optional
            Sets of variables that may explain a decay. Default: every column alone.

        Returns
        -------
        self
        """
        self._check_settings()
        with threadpool_limits(1 if _small(X0, X1) else None, user_api="openmp"):
            return self._fit((X0, y0), (X1, y1), model, predictions, loss_fn, candidates)

    def _fit(self, old: Any, new: Any, model: Any, predictions: Any, loss_fn: Any, candidates: Any) -> Self:
        (X0, y0), (X1, y1) = old, new
        pair = (None, None) if predictions is None else tuple(predictions)
        if len(pair) != 2:
            raise InputError(f"predictions has {len(pair)} parts", expected="two: for the rows of X0 and those of X1")
        reader, source, target = read_domains((X0, y0, pair[0]), (X1, y1, pair[1]), self, model, loss_fn)
        names = source.rows.features.names
        groups = column_groups(candidates, names)
        rng = np.random.default_rng(_seed(self.random_state))
        settings, seed = settings_of(self), int(rng.integers(2**31))
        folds = []
        steps = (1 + self.cross_fit) * 3
        with progress(steps) as bar:
            for parts in self._splits(source, target, rng):
                bar.step("learn outcomes and densities")
                halves = Halves(
                    *(domain.rows.take(part) for domain, part in zip((source, target) * 2, parts, strict=True))
                )
                folds.append((Fold(halves, settings, seed), parts))
            self.diagnostics_ = _diagnostics(folds[0][0])
            self._folds, self._reader, self._domains, self._tables = folds, reader, (source, target), (X0, X1)
            self._seed = seed
            self.candidates_ = {name: tuple(names[j] for j in columns) for name, columns in groups.items()}
            self._groups, self.own_loss_ = groups, loss_fn is not None
            bar.step("look for subgroups")
            self.aggregate_, self._found = {}, {}
            for family in FAMILIES:
                self.aggregate_[family], self._found[family] = self._test(family, rng)
            bar.step("look for explanations")
            self.detailed_ = self._explain(rng)
        self.certificate_: Certificate = _findings.certificate(self)
        return self

    def subgroup(self, kind: Family) -> Subgroup:
        """Return the subgroup of a family with the most loss beyond the tolerance, among those that decayed for sure.

        Where none did, the one whose decay stands out most.

        Raises
        ------
        InputError
            Where no subgroup was proposed.
        """
        fold, _, stage, best = self._best(kind)
        result, (in_source, in_target) = self.aggregate_[kind], stage.masks[best]
        detector, (train, source, target) = stage.detectors[best], fold.halves[1:]
        rules, fidelity = describe(
            train.features, detector(train), target.features, in_target, self._reader.encoder, self._seed
        )
        sign = float(self.direction)
        return Subgroup(
            kind=kind,
            rules=rules,
            fidelity=fidelity,
            prevalence=(float(in_source.mean()), float(in_target.mean())),
            n=(int(in_source.sum()), int(in_target.sum())),
            source_loss=loss_interval(sign * source.loss[in_source]),
            target_loss=loss_interval(sign * target.loss[in_target]),
            decay=result.decay,
            interval=result.interval,
            importances=importances(detector, target, np.random.default_rng(self._seed)),
            detector=detector,
            read=self._reader,
        )

    def repair(
        self,
        kind: Family,
        X: Any = None,
        y: Any = None,
        *,
        candidate: str | None = None,
        where: Literal["subgroup", "everywhere"] = "subgroup",
        estimator: Any = None,
        predictions: Any = None,
    ) -> RepairedClassifier:
        """Mend the model where it decayed, by what explains it.

        Changed outcomes: a model of the label on the old score and the variables that explain the change, learned from
        target rows. Changed rows: a model trained anew on the source, weighted to the target's law of these
        variables.

        Parameters
        ----------
        kind : {"covariate", "outcome"}
        X, y : table and labels, optional
            Rows of the target to learn from. Default: those of the test half, which had no part in finding the
            subgroup; ``trial_`` then says what the repair is worth, each half of them judged by what the other taught.
        candidate : str, optional
            Which explanation. Default: the kept one of fewest columns; all columns where none was kept.
        where : {"subgroup", "everywhere"}
            Where the repaired answers apply.
        estimator : classifier, optional
            What to train anew for changed rows. Default: a clone of the model, else gradient-boosted trees.
        predictions : ndarray, optional
            For `X`, where `fit` got predictions and no model.

        Returns
        -------
        RepairedClassifier
        """
        if where not in ("subgroup", "everywhere"):
            raise InputError(f"where is {where!r}", expected="'subgroup' or 'everywhere'")
        if (X is None) != (y is None):
            raise InputError("one of X and y was given", expected="both or none")
        return mend(self, kind, X, y, candidate, where, estimator, predictions)

    def findings(self, *, check: str = "shift", area: str = "drift") -> list[Finding]:
        """Return what was found, in the form that reports take: one finding per family, and one per explanation.

        Parameters
        ----------
        check, area : str
            Whose findings they are.
        """
        check_is_fitted(self, "aggregate_")
        return _findings.findings(self, check, area)

    def summary(self) -> str:
        """Return who suffers, whether it is real, and what explains it, in a few lines of plain text."""
        check_is_fitted(self, "aggregate_")
        return _findings.summary(self)

    def best_fold(self, kind: Family) -> tuple[Fold, tuple[NDArray[np.intp], ...]]:
        """Return the split that tells most of a family, and the rows in its parts."""
        found = self._best(kind)
        return found.fold, found.parts

    # --- parts -------------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        bounds = {
            "tolerance": (0.0, np.inf, "at least 0"),
            "min_prevalence": (1e-6, 0.5, "between 0 and 0.5"),
            "alpha": (1e-9, 1.0, "between 0 and 1"),
            "clip": (1e-12, 0.5, "between 0 and 0.5"),
            "split": (1e-6, 1.0, "between 0 and 1"),
            "threshold": (0.0, 1.0 + 1e-9, "between 0 and 1"),
        }
        for name, (low, high, wanted) in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int | float | np.number) or isinstance(value, bool) or not low <= value < high:
                raise InputError(f"{name} is {value!r}", expected=f"a number {wanted}")
        for name, least in {"n_detectors": 1, "n_bins": 2, "n_bootstrap": 100}.items():
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
                raise InputError(f"{name} is {value!r}", expected=f"a whole number, at least {least}")
        if self.loss not in LOSSES:
            raise InputError(f"loss is {self.loss!r}", expected=f"one of {', '.join(map(repr, LOSSES))}")
        if self.direction not in (1, -1):
            raise InputError(f"direction is {self.direction!r}", expected="1 (decay) or -1 (improvement)")

    def _splits(self, source: Domain, target: Domain, rng: np.random.Generator) -> list[tuple[NDArray[np.intp], ...]]:
        """Return (source train, target train, source test, target test) once, or twice with the halves swapped."""
        train, test = [], []
        for domain in (source, target):
            order = rng.permutation(len(domain.rows))
            cut = round(self.split * len(order))
            train.append(np.sort(order[:cut]))
            test.append(np.sort(order[cut:]))
        for part, domain in zip([*train, *test], (source, target) * 2, strict=True):
            if len(np.unique(domain.rows.y[part])) < 2 or len(part) < 50:
                raise InputError(
                    f"a part of the rows has {len(part)} rows or one class alone",
                    expected="50 rows or more of both classes in each half",
                    remedy="Give more rows, or a split nearer to 0.5",
                )
        return [(*train, *test), (*test, *train)][: 1 + bool(self.cross_fit)]

    def _test(self, family: Family, rng: np.random.Generator) -> tuple[TestResult, "_Found"]:
        stages = [fold.aggregate(family) for fold, _ in self._folds]
        chosen, found, p_value = self._combined(stages, rng)
        stage, (fold, parts) = stages[chosen], self._folds[chosen]
        source, target = fold.halves[2:]
        frame = pd.DataFrame(
            {
                "decay": [estimate.value + self.tolerance for estimate in stage.estimates],
                "se": [estimate.se for estimate in stage.estimates],
                "n_source": [estimate.n_source for estimate in stage.estimates],
                "n_target": [estimate.n_target for estimate in stage.estimates],
            }
        )
        decay, se, half, n_in = np.nan, np.nan, np.nan, 0
        best = self._reported(stage, found)
        if best >= 0:
            estimate = stage.estimates[best]
            decay, se, n_in = estimate.value + self.tolerance, estimate.se, estimate.n_target
            half = found.two_sided * se
        result = TestResult(
            kind=family,
            statistic=found.statistic,
            decay=float(decay),
            se=float(se),
            interval=(float(decay - half), float(decay + half)),
            p_value=p_value,
            critical_value=found.critical_value,
            reject=p_value <= self.alpha,
            n_in_subgroup=n_in,
            prevalence=n_in / len(target),
            detectors=frame,
            n_source=len(source),
            n_target=len(target),
            resolution=self._resolution(fold, found),
        )
        return result, _Found(fold, parts, stage, best)

    def _reported(self, stage: Stage, found: MaxTest) -> int:
        """Return the subgroup to tell of: of those that decayed for sure, the one with most loss beyond the tolerance.

        That is the aim of the search, the sum over rows: the largest studentised decay often belongs to a smaller part.
        """
        sure = [j for j, e in enumerate(stage.estimates) if e.se > 0 and e.value > found.critical_value * e.se]
        return max(sure, key=lambda j: stage.estimates[j].value * stage.estimates[j].n_target, default=found.best)

    def _combined(self, stages: list[Stage], rng: np.random.Generator) -> tuple[int, MaxTest, float]:
        """Return which fold tells more, its test, and the p-value of all folds together."""
        k = len(stages)
        tests = [
            max_test(stage.estimates, alpha=self.alpha / k, n_bootstrap=self.n_bootstrap, rng=rng) for stage in stages
        ]
        p_values = [max(found.p_value, stage.independence) for found, stage in zip(tests, stages, strict=True)]
        chosen = int(np.argmin(p_values))
        return chosen, tests[chosen], float(min(1.0, k * p_values[chosen]))

    def _resolution(self, fold: Fold, found: MaxTest) -> float:
        source, target = fold.halves[2:]
        critical = found.critical_value if np.isfinite(found.critical_value) else 1.645
        variance = source.loss.var() / len(source) + target.loss.var() / len(target)
        return float((critical + _POWER_Z) * np.sqrt(variance / self.min_prevalence))

    def _explain(self, rng: np.random.Generator) -> pd.DataFrame:
        tasks = [(family, name) for family in FAMILIES if self.aggregate_[family].reject for name in self._groups]
        stages = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(self._explanations)(family, name) for family, name in tasks
        )
        rows = []
        for (family, name), found in zip(tasks, stages, strict=True):
            chosen, test, p_value = self._combined(found, rng)
            left = found[chosen].estimates[test.best] if test.best >= 0 else None
            rows.append(
                (
                    name,
                    family,
                    np.nan if left is None else left.value + self.tolerance,
                    np.nan if left is None else left.se,
                    p_value,
                    p_value > self.alpha,
                    0 if left is None else left.n_target,
                )
            )
        return named_frame(rows, _DETAILED)

    def _explanations(self, family: Family, name: str) -> list[Stage]:
        return [fold.explained(family, self._groups[name]) for fold, _ in self._folds]

    def _best(self, kind: Family) -> "_Found":
        check_is_fitted(self, "aggregate_")
        if kind not in FAMILIES:
            raise InputError(f"kind is {kind!r}", expected="'covariate' or 'outcome'")
        found = self._found[kind]
        if found.best < 0:
            raise InputError(
                f"no subgroup seems to have decayed by a change of {'rows' if kind == 'covariate' else 'outcomes'}",
                expected="a family for which aggregate_[kind].n_in_subgroup is above 0",
            )
        return found


class _Found(NamedTuple):
    """The split that tells most of a family, the rows in its parts, and which of its subgroups is told of."""

    fold: Fold
    parts: tuple[NDArray[np.intp], ...]
    stage: Stage
    best: int


def _diagnostics(fold: Fold) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    source, target = fold.domain[2:]
    auc = float(roc_auc_score(np.repeat([0, 1], [len(source), len(target)]), np.concatenate([source, target])))
    if auc > _APART:
        raise InputError(
            f"a classifier tells source and target apart with an AUC of {auc:.3f}",
            expected="domains that overlap: their supports do not, so no row of one stands for rows of the other",
            remedy="Drop columns that give the domain away, such as dates, identifiers and names of sites",
        )
    weights = fold.scored[2].w
    mean, se = float(weights.mean()), float(weights.std(ddof=1) / np.sqrt(len(weights)))
    if abs(mean - 1.0) > 0.1 + 4.0 * se:
        warnings.warn(
            f"Density ratios average {mean:.2f} over source rows, where 1 is right: the classifier of domains is badly "
            "calibrated, and decays by changed rows may be wrong. Try another density_model.",
            UserWarning,
            stacklevel=3,
        )
    clipped = fold.density.clipped(np.concatenate([source, target]))
    return {
        "domain_auc": auc,
        "mean_weight": mean,
        "mean_weight_se": se,
        "clipped": clipped,
        "clipped_share": clipped / (len(source) + len(target)),
        "outcome_model": fold.outcome.name,
        "density_model": fold.density.domain.name,
    }


def _small(*tables: Any) -> bool:
    """Tell whether trees are grown faster by one thread, which waits for no other."""
    return sum(len(table) for table in tables if hasattr(table, "__len__")) < _ONE_THREAD


def _seed(random_state: Any) -> int:
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31))
