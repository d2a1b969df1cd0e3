"""How many requests an audit of an endpoint will make, before it makes the first."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass

from aboveboard.auditing.models.endpoint import FirstQuestion
from aboveboard.auditing.suites import CheckSpec, Effort

__all__ = ["Plan", "plan"]

_SHOWN_COLUMNS = 40


@dataclass(frozen=True, slots=True)
class Plan:
    """The most requests that an audit makes, without retries.

    Parameters
    ----------
    first, reference : int
        For the predictions that everything rests on, and for those on older data.
    checks : dict of str to int
        Title of a check to the requests that it makes; checks that make none are left out.
    rows : int
        Rows that are sent in all of them.
    columns : tuple of str
        What is sent of each row.
    """

    first: int
    reference: int
    checks: dict[str, int]
    rows: int
    columns: tuple[str, ...]

    @property
    def requests(self) -> int:
        return self.first + self.reference + sum(self.checks.values())

    def text(self, max_queries: int | None) -> str:
        """Return the plan in plain sentences, with what happens where `max_queries` does not reach."""
        parts = [
            f"{self.first:,} for the predictions",
            *([f"{self.reference:,} for those on the reference"] if self.reference else []),
            *(f"{n:,} by {title}" for title, n in self.checks.items()),
        ]
        shown = ", ".join(self.columns[:_SHOWN_COLUMNS])
        more = f" and {len(self.columns) - _SHOWN_COLUMNS:,} more" if len(self.columns) > _SHOWN_COLUMNS else ""
        sentences = [
            f"The endpoint will be asked at most {self.requests:,} times, about {self.rows:,} rows in all: "
            f"{', '.join(parts)}. Retries come on top.",
            f"Of each row it gets: {shown}{more}.",
        ]
        if max_queries is not None:
            short = max_queries < self.requests
            sentences.append(
                f"No more than {max_queries:,} requests are made, retries included"
                + ("; checks for which they do not reach are skipped." if short else ".")
            )
        return " ".join(sentences)


def plan(
    question: FirstQuestion,
    checks: Sequence[CheckSpec],
    *,
    effort: Effort,
    training_rows: int = 0,
    reference_rows: int = 0,
) -> Plan:
    """Return the most requests that `checks` make, from what each says in its ``questions``."""
    sizes: dict[str, list[int]] = {}
    for spec in checks:
        if question.task not in spec.tasks or ("train" in spec.needs and not training_rows):
            continue
        questions = getattr(importlib.import_module(f"aboveboard.auditing.checks.{spec.name}"), "questions", None)
        if questions is not None:
            cap = spec.rows(effort)
            X = question.frame if cap is None else question.frame.iloc[:cap]
            asked = questions(X, effort=effort, training_rows=training_rows)
            if asked:
                sizes[spec.title] = asked
    return Plan(
        first=_requests([question.distinct], question.batch_rows),
        reference=_requests([reference_rows], question.batch_rows),
        checks={title: _requests(asked, question.batch_rows) for title, asked in sizes.items()},
        rows=question.distinct + reference_rows + sum(map(sum, sizes.values())),
        columns=tuple(map(str, question.frame.columns)),
    )


def _requests(sizes: Sequence[int], batch_rows: int) -> int:
    return sum(-(-size // batch_rows) for size in sizes)
