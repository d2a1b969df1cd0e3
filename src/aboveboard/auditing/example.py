"""The bundled example: a gradient-boosted model, fitted on the spot to UCI Adult and audited on its test rows."""

from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

__all__ = ["EXAMPLE_SENSITIVE", "Example", "bundled_example"]

EXAMPLE_SENSITIVE: Final = ("sex", "race", "age:25,40,60")
"""What the example is audited for: two columns, and age in bands."""


@dataclass(frozen=True)
class Example:
    """A fitted model, the rows it is audited on, and those it was fitted to.

    Parameters
    ----------
    model : sklearn.pipeline.Pipeline
    X, X_train : DataFrame
        All 16,281 test rows and 32,561 training rows that UCI publishes, or the first `rows` of each.
    y, y_train : Series
        ``"<=50K"`` or ``">50K"``.
    """

    model: Any
    X: pd.DataFrame
    y: "pd.Series[Any]"
    X_train: pd.DataFrame
    y_train: "pd.Series[Any]"


def bundled_example(*, random_state: int = 0, rows: int | None = None) -> Example:
    """Fit the example's model.

    Parameters
    ----------
    random_state : int
    rows : int, optional
        Use only the first rows of each part.

    Notes
    -----
    A few seconds. The survey weight ``fnlwgt`` is left out, since it describes no person.

    Examples
    --------
    >>> from aboveboard.auditing.example import bundled_example
    >>> example = bundled_example(rows=1000)
    >>> example.model.classes_
    array(['<=50K', '>50K'], dtype=object)
    """
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    from aboveboard.data import load_adult

    parts = [load_adult(split=split) for split in ("train", "test")]
    tables = [part.X.drop(columns="fnlwgt").iloc[:rows] for part in parts]
    answers = [pd.Series(part.y, dtype=object).iloc[:rows] for part in parts]
    words = make_column_selector(dtype_include="category")
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    model = make_pipeline(
        make_column_transformer((encoder, words), remainder="passthrough"),
        HistGradientBoostingClassifier(random_state=random_state),
    )
    return Example(model.fit(tables[0], answers[0]), tables[1], answers[1], tables[0], answers[0])
