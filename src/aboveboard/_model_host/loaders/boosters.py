"""Boosted trees in the own formats of XGBoost (JSON, UBJSON) and LightGBM (text).

These files hold no class labels, only codes from 0. Columns that were categories are coded anew as they were in
training, where the file says how; where it does not, the model is refused, for other codes would give other answers.
"""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from aboveboard._model_host.loaders import Loaded
from aboveboard.core.errors import InputError
from aboveboard.core.extras import require

__all__ = ["load_lightgbm", "load_xgboost"]

_CLASSES_NOTE: Final = (
    "The model file has no class labels; its classes are the codes 0 to {} (name them with classes, --model-classes)."
)
_LIGHTGBM_REGRESSION: Final = frozenset(
    {
        "regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie",
    }
)  # fmt: skip


def load_xgboost(order: Mapping[str, Any]) -> Loaded:
    """Read a model that XGBoost saved as .json or .ubj; where it stopped early, its best round answers."""
    xgboost = require("xgboost", extra="boost", feature="A model of XGBoost")
    path = Path(order["path"])
    booster = xgboost.Booster()
    try:
        booster.load_model(path)
        learner = json.loads(booster.save_config())["learner"]
        objective = learner["objective"]["name"]
        n_classes = int(learner["learner_model_param"]["num_class"])
    except (xgboost.core.XGBoostError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, "XGBoost", error) from error
    _refuse_xgboost_categories(booster, path, xgboost.__version__)
    best = booster.attr("best_iteration")
    rounds = {} if best is None else {"iteration_range": (0, int(best) + 1)}

    def ask(rows: Any, **options: Any) -> np.ndarray:
        data = xgboost.DMatrix(_xgboost_columns(booster, rows), enable_categorical=True)
        return np.asarray(booster.predict(data, **rounds, **options), dtype="float64")

    common: dict[str, Any] = {
        "model": f"XGBoost {objective}",
        "feature_names": booster.feature_names,
        "n_features": int(booster.num_features()),
        "packages": ("xgboost", "xgboost-cpu"),
    }
    if objective == "binary:hinge":
        return _classifier(2, None, common, labels=lambda rows: ask(rows).astype(np.int64))
    if objective == "binary:logistic":
        return _classifier(2, ask, common)
    if objective == "binary:logitraw":
        return _classifier(2, lambda rows: _logistic(ask(rows)), common)
    if objective in ("multi:softprob", "multi:softmax"):
        return _classifier(n_classes, lambda rows: _softmax(ask(rows, output_margin=True)), common)
    if objective == "reg:logistic":  # a share: a probability to one user, a number to another
        return Loaded(questions={"call": ask}, **common)
    if objective.startswith(("reg:", "count:")):
        return Loaded(questions={"predict": ask}, regressor=True, **common)
    raise InputError(
        f"{path.name!r} is an XGBoost model with the objective {objective!r}",
        expected="one that classifies (binary:, multi:) or gives numbers (reg:, count:)",
    )


def load_lightgbm(order: Mapping[str, Any]) -> Loaded:
    """Read a model that LightGBM saved as text."""
    lightgbm = require("lightgbm", extra="boost", feature="A model of LightGBM")
    path = Path(order["path"])
    try:
        text = path.read_text(encoding="utf-8")
        booster = lightgbm.Booster(model_str=text)
    except (lightgbm.basic.LightGBMError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(path, "LightGBM", error) from error
    found = re.search(r"^objective=(\S+)", text, re.MULTILINE)
    objective = found[1] if found else ""
    recode = _lightgbm_columns(booster, text, path)

    def ask(rows: Any) -> np.ndarray:
        return np.asarray(booster.predict(recode(rows)), dtype="float64")

    names = list(booster.feature_name())
    named = names != [f"Column_{i}" for i in range(len(names))]
    common: dict[str, Any] = {
        "model": f"LightGBM {objective or 'without an objective'}",
        "feature_names": names if named else None,
        "n_features": int(booster.num_feature()),
        "packages": ("lightgbm",),
    }
    if objective == "binary":
        return _classifier(2, ask, common)
    if objective in ("multiclass", "multiclassova"):
        return _classifier(int(booster.num_model_per_iteration()), ask, common)
    if objective in _LIGHTGBM_REGRESSION:
        return Loaded(questions={"predict": ask}, regressor=True, **common)
    if objective in ("cross_entropy", "cross_entropy_lambda"):  # a share
        return Loaded(questions={"call": ask}, **common)
    raise InputError(
        f"{path.name!r} is a LightGBM model "
        + (f"with the objective {objective!r}" if objective else "that does not say its objective"),
        expected="one that classifies (binary, multiclass) or gives numbers (regression and its kin)",
        remedy="Name a function that turns its scores into probabilities: --model module:function",
    )


def _classifier(
    n_classes: int,
    ask: Callable[[Any], np.ndarray] | None,
    common: Mapping[str, Any],
    labels: Callable[[Any], np.ndarray] | None = None,
) -> Loaded:
    """Return a model of `n_classes` classes: `ask` gives their probabilities, of two classes that of the second."""

    def probabilities(rows: Any) -> np.ndarray:
        assert ask is not None
        said = ask(rows)
        return np.column_stack([1.0 - said, said]) if said.ndim == 1 else said

    def most_likely(rows: Any) -> np.ndarray:
        said = probabilities(rows)
        return (said[:, 1] > 0.5).astype(np.int64) if n_classes == 2 else said.argmax(axis=1)

    questions: dict[str, Callable[[Any], np.ndarray]] = {"predict": labels or most_likely}
    if ask is not None:
        questions["predict_proba"] = probabilities
    return Loaded(questions=questions, classes=range(n_classes), notes=(_CLASSES_NOTE.format(n_classes - 1),), **common)


def _refuse_xgboost_categories(booster: Any, path: Path, version: str) -> None:
    """Refuse a model with columns of categories whose codes the file does not tell, or this XGBoost does not read."""
    columns = [i for i, kind in enumerate(booster.feature_types or []) if kind == "c"]
    if not columns:
        return
    stored: Mapping[str, Any] = {}
    if hasattr(booster, "get_categories"):
        stored = dict(booster.get_categories(export_to_arrow=True).to_arrow() or ())
    names = booster.feature_names or [str(i) for i in range(int(booster.num_features()))]
    lacking = [names[i] for i in columns if stored.get(names[i]) is None]
    if lacking:
        raise InputError(
            f"{path.name!r} has columns of categories ({', '.join(map(repr, lacking[:5]))}) and does not tell XGBoost "
            f"{version} which code stands for which",
            expected="a model saved and read by XGBoost 3.1 or newer, which keeps the categories",
            remedy="Or name a function that codes them as in training: --model module:function",
        )


def _xgboost_columns(booster: Any, rows: Any) -> Any:
    """Return the rows with what the model takes for categories as such; XGBoost itself codes them as in training."""
    if not isinstance(rows, pd.DataFrame) or not booster.feature_types:
        return rows
    kinds = dict(zip(booster.feature_names, booster.feature_types, strict=True))
    changed = {
        name: rows[name].astype("category")
        for name in rows.columns
        if kinds.get(name) == "c" and not isinstance(rows[name].dtype, pd.CategoricalDtype)
    }
    return rows.assign(**changed)


def _lightgbm_columns(booster: Any, text: str, path: Path) -> Callable[[Any], Any]:
    """Return a function that codes the columns of categories as they were in training."""
    categories = booster.pandas_categorical or []
    if not categories:
        return lambda rows: rows
    found = re.search(r"^\[categorical_feature: ([\d,]*)\]", text, re.MULTILINE)
    positions = [int(part) for part in found[1].split(",")] if found and found[1] else []
    if len(positions) != len(categories):
        raise InputError(
            f"{path.name!r} keeps the categories of {len(categories)} columns and names {len(positions)} such columns",
            expected="a model saved by LightGBM from a data frame",
            remedy="Or name a function that codes them as in training: --model module:function",
        )

    def recoded(rows: Any) -> Any:
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
        changed = dict(frame.items())
        for position, known in zip(positions, categories, strict=True):
            column = frame.iloc[:, position]
            changed[frame.columns[position]] = pd.Series(pd.Categorical(column, categories=known), index=frame.index)
        return pd.DataFrame(changed)

    return recoded


def _logistic(margin: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    said: np.ndarray = expit(margin)
    return said


def _softmax(margin: np.ndarray) -> np.ndarray:
    from scipy.special import softmax

    said: np.ndarray = softmax(margin, axis=1)
    return said


def _unreadable(path: Path, kind: str, error: Exception) -> InputError:
    first = (str(error).strip().splitlines() or ["no message"])[0][:200]
    return InputError(f"{path.name!r} cannot be read as a model of {kind} ({first})")
