"""Phrases of certainty held against what came true: findings for a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from aboveboard._stats.intervals import clopper_pearson
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Table
from aboveboard.uncertainty.certainty_phrases._calibration import (
    CalibrationResult,
    Phrases,
    phrase_calibration,
    tallied_input,
)
from aboveboard.uncertainty.certainty_phrases._calibrator import CertaintyCalibrator
from aboveboard.uncertainty.certainty_phrases._vocabulary import PhraseVocabulary

__all__ = ["phrase_audit"]

Floats = NDArray[np.float64]

_CHECK: Final[dict[str, Any]] = {"check": "phrase_calibration", "area": "certainty"}
_LEVEL: Final = 0.95
_FEWEST: Final = 30


def phrase_audit(
    phrases: Phrases,
    outcomes: ArrayLike,
    vocabulary: PhraseVocabulary,
    *,
    groups: pd.DataFrame | None = None,
    error_limit: float = 0.10,
    error_source: str = "",
    gap_limit: float = 0.10,
    gap_source: str = "",
    min_items: int = 10,
    n_boot: int = 1000,
    n_splits: int = 20,
    random_state: int | None = None,
) -> list[Finding]:
    """Find out whether phrases of certainty are used honestly, and what to say instead.

    Parameters
    ----------
    phrases : sequence of str, length n
    outcomes : array-like of shape (n,)
        0, 1, or the probability that the label is 1.
    vocabulary : PhraseVocabulary
    groups : DataFrame of n rows, optional
        Columns by which to look at the phrases too: who speaks, or about what.
    error_limit : float
        The largest expected calibration error.
    gap_limit : float
        How far a phrase, or a group, may be from what came true.
    error_source, gap_source : str
        Who says so.
    min_items : int
        Phrases and groups with fewer items are not judged.
    n_boot, n_splits : int
        Resamples for the interval of the error, and random halves on which advice is tried out.
    random_state : int, optional

    Returns
    -------
    list of Finding
        ``phrase_calibration/error``, ``phrase_calibration/phrases``, ``phrase_calibration/advice`` and one per column
        of `groups`.

    Notes
    -----
    Intervals of phrases and groups are Clopper and Pearson's and hold at 95 % for all phrases, or all groups of a
    column, at once (Bonferroni). Items are taken for independent.
    """
    codes, y = tallied_input(phrases, outcomes, vocabulary, None)
    texts = [vocabulary.phrases[k] for k in codes]
    found = phrase_calibration(texts, y, vocabulary, n_boot=n_boot, level=_LEVEL, random_state=random_state)
    said = vocabulary.mean[codes]
    judged: dict[str, Any] = {"limit": gap_limit, "limit_source": gap_source, "min_items": min_items}
    by_phrase = _rates(codes, y, said, vocabulary.phrases)
    findings = [
        _error(found, len(y), error_limit, error_source),
        _gaps("phrases", "phrase", by_phrase.sort_values("said", ascending=False, kind="stable"), **judged),
        _advice(texts, y, vocabulary, n_splits, min_items, random_state),
    ]
    for name, column in () if groups is None else groups.items():
        labels, of_group = np.unique(np.array([str(value) for value in column], dtype=object), return_inverse=True)
        by_group = _rates(of_group, y, said, tuple(labels))
        findings.append(_gaps(f"by {name}", str(name), by_group, **judged))
    return findings


def _error(found: CalibrationResult, n: int, limit: float, source: str) -> Finding:
    assert found.ci is not None
    low, high = (float(end) for end in found.ci[["low", "high"]].to_numpy()[0])
    bad, fine = low > limit, high <= limit
    blunt = found.floor > limit
    if blunt:
        reason = (
            f"The phrases mean so much at once that their spread alone gives {100 * found.floor:.1f} points, more than "
            "the limit: they cannot be judged by this figure."
        )
    elif bad:
        reason = (
            f"That is above {100 * limit:g} points beyond doubt; the spread of the phrases explains "
            f"{100 * found.floor:.1f} of them."
        )
    elif fine:
        reason = f"At most {100 * limit:g} points."
    else:
        reason = f"There are too few items to tell on which side of {100 * limit:g} points it lies."
    return Finding(
        id="phrase_calibration/error",
        statement=(
            f"What comes true is {100 * found.ece:.1f} points from what the phrases say, on average over the scale "
            f"(expected calibration error), and the Brier score is {found.brier:.3f}."
        ),
        severity="fail" if bad and not blunt else "ok" if fine and not blunt else "note",
        status="ran" if (bad or fine) and not blunt else "inconclusive",
        reason=reason,
        value=found.ece,
        interval=Interval(low, high, level=_LEVEL, method="basic bootstrap of the items"),
        limit=limit,
        limit_source=source,
        n=n,
        evidence=(_scores(found), _curve(found.curve)),
        remedies=("CertaintyCalibrator",) if bad and not blunt else (),
        **_CHECK,
    )


def _scores(found: CalibrationResult) -> Table:
    return Table(
        "All phrases together",
        (Column("Measure", "text"), Column("Value", "number"), Column("What it is", "text")),
        (
            ("Expected calibration error", found.ece, "mean distance of what comes true from what is said"),
            ("of which spread alone", found.floor, "the same if every phrase came true as often as its mean says"),
            ("Brier score", found.brier, "mean squared distance of outcome and probability; lower is better"),
            ("Resolution", found.resolution, "variance of the rates of the phrases; 0 if they tell nothing apart"),
            ("Entropy of the use of phrases", found.entropy, "in nats; 0 if one phrase is used for everything"),
        ),
    )


def _curve(curve: pd.DataFrame) -> Figure:
    seen = curve[curve["weight"] > 1e-4]
    x = tuple(float(value) for value in seen["confidence"])
    y, low, high = (tuple(float(v) for v in seen[name]) for name in ("accuracy", "low", "high"))
    return Figure(
        "lines",
        "What is said, and what comes true",
        "probability that is said",
        "share that came true",
        (Series("observed, with a bootstrap band", x, y, low, high),),
        lines=(Line("honest", diagonal=True),),
        alt=(
            f"Reliability curve: where {100 * x[-1]:.0f} % is said, {100 * y[-1]:.0f} % come true; where "
            f"{100 * x[0]:.0f} % is said, {100 * y[0]:.0f} %."
        ),
        percent=True,
    )


def _rates(codes: NDArray[Any], y: Floats, said: Floats, names: Sequence[str]) -> pd.DataFrame:
    """Return for each name that occurs how often, what is said on average, and how often it came true."""
    K = len(names)
    n = np.bincount(codes, minlength=K)
    with np.errstate(invalid="ignore"):
        table = {
            "n": n,
            "s": np.bincount(codes, weights=y, minlength=K),
            "said": np.bincount(codes, weights=said, minlength=K) / n,
        }
    return pd.DataFrame(table, index=pd.Index(list(names), dtype=object)).loc[n > 0]


def _gaps(name: str, what: str, rates: pd.DataFrame, *, limit: float, limit_source: str, min_items: int) -> Finding:
    """Hold what is said by each phrase, or in each group, against what came true."""
    finding = {"id": f"phrase_calibration/{name}", "limit": limit, "limit_source": limit_source, **_CHECK}
    n, s, said = (rates[column].to_numpy(dtype=np.float64) for column in ("n", "s", "said"))
    enough = n >= min_items
    if not enough.any():
        return Finding(
            statement=f"No {what} has {min_items} items, so none can be judged.",
            severity="note",
            status="inconclusive",
            reason="There are too few items.",
            n=int(n.sum()),
            **finding,
        )
    low, high = clopper_pearson(s, n, level=1.0 - (1.0 - _LEVEL) / int(enough.sum()))
    gap_low, gap_high = np.maximum(np.maximum(low - said, said - high), 0.0), np.maximum(said - low, high - said)
    bad = enough & (gap_low > limit)
    fine = bool(enough.all() and (gap_high <= limit).all())
    unsure = int((enough & ~bad & (gap_high > limit)).sum() + (~enough).sum())
    worst = int(np.argmax(np.where(enough, gap_low + 1e-9 * np.abs(s / n - said), -1.0)))
    label = str(rates.index[worst])
    rate = s[worst] / n[worst]
    where = f'"{label}" is taken for' if what == "phrase" else f"Where {what} is {label}, the phrases say"
    return Finding(
        statement=(
            f"{where} {100 * said[worst]:.0f} % and came true in {100 * rate:.1f} % of {int(n[worst]):,} uses"
            + (f"; {int(bad.sum()):,} of {int(enough.sum()):,} are off like that." if bad.sum() > 1 else ".")
        ),
        severity="fail" if bad.any() else "ok" if fine else "note",
        status="ran" if bad.any() or fine else "inconclusive",
        reason=(
            f"More than {100 * limit:g} points apart, also at the nearer end of the interval."
            if bad.any()
            else f"None is more than {100 * limit:g} points off."
            if fine
            else f"For {unsure:,} of {len(n):,} there are too few items to tell whether they are more than "
            f"{100 * limit:g} points off."
        ),
        value=float(abs(rate - said[worst])),
        interval=Interval(
            float(gap_low[worst]), float(gap_high[worst]), method="Clopper-Pearson", simultaneous=bool(enough.sum() > 1)
        ),
        n=int(n[worst]),
        evidence=_evidence(what, rates, s / n, low, high, enough),
        remedies=("CertaintyCalibrator",) if bad.any() else (),
        **finding,
    )


def _evidence(
    what: str, rates: pd.DataFrame, rate: Floats, low: Floats, high: Floats, enough: NDArray[np.bool_]
) -> tuple[Table, Figure]:
    names, said = [str(label) for label in rates.index], rates["said"].to_numpy(dtype=np.float64)
    table = Table(
        f"By {what}",
        (
            Column(what.capitalize() if what == "phrase" else what, "text"),
            Column("n", "count"),
            Column("Says", "percent"),
            Column("Came true", "percent"),
            Column("Interval", "interval"),
        ),
        tuple(
            (
                names[i],
                int(rates["n"].iloc[i]),
                float(rates["said"].iloc[i]),
                float(rate[i]),
                (float(low[i]), float(high[i])),
            )
            for i in range(len(names))
        ),
        note="Intervals hold at 95 % for all that are judged at once.",
    )
    shown = [i for i in range(len(names)) if enough[i]]
    x = tuple(names[i] for i in shown)
    figure = Figure(
        "intervals",
        "What is said, and what came true",
        what,
        "probability, and share that came true",
        (
            Series(
                "came true",
                x,
                tuple(float(rate[i]) for i in shown),
                tuple(float(low[i]) for i in shown),
                tuple(float(high[i]) for i in shown),
            ),
            Series("what is said", x, tuple(float(said[i]) for i in shown)),
        ),
        alt=f"Share that came true with its interval, beside what is said, for {len(shown)} values of {what}.",
        percent=True,
    )
    return table, figure


def _advice(
    phrases: list[str],
    y: Floats,
    vocabulary: PhraseVocabulary,
    n_splits: int,
    min_items: int,
    random_state: int | None,
) -> Finding:
    """Try restated phrases on held-out halves, then advise from all items."""
    identity: dict[str, Any] = {"id": "phrase_calibration/advice", "n": len(y), **_CHECK}
    if len(y) < 2 * _FEWEST:
        return Finding(
            statement=f"{len(y)} items are too few to try out other phrases.",
            severity="note",
            status="inconclusive",
            reason=f"Halves of {_FEWEST} items are needed.",
            **identity,
        )
    before, after = _held_out(phrases, y, vocabulary, n_splits, random_state)
    helps = bool(after[0] < before[0] and after[1] <= before[1])
    calibrator = CertaintyCalibrator(vocabulary, eps=0.0, deterministic=True).fit(phrases, y)
    advice = calibrator.advice()
    uses = pd.Series(phrases, dtype=object).value_counts()
    rows = [
        (str(say), str(instead), int(uses[instead]), float(gain))
        for say, instead, gain in zip(advice["say"], advice["instead_of"], advice["gain"])
        if uses[instead] >= min_items
    ]
    if not helps or not rows:
        return Finding(
            statement="No other choice of these phrases comes out better on items that it was not made from.",
            reason=(
                f"On held-out halves the error goes from {100 * before[0]:.1f} to {100 * after[0]:.1f} points, the "
                f"Brier score from {before[1]:.3f} to {after[1]:.3f}."
            ),
            **identity,
        )
    say, instead = rows[0][:2]
    return Finding(
        statement=(
            f'Saying "{say}" instead of "{instead}", and so on, would bring the error from {100 * before[0]:.1f} to '
            f"{100 * after[0]:.1f} points and the Brier score from {before[1]:.3f} to {after[1]:.3f} on items that the "
            "choice was not made from."
        ),
        severity="note",
        reason=f"Mean of {n_splits} random halves; the advice below is made from all items.",
        evidence=(
            Table(
                "What to say instead",
                (
                    Column("Say", "text"),
                    Column("Instead of", "text"),
                    Column("n", "count"),
                    Column("Error falls by", "percent", help="If all its uses were restated, and nothing else."),
                ),
                tuple(rows),
                note="For these speakers and subjects. If all only becomes vague, the Brier score shows it.",
            ),
        ),
        remedies=("CertaintyCalibrator",),
        **identity,
    )


def _held_out(
    phrases: list[str], y: Floats, vocabulary: PhraseVocabulary, n_splits: int, random_state: int | None
) -> tuple[Floats, Floats]:
    """Return mean error and Brier score on held-out halves, before and after."""
    rng, given = np.random.default_rng(random_state), np.array(phrases, dtype=object)
    scores = []
    for _ in range(n_splits):
        order = rng.permutation(len(y))
        first, second = order[: len(y) // 2], order[len(y) // 2 :]
        calibrator = CertaintyCalibrator(vocabulary, eps=0.0, deterministic=True).fit(given[first], y[first])
        scores.append(calibrator.evaluate(given[second], y[second])[["ece", "brier"]].to_numpy())
    before, after = np.mean(scores, axis=0)
    return before, after
