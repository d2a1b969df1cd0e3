"""Heavy packages are imported where they are used; here is the one way to do it."""

import importlib
from types import ModuleType

from aboveboard.core.errors import MissingExtra

__all__ = ["require"]


def require(package: str, *, extra: str, feature: str) -> ModuleType:
    """Import `package`, or say which extra would bring it.

    Parameters
    ----------
    package : str
        Import name, such as ``"numba"``.
    extra : str
        The extra of aboveboard that installs it, such as ``"fast"``.
    feature : str
        What needs it, as the subject of a sentence: ``"DynFrsClassifier"``.

    Raises
    ------
    MissingExtra
        When the package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        raise MissingExtra(package, extra=extra, feature=feature) from error
