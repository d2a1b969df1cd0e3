"""Whether a sensitive attribute can be guessed from the features, and which columns carry it.

Leaving a sensitive column out does not hide it where others stand in for it. A gradient-boosted model is trained to
guess the group from the other features, out of fold; the attribute itself, its copies and its recodings are left out
and named.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.columns import CodedColumn, coded
from aboveboard.auditing.estimates import Area, Rows, area_under_curve, interval_text
from aboveboard.auditing.frames import MISSING
from aboveboard.auditing.single_column import assign_folds, class_power
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Column, Figure, Finding, Line, Series, Severity, Table

__all__ = ["check"]

_COMMON: Final[dict[str, Any]] = {"check": "sensitive_proxies", "area": "leaks"}
_FOLDS: Final = 3
_SMALLEST_GROUP: Final = 20
_MOST_GROUPS: Final = 10
_LEVELS: Final = 250
_ROWS_PER_LEVEL: Final = 5
_SHOWN: Final = 12


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Guess each sensitive attribute from the features.

    Returns
    -------
    list of Finding
        ``sensitive_proxies/<attribute>``, and ``sensitive_proxies/<attribute>/itself`` where the model is given it.

    Notes
    -----
    Fits three gradient-boosted models per attribute, of 100 trees or so (200 with effort full).
    """
    columns = [coded(subject.X[name]) for name in subject.X.columns]
    findings = []
    for position, name in enumerate(subject.sensitive.columns):
        rng = np.random.default_rng([random_state, position])
        findings += _attribute_findings(subject, str(name), columns, rng, 100 if effort == "full" else 50)
    return findings


def _attribute_findings(
    subject: Subject, name: str, columns: list[CodedColumn], rng: np.random.Generator, trees: int
) -> list[Finding]:
    codes, groups = _usable_groups(subject, name)
    finding_id = f"sensitive_proxies/{name}"
    if len(groups) < 2:
        return [
            Finding(
                id=finding_id,
                statement=f"{name}: there are no two groups with {_SMALLEST_GROUP} rows, so none can be guessed.",
                status="inconclusive",
                n=len(subject),
                **_COMMON,
            )
        ]
    kept = np.flatnonzero(codes >= 0)
    codes = codes[kept]
    weight = None if subject.weight is None else subject.weight[kept]
    rows = Rows(len(kept), weight, None if subject.cluster is None else subject.cluster[kept])
    parts = [_part(column, kept) for column in columns]
    itself = [part.name for part in parts if part.name == name or _recoding(part, codes, len(groups))]
    others = [part for part in parts if part.name not in itself]
    findings = []
    if itself:
        findings.append(_itself_finding(name, itself, len(kept)))
    if not others:
        findings.append(
            Finding(
                id=finding_id,
                statement=f"{name}: the model has no other feature.",
                n=len(kept),
                **_COMMON,
            )
        )
        return findings
    fold = assign_folds(codes, rows, rng, _FOLDS)
    joint = _joint_power(others, codes, len(groups), fold, rows, trees, int(rng.integers(2**31)))
    single = [(part, class_power(part, codes, len(groups), fold, rows)) for part in others]
    single.sort(key=lambda item: -np.nan_to_num(item[1].value, nan=-1.0))
    findings.insert(0, _proxy_finding(subject, name, joint, single, len(kept), itself))
    return findings


def _usable_groups(subject: Subject, name: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return group codes, -1 for rows left out: those without a value, and groups that are too small to be learned."""
    column = subject.sensitive[name]
    raw = column.cat.codes.to_numpy().astype(np.int64)
    names = [str(group) for group in column.cat.categories]
    counts = np.bincount(raw, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    wanted = [int(g) for g in order if counts[g] >= _SMALLEST_GROUP and not names[g].startswith(MISSING)][:_MOST_GROUPS]
    table = np.full(len(names), -1, dtype=np.int64)
    table[sorted(wanted)] = np.arange(len(wanted))
    return table[raw], [names[g] for g in sorted(wanted)]


def _part(column: CodedColumn, kept: NDArray[np.intp]) -> CodedColumn:
    values = None if column.values is None else column.values[kept]
    return CodedColumn(column.name, column.kind, column.codes[kept], column.levels, values)


def _recoding(column: CodedColumn, codes: NDArray[np.int64], n_groups: int) -> bool:
    """Tell whether the column determines the group: few levels of one group each, or groups that are ranges."""
    n = len(codes)
    if n < 2 * _SMALLEST_GROUP:
        return False
    if column.values is not None:
        order = np.lexsort((codes, column.values))
        ordered, values = codes[order], column.values[order]
        changes = np.flatnonzero(ordered[1:] != ordered[:-1])
        if len(changes) == n_groups - 1 and bool(np.all(values[changes] != values[changes + 1])):
            return True
        if len(np.unique(column.values)) > 64:  # its codes are bins of many numbers
            return False
    occupied = np.bincount(column.codes, minlength=column.levels)
    if np.count_nonzero(occupied) * _ROWS_PER_LEVEL > n:
        return False
    table = np.bincount(column.codes.astype(np.int64) * n_groups + codes, minlength=column.levels * n_groups)
    return bool(table.reshape(-1, n_groups).max(axis=1).sum() == n)


def _joint_power(
    columns: list[CodedColumn],
    codes: NDArray[np.int64],
    n_groups: int,
    fold: NDArray[np.int8],
    rows: Rows,
    trees: int,
    seed: int,
) -> Area:
    """Return the out-of-fold AUC of a gradient-boosted model; one group against the rest, averaged."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    # each step grows a tree for every group but where there are two: fewer and longer steps then
    steps, rate = (trees, 0.1) if n_groups == 2 else (max(2 * trees // n_groups, 15), 0.2)
    X = np.column_stack([_encoded(column) for column in columns])
    categorical = [column.values is None for column in columns]
    score = np.zeros((rows.n, n_groups))
    for f in range(int(fold.max()) + 1):
        train, test = fold != f, fold == f
        seen = np.unique(codes[train])
        if len(seen) < 2 or not test.any():
            continue
        model = HistGradientBoostingClassifier(
            max_iter=steps,
            learning_rate=rate,
            max_leaf_nodes=15,
            categorical_features=categorical,
            early_stopping=False,
            random_state=seed,
        )
        weight = None if rows.weight is None else np.maximum(rows.weight[train], 1e-12)
        # threads gain little on so few rows, and where cores are shared they wait for each other a hundred times longer
        with threadpool_limits(1, user_api="openmp"):
            model.fit(X[train], codes[train], weight)
            score[np.ix_(test, model.classes_)] = model.predict_proba(X[test])
    return area_under_curve(score[:, 1], codes, rows) if n_groups == 2 else area_under_curve(score, codes, rows)


def _encoded(column: CodedColumn) -> NDArray[np.float32]:
    """Return numbers as they are, and categories as ranks by frequency, the rare ones together."""
    if column.values is not None:
        with np.errstate(over="ignore"):
            return np.clip(column.values, -3e38, 3e38).astype(np.float32)
    counts = np.bincount(column.codes, minlength=column.levels)
    counts[-1] = -1
    rank = np.empty(column.levels, dtype=np.float32)
    rank[np.argsort(-counts, kind="stable")] = np.minimum(np.arange(column.levels), _LEVELS)
    rank[-1] = np.nan
    return rank[column.codes]


def _proxy_finding(
    subject: Subject, name: str, joint: Area, single: list[tuple[CodedColumn, Area]], n: int, itself: list[str]
) -> Finding:
    weak, strong = subject.limits["sensitive_proxies.weak_auc"], subject.limits["sensitive_proxies.strong_auc"]
    best, best_area = single[0]
    interval = joint.interval
    if interval is None or not np.isfinite(joint.value):
        return Finding(
            id=f"sensitive_proxies/{name}",
            statement=f"{name}: it cannot be told whether it can be guessed.",
            status="inconclusive",
            n=n,
            **_COMMON,
        )
    severity: Severity = "ok"
    status: Any = "ran"
    judged = weak
    if interval.low > strong.value:
        severity, judged = "warn", strong
        reason = "The features stand in for the attribute: leaving it out does not hide it."
    elif interval.low > weak.value:
        severity = "note"
        reason = "The features tell a good deal about the attribute."
    elif interval.high > weak.value:
        status, reason = "inconclusive", "The interval includes the limit."
    else:
        reason = "The features tell little about the attribute."
    besides = " (without " + ", ".join(repr(column) for column in itself[:5]) + ")" if itself else ""
    shown = [(part, area) for part, area in single[:_SHOWN] if np.isfinite(area.value)]
    table = Table(
        f"Which columns tell {name} (out-of-fold AUC)",
        (Column("column", "text"), Column("holds", "text"), Column("AUC"), Column("95 % interval", "interval")),
        tuple(
            (
                part.name,
                part.kind,
                area.value,
                None if area.interval is None else (area.interval.low, area.interval.high),
            )
            for part, area in shown
        ),
        note=f"The best {len(shown)} of {len(single)} columns." if len(single) > len(shown) else "",
    )
    series = Series(
        "AUC",
        ("all together", *(part.name for part, _ in shown)),
        (joint.value, *(area.value for _, area in shown)),
        (interval.low, *(area.value if area.interval is None else area.interval.low for _, area in shown)),
        (interval.high, *(area.value if area.interval is None else area.interval.high for _, area in shown)),
    )
    figure = Figure(
        "intervals",
        f"How well columns tell {name}",
        "column",
        "AUC",
        (series,),
        (Line("by chance", 0.5), Line("limit for a note", weak.value), Line("limit for a warning", strong.value)),
        alt=f"All features together guess {name} with AUC {joint.value:.2f}; {best.name} alone with "
        f"{best_area.value:.2f}.",
    )
    return Finding(
        id=f"sensitive_proxies/{name}",
        statement=f"{name} can be guessed from the features{besides} with AUC {joint.value:.3f}"
        f"{interval_text(interval)}; the column that tells most is {best.name!r} ({best_area.value:.3f} by itself).",
        severity=severity,
        status=status,
        reason=reason,
        value=joint.value,
        interval=interval,
        limit=judged.value,
        limit_source=judged.source,
        n=n,
        evidence=(table, figure),
        **_COMMON,
    )


def _itself_finding(name: str, itself: list[str], n: int) -> Finding:
    copies = [column for column in itself if column != name]
    if not copies:
        statement = f"{name} is itself a feature of the model."
    else:
        listed = ", ".join(repr(column) for column in copies[:5]) + (" and more" if len(copies) > 5 else "")
        also = " is itself a feature of the model, and" if len(copies) < len(itself) else " is"
        statement = f"{name}{also} determined by {listed}, a copy or recoding of it."
    return Finding(
        id=f"sensitive_proxies/{name}/itself",
        statement=statement,
        severity="note",
        reason="The model can use the attribute directly; whether it may is for you to say.",
        n=n,
        **_COMMON,
    )
