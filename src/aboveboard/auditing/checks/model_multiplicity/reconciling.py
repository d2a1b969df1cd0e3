"""The remedy, tried: both models are reconciled on one half of the rows, and what that does is told of the other."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.auditing.checks.model_multiplicity.comparison import (
    PairedDifference,
    brier_scores,
    paired,
    probabilities,
)
from aboveboard.auditing.checks.model_multiplicity.differences import COMMON
from aboveboard.auditing.checks.model_multiplicity.whose import halves
from aboveboard.auditing.estimates import Rows, percent
from aboveboard.auditing.subject import Subject
from aboveboard.core.finding import Column, Finding, Table
from aboveboard.uncertainty import ReDCal

__all__ = ["reconciled"]

_LEAST_ROWS: Final = 1_000
_LEAST_DIFFERING: Final = 40
_LEAST_EVENT: Final = 20
_ALPHA: Final = 0.01
_BETA: Final = 0.005
_MOST_PATCHES: Final = 500

Floats = NDArray[np.float64]


def reconciled(subject: Subject, random_state: int) -> Finding:
    """Reconcile both models on one half of the rows, and tell what that does on the other half."""
    both = probabilities(subject)
    common: dict[str, Any] = {"id": "model_multiplicity/reconciled", **COMMON}
    if both is None:
        return Finding(
            statement="The models were not reconciled.",
            status="skipped",
            reason="That needs scores of both models, and one of them gives labels only.",
            **common,
        )
    loss = _loss(subject)
    acting = [(part @ loss).argmin(axis=1) for part in both]
    if len(subject) < _LEAST_ROWS or int((acting[0] != acting[1]).sum()) < _LEAST_DIFFERING:
        return Finding(
            statement="The models were not reconciled: too few rows are decided differently by their scores.",
            severity="note",
            status="inconclusive",
            reason=f"At least {_LEAST_DIFFERING} such rows of at least {_LEAST_ROWS:,} are needed.",
            **common,
        )
    fitting, trying = halves(subject, random_state)
    redcal = _fitted(subject, both, loss, acting, fitting)
    return _told(subject, redcal, [part[trying] for part in both], loss, trying, common)


def _loss(subject: Subject) -> Floats:
    """Return the loss by which the models decide: a wrong class costs 1, or what makes the threshold the best one."""
    if subject.task != "binary":
        return 1.0 - np.eye(len(subject.classes))
    threshold = 0.5 if subject.threshold is None else subject.threshold
    # the positive class comes first, since it is predicted where the score is the threshold
    return 2.0 * np.array([[threshold, 0.0], [0.0, 1.0 - threshold]])


def _fitted(
    subject: Subject, both: list[Floats], loss: Floats, acting: list[NDArray[np.intp]], fitting: NDArray[np.bool_]
) -> ReDCal:
    """Fit patches so fine that at most a third of the different decisions can be left on these rows."""
    apart = float((acting[0] != acting[1])[fitting].mean())
    used = len(np.unique(np.concatenate(acting)))
    eta = float(np.clip(apart / (3 * used * (used - 1)), 1e-6, 0.05))
    weight = None if subject.weight is None else subject.weight[fitting]
    redcal = ReDCal(
        loss,
        alpha=_ALPHA,
        eta=eta,
        beta=max(_BETA, int(fitting.sum()) ** -0.5),  # what is finer than chance fits noise
        min_event=max(_LEAST_EVENT, subject.min_cell),
        max_patches=_MOST_PATCHES,
    )
    classes = np.eye(len(subject.classes))[subject.y[fitting]]
    return redcal.fit([part[fitting] for part in both], classes, sample_weight=weight)


def _told(
    subject: Subject,
    redcal: ReDCal,
    before: list[Floats],
    loss: Floats,
    trying: NDArray[np.bool_],
    common: dict[str, Any],
) -> Finding:
    after = redcal.transform(before)
    y = subject.y[trying]
    weight = None if subject.weight is None else subject.weight[trying]
    rows = Rows(len(y), weight, None if subject.cluster is None else subject.cluster[trying])
    old, new = (_figures(parts, y, loss) for parts in (before, after))
    changes = {name: paired(new[name], old[name], rows) for name in new}
    apart, paid = changes["decided differently"], changes["decision loss"]
    margin = subject.limits["model_multiplicity.margin"].value
    helps = apart.interval.high < 0 and paid.interval.high <= margin
    patches = f"{len(redcal.patches_):,} {'patch' if len(redcal.patches_) == 1 else 'patches'}"
    return Finding(
        statement=(
            f"Reconciled on one half of the rows ({patches}), the two models decide differently on "
            f"{percent(apart.first)} of the other half instead of {percent(apart.second)}; their mean loss is "
            f"{paid.first:.4f} instead of {paid.second:.4f}."
        ),
        severity="note",
        reason=(
            "They agree more often, and no interval of the loss goes beyond the margin of equally good models."
            if helps
            else "It is not clear from these rows that it helps: more rows with known answers may."
        ),
        value=apart.first,
        n=len(y),
        evidence=(_table(changes, redcal),),
        remedies=("ReDCal",) if helps else (),
        **common,
    )


def _figures(parts: list[Floats], y: NDArray[np.intp], loss: Floats) -> dict[str, Floats]:
    """Return row by row what the figures of the table are means of."""
    acting = [(part @ loss).argmin(axis=1) for part in parts]
    paid = [loss[y, action] for action in acting]
    return {
        "decided differently": (acting[0] != acting[1]).astype(np.float64),
        "decision loss": (paid[0] + paid[1]) / 2,
        "decision loss, this model": paid[0],
        "decision loss, the other": paid[1],
        "Brier score, this model": brier_scores(parts[0], y),
        "Brier score, the other": brier_scores(parts[1], y),
    }


def _table(changes: dict[str, PairedDifference], redcal: ReDCal) -> Table:
    return Table(
        "Two models reconciled, on rows that were held out",
        (
            Column("figure", "text"),
            Column("before"),
            Column("after"),
            Column("change"),
            Column("interval", "interval"),
        ),
        tuple(
            (name, d.second, d.first, d.difference, (d.interval.low, d.interval.high)) for name, d in changes.items()
        ),
        note=(
            f"Patches were fitted with alpha {redcal.alpha:g}, eta {redcal.eta:.2g} and beta {redcal.beta:.2g} "
            "(ReDCal). The loss is the one for which the threshold in force is the best; without one a wrong class "
            "costs 1. Intervals hold one by one, at 95 %."
        ),
    )
