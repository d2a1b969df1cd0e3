"""Which kind of model a source is: told from its name, and for boosted trees from what stands in the file."""

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
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".joblib": "pickle",
}


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
    path = Path(source)
    if not path.exists() and is_function(source):
        return Order(format="function", function=source, folder=str(Path.cwd()))
    kind = _format_of(path)
    if kind == "pickle" and not trust_pickle:
        raise InputError(
            f"{path.name!r} is a pickle, which runs whatever code it names when it is read",
            expected="a file that cannot: .skops, .onnx, or the own format of XGBoost or LightGBM",
            remedy="If you made the file yourself, say --trust-pickle (trust_pickle=True)",
        )
    if kind != "skops" and (trust or trust_types):
        raise InputError(f"types were trusted, and {path.name!r} is no skops file", expected="--trust with .skops only")
    trusted = {*trust_types, *(known_types() if trust == "known" else ())}
    return Order(format=kind, path=path.resolve(), trusted=tuple(sorted(trusted)) if kind == "skops" else ())


def _format_of(path: Path) -> str:
    if path.is_dir():
        raise InputError(f"the model {path.name!r} is a folder", expected="a file")
    if not path.exists():
        raise InputError(
            f"there is no model file {path.name!r}",
            expected=f"a file ({', '.join(_SUFFIXES)}), module:function, or an address that starts with https://",
        )
    kind = _SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise InputError(
            f"the model file {path.name!r} is of no known format", expected=f"one that ends in {', '.join(_SUFFIXES)}"
        )
    return kind
