"""A fitted comparison in words: findings, a certificate and a short summary."""

from typing import Any, Final, Literal

from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Severity, Status, Table
from aboveboard.core.reference import Reference
from aboveboard.drift.dataset_classification._result import CERTAIN, LEVEL

__all__ = ["Purpose", "certificate", "findings", "summary"]

Purpose = Literal["bias", "leak", "drift"]

_NAMES: Final = {"bias": "source_identifiable", "leak": "leak_suspected", "drift": "drift_detected"}
_SIGNIFICANT: Final = 0.01
_WARN_ABOVE_CHANCE: Final = 0.10
_FAIL_CERTAIN: Final = 0.20
_SHOWN: Final = 3
_REFERENCE: Final = Reference(
    title="A Decade's Battle on Dataset Bias: Are We There Yet?",
    authors="Z. Liu, K. He",
    venue="ICLR 2025",
    year=2025,
    url="https://arxiv.org/abs/2403.08632",
)


def findings(fitted: Any, purpose: Purpose) -> list[Finding]:
    """Return one finding, with the accuracy, its interval, its controls, and the columns that tell most."""
    if purpose not in _NAMES:
        raise InputError(f"purpose is {purpose!r}", expected="'bias', 'leak' or 'drift'")
    result = fitted.result_
    severity, status, reason = _verdict(fitted, purpose)
    low, high = result.ci
    told_apart = result.p_value < _SIGNIFICANT
    sources = f"{len(result.sources)} sources" if len(result.sources) > 2 else " and ".join(result.sources)
    statement = (
        f"A classifier names the source of {100 * result.accuracy:.1f} % of held-out rows of {sources}, "
        f"where guessing gives {100 * result.chance:.1f} %"
        + (": they are not exchangeable." if told_apart else ": it cannot tell them apart.")
    )
    return [
        Finding(
            id=f"dataset_classification/{_NAMES[purpose]}",
            check="dataset_classification",
            area="drift",
            statement=statement,
            severity=severity,
            status=status,
            reason=reason,
            value=result.accuracy,
            interval=Interval(low, high, LEVEL, "Wilson"),
            limit=result.chance,
            limit_source="guessing",
            n=result.n_held_out,
            evidence=(_accuracy_table(fitted), *_rung_table(fitted), *_column_table(fitted), _figure(fitted)),
        )
    ]


def certificate(fitted: Any, data_hash: str) -> Certificate:
    """Return what the test proves, and what that rests on."""
    result = fitted.result_
    exact = (
        "the number of rows named rightly is binomial"
        if fitted.sampling == "balanced"
        else "true sources are shuffled among held-out rows, within the margins of the confusion matrix"
    )
    bound = (
        f", and with {100 * LEVEL:.0f} % confidence the total-variation distance of the two sources is at least "
        f"{result.tv_lower_bound:.4f}"
        if result.tv_lower_bound is not None
        else ""
    )
    return Certificate(
        kind="two-sample test",
        guarantee=(
            "If rows of all sources have one distribution, a p-value of alpha or less has a probability of at most "
            f"alpha ({exact}){bound}."
        ),
        parameters={
            "p_value": result.p_value,
            "accuracy": result.accuracy,
            "interval": list(result.ci),
            "chance": result.chance,
            "held_out_rows": result.n_held_out,
            "training_rows": result.n_train,
            "tv_lower_bound": result.tv_lower_bound,
        },
        assumptions=(
            Assumption("Held-out rows are independent of each other and of the training rows."),
            Assumption("The settings were chosen without a look at held-out rows."),
            *_pseudo_assumption(fitted),
        ),
        confidence=LEVEL,
        does_not_cover=(
            "Sources that differ in a way that this classifier does not see: accuracy at chance proves nothing.",
            "Rows that occur in several sources: they make sources too similar.",
            "Whether a difference does any harm.",
        ),
        subject={"data": data_hash},
        library_version=_version(),
        reference=_REFERENCE,
    )


def summary(fitted: Any) -> str:
    """Return a few lines of plain text."""
    result = fitted.result_
    low, high = result.ci
    lines = [
        f"Sources: {', '.join(result.sources)}",
        f"Accuracy on {result.n_held_out:,} held-out rows: {100 * result.accuracy:.1f} % "
        f"[{100 * low:.1f}, {100 * high:.1f}], chance {100 * result.chance:.1f} %, p = {result.p_value:.2g}",
        f"Rows that give their source away (probability above {CERTAIN:g}): {100 * result.certain_share:.1f} %",
    ]
    if result.tv_lower_bound is not None:
        lines.append(f"Total-variation distance: at least {result.tv_lower_bound:.3f}")
    if hasattr(fitted, "pseudo_"):
        mean = fitted.pseudo_["accuracy"].mean()
        lines.append(f"Random parts instead of sources: {100 * mean:.1f} % over {len(fitted.pseudo_)} repeats")
    if hasattr(fitted, "ladder_"):
        for row in _steepest(fitted).itertuples():
            what = f"{row.taken_away} {row.column}".strip()
            lines.append(f"Without {what}: {100 * row.accuracy:.1f} %")
    return "\n".join(lines)


def _verdict(fitted: Any, purpose: Purpose) -> tuple[Severity, Status, str]:
    result = fitted.result_
    failed = _pseudo_above_chance(fitted)
    if failed is not None and failed < _SIGNIFICANT:
        return (
            "note",
            "inconclusive",
            "random parts of the same rows are told apart as well, so rows are not independent: name their groups",
        )
    if result.p_value >= _SIGNIFICANT:
        return "ok", "ran", f"p = {result.p_value:.2g} is not below {_SIGNIFICANT:g}; this does not prove them equal"
    above = (result.ci[0] - result.chance) / (1.0 - result.chance)
    if result.certain_ci[0] > _FAIL_CERTAIN:
        reason = f"more than {100 * _FAIL_CERTAIN:.0f} % of rows give their source away"
        return "fail", "ran", reason
    if above > _WARN_ABOVE_CHANCE or purpose == "leak":
        reason = f"at least {100 * max(above, 0.0):.0f} % of the way from guessing to certainty"
        return "warn", "ran", reason
    return "note", "ran", "sources differ, and few rows give theirs away"


def _pseudo_above_chance(fitted: Any) -> float | None:
    """Return the smallest p-value of the control, times the number of its repeats; None where it was not run."""
    if not hasattr(fitted, "pseudo_"):
        return None
    return min(1.0, float(fitted.pseudo_["p_value"].min()) * len(fitted.pseudo_))


def _pseudo_assumption(fitted: Any) -> tuple[Assumption, ...]:
    p_value = _pseudo_above_chance(fitted)
    if p_value is None:
        return ()
    return (
        Assumption(
            "Random parts of the same rows cannot be told apart.",
            "checked",
            f"the same pipeline on {len(fitted.pseudo_)} random divisions: smallest p-value times their number",
            p_value,
            _SIGNIFICANT,
            p_value >= _SIGNIFICANT,
        ),
    )


def _steepest(fitted: Any) -> Any:
    rungs = fitted.ladder_.iloc[1:]
    return rungs.sort_values("drop", ascending=False, kind="stable").head(_SHOWN)


def _accuracy_table(fitted: Any) -> Table:
    result = fitted.result_
    rows: list[tuple[Any, ...]] = [("sources", result.accuracy, result.ci, result.n_held_out)]
    if hasattr(fitted, "pseudo_"):
        rows += [
            ("random parts", row.accuracy, (row.low, row.high), int(row.n_held_out))
            for row in fitted.pseudo_.itertuples()
        ]
    rows.append(("guessing", result.chance, None, None))
    return Table(
        title="Accuracy on held-out rows",
        columns=(
            Column("told apart", "text"),
            Column("accuracy", "percent"),
            Column("95 % interval", "interval"),
            Column("rows", "count"),
        ),
        rows=tuple(rows),
    )


def _rung_table(fitted: Any) -> tuple[Table, ...]:
    if not hasattr(fitted, "ladder_") or len(fitted.ladder_) < 2:
        return ()
    rows = tuple(
        (row.taken_away, row.column, row.accuracy, (row.low, row.high), None if row.drop != row.drop else row.drop)
        for row in _steepest(fitted).itertuples()
    )
    return (
        Table(
            title="What telling them apart rests on",
            columns=(
                Column("taken away", "text"),
                Column("column", "text"),
                Column("accuracy left", "percent"),
                Column("95 % interval", "interval"),
                Column("drop", "percent"),
            ),
            rows=rows,
            note="Trained and judged again on the same rows with one thing taken away.",
        ),
    )


def _column_table(fitted: Any) -> tuple[Table, ...]:
    if not len(fitted.importance_):
        return ()
    top = fitted.importance_.head(_SHOWN)
    rows = tuple((row.column, row.log_loss_increase, row.accuracy_drop) for row in top.itertuples())
    return (
        Table(
            title="What tells most",
            columns=(
                Column("column", "text"),
                Column("log-loss increase", "number"),
                Column("accuracy drop", "percent"),
            ),
            rows=rows,
            note="What shuffling it among held-out rows costs.",
        ),
    )


def _figure(fitted: Any) -> Figure:
    result = fitted.result_
    names, values, lows, highs = ["sources"], [result.accuracy], [result.ci[0]], [result.ci[1]]
    if hasattr(fitted, "pseudo_"):
        for number, row in enumerate(fitted.pseudo_.itertuples(), start=1):
            names.append(f"random parts {number}")
            values.append(row.accuracy)
            lows.append(row.low)
            highs.append(row.high)
    return Figure(
        kind="intervals",
        title="Named rightly, among held-out rows",
        x_label="",
        y_label="accuracy",
        series=(Series("accuracy", tuple(names), tuple(values), tuple(lows), tuple(highs)),),
        lines=(Line("guessing", result.chance),),
        alt=f"Accuracy {100 * result.accuracy:.1f} % where guessing gives {100 * result.chance:.1f} %.",
        percent=True,
    )


def _version() -> str:
    import aboveboard

    return aboveboard.__version__
