"""What would readers approve who did not vote? A low-rank logistic model of sparse votes, with calibrated answers."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from aboveboard.collective.justified_comments._profile import check_k, check_selected, read_profile
from aboveboard.collective.justified_comments._properties import jr_report
from aboveboard.core.errors import InputError

__all__ = ["ApprovalImputer"]

Floats = NDArray[np.float64]
_FOLDS = 5
_BLOCK = 2**22
"""The most cells of readers x comments that are held at once."""


class ApprovalImputer(BaseEstimator):  # type: ignore[misc]
    """Predict who would approve which comment from the votes that were cast.

    Each reader and each comment gets a bias and `rank` numbers; the logit of approval is the sum of the biases and the
    product of the numbers. With `features`, the numbers of the comments are given (embeddings of their text), and each
    reader gets a ridge-penalised weight for each. Predictions are recalibrated on votes that were held out (5 folds).

    Parameters
    ----------
    rank : int, default 12
    penalty : float, default 1.0
        L2 penalty on all numbers and biases, above 0.
    max_iter : int, default 60
        Alternations between readers and comments.
    tol : float, default 1e-4
        Ends the alternations when the penalised loss falls by less, relatively.
    random_state : int, optional
        Of the start and the folds.

    Attributes
    ----------
    reader_factors_, comment_factors_ : ndarray of shape (n_readers, r) and (n_comments, r)
        Their products are the logits before calibration; the biases are among the columns.
    calibration_ : tuple of (slope, intercept)
    cv_log_loss_, baseline_log_loss_ : float
        Mean log-loss on held-out votes, and that of the overall share of approval. If the first is not clearly smaller,
        the votes say little about those that are missing.
    n_iter_ : int
    loss_path_ : list of float
        The penalised loss after each alternation; it never rises.

    Notes
    -----
    Each half of an alternation takes one step against a bound on the loss with a fixed curvature of 1/4, solved for all
    readers (comments) at once: the loss never rises, and no step size is needed. O(votes x rank^2 + (n + m) rank^3)
    per alternation.

    Approvals that were imputed make every later guarantee one about the model's guesses: `probability_of_jr` says how
    firmly it stands.

    References
    ----------
    D. Bohning, "Multinomial Logistic Regression Algorithm", Annals of the Institute of Statistical Mathematics 44,
    1992, for the bound.

    Examples
    --------
    >>> import numpy as np
    >>> from aboveboard.collective import ApprovalImputer
    >>> side = np.arange(40) % 2
    >>> votes = np.where(side[:, None] == np.arange(12)[None, :] % 2, 1, -1)
    >>> votes[np.random.default_rng(0).random(votes.shape) < 0.5] = 0  # half are not seen
    >>> imputer = ApprovalImputer(rank=2, random_state=0).fit(votes)
    >>> bool((imputer.predict_proba()[0, 0::2] > 0.5).all())
    True
    """

    # none of these has a row per row of the votes: nothing that a pipeline could route
    __metadata_request__fit = {"votes": UNUSED, "features": UNUSED}  # noqa: RUF012 - scikit-learn reads the class
    __metadata_request__predict_proba = {"readers": UNUSED}  # noqa: RUF012

    def __init__(
        self,
        rank: int = 12,
        *,
        penalty: float = 1.0,
        max_iter: int = 60,
        tol: float = 1e-4,
        random_state: int | None = None,
    ) -> None:
        self.rank = rank
        self.penalty = penalty
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, votes: Any, features: ArrayLike | None = None) -> Self:
        """Learn from votes.

        Parameters
        ----------
        votes : array or sparse matrix of shape (n_readers, n_comments)
            +1 agree, -1 disagree, 0 (or not stored) not seen.
        features : array-like of shape (n_comments, d), optional
            What is known of each comment, such as an embedding of its text; `rank` then has no effect.

        Raises
        ------
        aboveboard.core.InputError
            For votes other than +1, -1 and 0, fewer than five of either kind, features of another shape or not finite,
            and parameters out of range.
        """
        self._refuse_options()
        matrix = _votes(votes)
        n, m = matrix.shape
        seen = matrix.tocoo()
        rows, columns, agree = seen.row, seen.col, seen.data > 0
        given = None if features is None else _features(features, m)
        rng = np.random.default_rng(self.random_state)
        start = rng.normal(size=(m, self.rank)) / np.sqrt(self.rank)
        fold = rng.permutation(np.arange(len(agree)) % _FOLDS)
        held_out = np.empty(len(agree))
        for k in range(_FOLDS):
            kept, out = fold != k, fold == k
            left, right, _ = self._alternate(rows[kept], columns[kept], agree[kept], (n, m), start, given)
            held_out[out] = _logits(left, right, rows[out], columns[out])
        left, right, losses = self._alternate(rows, columns, agree, (n, m), start, given)
        platt = LogisticRegression(C=1e6).fit(held_out[:, None], agree)
        slope, intercept = max(float(platt.coef_[0, 0]), 0.0), float(platt.intercept_[0])
        self.reader_factors_, self.comment_factors_ = left, right
        self.calibration_ = (slope, intercept)
        self.cv_log_loss_ = _log_loss(slope * held_out + intercept, agree)
        share = float(agree.mean())
        self.baseline_log_loss_ = _log_loss(np.full(len(agree), np.log(share / (1.0 - share))), agree)
        self.loss_path_, self.n_iter_ = losses, len(losses)
        self._seen = matrix
        return self

    def predict_proba(self, readers: ArrayLike | None = None) -> Floats:
        """Return the probability that each reader approves each comment, dense: (n_readers, n_comments).

        Parameters
        ----------
        readers : array-like of int, optional
            Positions of the readers; all by default. For a million readers take some thousands at a time.
        """
        check_is_fitted(self, "calibration_")
        chosen = slice(None) if readers is None else np.asarray(readers, dtype=np.intp)
        slope, intercept = self.calibration_
        return np.asarray(expit(slope * (self.reader_factors_[chosen] @ self.comment_factors_.T) + intercept))

    def approvals(self, threshold: float = 0.5) -> sparse.csr_array:
        """Return approvals: the votes where they were cast, else whether the probability reaches `threshold`."""
        return self._filled(lambda p: p >= threshold)

    def sample(self, random_state: int | None = None) -> sparse.csr_array:
        """Return approvals: the votes where they were cast, else drawn with the probabilities."""
        rng = np.random.default_rng(random_state)
        return self._filled(lambda p: rng.random(p.shape) < p)

    def probability_of_jr(
        self,
        selected: ArrayLike,
        k: int,
        *,
        weights: ArrayLike | None = None,
        n_draws: int = 100,
        random_state: int | None = None,
    ) -> float:
        """Return in which share of `n_draws` draws of the missing approvals a selection is representative."""
        check_is_fitted(self, "calibration_")
        m = len(self.comment_factors_)
        k = check_k(k, m)
        chosen = check_selected(selected, k, m)
        if isinstance(n_draws, bool) or not isinstance(n_draws, int | np.integer) or n_draws < 1:
            raise InputError(f"n_draws is {n_draws!r}", expected="a whole number from 1 on")
        seeds = np.random.default_rng(random_state).integers(2**63, size=int(n_draws))
        held = [jr_report(read_profile(self.sample(int(s)), weights), chosen, k).satisfied for s in seeds]
        return float(np.mean(held))

    # --- helpers ------------------------------------------------------------------------------------------------------

    def _filled(self, decide: Any) -> sparse.csr_array:
        check_is_fitted(self, "calibration_")
        n, m = self._seen.shape
        step = max(1, _BLOCK // m)
        blocks = []
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            guess = decide(self.predict_proba(rows))
            cast = self._seen[rows].toarray()
            blocks.append(sparse.csr_array(np.where(cast == 0, guess, cast > 0)))
        return sparse.csr_array(sparse.vstack(blocks, format="csr"))

    def _alternate(
        self,
        rows: NDArray[Any],
        columns: NDArray[Any],
        agree: NDArray[np.bool_],
        shape: tuple[int, int],
        start: Floats,
        features: Floats | None,
    ) -> tuple[Floats, Floats, list[float]]:
        """Return factors of readers and comments, columns (numbers, own bias, 1) and (numbers, 1, own bias)."""
        n, m = shape
        numbers = start if features is None else features
        r = numbers.shape[1]
        left = np.c_[np.zeros((n, r + 1)), np.ones(n)]
        right = np.c_[numbers, np.ones(m), np.zeros(m)]
        own_left, own_right = np.arange(r + 1), np.r_[np.arange(r), r + 1]
        if features is not None:
            own_right = np.array([r + 1])
        losses: list[float] = []
        for _ in range(self.max_iter):
            _step(left, right, own_left, rows, columns, agree, self.penalty)
            _step(right, left, own_right, columns, rows, agree, self.penalty)
            squares = (left[:, own_left] ** 2).sum() + (right[:, own_right] ** 2).sum()
            loss = _log_loss(_logits(left, right, rows, columns), agree) * len(agree)
            losses.append(float(loss + self.penalty / 2 * squares))
            if len(losses) > 1 and losses[-2] - losses[-1] < self.tol * abs(losses[-2]):
                break
        return left, right, losses

    def _refuse_options(self) -> None:
        for name, least in (("rank", 1), ("max_iter", 1)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < least:
                raise InputError(f"{name} is {number!r}", expected=f"a whole number from {least} on")
        for name in ("penalty", "tol"):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float | np.number) or not 0 < number < np.inf:
                raise InputError(f"{name} is {number!r}", expected="a number above 0")


def _step(
    target: Floats,
    other: Floats,
    own: NDArray[np.intp],
    at: NDArray[Any],
    against: NDArray[Any],
    agree: NDArray[np.bool_],
    penalty: float,
) -> None:
    """Lower the loss in the columns `own` of `target`, in place, with `other` held fixed."""
    free = other[:, own]
    size, r = len(target), len(own)
    slack = agree - expit(_logits(target, other, at, against))
    cells = sparse.csr_array((slack, (at, against)), shape=(size, len(other)))
    gradient = cells @ free - penalty * target[:, own]
    counts = sparse.csr_array((np.full(len(at), 0.25), (at, against)), shape=(size, len(other)))
    products = (free[:, :, None] * free[:, None, :]).reshape(len(other), r * r)
    step = max(1, _BLOCK // (r * r))
    for begin in range(0, size, step):
        part = slice(begin, begin + step)
        curvature = (counts[part] @ products).reshape(-1, r, r) + penalty * np.eye(r)
        target[part, own] += np.linalg.solve(curvature, gradient[part][:, :, None])[:, :, 0]


def _logits(left: Floats, right: Floats, rows: NDArray[Any], columns: NDArray[Any]) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", left[rows], right[columns]))


def _log_loss(logits: Floats, agree: NDArray[np.bool_]) -> float:
    return float(np.logaddexp(0.0, np.where(agree, -logits, logits)).mean())


def _votes(votes: Any) -> sparse.csr_array:
    given = votes if sparse.issparse(votes) else np.asarray(votes.to_numpy() if hasattr(votes, "to_numpy") else votes)
    if len(given.shape) != 2 or 0 in given.shape:
        raise InputError(f"the votes have shape {given.shape}", expected="readers x comments, one of each at least")
    if given.dtype.kind not in "iuf":
        raise InputError(f"the votes have type {given.dtype}", expected="+1 agree, -1 disagree, 0 not seen")
    matrix = sparse.csr_array(given, dtype=np.float64, copy=True)
    before = matrix.nnz
    matrix.sum_duplicates()
    if matrix.nnz < before:
        raise InputError("the sparse votes hold a cell twice", expected="each cell once at most")
    matrix.eliminate_zeros()
    wrong = ~np.isin(matrix.data, (-1.0, 1.0))
    if wrong.any():
        raise InputError(
            f"the votes hold {matrix.data[wrong][0]:g}",
            expected="+1 agree, -1 disagree, 0 not seen",
            remedy="A missing vote is 0, or not stored",
        )
    agree = int((matrix.data > 0).sum())
    if min(agree, matrix.nnz - agree) < _FOLDS:
        raise InputError(
            f"{agree:,} votes agree and {matrix.nnz - agree:,} disagree",
            expected=f"{_FOLDS} of either kind at least: nothing can be learned from fewer",
        )
    return matrix


def _features(features: ArrayLike, m: int) -> Floats:
    try:
        given = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("the features are not all numbers", expected="one row of numbers per comment") from error
    if given.ndim != 2 or given.shape[0] != m or not given.shape[1]:
        raise InputError(f"the features have shape {given.shape}", expected=f"one row per comment: ({m}, d)")
    if not np.isfinite(given).all():
        raise InputError("the features are not all finite", expected="finite numbers")
    return given
