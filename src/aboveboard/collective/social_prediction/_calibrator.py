"""The estimator: forecasts that are published one by one, and the random one of them that is published from then on."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import Kernel
from sklearn.utils import check_random_state

from aboveboard.collective.social_prediction._families import (
    BaseScoreTests,
    CallableTests,
    Family,
    bind_tests,
    default_tests,
    names_of,
    refuse_unusable,
    values_of,
)
from aboveboard.collective.social_prediction._memory import KernelMemory, Memory, SumMemory, forecast
from aboveboard.collective.social_prediction._people import (
    Columns,
    check_forecasts,
    check_outcomes,
    count_people,
    take_people,
)
from aboveboard.collective.social_prediction._violations import residuals_on
from aboveboard.core import Assumption, Certificate, InputError, Reference, keyed_uniform

__all__ = ["PAPER", "PerformativeCalibrator", "PublishedForecaster"]

Floats = NDArray[np.float64]
Respond = Callable[[Any, Floats], ArrayLike]

PAPER: Final = Reference(
    title="Revisiting the Predictability of Performative, Social Events",
    authors="J. C. Perdomo",
    venue="ICML",
    year=2025,
    url="https://arxiv.org/abs/2503.11713",
)
_PURPOSE: Final = "PerformativeCalibrator"
_JUMP: Final = 0.25


class PerformativeCalibrator(BaseEstimator):  # type: ignore[misc]
    """Forecasts that match what happens after they are published, although people react to them.

    Each person gets a forecast, then shows an outcome that may depend on it in any way. K29 chooses the forecast so
    that no outcome whatever can make past errors worse; the forecaster that is published from then on meets each person
    with a random one of the functions that were used on the way.

    Parameters
    ----------
    tests : "default", sequence, or scikit-learn kernel, default "default"
        Functions c(x, p) between -1 and 1, continuous in p, on which outcomes must match forecasts:
        ``E[c(x, p) (y - p)]`` is to vanish. A sequence holds `PolynomialTests`, `LinearTests`, `GroupTests`,
        `BumpTests`, `ProductTests`, or functions c(X, p) from an array of shape (n, columns), where groups are codes,
        and forecasts of shape (n,) to n numbers. "default" is 1, p, standardised features, groups, groups x p, and
        eight bumps along p. With a kernel on rows (x, p), such as ``sklearn.gaussian_process.kernels.RBF``, all
        functions of its unit ball are tests.
    groups : sequence of str or int, optional
        Columns of X whose values are groups: in each, outcomes are to match forecasts. Missing values are a group.
    base_estimator : fitted estimator or callable, optional
        A model to start from: its score h(x) between 0 and 1 (`predict_proba`, else `predict`) is a test too, and of
        several forecasts that would do, the one nearest to h(x) is published. It is not fitted again;
        ``sklearn.frozen.FrozenEstimator`` lets it survive a clone.
    delta : float in (0, 1), default 0.05
        Chance with which the guarantee about new people may fail.
    random_state : int, RandomState or None
        Of the order of people in `fit_online`, and of the draws in `predict`.

    Attributes
    ----------
    tests_ : tuple
        The families of tests, with the columns they look at; empty with a kernel.
    test_names_ : list of str
    n_rounds_ : int
        How many people were forecast and observed, n.
    batch_size_ : int
        The most people that met one version.
    certificate_ : Certificate
        The guarantee, for the people so far.

    Raises
    ------
    aboveboard.core.InputError
        When a test exceeds 1 or is not continuous in p, an outcome or a base score lies outside [0, 1], or columns are
        not those of `prepare`.
    RuntimeError
        When `predict_one` and `update` do not alternate.

    Notes
    -----
    With C tests and S_t the sum of ``(y - p) c(x, p)`` before round t, the forecast is a zero in p of
    ``<S_t, c(x, p)>``, or 1 where that is positive and 0 where it is negative. Then ``(y - p) <S_t, c(x, p)> <= 0`` for
    every y, so that the squared norm of S grows by at most C per round, and for every test
    ``|sum of c(x, p) (y - p)| <= sqrt(n C)``, whatever happens. In batches of B people per version it is
    ``sqrt(B n C)``.

    Guarantee: where people are drawn independently from one distribution, and each one's outcome depends on its own
    features and forecast alone, the published forecaster satisfies, with probability 1 - delta, for all tests at once
    ``|E[c(x, p) (y - p)]| <= |S_c| / n + sqrt(2 log(2 C / delta) / n)``, where the first term is known and at most
    ``sqrt(B C / n)``. (Theorem 3.4 of the paper has a larger constant; this one is Hoeffding's.) For a kernel
    of at most 1, the unit ball instead: ``|S| / n + sqrt(8 log(2 / delta) / n)``, after Pinelis.

    The scale of features and the values of groups are taken from the people of `prepare`, and the guarantee takes them
    as given.

    O(n C) time and memory for the fit, with a constant of some 160 evaluations of the functions of p; O(C) per
    forecast. With a kernel O(n^2) time.

    References
    ----------
    J. C. Perdomo, "Revisiting the Predictability of Performative, Social Events", ICML 2025. V. Vovk, I. Nouretdinov,
    A. Takemura, G. Shafer, "Defensive forecasting for linear protocols", ALT 2005 (K29). I. Pinelis, "Optimum bounds
    for the distributions of martingales in Banach spaces", Annals of Probability 22, 1994.

    Examples
    --------
    >>> from aboveboard.collective import PerformativeCalibrator, ResponseModel
    >>> from aboveboard.data import load_german_credit
    >>> X = load_german_credit().X[["age", "duration", "housing"]]
    >>> respond = ResponseModel("threshold", 0.3, base_rate=0.6, random_state=0)  # help above 1/2 lowers the risk
    >>> calibrator = PerformativeCalibrator(groups=["housing"], random_state=0).fit_online(X, respond)
    >>> calibrator.certificate_.holds
    True
    >>> p = calibrator.predict(X, random_state=1)
    >>> bool(abs((respond(X, p) - p).mean()) < 0.06)
    True
    """

    def __init__(
        self,
        tests: Any = "default",
        *,
        groups: Sequence[str | int] | None = None,
        base_estimator: Any = None,
        delta: float = 0.05,
        random_state: Any = None,
    ) -> None:
        self.tests = tests
        self.groups = groups
        self.base_estimator = base_estimator
        self.delta = delta
        self.random_state = random_state

    # --- learning from people, one by one or all in a row -------------------------------------------------------------

    def prepare(self, X: Any) -> "PerformativeCalibrator":
        """Learn the columns, the groups and the scale of features from people like those to come; forget all else.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            Numbers, but for the columns of `groups`. Nothing is published.

        Returns
        -------
        self
        """
        if not isinstance(self.delta, float | int) or not 0 < self.delta < 1:
            raise InputError(f"delta is {self.delta!r}", expected="a probability between 0 and 1")
        if not count_people(X):
            raise InputError("X has no rows", expected="one person at least")
        families, kernel = self._given_tests()
        own = [column for family in families for column in family.group_columns()]
        self._columns = Columns.learn(X, dict.fromkeys([*(self.groups or ()), *own]))
        Z = self._encode(X)
        families = [f for f in families if not f.asks_for_groups() or self._columns.levels]
        self.tests_ = bind_tests(families, self._columns, Z)
        self.test_names_ = names_of(self.tests_)
        self._jump = refuse_unusable(self.tests_, Z) if kernel is None else _refuse_kernel(kernel, Z)
        self._memory: Memory = SumMemory(self.tests_) if kernel is None else KernelMemory(kernel, Z.shape[1])
        self._waiting: tuple[Floats, Floats] | None = None
        self.n_rounds_, self.batch_size_ = 0, 0
        return self

    def predict_one(self, x: Any) -> float:
        """Return the forecast to publish for the next person; `update` must follow.

        Parameters
        ----------
        x : array of shape (n_features,), Series, mapping, or table of one row

        Raises
        ------
        RuntimeError
            When the outcome of the person before is still missing.
        """
        self._check_prepared()
        if self._waiting is not None:
            raise RuntimeError("predict_one was called twice. Call update with the outcome of the person before first.")
        Z = self._encode(self._one_row(x))
        p = self._current(Z)
        self._waiting = Z, p
        return float(p[0])

    def update(self, y: float) -> "PerformativeCalibrator":
        """Learn the outcome, in [0, 1], of the person whom `predict_one` was last called for."""
        self._check_prepared()
        if self._waiting is None:
            raise RuntimeError("update was called before predict_one. Publish a forecast first.")
        outcome = check_outcomes([y], 1)
        self._learn(*self._waiting, outcome)
        self._waiting = None
        return self

    def fit_online(self, X: Any, respond: Respond, *, batch_size: int = 1) -> "PerformativeCalibrator":
        """Publish a forecast for each person, in random order, and learn from the outcome before the next.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
            People, drawn independently.
        respond : callable
            ``respond(people, p)`` publishes the forecasts p, shape (b,), to these rows of X, and returns their outcomes
            in [0, 1]. A deployment, or a simulator such as `ResponseModel`.
        batch_size : int, default 1
            People who meet the same version. A batch costs up to a factor ``sqrt(batch_size)`` in the bound.

        Returns
        -------
        self
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}", expected="a whole number of people, 1 or more")
        if not callable(respond):
            raise InputError(f"respond is a {type(respond).__name__}", expected="a function of people and forecasts")
        if isinstance(X, list | tuple):
            X = np.asarray(X)
        self.prepare(X)
        Z = self._encode(X)
        order = check_random_state(self.random_state).permutation(len(Z))
        for start in range(0, len(Z), batch_size):
            rows = order[start : start + batch_size]
            p = self._current(Z[rows])
            y = np.asarray(respond(take_people(X, rows), p)).reshape(-1)
            self._learn(Z[rows], p, check_outcomes(y, len(rows)))
        return self

    # --- the forecaster that is published from then on ----------------------------------------------------------------

    def predict(
        self, X: Any, *, record_ids: Iterable[Any] | None = None, key: bytes | None = None, random_state: Any = None
    ) -> Floats:
        """Return the forecast for each person of a version drawn at random.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        record_ids : iterable of str, bytes, int or tuple, length n, optional
            The draw then follows from each id and the key: the same person gets the same forecast again.
        key : bytes, optional
            At least 16, kept secret; with `record_ids`.
        random_state : int, RandomState or None
            Without `record_ids`; default that of the constructor.

        Returns
        -------
        ndarray of float in [0, 1], shape (n,)

        Notes
        -----
        The draw is part of the guarantee. The mean over versions is not calibrated.
        """
        self._check_learned()
        Z = self._encode(X)
        if (record_ids is None) != (key is None):
            raise InputError("record_ids and key go together", expected="both, or neither")
        if record_ids is None or key is None:
            drawn = check_random_state(self.random_state if random_state is None else random_state).random_sample(
                len(Z)
            )
        else:
            drawn = np.asarray(keyed_uniform(key, record_ids, purpose=_PURPOSE))
            if len(drawn) != len(Z):
                raise InputError(f"{len(drawn):,} record ids were given", expected=f"one per person: {len(Z):,}")
        version = self._memory.version_met_by((drawn * self.n_rounds_).astype(np.intp))
        return forecast(self._memory, Z, self._anchor(Z), version)

    def predict_proba(
        self, X: Any, *, record_ids: Iterable[Any] | None = None, key: bytes | None = None, random_state: Any = None
    ) -> Floats:
        """Return ``1 - p`` and p, shape (n, 2); parameters as for `predict`."""
        p = self.predict(X, record_ids=record_ids, key=key, random_state=random_state)
        return np.column_stack([1.0 - p, p])

    def deterministic_at(self, t: int) -> "PublishedForecaster":
        """Return the deterministic forecaster that person t met, counted from 0."""
        self._check_learned()
        if isinstance(t, bool) or not isinstance(t, int | np.integer) or not 0 <= t < self.n_rounds_:
            raise InputError(f"t is {t!r}", expected=f"a round from 0 to {self.n_rounds_ - 1:,}")
        return PublishedForecaster(self, int(t))

    def violations(self, X: Any, p: ArrayLike, y: ArrayLike) -> pd.DataFrame:
        """Return what the tests say of people to whom p was published and y happened.

        Parameters
        ----------
        X : array or data frame of shape (n, n_features)
        p, y : array-like of shape (n,), in [0, 1]

        Returns
        -------
        DataFrame
            ``test``, ``mean`` of c(x, p) (y - p), and ``low`` and ``high``, the ends of a 95 % interval that holds for
            all tests at once. Two people at least.

        Raises
        ------
        aboveboard.core.InputError
            With a kernel, which has no list of tests.
        """
        self._check_prepared()
        if not self.tests_:
            raise InputError("the tests are those of a kernel, and cannot be listed", expected="a list of tests")
        Z = self._encode(X)
        if len(Z) < 2:
            raise InputError(f"X has {len(Z)} rows", expected="two people at least")
        given, outcome = check_forecasts(p, len(Z)), check_outcomes(y, len(Z))
        found = residuals_on(values_of(self.tests_, Z, given), given, outcome)
        low, high = found.interval
        return pd.DataFrame({"test": self.test_names_, "mean": found.mean, "low": low, "high": high})

    @property
    def certificate_(self) -> Certificate:
        """What is guaranteed of new people, from those so far."""
        from aboveboard import __version__

        self._check_learned()
        n, memory = self.n_rounds_, self._memory
        if isinstance(memory, SumMemory):
            kind = f"each of {memory.size:,} tests"
            observed = float(np.abs(memory.sums).max()) / n
            worst = float(np.sqrt(self.batch_size_ * memory.size / n))
            deviation = float(np.sqrt(2.0 * np.log(2.0 * memory.size / self.delta) / n))
        else:
            kind = "every test in the unit ball of the kernel"
            observed, worst = memory.norm / n, float(np.sqrt(self.batch_size_ / n))
            deviation = float(np.sqrt(8.0 * np.log(2.0 / self.delta) / n))
        ratio = memory.norm / memory.bound if memory.bound else 0.0
        return Certificate(
            kind="performative calibration",
            guarantee=(
                f"For {kind} c, the published forecaster, which draws one of its {memory.versions:,} versions for each "
                f"person, has |E[c(x, p) (y - p)]| at most {observed + deviation:.4g} on new people who react to it."
            ),
            parameters={
                "people": n,
                "tests": memory.size if isinstance(memory, SumMemory) else None,
                "batch_size": self.batch_size_,
                "delta": float(self.delta),
                "observed": observed,
                "observed_at_most": worst,
                "deviation": deviation,
                "bound": observed + deviation,
            },
            assumptions=(
                Assumption("People are drawn independently from one distribution, and new people from the same."),
                Assumption("A person's outcome depends on its own features and forecast alone, in any way."),
                Assumption("Forecasts do not change the features of people, and nobody remembers former rounds."),
                Assumption(
                    "Each test is continuous in the forecast.",
                    basis="checked",
                    test="largest jump along 257 forecasts, on some of the people",
                    statistic=self._jump,
                    limit=_JUMP,
                    passed=self._jump <= _JUMP,
                ),
                Assumption(
                    "No outcome could make past errors worse.",
                    basis="checked",
                    test="norm of the sums of the tests, as a share of its bound",
                    statistic=ratio,
                    limit=1.0 + 1e-5,
                    passed=ratio <= 1.0 + 1e-5,
                ),
            ),
            confidence=1.0 - float(self.delta),
            does_not_cover=(
                "whether the forecasts are worth publishing: calibrated ones can be the worst of all (see usefulness)",
                "tests that are not among these, such as groups that were not named",
                "the mean over versions, or any single version",
                "people who change their features because of the forecast, and effects of one person's on another",
            ),
            library_version=__version__,
            reference=PAPER,
        )

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _given_tests(self) -> tuple[list[Family], Any]:
        """Return the families of tests, not bound yet, or a kernel."""
        base: list[Family] = [] if self.base_estimator is None else [BaseScoreTests()]
        if isinstance(self.tests, str):
            if self.tests != "default":
                raise InputError(f"tests is {self.tests!r}", expected="'default', a list of tests, or a kernel")
            return default_tests() + base, None
        if isinstance(self.tests, Kernel):
            return [], self.tests
        try:
            given = list(self.tests)
        except TypeError:
            raise InputError(
                f"tests is a {type(self.tests).__name__}", expected="'default', a list of tests, or a kernel"
            ) from None
        wrong = next((test for test in given if not isinstance(test, Family) and not callable(test)), None)
        if wrong is not None or not given:
            raise InputError(
                "there is no test" if not given else f"a test is a {type(wrong).__name__}",
                expected="PolynomialTests, LinearTests, GroupTests, BumpTests, ProductTests or functions c(X, p)",
            )
        return [t if isinstance(t, Family) else CallableTests((t,)) for t in given] + base, None

    def _encode(self, X: Any) -> Floats:
        """Return the people as a matrix; the last column is the base model's score where there is one."""
        Z = self._columns.encode(X)
        if self.base_estimator is None:
            return Z
        return np.column_stack([Z, _base_scores(self.base_estimator, X, len(Z))])

    def _anchor(self, Z: Floats) -> Floats:
        return Z[:, -1] if self.base_estimator is not None else np.full(len(Z), 0.5)

    def _current(self, Z: Floats) -> Floats:
        return forecast(self._memory, Z, self._anchor(Z), np.full(len(Z), self._memory.versions))

    def _learn(self, Z: Floats, p: Floats, y: Floats) -> None:
        self._memory.add(Z, p, y - p)
        self.n_rounds_ += len(p)
        self.batch_size_ = max(self.batch_size_, len(p))

    def _one_row(self, x: Any) -> Any:
        if isinstance(x, pd.Series):
            return x.to_frame().T.infer_objects()
        if isinstance(x, dict):
            return pd.DataFrame([x])
        return np.asarray(x)[None, :] if np.ndim(x) == 1 else x

    def _check_prepared(self) -> None:
        if not hasattr(self, "_memory"):
            raise NotFittedError("No people are known yet. Call prepare(X) or fit_online(X, respond) first.")

    def _check_learned(self) -> None:
        self._check_prepared()
        if not self.n_rounds_:
            raise NotFittedError("No outcome was observed yet. Call update after predict_one, or fit_online.")


class PublishedForecaster:
    """One version of a `PerformativeCalibrator`: the deterministic function that person t met.

    It carries no guarantee by itself.
    """

    def __init__(self, calibrator: PerformativeCalibrator, t: int) -> None:
        self.t = t
        self._calibrator = calibrator

    def predict(self, X: Any) -> Floats:
        """Return the forecast for each person, shape (n,)."""
        own = self._calibrator
        Z = own._encode(X)
        version = own._memory.version_met_by(np.array([self.t]))
        return forecast(own._memory, Z, own._anchor(Z), np.repeat(version, len(Z)))


def _refuse_kernel(kernel: Any, Z: Floats) -> float:
    """Return the largest change of the kernel's tests along the forecast, and refuse a kernel that exceeds 1."""
    grid = np.linspace(0.0, 1.0, 257)
    rows = np.column_stack([np.repeat(Z[:1], len(grid), axis=0), grid])
    diagonal = kernel.diag(np.column_stack([Z, np.full(len(Z), 0.5)]))
    largest = max(float(np.max(diagonal)), float(np.max(kernel.diag(rows))))
    if not largest <= 1 + 1e-9:
        raise InputError(
            f"the kernel reaches {largest:.3g}",
            expected="k(z, z) of at most 1",
            remedy="Divide it by its largest value",
        )
    # a function of the unit ball moves between neighbours by at most |k(z, .) - k(z', .)|
    gram = kernel(rows)
    apart = np.sqrt(np.maximum(np.diag(gram)[:-1] + np.diag(gram)[1:] - 2.0 * np.diag(gram, 1), 0.0))
    if apart.max() > _JUMP:
        raise InputError(
            f"functions of the kernel jump by up to {apart.max():.3g} between forecasts 1/256 apart",
            expected="a kernel that is continuous in p, the last column",
            remedy="Give it a larger length scale there",
        )
    return float(apart.max())


def _base_scores(model: Any, X: Any, n: int) -> Floats:
    if hasattr(model, "predict_proba"):
        found = np.asarray(model.predict_proba(X))
        if found.ndim != 2 or found.shape[1] != 2:
            raise InputError(f"the base model gives shape {found.shape}", expected=f"({n}, 2): two classes")
        scores = found[:, 1]
    elif hasattr(model, "predict"):
        scores = np.asarray(model.predict(X))
    elif callable(model):
        scores = np.asarray(model(X))
    else:
        raise InputError(f"base_estimator is a {type(model).__name__}", expected="a fitted model, or a function h(X)")
    try:
        return check_forecasts(scores, n)
    except InputError as error:
        raise InputError(f"of the base model, {error.got}", expected=error.expected) from None
