"""GEFA: attributions of a model that can only be asked, for tables, texts and images."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from joblib import Parallel, delayed

from aboveboard.core.errors import InputError, ModelError
from aboveboard.explanation.gefa._attribution import Attribution, Attributions
from aboveboard.explanation.gefa._coalitions import Bools, Floats
from aboveboard.explanation.gefa._estimates import Control
from aboveboard.explanation.gefa._games import Weights, make_plan, refuse_options
from aboveboard.explanation.gefa._maskers import Bound, Ints, Masker

__all__ = ["GEFA"]

_BATCH: Final = 8192
_BATCH_CELLS: Final = 1 << 22


class GEFA:
    """Attribute a model's answers to columns, words or pixels, from its answers alone.

    For whoever has to say which features drove a decision, and how sure that is. The model is asked about inputs of
    which some features are replaced by a baseline; the estimates are unbiased for Shapley values, sum exactly to the
    answer less the baseline's, and come with standard errors.

    Parameters
    ----------
    predict : callable
        Takes inputs as the masker makes them (a data frame, an array, a list of texts), and returns one number for
        each, or one for each class: ``model.predict_proba``.
    masker : TabularMasker, TokenMasker or ImageMasker
        What it means that a feature is absent.
    target : int, optional
        Which column of the answer is explained. Default: the class that is most likely for the input as it is.
    n_queries : int, default=500
        Coalitions asked about for each input, besides none and all: even, 8 or more. A masker with b background rows
        asks about each b times. With few features all coalitions are asked about, and values are exact.
    weights : {"marginal", "score", "published"}
        Estimators: ours, which is efficient; with the score function's weights; or what the paper's code computes, see
        `shapley_from_game` and `published_gefa`. The last is biased and has its own control and pairs.
    control : {"linear", "size", None}
    antithetic : bool, default=True
        As for `shapley_from_game`.
    batch_size : int, optional
        The most inputs that are handed to `predict` at once. Default: 8,192, fewer where they are large.
    random_state : int, optional
        Of the coalitions; they are the same for all inputs.

    Raises
    ------
    InputError
        For unknown options; when an input does not fit the masker; for fewer than two features.
    ModelError
        When the model gives answers of another shape, or that are not finite.

    Warns
    -----
    UserWarning
        When the model gives two answers for one input: standard errors then include that noise, and the values sum to
        the answer that was given first.

    Notes
    -----
    O(n_queries) inputs of the model for each explained one, and little besides; see the recorded evidence.

    A feature that matters to the model need not matter in the world: these are Shapley values of the model under
    replacement by the baseline, on which they depend.

    References
    ----------
    Y. Cai, T. Ardoin, G. Wunder, "GEFA", ICML 2025.

    Examples
    --------
    >>> from aboveboard.data import load_adult
    >>> from aboveboard.explanation import GEFA, TabularMasker
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> adult = load_adult(split="train")
    >>> X, y = adult.X.select_dtypes("number"), adult.y_binary
    >>> model = HistGradientBoostingClassifier(random_state=0).fit(X[:8000], y[:8000])
    >>> explainer = GEFA(model.predict_proba, TabularMasker(X[:20]), target=1)
    >>> attribution = explainer.explain(X[8000:8001])
    >>> attribution.method
    'exact enumeration'
    >>> abs(attribution.residual) < 1e-12
    True
    """

    def __init__(
        self,
        predict: Callable[[Any], Any],
        masker: Masker,
        *,
        target: int | None = None,
        n_queries: int = 500,
        weights: Weights = "marginal",
        control: Control = "linear",
        antithetic: bool = True,
        batch_size: int | None = None,
        random_state: int | None = None,
    ) -> None:
        refuse_options(n_queries, weights, control)
        if not callable(predict):
            raise InputError(
                f"predict is a {type(predict).__name__}", expected="a function, such as model.predict_proba"
            )
        if target is not None and (isinstance(target, bool) or not hasattr(target, "__index__") or target < 0):
            raise InputError(f"target is {target!r}", expected="the position of a class, 0 or more")
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size is {batch_size!r}", expected="1 or more")
        self.predict = predict
        self.masker = masker
        self.target = target
        self.n_queries = n_queries
        self.weights = weights
        self.control = control
        self.antithetic = antithetic
        self.batch_size = batch_size
        self.random_state = random_state

    def explain(self, x: Any) -> Attribution:
        """Attribute the answer for one input.

        Parameters
        ----------
        x : data frame of one row, Series, dict, array, text or image
            As the masker takes it.

        Returns
        -------
        Attribution
        """
        return self._explained(self.masker.bind_one(x), None)[0]

    def explain_many(self, X: Any, *, n_jobs: int | None = None) -> Attributions:
        """Attribute the answers for many inputs, with the same coalitions for all.

        Parameters
        ----------
        X : data frame, array of rows or of images, list of texts
            Texts must have equally many tokens.
        n_jobs : int, optional
            Threads in which the model is asked.

        Returns
        -------
        Attributions
        """
        return self._explained(self.masker.bind(X), n_jobs)

    def _explained(self, bound: Bound, n_jobs: int | None) -> Attributions:
        if not len(bound):
            raise InputError("there are no inputs", expected="one or more")
        rng = np.random.default_rng(self.random_state)
        options = (self.n_queries, self.weights, self.control, self.antithetic)
        plan = make_plan(len(bound.names), *options, rng, bound.noise)
        full, targets, deterministic = self._as_it_is(bound)
        answers = np.empty((len(plan.asked), len(bound)))
        answers[-1] = full
        answers[:-1] = self._masked_answers(bound, plan.asked[:-1], targets, n_jobs)
        found = plan.estimates(answers)
        return Attributions(
            values=found.values,
            stderr=found.stderr,
            base_value=answers[0],
            full_value=answers[-1],
            feature_names=bound.names,
            feature_values=[bound.values(row) for row in range(len(bound))],
            targets=targets,
            baselines=[bound.baseline(row) for row in range(len(bound))],
            n_queries=len(plan.asked),
            dof=plan.dof,
            method=plan.method,
            unbiased=plan.unbiased,
            deterministic=deterministic,
        )

    def _as_it_is(self, bound: Bound) -> tuple[Floats, list[int | None], bool]:
        """Return the answers to be explained, the class that each is about, and whether they came twice the same."""
        said = self._ask(bound.whole(), len(bound))
        again = self._ask(bound.whole(), len(bound))
        deterministic = bool(np.array_equal(said, again))
        if not deterministic:
            warnings.warn(
                "The model gave two answers for one input: it is not deterministic, and the attributions explain an "
                "average of it.",
                UserWarning,
                stacklevel=4,
            )
        if said.ndim == 1:
            if self.target is not None:
                raise InputError(f"target is {self.target} and the model gives one number", expected="no target")
            return said, [None] * len(said), deterministic
        if self.target is not None and self.target >= said.shape[1]:
            raise InputError(f"target is {self.target} and there are {said.shape[1]} classes", expected="one of them")
        chosen = said.argmax(axis=1) if self.target is None else np.full(len(said), self.target)
        return said[np.arange(len(said)), chosen], [int(k) for k in chosen], deterministic

    def _masked_answers(self, bound: Bound, asked: Bools, targets: list[int | None], n_jobs: int | None) -> Floats:
        """Return what the model says of every coalition of every input, shape (coalitions, inputs)."""
        columns = None if targets[0] is None else np.array(targets, dtype=np.intp)

        def answered(flat: Ints) -> Floats:
            who, which = np.divmod(flat, len(asked))
            said = self._ask(bound.masked(who, asked[which]), len(flat) * bound.repeats)
            if columns is not None:
                said = said[np.arange(len(said)), np.repeat(columns[who], bound.repeats)]
            return np.asarray(said.reshape(-1, bound.repeats).mean(axis=1))

        parts = self._batches(bound, len(bound) * len(asked))
        if n_jobs in (None, 1):
            found = [answered(flat) for flat in parts]
        else:
            found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(answered)(flat) for flat in parts)
        return np.concatenate(found).reshape(len(bound), len(asked)).T

    def _batches(self, bound: Bound, total: int) -> Iterator[Ints]:
        rows = self.batch_size or max(1, min(_BATCH, _BATCH_CELLS // bound.cells))
        step = max(1, rows // bound.repeats)
        return (np.arange(start, min(start + step, total)) for start in range(0, total, step))

    def _ask(self, inputs: Any, rows: int) -> Floats:
        """Return the model's answers, one number or one row of numbers for each input."""
        said = np.asarray(self.predict(inputs), dtype=np.float64)
        if said.shape == (rows, 1):
            said = said[:, 0]
        if said.ndim not in (1, 2) or len(said) != rows:
            raise ModelError(f"the model gave an answer of shape {said.shape} for {rows} inputs")
        if not np.isfinite(said).all():
            raise ModelError(f"the model gave {int((~np.isfinite(said)).sum()):,} answers that are not finite")
        return said
