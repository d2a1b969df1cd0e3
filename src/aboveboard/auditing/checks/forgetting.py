"""What it costs to take one row out of the model: today by fitting it again, and with a forest that forgets.

The cost is given in rows that must be read, which is the same on every machine: a refit reads all the training rows
that are left at least once; the forest reads those whose nodes change, once per tree that holds them. The page of the
check tells how to turn it into seconds.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.estimates import Rows, percent
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Column, Finding, Interval, Table

if TYPE_CHECKING:
    from aboveboard.unlearning import DynFrsClassifier, DynFrsRegressor

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "forgetting", "area": "unlearning"}
_TRAIN_ROWS: Final[dict[str, int | None]] = {"quick": 5_000, "standard": 50_000, "full": None}
_ERASURES: Final[dict[str, int]] = {"quick": 20, "standard": 50, "full": 200}
_PROBED: Final = 5
_FEWEST: Final = 50
"""Training rows below which a comparison says nothing."""


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Compare the cost of one erasure by refit with that of DynFrs, and the accuracy of both.

    Returns
    -------
    list of Finding
        ``forgetting/erasure``.

    Notes
    -----
    Fits one forest of 100 trees on at most 5,000, 50,000 or all training rows (effort quick, standard, full), and takes
    20, 50 or 200 rows out of it.
    """
    assert subject.model is not None
    assert subject.train is not None
    model, n_train = subject.model.model, len(subject.train.y)
    if hasattr(model, "remove") and hasattr(model, "certify") and hasattr(model, "forest_"):
        return [_forgets(model)]
    today = f"To take one row out of this model it must be fitted again on the {n_train - 1:,} training rows left."
    if not (hasattr(model, "fit") and hasattr(model, "get_params")):
        today = (
            f"Nothing shows how to take a row out of this model but to train it again on the {n_train - 1:,} rows left."
        )
    if find_spec("numba") is None:
        reason = "The comparison with a forest that forgets needs Numba: pip install 'aboveboard[fast]'."
        return [_note(today, reason, n_train)]
    if n_train < _FEWEST or len(subject) < max(subject.min_cell, 2):
        return [_note(today, "Too few rows to compare it with a forest that forgets.", n_train)]
    return [_compared(subject, today, random_state, effort)]


def _note(statement: str, reason: str, n: int) -> Finding:
    return Finding(
        id="forgetting/erasure",
        statement=statement,
        severity="note",
        reason=reason,
        n=n,
        remedies=("DynFrsClassifier",),
        **_COMMON,
    )


def _forgets(model: Any) -> Finding:
    """Judge a model that takes rows out by itself: a few of its trees are grown again and compared."""
    trees = int(model.forest_.n_trees)
    certificate = model.certify(n_probe=min(trees, _PROBED))
    compared = certificate.parameters["trees_compared"]
    return Finding(
        id="forgetting/erasure",
        statement=(
            f"The model takes single rows out by itself, and {compared} of its {trees} trees, grown again on the "
            + ("rows that it holds, are the same bit for bit." if certificate.holds else "rows that it holds, differ.")
        ),
        severity="ok" if certificate.holds else "fail",
        reason=(
            "It equals a model fitted on the rows that are left."
            if certificate.holds
            else "It is not the model that a fit on the rows that are left would give."
        ),
        n=int(certificate.parameters["rows"]),
        **_COMMON,
    )


def _compared(subject: Subject, today: str, random_state: int, effort: Effort) -> Finding:
    assert subject.train is not None
    rng = np.random.default_rng(random_state)
    n_train, cap = len(subject.train.y), _TRAIN_ROWS[effort]
    kept = np.arange(n_train) if cap is None or n_train <= cap else np.sort(rng.choice(n_train, cap, replace=False))
    forest = _fitted(subject, kept, random_state)
    theirs, ours = _answers(subject, forest)
    rows = Rows.of(subject)
    weight = subject.weights
    gain = ours - theirs
    mean = float(np.average(gain, weights=weight))
    half = rows.quantile_of_normal() * rows.error(gain - mean)
    interval = Interval(mean - half, mean + half, method="normal, paired") if np.isfinite(half) else None
    read = _rows_read(forest, kept, rng, _ERASURES[effort])
    share = read / (n_train - 1)
    limit = subject.limits["forgetting.accuracy"]
    measure = "R2" if subject.task == "regression" else "accuracy"
    lowest, highest = (interval.low, interval.high) if interval else (mean, mean)
    figures = [float(np.average(part, weights=weight)) for part in (theirs, ours)]
    told = [f"{figure:.3f}" if measure == "R2" else percent(figure) for figure in figures]
    statement = (
        f"{today} A DynFrs forest would read {read:,.0f} rows again on average ({percent(share, 2)} as many), "
        f"with {measure} {told[1]} where this model has {told[0]}."
    )
    if highest < -limit.value:
        reason = f"The forest loses more than {limit.value:g} in {measure}: a refit may be the better choice here."
    elif lowest < -limit.value:
        reason = f"Too few rows to tell whether the forest loses more than {limit.value:g} in {measure}."
    else:
        reason = f"The forest loses no more than {limit.value:g} in {measure}, and forgets at once."
    if len(kept) < n_train:
        reason += f" It was fitted on {len(kept):,} of the training rows (effort {effort})."
    table = Table(
        "One erasure",
        (Column("model", "text"), Column("rows read again", "number"), Column(measure, _kind(measure))),
        (("this model, fitted again (at least)", n_train - 1, figures[0]), ("DynFrs", round(read, 1), figures[1])),
        note=(
            f"A mean over {_ERASURES[effort]} erasures of one row; a row counts once for each tree that reads it. "
            "Missing numbers are 0 for the forest, and words are categories."
        ),
    )
    return Finding(
        id="forgetting/erasure",
        statement=statement,
        severity="note",
        reason=reason,
        value=mean,
        interval=interval,
        limit=limit.value,
        limit_source=limit.source,
        n=len(subject),
        evidence=(table,),
        remedies=() if highest < -limit.value else ("DynFrsClassifier",),
        **_COMMON,
    )


def _kind(measure: str) -> Any:
    return "number" if measure == "R2" else "percent"


def _fitted(subject: Subject, kept: NDArray[np.intp], random_state: int) -> "DynFrsClassifier | DynFrsRegressor":
    from aboveboard.unlearning import DynFrsClassifier, DynFrsRegressor

    assert subject.train is not None
    X, words = _plain(subject, subject.train.X.iloc[kept])
    y = subject.train.y[kept]
    options: dict[str, Any] = {"categorical_features": words, "n_jobs": subject.n_jobs, "random_state": random_state}
    if subject.task != "regression":
        return DynFrsClassifier(occurrence=0.2, **options).fit(X, y, sample_id=kept)
    # A whole number of steps in the spread; the comparison may look at the data, which a model in use must not.
    step = float(np.std(y)) * 2.0**-20 or 1.0
    return DynFrsRegressor(occurrence=0.2, target_step=step, **options).fit(X, y, sample_id=kept)


def _plain(subject: Subject, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str] | None]:
    """Return the features as the forest takes them, and which of them are categories."""
    columns, words = {}, []
    for name in frame.columns:
        column = frame[name]
        if subject.kinds[str(name)] in ("number", "boolean"):
            values = pd.to_numeric(column, errors="coerce").to_numpy(dtype="float64", na_value=np.nan)
            columns[str(name)] = np.clip(np.nan_to_num(values, nan=0.0), -1e30, 1e30)
        elif subject.kinds[str(name)] == "datetime":
            seconds = pd.to_datetime(column, errors="coerce", utc=True).astype("int64").to_numpy() / 1e9
            columns[str(name)] = np.where(column.isna().to_numpy(), 0.0, seconds)
        else:
            columns[str(name)] = column.astype(object).where(column.notna(), None).map(_word).to_numpy(dtype=object)
            words.append(str(name))
    return pd.DataFrame(columns), words or None


def _word(value: Any) -> str:
    return "missing" if value is None else f"={value}"


def _answers(
    subject: Subject, forest: "DynFrsClassifier | DynFrsRegressor"
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return, row by row, what each model's accuracy (or R2) is the mean of: this model's, and the forest's."""
    said = forest.predict(_plain(subject, subject.X)[0])
    if subject.task != "regression":
        return (subject.prediction == subject.y).astype(np.float64), (said == subject.y).astype(np.float64)
    centre = np.average(subject.y, weights=subject.weights)
    spread = float(np.average((subject.y - centre) ** 2, weights=subject.weights)) or 1.0
    return 1.0 - (subject.y - subject.prediction) ** 2 / spread, 1.0 - (subject.y - said) ** 2 / spread


def _rows_read(
    forest: "DynFrsClassifier | DynFrsRegressor", kept: NDArray[np.intp], rng: np.random.Generator, erasures: int
) -> float:
    """Return how many rows the forest reads again per erasure: those below the nodes that must be grown anew."""
    gone = rng.choice(kept, size=min(erasures, len(kept) // 2), replace=False)
    waiting = 0
    for i in gone.tolist():
        forest.resolve().remove(int(i))
        waiting += forest.forest_.rows_waiting
    return waiting / len(gone)
