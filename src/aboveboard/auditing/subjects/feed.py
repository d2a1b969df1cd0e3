"""A feed of comments and the votes of its readers: single votes, readers x comments, or comments x readers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from aboveboard.auditing.frames import column_kind, group_codes, numbers, plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

__all__ = ["FeedSubject", "example", "read"]

Floats = NDArray[np.float64]

_FORMS: Final = "single votes, readers x comments, or comments x readers"
_WORDS: Final = {
    **dict.fromkeys(("agree", "approve", "yes", "true", "up", "like", "1", "+1"), 1.0),
    **dict.fromkeys(("disagree", "disapprove", "no", "false", "down", "dislike", "-1"), -1.0),
    **dict.fromkeys(("pass", "skip", "neutral", "unsure", "0"), 0.0),
}
_LENGTHS: Final = (5, 10, 20)
_MOST_IMPUTED: Final = 200_000_000


@dataclass(frozen=True, kw_only=True)
class FeedSubject(SuiteSubject):
    """The votes of readers on comments, and the order that is judged.

    Attributes
    ----------
    votes : csr_array of shape (readers, comments)
        1 agree, -1 disagree, not stored: not seen, or passed.
    comments : tuple of str
    order : ndarray of int
        Positions of the comments, the first on top.
    called : str
        What the order is called.
    weights : ndarray or None
    groups : dict of column name to labels of the readers
    lengths : tuple of int
    imputed : bool
        Whether missing votes are predicted; else they are no approvals.
    readers : {"all", "sample"}
    kind : str
        Which form the votes came in.
    """

    votes: sparse.csr_array
    comments: tuple[str, ...]
    order: NDArray[np.intp]
    called: str
    weights: Floats | None
    groups: dict[str, NDArray[Any]]
    lengths: tuple[int, ...]
    imputed: bool
    readers: Literal["all", "sample"]
    kind: str

    def __len__(self) -> int:
        return int(self.votes.shape[0])

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        n, m = self.votes.shape
        return f"a feed of {m:,} {'comment' if m == 1 else 'comments'} for {n:,} {'reader' if n == 1 else 'readers'}"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts, and where the approvals come from."""
        n, m = self.votes.shape
        return (
            ("Comments", m),
            ("Votes", self.kind),
            ("Votes cast, of all that could be", round(self.votes.nnz / (n * m), 4)),
            ("Approvals, of the votes cast", round(float((self.votes.data > 0).mean()), 4)),
            ("Missing votes", "predicted from the others" if self.imputed else "count as no approval"),
            ("Readers", "a sample of those of the feed" if self.readers == "sample" else "all that there are"),
            ("Order that is judged", self.called),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> FeedSubject:
    """Read the votes.

    Parameters
    ----------
    table : RoleColumns
        With vote: single votes. With comment alone: comments x readers. Else readers x comments.
    settings : mapping
        approve, lengths, missing, order, readers.

    Raises
    ------
    InputError
        When roles do not go together, a vote cannot be read, or a reader votes on a comment twice.
    """
    threshold = settings.get("approve", 0.0)
    if "vote" in table:
        table.need("reader", "comment", why="who voted, and on what")
        votes, comments, per_comment, per_reader, kind = _single_votes(table, threshold)
    elif "comment" in table:
        votes, comments, per_comment, per_reader, kind = _comments_by_readers(table, threshold)
    else:
        votes, comments, per_comment, per_reader, kind = _readers_by_comments(table, threshold)
    n, m = votes.shape
    if not votes.nnz:
        raise InputError("there is no vote for or against anything", expected="one vote at least")
    notes: list[str] = []
    imputed = settings.get("missing") == "predict"
    if imputed and n * m > _MOST_IMPUTED:
        raise InputError(
            f"missing votes of {n:,} readers x {m:,} comments were to be predicted",
            expected=f"at most {_MOST_IMPUTED:,} cells",
            remedy="Draw some of the readers, or leave missing votes as no approval",
        )
    if imputed and min(int((votes.data > 0).sum()), int((votes.data < 0).sum())) < 5:
        raise InputError(
            "missing votes were to be predicted, and nearly all votes are alike",
            expected="five votes for and five against at least",
        )
    if not imputed and votes.nnz < n * m:
        notes.append("Missing votes count as no approval; --setting missing=predict fills them in.")
    order, called = _order(per_comment, votes, settings, notes)
    weights = per_reader.pop("weight", None)
    if weights is not None and ((weights < 0).any() or not weights.any()):
        raise InputError("the weights are not usable", expected="none below 0 and some above")
    readers = settings.get("readers", "all")
    if readers == "sample" and weights is not None:
        raise InputError("a column was named as weight, and the readers are a sample", expected="one of the two")
    parts = [votes.indptr, votes.indices, votes.data, order, list(comments)]
    return FeedSubject(
        votes=votes,
        comments=comments,
        order=order,
        called=called,
        weights=weights,
        groups=per_reader,
        lengths=_lengths(settings.get("lengths")),
        imputed=imputed,
        readers=readers,
        kind=kind,
        data_sha256=fingerprint(*parts, *([] if weights is None else [weights])),
        notes=tuple(notes),
        **common,
    )


def example(*, random_state: int) -> Example:
    """Return simulated votes of two camps on comments whose order, by civility, leaves the smaller one out."""
    rng = np.random.default_rng(random_state)
    n, m = 300, 120
    minority = np.arange(n) >= 0.7 * n
    theirs = np.arange(m) >= 0.8 * m
    noise = rng.normal(0.0, 0.05, m)
    chance = np.where(minority[:, None] == theirs, 0.5, 0.01) + noise
    agree = rng.random((n, m)) < chance
    civility = np.clip(0.5 - 0.2 * theirs + rng.normal(0.0, 0.12, m), 0.0, 1.0)
    reader, comment = np.divmod(np.arange(n * m), m)
    frame = pd.DataFrame(
        {
            "reader": reader,
            "comment": [f"comment {c + 1}" for c in comment.tolist()],
            "vote": np.where(agree.ravel(), 1, -1),
            "civility": np.round(civility, 4)[comment],
            "side": np.where(minority, "smaller", "larger")[reader],
        }
    )
    return Example(
        frame=frame,
        columns={
            "reader": "reader", "comment": "comment", "vote": "vote", "score": "civility", "group": "side",
        },
        data="simulated",
        note=(
            "The example is simulated: 300 readers of two camps (70 and 30 %), 120 comments in order of a civility "
            "score that is lower for those of the smaller camp."
        ),
    )  # fmt: skip


# --- the forms of the file --------------------------------------------------------------------------------------------

_Read = tuple[sparse.csr_array, tuple[str, ...], dict[str, Floats], dict[str, NDArray[Any]], str]


def _single_votes(table: RoleColumns, threshold: float) -> _Read:
    reader, readers = _codes(table["reader"], "reader")
    comment, comments = _codes(table["comment"], "comment")
    n, m = len(readers), len(comments)
    if len(np.unique(reader * m + comment)) < len(reader):
        key = np.sort(reader * m + comment)
        at = int(key[:-1][key[1:] == key[:-1]][0])
        raise InputError(
            f"a reader voted twice on {comments[at % m]!r}", expected="one row per reader and comment at most"
        )
    cast = _signs(_values(table["vote"]), threshold)
    votes = sparse.csr_array((cast, (reader, comment)), shape=(n, m))
    votes.eliminate_zeros()
    per_comment = {
        role: _constant(_number_column(table[role]), comment, m, role, comments)
        for role in ("published", "score")
        if role in table
    }
    per_reader: dict[str, NDArray[Any]] = {}
    if "weight" in table:
        per_reader["weight"] = _constant(_number_column(table["weight"]), reader, n, "weight", readers)
    groups = {}
    for series in table.all("group"):
        names = group_codes(series)[0].astype(object).to_numpy()
        codes, labels = pd.factorize(names)
        groups[str(series.name)] = np.asarray(labels, dtype=object)[
            _constant(codes.astype(float), reader, n, "group", readers).astype(int)
        ]
    return votes, comments, per_comment, per_reader | _named(groups), "single votes"


def _readers_by_comments(table: RoleColumns, threshold: float) -> _Read:
    for role in ("published", "score"):
        if role in table:
            raise InputError(
                f"a column was named as {role}, and the rows are readers",
                expected=f"one row per comment for a {role}",
                remedy="Turn the table round and name the column of the comments, or give single votes",
            )
    if "reader" in table:
        _codes(table["reader"], "reader", distinct=True)
    votes, comments = _wide(table, threshold, "comment", "reader")
    per_reader: dict[str, NDArray[Any]] = {}
    if "weight" in table:
        per_reader["weight"] = _number_column(table["weight"])
    groups = {str(series.name): group_codes(series)[0].astype(object).to_numpy() for series in table.all("group")}
    return votes, comments, {}, per_reader | _named(groups), "readers x comments"


def _comments_by_readers(table: RoleColumns, threshold: float) -> _Read:
    for role in ("reader", "group", "weight"):
        if role in table:
            raise InputError(
                f"columns were named as comment and {role}, and none as vote",
                expected="reader, comment and vote for single votes; comment alone where each column is a reader",
            )
    _, comments = _codes(table["comment"], "comment", distinct=True)
    votes, _ = _wide(table, threshold, "reader", "comment")
    per_comment = {role: _number_column(table[role]) for role in ("published", "score") if role in table}
    return sparse.csr_array(votes.T), comments, per_comment, {}, "comments x readers"


def _wide(table: RoleColumns, threshold: float, across: str, rows: str) -> tuple[sparse.csr_array, tuple[str, ...]]:
    names = table.left()
    if not names:
        raise InputError(f"no column is left to be a {across}", expected=_FORMS)
    try:
        values = np.column_stack([_values(table.frame[name]) for name in names])
    except InputError as error:
        raise InputError(
            error.got,
            expected=error.expected,
            remedy=f"A column without a role must be a {across}. If it names the {rows}s, say so "
            f"(columns, --column {rows}=NAME); the data can be {_FORMS}",
        ) from error
    return sparse.csr_array(_signs(values, threshold)), tuple(names)


# --- columns ----------------------------------------------------------------------------------------------------------


def _values(series: "pd.Series[Any]") -> Floats:
    """Return votes as numbers, NaN where there is none."""
    kind = column_kind(series)
    if kind == "boolean":
        plain = numbers(series).astype(np.float64)
        return np.asarray(2.0 * plain - 1.0)
    if kind == "number":
        return _number_column(series, missing=True)
    missing = series.isna().to_numpy()
    words, found = pd.factorize(series.astype(object).where(~missing, None))
    known = []
    for value in found:
        word = plain_label(value).strip().casefold()
        if word not in _WORDS:
            raise InputError(
                f"the column {series.name!r} holds the vote {plain_label(value)!r}",
                expected="numbers, true and false, or agree, disagree and pass",
            )
        known.append(_WORDS[word])
    return np.asarray([*known, np.nan])[words]


def _signs(values: Floats, threshold: float) -> NDArray[np.int8]:
    """Return 1 for approval, -1 for the contrary, 0 for none; 0 is no vote where there are votes below it."""
    passes = values == threshold if (values < threshold).any() else np.zeros(values.shape, dtype=bool)
    cast = np.where(values > threshold, 1, -1)
    return np.where(np.isnan(values) | passes, 0, cast).astype(np.int8)


def _number_column(series: "pd.Series[Any]", *, missing: bool = False) -> Floats:
    try:
        values = np.asarray(numbers(series), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"the column {series.name!r} holds something that is no number", expected="numbers") from error
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        raise InputError(
            f"the column {series.name!r} holds {values[bad][0]:g} in {int(bad.sum()):,} rows", expected="finite numbers"
        )
    return values


def _codes(series: "pd.Series[Any]", role: str, *, distinct: bool = False) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return a position for each row, in order of appearance, and what the positions are called."""
    if series.isna().any():
        raise InputError(f"the {role} is missing in {int(series.isna().sum()):,} rows", expected="a value in every row")
    codes, found = pd.factorize(series.astype(object))
    names = pd.Series([plain_label(value) for value in found], dtype=object)
    merged, labels = pd.factorize(names)
    codes = np.asarray(merged[codes], dtype=np.int64)
    if distinct and len(labels) < len(codes):
        twice = str(labels[int(np.bincount(codes).argmax())])
        raise InputError(
            f"the {role} {twice!r} has several rows",
            expected=f"one row per {role}",
            remedy="Where each row is a single vote, name reader, comment and vote",
        )
    return codes, tuple(str(label) for label in labels)


def _constant(values: Floats, codes: NDArray[np.int64], size: int, role: str, names: tuple[str, ...]) -> Floats:
    """Return one value for each code, refusing several."""
    one = np.empty(size)
    one[codes] = values
    wrong = one[codes] != values
    if wrong.any():
        whose = "a reader" if role in ("weight", "group") else f"{names[codes[wrong.argmax()]]!r}"
        raise InputError(f"{whose} has more than one {role}", expected=f"the same {role} in all rows")
    return one


def _named(groups: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the groups by column; a column called weight keeps apart from the weights."""
    return {name if name != "weight" else "weight (group)": labels for name, labels in groups.items()}


def _order(
    per_comment: dict[str, Floats], votes: sparse.csr_array, settings: Mapping[str, Any], notes: list[str]
) -> tuple[NDArray[np.intp], str]:
    if len(per_comment) == 2:
        raise InputError("columns were named as published and as score", expected="one of the two")
    if per_comment and "order" in settings:
        raise InputError("the order was named both by a column and by the setting order", expected="one of the two")
    if "published" in per_comment:
        ranks = per_comment["published"]
        if len(np.unique(ranks)) < len(ranks):
            notes.append("Comments with the same published rank stand in the order of the file.")
        return np.argsort(ranks, kind="stable"), "published order"
    if "score" in per_comment:
        return np.argsort(-per_comment["score"], kind="stable"), "order by score"
    if settings.get("order") == "file":
        return np.arange(votes.shape[1]), "order of the file"
    notes.append("No order was named, so that of the most approved is judged: what most feeds would show.")
    agree = np.asarray((votes > 0).sum(axis=0)).ravel()
    return np.argsort(-agree, kind="stable"), "order by approvals"


def _lengths(text: str | None) -> tuple[int, ...]:
    if text is None:
        return _LENGTHS
    parts = [part.strip() for part in str(text).split(",")]
    if not all(part.isascii() and part.isdigit() and 0 < int(part) < 10**9 for part in parts):
        raise InputError(f"the setting lengths is {text!r}", expected="whole numbers from 1 on, such as 5,10,20")
    return tuple(sorted({int(part) for part in parts}))
