"""The suite table: every suite with its checks, in the order in which the report shows them.

A check is a function ``aboveboard.auditing.checks.<name>.check(subject, *, random_state, effort) -> list[Finding]``,
and the subject of a suite other than the tabular one is read by ``aboveboard.auditing.subjects.<suite>``. This module
imports neither, so that listing them costs nothing.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from aboveboard.core.errors import InputError

__all__ = [
    "AREAS",
    "EFFORTS",
    "SUITES",
    "TABULAR",
    "CheckSpec",
    "Cost",
    "Effort",
    "Need",
    "Role",
    "Setting",
    "Streams",
    "Suite",
    "Task",
    "all_checks",
    "find_suite",
    "select",
]

Task = Literal["binary", "multiclass", "regression"]
Effort = Literal["quick", "standard", "full"]
Cost = Literal["light", "medium", "heavy"]
Need = str
"""What a check needs. In the tabular suite: sensitive, score, model, train, reference, reference predictions, reference
labels, other model; in the others: the role of a column."""
Streams = Literal["sums", "sample", "no"]

EFFORTS: Final[tuple[Effort, ...]] = ("quick", "standard", "full")

AREAS: Final[dict[str, str]] = {
    "performance": "Performance and calibration",
    "uncertainty": "When not to trust an answer",
    "explanation": "Reasons",
    "fairness": "Group fairness",
    "leaks": "Proxies and leaks",
    "data": "Data quality",
    "drift": "Drift",
    "model": "Sanity of the model",
    "strategic": "Gaming",
    "unlearning": "Forgetting",
    "privacy": "Privacy",
    "ranking": "Rankings",
    "feeds": "Feeds of comments",
    "networks": "Networks of opinions",
    "allocation": "Scarce stocks",
    "forecasts": "Forecasts that people react to",
    "certainty": "Words of certainty",
}
"""Areas of the report, with the title of each section, in order."""

_STREAMED_ROWS: Final = 200_000

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
        Of the tabular suite; the others have none.
    needs : frozenset of str
        What must be given for the check to apply, see `Need`.
    streams : {"sums", "sample", "no"}
        How it looks at data that do not fit into memory: at sums over all rows (its module then has ``layout``,
        ``summarise`` and ``judge``, see ``aboveboard.auditing.summaries``), at a sample, or not at all.
    looks_at_features : bool
        Whether it needs the features of the rows; a model needs them in any case.
    """

    name: str
    area: str
    title: str
    question: str
    cost: Cost
    row_cap: tuple[int | None, int | None, int | None] = (None, None, None)
    tasks: frozenset[Task] = _ALL
    needs: frozenset[Need] = frozenset()
    streams: Streams = "sample"
    looks_at_features: bool = True

    def rows(self, effort: Effort) -> int | None:
        """Return the row cap for `effort`."""
        return self.row_cap[EFFORTS.index(effort)]

    def sampled_rows(self, effort: Effort) -> int:
        """Return the row cap for `effort` where the data are streamed, and no check can look at all rows."""
        cap = self.rows(effort)
        return cap if cap is not None else max((cap for cap in self.row_cap if cap is not None), default=_STREAMED_ROWS)


TABULAR: Final[tuple[CheckSpec, ...]] = (
    CheckSpec(
        name="performance",
        area="performance",
        title="Performance",
        question="How good is the model, how sure is that, and does it beat a trivial answer?",
        cost="light",
        streams="sums",
        looks_at_features=False,
    ),
    CheckSpec(
        name="calibration",
        area="performance",
        title="Calibration",
        question="When the model says 70 %, does it happen in 70 % of cases?",
        cost="light",
        tasks=frozenset({"binary", "multiclass"}),
        needs=frozenset({"score"}),
        streams="sums",
        looks_at_features=False,
    ),
    CheckSpec(
        name="abstention",
        area="uncertainty",
        title="When not to trust",
        question="Does the model know where it errs, and whom would abstaining leave without an answer?",
        cost="medium",
        row_cap=(5_000, 50_000, None),
        tasks=frozenset({"binary", "multiclass"}),
        needs=frozenset({"score"}),
    ),
    CheckSpec(
        name="novel_rows",
        area="uncertainty",
        title="Rows unlike the training data",
        question="How many rows are unlike what the model was trained on, and is it right there?",
        cost="medium",
        row_cap=(5_000, 50_000, 200_000),
        needs=frozenset({"train"}),
    ),
    CheckSpec(
        name="model_multiplicity",
        area="uncertainty",
        title="Another model, another decision",
        question="For how many people would another model, as good as this one, decide otherwise?",
        cost="medium",
        row_cap=(20_000, 200_000, None),
        tasks=frozenset({"binary", "multiclass"}),
        needs=frozenset({"other model"}),
        streams="no",
    ),
    CheckSpec(
        name="reasons",
        area="explanation",
        title="Reasons",
        question="Which columns drive the answers, how stable is that, and does a sensitive attribute or a proxy?",
        cost="medium",
        row_cap=(2_000, 20_000, 200_000),
        needs=frozenset({"model"}),
    ),
    CheckSpec(
        name="group_fairness",
        area="fairness",
        title="Group fairness",
        question="Is any group selected, missed or wronged more often than others?",
        cost="light",
        needs=frozenset({"sensitive"}),
        streams="sums",
        looks_at_features=False,
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
        looks_at_features=False,
    ),
    CheckSpec(
        name="ridge_bias",
        area="fairness",
        title="What the data make of groups",
        question="Would more rows, more width or another penalty close the gap between groups?",
        cost="medium",
        row_cap=(2_000, 10_000, 200_000),
        tasks=frozenset({"binary", "regression"}),
        needs=frozenset({"sensitive"}),
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
        streams="no",
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
        streams="sums",
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
        name="joint_drift",
        area="drift",
        title="New rows told from old ones",
        question="Can a model tell new rows from those of the reference, and by which columns?",
        cost="heavy",
        row_cap=(2_000, 10_000, 50_000),
        needs=frozenset({"reference"}),
    ),
    CheckSpec(
        name="score_drift",
        area="drift",
        title="The model's answers",
        question="Does the model answer otherwise than on the reference, for everybody or for some group?",
        cost="light",
        needs=frozenset({"reference", "reference predictions"}),
        looks_at_features=False,
    ),
    CheckSpec(
        name="label_drift",
        area="drift",
        title="The true answers",
        question="Has the truth changed since the reference, for everybody or for some group?",
        cost="light",
        needs=frozenset({"reference", "reference labels"}),
        looks_at_features=False,
    ),
    CheckSpec(
        name="performance_drift",
        area="drift",
        title="Performance since then",
        question="Has the model become worse since the reference?",
        cost="light",
        needs=frozenset({"reference", "reference predictions", "reference labels"}),
        looks_at_features=False,
    ),
    CheckSpec(
        name="decay",
        area="drift",
        title="Who suffers, and why",
        question="For whom has the model become worse since the reference, and which columns explain it?",
        cost="heavy",
        row_cap=(2_000, 10_000, None),
        tasks=frozenset({"binary"}),
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
        looks_at_features=False,
    ),
    CheckSpec(
        name="gaming",
        area="strategic",
        title="Gaming",
        question="How far does a linear model fall when all applicants polish their features together?",
        cost="medium",
        row_cap=(2_000, 20_000, None),
        tasks=frozenset({"binary"}),
        needs=frozenset({"model", "score"}),
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
    CheckSpec(
        name="membership",
        area="privacy",
        title="Membership",
        question="Can it be told from the model's answers whose rows it was trained on?",
        cost="heavy",
        row_cap=(5_000, 50_000, None),
        needs=frozenset({"model", "train"}),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """What a column of the suite's table may be: ``--column NAME=COLUMN``.

    Parameters
    ----------
    name, help : str
    many : bool
        Whether several columns may have it.
    """

    name: str
    help: str
    many: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How the suite's table is to be read or judged: ``--setting NAME=VALUE``.

    Parameters
    ----------
    name, help : str
    choices : tuple of str
        The values that it can have; empty for any.
    number : bool
        Whether the value is a number; it reaches the reader as a float.
    """

    name: str
    help: str
    choices: tuple[str, ...] = ()
    number: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A kind of audit: what it takes, and what it looks at.

    Parameters
    ----------
    name, title : str
    takes : str
        What file it takes, as the rest of a sentence: "judges x items: ...".
    example : str
        What is audited without DATA, as the rest of a sentence.
    checks : tuple of CheckSpec
    unit : (str, str)
        What is counted in the findings, one and many: the ``n`` of a finding.
    columns : tuple of Role
    settings : tuple of Setting
    """

    name: str
    title: str
    takes: str
    example: str
    checks: tuple[CheckSpec, ...]
    unit: tuple[str, str] = ("row", "rows")
    columns: tuple[Role, ...] = ()
    settings: tuple[Setting, ...] = ()


SUITES: Final[tuple[Suite, ...]] = (
    Suite(
        name="tabular",
        title="Predictions on a table",
        takes="a table with known answers, predictions, and what else is known of each row",
        example="a boosted model on UCI Adult",
        checks=TABULAR,
    ),
    Suite(
        name="ranking",
        title="Rankings by many judges",
        takes=(
            "judges x items (one row per judge, one column per item), items x judges (name the column of the items), "
            "one row per judge and item (name judge, item and vote), or one row per comparison (name winner and loser)"
        ),
        example="the 100 ballots for the NBA coach of the year 2021",
        unit=("judge", "judges"),
        columns=(
            Role(name="judge", help="Who voted. In a table of judges x items it may be left out."),
            Role(name="item", help="What was voted on: rows are then items, or single votes where vote is named too."),
            Role(name="vote", help="With judge and item: the rank or score that this judge gave to this item."),
            Role(name="published", help="With item: the published order that is judged, a rank per item, 1 is best."),
            Role(name="winner", help="With loser: the item that was preferred in this comparison."),
            Role(name="loser", help="With winner: the other item of this comparison."),
            Role(name="tie", help="With winner and loser: whether neither was preferred (true or false)."),
        ),
        settings=(
            Setting(
                name="votes",
                help="What a vote is: a rank (1 is best) or a score (higher is better). Not for comparisons.",
                choices=("rank", "score"),
            ),
            Setting(
                name="missing",
                help="A missing vote is dissent from both orders (default), is ignored, or scales up the others.",
                choices=("dissent", "ignore", "rescale"),
            ),
        ),
        checks=(
            CheckSpec(
                name="rank_audit",
                area="ranking",
                title="Dissent from the order",
                question="Is anything placed above something else although too many judges do not agree?",
                cost="light",
            ),
            CheckSpec(
                name="rank_stability",
                area="ranking",
                title="Stability of the order",
                question="Would other judges of the same kind have put the items in another order?",
                cost="medium",
            ),
        ),
    ),
    Suite(
        name="feed",
        title="Feeds of comments",
        takes=(
            "single votes (one row per reader and comment: name reader, comment and vote), readers x comments (one row "
            "per reader, one column per comment), or comments x readers (name the column of the comments)"
        ),
        example="simulated votes of two camps on comments in order of a civility score",
        unit=("reader", "readers"),
        columns=(
            Role(name="reader", help="Who voted. In a table of readers x comments it may be left out."),
            Role(name="comment", help="What was voted on: rows are comments, or single votes where vote is named too."),
            Role(
                name="vote",
                help="With reader and comment: a number (above 0 approves), true or false, or words.",
            ),
            Role(name="published", help="With comment: its place in the feed that is judged, 1 is on top."),
            Role(name="score", help="With comment: what the feed is sorted by, higher on top."),
            Role(name="group", help="Of a reader: a group for which to report who is served; not judged.", many=True),
            Role(name="weight", help="Of a reader: what the reader counts."),
        ),
        settings=(
            Setting(name="lengths", help="How many comments are shown: one or more lengths, by default 5,10,20."),
            Setting(name="approve", help="Votes above this number approve (default 0).", number=True),
            Setting(
                name="missing",
                help="A missing vote is no approval (default), or is predicted from the others.",
                choices=("none", "predict"),
            ),
            Setting(
                name="order",
                help="Where no column says it: by approvals (default), or as the comments stand in the file.",
                choices=("approvals", "file"),
            ),
            Setting(
                name="readers",
                help="Whether these are all readers of the feed (default), or a random sample of them.",
                choices=("all", "sample"),
            ),
        ),
        checks=(
            CheckSpec(
                name="feed",
                area="feeds",
                title="Readers who are left out",
                question="Is a sizeable group of readers that agrees on a comment left without one it approves?",
                cost="medium",
            ),
        ),
    ),
    Suite(
        name="forecasts",
        title="Published forecasts and their outcomes",
        takes=(
            "a log with a row per forecast: the forecast as it was published, the outcome after, and what was known of "
            "the person; a column that is called like a role has it"
        ),
        example="simulated forecasts of who drops out of school, where those at risk get help",
        unit=("forecast", "forecasts"),
        columns=(
            Role(name="forecast", help="The probability, or share, that was published: between 0 and 1."),
            Role(name="outcome", help="What happened: true or false, or a number between 0 and 1."),
            Role(
                name="context",
                help="Known of the person: forecasts must match outcomes in each part. Default: all columns left.",
                many=True,
            ),
            Role(name="version", help="Which model made the forecast."),
            Role(name="time", help="When it was published, as a number or a date."),
            Role(name="arm", help="The way of forecasting that the person was assigned to at random."),
        ),
        settings=(
            Setting(name="explored", help="The arm in which forecasts were drawn at random, whatever was known."),
        ),
        checks=(
            CheckSpec(
                name="performativity",
                area="forecasts",
                title="Forecasts after publication",
                question="Do forecasts match what happens once they are published, and are they worth publishing?",
                cost="light",
            ),
        ),
    ),
    Suite(
        name="network",
        title="Networks of opinions",
        takes="an edge list: one row per edge, with the opinions of its ends beside it where they are known",
        example="Zachary's karate club, which split in two",
        unit=("account", "accounts"),
        columns=(
            Role(name="source", help="One end of the edge; by default, who listens."),
            Role(
                name="target",
                help="The other end; by default, who is listened to. Without one the row tells of an account.",
            ),
            Role(name="weight", help="How much, against a weight of 1 for one's own opinion; 1 without."),
            Role(name="opinion", help="The source's own opinion: a number, or one of two words."),
            Role(name="target_opinion", help="The target's own opinion, on the same scale."),
        ),
        settings=(
            Setting(
                name="direction",
                help="The source listens to the target (default), influences it, or both listen to each other.",
                choices=("listens", "influences", "mutual"),
            ),
            Setting(
                name="accounts",
                help="Whether the most influential accounts are named in the report; by default none is.",
                choices=("hidden", "named"),
            ),
            Setting(
                name="radius", help="By how much feeds may be re-weighted in the repair (default 0.2).", number=True
            ),
            Setting(name="decided_by", help="Who decides on the weights and answers for it, as the report shall say."),
        ),
        checks=(
            CheckSpec(
                name="opinions",
                area="networks",
                title="Opinions in the network",
                question="Does the network divide people, keep them from hearing others, or let a few speak for all?",
                cost="heavy",
            ),
        ),
    ),
    Suite(
        name="clustering",
        title="Clusters of people",
        takes="a table with a row per person, a column that names each one's cluster, and sensitive columns",
        example="k-means clusters of UCI Adult",
        columns=(
            Role(name="cluster", help="The cluster, or segment, that each row was put into."),
            Role(name="sensitive", help="Groups that clusters should not set apart, such as sex.", many=True),
        ),
        checks=(
            CheckSpec(
                name="cluster_balance",
                area="fairness",
                title="Balance of clusters",
                question="Is any group rare in some cluster, or crowded into it?",
                cost="light",
            ),
        ),
    ),
    Suite(
        name="allocation",
        title="Allocations of a scarce stock",
        takes="a log with a row per request, in order of arrival: what was asked for, and what was granted",
        example="a simulated log of US communities that share a daily stock, first come first served",
        unit=("request", "requests"),
        columns=(
            Role(name="demand", help="What was asked for; 0 is no request."),
            Role(name="granted", help="What was granted, in the same unit."),
            Role(name="round", help="What has a stock of its own, such as a day; by default all rows are one round."),
            Role(name="site", help="Where: each site has a stock of its own, and is reported like a group."),
            Role(name="order", help="When the request came: a number or a time; by default rows are in order."),
            Role(name="slot", help="The place in the queue, such as an hour; by default queues are cut into parts."),
            Role(name="stock", help="The stock of the row's round; or --setting stock=NUMBER."),
            Role(name="group", help="A group whose requests are compared with the others', such as sex.", many=True),
            Role(
                name="share",
                help="For each group column, in order: the population share of the row's group.",
                many=True,
            ),
        ),
        settings=(
            Setting(name="stock", help="The stock of each round; without it, what was granted.", number=True),
            Setting(name="slots", help="Into how many parts a queue is cut (default 10).", number=True),
        ),
        checks=(
            CheckSpec(
                name="allocation_audit",
                area="allocation",
                title="Who gets what",
                question="Does the place in the queue, or a group, decide how much somebody gets?",
                cost="medium",
            ),
        ),
    ),
    Suite(
        name="phrases",
        title="Phrases of certainty",
        takes="a table with a phrase of certainty per statement, such as 'likely', and whether it came true",
        example="GPT-4o's phrases on TruthfulQA, from published counts",
        unit=("statement", "statements"),
        columns=(
            Role(name="phrase", help="The phrase of certainty of each statement."),
            Role(name="text", help="Instead: a text in which the phrase is looked for."),
            Role(name="outcome", help="Whether it came true: true or false, 1 or 0, yes or no; or a probability."),
            Role(name="count", help="How many statements the row stands for."),
            Role(name="alpha", help="What the phrase means: the a of Beta(a, b), the same in all its rows."),
            Role(name="beta", help="With alpha: the b."),
            Role(name="mean", help="Instead of alpha and beta: one probability for the phrase."),
            Role(name="group", help="Who speaks, or about what: looked at one by one too.", many=True),
        ),
        settings=(
            Setting(
                name="unknown",
                help="Rows without a phrase of the vocabulary are refused (default), or left out.",
                choices=("refuse", "leave out"),
            ),
        ),
        checks=(
            CheckSpec(
                name="phrase_calibration",
                area="certainty",
                title="Honest phrases",
                question="Does 'likely' come true as often as readers take it to, and what should be said instead?",
                cost="light",
            ),
        ),
    ),
)


def all_checks() -> tuple[CheckSpec, ...]:
    """Return the checks of all suites."""
    return tuple(spec for suite in SUITES for spec in suite.checks)


def find_suite(name: str) -> Suite:
    """Return the suite of that name.

    Raises
    ------
    InputError
        When there is none; the nearest name is suggested.
    """
    for suite in SUITES:
        if suite.name == name:
            return suite
    names = [suite.name for suite in SUITES]
    near = get_close_matches(str(name), names, n=1, cutoff=0.5)
    raise InputError(
        f"no suite is called {name!r}",
        expected=", ".join(names),
        remedy=f"Did you mean {near[0]!r}?" if near else "",
    )


def select(only: tuple[str, ...] = (), skip: tuple[str, ...] = (), *, suite: str = "tabular") -> tuple[CheckSpec, ...]:
    """Return the checks of a suite named by `only` (all where it is empty) without those named by `skip`.

    Parameters
    ----------
    only, skip : tuple of str
        Names of checks or of areas.
    suite : str

    Raises
    ------
    InputError
        For a name that is neither, or when nothing is left.
    """
    checks = find_suite(suite).checks
    known = {spec.name for spec in checks} | {spec.area for spec in checks}
    for name in (*only, *skip):
        if name not in known:
            elsewhere = [s.name for s in SUITES if any(name in (spec.name, spec.area) for spec in s.checks)]
            near = get_close_matches(name, sorted(known), n=1, cutoff=0.5)
            hint = f"It belongs to the suite {elsewhere[0]}. " if elsewhere else ""
            hint = hint or (f"Did you mean {near[0]!r}? " if near else "")
            raise InputError(
                f"no check or area of the suite {suite} is called {name!r}",
                remedy=f"{hint}See: aboveboard audit --list-checks",
            )
    chosen = tuple(
        spec
        for spec in checks
        if (not only or spec.name in only or spec.area in only) and spec.name not in skip and spec.area not in skip
    )
    if not chosen:
        raise InputError("--only and --skip leave no check to run")
    return chosen
