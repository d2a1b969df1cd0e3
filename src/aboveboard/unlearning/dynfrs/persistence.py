"""One file per model, without pickle: the rows that it holds, their ids, the settings and the seed.

These determine the forest, so nothing else is kept, and nothing of a removed row can be left in the file. It is a zip
of a JSON header and plain arrays (the ``.npz`` layout, so NumPy alone can read the rows).
"""

import io
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from aboveboard.core import InputError

__all__ = ["load", "save"]

_FORMAT = "aboveboard forest"
_VERSION = 1
_ROWS = ("uid", "X", "label", "target", "weight")
_EPOCH = (1980, 1, 1, 0, 0, 0)


def save(estimator: Any, path: Any) -> None:
    """Write `estimator` to `path` in one step; the bytes depend on nothing but the model."""
    target = Path(path)
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": estimator._header(),
        "settings": {key: _plain_setting(key, value) for key, value in estimator.get_params(deep=False).items()},
        "feature_names": _names(estimator),
        "next_id": estimator._next_id,
    }
    rows = estimator.forest_.living()
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo("header.json", _EPOCH), json.dumps(header, indent=1))
                for name in _ROWS:
                    with archive.open(zipfile.ZipInfo(f"{name}.npy", _EPOCH), "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, rows[name], allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def load(cls: type, path: Any, *, n_jobs: int | None) -> Any:
    """Read what `save` wrote, and grow the forest again."""
    header, rows = _read(Path(path))
    model = header["model"]
    if model["estimator"] != cls.__name__:
        raise InputError(f"{path} holds a {model['estimator']}", expected=f"a {cls.__name__}")
    estimator = cls(**(header["settings"] | {"n_jobs": n_jobs}))
    estimator.n_features_in_ = int(model["n_features"])
    if header["feature_names"] is not None:
        estimator.feature_names_in_ = np.array(header["feature_names"], dtype=object)
    if "classes" in model:
        estimator.classes_ = np.array(model["classes"])
    estimator.seed_ = int(model["seed"])
    estimator._next_id = int(header["next_id"])
    settings = estimator._settings(estimator.n_features_in_, int(model["n_classes"]))
    estimator._build(estimator.seed_, settings, rows["X"], rows["label"], rows["target"], rows["weight"], rows["uid"])
    if estimator._header() != model:
        raise InputError(
            f"{path} was written by a version whose forests differ",
            expected=f"the settings {model}",
            remedy="Fit the model again, or install the version that wrote it",
        )
    return estimator


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read("header.json"))
            if header.get("format") != _FORMAT or header.get("version") != _VERSION:
                raise KeyError("format")
            rows = {
                name: np.lib.format.read_array(io.BytesIO(archive.read(f"{name}.npy")), allow_pickle=False)
                for name in _ROWS
            }
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise InputError(
            f"{path} is no forest that this version wrote, or is damaged", remedy="Restore it from a copy"
        ) from error
    return header, rows


def _plain_setting(name: str, value: Any) -> Any:
    if name in ("random_state", "n_jobs"):
        # The seed itself is kept; how it was drawn, and how many threads drew it, is no part of the model.
        return int(value) if name == "random_state" and isinstance(value, int | np.integer) else None
    if name == "categorical_features" and value is not None:
        return [item.item() if hasattr(item, "item") else item for item in value]
    return value.item() if hasattr(value, "item") else value


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _sync_folder(folder: Path) -> None:
    """Make the new name durable, where the system can."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
