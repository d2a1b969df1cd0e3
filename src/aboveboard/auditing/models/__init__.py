"""Models that are no Python objects yet: in a file, a function named on the command line, or behind an address."""

import importlib
import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from aboveboard.core.errors import InputError

if TYPE_CHECKING:
    from aboveboard.auditing.models.hosted import HostedModel

__all__ = ["DEFAULT_MEMORY", "DEFAULT_TIMEOUT", "ENDPOINT_FORMATS", "is_address", "is_function", "open_model"]

DEFAULT_TIMEOUT: Final = 300.0
"""Seconds that reading a model, or one question about up to 100,000 rows, may take."""

DEFAULT_MEMORY: Final = 4.0
"""GiB that a model's process may hold."""

ENDPOINT_FORMATS: Final = ("rows", "mlflow", "kserve")
"""How rows are sent to an endpoint."""

_FUNCTION: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def is_address(source: str) -> bool:
    """Return whether `source` is the address of an endpoint."""
    return source.lower().startswith(("http://", "https://"))


def is_function(source: str) -> bool:
    """Return whether `source` is written as ``module:function``."""
    return _FUNCTION.fullmatch(source) is not None


def open_model(
    source: str | os.PathLike[str],
    *,
    trust: Literal["known"] | None = None,
    trust_types: Sequence[str] = (),
    trust_pickle: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    memory: float = DEFAULT_MEMORY,
    classes: Sequence[Any] = (),
    **endpoint: Any,
) -> "HostedModel":
    """Open a model that is no Python object yet, for `aboveboard.audit`.

    A model from a file, and a function, run in a process of their own: what crashes, hangs or eats memory there does
    not end the audit. That is no protection from a file made to do harm.

    Parameters
    ----------
    source : str or path
        A file (``.skops``, ``.onnx``, what XGBoost saves as ``.json`` or ``.ubj``, what LightGBM saves as ``.txt``;
        ``.pkl`` and ``.joblib`` only with `trust_pickle`), a function as ``"module:function"`` that takes a data frame
        and returns probabilities (numbers for regression), or the address of an endpoint.
    trust : {"known"}, optional
        Trust the types in a skops file that are on the reviewed list, auditing/trusted_types.toml.
    trust_types : list of str
        Trust these types in a skops file.
    trust_pickle : bool
        Unpickle a file, which runs whatever code it names.
    timeout : float
        Seconds that reading the model, or one question about up to 100,000 rows, may take.
    memory : float
        GiB that the model's process, and what it starts, may hold at once.
    classes : sequence
        Labels for the codes 0, 1 and so on of a model that has none of its own: boosted trees, some ONNX graphs.
    **endpoint
        For an address: as ``aboveboard.auditing.models.endpoint.Endpoint`` takes them.

    Returns
    -------
    a model
        With ``predict``, ``predict_proba``, ``classes_``, ``feature_names_in_`` and ``n_features_in_``, as far as they
        are known, and ``source_``. It is a context manager, which ends the process.

    Raises
    ------
    InputError
        When there is no such model, it is of no known format, or it holds what is not trusted.
    ModelError
        When it crashes, hangs or takes too much memory while it is read.
    MissingExtra
        When its format needs a package that is not installed.

    Examples
    --------
    >>> import aboveboard, skops.io
    >>> from sklearn.linear_model import LogisticRegression
    >>> from aboveboard.data import load_german_credit
    >>> credit = load_german_credit()
    >>> X = credit.X.select_dtypes("number")
    >>> skops.io.dump(LogisticRegression(max_iter=1000).fit(X, credit.y), "model.skops")  # doctest: +SKIP
    >>> with aboveboard.open_model("model.skops") as model:  # doctest: +SKIP
    ...     report = aboveboard.audit(model, X, credit.y)
    """
    text = os.fspath(source)
    if is_address(text):
        found: Any = importlib.import_module("aboveboard.auditing.models.endpoint").Endpoint
        return found(text, timeout=timeout, classes=classes, **endpoint)
    if endpoint:
        raise TypeError(f"{', '.join(endpoint)}: only for a model behind an address")
    if not timeout > 0 or timeout == float("inf"):
        raise InputError(f"the time limit is {timeout!r}", expected="a number of seconds above 0")
    if not memory > 0 or memory == float("inf"):
        raise InputError(f"the memory limit is {memory!r}", expected="a number of GiB above 0")
    from aboveboard.auditing.models.formats import order_for
    from aboveboard.auditing.models.hosted import HostedModel

    order = order_for(text, trust=trust, trust_types=trust_types, trust_pickle=trust_pickle)
    return HostedModel(order, timeout=float(timeout), memory=int(memory * 2**30), classes=classes)
