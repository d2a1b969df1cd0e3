"""A linear score held against applicants who game it together: findings for a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.collective.strategic_externalities._people import (
    LEVEL,
    People,
    Played,
    dearer,
    default_game,
    padded_rounds,
    played_by,
    read_people,
)
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.collective.strategic_externalities._rounds import log_loss
from aboveboard.core import InputError
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["manipulation_audit"]

_COMMON: Final[dict[str, Any]] = {"check": "gaming", "area": "strategic"}
_FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
_MOST_FEATURES: Final = 12


def manipulation_audit(
    estimator: Any,
    X: ArrayLike,
    y: ArrayLike,
    game: ManipulationGame | None = None,
    *,
    n_agents: int = 10,
    n_shuffles: int = 5,
    offset: ArrayLike | None = None,
    cut: float = 0.0,
    feature_names: Sequence[str] | None = None,
    sensitive_features: Mapping[str, ArrayLike] | None = None,
    sample_weight: ArrayLike | None = None,
    clusters: ArrayLike | None = None,
    wanted: str = "positive",
    other: str = "negative",
    units: tuple[str, str] = ("a move of 1", "units of the score"),
    limit: float = 0.02,
    limit_source: str = "",
    group_limit: float = 0.05,
    group_limit_source: str = "",
    min_rows: int = 100,
    random_state: int | None = None,
) -> list[Finding]:
    """Tell how far a linear score falls when applicants polish their features together, and whom that helps.

    Parameters
    ----------
    estimator : object with ``coef_`` and ``intercept_``
        A fitted linear classifier of two classes, such as `LogisticRegression`; with ``classes_``, y holds its labels.
    X : array-like of shape (n, d)
        True features, numbers. Where an `offset` was given they may be missing: what is missing stays so.
    y : array-like of shape (n,)
        Labels, or 0 and 1.
    game : ManipulationGame, optional
        What moves cost, and which are possible; without a callable as its externality. Default: a move of d standard
        deviations costs d^2, in units of the score; among ten applicants crowding adds about a third; features stay
        within the range that was seen.
    n_agents : int
        How many applicants meet in a round.
    n_shuffles : int
        How many times the rows are shuffled and cut into rounds; figures are means over them.
    offset : array-like of shape (n,), optional
        What else the score of each row holds.
    cut : float
        The score above which a row is judged positive.
    feature_names : sequence of str, optional
    sensitive_features : mapping of name to labels of shape (n,), optional
        For each, who gains.
    sample_weight, clusters : array-like of shape (n,), optional
        Means are weighted; intervals are for drawing clusters. Rounds are drawn from the rows as they are.
    wanted, other : str
        What the classes are called: applicants want to be judged the first.
    units : (str, str)
        What a move of length 1 is called, and what it is paid in.
    limit, group_limit : float
        Of the loss in accuracy, and of how much more one group's share of positive answers may rise than another's.
    limit_source, group_limit_source : str
    min_rows : int
        Nothing is said of fewer rows, nor of a group with fewer.
    random_state : int, optional

    Returns
    -------
    list of Finding
        ``gaming/accuracy``, and ``gaming/groups/<name>`` for each sensitive feature.

    Raises
    ------
    InputError
        For an estimator without ``coef_``, or one of several classes; features outside the bounds, missing or infinite
        values, and lengths that differ.

    Notes
    -----
    Everybody is taken to know the score, all costs and all features, and to move as in the game's only equilibrium.
    Intervals are for the applicants that were drawn, at the stated costs; that the costs are right is assumed, and a
    table shows what others would do. O(n_shuffles n d log d).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from aboveboard.collective import manipulation_audit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X[:, 0] + X[:, 1] + rng.normal(size=2000) > 0
    >>> (finding,) = manipulation_audit(LogisticRegression().fit(X, y), X, y, random_state=0)
    >>> finding.severity, finding.value > 0.02
    ('warn', True)
    """
    people = read_people(estimator, X, y, offset, sample_weight, clusters, cut)
    names = [f"feature {k}" for k in range(people.d)] if feature_names is None else [str(n) for n in feature_names]
    if len(names) != people.d:
        raise InputError(f"{len(names)} feature names were given", expected=f"{people.d}, one per column of X")
    if callable(getattr(game, "externality", None)):
        raise InputError("the externality is a function", expected="'congestion', 'proportional' or None")
    if not all(isinstance(count, int | np.integer) and count >= 1 for count in (n_agents, n_shuffles)):
        raise InputError(f"n_agents is {n_agents!r} and n_shuffles {n_shuffles!r}", expected="whole numbers, 1 or more")
    least = max(min_rows, n_agents)
    if len(people) < least:
        return [
            Finding(
                id="gaming/accuracy",
                statement="It cannot be told how far the model falls when applicants game it.",
                severity="note",
                status="inconclusive",
                reason=f"At least {least:,} rows are needed.",
                **_COMMON,
            )
        ]
    rng = np.random.default_rng(random_state)
    shuffles = [padded_rounds(len(people), n_agents, rng) for _ in range(n_shuffles)]
    game = default_game(people.X) if game is None else game
    study = _Study(
        people=people,
        game=game,
        n_agents=n_agents,
        by_factor={factor: played_by(people, dearer(game, factor), shuffles) for factor in _FACTORS},
        away=played_by(people, game, shuffles, towards=-1.0),
        names=names,
        wanted=wanted,
        other=other,
        units=units,
    )
    findings = [_accuracy(study, limit, limit_source)]
    for name, labels in (sensitive_features or {}).items():
        findings.append(_groups(study, str(name), np.asarray(labels), group_limit, group_limit_source, least))
    return findings


@dataclass(frozen=True, kw_only=True)
class _Study:
    """What was played, and what it is called.

    `by_factor` has the outcome by what moves cost, in multiples of the game's costs; `away` is that of applicants who
    want the other class.
    """

    people: People
    game: ManipulationGame
    n_agents: int
    by_factor: Mapping[float, Played]
    away: Played
    names: Sequence[str]
    wanted: str
    other: str
    units: tuple[str, str]

    @property
    def played(self) -> Played:
        return self.by_factor[1.0]

    @property
    def judged(self) -> Floats:
        """1.0 where an applicant is judged as he wants before anybody moves."""
        return (self.people.score > self.people.cut).astype(np.float64)

    @property
    def right(self) -> Floats:
        return np.asarray(self.judged == self.people.truth, dtype=np.float64)

    def price(self, factor: float = 1.0) -> float:
        """Return what a move of length 1 costs, in units of the score."""
        return factor * self.game.alpha / self.game.gain


def _accuracy(study: _Study, limit: float, limit_source: str) -> Finding:
    people, played = study.people, study.played
    lost, error = people.mean(study.right - played.right)
    half = people.critical() * error
    interval = Interval(lost - half, lost + half, LEVEL, "normal, paired") if np.isfinite(half) else None
    beyond = interval is not None and interval.low > limit
    within = interval is not None and interval.high <= limit
    clean, gamed, length = (people.mean(part)[0] for part in (study.right, played.right, played.length))
    points = f"{100 * limit:g} points of accuracy"
    verdict = (
        f"The whole interval of the loss lies above {points}."
        if beyond
        else f"The whole interval of the loss lies below {points}."
        if within
        else f"The interval of the loss includes {points}: there are too few rows to tell."
    )
    cheapest = min(study.by_factor)
    cheap = people.mean(study.by_factor[cheapest].right)[0]
    move, currency = study.units
    return Finding(
        id="gaming/accuracy",
        statement=(
            f"When applicants polish their features together to be judged {study.wanted}, accuracy goes from "
            f"{100 * clean:.1f} % to {100 * gamed:.1f} %. {move.capitalize()} is taken to cost {study.price():.3g} "
            f"{currency}, and applicants go {length:.2g} times as far on average."
        ),
        severity="warn" if beyond else "ok" if within else "note",
        status="ran" if beyond or within else "inconclusive",
        reason=(
            f"{verdict} At a cost of {study.price(cheapest):.3g}, accuracy would be {100 * cheap:.1f} %. Costs are "
            "assumed, and so is that everybody knows the score, all costs and all features."
        ),
        value=lost,
        interval=interval,
        limit=limit,
        limit_source=limit_source,
        n=len(people),
        evidence=(_cost_table(study), _feature_table(study), _cost_figure(study)),
        remedies=("StrategicEquilibriumClassifier",) if beyond else (),
        **_COMMON,
    )


def _cost_table(study: _Study) -> Table:
    people, game, n = study.people, study.game, study.n_agents

    def row(name: str, price: float | None, played: Played) -> tuple[Any, ...]:
        figures = (played.right, played.loss, played.positive, played.length)
        return (name, price, *(people.mean(part)[0] for part in figures))

    before = replace(
        study.played,
        right=study.right,
        loss=log_loss(people.score, people.truth),
        positive=study.judged,
        length=np.zeros(len(people)),
    )
    rows = [row("nobody moves", None, before)]
    for factor, played in sorted(study.by_factor.items(), reverse=True):
        rows.append(row(f"to be judged {study.wanted}", study.price(factor), played))
    rows.append(row(f"to be judged {study.other}", study.price(), study.away))
    crowding = (
        "nobody is in anybody's way"
        if game.externality is None
        else f"rounds of {n} applicants, who make it dearer for each other "
        f"({game.externality}, {game.beta / game.alpha:.3g} times the cost of a move for each pair)"
    )
    distance = "d" if game.cost == "l2" else "d squared"
    move, currency = study.units
    return Table(
        "How far it falls, by what a move costs",
        (
            Column("applicants move", "text"),
            Column(f"cost of {move}", "number", f"In {currency}."),
            Column("accuracy", "percent"),
            Column("log loss"),
            Column(f"judged {study.wanted}", "percent"),
            Column("mean move", "number", f"In multiples of {move}."),
        ),
        tuple(rows),
        note=f"A move d times as long as {move} costs {distance} times as much; {crowding}.",
    )


def _feature_table(study: _Study) -> Table:
    people, played, names = study.people, study.played, study.names
    movable = study.game._movable(people.d) & (people.coef != 0) & (people.spread > 0)
    order = [k for k in np.argsort(-np.abs(played.gains), kind="stable") if movable[k]]
    rows = tuple(
        (
            names[k],
            float(people.coef[k] * people.spread[k]),
            float(played.moves[k]),
            float(played.gains[k]),
            float(played.stopped[k]),
        )
        for k in order[:_MOST_FEATURES]
    )
    held = [names[k] for k in range(people.d) if not movable[k]]
    more = f"{len(order) - len(rows)} more features move less." if len(order) > len(rows) else ""
    note = f"Taken as fixed, or without effect: {_listed(held)}." if held else ""
    return Table(
        "Which features move",
        (
            Column("feature", "text"),
            Column("score per standard deviation"),
            Column("mean move", "number", "In standard deviations, upwards or downwards."),
            Column("mean gain in score"),
            Column("met a bound", "percent"),
        ),
        rows,
        note=f"{more} {note}".strip(),
    )


def _cost_figure(study: _Study) -> Figure:
    people = study.people
    clean = people.mean(study.right)[0]
    means = {study.price(factor): people.mean(played.right) for factor, played in sorted(study.by_factor.items())}
    half = {cost: people.critical() * (error if np.isfinite(error) else 0.0) for cost, (_, error) in means.items()}
    cheapest, dearest = min(means), max(means)
    move, currency = study.units
    return Figure(
        "lines",
        f"Accuracy when applicants move to be judged {study.wanted}",
        f"cost of {move}, in {currency}",
        "accuracy",
        (
            Series(
                "in equilibrium",
                tuple(means),
                tuple(value for value, _ in means.values()),
                tuple(max(value - half[cost], 0.0) for cost, (value, _) in means.items()),
                tuple(min(value + half[cost], 1.0) for cost, (value, _) in means.items()),
            ),
        ),
        lines=(Line("nobody moves", clean),),
        alt=(
            f"Accuracy is {100 * means[cheapest][0]:.1f} % where {move} costs {cheapest:.3g}, "
            f"{100 * means[dearest][0]:.1f} % where it costs {dearest:.3g}, and {100 * clean:.1f} % where nobody moves."
        ),
        percent=True,
    )


def _groups(study: _Study, name: str, labels: NDArray[Any], limit: float, limit_source: str, least: int) -> Finding:
    people, played, wanted = study.people, study.played, study.wanted
    common: dict[str, Any] = {"id": f"gaming/groups/{name}", "limit": limit, "limit_source": limit_source, **_COMMON}
    if labels.shape != (len(people),):
        raise InputError(f"the labels of {name!r} have shape {labels.shape}", expected=f"({len(people)},)")
    text = np.array([str(label) for label in labels.tolist()], dtype=object)
    members = {group: text == group for group in sorted(set(text))}
    counts = {group: int((among & (people.weight > 0)).sum()) for group, among in members.items()}
    kept = [group for group, count in counts.items() if count >= least]
    small = [group for group, count in counts.items() if count < least]
    left = f"Left out, with fewer than {least:,} rows: {_listed(small)}." if small else ""
    if len(kept) < 2:
        return Finding(
            statement=f"{name}: there are not two groups with enough rows to compare who gains.",
            severity="note",
            status="inconclusive",
            reason=left,
            **common,
        )
    rise = {group: people.mean(played.positive - study.judged, members[group]) for group in kept}
    most, fewest = max(kept, key=lambda g: rise[g][0]), min(kept, key=lambda g: rise[g][0])
    value = rise[most][0] - rise[fewest][0]
    pairs = len(kept) * (len(kept) - 1) // 2
    half = people.critical(1 - (1 - LEVEL) / pairs) * float(np.hypot(rise[most][1], rise[fewest][1]))
    interval = Interval(max(value - half, 0.0), value + half, LEVEL, "normal, Bonferroni", simultaneous=True)
    beyond, within = interval.low > limit, interval.high <= limit
    bound = f"{100 * limit:g} points"
    verdict = (
        f"The whole interval of the difference lies {'above' if beyond else 'below'} {bound}."
        if beyond or within
        else f"The interval of the difference includes {bound}: there are too few rows to tell."
    )
    columns = (study.judged, played.positive, played.positive - study.judged, played.length, played.right - study.right)
    return Finding(
        statement=(
            f"{name}: polishing raises the share judged {wanted} most for {most} ({100 * rise[most][0]:+.1f} points) "
            f"and least for {fewest} ({100 * rise[fewest][0]:+.1f})."
        ),
        severity="ok" if within else "note",
        status="ran" if beyond or within else "inconclusive",
        reason=f"{verdict} Moves are taken to cost every group the same.",
        value=value,
        interval=interval,
        n=sum(counts[group] for group in kept),
        evidence=(
            Table(
                f"Who gains, by {name}",
                (
                    Column("group", "text"),
                    Column("n", "count"),
                    Column(f"judged {wanted} before", "percent"),
                    Column("and after", "percent"),
                    Column("rise", "percent"),
                    Column("mean move", "number", f"In multiples of {study.units[0]}."),
                    Column("change in accuracy", "percent"),
                ),
                tuple(
                    (group, counts[group], *(people.mean(part, members[group])[0] for part in columns))
                    for group in kept
                ),
                note=left,
            ),
        ),
        **common,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
