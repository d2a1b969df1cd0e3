"""A network held against the opinions of its accounts: findings for a report."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from aboveboard.collective.opinion_interventions._constraints import FrobeniusBall, Intersection, RowSimplex
from aboveboard.collective.opinion_interventions._equilibrium import FriedkinJohnsen
from aboveboard.collective.opinion_interventions._network import read_weights
from aboveboard.collective.opinion_interventions._optimizer import OpinionInterventionOptimizer
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Cell, Column, Figure, Finding, Series, Table

__all__ = ["opinion_audit"]

Floats = NDArray[np.float64]

_SECTION: Final[dict[str, Any]] = {"check": "opinions", "area": "networks"}
_SHARES: Final = (0.01, 0.1, 0.5)
_NAMED: Final = 10
_CLOSE: Final = 1e-3
_ROUNDS: Final = 100
_ANALYSIS: Final = (
    "This is an analysis of a model of opinions, no advice: {} decides whether to use it, and answers for it."
)


def opinion_audit(
    W: Any,
    s: ArrayLike | None = None,
    *,
    labels: Sequence[Any] | None = None,
    amplification: float = 1.0,
    mixing: float = 0.5,
    voices: float = 0.1,
    limit_sources: tuple[str, str, str] = ("", "", ""),
    min_accounts: int = 10,
    radius: float = 0.2,
    max_iter: int = 30,
    decision_maker: str = "whoever sets the weights of this network",
) -> list[Finding]:
    """Hold a network against the opinions of its accounts.

    Parameters
    ----------
    W : sparse matrix, array or data frame of shape (n, n)
        Row i holds whom account i listens to: see `FriedkinJohnsen`.
    s : array-like of shape (n,), optional
        Own opinions. Without them only what holds for any opinions is said.
    labels : sequence of length n, optional
        What the accounts are called; without, no account is named or shown by itself.
    amplification : float
        Fails where what people say is more spread than their own opinions by more than this factor.
    mixing : float
        Warns where the differences of opinion that people hear are below this share of those among all accounts.
    voices : float
        Warns where the mean opinion is as if fewer than this share of the accounts had a say.
    limit_sources : tuple of str
        Who says so, for the three limits.
    min_accounts : int
        Nothing is said of fewer.
    radius : float
        By how much weights may change in ``opinions/repair``, as a share of their norm.
    max_iter : int
        Of the optimizer.
    decision_maker : str
        Who decides on the weights, within a sentence.

    Returns
    -------
    list of Finding
        ``opinions/amplification``, ``opinions/disagreement``, ``opinions/influence``, ``opinions/contrast`` and
        ``opinions/repair``; without opinions, of these ``influence`` and ``contrast``.

    Raises
    ------
    aboveboard.core.InputError
        When the network, the opinions or the labels cannot be used.

    Notes
    -----
    Some hundred products with the network's matrix; ``opinions/repair`` is an `OpinionInterventionOptimizer` over all
    weights.

    Examples
    --------
    Two camps of ten who listen to their own side, and one of each to the other:

    >>> import numpy as np
    >>> from aboveboard.collective import opinion_audit
    >>> W = np.kron(np.eye(2), np.ones((10, 10))) - np.eye(20)
    >>> W[0, 10] = W[10, 0] = 1
    >>> s = np.repeat([1.0, -1.0], 10)
    >>> [(f.id, f.severity) for f in opinion_audit(W, s)][:3]
    [('opinions/amplification', 'ok'), ('opinions/disagreement', 'warn'), ('opinions/influence', 'ok')]
    """
    matrix = read_weights(W)
    n = matrix.shape[0]
    if labels is not None and len(labels) != n:
        raise InputError(f"{len(labels):,} labels were given", expected=f"one per account: {n:,}")
    for name, value in (("amplification", amplification), ("mixing", mixing), ("voices", voices)):
        if not 0 < value < np.inf:
            raise InputError(f"{name} is {value!r}", expected="a number above 0")
    model = FriedkinJohnsen(matrix, np.zeros(n) if s is None else s)
    if n < min_accounts:
        names = ("influence",) if s is None else ("amplification", "disagreement", "influence")
        return [_without(name, f"There are {n} accounts: too few to say anything.", n) for name in names]
    if not matrix.nnz or not model.degrees.any():
        return [_without("influence", "Nobody listens to anybody.", n, status="not_applicable")]
    said = model.equilibrium()
    sources = dict(zip(("amplification", "mixing", "voices"), limit_sources))
    structure = [
        _influence(model, voices, sources["voices"], min_accounts, labels),
        _contrast(model, n),
    ]
    if s is None:
        reason = "No opinions were given. Influence, and the most that the network can leave of a division, need none."
        return [_without("amplification", reason, n, status="not_applicable"), *structure]
    if float(np.ptp(model.s)) == 0.0:
        reason = "All own opinions are the same, and then everybody says the same."
        return [_without("amplification", reason, n, status="not_applicable"), *structure]
    return [
        _amplification(model, said, amplification, sources["amplification"]),
        _disagreement(model, said, mixing, sources["mixing"]),
        *structure,
        _repair(model, radius, max_iter, decision_maker),
    ]


def _without(name: str, reason: str, n: int, *, status: Any = "inconclusive") -> Finding:
    statement = {
        "amplification": "It is not known whether the network divides people more than they are by themselves.",
        "disagreement": "It is not known how much of the differences of opinion people hear.",
        "influence": "It is not known how many accounts have a say in the mean opinion.",
    }[name]
    return Finding(
        id=f"opinions/{name}", statement=statement, severity="note", status=status, reason=reason, n=n, **_SECTION
    )


def _amplification(model: FriedkinJohnsen, said: Floats, limit: float, source: str) -> Finding:
    own, spoken = float(model.s.var()), float(said.var())
    factor = spoken / own
    bad = factor > limit
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, float(values.mean()), float(values.var()), float(np.mean(values**2)))
        for name, values in (("Own", model.s), ("Said", said))
    )
    return Finding(
        id="opinions/amplification",
        statement=(
            f"What people say once they have listened is {'more' if factor > 1 else 'less'} spread than what they "
            f"think: its variance is {factor:.3g} times that of their own opinions."
        ),
        severity="fail" if bad else "ok",
        reason=(
            "A network that adds to the division of its people is at odds with letting them hear each other."
            if bad
            else "Listening brings people closer here. This says nothing of who is brought closer to whom."
        ),
        value=factor,
        limit=limit,
        limit_source=source,
        n=model.n,
        evidence=(
            Table(
                "Opinions before and after listening",
                (
                    Column("Opinions", "text"),
                    Column("Mean"),
                    Column("Variance"),
                    Column("Mean square", "number", "The polarization around a neutral opinion of 0"),
                ),
                rows,
            ),
        ),
        remedies=("OpinionInterventionOptimizer",) if bad else (),
        **_SECTION,
    )


def _disagreement(model: FriedkinJohnsen, said: Floats, limit: float, source: str) -> Finding:
    """Return how different the opinions are that people hear, of what they would hear of anybody."""
    heard = _squared_gaps(model, model.s) / float(model.degrees.sum())
    share = heard / (2.0 * float(model.s.var()))
    bad = share < limit
    among = _squared_gaps(model, said) / float(model.degrees.sum()) / max(2.0 * float(said.var()), 1e-300)
    return Finding(
        id="opinions/disagreement",
        statement=(
            f"Of the differences of opinion that there are among all accounts, people hear {100 * share:.1f} % from "
            "those whom they listen to (as mean squares)."
        ),
        severity="warn" if bad else "ok",
        reason=(
            "Who hears little but agreement cannot learn what others think. People may have chosen that themselves."
            if bad
            else "People hear others who think otherwise."
        ),
        value=share,
        limit=limit,
        limit_source=source,
        n=model.n,
        evidence=(
            Table(
                "Differences of opinion along the network",
                (
                    Column("Opinions", "text"),
                    Column("Heard, of those among all", "percent", "1 where people listen to anybody at random"),
                    Column("Disagreement", "number", "Half the sum of weight times squared difference"),
                ),
                (
                    ("Own", share, model.disagreement(model.s)),
                    ("Said", among, model.disagreement(said)),
                ),
            ),
        ),
        remedies=("OpinionInterventionOptimizer",) if bad else (),
        **_SECTION,
    )


def _squared_gaps(model: FriedkinJohnsen, opinions: Floats) -> float:
    return 2.0 * max(model.disagreement(opinions), 0.0)


def _influence(
    model: FriedkinJohnsen, limit: float, source: str, min_accounts: int, labels: Sequence[Any] | None
) -> Finding:
    influence = model.influence()
    order = np.argsort(-influence, kind="stable")
    share = 1.0 / float(influence @ influence) / model.n
    bad = share < limit
    rows: list[tuple[Cell, ...]] = []
    for part in _SHARES:
        count = int(np.ceil(part * model.n))
        if count >= min_accounts:
            rows.append((f"{100 * part:.0f} % with the most", count, float(influence[order[:count]].sum())))
    tables = [
        Table(
            "Whose own opinions make up the mean",
            (
                Column("Accounts", "text"),
                Column("How many", "count"),
                Column("Influence", "percent", "Their share of the say in the mean of what is said"),
            ),
            tuple(rows),
        )
    ]
    if labels is not None:
        tables.append(
            Table(
                "The most influential accounts",
                (Column("Account", "text"), Column("Influence", "percent"), Column("Of an equal share", "number")),
                tuple(
                    (str(labels[i]), float(influence[i]), float(influence[i]) * model.n)
                    for i in order[:_NAMED].tolist()
                ),
                note="Shown because accounts were to be named.",
            )
        )
    return Finding(
        id="opinions/influence",
        statement=(
            f"The mean of what is said is as if {100 * share:.1f} % of the accounts had a say, all the same, and the "
            "others none."
        ),
        severity="warn" if bad else "ok",
        reason=(
            "A few accounts make the mean opinion, so who holds or buys them moves it."
            if bad
            else "No few accounts make the mean opinion."
        ),
        value=share,
        limit=limit,
        limit_source=source,
        n=model.n,
        evidence=tuple(tables),
        **_SECTION,
    )


def _contrast(model: FriedkinJohnsen, n: int) -> Finding:
    """Return the most that the network can leave of a division, over all opinions there could be."""
    stretch = _stretch(model)
    gap = max(1.0 / np.sqrt(stretch) - 1.0, 0.0) if stretch > 0 else 0.0
    return Finding(
        id="opinions/contrast",
        statement=(
            f"Whatever people think, listening leaves at most about {stretch:.3g} times the variance of their "
            "opinions, and there are opinions of which it leaves as much."
            + (f" The spectral gap of the network is about {gap:.3g}." if model.mutual else "")
        ),
        severity="note",
        reason=(
            "This is the largest singular value, squared, of the way from own opinions to those that are said; the "
            f"iteration for it ends at a relative change of {_CLOSE:g}. "
            + ("From 1 on some division can be left untouched, or grow." if stretch > 1.0 - _CLOSE else "")
        ).strip(),
        value=stretch,
        n=n,
        **_SECTION,
    )


def _stretch(model: FriedkinJohnsen) -> float:
    """Return the largest variance of what is said, over own opinions of variance 1, by power iteration."""
    way = np.random.default_rng(0).normal(size=model.n)
    probe, largest = FriedkinJohnsen(model.W, way), 0.0
    for _ in range(_ROUNDS):
        way -= way.mean()
        way /= np.linalg.norm(way)
        probe.s = way
        said = probe.equilibrium(1e-8 / np.sqrt(model.n))
        said -= said.mean()
        before, largest = largest, float(said @ said)
        if largest - before <= _CLOSE * largest:
            break
        way = probe.adjoint(said, 1e-8 * float(np.abs(said).sum()))
    return largest


def _repair(model: FriedkinJohnsen, radius: float, max_iter: int, decision_maker: str) -> Finding:
    """Return how far polarization falls when everybody's feed is re-weighted a little, and who pays."""
    constraint = Intersection(FrobeniusBall(radius), RowSimplex())
    optimizer = OpinionInterventionOptimizer(constraint=constraint, max_iter=max_iter).fit(model.W, model.s)
    found = optimizer.report(decision_maker=decision_maker)
    before, after = found.polarization
    fall = 1.0 - after / before if before > 0 else 0.0
    return Finding(
        id="opinions/repair",
        statement=(
            f"With feeds re-weighted by at most {100 * radius:.3g} %, and nobody listening more or less in all, "
            f"polarization would fall by {100 * fall:.1f} %. The mean opinion would move by {found.mean_shift:+.3g}, "
            f"the opinion that moves most by {found.largest_shift:.3g}; those below the mean by "
            f"{found.mean_shift_below:+.3g}, those above it by {found.mean_shift_above:+.3g}; {found.losing:,} "
            "accounts would lose influence."
        ),
        severity="note",
        reason=_ANALYSIS.format(decision_maker),
        value=fall,
        n=model.n,
        evidence=(
            Table(
                "What it would do, and who would pay",
                (Column("Figure", "text"), Column("Before"), Column("After")),
                (
                    ("Polarization: mean square of what is said", before, after),
                    ("Disagreement along the network", *found.disagreement),
                    ("Mean opinion", *found.mean_opinion),
                    ("Largest shift of one account", None, found.largest_shift),
                    ("Mean shift of those below the mean", None, found.mean_shift_below),
                    ("Mean shift of those above the mean", None, found.mean_shift_above),
                    ("Accounts that lose influence", None, found.losing),
                    ("Share of influence that changes hands", None, found.influence_moved),
                ),
                note=_ANALYSIS.format(decision_maker),
            ),
            Figure(
                "bars",
                "Polarization and disagreement if feeds were re-weighted",
                "Figure",
                "Of what it is now",
                (
                    Series(
                        "after",
                        ("Polarization", "Disagreement"),
                        (1.0 - fall, found.disagreement[1] / found.disagreement[0] if found.disagreement[0] else None),
                    ),
                ),
                alt=f"Polarization would be at {100 * (1 - fall):.0f} % of what it is.",
                percent=True,
            ),
        ),
        remedies=("OpinionInterventionOptimizer",) if fall > 0 else (),
        **_SECTION,
    )
