"""Is the gap between groups made by training one model for all, and would more rows, width or penalty close it?

The theory of ridge regression on a mixture of groups predicts the errors of a linear model for all and of one for each
group, from second moments of the features alone. It speaks of linear models of these features, not of the audited one:
it says whether the data themselves make groups unequal.

References
----------
A. Subramonian, S. J. Bell, L. Sagun, E. Dohmatob, "An Effective Theory of Bias Amplification", ICLR 2025.
"""

import warnings
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.columns import coded
from aboveboard.auditing.frames import MISSING
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding, Table
from aboveboard.fairness import ridge_bias_audit

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "ridge_bias", "area": "fairness"}
_ROWS_PER_COLUMN: Final = 5
_MOST_LEVELS: Final = 12
_MOST_COLUMNS: Final = 40
_MOST_GROUPS: Final = 6
_RESAMPLES: Final[dict[str, int]] = {"quick": 20, "standard": 40, "full": 200}

Floats = NDArray[np.float64]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Predict the errors of linear models for each sensitive column.

    Parameters
    ----------
    subject : Subject
        Binary or regression, with a feature and a sensitive column. Where training rows were given, their number is the
        size of the planned training data, else that of the audited rows.
    random_state : int
        Seed of the resamples.
    effort : {"quick", "standard", "full"}
        20, 40 or 200 resamples.

    Returns
    -------
    list of Finding
        ``ridge_bias/<column>``, never more than a note.

    Notes
    -----
    Numbers are taken as they are, missing ones as their mean with a flag; categories as a column for each of their most
    frequent levels. Groups with fewer than five rows a column, or fewer than ``ridge_bias.min_rows``, are left out.
    Cost: O(n d^2 + d^3) a resample, d at most 40.
    """
    X = _encoded(subject)
    y = 2.0 * subject.y - 1 if subject.task == "binary" else subject.y
    return [
        _finding(subject, str(name), X, y, random_state + position, _RESAMPLES[effort])
        for position, name in enumerate(subject.sensitive.columns)
    ]


def _finding(subject: Subject, name: str, X: Floats, y: Floats, seed: int, resamples: int) -> Finding:
    def unanswered(statement: str, reason: str = "") -> Finding:
        return Finding(
            id=f"ridge_bias/{name}",
            statement=statement,
            severity="note",
            status="inconclusive",
            reason=reason,
            **_COMMON,
        )

    if X.shape[1] == 0:
        return unanswered(f"{name}: there is no feature to predict from.")
    kept, labels, small = _usable_groups(subject, name, X.shape[1])
    if len(labels) < 2:
        return unanswered(f"{name}: there are not two groups with enough rows for {X.shape[1]} columns.", small)
    rows = np.flatnonzero(kept)
    if np.ptp(y[rows]) == 0:
        return unanswered(f"{name}: the target is constant in the groups that have enough rows.", small)
    groups = subject.sensitive[name].iloc[rows]
    planned = 1.0 if subject.train is None else len(subject.train.y) / len(subject)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # columns that vary in no kept row; too few rows were ruled out
        (finding,) = ridge_bias_audit(
            X[rows],
            y[rows],
            groups,
            name=name,
            sample_weight=None if subject.weight is None else subject.weight[rows] / subject.weight[rows].mean(),
            clusters=None if subject.cluster is None else subject.cluster[rows],
            train_fraction=planned,
            amplification=subject.limits["ridge_bias.amplification"].value,
            smallest_gap=subject.limits["ridge_bias.gap"].value,
            limit_source=subject.limits["ridge_bias.amplification"].source,
            n_bootstrap=resamples,
            random_state=seed,
        )
    if small:
        evidence = tuple(replace(e, note=f"{e.note} {small}") if isinstance(e, Table) else e for e in finding.evidence)
        left_out = len(subject) - len(rows)
        finding = replace(finding, evidence=evidence, n=finding.n if left_out >= subject.min_cell else None)
    return finding


def _usable_groups(subject: Subject, name: str, d: int) -> tuple[NDArray[np.bool_], list[str], str]:
    """Return which rows lie in groups with enough rows, these groups, and a sentence on the others."""
    least = max(subject.limits["ridge_bias.min_rows"].value, _ROWS_PER_COLUMN * d)
    column = subject.sensitive[name].cat
    names = [str(group) for group in column.categories]
    codes = column.codes.to_numpy()
    heavy = np.ones(len(subject), dtype=bool) if subject.weight is None else subject.weight > 0
    counts = np.bincount(codes[heavy], minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    enough = [g for g in order if counts[g] >= least and not names[g].startswith(MISSING)][:_MOST_GROUPS]
    others = [names[g] for g in order if g not in enough and counts[g] > 0]
    shown = ", ".join(sorted(others)[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
    small = f"Left out, with fewer than {least:g} rows or beyond the {_MOST_GROUPS} largest: {shown}." if others else ""
    return np.isin(codes, enough) & heavy, [names[g] for g in enough], small


def _encoded(subject: Subject) -> Floats:
    """Return the features as at most 40 columns of numbers."""
    parts: list[Floats] = []
    for name in subject.X.columns:
        column = coded(subject.X[name])
        if column.values is not None and column.kind != "boolean":
            parts += _number_columns(column.values)
        else:
            counts = np.bincount(column.codes, minlength=column.levels)
            levels = [level for level in np.argsort(-counts, kind="stable")[:_MOST_LEVELS] if counts[level] > 0]
            parts += [(column.codes == level).astype(np.float64) for level in levels[1:]]
    varied = [part for part in parts if np.ptp(part) > 0]
    varied.sort(key=lambda part: -min(np.mean(part != part[0]), np.mean(part == part[0])))
    return np.column_stack(varied[:_MOST_COLUMNS]) if varied else np.empty((len(subject), 0))


def _number_columns(values: Floats) -> list[Floats]:
    known = np.isfinite(values)
    if not known.any():
        return []
    low, high = np.quantile(values[known], [0.001, 0.999])
    filled = np.where(known, np.clip(values, low, high), values[known].mean())
    return [filled] if known.all() else [filled, (~known).astype(np.float64)]
