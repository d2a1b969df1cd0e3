"""Two reports side by side: what is new, worse, better or gone, and which figures moved by more than chance.

A report holds aggregates, so it cannot tell which rows it shares with another. What can be said is said with that in
mind: see `Chance`.
"""

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final, Literal, cast, get_args

from aboveboard.auditing.gate import ERROR, INTERRUPTED, Verdict, judge, rank
from aboveboard.auditing.report.view import families, writing
from aboveboard.core.errors import InputError
from aboveboard.core.finding import Cell, Finding, Table, plain
from aboveboard.core.report import Report

__all__ = [
    "KINDS",
    "Change",
    "CheckChange",
    "Comparison",
    "Difference",
    "Estimate",
    "Measure",
    "compare",
    "table_figures",
]

Kind = Literal["new", "worse", "better", "gone", "unchecked", "unchanged"]
Writing = Literal["number", "percent", "points"]
Chance = Literal["beyond", "separate", "within", "unknown", "same_data", "equal"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""From what a reader should see first to what stayed as it was."""

_LEVEL: Final = 0.95
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure that both reports give, each with its interval where it has one.

    Parameters
    ----------
    id : str
        The finding it belongs to.
    name : str
        Empty for the figure that the finding was judged by; else row and column of its table.
    kind : {"number", "percent", "points"}
        How it is written: 0.25 is 25 % or 25 points.
    old, new : float
    old_interval, new_interval : pair of float, optional
    chance : {"beyond", "separate", "within", "unknown", "same_data", "equal"}
        ``"beyond"``: the two differ by more than chance, whatever rows the reports share. ``"separate"``: they do if
        the reports share no rows, or share some and the two estimates do not err in opposite directions. ``"within"``:
        these reports cannot tell the difference from chance. ``"unknown"``: one of the two has no interval.
        ``"same_data"``: rows, answers and predictions are the same, so it is something else that differs.
        ``"equal"``: no difference.
    """

    id: str
    name: str
    kind: Writing
    old: float
    new: float
    old_interval: tuple[float, float] | None
    new_interval: tuple[float, float] | None
    chance: Chance

    def to_dict(self) -> dict[str, Any]:
        return {name: plain(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Change:
    """A finding in the two reports, with the findings on single groups that stand under it.

    Parameters
    ----------
    kind : {"new", "worse", "better", "gone", "unchecked", "unchanged"}
        By severity, as `aboveboard audit --baseline` counts; a finding of which only a group is new is worse.
        ``"unchecked"``: the newer report does not have it because its check did not run there.
    old, new : Finding or None
    groups : tuple of Change
        Findings on single groups, each with its own kind.
    accepted : bool
        Whether an acceptance of it is in force in the newer report.
    other_limit : bool
        Whether the two were judged by different limits.
    """

    kind: Kind
    old: Finding | None
    new: Finding | None
    groups: tuple["Change", ...] = ()
    accepted: bool = False
    other_limit: bool = False

    @property
    def finding(self) -> Finding:
        """The newer finding, else the older."""
        finding = self.new or self.old
        assert finding is not None
        return finding

    def to_dict(self) -> dict[str, Any]:
        return {
            "id": self.finding.id,
            "kind": self.kind,
            "accepted": self.accepted,
            "other_limit": self.other_limit,
            "old": _brief(self.old),
            "new": _brief(self.new),
            "groups": [group.to_dict() for group in self.groups],
        }


@dataclass(frozen=True, slots=True)
class CheckChange:
    """A check that ran in one report and not in the other: ``"ran"``, why not, or ``"not asked for"``."""

    check: str
    old: str
    new: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Something else in which the reports differ: a limit, a fact about the subject, a version, an acceptance."""

    name: str
    old: Any
    new: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What `aboveboard.compare` returns; in a notebook it shows itself.

    Parameters
    ----------
    changes : tuple of Change
        Every finding of either report, what needs attention first.
    measures : tuple of Measure
        The figures that both reports give, those that moved farthest beyond chance first.
    checks : tuple of CheckChange
    limits, certificates, subject, setting, accepted : tuple of Difference
        Limits that differ; guarantees ("holds", "does not hold", or None); what was audited; versions, seed and effort;
        accepted findings (reason, or None).
    same_data : bool
        Whether rows, answers, predictions and groups have the same fingerprint.
    warnings : tuple of str
        What a reader must know before believing the rest.
    verdict : Verdict
        What `aboveboard audit --baseline OLD` would say of the newer report; its status is 4 where that report is not
        complete.
    fail_on : {"note", "warn", "fail"}
    old_report, new_report : Report
    """

    changes: tuple[Change, ...]
    measures: tuple[Measure, ...]
    checks: tuple[CheckChange, ...]
    limits: tuple[Difference, ...]
    certificates: tuple[Difference, ...]
    subject: tuple[Difference, ...]
    setting: tuple[Difference, ...]
    accepted: tuple[Difference, ...]
    same_data: bool
    warnings: tuple[str, ...]
    verdict: Verdict
    fail_on: Literal["note", "warn", "fail"]
    old_report: Report
    new_report: Report

    @property
    def counts(self) -> dict[Kind, int]:
        """How many findings there are of each kind; single groups count with their finding."""
        kinds = [change.kind for change in self.changes]
        return {kind: kinds.count(kind) for kind in KINDS if kind in kinds}

    @property
    def moved(self) -> tuple[Measure, ...]:
        """The figures that differ by more than chance, whatever rows the reports share or on separate ones."""
        return tuple(measure for measure in self.measures if measure.chance in ("beyond", "separate"))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON values."""

        def differences(items: tuple[Difference, ...]) -> list[dict[str, Any]]:
            return [{"name": item.name, "old": item.old, "new": item.new} for item in items]

        return {
            "comparison_version": 1,
            "status": self.verdict.status,
            "fail_on": self.fail_on,
            "counted": [finding.id for finding in self.verdict.counted],
            "counts": self.counts,
            "same_data": self.same_data,
            "warnings": list(self.warnings),
            "changes": [change.to_dict() for change in self.changes],
            "measures": [measure.to_dict() for measure in self.measures],
            "checks": [{name: getattr(check, name) for name in check.__slots__} for check in self.checks],
            "limits": differences(self.limits),
            "certificates": differences(self.certificates),
            "subject": differences(self.subject),
            "setting": differences(self.setting),
            "accepted": differences(self.accepted),
        }

    def to_json(self, path: str | Path | None = None) -> str:
        """Return it as JSON text, and write it to `path` where one is given."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        return _written(text.encode("utf-8", "backslashreplace").decode("utf-8"), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """Return it as GitHub-flavoured Markdown, such as a comment on a pull request, and write it to `path`."""
        from aboveboard.auditing.report.comparison import render_markdown

        return _written(render_markdown(self), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """Return it as one self-contained HTML page, and write it to `path` where one is given."""
        from aboveboard.auditing.report.comparison import render_html

        return _written(render_html(self), path)

    def _repr_html_(self) -> str:
        from aboveboard.auditing.report.comparison import render_notebook

        return render_notebook(self)

    def __str__(self) -> str:
        from aboveboard.auditing.report.comparison import render_text

        return render_text(self)

    def __repr__(self) -> str:
        return f"<Comparison: {', '.join(f'{n} {kind}' for kind, n in self.counts.items()) or 'no findings'}>"


def compare(
    old: Report | str | Path,
    new: Report | str | Path,
    *,
    fail_on: Literal["note", "warn", "fail"] = "fail",
    strict: bool = False,
) -> Comparison:
    """Compare two reports: what is new, worse, better or gone, and which figures moved by more than chance.

    Parameters
    ----------
    old, new : Report, or path of a report.json
    fail_on : {"note", "warn", "fail"}
        What is new or worse counts at this severity and above, as in ``aboveboard audit --baseline OLD``.
    strict : bool
        Findings that are inconclusive, and checks that were skipped, count too.

    Returns
    -------
    Comparison

    Raises
    ------
    InputError
        When one of them is no report, or they answer different questions: another task, or the positive class swapped.

    Notes
    -----
    Findings are compared by id and severity, groups together with the finding on all of them. Figures are compared
    where both reports give them with an interval. The distance from each estimate to the end of its interval that
    faces the other is taken as its error, scaled by the normal quantile of its level (the square-and-add method): the
    two errors are added as squares for estimates on separate rows, and as they are where nothing is known about the
    rows, which bounds the error of the difference under any dependence. Holm's method holds the chance of one false
    alarm among all figures at 5 %, each of the two ways. Simultaneous intervals are wider than single ones, so that the
    comparison of these errs on the side of caution. Cost: linear in the findings.

    References
    ----------
    G. Y. Zou, A. Donner, "Construction of confidence limits about effect measures: a general approach", Statistics in
    Medicine 27, 2008. S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
    Statistics 6, 1979.

    Examples
    --------
    >>> import aboveboard
    >>> from aboveboard.core import Finding, Report
    >>> def report(severity):
    ...     about = {"id": "calibration/ece", "check": "calibration", "area": "performance", "statement": "..."}
    ...     return Report(subject={"task": "binary"}, findings=(Finding(**about, severity=severity),))
    >>> comparison = aboveboard.compare(report("ok"), report("fail"))
    >>> comparison.counts, comparison.verdict.status
    ({'worse': 1}, 1)
    """
    old, new = _read(old, "older"), _read(new, "newer")
    _refuse_other_questions(old, new)
    verdict = judge(new, fail_on=fail_on, strict=strict, baseline=old)
    if verdict.status == INTERRUPTED:  # it was the audit, not this comparison, that was interrupted
        verdict = replace(verdict, status=ERROR)
    same_data = _same(old, new, "data_sha256")
    checks = tuple(_check_changes(old, new))
    changes = sorted(_changes(old, new), key=_attention)
    return Comparison(
        changes=tuple(changes),
        measures=_measures(changes, old, new, same_data=same_data),
        checks=checks,
        limits=tuple(_limit_changes(old, new)),
        certificates=tuple(_certificate_changes(old, new)),
        subject=tuple(_subject_changes(old, new)),
        setting=tuple(_setting_changes(old, new)),
        accepted=tuple(_accepted_changes(old, new)),
        same_data=same_data,
        warnings=tuple(_warnings(old, new)),
        verdict=verdict,
        fail_on=fail_on,
        old_report=old,
        new_report=new,
    )


def _read(report: Report | str | Path, which: str) -> Report:
    if isinstance(report, Report):
        return report
    try:
        return Report.from_json(report)
    except InputError as error:
        raise InputError(f"the {which} report: {error.got}", expected=error.expected, remedy=error.remedy) from error


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
    return text


def _brief(finding: Finding | None) -> dict[str, Any] | None:
    """Return a finding as JSON values, without its evidence."""
    if finding is None:
        return None
    return {name: value for name, value in finding.to_dict().items() if name not in ("tables", "figures")}


# --- findings ---------------------------------------------------------------------------------------------------------


def _changes(old: Report, new: Report) -> Iterator[Change]:
    """Give a change for each family of findings in either report."""
    before, after = _by_id(old), _by_id(new)
    ran = {finding.check for finding in new.findings}
    changed_limits = {difference.name.partition(".")[0] for difference in _limit_changes(old, new)}
    here = {finding.id for finding in new.findings}
    lost: dict[str, list[Finding]] = {}  # groups that stood out before, by the finding that they stood under
    alone: list[tuple[Finding, list[Finding]]] = []
    for family in families(old.findings):
        groups = [group for group in family.groups if group.id not in here]
        if family.head.id in here:
            lost[family.head.id] = groups
        else:
            alone.append((family.head, groups))

    def change(now: Finding) -> Change:
        then = before.get(now.id)
        kind: Kind = "new" if then is None else _kind(then, now)
        moved = then is not None and then.limit != now.limit and now.check in changed_limits
        return Change(kind, then, now, accepted=now.id in new.accepted_ids, other_limit=moved)

    def vanished(then: Finding) -> Change:
        looked = then.check in ran and then.id not in after
        return Change("gone" if looked else "unchecked", then, after.get(then.id))

    for family in families(new.findings):
        members = [change(group) for group in family.groups] + [vanished(f) for f in lost.pop(family.head.id, [])]
        yield _with_groups(change(family.head), members)
    for groups in lost.values():  # of findings that stand under another one now
        yield from map(vanished, groups)
    for head, groups in alone:
        yield replace(vanished(head), groups=tuple(map(vanished, groups)))


def _by_id(report: Report) -> dict[str, Finding]:
    found: dict[str, Finding] = {}
    for finding in (*report.findings, *report.not_run):
        if finding.id in found:
            raise InputError(f"a report has two findings with the id {finding.id!r}", expected="ids that are unique")
        found[finding.id] = finding
    return found


def _kind(then: Finding, now: Finding) -> Kind:
    if then.status not in ("ran", "inconclusive"):
        return "new"
    return "worse" if rank(now) > rank(then) else "better" if rank(now) < rank(then) else "unchanged"


def _with_groups(head: Change, groups: list[Change]) -> Change:
    kinds = {group.kind for group in groups}
    kind = head.kind
    if kind in ("better", "unchanged") and kinds & {"new", "worse"}:
        kind = "worse"
    elif kind == "unchanged" and kinds & {"better", "gone"}:
        kind = "better"
    return replace(head, kind=kind, groups=tuple(groups))


def _attention(change: Change) -> tuple[int, float, str]:
    worst = max(rank(finding) for finding in (change.old, change.new) if finding is not None)
    return KINDS.index(change.kind), -worst, change.finding.id


# --- figures ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval, where it has one, and the level of that."""

    value: float
    interval: tuple[float, float] | None
    level: float
    kind: Writing

    def error(self, *, above: bool) -> float:
        """Return the standard error that the side of the interval above, or below, the estimate stands for."""
        assert self.interval is not None
        low, high = self.interval
        side = high - self.value if above else self.value - low
        if not low <= self.value <= high:  # as bootstrap intervals can have it
            side = max(abs(side), (high - low) / 2)
        return side / _NORMAL.inv_cdf((1 + self.level) / 2)


def _measures(changes: Iterable[Change], old: Report, new: Report, *, same_data: bool) -> tuple[Measure, ...]:
    """Return the figures that both reports give, with what can be said about chance."""
    distinct: dict[tuple[str, str, Estimate, Estimate], str] = {}  # several findings of a check may show one figure
    for change in changes:
        if change.old is not None and change.new is not None:
            same_unit = writing(change.old, old) == writing(change.new, new)
            kind = cast(Writing, writing(change.new, new)) if same_unit else "number"
            for name, then, now in _pairs(change.old, change.new, kind):
                distinct.setdefault((name or change.new.id, change.new.check, then, now), change.new.id)
    pairs = [(id_, "" if name == id_ else name, then, now) for (name, _, then, now), id_ in distinct.items()]
    tested = [at for at, (_, _, a, b) in enumerate(pairs) if a.interval and b.interval]
    scores = [_scores(pairs[at][2], pairs[at][3]) for at in tested]
    beyond = {at for at, on in zip(tested, _holm([any_rows for any_rows, _ in scores]), strict=True) if on}
    separate = {at for at, on in zip(tested, _holm([apart for _, apart in scores]), strict=True) if on}
    strength = {at: -apart for at, (_, apart) in zip(tested, scores, strict=True)}
    found = []
    for at, (finding_id, name, then, now) in enumerate(pairs):
        chance: Chance = "unknown"
        if then.value == now.value and then.interval == now.interval:
            chance = "equal"
        elif same_data:
            chance = "same_data"
        elif at in strength:
            chance = "beyond" if at in beyond else "separate" if at in separate else "within"
        measure = Measure(finding_id, name, then.kind, then.value, now.value, then.interval, now.interval, chance)
        found.append((_CHANCES.index(chance), strength.get(at, 0.0), at, measure))
    return tuple(measure for *_, measure in sorted(found, key=lambda entry: entry[:3]))


_CHANCES: Final[tuple[Chance, ...]] = get_args(Chance)


def _scores(then: Estimate, now: Estimate) -> tuple[float, float]:
    """Return the distance in standard errors: at the least, whatever rows are shared, and on separate rows."""
    rises = now.value > then.value
    gap = abs(now.value - then.value)
    errors = then.error(above=rises), now.error(above=not rises)
    return _ratio(gap, sum(errors)), _ratio(gap, math.hypot(*errors))


def _ratio(gap: float, error: float) -> float:
    return gap / error if error > 0 else math.inf if gap > 0 else 0.0


def _holm(scores: list[float]) -> list[bool]:
    """Return which of the normal scores differ from zero, with one false alarm at most in 95 % of comparisons."""
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    found = [False] * len(scores)
    for place, at in enumerate(order):
        if 2 * _NORMAL.cdf(-scores[at]) * (len(scores) - place) > 1 - _LEVEL:
            break
        found[at] = True
    return found


def _pairs(then: Finding, now: Finding, kind: Writing) -> Iterator[tuple[str, Estimate, Estimate]]:
    """Give the figures of a finding in both reports: its own, unless that stands in a table, and those in its tables.

    The figure of a finding on several groups is that of the farthest group, which may be another one by now, so the
    rows of the table are compared instead.
    """
    own = _own(then, kind), _own(now, kind)
    if own[0] and own[1] and then.group == now.group and not (_in_table(then) or _in_table(now)):
        yield "", own[0], own[1]
    for table in now.tables:
        before = next((t for t in then.tables if t.title == table.title and t.columns == table.columns), None)
        if before is None:
            continue
        figures = table_figures(before)
        for name, estimate in table_figures(table).items():
            if name in figures:
                yield name, figures[name], estimate


def _own(finding: Finding, kind: Writing) -> Estimate | None:
    if finding.value is None or finding.status not in ("ran", "inconclusive"):
        return None
    interval = finding.interval
    if interval is None or not (_usable((interval.low, interval.high)) and 0 < interval.level < 1):
        return Estimate(finding.value, None, _LEVEL, kind)
    return Estimate(finding.value, (interval.low, interval.high), interval.level, kind)


def _in_table(finding: Finding) -> bool:
    if finding.interval is None:
        return False
    wanted = finding.value, (finding.interval.low, finding.interval.high)
    return any(pair == wanted for table in finding.tables for row in table.rows for pair in pairwise(row))


def table_figures(table: Table) -> dict[str, Estimate]:
    """Return each figure of a table that is followed by its interval, by the names of row and column."""
    found: dict[str, list[Estimate]] = {}
    texts = next((at for at, column in enumerate(table.columns) if column.kind != "text"), len(table.columns))
    for at, (column, following) in enumerate(pairwise(table.columns)):
        level = _named_level(following.name) if following.kind == "interval" else None
        if level is None or column.kind not in ("number", "percent"):
            continue
        kind: Writing = "percent" if column.kind == "percent" else "number"
        for row in table.rows:
            value, interval = row[at], row[at + 1]
            if _is_number(value) and isinstance(interval, tuple) and _usable(interval):
                words = [*map(str, row[:texts]), column.name if column.name != "value" else ""]
                name = ", ".join(filter(None, words))
                found.setdefault(name, []).append(Estimate(float(cast(float, value)), interval, level, kind))
    return {name: estimates[0] for name, estimates in found.items() if len(estimates) == 1}


def _named_level(name: str) -> float | None:
    """Return the level that the head of an interval column names, as in "95 % interval"."""
    share = name.partition("%")[0].strip()
    level = float(share) / 100 if "%" in name and share.replace(".", "", 1).isdecimal() else None
    return level if level is not None and 0 < level < 1 else None


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and math.isfinite(cell)


def _usable(interval: tuple[Any, ...]) -> bool:
    return len(interval) == 2 and all(map(_is_number, interval)) and interval[0] <= interval[1]


# --- what else differs ------------------------------------------------------------------------------------------------


def _refuse_other_questions(old: Report, new: Report) -> None:
    suites = [report.subject.get("suite", "tabular") for report in (old, new)]
    if suites[0] != suites[1]:
        raise InputError(
            f"the older report is of the suite {suites[0]} and the newer of the suite {suites[1]}",
            expected="two reports on the same question",
        )
    tasks = [report.subject.get("task") for report in (old, new)]
    if tasks[0] != tasks[1]:
        raise InputError(
            f"the older report is about a {tasks[0]} task and the newer about a {tasks[1]} one",
            expected="two reports on the same question",
        )
    classes = [report.subject.get("classes") for report in (old, new)]
    positives = [report.subject.get("positive") for report in (old, new)]
    if classes[0] == classes[1] and positives[0] != positives[1]:
        raise InputError(
            f"the positive class is {positives[0]!r} in the older report and {positives[1]!r} in the newer, so that "
            "every rate is about other people",
            expected="two reports on the same question",
            remedy="Audit again with the same --positive",
        )


def _same(old: Report, new: Report, name: str) -> bool:
    return old.subject.get(name) is not None and old.subject.get(name) == new.subject.get(name)


def _check_changes(old: Report, new: Report) -> Iterator[CheckChange]:
    states = []
    for report in (old, new):
        state = {f.check: (f.status, f.reason) for f in report.not_run if f.id == f.check}
        states.append(state | dict.fromkeys((f.check for f in report.findings), ("ran", "")))
    names = dict.fromkeys((*states[1], *states[0]))
    for name in names:
        (then, why_then), (now, why_now) = (state.get(name, ("not asked for", "")) for state in states)
        if then != now:
            yield CheckChange(name, then, now, why_now or why_then)


def _limit_changes(old: Report, new: Report) -> Iterator[Difference]:
    before = {str(limit.get("name")): limit.get("value") for limit in old.limits}
    after = {str(limit.get("name")): limit.get("value") for limit in new.limits}
    for name in dict.fromkeys((*before, *after)):
        judged_in_both = all(name.partition(".")[0] in {f.check for f in report.findings} for report in (old, new))
        if before.get(name) != after.get(name) and judged_in_both:
            yield Difference(name, before.get(name), after.get(name))


def _certificate_changes(old: Report, new: Report) -> Iterator[Difference]:
    before, after = (
        {c.guarantee: "holds" if c.holds else "does not hold" for c in report.certificates} for report in (old, new)
    )
    for guarantee in dict.fromkeys((*before, *after)):
        if before.get(guarantee) != after.get(guarantee):
            yield Difference(guarantee, before.get(guarantee), after.get(guarantee))


_PLAIN_FACTS: Final = (
    "target", "classes", "positive", "model", "prediction_type", "threshold", "rows", "training_rows", "weighted",
    "clusters", "min_cell", "data_sha256",
)  # fmt: skip


def _subject_changes(old: Report, new: Report) -> Iterator[Difference]:
    for name in _PLAIN_FACTS:
        then, now = old.subject.get(name), new.subject.get(name)
        if then != now:
            yield Difference(name, then, now)
    for name in ("features", "sensitive"):
        before, after = ({str(entry.get("name")): entry for entry in r.subject.get(name) or []} for r in (old, new))
        for item in dict.fromkeys((*before, *after)):
            if before.get(item) != after.get(item):
                yield Difference(f"{name}: {item}", _kept(before.get(item)), _kept(after.get(item)))
    before, after = ({f["name"]: f["value"] for f in r.subject.get("facts") or []} for r in (old, new))
    for item in dict.fromkeys((*before, *after)):
        if before.get(item) != after.get(item):
            yield Difference(str(item), before.get(item), after.get(item))
    before, after = (report.subject.get("reference_groups") or {} for report in (old, new))
    for item in dict.fromkeys((*before, *after)):
        if before.get(item) != after.get(item):
            yield Difference(f"reference group: {item}", before.get(item), after.get(item))


def _kept(entry: dict[str, Any] | None) -> Any:
    """Return what a feature (its kind) or a sensitive column (its groups) is beside its name."""
    return None if entry is None else entry.get("kind", entry.get("groups"))


def _setting_changes(old: Report, new: Report) -> Iterator[Difference]:
    for name in dict.fromkeys((*old.environment, *new.environment)):
        if old.environment.get(name) != new.environment.get(name):
            yield Difference(name, old.environment.get(name), new.environment.get(name))
    for name, then, now in (
        ("seed", old.seed, new.seed),
        ("effort", old.timing.get("effort"), new.timing.get("effort")),
    ):
        if then != now:
            yield Difference(name, then, now)


def _accepted_changes(old: Report, new: Report) -> Iterator[Difference]:
    before, after = (
        {entry["id"]: entry.get("reason") for entry in report.accepted if entry["id"] in report.accepted_ids}
        for report in (old, new)
    )
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Difference(name, before.get(name), after.get(name))


def _warnings(old: Report, new: Report) -> Iterator[str]:
    for word, report in (("older", old), ("newer", new)):
        if not report.complete:
            yield f"The audit behind the {word} report was interrupted, so that report lacks checks."
    for finding in new.not_run:
        if finding.status == "error":
            yield f"In the newer report the check {finding.check} failed to run: {finding.reason}"
    targets = [report.subject.get("target") for report in (old, new)]
    if targets[0] != targets[1]:
        yield f"The target is {targets[0]!r} in the older report and {targets[1]!r} in the newer."
    if old.subject.get("classes") != new.subject.get("classes"):
        yield "The classes have other labels."
    gone = [
        str(entry.get("name"))
        for entry in old.subject.get("sensitive") or []
        if entry.get("name") not in {other.get("name") for other in new.subject.get("sensitive") or []}
    ]
    if gone:
        yield f"Nobody looked at {', '.join(gone)} this time, so findings about that are gone and not mended."
    if any(_limit_changes(old, new)):
        yield "The reports were judged by other limits, so a verdict may have changed where nothing else did."
    for name, what in (("aboveboard", "versions of aboveboard"), ("effort", "efforts")):
        if any(difference.name == name for difference in _setting_changes(old, new)):
            yield f"The reports were made with different {what}, which can change figures and verdicts."
