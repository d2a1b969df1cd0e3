"""Which kind of model a source is: told from its name, and for boosted trees from what stands in the file."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aboveboard.auditing.models import is_function
from aboveboard.auditing.models.hosted import Order
from aboveboard.auditing.models.trust import known_types
from aboveboard.core.errors import InputError

__all__ = ["order_for"]

_SUFFIXES: Final = {
    ".skops": "skops",
    ".onnx": "onnx",
    ".json": "boosted",
    ".ubj": "boosted",
    ".txt": "boosted",
    ".lgb": "boosted",
    ".xgb": "boosted",
    ".bst": "boosted",
    ".model": "boosted",
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".joblib": "pickle",
}
_BEGINNINGS: Final = {b"{L": "xgboost", b"{l": "xgboost", b"{i": "xgboost", b"{U": "xgboost", b"tree\n": "lightgbm"}


def order_for(source: str, *, trust: str | None, trust_types: Sequence[str], trust_pickle: bool) -> Order:
    """Return what a model's process is to read.

    Raises
    ------
    InputError
        When there is no such file or it is of no known format; when it is a pickle that nobody vouched for; when trust
        is given where nothing asks for it.
    """
    if trust not in (None, "known"):
        raise InputError(f"trust is {trust!r}", expected="'known', the reviewed list of types")
    if isinstance(trust_types, str):
        raise InputError(f"trust_types is {trust_types!r}", expected="a list of names")
    if not os.path.lexists(source) and is_function(source):
        kind, path = "function", None
    else:
        path = Path(source).absolute()  # not resolved: its name is what the user knows, and weights lie beside it
        kind = _format_of(path)
    name = source if path is None else path.name
    if kind == "pickle" and not trust_pickle:
        raise InputError(
            f"{name!r} is a pickle, which runs whatever code it names when it is read",
            expected="a file that cannot: .skops, .onnx, or the own format of XGBoost or LightGBM",
            remedy="If you made the file yourself, say --trust-pickle (trust_pickle=True)",
        )
    if kind != "pickle" and trust_pickle:
        raise InputError(f"pickles were trusted, and {name!r} is none", remedy="Leave out --trust-pickle")
    if kind != "skops" and (trust or trust_types):
        raise InputError(f"types were trusted, and {name!r} is no skops file", expected="a file that ends in .skops")
    trusted = {*trust_types, *(known_types() if trust == "known" else ())}
    function = source if path is None else None
    return Order(format=kind, path=path, function=function, folder=str(Path.cwd()), trusted=tuple(sorted(trusted)))


def _format_of(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"the model {path.name!r} is a folder", expected="a file")
    kind = _SUFFIXES.get(path.suffix.lower())
    if not path.exists():
        raise InputError(
            f"there is no model file {path.name!r}",
            expected=f"a file ({', '.join(_SUFFIXES)}), module:function, or an address that starts with https://",
        )
    if not path.is_file():
        raise InputError(f"the model {path.name!r} is no regular file", expected="a file")
    if kind is None:
        raise InputError(
            f"the model file {path.name!r} is of no known format", expected=f"one that ends in {', '.join(_SUFFIXES)}"
        )
    try:
        with path.open("rb") as file:
            beginning = file.read(64)
    except OSError as error:
        raise InputError(f"the model file {path.name!r} cannot be read ({error.strerror or error})") from error
    if not beginning:
        raise InputError(f"the model file {path.name!r} is empty")
    return _boosted(path, beginning) if kind == "boosted" else kind


def _boosted(path: Path, beginning: bytes) -> str:
    """Return whose a file of boosted trees is."""
    if beginning.lstrip()[:1] == b"{" and beginning.lstrip()[1:].lstrip()[:1] == b'"':
        return "xgboost"
    beginning = beginning.replace(b"\r\n", b"\n")
    kind = next((kind for start, kind in _BEGINNINGS.items() if beginning.startswith(start)), None)
    if kind is None:
        old = beginning.startswith(b"binf") or beginning[:1] == b"\x00"
        raise InputError(
            f"the model file {path.name!r} is no model of XGBoost (JSON, UBJSON) or LightGBM (text)",
            remedy="If XGBoost saved it in its old binary format, read it there and save it as .ubj"
            if old or path.suffix.lower() in (".model", ".bst", ".xgb")
            else "",
        )
    return kind
