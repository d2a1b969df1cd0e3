"""Read a model of any known format, and give it one face: questions that take rows and return numbers or labels."""

import hashlib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

__all__ = ["FORMATS", "Loaded", "Untrusted", "file_sha256", "load"]

FORMATS: Final = {
    "skops": "aboveboard._model_host.loaders.objects:load_skops",
    "onnx": "aboveboard._model_host.loaders.graphs:load_onnx",
    "xgboost": "aboveboard._model_host.loaders.boosters:load_xgboost",
    "lightgbm": "aboveboard._model_host.loaders.boosters:load_lightgbm",
    "pickle": "aboveboard._model_host.loaders.objects:load_pickle",
    "function": "aboveboard._model_host.loaders.objects:load_function",
}
"""Format to the function that reads it, as ``module:function``."""

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """A model that was read.

    Parameters
    ----------
    model : str
        Its class or kind.
    questions : dict of str to callable
        ``"predict"``, ``"predict_proba"``, or ``"call"`` where the task says what its numbers are. Each takes a data
        frame, or an array where the model knows no column names but their number.
    classes : sequence or None
    feature_names : list of str or None
    n_features : int or None
    regressor : bool
        Whether it says of itself that it is no classifier.
    packages : tuple of str
        Distributions that run it.
    trusted : tuple of str
        Types in the file that were trusted because the user said so.
    notes : tuple of str
    """

    model: str
    questions: Mapping[str, Callable[[Any], Any]]
    classes: Sequence[Any] | None = None
    feature_names: list[str] | None = None
    n_features: int | None = None
    regressor: bool = False
    packages: tuple[str, ...] = ()
    trusted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def versions(self) -> dict[str, str]:
        """Return the version of each of its packages that is installed."""
        found = {}
        for name in self.packages:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                continue
        return found


class Untrusted(Exception):
    """The file holds types that nobody vouched for."""

    def __init__(self, types: list[str]) -> None:
        super().__init__(", ".join(types))
        self.types = types


def load(order: Mapping[str, Any]) -> Loaded:
    """Read the model that `order` names: ``format``, ``path`` or ``function``, and what is trusted.

    Raises
    ------
    InputError
        When it cannot be read as such a model.
    Untrusted
        When it holds types that are not trusted.
    MissingExtra
    """
    module, _, function = FORMATS[order["format"]].partition(":")
    read: Callable[[Mapping[str, Any]], Loaded] = getattr(importlib.import_module(module), function)
    return read(order)


def file_sha256(path: str | Path) -> str:
    """Return the sha256 of a file, read piece by piece."""
    digest = hashlib.sha256()
    with Path(path).open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
