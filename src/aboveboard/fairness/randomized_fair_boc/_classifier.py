"""The estimator: any classifier's scores, one threshold per group, a keyed coin for at most a few scores."""

import hashlib
import secrets
import warnings
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    check_is_fitted,
    column_or_1d,
    has_fit_parameter,
    validate_data,
)

from aboveboard.core import Assumption, Certificate, InputError, Interval, Reference, keyed_uniform
from aboveboard.fairness.randomized_fair_boc._atoms import (
    SAME_SCORE,
    GroupAtoms,
    Rule,
    SortedScores,
    accepted,
    fair_rules,
)
from aboveboard.fairness.randomized_fair_boc._groups import group_codes, known_codes
from aboveboard.fairness.randomized_fair_boc._optimum import (
    Constraint,
    Floats,
    Indices,
    checked_constraint,
    checked_slack,
    constant_from_totals,
    kappa_from_totals,
    without_mass,
)
from aboveboard.fairness.randomized_fair_boc._price import counted_rows, cross_fit

__all__ = ["RandomizedFairClassifier"]

_LARGE_KAPPA: Final = 20.0
_FOLDS: Final = 5
_ROUNDING: Final = 1e-6  # probabilities in single precision may leave [0, 1] by this much
_PURPOSE: Final = "aboveboard/randomized_fair_boc"
_PAPER: Final = Reference(
    title="Optimal Fair Learning Robust to Adversarial Distribution Shift",
    authors="S. Agarwal, A. Deshpande, R. Rajaraman, R. Sundaram",
    venue="ICML 2025, PMLR 267",
    year=2025,
    url="https://proceedings.mlr.press/v267/agarwal25b.html",
)


class RandomizedFairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The most accurate classifier whose groups have equal rates, built on the scores of any classifier.

    Each group gets one threshold on the score; for people whose score equals it a coin may be needed. With two groups
    that is one score value in one group, with G groups at most G - 1 values. The coin is keyed to the record id:
    whoever applies again gets the same answer, and an auditor can derive it.

    The group is used when deciding, which is unlawful in some settings (lending and hiring in the United States, for
    one): see the method's page before deploying it.

    Parameters
    ----------
    estimator : classifier with ``predict_proba``, optional
        Default `LogisticRegression`.
    constraint : {"demographic_parity", "equal_opportunity", "predictive_equality"}
        Which rate the groups share: acceptance, true positive or false positive rate.
    slack : float in [0, 1], default 0
        How far apart the largest and the smallest group rate may be.
    calibration : {"isotonic", None}, default "isotonic"
        Calibrate the scores in each group; None takes them as probabilities.
    cv : int, splitter or "prefit", default 5
        How the scores that thresholds are learned from are made: out of fold, after which `estimator` is fitted to all
        rows; or by an `estimator` that is fitted already, on rows that it has not seen.
    derandomize : bool, default False
        Round the coin to its more accurate side. `parity_gap_` and `rounding_loss_` say what that does.
    key : bytes, optional
        At least 16, kept secret: the key of the coin. Without one a key is made in fit, from `random_state` where it is
        given (then anyone can derive it).
    random_state : int, RandomState or None
        Of the folds, and of the key where none was given.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second one is the positive class.
    estimator_ : classifier
    groups_ : list
        Group labels; tuples where there are several sensitive features.
    thresholds_ : dict
        By group, ``(t, q)``: scores above t are accepted, those equal to t with probability q.
    rates_ : dict
        By group, the constrained rate on the calibration sample.
    common_rate_ : float
        The smallest of them; with ``slack=0`` the common one.
    parity_gap_ : float
        Largest less smallest of them: at most `slack`, unless the coin was rounded.
    randomized_mass_ : float
        Share of the calibration sample for whom a coin is flipped.
    rounding_loss_ : float
        What rounding the coin cost in plug-in accuracy; 0 or less.
    expected_accuracy_ : float
        Cross-fitted: thresholds were learned on four fifths of the calibration sample and held against the last. NaN
        where a group has fewer than two rows that count.
    expected_accuracy_interval_ : Interval or None
        Wilson's, of the above.
    unconstrained_accuracy_ : float
        Cross-fitted accuracy of the best threshold in each group.
    calibration_error_ : float
        Largest held-out calibration error of any group.
    plugin_accuracy_ : float
        Optimum on the calibration sample, as if the calibrated scores were true; it flatters.
    kappa_ : float
        Largest odds against a group in the constraint: what the robustness of the last two constraints hangs on.
    certificate_ : Certificate
        For poison or drift of total variation 0.01; see `certificate` for another radius.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Raises
    ------
    InputError
        For outcomes that are not binary, sensitive features that are missing or do not line up, a group without
        positives (equal opportunity) or negatives (predictive equality), an estimator without ``predict_proba``.

    Guarantee
    ---------
    On the calibration sample, in expectation over the coin, group rates differ by at most `slack` (or `parity_gap_`),
    and no classifier of calibrated score and group that does so is more accurate. On new people expect gaps of the
    order of 1 / sqrt(size of the group). Under a change of distribution of total variation eps the best fair accuracy
    moves by at most C x eps: `certificate_` has the constant and what it assumes.

    Notes
    -----
    Atoms are the distinct scores of a group; isotonic calibration gives thousands of people one probability, and
    among them the raw score decides, so that the coin falls to one score value and not to all of them. Fit costs the
    fits of `estimator` and O(n log n).

    References
    ----------
    S. Agarwal, A. Deshpande, R. Rajaraman, R. Sundaram, "Optimal Fair Learning Robust to Adversarial Distribution
    Shift", ICML 2025.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from aboveboard.data import load_german_credit
    >>> from aboveboard.fairness import RandomizedFairClassifier
    >>> credit = load_german_credit()
    >>> X = credit.X.select_dtypes("number")
    >>> age = (credit.X["age"] < 26).map({True: "young", False: "older"})
    >>> fair = RandomizedFairClassifier(LogisticRegression(max_iter=5000), random_state=0)
    >>> fair.fit(X, credit.y, sensitive_features=age).randomized_mass_ <= 0.005
    True
    >>> sorted(fair.thresholds_)
    ['older', 'young']
    >>> fair.predict(X.head(3), sensitive_features=age.head(3), record_ids=X.head(3).index).shape
    (3,)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        constraint: Constraint = "demographic_parity",
        slack: float = 0.0,
        calibration: str | None = "isotonic",
        cv: Any = 5,
        derandomize: bool = False,
        key: bytes | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.constraint = constraint
        self.slack = slack
        self.calibration = calibration
        self.cv = cv
        self.derandomize = derandomize
        self.key = key
        self.random_state = random_state

    def fit(
        self, X: Any, y: ArrayLike, *, sensitive_features: Any = None, sample_weight: ArrayLike | None = None
    ) -> "RandomizedFairClassifier":
        """Fit the estimator, calibrate its scores in each group, and find the thresholds.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Handed to `estimator` as it is.
        y : array-like of shape (n,)
            Two classes; the second in sorted order is the positive one.
        sensitive_features : array, Series or data frame of shape (n,) or (n, n_columns), optional
            Several columns make intersections; None puts everybody in one group.
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        constraint, slack, calibrate = self._checked_options()
        validate_data(self, X, skip_check_array=True)
        (X,) = indexable(X)
        label, self.classes_ = _binary(y)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        code, self.groups_ = self._fit_groups(sensitive_features, X)
        random = check_random_state(self.random_state)
        self.key_ = self._checked_key(random)
        self.estimator_, score = self._fitted_scores(X, y, label, code, weight, sample_weight is not None, random)

        present = weight > 0
        rows = (score[present], label[present], weight[present], code[present])
        _refuse_unlabelled(*rows[1::2], self.groups_, constraint)
        sorted_rows = SortedScores.build(*rows, len(self.groups_))
        atoms, rules = fair_rules(sorted_rows, self.groups_, constraint, slack, calibrate=calibrate)
        before = _plugin_accuracy(atoms, rules)
        if self.derandomize:
            rules = [_rounded(group, rule) for group, rule in zip(atoms, rules, strict=True)]
        self._describe_rules(atoms, rules, before)
        self._remember_quantiles(atoms)
        self._cross_fit(sorted_rows, constraint, slack, calibrate, random)
        self._group_totals = np.array([group.curve.total for group in atoms])
        self._data_sha256 = _sha256(*rows)
        self.kappa_ = kappa_from_totals(self._group_totals)
        if constraint != "demographic_parity" and self.kappa_ > _LARGE_KAPPA:
            warnings.warn(
                f"kappa is {self.kappa_:.1f}: one group has so small a share of the cases that {constraint} looks at "
                "that a little poison or drift there can move the fair optimum far; the certificate says next to "
                "nothing. Consider demographic parity, or merging groups",
                UserWarning,
                stacklevel=2,
            )
        return self

    def acceptance_probability(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the probability with which each row is accepted.

        It is 0, 1 or a group's tie probability; no probability of the outcome.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        sensitive_features : as in `fit`

        Returns
        -------
        ndarray of float, shape (n,)
        """
        score, code = self._scores_and_groups(X, sensitive_features)
        threshold, tie = np.array([self.thresholds_[group] for group in self.groups_]).T
        return accepted(score, threshold[code], tie[code])

    def predict(
        self, X: Any, *, sensitive_features: Any = None, record_ids: Iterable[Any] | None = None
    ) -> NDArray[Any]:
        """Return the decision for each row.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        sensitive_features : as in `fit`
        record_ids : iterable of str, bytes, int or tuple, length n
            Who each row is; needed where a coin decides (``randomized_mass_ > 0``).

        Returns
        -------
        ndarray of shape (n,)
            Of `classes_`.

        Raises
        ------
        InputError
            When a coin may be needed and there are no record ids.
        """
        probability = self.acceptance_probability(X, sensitive_features=sensitive_features)
        if record_ids is None:
            if self.randomized_mass_ > 0:
                raise InputError(
                    "a coin decides about some scores, and record_ids is missing",
                    expected="an identifier per row, so that the same person gets the same answer",
                    remedy="Pass record_ids=X.index or your own ids, or fit with derandomize=True",
                )
            coin = np.full(len(probability), 0.5)
        else:
            coin = self._coins(record_ids, (probability > 0) & (probability < 1))
        decision: NDArray[Any] = self.classes_[(coin < probability).astype(int)]
        return decision

    def fair_representation(
        self, X: Any, *, sensitive_features: Any = None, record_ids: Iterable[Any] | None = None
    ) -> Floats:
        """Return each row's quantile within its group: accepting above any level z gives the groups equal rates.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        sensitive_features : as in `fit`
        record_ids : iterable of str, bytes, int or tuple, length n, optional
            With them, people of equal score are spread over their quantiles by the keyed coin, and parity on the
            calibration sample is exact in expectation; without, they share the middle, and it is exact up to the
            largest group of equal scores.

        Returns
        -------
        ndarray of float in [0, 1], shape (n,)
            Accepting where ``z > 1 - r`` gives every group the rate r of the constraint.
        """
        score, code = self._scores_and_groups(X, sensitive_features)
        low, high = np.empty(len(score)), np.empty(len(score))
        for position, (own, reached) in enumerate(self._quantiles):
            rows = np.flatnonzero(code == position)
            low[rows] = reached[own.searchsorted(score[rows] - SAME_SCORE)]
            high[rows] = reached[own.searchsorted(score[rows] + SAME_SCORE, side="right")]
        share = 0.5 if record_ids is None else self._coins(record_ids, np.ones(len(score), dtype=bool))
        return low + share * (high - low)

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, sensitive_features: Any = None
    ) -> float:
        """Return the accuracy on given rows, in expectation over the coin."""
        probability = self.acceptance_probability(X, sensitive_features=sensitive_features)
        positive = column_or_1d(y) == self.classes_[1]
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(np.where(positive, probability, 1 - probability), weights=weight))

    @property
    def certificate_(self) -> Certificate:
        """What poison or drift of total variation 0.01 can do."""
        return self.certificate()

    def certificate(self, tv: float = 0.01) -> Certificate:
        """Return how far poison or drift can move the best fair accuracy.

        Parameters
        ----------
        tv : float in [0, 1], default 0.01
            Total variation distance that is assumed.
        """
        from aboveboard import __version__

        check_is_fitted(self)
        if not 0 <= tv <= 1:
            raise InputError(f"tv is {tv!r}", expected="a total variation distance in [0, 1]")
        constant = constant_from_totals(self._group_totals, self.constraint, tv)
        bound = min(constant * tv, 1.0) if tv else 0.0
        name = self.constraint.replace("_", " ")
        return Certificate(
            kind="robust fair optimum",
            guarantee=(
                f"On every distribution of (score, group, outcome) within total variation {tv:g} of the calibration "
                f"distribution, the best accuracy of a randomised classifier of score and group under {name} with "
                f"slack {self.slack:g} differs from {self.plugin_accuracy_:.4f} by at most {bound:.4g}"
                + (", which says nothing." if bound >= 1 else ".")
            ),
            parameters={
                "constraint": self.constraint,
                "slack": self.slack,
                "tv": tv,
                "constant": constant,
                "kappa": self.kappa_,
                "plugin_accuracy": self.plugin_accuracy_,
                "bound": bound,
                "randomized_mass": self.randomized_mass_,
            },
            assumptions=(
                Assumption(f"The distribution that is met lies within total variation {tv:g} of the calibration one."),
                Assumption(
                    "The calibrated score is the true probability of a positive outcome, given score and group.",
                    test="cross-fitted calibration error, the largest of any group",
                    statistic=self.calibration_error_,
                ),
                Assumption("The group of every person is known when the decision is made."),
            ),
            does_not_cover=(
                "errors of the calibrated scores, and how far a finite sample is from its population",
                "the parity gap on new people, which has sampling error",
                "whether the thresholds found here remain the best after the change: the bound is on the best ones",
                *(["the loss from rounding the coin"] if self.derandomize else []),
                "whether it is lawful to use the group in a decision",
            ),
            subject={"data": self._data_sha256},
            library_version=__version__,
            reference=_PAPER,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        inner = get_tags(self._base())
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        return tags

    def _base(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def _checked_options(self) -> tuple[Constraint, float, bool]:
        if self.calibration not in ("isotonic", None):
            raise InputError(f"calibration is {self.calibration!r}", expected="'isotonic' or None")
        if not hasattr(self._base(), "predict_proba"):
            raise InputError(
                f"{type(self._base()).__name__} has no predict_proba",
                expected="a classifier that gives probabilities",
                remedy="Wrap it in sklearn.calibration.CalibratedClassifierCV",
            )
        return checked_constraint(self.constraint), checked_slack(self.slack), self.calibration is not None

    def _fit_groups(self, sensitive_features: Any, X: Any) -> tuple[Indices, list[Any]]:
        if sensitive_features is None:
            return np.zeros(_num_samples(X), dtype=np.intp), [None]
        return group_codes(sensitive_features, _num_samples(X), index=getattr(X, "index", None))

    def _checked_key(self, random: Any) -> bytes:
        if self.key is not None:
            keyed_uniform(self.key, ())  # refuses a bad key before any work
            return self.key
        return secrets.token_bytes(32) if self.random_state is None else random.bytes(32)

    def _fitted_scores(
        self, X: Any, y: ArrayLike, label: Floats, code: Indices, weight: Floats, weighted: bool, random: Any
    ) -> tuple[Any, Floats]:
        """Return the estimator that will score new rows, and the scores to learn thresholds from."""
        if isinstance(self.cv, str):
            if self.cv != "prefit":
                raise InputError(f"cv is {self.cv!r}", expected="a number of folds, a splitter, or 'prefit'")
            if self.estimator is None:
                raise InputError("cv is 'prefit' and there is no estimator", expected="a fitted estimator")
            check_is_fitted(self.estimator)
            return self.estimator, self._probabilities(self.estimator, X)
        target = column_or_1d(y)
        name = _weight_parameter(self._base()) if weighted else ""
        if name is None:
            warnings.warn(
                f"{type(self._base()).__name__} takes no sample_weight in fit: it is fitted without, and the weights "
                "count in calibration and thresholds only",
                UserWarning,
                stacklevel=3,
            )

        def fitted(rows: Indices) -> Any:
            extra = {name: weight[rows]} if name else {}
            return clone(self._base()).fit(_safe_indexing(X, rows), target[rows], **extra)

        score = np.full(len(target), np.nan)
        for train, test in self._splits(X, label, code, random):
            score[test] = self._probabilities(fitted(train), _safe_indexing(X, test))
        if np.isnan(score).any():
            raise InputError("cv leaves some rows without a fold", expected="a splitter whose test folds cover all")
        return fitted(np.arange(len(target))), score

    def _splits(self, X: Any, label: Floats, code: Indices, random: Any) -> Any:
        from sklearn.model_selection import StratifiedKFold, check_cv

        if hasattr(self.cv, "split") or not isinstance(self.cv, int | np.integer):
            return check_cv(self.cv, label, classifier=True).split(X, label)
        smallest = int(min(label.sum(), len(label) - label.sum()))
        if smallest < self.cv:
            raise InputError(
                f"one class has {smallest} rows, and cv is {self.cv}",
                expected="at least one row of each class in every fold",
                remedy="Use fewer folds, or cv='prefit' with a fitted estimator",
            )
        stratum = 2 * code + label.astype(int)
        if np.bincount(stratum)[np.unique(stratum)].min() < self.cv:
            stratum = label.astype(int)
        folds = StratifiedKFold(int(self.cv), shuffle=True, random_state=random.randint(2**31 - 1))
        return folds.split(np.zeros(len(label)), stratum)

    def _probabilities(self, estimator: Any, X: Any) -> Floats:
        known = list(estimator.classes_)
        if len(known) != 2 or any(label not in known for label in self.classes_):
            raise InputError(
                f"the estimator knows the classes {known}", expected=f"those of y: {self.classes_.tolist()}"
            )
        score = np.asarray(estimator.predict_proba(X), dtype=np.float64)[:, known.index(self.classes_[1])]
        if not np.all((score >= -_ROUNDING) & (score <= 1 + _ROUNDING)):
            raise InputError("predict_proba gives values outside [0, 1] or NaN", expected="probabilities")
        return np.clip(score, 0.0, 1.0)

    def _scores_and_groups(self, X: Any, sensitive_features: Any) -> tuple[Floats, Indices]:
        check_is_fitted(self)
        if getattr(X, "ndim", 2) == 1:
            raise InputError(
                f"X has shape {X.shape}",
                expected="one row per case",
                remedy="Reshape your data with X.reshape(1, -1) if it is a single case",
            )
        validate_data(self, X, skip_check_array=True, reset=False)
        n = _num_samples(X)
        grouped = self.groups_ != [None]
        if grouped and sensitive_features is None:
            raise InputError(
                f"the model was fitted with {len(self.groups_)} groups, and sensitive_features is missing",
                expected="the group of each row",
            )
        if not grouped and sensitive_features is not None:
            raise InputError("sensitive_features was given to a model that was fitted without")
        code = np.zeros(n, dtype=np.intp)
        if grouped:
            code = known_codes(sensitive_features, n, self.groups_, index=getattr(X, "index", None))
        return self._probabilities(self.estimator_, X), code

    def _coins(self, record_ids: Iterable[Any], needed: NDArray[np.bool_]) -> Floats:
        """Return a keyed number in [0, 1) for each row that needs one; 1/2 for the others."""
        ids = list(record_ids.tolist() if isinstance(record_ids, np.ndarray | pd.Series | pd.Index) else record_ids)
        if len(ids) != len(needed):
            raise InputError(f"record_ids has {len(ids):,} entries", expected=f"{len(needed):,}, one per row")
        coin = np.full(len(ids), 0.5)
        rows = np.flatnonzero(needed)
        coin[rows] = keyed_uniform(self.key_, (ids[i] for i in rows), purpose=_PURPOSE)
        return coin

    def _describe_rules(self, atoms: list[GroupAtoms], rules: list[Rule], before: float) -> None:
        rates = [group.rate(rule) for group, rule in zip(atoms, rules, strict=True)]
        self.thresholds_ = {group: tuple(rule) for group, rule in zip(self.groups_, rules, strict=True)}
        self.rates_ = dict(zip(self.groups_, rates, strict=True))
        self.common_rate_ = min(rates)
        self.parity_gap_ = max(rates) - min(rates)
        coins = [group.mass[_coin(group, rule)].sum() for group, rule in zip(atoms, rules, strict=True)]
        self.randomized_mass_ = float(sum(coins))
        self.plugin_accuracy_ = before
        self.rounding_loss_ = before - _plugin_accuracy(atoms, rules) if self.derandomize else 0.0

    def _remember_quantiles(self, atoms: list[GroupAtoms]) -> None:
        self._quantiles = []
        for group in atoms:
            reached = np.concatenate([[0.0], np.cumsum(group.weight[::-1])])
            self._quantiles.append((group.score[::-1].copy(), reached / reached[-1]))

    def _cross_fit(
        self, rows: SortedScores, constraint: Constraint, slack: float, calibrate: bool, random: Any
    ) -> None:
        seed = random.randint(2**31 - 1)
        self.expected_accuracy_ = self.unconstrained_accuracy_ = float("nan")
        self.expected_accuracy_interval_: Interval | None = None
        self.calibration_error_: float | None = None
        counts = counted_rows(rows, constraint)
        if counts.min() < 2:
            warnings.warn(
                f"group {self.groups_[int(counts.argmin())]!r} has a single row that counts under {constraint}, so "
                "that accuracy cannot be cross-fitted; expected_accuracy_ is NaN",
                UserWarning,
                stacklevel=3,
            )
            return
        fitted = cross_fit(
            rows,
            self.groups_,
            constraint,
            np.array([slack]),
            cv=_FOLDS,
            calibrate=calibrate,
            random_state=seed,
        )
        self.expected_accuracy_, interval = fitted.accuracy(fitted.fair[0])
        self.unconstrained_accuracy_, _ = fitted.accuracy(fitted.free)
        self.expected_accuracy_interval_ = Interval(*interval, 0.95, "Wilson, cross-fitted")
        self.calibration_error_ = fitted.calibration_error()


def _binary(y: Any) -> tuple[Floats, NDArray[Any]]:
    """Return outcomes as 0.0 and 1.0, and the two classes."""
    if y is None:
        raise InputError("requires y to be passed, but the target y is None")
    check_classification_targets(y)
    values = column_or_1d(y, warn=True)
    classes, code = np.unique(values, return_inverse=True)
    if len(classes) == 1:
        raise InputError(f"y has one class, {classes[0]!r}", expected="two classes")
    if len(classes) != 2:
        raise InputError(
            f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
            f"{len(classes)} classes",
            expected="two classes",
        )
    return code.astype(np.float64), classes


def _weight_parameter(estimator: Any) -> str | None:
    """Return under which name fit takes sample weights; None where it takes none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    steps = getattr(estimator, "steps", None)
    if steps and has_fit_parameter(steps[-1][1], "sample_weight"):
        return f"{steps[-1][0]}__sample_weight"
    return None


def _refuse_unlabelled(label: Floats, code: Indices, groups: list[Any], constraint: Constraint) -> None:
    counted = {"equal_opportunity": label == 1, "predictive_equality": label == 0}.get(constraint, label >= 0)
    counts = np.bincount(code[counted], minlength=len(groups))
    if not counts.all():
        raise without_mass(groups[int(counts.argmin())], constraint)


def _coin(group: GroupAtoms, rule: Rule) -> NDArray[np.bool_]:
    f = group.acceptance(rule)
    return (f > 0) & (f < 1)


def _rounded(group: GroupAtoms, rule: Rule) -> Rule:
    """Return the rule without a coin: its atom is accepted where that is the more accurate side."""
    coin = _coin(group, rule)
    return Rule(rule.threshold, float(group.eta[coin].max() > 0.5)) if coin.any() else rule


def _plugin_accuracy(atoms: list[GroupAtoms], rules: list[Rule]) -> float:
    accuracy = 0.0
    for group, rule in zip(atoms, rules, strict=True):
        f = group.acceptance(rule)
        accuracy += float(group.mass @ (f * group.eta + (1 - f) * (1 - group.eta)))
    return min(accuracy, 1.0)


def _sha256(*arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
    return digest.hexdigest()
