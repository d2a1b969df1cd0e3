"""The learner: a linear score whose loss is counted on what applicants will report."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from aboveboard.collective.strategic_externalities._certificate import pac_certificate
from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.collective.strategic_externalities._rounds import (
    EquilibriumPerformance,
    Rounds,
    log_loss,
    log_loss_slope,
    performance_at_equilibrium,
    shuffled_rounds,
)
from aboveboard.core import Certificate, InputError

__all__ = ["StrategicEquilibriumClassifier"]


class StrategicEquilibriumClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear score for features that all applicants polish at once, in each other's way.

    It minimises the log loss of what applicants report in the equilibrium of a `ManipulationGame`, and not of what they
    are. After that everybody may know the score: polishing has been allowed for. Give it true features to learn from
    and reported ones to predict.

    Parameters
    ----------
    game : ManipulationGame, optional
        Costs, externality and bounds; default ``ManipulationGame()``. With bounds, X must lie within them.
    n_agents : int or frozen SciPy distribution, default 8
        How many applicants meet in a round, such as ``scipy.stats.poisson(20)``.
    reg : float above 0, default 0.01
        Of ``reg * ||coef||^2``.
    n_shuffles : int, default 4
        How many times the rows are shuffled and cut into rounds, all of which are learned from.
    max_iter : int, default 200
    tol : float above 0, default 1e-6
        Stop when no part of the gradient is larger.
    random_state : int, Generator or None
        Of the shuffles.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        Applicants want to be scored as the second one.
    coef_ : ndarray of shape (1, d)
    intercept_ : ndarray of shape (1,)
    history_ : list of float
        The objective after each iteration.
    n_iter_ : int
    game_ : ManipulationGame
    certificate_ : Certificate
        How far the loss on the training rounds may be from the expected one, with probability 95 %.
    n_features_in_ : int
    feature_names_in_ : ndarray

    Raises
    ------
    InputError
        For parameters out of range, X outside the bounds, fewer rows than applicants in a round, other than two
        classes, or a game without a single equilibrium.

    Guarantee
    ---------
    `certificate_`: uniform convergence over all scores in a ball. Its constants were derived here, the paper's not
    being at hand; take it for an order of magnitude.

    Notes
    -----
    L-BFGS from the ordinary logistic regression, its intercept lowered by what everybody gains. The gradient of the
    loss goes through the equilibrium by the implicit function theorem, exactly and in linear time. The objective is not
    convex and has kinks where features meet their bounds; the result is a local minimum. O(n_shuffles n d log d) an
    iteration; with a callable externality O(n_shuffles n n_agents d) times the steps to an equilibrium.

    References
    ----------
    S. Hossain, E. Micha, Y. Chen, A. Procaccia, "Strategic Classification with Externalities", ICLR 2025.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.preprocessing import StandardScaler
    >>> from aboveboard.collective import ManipulationGame, StrategicEquilibriumClassifier
    >>> from aboveboard.data import load_german_credit
    >>> credit = load_german_credit()
    >>> X = StandardScaler().fit_transform(credit.X.select_dtypes("number")).clip(-2, 2)
    >>> good = credit.y == "good"
    >>> game = ManipulationGame(cost="squared_l2", alpha=0.1, externality="congestion", beta=0.001, bounds=(-2, 2))
    >>> aware = StrategicEquilibriumClassifier(game, n_agents=10, random_state=0).fit(X, good)
    >>> naive = LogisticRegression().fit(X, good)
    >>> options = {"game": game, "n_agents": 10, "random_state": 0}
    >>> from aboveboard.collective import performance_at_equilibrium
    >>> gamed = performance_at_equilibrium(naive.coef_[0], naive.intercept_[0], X, good, **options)
    >>> aware.performance_at_equilibrium(X, good, random_state=0).log_loss < gamed.log_loss
    True
    """

    def __init__(
        self,
        game: ManipulationGame | None = None,
        *,
        n_agents: Any = 8,
        reg: float = 1e-2,
        n_shuffles: int = 4,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.game = game
        self.n_agents = n_agents
        self.reg = reg
        self.n_shuffles = n_shuffles
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> "StrategicEquilibriumClassifier":
        """Learn the score.

        Parameters
        ----------
        X : array-like of shape (n, d)
            True features.
        y : array-like of shape (n,)

        Returns
        -------
        self
        """
        self._refuse_bad_options()
        X, y = validate_data(self, X, y, dtype=np.float64)
        truth = self._labels(y)
        self.game_ = ManipulationGame() if self.game is None else self.game
        self.game_._read(X, np.zeros(X.shape[1]))
        rng = np.random.default_rng(self.random_state)
        rounds = shuffled_rounds(len(X), self.n_agents, self.n_shuffles, rng)
        spread = X.std(axis=0)
        spread = np.where(spread > 0, spread, 1.0)
        self.history_: list[float] = []

        def objective(scaled: Floats) -> tuple[float, Floats]:
            w, b = scaled[:-1] / spread, float(scaled[-1])
            value, by_w, by_b = self._loss(X, truth, rounds, w, b)
            return value, np.append(by_w / spread, by_b)

        found = minimize(
            objective,
            self._start(X, truth, rounds) * np.append(spread, 1.0),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-12},
            callback=lambda intermediate_result: self.history_.append(float(intermediate_result.fun)),
        )
        self.coef_ = (found.x[:-1] / spread)[None, :]
        self.intercept_ = found.x[-1:].copy()
        self.n_iter_ = int(found.nit)
        self.certificate_: Certificate = pac_certificate(
            self.game_,
            sizes=list(rounds),
            n_rounds=len(X) // max(rounds),  # there are as many at least in each shuffle
            n_shuffles=self.n_shuffles,
            radius=float(np.linalg.norm(X, axis=1).max()),
            dimension=X.shape[1],
            reg=self.reg,
            rarer=float(min(truth.mean(), 1 - truth.mean())),
        )
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return the log-odds of ``classes_[1]`` for reported features, shape (n,)."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: Any) -> Floats:
        """Return the probabilities of the classes for reported features, shape (n, 2)."""
        one = expit(self.decision_function(X))
        return np.column_stack([1.0 - one, one])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row of reported features, shape (n,)."""
        positive = self.decision_function(X) > 0
        decision: NDArray[Any] = self.classes_[positive.astype(int)]
        return decision

    def performance_at_equilibrium(
        self, X: Any, y: ArrayLike, *, n_rounds: int = 100, noise: float = 0.0, random_state: Any = None
    ) -> EquilibriumPerformance:
        """Return accuracy and log loss when the applicants X (true features) game the score together.

        Parameters as in `aboveboard.collective.performance_at_equilibrium`; y holds labels of `classes_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        label = np.asarray(y)
        if not np.isin(label, self.classes_).all():
            raise InputError("y holds labels that the classifier does not know", expected=f"{self.classes_.tolist()}")
        return performance_at_equilibrium(
            self.coef_[0],
            float(self.intercept_[0]),
            X,
            (label == self.classes_[1]).astype(np.int64),
            game=self.game_,
            n_agents=self.n_agents,
            n_rounds=n_rounds,
            noise=noise,
            random_state=random_state,
        )

    def score_at_equilibrium(self, X: Any, y: ArrayLike, *, n_rounds: int = 100, random_state: Any = None) -> float:
        """Return the accuracy on what the applicants X report in equilibrium."""
        return self.performance_at_equilibrium(X, y, n_rounds=n_rounds, random_state=random_state).accuracy

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _loss(self, X: Floats, truth: Floats, rounds: Rounds, w: Floats, b: float) -> tuple[float, Floats, float]:
        """Return the objective, a mean over rounds, and its gradient by the weights and the intercept."""
        value, by_w, by_b = self.reg * float(w @ w), 2.0 * self.reg * w, 0.0
        count = sum(map(len, rounds.values()))
        for n, index in rounds.items():
            true, label = X[index], truth[index]
            reported = self.game_._reports(true, w)
            score = reported @ w + b
            share = 1.0 / (n * count)
            slope = share * log_loss_slope(score, label)
            _, through = self.game_._pulled_back(true, reported, w, slope[..., None] * w, for_X=False)
            value += share * float(log_loss(score, label).sum())
            by_w = by_w + np.einsum("gn,gnd->d", slope, reported) + through
            by_b += float(slope.sum())
        return value, by_w, by_b

    def _start(self, X: Floats, truth: Floats, rounds: Rounds) -> Floats:
        """Return the ordinary logistic regression, its intercept lowered by what applicants gain on average."""
        plain = LogisticRegression(C=1.0 / (2.0 * self.reg * len(X)), max_iter=1000).fit(X, truth)
        w, b = plain.coef_[0], float(plain.intercept_[0])
        gains = [((self.game_._reports(X[index], w) - X[index]) @ w).mean() for index in rounds.values()]
        return np.append(w, b - float(np.mean(gains)))

    def _labels(self, y: Any) -> Floats:
        check_classification_targets(y)
        self.classes_, code = np.unique(y, return_inverse=True)
        if len(self.classes_) == 1:
            raise InputError(f"y has one class, {self.classes_[0]!r}", expected="two classes")
        if len(self.classes_) != 2:
            raise InputError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
                f"{len(self.classes_)} classes",
                expected="two classes",
            )
        return code.astype(np.float64)

    def _refuse_bad_options(self) -> None:
        if self.game is not None and not isinstance(self.game, ManipulationGame):
            raise InputError(f"game is a {type(self.game).__name__}", expected="a ManipulationGame, or None")
        for name in ("reg", "tol"):
            value = getattr(self, name)
            if not (isinstance(value, int | float) and 0 < value < np.inf):
                raise InputError(f"{name} is {value!r}", expected="a finite number above 0")
        for name in ("n_shuffles", "max_iter"):
            value = getattr(self, name)
            if not (isinstance(value, int | np.integer) and value >= 1):
                raise InputError(f"{name} is {value!r}", expected="a whole number, 1 or more")
