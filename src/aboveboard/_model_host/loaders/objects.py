"""Models that are Python objects: in skops files, in pickles, and functions that somebody wrote."""

import importlib
import sys
import warnings
import zipfile
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from aboveboard._model_host.loaders import Loaded, Untrusted
from aboveboard.core.errors import InputError

__all__ = ["load_function", "load_pickle", "load_skops"]


def load_skops(order: Mapping[str, Any]) -> Loaded:
    """Read a skops file, whose types are all trusted by skops itself or named in ``order["trusted"]``."""
    import skops.io

    path = Path(order["path"])
    if not zipfile.is_zipfile(path):
        raise InputError(f"{path.name!r} is no skops file", expected="what skops.io.dump writes")
    try:
        found = skops.io.get_untrusted_types(file=path)
    except Exception as error:
        raise _unreadable(path, "skops file", error) from error
    vouched = set(order["trusted"])
    untrusted = sorted(set(found) - vouched)
    if untrusted:
        raise Untrusted(untrusted)
    try:
        model = skops.io.load(path, trusted=sorted(set(found)))
    except Exception as error:
        raise _unreadable(path, "skops file", error) from error
    return _of_object(model, f"{path.name!r}", ("scikit-learn", "skops"), trusted=tuple(sorted(set(found))))


def load_pickle(order: Mapping[str, Any]) -> Loaded:
    """Read a pickle, or what joblib wrote; this runs whatever code the file names."""
    import joblib

    path = Path(order["path"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model = joblib.load(path)
        except ModuleNotFoundError as error:
            raise InputError(
                f"{path.name!r} needs the module {error.name!r}, which is not installed",
                remedy="Run the audit in the environment that the model was saved in",
            ) from error
        except MemoryError:
            raise
        except Exception as error:  # a damaged pickle can raise anything
            raise _unreadable(path, "pickle", error) from error
    older = next((str(w.message) for w in caught if type(w.message).__name__ == "InconsistentVersionWarning"), "")
    notes = [f"{path.name!r} was unpickled (--trust-pickle), which runs whatever code the file names."]
    if older:
        notes.append(f"scikit-learn warns: {older.splitlines()[0]}")
    return _of_object(model, f"{path.name!r}", ("scikit-learn", "joblib"), notes=tuple(notes))


def load_function(order: Mapping[str, Any]) -> Loaded:
    """Import a function ``module:function`` from the current folder or an installed package."""
    name = order["function"]
    module_name, _, path = name.partition(":")
    sys.path.insert(0, order["folder"])
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name + ".").startswith(error.name + "."):
            raise InputError(
                f"there is no module {module_name!r} for the model {name!r}",
                expected="a module in the current folder, or an installed one",
            ) from error
        raise InputError(f"the module {module_name!r} needs {error.name!r}, which is not installed") from error
    except Exception as error:
        raise InputError(
            f"the module {module_name!r} cannot be imported: {type(error).__name__}: {_first_line(error)}"
        ) from error
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            near = get_close_matches(part, dir(found), n=1)
            raise InputError(
                f"{module_name!r} has no {path!r}", remedy=f"Did you mean {near[0]!r}?" if near else ""
            ) from error
    if not callable(found):
        raise InputError(
            f"{name!r} is a {type(found).__name__}",
            expected="a function that takes a data frame and returns probabilities, or numbers for regression",
        )
    return Loaded(model="function", questions={"call": lambda rows: np.asarray(found(rows), dtype="float64")})


def _of_object(
    model: Any,
    where: str,
    packages: tuple[str, ...],
    *,
    trusted: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Loaded:
    """Return an object with predict, perhaps predict_proba, as a model; or a callable."""
    questions = {name: getattr(model, name) for name in ("predict", "predict_proba") if hasattr(model, name)}
    if not questions:
        if not callable(model):
            raise InputError(
                f"{where} holds a {type(model).__name__} without predict", expected="a fitted estimator, or a callable"
            )
        questions = {"call": model}
    classes = getattr(model, "classes_", None)
    if classes is not None:
        classes = np.asarray(classes, dtype=None if isinstance(classes, np.ndarray) else object)
        if classes.ndim != 1:
            raise InputError(f"{where} holds a model of several targets", expected="a model of one target")
    names = getattr(model, "feature_names_in_", None)
    count = getattr(model, "n_features_in_", None)
    return Loaded(
        model=type(model).__name__,
        questions=questions,
        classes=None if classes is None else list(classes),
        feature_names=None if names is None else [str(name) for name in names],
        n_features=None if count is None else int(count),
        regressor=_is_regressor(model),
        packages=packages,
        trusted=trusted,
        notes=notes,
    )


def _is_regressor(model: Any) -> bool:
    from sklearn.base import is_regressor

    try:
        return bool(is_regressor(model))
    except (AttributeError, TypeError):
        return False


def _unreadable(path: Path, kind: str, error: Exception) -> InputError:
    return InputError(f"{path.name!r} cannot be read as a {kind} ({type(error).__name__}: {_first_line(error)})")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]
