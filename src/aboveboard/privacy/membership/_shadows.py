"""Shadow models: copies of the audited one, fitted to random halves of the rows."""

from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.privacy.membership._scores import (
    Attack,
    Floats,
    confidence,
    likelihood_ratios,
    logit_confidence,
    smallest_step,
)

__all__ = ["likelihood_ratio_attack"]

_SEED_LIMIT: Final = 2**31 - 1
Bools = NDArray[np.bool_]


def likelihood_ratio_attack(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_shadows: int = 64,
    variance: Literal["auto", "row", "pooled"] = "auto",
    random_state: int = 0,
    n_jobs: int | None = None,
) -> list[Attack]:
    """Attack a classifier with shadow models: how would it answer a row if it had, or had not, been trained on it?

    Parameters
    ----------
    model : fitted classifier
        With ``predict_proba``, ``classes_`` and the parameters of scikit-learn, so that it can be copied and fitted.
    X : data frame or array of shape (n, d)
        Members and others together, as the model takes them. Best about twice as many as the model was trained on, so
        that half of them make shadow models of its size.
    y : array-like of shape (n,)
        Labels, as the model knows them.
    n_shadows : int, even, 4 or more, default=64
        Half of them are trained on a row, and half are not.
    variance : {"auto", "row", "pooled"}
        As for `likelihood_ratios`.
    random_state : int
        Of the halves, and of every copy that has a random state.
    n_jobs : int, optional
        Threads in which copies are fitted.

    Returns
    -------
    list of Attack
        ``"likelihood ratio, online"`` and ``"likelihood ratio, offline"``, see `likelihood_ratios`.

    Raises
    ------
    InputError
        For a model that cannot be copied or gives no probabilities, labels that it does not know, a class with a single
        row, or an odd number of shadow models.

    Notes
    -----
    Fits `n_shadows` copies to n / 2 rows each, and asks each about all n. Memory: 16 bytes per row and shadow model.
    Halves are drawn within each class and come in pairs, a half and the rest. Probabilities of zero are raised by half
    of the smallest that any of the models gives.

    References
    ----------
    N. Carlini et al., "Membership Inference Attacks From First Principles", IEEE S&P 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from aboveboard.privacy import attack_rates, likelihood_ratio_attack
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(800, 5)), rng.integers(0, 2, 800)  # nothing to learn but by heart
    >>> model = DecisionTreeClassifier(min_samples_leaf=3, random_state=0).fit(X[:400], y[:400])
    >>> attacks = likelihood_ratio_attack(model, X, y, n_shadows=16)
    >>> best = attack_rates(attacks, np.arange(800) < 400)[0]
    >>> bool(best.interval.low > 0.2)
    True
    """
    _refuse(model, n_shadows)
    codes = _codes(model, y)
    rng = np.random.default_rng(random_state)
    inside = _halves(codes, n_shadows, rng)
    seeds = rng.integers(_SEED_LIMIT, size=n_shadows)
    labels = np.asarray(model.classes_)[codes]

    from joblib import Parallel, delayed

    answers = Parallel(n_jobs=n_jobs, prefer="threads")(
        delayed(_shadow_confidence)(model, X, labels, codes, inside[k], int(seeds[k])) for k in range(n_shadows)
    )
    own = _confidence(model, model.classes_, X, codes)
    right = np.stack([own[0], *(answer[0] for answer in answers)])
    others = np.stack([own[1], *(answer[1] for answer in answers)])
    logits = logit_confidence(right, others, smallest_step(right, others))
    return likelihood_ratios(logits[0], logits[1:], inside, variance=variance)


def _refuse(model: Any, n_shadows: int) -> None:
    if not all(hasattr(model, name) for name in ("fit", "get_params", "predict_proba", "classes_")):
        raise InputError(
            f"a {type(model).__name__} cannot be copied and fitted again, or gives no probabilities",
            expected="a fitted classifier in the manner of scikit-learn",
            remedy="Train shadow models yourself and give their confidence to likelihood_ratios, or use score_attack",
        )
    whole = isinstance(n_shadows, int | np.integer) and not isinstance(n_shadows, bool)
    if not whole or n_shadows < 4 or n_shadows % 2:
        raise InputError(f"there are {n_shadows!r} shadow models", expected="an even number, 4 or more")


def _codes(model: Any, y: Any) -> NDArray[np.intp]:
    position = {_plain(label): code for code, label in enumerate(model.classes_)}
    codes = np.array([position.get(_plain(label), -1) for label in np.asarray(y).tolist()], dtype=np.intp)
    if (codes < 0).any():
        raise InputError("some labels are no classes of the model", expected=", ".join(map(repr, position)))
    if (np.bincount(codes)[np.unique(codes)] < 2).any():
        raise InputError("a class has a single row", expected="two or more, one for each half")
    return codes


def _plain(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label


def _halves(codes: NDArray[np.intp], n_shadows: int, rng: np.random.Generator) -> Bools:
    """Return which rows each shadow model is fitted to: half of each class, and for the next one the other half."""
    inside = np.zeros((n_shadows, len(codes)), dtype=bool)
    for first in range(0, n_shadows, 2):
        order = rng.permutation(len(codes))
        order = order[np.argsort(codes[order], kind="stable")]
        inside[first, order[::2]] = True
        inside[first + 1] = ~inside[first]
    return inside


def _shadow_confidence(
    model: Any, X: Any, labels: NDArray[Any], codes: NDArray[np.intp], inside: Bools, seed: int
) -> tuple[Floats, Floats]:
    from sklearn.base import clone

    shadow = clone(model)
    seeded = {name: seed for name in shadow.get_params() if name == "random_state" or name.endswith("__random_state")}
    shadow.set_params(**seeded)
    rows = np.flatnonzero(inside)
    shadow.fit(X.iloc[rows] if hasattr(X, "iloc") else np.asarray(X)[rows], labels[rows])
    return _confidence(shadow, model.classes_, X, codes)


def _confidence(model: Any, classes: Any, X: Any, codes: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return what `confidence` does; a class that the model never saw has probability 0."""
    said = np.asarray(model.predict_proba(X), dtype=np.float64)
    place = {_plain(label): code for code, label in enumerate(classes)}
    probabilities = np.zeros((len(said), len(classes)))
    probabilities[:, [place[_plain(label)] for label in model.classes_]] = np.clip(said, 0.0, 1.0)
    return confidence(probabilities, codes)
