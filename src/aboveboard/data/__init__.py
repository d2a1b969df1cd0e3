"""Real data sets and a small language model, with provenance, licence, checksum and caveats; offline unless a download
is asked for.

``list_datasets()`` and ``info(name)`` tell what there is without loading NumPy or pandas; ``load(name)`` or the
``load_*`` functions return a `Dataset`; ``load_smollm2()`` returns a `LanguageModel`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aboveboard.data.manifest import DatasetInfo, FileInfo, info, list_datasets

if TYPE_CHECKING:
    from aboveboard.data.bundled import (
        load_acs_employment,
        load_adult,
        load_communities_crime,
        load_credit_default,
        load_german_credit,
        load_karate,
        load_les_miserables,
    )
    from aboveboard.data.dataset import Dataset
    from aboveboard.data.fetched import (
        load_compas,
        load_csrankings,
        load_fashion_mnist,
        load_law_school,
        load_nba_coach,
        load_remesh,
    )
    from aboveboard.data.language_model import Generation, LanguageModel
    from aboveboard.data.smollm2 import load_smollm2

__all__ = [
    "Dataset",
    "DatasetInfo",
    "FileInfo",
    "Generation",
    "LanguageModel",
    "info",
    "list_datasets",
    "load",
    "load_acs_employment",
    "load_adult",
    "load_communities_crime",
    "load_compas",
    "load_credit_default",
    "load_csrankings",
    "load_fashion_mnist",
    "load_german_credit",
    "load_karate",
    "load_law_school",
    "load_les_miserables",
    "load_nba_coach",
    "load_remesh",
    "load_smollm2",
]

_ELSEWHERE = {
    "Dataset": "dataset",
    "Generation": "language_model",
    "LanguageModel": "language_model",
    "load_smollm2": "smollm2",
}
_BUNDLED = frozenset(f"load_{record.name}" for record in list_datasets() if record.bundled)


def load(name: str, **options: Any) -> "Dataset":
    """Load a data set by name.

    Parameters
    ----------
    name : str
        A name from `list_datasets`.
    **options
        Handed to ``load_<name>``, such as ``split="test"`` or ``download=True``.

    Returns
    -------
    Dataset

    Raises
    ------
    aboveboard.core.InputError
        When there is no such data set, or it is neither bundled, nor in the folder ``ABOVEBOARD_DATA``, nor in the
        cache, and no download was asked for.

    Examples
    --------
    >>> from aboveboard.data import load
    >>> load("german_credit").X.shape
    (1000, 20)
    """
    loaded: Dataset = _loader(f"load_{info(name).name}")(**options)
    return loaded


def __getattr__(name: str) -> Any:
    if name in _ELSEWHERE:
        return getattr(import_module(f"aboveboard.data.{_ELSEWHERE[name]}"), name)
    if name in __all__:
        return _loader(name)
    raise AttributeError(f"module 'aboveboard.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _loader(name: str) -> Any:
    module = "bundled" if name in _BUNDLED else "fetched"
    return getattr(import_module(f"aboveboard.data.{module}"), name)
