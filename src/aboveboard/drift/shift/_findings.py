"""A fitted SHIFT in words: findings, a certificate and a short summary."""

import math
from typing import Any, Final

from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Severity, Table
from aboveboard.core.reference import Reference
from aboveboard.drift.shift._inference import Family
from aboveboard.drift.shift._result import TestResult
from aboveboard.drift.shift._subgroup import Subgroup

__all__ = ["certificate", "findings", "summary"]

_FAIL: Final = 0.10
_COARSE: Final = 0.10
_WHAT: Final[dict[Family, str]] = {
    "covariate": "because the mix of rows changed",
    "outcome": "because outcomes changed for the same rows",
}
_LOSS_NAMES: Final = {
    "zero_one": "error rate",
    "brier": "Brier score",
    "class_weighted": "balanced error rate",
    "ppv": "error rate of positive predictions",
}
_KNOWN: Final = 0.1
_REFERENCE: Final = Reference(
    title="Who experiences large model decay and why? A Hierarchical Framework for Diagnosing Heterogeneous "
    "Performance Drift",
    authors="H. Singh, F. Xia, A. Gossmann, A. Chuang, J. C. Hong, J. Feng",
    venue="ICML 2025",
    year=2025,
    url="https://arxiv.org/abs/2506.00756",
)


def findings(fitted: Any, check: str, area: str) -> list[Finding]:
    """Return one finding per family of changes."""
    return [_finding(fitted, family, check, area) for family in ("outcome", "covariate")]


def certificate(fitted: Any) -> Certificate:
    """Return what the two tests promise, and what that rests on."""
    found = fitted.diagnostics_
    off = abs(found["mean_weight"] - 1.0)
    return Certificate(
        kind="subgroup decay test",
        guarantee=(
            f"If no subgroup of {100 * fitted.min_prevalence:g} % of the rows or more decayed by more than "
            f"{fitted.tolerance:g}, each test rejects with a probability that tends to {fitted.alpha:g} at most as the "
            "number of rows grows."
        ),
        parameters={
            "tolerance": fitted.tolerance,
            "min_prevalence": fitted.min_prevalence,
            "alpha": fitted.alpha,
            "p_values": {family: result.p_value for family, result in fitted.aggregate_.items()},
            "domain_auc": found["domain_auc"],
            "mean_weight": found["mean_weight"],
            "clipped_share": found["clipped_share"],
        },
        assumptions=(
            Assumption("Rows are independent, and drawn from one law per domain."),
            Assumption("Errors of outcome model and density ratio have a product that vanishes faster than n^-1/2."),
            Assumption(
                "Density ratios average 1 over the source.",
                basis="checked",
                test="mean over test rows of the source",
                statistic=off,
                limit=_KNOWN + 4.0 * found["mean_weight_se"],
                passed=off <= _KNOWN + 4.0 * found["mean_weight_se"],
            ),
        ),
        confidence=1.0 - fitted.alpha,
        does_not_cover=(
            "Subgroups that the detectors did not propose: a test that does not reject proves nothing.",
            "Explanations that were kept: they were not rejected, which is no proof.",
        ),
        library_version=_version(),
        reference=_REFERENCE,
    )


def summary(fitted: Any) -> str:
    """Return a few lines of plain text."""
    lines = []
    for family in ("outcome", "covariate"):
        result = fitted.aggregate_[family]
        lines.append(f"{family}: {_statement(fitted, result)}")
        if result.reject:
            rules = fitted.subgroup(family).rules
            lines += [f"  who: {' or '.join(rules)}"] if rules else []
            kept = _kept(fitted, family)
            lines.append(f"  explained by: {', '.join(kept) if kept else 'none of the candidates'}")
    return "\n".join(lines)


def _finding(fitted: Any, family: Family, check: str, area: str) -> Finding:
    result: TestResult = fitted.aggregate_[family]
    shown = math.isfinite(result.decay)
    common: dict[str, Any] = {
        "id": f"{check}/{family}",
        "check": check,
        "area": area,
        "statement": _statement(fitted, result),
        "value": result.decay if shown else None,
        "interval": Interval(*result.interval, 1.0 - fitted.alpha, "max-|t| multiplier bootstrap", simultaneous=True)
        if shown
        else None,
        "limit": fitted.tolerance,
        "limit_source": "tolerance",
        "n": result.n_target,
    }
    if result.reject:
        low = result.interval[0]
        severity: Severity = "fail" if low >= _FAIL else "warn"
        group = fitted.subgroup(family)
        who = f"; who: {' or '.join(group.rules)}" if group.rules else ""
        reason = f"p = {result.p_value:.2g}; the decay is at least {max(low, fitted.tolerance):.3f}{who}"
        evidence = _evidence(fitted, family, group)
        return Finding(severity=severity, reason=reason, evidence=evidence, remedies=("SHIFT",), **common)
    coarse = result.resolution + fitted.tolerance
    if coarse > _COARSE + fitted.tolerance:
        reason = (
            f"p = {result.p_value:.2g}, but with so few rows a decay of less than {coarse:.2f} in "
            f"{100 * fitted.min_prevalence:g} % of the rows would be missed more than once in five times"
        )
        return Finding(severity="note", status="inconclusive", reason=reason, **common)
    return Finding(reason=f"p = {result.p_value:.2g}; a test that does not reject proves nothing", **common)


def _statement(fitted: Any, result: TestResult) -> str:
    moved = "rose" if fitted.direction == 1 else "fell"
    if not result.reject:
        return (
            f"No subgroup was found whose {_loss_name(fitted)} {moved} by more than {fitted.tolerance:g} "
            f"{_WHAT[result.kind]}."
        )
    return (
        f"In {100 * result.prevalence:.1f} % of the rows the {_loss_name(fitted)} {moved} by {result.decay:.3f} "
        f"{_WHAT[result.kind]}."
    )


def _loss_name(fitted: Any) -> str:
    return "mean loss" if fitted.own_loss_ else _LOSS_NAMES[fitted.loss]


def _kept(fitted: Any, family: Family) -> list[str]:
    table = fitted.detailed_
    return list(table.loc[(table["kind"] == family) & table["kept"].astype(bool), "candidate"])


def _evidence(fitted: Any, family: Family, group: Subgroup) -> tuple[Table | Figure, ...]:
    sizes = Table(
        title="Who suffers",
        columns=(
            Column("domain", "text"),
            Column("rows in the subgroup", "count"),
            Column("share", "percent"),
            Column("mean loss", "number"),
            Column("95 % interval", "interval"),
        ),
        rows=tuple(
            (name, n, share, loss[0], (loss[1], loss[2]))
            for name, n, share, loss in zip(
                ("before", "now"), group.n, group.prevalence, (group.source_loss, group.target_loss), strict=True
            )
        ),
        note=_rules_note(group),
    )
    columns = Table(
        title="Which columns decide who is in it",
        columns=(Column("column", "text"), Column("rows that change sides when it is shuffled", "percent")),
        rows=tuple((str(name), float(share)) for name, share in group.importances.head(5).to_numpy()),
    )
    return sizes, columns, *_explanations(fitted, family)


def _rules_note(group: Subgroup) -> str:
    if not group.rules:
        return "No short rule describes the subgroup."
    agreement, jaccard = group.fidelity["agreement"], group.fidelity["jaccard"]
    return (
        f"In short: {' or '.join(group.rules)}. These rules agree with the subgroup on {100 * agreement:.0f} % of "
        f"rows (Jaccard index {jaccard:.2f})."
    )


def _explanations(fitted: Any, family: Family) -> tuple[Table | Figure, ...]:
    table = fitted.detailed_[fitted.detailed_["kind"] == family]
    if not len(table):
        return ()
    rows = list(table.itertuples())
    listed = Table(
        title="What explains it",
        columns=(
            Column("candidate", "text"),
            Column("decay that is left", "number"),
            Column("standard error", "number"),
            Column("p-value", "number"),
            Column("sufficient", "text"),
        ),
        rows=tuple(
            (
                row.candidate,
                _number(row.residual_decay),
                _number(row.se),
                row.p_value,
                "not rejected" if row.kept else "no",
            )
            for row in rows
        ),
        note=f"{len(rows)} candidates, each tested at level {fitted.alpha:g}, without correction; a candidate that is "
        "not rejected is a possible explanation, not a proven one.",
    )
    drawn = [row for row in rows if math.isfinite(row.residual_decay)]
    if not drawn:
        return (listed,)
    figure = Figure(
        kind="intervals",
        title="Decay that is left once these variables may change",
        x_label="",
        y_label="decay in the worst subgroup",
        series=(
            Series(
                "residual decay",
                tuple(row.candidate for row in drawn),
                tuple(row.residual_decay for row in drawn),
                tuple(row.residual_decay - 1.96 * row.se for row in drawn),
                tuple(row.residual_decay + 1.96 * row.se for row in drawn),
            ),
        ),
        lines=(Line("tolerance", fitted.tolerance),),
        alt="Candidates whose residual decay lies near or below the tolerance may explain the decay.",
    )
    return listed, figure


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _version() -> str:
    import aboveboard

    return aboveboard.__version__
