"""How to ask the members of an ensemble one by one: scikit-learn's, a list of anything, or PyTorch modules."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError
from aboveboard.core.extras import require

__all__ = ["Ask", "Members", "members_of"]

Floats = NDArray[np.float64]

_NO_POSTERIOR: Final = (
    "its members correct each other one after the other: they are no draws of one model, and how far they lie apart "
    "says nothing of what is not known"
)
_REFUSED: Final[dict[str, str]] = {
    "AdaBoostClassifier": _NO_POSTERIOR,
    "GradientBoostingClassifier": _NO_POSTERIOR,
    "HistGradientBoostingClassifier": _NO_POSTERIOR,
    "XGBClassifier": _NO_POSTERIOR,
    "LGBMClassifier": _NO_POSTERIOR,
    "CatBoostClassifier": _NO_POSTERIOR,
    "StackingClassifier": "its members are features of another model, and not answers of their own",
}

Ask = Callable[[Any], Floats]
"""Takes rows, and returns what each member says of them: (M, n, K)."""


class Members(NamedTuple):
    """How to ask the members, and the labels of their classes; None where they are 0, 1, 2 and so on."""

    ask: Ask
    classes: NDArray[Any] | None


def members_of(
    estimator: Any, *, n_draws: int, temperature: float, batch_size: int, device: Any, random_state: Any
) -> Members:
    """Return how to ask the members of an ensemble.

    Raises
    ------
    InputError
        When it has none that are draws of one model, or is not fitted.
    """
    options = {"temperature": temperature, "batch_size": batch_size, "device": device}
    if _is_module(estimator):
        return _dropout(estimator, n_draws, random_state, options)
    if isinstance(estimator, list | tuple):
        return _of_list(estimator, options)
    if temperature != 1.0:
        raise InputError(f"temperature is {temperature!r}", expected="1 for anything but PyTorch modules")
    return _of_ensemble(estimator)


# --- scikit-learn -----------------------------------------------------------------------------------------------------


def _of_ensemble(estimator: Any) -> Members:
    if hasattr(estimator, "best_estimator_"):
        return _of_ensemble(estimator.best_estimator_)
    if type(estimator).__name__ == "FrozenEstimator":
        return _of_ensemble(estimator.estimator)
    if hasattr(estimator, "steps"):
        before, last = estimator[:-1], _of_ensemble(estimator.steps[-1][1])
        return last._replace(ask=lambda X: last.ask(before.transform(X))) if len(before) else last
    kinds = {kind.__name__ for kind in type(estimator).__mro__}
    for kind, ask in _KINDS.items():
        if kind in kinds:
            _refuse_unfitted(estimator)
            return Members(ask(estimator), np.asarray(estimator.classes_))
    why = next((reason for kind, reason in _REFUSED.items() if kind in kinds), "it shows no members")
    raise InputError(
        f"{type(estimator).__name__} is no ensemble that can be asked member by member: {why}",
        expected="a fitted forest, BaggingClassifier, VotingClassifier or CalibratedClassifierCV, a list of fitted "
        "classifiers, a list of PyTorch modules, or one with dropout",
        remedy="Put it into BaggingClassifier, or fit it several times with other seeds and rows, and give the list",
    )


def _forest(forest: Any) -> Ask:
    if getattr(forest, "n_outputs_", 1) != 1:
        raise InputError(f"the forest has {forest.n_outputs_} outputs", expected="one")
    from sklearn.utils.validation import validate_data

    def ask(X: Any) -> Floats:
        rows = validate_data(forest, X, reset=False, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False)
        return np.stack([tree.predict_proba(rows) for tree in forest.estimators_])

    return ask


def _bagging(bag: Any) -> Ask:
    from sklearn.utils.validation import validate_data

    def ask(X: Any) -> Floats:
        rows = validate_data(bag, X, reset=False, dtype=None, accept_sparse=["csr", "csc"], ensure_all_finite=False)
        codes = range(len(bag.classes_))
        return np.stack(
            [
                _answers(member, rows[:, features], codes)
                for member, features in zip(bag.estimators_, bag.estimators_features_, strict=True)
            ]
        )

    return ask


def _voting(vote: Any) -> Ask:
    if vote.weights is not None and len({float(weight) for weight in vote.weights}) > 1:
        raise InputError("the votes have different weights", expected="equal ones", remedy="Give the list of members")
    return lambda X: np.stack([_answers(member, X, range(len(vote.classes_))) for member in vote.estimators_])


def _calibrated(model: Any) -> Ask:
    members = model.calibrated_classifiers_
    if len(members) < 2:
        raise InputError("CalibratedClassifierCV holds one classifier", expected="ensemble=True and two folds or more")
    return lambda X: np.stack([np.asarray(member.predict_proba(X), dtype=np.float64) for member in members])


_KINDS: Final[dict[str, Callable[[Any], Ask]]] = {
    "ForestClassifier": _forest,
    "BaggingClassifier": _bagging,
    "VotingClassifier": _voting,
    "CalibratedClassifierCV": _calibrated,
}


def _refuse_unfitted(estimator: Any) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise InputError(f"{type(estimator).__name__} is not fitted", expected="a fitted ensemble") from error


def _of_list(estimators: Sequence[Any], options: dict[str, Any]) -> Members:
    if len(estimators) < 2:
        raise InputError(f"the list has {len(estimators)} members", expected="two or more")
    if all(map(_is_module, estimators)):
        return Members(lambda X: np.stack([_said(module, X, **options) for module in estimators]), None)
    if options["temperature"] != 1.0:
        raise InputError(f"temperature is {options['temperature']!r}", expected="1 for anything but PyTorch modules")
    for member in estimators:
        if not (hasattr(member, "classes_") and hasattr(member, "predict")):
            raise InputError(
                f"a member is {type(member).__name__}, which has no classes_ or no predict",
                expected="fitted classifiers, or PyTorch modules, and not both",
            )
    classes = np.unique(np.concatenate([np.asarray(member.classes_) for member in estimators]))
    return Members(lambda X: np.stack([_answers(member, X, classes) for member in estimators]), classes)


def _answers(member: Any, X: Any, classes: Sequence[Any] | NDArray[Any]) -> Floats:
    """Return a member's probabilities in the order of `classes`; its votes, where it gives none."""
    place = np.searchsorted(np.asarray(classes), np.asarray(member.classes_))
    if hasattr(member, "predict_proba"):
        said = np.asarray(member.predict_proba(X), dtype=np.float64)
        out = np.zeros((len(said), len(classes)))
        out[:, place] = said
        return out
    chosen = np.searchsorted(np.asarray(classes), np.asarray(member.predict(X)))
    return np.eye(len(classes))[chosen]


# --- PyTorch ----------------------------------------------------------------------------------------------------------


def _is_module(candidate: Any) -> bool:
    torch = sys.modules.get("torch")  # without it nobody can have made a module
    return torch is not None and isinstance(candidate, torch.nn.Module)


def _dropout(module: Any, n_draws: int, random_state: Any, options: dict[str, Any]) -> Members:
    torch = require("torch", extra="torch", feature="RiskDecomposition of modules")
    layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.modules.dropout._DropoutNd)]
    if not any(layer.p > 0 for layer in layers):
        raise InputError("the module has no dropout", expected="a module with dropout, or a list of two or more")

    def ask(X: Any) -> Floats:
        seed = int(np.random.default_rng(random_state).integers(2**62))
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return np.stack([_said(module, X, dropping=layers, **options) for _ in range(n_draws)])

    return Members(ask, None)


def _said(
    module: Any, X: Any, *, temperature: float, batch_size: int, device: Any, dropping: Sequence[Any] = ()
) -> Floats:
    """Return the softmax of what a module says, in evaluation mode but for the layers that go on dropping."""
    torch = require("torch", extra="torch", feature="RiskDecomposition of modules")
    rows = X if isinstance(X, torch.Tensor) else torch.as_tensor(np.asarray(X, dtype=np.float32))
    with _evaluating(module, dropping), torch.inference_mode():
        logits = torch.cat([module(batch.to(device)).double().cpu() for batch in rows.split(batch_size)])
    if logits.ndim == 2 and logits.shape[1] == 1:
        logits = torch.cat([torch.zeros_like(logits), logits], dim=1)
    if logits.ndim != 2:
        raise InputError(f"a module gave shape {tuple(logits.shape)}", expected="logits of shape (rows, classes)")
    return np.asarray(torch.softmax(logits / temperature, dim=1).numpy())


@contextmanager
def _evaluating(module: Any, dropping: Sequence[Any]) -> Iterator[None]:
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    for layer in dropping:
        layer.train()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training
