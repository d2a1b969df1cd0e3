"""A linear score held against applicants who game it together: findings for a report."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from aboveboard.collective.strategic_externalities._crowd import Crowd
from aboveboard.collective.strategic_externalities._game import ManipulationGame
from aboveboard.collective.strategic_externalities._replies import Floats
from aboveboard.collective.strategic_externalities._rounds import log_loss
from aboveboard.core import InputError
from aboveboard.core.finding import Column, Figure, Finding, Interval, Line, Series, Table

__all__ = ["manipulation_audit"]

_COMMON: Final[dict[str, Any]] = {"check": "gaming", "area": "strategic"}
_FACTORS: Final = (0.25, 0.5, 1.0, 2.0, 4.0)
_MOST_FEATURES: Final = 12
_LEVEL: Final = 0.95


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
    wanted: str = "",
    other: str = "",
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
        What moves cost, and which are possible. Default: a move of d standard deviations costs d^2, in units of the
        score; among ten applicants crowding adds about a third; features stay within the range that was seen.
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
    people = _people(estimator, X, y, offset, sample_weight, clusters, cut)
    names = [f"feature {k}" for k in range(people.d)] if feature_names is None else [str(n) for n in feature_names]
    if len(names) != people.d:
        raise InputError(f"{len(names)} feature names were given", expected=f"{people.d}, one per column of X")
    game = _default_game(people.X) if game is None else game
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
    shuffles = [_padded_rounds(len(people), n_agents, rng) for _ in range(n_shuffles)]
    wanted, other = wanted or "positive", other or "negative"
    by_factor = {factor: _played(people, _dearer(game, factor), shuffles) for factor in _FACTORS}
    away = _played(people, game, shuffles, towards=-1.0)
    played = by_factor[1.0]
    findings = [_accuracy(people, played, by_factor, away, game, names, n_agents, wanted, other, limit, limit_source)]
    for name, labels in (sensitive_features or {}).items():
        findings.append(
            _groups(people, played, str(name), np.asarray(labels), wanted, group_limit, group_limit_source, least)
        )
    return findings


# --- who they are, and what they do -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _People:
    """Applicants: features (those that are missing are 0 here), scores, outcomes and how they were drawn."""

    X: Floats
    missing: NDArray[np.bool_]
    coef: Floats
    score: Floats
    truth: Floats
    weight: Floats
    cluster: NDArray[Any] | None
    cut: float

    def __len__(self) -> int:
        return len(self.score)

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @cached_property
    def spread(self) -> Floats:
        spread: Floats = np.nanstd(np.where(self.missing, np.nan, self.X), axis=0)
        return spread

    def mean(self, values: Floats, among: NDArray[np.bool_] | None = None) -> tuple[float, float]:
        """Return a weighted mean and its standard error, NaN for a single row (or cluster)."""
        weight = self.weight if among is None else self.weight * among
        total = float(weight.sum())
        value = float(weight @ values) / total
        parts: Floats = weight * (values - value)
        if self.cluster is not None:
            parts = np.asarray(np.bincount(self.cluster, weights=parts), dtype=np.float64)
            units = int((np.bincount(self.cluster, weights=weight) > 0).sum())
        else:
            units = int((weight > 0).sum())
        if units < 2:
            return value, float("nan")
        return value, float(np.sqrt(units / (units - 1) * (parts**2).sum())) / total

    def critical(self, level: float = _LEVEL) -> float:
        if self.cluster is None:
            return float(stats.norm.ppf(0.5 + level / 2))
        return float(stats.t.ppf(0.5 + level / 2, max(int(self.cluster.max()), 1)))


@dataclass(frozen=True)
class _Played:
    """For each applicant, a mean over rounds: right answer, log loss, positive answer, length of the move.

    `moves` and `gains` are means over applicants, per feature: of the absolute move in standard deviations, and of what
    it adds to the score; `stopped` is the share of those who met the bound.
    """

    right: Floats
    loss: Floats
    positive: Floats
    length: Floats
    moves: Floats
    gains: Floats
    stopped: Floats


def _people(estimator: Any, X: Any, y: Any, offset: Any, sample_weight: Any, clusters: Any, cut: float) -> _People:
    coef, intercept = getattr(estimator, "coef_", None), getattr(estimator, "intercept_", None)
    if coef is None or intercept is None:
        raise InputError(
            f"{type(estimator).__name__} has no coef_ and intercept_",
            expected="a fitted linear classifier",
            remedy="Gaming is only predicted for scores that are linear in the features",
        )
    coef, intercept = np.asarray(coef, dtype=np.float64), np.ravel(np.asarray(intercept, dtype=np.float64))
    if coef.ndim == 2 and len(coef) == 1:
        coef = coef[0]
    if coef.ndim != 1 or len(intercept) != 1:
        raise InputError(f"coef_ has shape {coef.shape}", expected="a score of two classes")
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"X is not made of numbers ({error})") from error
    if rows.ndim != 2 or rows.shape[1] != len(coef):
        raise InputError(f"X has shape {rows.shape}", expected=f"(n, {len(coef)}), a column per weight")
    missing = np.isnan(rows)
    if np.isinf(rows).any() or (offset is None and missing.any()):
        raise InputError("X holds values that are missing or infinite", expected="numbers")
    rows = np.where(missing, 0.0, rows)
    n = len(rows)
    label = np.asarray(y)
    classes = getattr(estimator, "classes_", None)
    if classes is not None and len(classes) == 2 and np.isin(label, classes).all():
        truth = (label == classes[1]).astype(np.float64)
    elif np.isin(label, (0, 1)).all():
        truth = label.astype(np.float64)
    else:
        raise InputError("y holds labels that the estimator does not know", expected="its classes_, or 0 and 1")
    extra = np.zeros(n) if offset is None else np.asarray(offset, dtype=np.float64)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    cluster = None if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1].ravel()
    for name, values in (("y", truth), ("offset", extra), ("sample_weight", weight), ("clusters", cluster)):
        if values is not None and (values.shape != (n,) or not np.isfinite(values).all()):
            raise InputError(f"{name} has shape {values.shape}", expected=f"({n},), all finite")
    if (weight < 0).any() or not weight.any():
        raise InputError("sample_weight is negative, or 0 for all", expected="weights at or above 0")
    return _People(rows, missing, coef, rows @ coef + intercept[0] + extra, truth, weight, cluster, cut)


def _default_game(X: Floats) -> ManipulationGame:
    spread = X.std(axis=0)
    return ManipulationGame(
        cost="squared_l2",
        alpha=1.0,
        externality="congestion",
        beta=0.01,
        bounds=(X.min(axis=0), X.max(axis=0)),
        cost_weights=(1.0 / np.where(spread > 0, spread, 1.0)).tolist(),
        manipulable=(spread > 0).tolist(),
    )


def _dearer(game: ManipulationGame, factor: float) -> ManipulationGame:
    return replace(game, alpha=factor * game.alpha, beta=factor * game.beta)


def _padded_rounds(n: int, n_agents: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return all rows, shuffled and cut into rounds; others fill up the last one."""
    order = rng.permutation(n)
    return np.concatenate([order, order[: -n % n_agents]]).reshape(-1, n_agents)


def _played(
    people: _People, game: ManipulationGame, shuffles: Sequence[NDArray[np.intp]], towards: float = 1.0
) -> _Played:
    """Play all rounds; with `towards` -1 everybody wants a low score."""
    n = len(people)
    low, high = game._limits(people.d)
    inside = np.where(people.missing, np.clip(0.0, low, high), people.X)
    game._read(inside, people.coef)
    unit = np.where(people.spread > 0, people.spread, 1.0) * game._scale(people.d)
    sums, times = np.zeros((4, n)), np.zeros(n)
    moved, gained, stopped = np.zeros((3, people.d))
    total = sum(float(people.weight[index].sum()) for index in shuffles)
    for index in shuffles:
        flat = index.ravel()
        crowd = _crowd(game, inside, people, index, towards)
        for at, part in crowd.parts():
            rows = flat[at]
            moves, at_bound, _ = part.equilibrium()
            if not np.isfinite(moves).all():
                raise InputError(
                    "nothing stops an applicant from moving ever further", expected="bounds, or a larger alpha"
                )
            gains = towards * moves * part.pull / game.gain
            score = people.score[rows] + gains.sum(axis=1)
            judged = score > people.cut
            truth, weight = people.truth[rows], people.weight[rows]
            measures = (judged == truth, log_loss(score, truth), judged, np.linalg.norm(moves, axis=1))
            for k, measure in enumerate(measures):
                sums[k] += np.bincount(rows, weights=measure, minlength=n)
            times += np.bincount(rows, minlength=n)
            moved += weight @ np.abs(moves) / unit
            gained += weight @ gains
            stopped += weight @ at_bound
    right, loss, positive, length = sums / times
    return _Played(right, loss, positive, length, moved / total, gained / total, stopped / total)


def _crowd(game: ManipulationGame, inside: Floats, people: _People, index: NDArray[np.intp], towards: float) -> Crowd:
    """Return the rounds as games in which nobody moves what is missing."""
    game._refuse_many_equilibria(index.shape[1], np.ones(index.shape))
    crowd = game._crowd(inside[index], towards * people.coef, np.ones(index.shape))
    held = people.missing[index.ravel()]
    return replace(crowd, pull=np.where(held, 0.0, crowd.pull)) if held.any() else crowd


# --- what is said -----------------------------------------------------------------------------------------------------


def _accuracy(
    people: _People,
    played: _Played,
    by_factor: Mapping[float, _Played],
    away: _Played,
    game: ManipulationGame,
    names: Sequence[str],
    n_agents: int,
    wanted: str,
    other: str,
    limit: float,
    limit_source: str,
) -> Finding:
    before = ((people.score > people.cut) == people.truth).astype(np.float64)
    lost, error = people.mean(before - played.right)
    half = people.critical() * error
    interval = Interval(lost - half, lost + half, _LEVEL, "normal, paired") if np.isfinite(half) else None
    beyond = interval is not None and interval.low > limit
    within = interval is not None and interval.high <= limit
    clean, gamed = people.mean(before)[0], people.mean(played.right)[0]
    length = people.mean(played.length)[0]
    statement = (
        f"When applicants polish their features together to be judged {wanted}, accuracy goes from {100 * clean:.1f} % "
        f"to {100 * gamed:.1f} %; they move by {length:.2g} on average, where a move of 1 costs {_price(game)}."
    )
    points = f"{100 * limit:g} points of accuracy"
    verdict = (
        f"The whole interval of the loss lies above {points}."
        if beyond
        else f"The whole interval of the loss lies below {points}."
        if within
        else f"The interval of the loss includes {points}: there are too few rows to tell."
    )
    return Finding(
        id="gaming/accuracy",
        statement=statement,
        severity="warn" if beyond else "ok" if within else "note",
        status="ran" if beyond or within else "inconclusive",
        reason=(
            f"{verdict} Costs are assumed, and so is that everybody knows the score, all costs and all features; the "
            "table shows other costs."
        ),
        value=lost,
        interval=interval,
        limit=limit,
        limit_source=limit_source,
        n=len(people),
        evidence=(
            _cost_table(people, before, by_factor, away, game, n_agents, wanted, other),
            _feature_table(played, people, game, names),
            _cost_figure(people, clean, by_factor, game, wanted),
        ),
        remedies=("StrategicEquilibriumClassifier",) if beyond else (),
        **_COMMON,
    )


def _price(game: ManipulationGame) -> str:
    return f"{game.alpha / game.gain:.3g} of the score"


def _cost_table(
    people: _People,
    before: Floats,
    by_factor: Mapping[float, _Played],
    away: _Played,
    game: ManipulationGame,
    n_agents: int,
    wanted: str,
    other: str,
) -> Table:
    clean = (people.score > people.cut).astype(np.float64)

    def row(name: str, price: float | None, right: Floats, loss: Floats, positive: Floats, length: Floats) -> Any:
        return (name, price, *(people.mean(part)[0] for part in (right, loss, positive, length)))

    rows = [row("nobody moves", None, before, log_loss(people.score, people.truth), clean, np.zeros(len(clean)))]
    for factor, played in sorted(by_factor.items(), reverse=True):
        price = factor * game.alpha / game.gain
        rows.append(row(f"to be judged {wanted}", price, played.right, played.loss, played.positive, played.length))
    rows.append(row(f"to be judged {other}", game.alpha / game.gain, away.right, away.loss, away.positive, away.length))
    crowding = (
        "nobody is in anybody's way"
        if game.externality is None
        else f"rounds of {n_agents} applicants, with an externality of your own"
        if callable(game.externality)
        else f"rounds of {n_agents} applicants, who make it dearer for each other "
        f"({game.externality}, {game.beta / game.alpha:.3g} times the cost of a move)"
    )
    distance = "d" if game.cost == "l2" else "d squared"
    return Table(
        "How far it falls, by what a move costs",
        (
            Column("applicants move", "text"),
            Column("cost of a move of 1", "number", "In units of the score (log-odds for a logistic model)."),
            Column("accuracy", "percent"),
            Column("log loss"),
            Column(f"judged {wanted}", "percent"),
            Column("mean move"),
        ),
        tuple(rows),
        note=f"A move of d costs {distance} times the cost of a move of 1; {crowding}.",
    )


def _feature_table(played: _Played, people: _People, game: ManipulationGame, names: Sequence[str]) -> Table:
    movable = game._movable(people.d) & (people.coef != 0) & (people.spread > 0)
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
    note = (
        f"Taken as fixed, or without effect: {', '.join(held[:8])}{' and others' if len(held) > 8 else ''}."
        if held
        else ""
    )
    more = f"{len(order) - len(rows)} more features move less." if len(order) > len(rows) else ""
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


def _cost_figure(
    people: _People, clean: float, by_factor: Mapping[float, _Played], game: ManipulationGame, wanted: str
) -> Figure:
    means = {factor * game.alpha / game.gain: people.mean(played.right) for factor, played in sorted(by_factor.items())}
    half = {cost: people.critical() * (error if np.isfinite(error) else 0.0) for cost, (_, error) in means.items()}
    cheapest, dearest = min(means), max(means)
    return Figure(
        "lines",
        f"Accuracy when applicants move to be judged {wanted}",
        "cost of a move of 1, in units of the score",
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
            f"Accuracy is {100 * means[cheapest][0]:.1f} % where a move of 1 costs {cheapest:.3g}, "
            f"{100 * means[dearest][0]:.1f} % where it costs {dearest:.3g}, and {100 * clean:.1f} % where nobody moves."
        ),
        percent=True,
    )


def _groups(
    people: _People,
    played: _Played,
    name: str,
    labels: NDArray[Any],
    wanted: str,
    limit: float,
    limit_source: str,
    least: int,
) -> Finding:
    common: dict[str, Any] = {"id": f"gaming/groups/{name}", "limit": limit, "limit_source": limit_source, **_COMMON}
    if labels.shape != (len(people),):
        raise InputError(f"the labels of {name!r} have shape {labels.shape}", expected=f"({len(people)},)")
    text = np.array([str(label) for label in labels.tolist()], dtype=object)
    counts = {group: int(((text == group) & (people.weight > 0)).sum()) for group in sorted(set(text))}
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
    before = (people.score > people.cut).astype(np.float64)
    rise = {group: people.mean(played.positive - before, text == group) for group in kept}
    most, fewest = max(kept, key=lambda g: rise[g][0]), min(kept, key=lambda g: rise[g][0])
    pairs = len(kept) * (len(kept) - 1) // 2
    value = rise[most][0] - rise[fewest][0]
    half = people.critical(1 - (1 - _LEVEL) / pairs) * float(np.hypot(rise[most][1], rise[fewest][1]))
    interval = Interval(max(value - half, 0.0), value + half, _LEVEL, "normal, Bonferroni", simultaneous=True)
    beyond, within = interval.low > limit, interval.high <= limit
    rows = tuple(
        (
            group,
            counts[group],
            people.mean(before, text == group)[0],
            people.mean(played.positive, text == group)[0],
            rise[group][0],
            people.mean(played.length, text == group)[0],
            people.mean(played.right - (before == people.truth), text == group)[0],
        )
        for group in kept
    )
    return Finding(
        statement=(
            f"{name}: polishing raises the share judged {wanted} most for {most} ({100 * rise[most][0]:+.1f} points) "
            f"and least for {fewest} ({100 * rise[fewest][0]:+.1f})."
        ),
        severity="ok" if within else "note",
        status="ran" if beyond or within else "inconclusive",
        reason=(
            f"The whole interval of the difference lies {'above' if beyond else 'below'} {100 * limit:g} points."
            if beyond or within
            else f"The interval of the difference includes {100 * limit:g} points: there are too few rows to tell."
        )
        + " Moves are taken to cost every group the same.",
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
                    Column("mean move"),
                    Column("change in accuracy", "percent"),
                ),
                rows,
                note=left,
            ),
        ),
        **common,
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
