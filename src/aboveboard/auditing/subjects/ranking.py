"""Rankings by many judges: votes as judges x items, items x judges, single votes, or comparisons of two items."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.auditing.frames import column_kind, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

if TYPE_CHECKING:
    from aboveboard.collective import SelectiveRanker

__all__ = ["RankingSubject", "example", "read"]

_FORMS: Final = "judges x items, items x judges, single votes, or comparisons"
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})
_POINTS: Final = {1: 5, 2: 3, 3: 1, 4: 0}
"""What a place on a ballot is worth in the award of the example; 4 is not named."""


@dataclass(frozen=True, kw_only=True)
class RankingSubject(SuiteSubject):
    """Votes of judges on items, and the order that is judged.

    Attributes
    ----------
    ranker : SelectiveRanker
        Fitted.
    order : list of lists of labels
        The published order, best first, tied items together; else that of the Borda count.
    published : NDArray or None
        The published rank of each item; None where no column was named.
    kind : str
        Which form the votes came in.
    """

    ranker: "SelectiveRanker"
    order: list[list[Any]]
    published: NDArray[np.float64] | None
    kind: str

    def __len__(self) -> int:
        return self.ranker.n_judges_

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        judges = f"{len(self):,} {'judge' if len(self) == 1 else 'judges'}"
        return f"a ranking of {len(self.ranker.items_):,} items by {judges}"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts, and how votes were read."""
        n = len(self.ranker.items_)
        off = ~np.eye(n, dtype=bool)
        return (
            ("Items", n),
            ("Votes", self.kind),
            ("Missing votes on a pair, of all", round(1.0 - float(self.ranker.compared_[off].mean()) / len(self), 4)),
            ("Missing votes count as", self.ranker.missing),
            ("Order that is judged", "by Borda count" if self.published is None else "published"),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> RankingSubject:
    """Read the votes.

    Parameters
    ----------
    table : RoleColumns
        With winner and loser: comparisons. With vote: single votes. With item alone: items x judges. Else judges x
        items.
    settings : mapping
        votes (rank or score), missing.

    Raises
    ------
    InputError
        When roles do not go together, a vote is no number, a judge votes on an item twice, or the kind of the votes was
        not said.
    """
    missing = settings.get("missing", "dissent")
    if "winner" in table or "loser" in table:
        return _comparisons(table, settings, missing, common)
    if "votes" not in settings:
        raise InputError(
            "it was not said what the votes are",
            expected="rank (1 is best) or score (higher is better)",
            remedy="Say settings={'votes': 'rank'} (--setting votes=rank)",
        )
    if "tie" in table:
        raise InputError("a column was named as tie, and the votes are no comparisons", expected="winner and loser too")
    published = None
    if "vote" in table:
        table.need("judge", why="who voted")
        table.need("item", why="what was voted on")
        votes, published, kind = *_single_votes(table), "single votes"
    elif "item" in table:
        votes, published, kind = *_items_by_judges(table), "items x judges"
    else:
        votes, kind = _judges_by_items(table), "judges x items"
    notes: list[str] = []
    ranker = _fitted(votes, settings["votes"], missing, notes)
    parts: list[Any] = [list(votes.columns), votes.to_numpy(dtype="float64")]
    parts += [] if published is None else [published]
    return _made(ranker, published, f"{kind}, {settings['votes']}s", fingerprint(*parts), notes, common)


def example(*, random_state: int) -> Example:  # noqa: ARG001 - real data
    """Return the ballots for the NBA coach of the year of 2020-21, and the order in which the award put the coaches."""
    from aboveboard.data import load_nba_coach

    ranks = load_nba_coach(names=False).X
    points = ranks.replace(_POINTS).sum(axis=1)
    frame = ranks.rename_axis(columns=None).reset_index()
    frame.insert(1, "award", points.rank(ascending=False, method="min").astype(int).to_numpy())
    return Example(
        frame=frame,
        columns={"item": "coach", "published": "award"},
        settings={"votes": "rank"},
        note=(
            "The example: 100 public ballots of three places each for the NBA coach of the year 2020-21, coaches who "
            "were not named tied behind; the published order is the award's, by 5, 3 and 1 points."
        ),
    )


# --- the forms of the file --------------------------------------------------------------------------------------------


def _judges_by_items(table: RoleColumns) -> pd.DataFrame:
    if "published" in table:
        raise InputError(
            "a column was named as published, and the rows are judges",
            expected="one row per item for a published order",
            remedy="Turn the table round and name the column of the items (columns, --column item=NAME)",
        )
    return _numeric(table, "judge", "item")


def _items_by_judges(table: RoleColumns) -> tuple[pd.DataFrame, NDArray[np.float64] | None]:
    if "judge" in table:
        raise InputError(
            "columns were named as item and judge, and none as vote",
            expected="item, judge and vote for single votes; item alone where each column is a judge",
        )
    items = _names(table["item"], "item")
    votes = _numeric(table, "item", "judge")
    published = table.get("published")
    ranks = None if published is None else _ranks(published, items)
    return votes.set_axis(pd.Index(items, dtype=object), axis=0).T.reset_index(drop=True), ranks


def _single_votes(table: RoleColumns) -> tuple[pd.DataFrame, NDArray[np.float64] | None]:
    judge = _codes(table["judge"], "judge")
    item, found = pd.factorize(pd.Series(_names(table["item"], "item", distinct=False), dtype=object), sort=True)
    names = [str(name) for name in found]
    values = _number_column(table["vote"], "vote")
    key = judge * len(names) + item
    if len(np.unique(key)) < len(key):
        order = np.sort(key)
        at = int(order[:-1][order[1:] == order[:-1]][0])
        raise InputError(
            f"a judge voted twice on {names[at % len(names)]!r}", expected="one row per judge and item at most"
        )
    votes = np.full((int(judge.max()) + 1, len(names)), np.nan)
    votes[judge, item] = values
    published = table.get("published")
    if published is None:
        return pd.DataFrame(votes, columns=pd.Index(names, dtype=object)), None
    stated = _ranks(published, [names[i] for i in item])
    ranks = np.empty(len(names))
    ranks[item] = stated
    if (ranks[item] != stated).any():
        raise InputError("an item has several published ranks", expected="the same rank in all rows of an item")
    return pd.DataFrame(votes, columns=pd.Index(names, dtype=object)), ranks


def _comparisons(
    table: RoleColumns, settings: Mapping[str, Any], missing: Any, common: dict[str, Any]
) -> RankingSubject:
    from aboveboard.collective import SelectiveRanker

    table.need("winner", why="the two items of a comparison")
    table.need("loser", why="the two items of a comparison")
    for role in ("item", "vote", "published"):
        if role in table:
            raise InputError(f"a column was named as {role}, and the votes are comparisons", expected=f"no {role}")
    if "votes" in settings:
        raise InputError("the setting votes was given, and the votes are comparisons", expected="no such setting")
    winner, loser = (_names(table[role], role, distinct=False) for role in ("winner", "loser"))
    tie = table.get("tie")
    judge = _codes(table["judge"], "judge") if "judge" in table else None
    ranker = SelectiveRanker(missing=missing).fit_pairwise(judge, winner, loser, None if tie is None else _truth(tie))
    marks = np.zeros(len(winner)) if tie is None else _truth(tie).astype(float)
    seen = [winner, loser, marks, np.arange(len(winner)) if judge is None else judge]
    notes = ["No column was named as judge, so each comparison counts as a judge of its own."] if judge is None else []
    return _made(ranker, None, "comparisons", fingerprint(*seen), notes, common)


# --- columns ----------------------------------------------------------------------------------------------------------


def _numeric(table: RoleColumns, rows: str, across: str) -> pd.DataFrame:
    """Return the columns without a role, which must all hold numbers."""
    names = table.left()
    if len(names) < (2 if across == "item" else 1):
        raise InputError(f"{len(names)} columns are left to be {across}s", expected=_FORMS)
    columns = {}
    for name in names:
        if column_kind(table.frame[name]) not in ("number", "boolean"):
            raise InputError(
                f"the column {name!r} holds no numbers, so it cannot be a {across}",
                expected="a rank or a score in every column that has no role",
                remedy=f"If it names the {rows}s, say so (columns, --column {rows}={name}); the data can be {_FORMS}",
            )
        columns[name] = _number_column(table.frame[name], name)
    return pd.DataFrame(columns)


def _number_column(series: "pd.Series[Any]", name: str) -> NDArray[np.float64]:
    try:
        values: NDArray[np.float64] = numbers(series).astype("float64")
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {name!r} holds something that is no number", expected="numbers") from error
    if np.isinf(values).any():
        raise InputError(f"the column {name!r} holds infinite values", expected="finite numbers, or none")
    return values


def _names(series: "pd.Series[Any]", role: str, *, distinct: bool = True) -> list[str]:
    if series.isna().any():
        raise InputError(f"the {role} is missing in {int(series.isna().sum()):,} rows", expected="a value in every row")
    names = [plain_label(value) for value in series]
    if distinct and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"the {role} {twice!r} has several rows",
            expected="one row per item",
            remedy="Where each row is a single vote, name judge and vote too",
        )
    return names


def _codes(series: "pd.Series[Any]", role: str) -> NDArray[np.int64]:
    return pd.factorize(pd.Series(_names(series, role, distinct=False), dtype=object))[0].astype(np.int64)


def _truth(series: "pd.Series[Any]") -> NDArray[np.bool_]:
    words = [word.strip().casefold() for word in _names(series, "tie", distinct=False)]
    wrong = next((word for word in words if word not in _TRUE | _FALSE), None)
    if wrong is not None:
        raise InputError(f"the column of ties holds {wrong!r}", expected="true or false")
    return np.array([word in _TRUE for word in words])


def _ranks(series: "pd.Series[Any]", items: list[Any]) -> NDArray[np.float64]:
    ranks = _number_column(series, str(series.name or "published"))
    if np.isnan(ranks).any():
        lacking = items[int(np.isnan(ranks).argmax())]
        raise InputError(f"the published order has no rank for {lacking!r}", expected="a rank for every item")
    return ranks


# --- the subject ------------------------------------------------------------------------------------------------------


def _fitted(votes: pd.DataFrame, kind: str, missing: Any, notes: list[str]) -> "SelectiveRanker":
    from aboveboard.collective import SelectiveRanker

    if votes.shape[1] < 2:
        raise InputError(f"there is {votes.shape[1]} item", expected="two or more")
    values = votes.to_numpy(dtype="float64")
    table = pd.DataFrame(-values if kind == "rank" else values, columns=votes.columns)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted: SelectiveRanker = SelectiveRanker(missing=missing).fit(table)
    notes += [str(warning.message) for warning in told if issubclass(warning.category, UserWarning)]
    return fitted


def _made(
    ranker: "SelectiveRanker",
    published: NDArray[np.float64] | None,
    kind: str,
    data_sha256: str,
    notes: list[str],
    common: dict[str, Any],
) -> RankingSubject:
    if published is None:
        notes.append(
            "No published order was named, so the order of the Borda count is judged: what most would publish."
        )
    scores = -(ranker.support_ - ranker.support_.T).sum(axis=1) if published is None else published
    order = [[ranker.items_[i] for i in np.flatnonzero(scores == rank)] for rank in np.unique(scores)]
    return RankingSubject(
        ranker=ranker,
        order=order,
        published=published,
        kind=kind,
        data_sha256=data_sha256,
        notes=tuple(notes),
        **common,
    )
