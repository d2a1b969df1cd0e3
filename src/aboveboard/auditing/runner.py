"""Run the checks of a suite over a subject, and gather what they found into a report."""

import hashlib
import importlib
import logging
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from importlib import metadata
from typing import Any, Final, Literal

import aboveboard
from aboveboard.auditing.answers import PredictionType, Task
from aboveboard.auditing.model import source_of
from aboveboard.auditing.parquet import is_source
from aboveboard.auditing.streaming import StreamedSubject, StreamedTable, read_or_stream, stream_subject
from aboveboard.auditing.subject import Subject, make_subject
from aboveboard.auditing.suite_subject import Audited
from aboveboard.auditing.suites import EFFORTS, CheckSpec, Effort, select
from aboveboard.core.errors import InputError, ModelError
from aboveboard.core.finding import SEVERITIES, SUPPRESSED, Cell, Finding, Table
from aboveboard.core.progress import Progress, progress
from aboveboard.core.report import Report

__all__ = ["audit", "run_checks"]

_log = logging.getLogger("aboveboard")

_VERSIONED: Final = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "matplotlib")


def audit(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    suite: str = "tabular",
    columns: Mapping[str, str | Sequence[str]] | None = None,
    settings: Mapping[str, Any] | None = None,
    sensitive_features: Any = None,
    train: Any = None,
    reference: Any = None,
    predictions: Any = None,
    compare: Any = None,
    compare_predictions: Any = None,
    prediction_type: PredictionType | None = None,
    task: Literal["auto"] | Task = "auto",
    positive: Any = None,
    threshold: float | None = None,
    sample_weight: Any = None,
    clusters: Any = None,
    ids: Any = None,
    drop: Sequence[str] = (),
    reference_group: Mapping[str, str] | None = None,
    only: str | Sequence[str] | None = None,
    skip: str | Sequence[str] | None = None,
    effort: Effort = "standard",
    limits: Mapping[str, float] | None = None,
    accept: Sequence[Mapping[str, Any]] = (),
    min_cell: int = 10,
    n_jobs: int | None = None,
    random_state: int = 0,
    show_progress: bool | None = None,
    stream: bool | None = None,
) -> Report:
    """Audit a model, or predictions that it made, on data with known answers.

    Parameters
    ----------
    model : fitted estimator, callable or None
        A callable takes a data frame and returns probabilities (numbers for regression). None: give `predictions`.
    X : data frame or array of shape (n, d), path, or pyarrow.dataset.Dataset
        pandas, Polars, PyArrow or NumPy. The model gets the columns it was fitted on, else all but those named below.
        Or the path of a file, of a folder of Parquet files, or a data set of PyArrow made of such files: then every
        other argument names a column.
    y : str or one value per row
        The target: the name of a column of `X`, or the values.
    suite : str
        What kind of audit: predictions on a table, or one of the suites that take a natural file of their own, such as
        ``"ranking"``. For those `model` is None, `X` is the data (None: the suite's bundled example), `columns` and
        `settings` say what is in it, and the options from `y` to `reference_group` do not apply.
    columns : dict, optional
        For the other suites: role to the name of the column that has it (`aboveboard audit --list-checks` lists them).
    settings : dict, optional
        For the other suites: how the data are to be read.
    sensitive_features : list of str, dict, Series or data frame, optional
        Column names (``"age:25,40,60"`` cuts numbers into groups; ``{"age": [25, 40, 60]}`` likewise), or the groups.
    train : (X_train, y_train) or data frame with the target's column, optional
    reference : data frame, (X_old, y_old) or (X_old, y_old, predictions_old), optional
        Older rows to compare with: have the data changed? Labels and predictions are found under the names that they
        have in `X`, and may be lacking; a model is asked about these rows too.
    predictions : str, list of str, or values, optional
        Scores, labels or numbers: a column, or one column per class.
    compare : fitted estimator or callable, optional
        Another model for the same decisions, asked about the same rows once: for how many people would it decide
        otherwise? (Two reports are compared by `aboveboard.compare`.)
    compare_predictions : str, list of str, or values, optional
        Predictions of another model, instead of `compare`.
    prediction_type : {"score", "label"}, optional
        Guessed where it is not given; the report says what was guessed.
    task : {"auto", "binary", "multiclass", "regression"}
    positive : optional
        Binary tasks: the label that counts as 1.
    threshold : float in [0, 1], optional
        Binary tasks: predict the positive class where its score is at least this. Default: as the model decides; 0.5
        for given scores.
    sample_weight, clusters, ids : str or one value per row, optional
        Weights; what rows belong to one person (intervals resample these); record ids. Columns named here are no
        features.
    drop : list of str
        Columns that are no features either.
    reference_group : dict, optional
        Sensitive column to the group that the others are compared with. Default: everybody together.
    only, skip : str or list of str, optional
        Names of checks or areas.
    effort : {"quick", "standard", "full"}
        How many rows the heavy checks look at.
    limits : dict, optional
        Limits of your own, such as ``{"group_fairness.selection_rate": 0.05}``.
    accept : list of dict
        Findings that somebody accepted: ``{"id": ..., "reason": ..., "expires": date}``.
    min_cell : int
        No figure is shown that describes fewer people than this.
    n_jobs : int, optional
        As in joblib: how many checks run at once, and how many processes read data that are streamed (under
        ``joblib.parallel_config(backend="dask")``, other machines).
    random_state : int
        Same seed and inputs, same report.
    show_progress : bool, optional
        Default: only on a terminal.
    stream : bool, optional
        Read Parquet files part by part and never hold all rows. Default: where they would not fit into the memory that
        is left.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        When something cannot be used as given; it is a ``ValueError``.
    ModelError
        When the model fails on the data.

    Notes
    -----
    Most checks are linear in the rows; those that fit models have a row cap that grows with `effort`.

    Examples
    --------
    >>> import aboveboard
    >>> from aboveboard.data import load_adult
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> adult = load_adult()
    >>> X, y = adult.X.select_dtypes("number"), adult.y
    >>> model = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(X[:5000], y[:5000])
    >>> report = aboveboard.audit(
    ...     model, X[5000:8000], y[5000:8000], sensitive_features=adult.sensitive[["sex"]][5000:8000], only="fairness"
    ... )
    >>> report.worst
    'fail'
    """
    if effort not in EFFORTS:
        raise InputError(f"the effort is {effort!r}", expected=", ".join(EFFORTS))
    if isinstance(random_state, bool) or not hasattr(random_state, "__index__") or random_state < 0:
        raise InputError(f"random_state (the seed) is {random_state!r}", expected="a whole number, 0 or more")
    checks = select(_names(only), _names(skip), suite=suite)
    accepted = _acceptances(accept)
    if suite != "tabular":
        from aboveboard.auditing.suite_audit import audit_suite, refuse_tabular

        refuse_tabular(
            suite,
            model=model,
            y=y,
            sensitive_features=sensitive_features,
            train=train,
            reference=reference,
            predictions=predictions,
            compare=compare,
            compare_predictions=compare_predictions,
            prediction_type=prediction_type,
            task=None if task == "auto" else task,
            positive=positive,
            threshold=threshold,
            sample_weight=sample_weight,
            clusters=clusters,
            ids=ids,
            drop=drop or None,
            reference_group=reference_group,
            stream=stream,
        )
        return audit_suite(
            suite,
            X,
            checks=checks,
            columns=columns,
            settings=settings,
            effort=effort,
            limits=limits,
            accepted=accepted,
            min_cell=min_cell,
            n_jobs=n_jobs,
            random_state=random_state,
            show_progress=show_progress,
        )
    if columns or settings:
        raise InputError(
            f"{'columns' if columns else 'settings'} were given and the suite is tabular",
            expected="a suite that takes them",
            remedy="Name it (suite=..., --suite), or see: aboveboard audit --list-checks",
        )
    begun = datetime.now(UTC)
    table, read_notes = _table(X, stream)
    read: Callable[..., Subject] = partial(make_subject, compare=compare, compare_predictions=compare_predictions)
    if isinstance(table, StreamedTable):
        if compare is not None or compare_predictions is not None:
            raise InputError(
                "the data are streamed and there is another model to compare with",
                expected="data that are read into memory",
                remedy="Take a random sample of the rows, or say stream=False (--no-stream) where they fit",
            )
        source = source_of(model)
        if source is not None and source.format == "endpoint":
            raise InputError(
                "the data are streamed and the model is an endpoint, which would be asked about every row",
                expected="predictions in the table, or a model that runs here",
                remedy="Ask it about a random sample of the rows",
            )
        read = partial(stream_subject, show_progress=show_progress)
    subject = read(
        model,
        table,
        y,
        sensitive_features=sensitive_features,
        train=train,
        reference=reference,
        predictions=predictions,
        prediction_type=prediction_type,
        task=task,
        positive=positive,
        threshold=threshold,
        sample_weight=sample_weight,
        clusters=clusters,
        ids=ids,
        drop=drop,
        reference_group=reference_group,
        limits=limits,
        min_cell=min_cell,
        n_jobs=n_jobs,
    )
    return run_checks(
        replace(subject, notes=(*read_notes, *subject.notes)),
        checks,
        effort=effort,
        random_state=random_state,
        accepted=accepted,
        begun=begun,
        show_progress=show_progress,
    )


def _table(X: Any, stream: bool | None) -> tuple[Any, tuple[str, ...]]:
    """Return what to audit, a table or files that are to be streamed, and notes on how it was read."""
    if isinstance(X, StreamedTable):
        return X, ()
    if is_source(X):
        read = read_or_stream(X, stream=stream)
        return (read if isinstance(read, StreamedTable) else read.frame), read.notes
    if stream:
        raise InputError(
            f"stream is set and X is a {type(X).__name__}",
            expected="the path of a Parquet file or of a folder of them, or a data set of PyArrow",
        )
    return X, ()


def run_checks(
    subject: Audited,
    checks: Sequence[CheckSpec],
    *,
    effort: Effort = "standard",
    random_state: int = 0,
    accepted: tuple[dict[str, Any], ...] = (),
    begun: datetime | None = None,
    show_progress: bool | None = None,
) -> Report:
    """Run `checks` over `subject`; an interrupt keeps what has been found and marks the report incomplete."""
    begun = begun or datetime.now(UTC)
    if isinstance(subject, StreamedSubject):
        subject = _gathered(subject, checks, effort, random_state)
    ended: dict[str, _Result] = {}
    complete = True
    with progress(len(checks), enabled=show_progress) as bar:
        try:
            _run_all(subject, checks, effort, random_state, bar, ended)
        except KeyboardInterrupt:
            complete = False
            _log.warning("Interrupted after %d of %d checks; what was found is kept.", len(ended), len(checks))
    results = [ended[spec.name] for spec in checks if spec.name in ended]
    findings = [_guarded(finding, subject.min_cell) for result in results for finding in result.findings]
    done = {result.name for result in results}
    findings += [
        _silent(spec, "skipped", "The audit was interrupted before this check.")
        for spec in checks
        if spec.name not in done
    ]
    used = {spec.name for spec in checks}
    return Report(
        subject=subject.describe(),
        findings=tuple(sorted((f for f in findings if f.status in ("ran", "inconclusive")), key=_worst_first)),
        not_run=tuple(f for f in findings if f.status not in ("ran", "inconclusive")),
        limits=tuple(limit.to_dict() for name, limit in subject.limits.items() if name.partition(".")[0] in used),
        accepted=tuple(entry | {"found": any(f.id == entry["id"] for f in findings)} for entry in accepted),
        notes=(*subject.notes, *_group_notes(subject), *(note for result in results for note in result.notes)),
        environment=_environment(),
        seed=random_state,
        timing={
            "begun": begun.isoformat(timespec="seconds"),
            "seconds": round((datetime.now(UTC) - begun).total_seconds(), 3),
            "checks": {result.name: round(result.seconds, 3) for result in results},
            "effort": effort,
        },
        complete=complete,
    )


def _group_notes(subject: Audited) -> list[str]:
    return subject.group_notes() if isinstance(subject, Subject) else []


def _gathered(
    subject: StreamedSubject, checks: Sequence[CheckSpec], effort: Effort, random_state: int
) -> StreamedSubject:
    """Go through the rows once for all checks that apply."""
    layouts, samples, features = {}, {}, set()
    for spec in checks:
        if subject.lacking(spec) or spec.streams == "no":
            continue
        if spec.streams == "sums":
            layouts[spec.name] = _module(spec).layout(subject)
            features |= {spec.name} if spec.looks_at_features else set()
        else:
            looks = spec.looks_at_features or subject.model is not None
            samples[spec.name] = (spec.sampled_rows(effort), _seed(random_state, spec.name), looks)
    return subject.gather(layouts, samples, frozenset(features))


@dataclass(frozen=True, slots=True)
class _Result:
    name: str
    findings: list[Finding]
    notes: tuple[str, ...]
    seconds: float


def _run_all(
    subject: Audited,
    checks: Sequence[CheckSpec],
    effort: Effort,
    random_state: int,
    bar: Progress,
    ended: dict[str, _Result],
) -> None:
    """Run the checks; each result is put into `ended` as soon as it is there, so that an interrupt loses none."""

    def run(spec: CheckSpec) -> CheckSpec:
        ended[spec.name] = _run_one(subject, spec, effort, random_state)
        return spec

    if subject.n_jobs in (None, 1):
        for spec in checks:
            bar.step(spec.title)
            run(spec)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=subject.n_jobs, prefer="threads", return_as="generator_unordered")
    for spec in parallel(delayed(run)(spec) for spec in checks):
        bar.step(spec.title)


def _run_one(subject: Audited, spec: CheckSpec, effort: Effort, random_state: int) -> _Result:
    lacking = subject.lacking(spec)
    if lacking:
        return _Result(spec.name, [_silent(spec, "not_applicable", lacking)], (), 0.0)
    streamed = isinstance(subject, StreamedSubject)
    if streamed and spec.streams == "no":
        reason = "The data were streamed, and this check has to see all rows at once."
        return _Result(spec.name, [_silent(spec, "skipped", reason)], (), 0.0)
    start = time.monotonic()
    seed = _seed(random_state, spec.name)
    cap = spec.sampled_rows(effort) if streamed and spec.streams == "sample" else spec.rows(effort)
    notes: tuple[str, ...] = ()
    sums = subject.sums(spec.name) if isinstance(subject, StreamedSubject) and spec.streams == "sums" else None
    if sums is None and cap is not None:
        drawn = [f"{cap:,} of {size:,} {what}" for what, size in subject.sizes(spec).items() if cap < size]
        if drawn:
            notes = (f"{spec.title}: {' and '.join(drawn)}, drawn at random (effort {effort}).",)
        if drawn or streamed:
            subject = subject.sample(cap, seed)
    try:
        module = _module(spec)
        check: Callable[..., list[Finding]] = module.check if sums is None else partial(module.judge, sums=sums)
        findings = check(subject, random_state=seed, effort=effort)
        _refuse_malformed(findings, spec)
    except (KeyboardInterrupt, ModelError):
        raise
    except MemoryError:
        findings = [_silent(spec, "error", "The check ran out of memory. Try a smaller effort, or fewer jobs.")]
    except Exception as error:
        _log.exception("The check %s failed.", spec.name)
        first = (str(error).strip().splitlines() or [""])[0][:300]
        findings = [_silent(spec, "error", f"The check raised {type(error).__name__}: {first}")]
    return _Result(spec.name, findings, notes, time.monotonic() - start)


def _module(spec: CheckSpec) -> Any:
    return importlib.import_module(f"aboveboard.auditing.checks.{spec.name}")


def _refuse_malformed(findings: list[Finding], spec: CheckSpec) -> None:
    """Hold a check to its contract: ids are what baselines and accepted findings go by."""
    ids = [finding.id for finding in findings]
    repeated = sorted({finding_id for finding_id in ids if ids.count(finding_id) > 1})
    if repeated:
        raise ValueError(f"two findings have the id {repeated[0]!r}")
    foreign = next((f for f in findings if f.check != spec.name or f.area != spec.area), None)
    if foreign is not None:
        raise ValueError(f"the finding {foreign.id!r} names the check {foreign.check!r} and the area {foreign.area!r}")


def _silent(spec: CheckSpec, status: Literal["not_applicable", "skipped", "error"], reason: str) -> Finding:
    return Finding(
        id=spec.name,
        check=spec.name,
        area=spec.area,
        statement=f"{spec.title}: did not run.",
        status=status,
        reason=reason,
    )


def _guarded(finding: Finding, min_cell: int) -> Finding:
    """Return the finding without any figure on fewer than `min_cell` people, whatever the check let through."""
    evidence = tuple(_guarded_table(item, min_cell) if isinstance(item, Table) else item for item in finding.evidence)
    if finding.group and finding.n is not None and finding.n < min_cell:
        return replace(
            finding,
            value=None,
            interval=None,
            n=None,
            evidence=evidence,
            severity=min(finding.severity, "note", key=SEVERITIES.index),
        )
    return replace(finding, evidence=evidence)


def _guarded_table(table: Table, min_cell: int) -> Table:
    """Suppress the rows of a table whose column "n" counts fewer than `min_cell` people (but not zero)."""
    names = [column.name for column in table.columns]
    if "n" not in names:
        return table
    at = names.index("n")

    def shown(row: tuple[Cell, ...]) -> tuple[Cell, ...]:
        n = row[at]
        if not isinstance(n, int | float) or not 0 < n < min_cell:
            return row
        return tuple(
            cell if column.kind == "text" else SUPPRESSED for cell, column in zip(row, table.columns, strict=True)
        )

    return replace(table, rows=tuple(shown(row) for row in table.rows))


def _worst_first(finding: Finding) -> tuple[int, bool]:
    return -SEVERITIES.index(finding.severity), finding.status != "inconclusive"


def _seed(random_state: int, name: str) -> int:
    """Return a seed of the check's own, so that leaving out one check does not change another."""
    return int.from_bytes(hashlib.sha256(f"{random_state}/{name}".encode()).digest()[:4], "big") >> 1


def _names(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _acceptances(entries: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Read the accepted findings; each needs an id and a reason, and may expire."""
    today = datetime.now(UTC).date()
    accepted = []
    for entry in entries:
        unknown = sorted(set(entry) - {"id", "reason", "expires"})
        if unknown or not str(entry.get("id") or "").strip() or not str(entry.get("reason") or "").strip():
            raise InputError(
                f"an accepted finding has {', '.join(sorted(map(str, entry))) or 'nothing'}",
                expected="id and reason, neither of them empty, and perhaps expires",
            )
        expires = entry.get("expires")
        if isinstance(expires, datetime):
            expires = expires.date()
        if expires is not None and not isinstance(expires, str | date):
            raise InputError(f"the acceptance of {entry['id']!r} expires {expires!r}", expected="a date: YYYY-MM-DD")
        if isinstance(expires, str):
            try:
                expires = date.fromisoformat(expires)
            except ValueError as error:
                raise InputError(
                    f"the acceptance of {entry['id']!r} expires {expires!r}", expected="YYYY-MM-DD"
                ) from error
        accepted.append(
            {
                "id": str(entry["id"]),
                "reason": str(entry["reason"]),
                "expires": None if expires is None else str(expires),
                "in_force": expires is None or expires >= today,
            }
        )
    return tuple(accepted)


def _environment() -> dict[str, str]:
    versions = {"aboveboard": aboveboard.__version__, "python": platform.python_version(), "platform": sys.platform}
    return versions | {name: metadata.version(name) for name in _VERSIONED}
