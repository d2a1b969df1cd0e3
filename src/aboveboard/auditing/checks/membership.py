"""Whether an outsider can tell from the model's answers whose rows it was trained on.

The rows of the training data are the members, the audited ones the others. Rows that occur in both are left out, and of
rows that belong together one is drawn. With effort full, and where the model can be fitted again, shadow models say how
it would answer each row if it had, or had not, been trained on it; else the loss of the row is all there is to go by.

References
----------
N. Carlini et al., "Membership Inference Attacks From First Principles", IEEE S&P 2022. S. Yeom, I. Giacomelli,
M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning", CSF 2018.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.columns import comparable_columns, level_codes, numbers, row_hashes
from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.model import Answers, not_asked, source_of
from aboveboard.auditing.subject import Subject, Training
from aboveboard.auditing.suites import Effort
from aboveboard.core.errors import InputError, ModelError, QueriesSpent
from aboveboard.core.finding import Finding
from aboveboard.privacy import Attack, likelihood_ratio_attack, membership_audit, score_attack

__all__ = ["check", "questions"]

_log = logging.getLogger("aboveboard")

_COMMON: Final[dict[str, Any]] = {"check": "membership", "area": "privacy"}
_TRAIN_ROWS: Final[dict[str, int | None]] = {"quick": 5_000, "standard": 50_000, "full": None}
_SHADOWS: Final = 64
_DELTA: Final = 1e-5


def questions(X: pd.DataFrame, *, effort: Effort, training_rows: int) -> list[int]:  # noqa: ARG001 - one signature
    """Return the rows of each question that the check asks the model: one about training rows."""
    cap = _TRAIN_ROWS[effort]
    return [training_rows if cap is None else min(training_rows, cap)]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Attack the model with its own training rows, and with the audited rows as the others.

    Parameters
    ----------
    subject : Subject
        With a model and its training rows. Weights play no part.
    random_state : int
        Of the rows drawn, of the halves, and of the shadow models.
    effort : {"quick", "standard", "full"}
        At most 5,000 training rows, at most 50,000, or all of them; shadow models with full alone.

    Returns
    -------
    list of Finding
        ``membership/attack``, ``membership/epsilon`` and ``membership/kinds``, see
        `aboveboard.privacy.membership_audit`, and ``membership/<column>`` for each sensitive column.

    Notes
    -----
    One question about the training rows, and one boosted model of 30 rounds on at most 20,000 rows, which tells the two
    tables apart without the audited model. With effort full 64 copies of a classifier are fitted, each to half of all
    rows.
    """
    rng = np.random.default_rng(random_state)
    kept = _apart(subject, rng, _TRAIN_ROWS[effort])
    if min(len(kept.train), len(kept.audited)) == 0:
        return [_nothing("No row occurs in only one of the two tables.")]
    try:
        pool = _pooled(subject, kept)
    except QueriesSpent as stop:
        return [not_asked(stop, id="membership", **_COMMON)]
    except ModelError as error:
        return [_nothing(f"The model failed on its training rows: {error.kind or 'a malformed answer'}.")]
    attacks, how = _attacks(subject, pool, effort, random_state)
    promised, delta = _promised(subject)
    limits = subject.limits
    findings = membership_audit(
        attacks,
        pool.member,
        rows=pool.rows,
        groups=pool.groups,
        epsilon=promised,
        delta=delta,
        largest_excess=limits["membership.excess"].value,
        largest_epsilon=limits["membership.epsilon"].value,
        group_excess=limits["membership.group"].value,
        min_cell=subject.min_cell,
        random_state=random_state,
    )
    first = replace(findings[0], reason=f"{findings[0].reason} {how}".strip())
    judged = [_remedied(subject, _sourced(subject, finding)) for finding in (first, *findings[1:])]
    return [*judged, *_without_groups(subject, pool.groups)]


def _remedied(subject: Subject, finding: Finding) -> Finding:
    """Name what trains privately, where somebody is exposed and the task is one that it learns."""
    if finding.severity != "warn":
        return finding
    if subject.task == "binary":
        return replace(finding, remedies=("NoisySGDClassifier", "PrivateWeightedLogisticRegression"))
    return replace(finding, remedies=("NoisySGDClassifier",) if subject.task == "multiclass" else ())


def _sourced(subject: Subject, finding: Finding) -> Finding:
    """Say who set the limit; a certificate has said so already."""
    if finding.limit is None or finding.limit_source:
        return finding
    name = finding.id.removeprefix("membership/")
    limit = {"attack": "membership.excess", "epsilon": "membership.epsilon"}.get(name, "membership.group")
    return replace(finding, limit_source=subject.limits[limit].source)


def _nothing(reason: str) -> Finding:
    return Finding(
        id="membership/attack",
        statement="It cannot be told whether members of the training data can be recognised.",
        severity="note",
        status="inconclusive",
        reason=reason,
        **_COMMON,
    )


def _without_groups(subject: Subject, groups: pd.DataFrame) -> list[Finding]:
    return [
        Finding(
            id=f"membership/{name}",
            statement=f"{name}: it cannot be told whether some group is more exposed.",
            severity="note",
            status="inconclusive",
            reason="The training data do not have this column.",
            **_COMMON,
        )
        for name in map(str, subject.sensitive.columns)
        if name not in groups.columns
    ]


# --- rows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Kept:
    """Positions of the rows that take part."""

    train: NDArray[np.intp]
    audited: NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class _Pool:
    """Members first, then the others: what the model gets, says and should say, and what else is known of them."""

    X: pd.DataFrame
    y: NDArray[Any]
    answers: Answers
    member: NDArray[np.bool_]
    rows: pd.DataFrame
    groups: pd.DataFrame


def _apart(subject: Subject, rng: np.random.Generator, cap: int | None) -> _Kept:
    """Return the rows that lie in one of the two tables only, one for each cluster, and as many members as allowed."""
    train = _training(subject)
    single = frozenset(map(str, subject.X.columns))  # one of the tables may store numbers in half the digits
    mine, theirs = (
        row_hashes(X.assign(**{_unused(X): y}), single=single) for X, y in ((subject.X, subject.y), (train.X, train.y))
    )
    known = np.flatnonzero(~np.isin(theirs, mine))
    if cap is not None and len(known) > cap:
        known = np.sort(rng.choice(known, size=cap, replace=False))
    fresh = np.flatnonzero(~np.isin(mine, theirs))
    if subject.cluster is not None:
        fresh = rng.permutation(fresh)
        fresh = np.sort(fresh[np.unique(subject.cluster[fresh], return_index=True)[1]])
    return _Kept(known, fresh)


def _training(subject: Subject) -> Training:
    assert subject.train is not None
    return subject.train


def _unused(X: pd.DataFrame) -> str:
    return "_" + max(map(str, X.columns), key=len, default="")


def _pooled(subject: Subject, kept: _Kept) -> _Pool:
    assert subject.model is not None
    train = _training(subject)
    members = train.X.iloc[kept.train]
    said = subject.model.answer(members)
    score = None
    if subject.score is not None and said.score is not None:
        score = np.concatenate([said.score, subject.score[kept.audited]])
    X = pd.concat([members, subject.X.iloc[kept.audited]], ignore_index=True)
    y = np.concatenate([train.y[kept.train], subject.y[kept.audited]])
    sensitive = [train.sensitive.iloc[kept.train], subject.sensitive[train.sensitive.columns].iloc[kept.audited]]
    groups = pd.concat([part.astype(object) for part in sensitive], ignore_index=True)
    return _Pool(
        X=X,
        y=y,
        answers=Answers(np.concatenate([said.prediction, subject.prediction[kept.audited]]), score),
        member=np.arange(len(y)) < len(kept.train),
        rows=_told(subject, train, X, y, groups),
        groups=groups,
    )


def _told(subject: Subject, train: Training, X: pd.DataFrame, y: NDArray[Any], groups: pd.DataFrame) -> pd.DataFrame:
    """Return what is known of the rows, as numbers and labels whatever the columns' container."""
    columns: dict[str, Any] = {}
    for name in comparable_columns(subject.X, train.X):
        kind = subject.kinds[name]
        columns[name] = numbers(X[name], kind) if kind == "number" else _labels(X[name])
    columns |= {name: groups[name] for name in groups.columns}
    columns[subject.target] = y if subject.task == "regression" else _objects(subject.class_names, y)
    return pd.DataFrame(columns, index=X.index)


def _labels(column: "pd.Series[Any]") -> "pd.Series[Any]":
    codes, levels = level_codes(column)
    return _objects([*map(plain_label, levels), None], codes)


def _objects(values: Sequence[Any], codes: NDArray[Any]) -> "pd.Series[Any]":
    """Return values by code, and as objects: pandas' own text cannot hold half of a surrogate pair."""
    return pd.Series(np.array(values, dtype=object)[codes], dtype=object)


# --- attacks ----------------------------------------------------------------------------------------------------------


def _attacks(subject: Subject, pool: _Pool, effort: Effort, random_state: int) -> tuple[list[Attack], str]:
    """Return the attacks that can be made, and a sentence on those that were not."""
    attacks = score_attack(_probabilities(subject, pool.answers), pool.y)
    if subject.task == "regression":
        return attacks, ""
    assert subject.model is not None
    model = subject.model.model
    if source_of(model) is not None or not all(hasattr(model, name) for name in ("fit", "get_params", "predict_proba")):
        return attacks, "The model could not be fitted again, so that no shadow models were trained, which find more."
    if effort != "full":
        return attacks, "Shadow models, which find more, are trained with effort full."
    labels = np.array(subject.classes, dtype=object)[pool.y]
    given = np.asarray(model.classes_).dtype
    try:
        return [
            *attacks,
            *likelihood_ratio_attack(
                model,
                subject.model.given(pool.X),
                labels.astype(given),
                n_shadows=_SHADOWS,
                random_state=random_state,
                n_jobs=subject.n_jobs,
            ),
        ], ""
    except InputError as error:
        return attacks, f"No shadow models were trained: {error.got}."
    except Exception as error:
        _log.info("The audited model could not be fitted to half of the rows.", exc_info=True)
        return attacks, f"No shadow models were trained: fitting a copy raised {type(error).__name__}."


def _probabilities(subject: Subject, answers: Answers) -> NDArray[np.float64]:
    """Return what the score attack takes: probabilities of every class, labels as probabilities, or numbers."""
    if subject.task == "regression":
        return np.asarray(answers.prediction, dtype=np.float64)
    if answers.score is None:
        return np.eye(len(subject.classes))[answers.prediction]
    score = np.asarray(answers.score, dtype=np.float64)
    return np.column_stack([1.0 - score, score]) if score.ndim == 1 else score


# --- a certificate ----------------------------------------------------------------------------------------------------


def _promised(subject: Subject) -> tuple[float | None, float]:
    """Return the epsilon that the model's certificate promises for replacing one row by another, and delta.

    A promise for adding or removing a row holds twice for replacing one: it is left out, and the other put in.
    """
    from sklearn.pipeline import Pipeline

    assert subject.model is not None
    model = subject.model.model
    certificate = getattr(model[-1] if isinstance(model, Pipeline) else model, "certificate_", None)
    parameters = getattr(certificate, "parameters", {})
    epsilon, delta = parameters.get("epsilon"), parameters.get("delta", 0.0)
    if getattr(certificate, "kind", "") != "differential privacy" or epsilon is None or not math.isfinite(epsilon):
        return None, _DELTA
    if parameters.get("adjacency") == "add_remove":
        return 2 * float(epsilon), min(float(delta) * (1 + math.exp(min(epsilon, 700))), 1 - 1e-12)
    return float(epsilon), float(delta)
