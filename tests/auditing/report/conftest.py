"""A report with everything in it: every verdict, kind of column and of figure, certificates, acceptances."""

import functools
from collections.abc import Callable

import pytest

import aboveboard.auditing.report  # noqa: F401 - registers the renderers
from aboveboard.core import (
    SUPPRESSED,
    Assumption,
    Certificate,
    Column,
    Figure,
    Finding,
    Interval,
    Line,
    Reference,
    Report,
    Series,
    Table,
)

_GROUPS = ("Female", "Male", "(missing)")


def _rates() -> Table:
    return Table(
        "Selection rate by sex",
        (
            Column("Group", "text"),
            Column("n", "count", "Rows in the group"),
            Column("Rate", "percent"),
            Column("95% interval", "interval"),
            Column("Mean score"),
        ),
        (
            ("Female", 5421, 0.0812, (0.0742, 0.0887), 0.1113),
            ("Male", 10860, 0.2604, (0.2522, 0.2687), 0.3021),
            ("(missing)", SUPPRESSED, SUPPRESSED, SUPPRESSED, SUPPRESSED),
            ("Other", 12, None, None, -0.5),
        ),
        "Intervals are Wilson's.",
    )


def _forest() -> Figure:
    return Figure(
        "intervals",
        "Selection rate by sex",
        "Group",
        "Selection rate",
        (Series("Rate", _GROUPS, (0.0812, 0.2604, None), (0.0742, 0.2522, None), (0.0887, 0.2687, None)),),
        (Line("Everybody: 20.1%", 0.201), Line("Limit: 30.1%", 0.301)),
        "Women are selected far less often than men.",
        percent=True,
    )


def _curve() -> Figure:
    x = tuple(i / 10 for i in range(11))
    return Figure(
        "lines",
        "Reliability",
        "Predicted probability",
        "Observed frequency",
        (
            Series("All", x, tuple(v**1.1 for v in x), tuple(v**1.2 for v in x), tuple(v**1.0 for v in x)),
            Series("Female", x, (*(v**1.4 for v in x[:-1]), None)),
        ),
        (Line("Perfect", diagonal=True),),
        "The curve runs close to the diagonal.",
        percent=True,
    )


def _bars() -> Figure:
    return Figure(
        "bars",
        "Which features give sex away",
        "Feature",
        "AUC of the feature alone",
        (
            Series(
                "Alone",
                ("relationship", "marital-status", "hours"),
                (0.93, 0.81, 0.6),
                (0.92, 0.8, 0.5),
                (0.94, 0.82, 0.7),
            ),
            Series("Shuffled", ("relationship", "marital-status", "hours"), (0.5, 0.51, 0.49)),
        ),
        (Line("Limit", 0.75),),
        "The relationship column gives sex away on its own.",
    )


@functools.cache
def _report(name: str = "Female") -> Report:
    """Return the full report; `name` stands wherever a user's text can stand."""
    rates, forest = _rates(), _forest()
    renamed = Table(name, (Column(name, "text", name), Column(name)), ((name, 1.0), ("b", -2.5)), name)
    kinds = ("intervals", "lines", "bars")
    drawn = [
        Figure(
            kind,
            name,
            name,
            name,
            (Series(name, (name, "b") if kind != "lines" else (0.0, 1.0), (0.1, 0.4), (0.0, 0.3), (0.2, None)),),
            (Line(name, 0.2),),
            name,
        )
        for kind in (kinds if name == "Female" else [kinds[len(name) % 3]])
    ]
    findings = (
        Finding(
            id=f"group_fairness/selection_rate/sex={name}",
            check="group_fairness",
            area="fairness",
            statement=f"Rows with sex = {name} are selected 11.9 points less often than everybody together.",
            severity="fail",
            reason="The whole interval lies beyond the limit.",
            value=-0.1189,
            interval=Interval(-0.1265, -0.1113, method="max-|t| bootstrap", simultaneous=True),
            limit=0.1,
            limit_source="a convention of this project",
            group=f"sex={name}",
            n=5421,
            evidence=(rates, forest, renamed, *drawn),
            remedies=("RandomizedFairClassifier",),
        ),
        Finding(
            id="group_fairness/selection_rate/sex=Male",
            check="group_fairness",
            area="fairness",
            statement="Rows with sex = Male are selected 5.9 points more often than everybody together.",
            severity="ok",
            value=0.0594,
            interval=Interval(0.0555, 0.0633, method="max-|t| bootstrap", simultaneous=True),
            limit=0.1,
            limit_source="a convention of this project",
            n=10860,
            evidence=(rates, forest),
        ),
        Finding(
            id="sensitive_proxies/sex",
            check="sensitive_proxies",
            area="leaks",
            statement="Sex can be guessed from the features with an AUC of 0.93.",
            severity="warn",
            value=0.934,
            interval=Interval(0.929, 0.939, method="bootstrap"),
            limit=0.75,
            n=16281,
            evidence=(_bars(),),
            remedies=("RandomizedFairClassifier", name),
        ),
        Finding(
            id="group_fairness/tpr/race=Other",
            check="group_fairness",
            area="fairness",
            statement="The true positive rate of race = Other may or may not lie within 10 points of everybody's.",
            status="inconclusive",
            severity="note",
            reason="47 rows are too few to say.",
            value=-0.08,
            interval=Interval(-0.31, 0.16, method="max-|t| bootstrap", simultaneous=True),
            limit=0.1,
            n=47,
        ),
        Finding(
            id="calibration/ece",
            check="calibration",
            area="performance",
            statement="The scores stray from the observed frequencies by 1.2 points on average.",
            severity="note",
            value=0.0121,
            interval=Interval(0.0102, 0.0153, method="bootstrap"),
            n=16281,
            evidence=(_curve(),),
        ),
        Finding(
            id="performance/auc",
            check="performance",
            area="performance",
            statement="The area under the ROC curve is 0.927.",
            value=0.927,
            interval=Interval(0.923, 0.931, method="bootstrap"),
            n=16281,
            data="simulated",
        ),
        Finding(
            id="duplicates/rows",
            check="duplicates",
            area="data",
            statement="1,123 rows occur more than once.",
            severity="warn",
            value=1123,
            limit=100,
            n=16281,
        ),
    )
    not_run = (
        Finding(
            id="shared_rows",
            check="shared_rows",
            area="leaks",
            statement="Rows shared with the training data: did not run.",
            status="not_applicable",
            reason="No training data were given (train, --train).",
        ),
        Finding(
            id="model_inputs",
            check="model_inputs",
            area="model",
            statement="Awkward inputs: did not run.",
            status="error",
            reason=f"The check raised ValueError: {name}",
        ),
        Finding(
            id="model_outputs",
            check="model_outputs",
            area="model",
            statement="Answers in range: did not run.",
            status="skipped",
            reason="The audit was interrupted before this check.",
        ),
    )
    certificate = Certificate(
        kind="fair optimum",
        guarantee=f"No classifier with equal selection rates across {name} errs less often than 15.2%.",
        parameters={"epsilon": 0.01, "column": name, "grid": [1, 2]},
        assumptions=(
            Assumption("Scores are calibrated within each group.", "checked", "reliability test", 1.2, 3.8, True),
            Assumption(f"The groups are known: {name}"),
        ),
        confidence=0.95,
        does_not_cover=("People who are not like those in the data.", name),
        subject={"data": "ab" * 32},
        library_version="0.1.0",
        reference=Reference(title=name or "Untitled", authors="A. Author", venue="Venue", year=2025, url=name),
    )
    return Report(
        subject={
            "task": "binary",
            "target": name,
            "classes": ["<=50K", name],
            "positive": name,
            "rows": 16281,
            "training_rows": 32561,
            "model": "HistGradientBoostingClassifier",
            "prediction_type": "score",
            "threshold": 0.5,
            "features": [{"name": name, "kind": "category"}, {"name": "age", "kind": "number"}],
            "sensitive": [{"name": "sex", "groups": [name, "Male"]}],
            "reference_groups": {"sex": name},
            "weighted": False,
            "clusters": None,
            "min_cell": 10,
            "data_sha256": "0f" * 32,
        },
        findings=findings,
        certificates=(certificate,),
        not_run=not_run,
        limits=(
            {
                "name": "group_fairness.selection_rate",
                "value": 0.1,
                "unit": "points",
                "reason": "A tenth is what people notice.",
                "source": "a convention of this project",
                "by_user": False,
            },
            {
                "name": "duplicates.rows",
                "value": 100.0,
                "unit": "rows",
                "reason": "Set by the user.",
                "source": "the user",
                "by_user": True,
            },
        ),
        accepted=(
            {
                "id": "duplicates/rows",
                "reason": f"Known: {name}",
                "expires": "2099-01-01",
                "in_force": True,
                "found": True,
            },
            {"id": "calibration/mce", "reason": "Old", "expires": "2020-01-01", "in_force": False, "found": False},
        ),
        notes=(f"{name!r} is read as the positive class (positive, --positive).", f"The column {name} is no feature."),
        environment={"aboveboard": "0.1.0", "python": "3.11.2", "platform": "linux", "numpy": "2.4.0"},
        seed=7,
        timing={
            "begun": "2026-01-02T03:04:05+00:00",
            "seconds": 12.345,
            "checks": {"group_fairness": 3.2, "performance": 1.1},
            "effort": "standard",
        },
    )


@pytest.fixture(scope="session")
def report() -> Report:
    """The full report with harmless names."""
    return _report()


@pytest.fixture(scope="session")
def make_report() -> Callable[[str], Report]:
    """Make the full report with one name wherever a user's text can stand."""
    return _report
