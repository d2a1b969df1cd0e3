"""The suite table: every check, in the order in which the report shows them.

A check is a function ``aboveboard.auditing.checks.<name>.check(subject, *, random_state, effort) -> list[Finding]``.
This module imports no check, so that listing them costs nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal

from aboveboard.core.errors import InputError

__all__ = ["AREAS", "EFFORTS", "TABULAR", "CheckSpec", "Cost", "Effort", "Need", "Task", "select"]

Task = Literal["binary", "multiclass", "regression"]
Effort = Literal["quick", "standard", "full"]
Cost = Literal["light", "medium", "heavy"]
Need = Literal["sensitive", "score", "model", "train", "reference", "reference predictions", "reference labels"]

EFFORTS: Final[tuple[Effort, ...]] = ("quick", "standard", "full")

AREAS: Final[dict[str, str]] = {
    "performance": "Performance and calibration",
    "fairness": "Group fairness",
    "leaks": "Proxies and leaks",
    "data": "Data quality",
    "drift": "Drift",
    "model": "Sanity of the model",
    "unlearning": "Forgetting",
}
"""Areas of the report, with the title of each section, in order."""

_ALL: Final[frozenset[Task]] = frozenset({"binary", "multiclass", "regression"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckSpec:
    """What the runner must know about a check before it runs.

    Parameters
    ----------
    name, area, title : str
    question : str
        What it answers, in one plain question.
    cost : {"light", "medium", "heavy"}
        Linear in the rows with a small constant; linear with a large one; fits models.
    row_cap : tuple of int or None
        The most rows it looks at with effort quick, standard and full; None for all. The runner draws them.
    tasks : frozenset
    needs : frozenset of Need
        What must be given for the check to apply.
    """

    name: str
    area: str
    title: str
    question: str
    cost: Cost
    row_cap: tuple[int | None, int | None, int | None] = (None, None, None)
    tasks: frozenset[Task] = _ALL
    needs: frozenset[Need] = frozenset()

    def rows(self, effort: Effort) -> int | None:
        """Return the row cap for `effort`."""
        return self.row_cap[EFFORTS.index(effort)]


TABULAR: Final[tuple[CheckSpec, ...]] = (
    CheckSpec(
        name="performance",
        area="performance",
        title="Performance",
        question="How good is the model, how sure is that, and does it beat a trivial answer?",
        cost="light",
    ),
    CheckSpec(
        name="calibration",
        area="performance",
        title="Calibration",
        question="When the model says 70 %, does it happen in 70 % of cases?",
        cost="light",
        tasks=frozenset({"binary", "multiclass"}),
        needs=frozenset({"score"}),
    ),
    CheckSpec(
        name="group_fairness",
        area="fairness",
        title="Group fairness",
        question="Is any group selected, missed or wronged more often than others?",
        cost="light",
        needs=frozenset({"sensitive"}),
    ),
    CheckSpec(
        name="price_of_fairness",
        area="fairness",
        title="Price of fairness",
        question="What accuracy would equal treatment of the groups cost?",
        cost="medium",
        row_cap=(20_000, 200_000, None),
        tasks=frozenset({"binary"}),
        needs=frozenset({"sensitive", "score"}),
    ),
    CheckSpec(
        name="sensitive_proxies",
        area="leaks",
        title="Proxies of sensitive attributes",
        question="Can a sensitive attribute be guessed from the features?",
        cost="heavy",
        row_cap=(2_000, 20_000, 200_000),
        needs=frozenset({"sensitive"}),
    ),
    CheckSpec(
        name="target_leak",
        area="leaks",
        title="Target leaks",
        question="Does a single feature give the answer away?",
        cost="medium",
        row_cap=(5_000, 50_000, None),
    ),
    CheckSpec(
        name="shared_rows",
        area="leaks",
        title="Rows shared with the training data",
        question="Were some of the test rows already seen in training?",
        cost="medium",
        needs=frozenset({"train"}),
    ),
    CheckSpec(
        name="duplicates",
        area="data",
        title="Duplicate rows",
        question="Does the same row occur more than once, and with different answers?",
        cost="medium",
    ),
    CheckSpec(
        name="column_health",
        area="data",
        title="Columns",
        question="Which columns are constant, empty, or have almost as many values as rows?",
        cost="medium",
    ),
    CheckSpec(
        name="group_missingness",
        area="data",
        title="Missing values by group",
        question="Are values missing more often for some groups?",
        cost="light",
        needs=frozenset({"sensitive"}),
    ),
    CheckSpec(
        name="column_drift",
        area="drift",
        title="Columns that changed",
        question="Have the columns changed since the reference: their values, or how often they are missing?",
        cost="medium",
        needs=frozenset({"reference"}),
    ),
    CheckSpec(
        name="score_drift",
        area="drift",
        title="The model's answers",
        question="Does the model answer otherwise than on the reference, for everybody or for some group?",
        cost="light",
        needs=frozenset({"reference", "reference predictions"}),
    ),
    CheckSpec(
        name="label_drift",
        area="drift",
        title="The true answers",
        question="Has the truth changed since the reference, for everybody or for some group?",
        cost="light",
        needs=frozenset({"reference", "reference labels"}),
    ),
    CheckSpec(
        name="performance_drift",
        area="drift",
        title="Performance since then",
        question="Has the model become worse since the reference?",
        cost="light",
        needs=frozenset({"reference", "reference predictions", "reference labels"}),
    ),
    CheckSpec(
        name="model_determinism",
        area="model",
        title="Determinism",
        question="Does the model give the same answer twice, in any row order and batch size?",
        cost="medium",
        row_cap=(500, 2_000, 20_000),
        needs=frozenset({"model"}),
    ),
    CheckSpec(
        name="model_inputs",
        area="model",
        title="Awkward inputs",
        question="Does the model survive missing values, unseen categories and a single row?",
        cost="medium",
        row_cap=(500, 2_000, 20_000),
        needs=frozenset({"model"}),
    ),
    CheckSpec(
        name="model_outputs",
        area="model",
        title="Answers in range",
        question="Are the model's probabilities probabilities, and do they agree with its labels?",
        cost="light",
        row_cap=(5_000, 50_000, None),
    ),
    CheckSpec(
        name="forgetting",
        area="unlearning",
        title="Forgetting",
        question="What does it cost to take one person's row out of the model?",
        cost="heavy",
        row_cap=(5_000, 50_000, None),
        needs=frozenset({"model", "train"}),
    ),
)


def select(only: tuple[str, ...] = (), skip: tuple[str, ...] = ()) -> tuple[CheckSpec, ...]:
    """Return the checks named by `only` (all where it is empty) without those named by `skip`.

    Parameters
    ----------
    only, skip : tuple of str
        Names of checks or of areas.

    Raises
    ------
    InputError
        For a name that is neither, or when nothing is left.
    """
    from difflib import get_close_matches

    known = {spec.name for spec in TABULAR} | set(AREAS)
    for name in (*only, *skip):
        if name not in known:
            near = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise InputError(
                f"no check or area is called {name!r}", remedy=f"{hint}See: aboveboard audit --list-checks"
            )
    chosen = tuple(
        spec
        for spec in TABULAR
        if (not only or spec.name in only or spec.area in only) and spec.name not in skip and spec.area not in skip
    )
    if not chosen:
        raise InputError("--only and --skip leave no check to run")
    return chosen
