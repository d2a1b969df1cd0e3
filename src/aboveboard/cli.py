"""The command line: audit, show, compare, admit, methods, reproduce, data and cite.

Importing this module loads neither NumPy, pandas, scikit-learn nor PyArrow, so that help and listings come at once.
Errors become exit statuses in one place, `_Program`; results go to standard output, everything else to standard error.
"""

import contextlib
import errno
import logging
import os
import signal
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from aboveboard import __version__
from aboveboard.auditing import gate
from aboveboard.auditing.config import FAIL_ON, FORMATS, TASKS, Options, read_config
from aboveboard.auditing.models import DEFAULT_MEMORY, DEFAULT_TIMEOUT, ENDPOINT_FORMATS, is_address
from aboveboard.auditing.suites import AREAS, EFFORTS, SUITES, Setting, Suite, find_suite, select
from aboveboard.core.errors import InputError, MissingExtra, ModelError

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Console

    from aboveboard.auditing.reading import ReadTable
    from aboveboard.auditing.streaming import StreamedTable
    from aboveboard.core.catalogue import Method
    from aboveboard.core.report import Report
    from aboveboard.reproduce import Outcome, Scale

__all__ = ["main"]

_FOR_ENDPOINTS: Final = (
    "auth_env", "auth_header", "endpoint_format", "max_queries", "batch_rows", "concurrency", "ca_file",
)  # fmt: skip
_TERMINATED: Final = 128 + int(signal.SIGTERM)
_OF_ALL_SUITES: Final = frozenset({
    "data", "suite", "columns", "settings", "types", "only", "skip", "effort", "fail_on", "strict", "baseline",
    "accept", "limits", "min_cell", "jobs", "out", "force", "format", "seed",
})  # fmt: skip
"""Options that every suite takes; the others belong to the tabular one."""
_NEEDS_DATA: Final = (
    "target", "model", "predictions", "compare", "compare_predictions", "sensitive", "train", "reference", "weight",
    "id", "cluster", "drop", "types", "positive", "prediction_type", "threshold", "reference_group", "stream",
)  # fmt: skip


# --- the program: errors, interrupts, what goes where -----------------------------------------------------------------


class _Program(click.Group):
    """Turns every error into one message and an exit status."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.ClickException as error:
            raise _shown_plainly(error) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse a mistyped command that starts with a sign; click before 8.2 shows the help and succeeds."""
        if self.get_command(ctx, args[0]) is None and not args[0][:1].isalnum():
            ctx.fail(f"No such command {args[0]!r}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        verbose = bool(ctx.params.get("verbose"))
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        try:
            with _terminated_as_interrupted() as signals, _logged(verbose=verbose):
                try:
                    return super().invoke(ctx)
                except click.exceptions.Exit as stop:
                    if signals and stop.exit_code == gate.INTERRUPTED:
                        ctx.exit(_TERMINATED)
                    raise
                except click.ClickException as error:
                    raise _shown_plainly(error) from None
                except click.Abort:
                    raise
                except BrokenPipeError:
                    _silence_stdout()
                    ctx.exit(gate.PASSED)
                except (InputError, MissingExtra) as error:
                    self._stop(ctx, f"Error: {error}", gate.USAGE, verbose=verbose)
                except ModelError as error:
                    text = str(error)
                    self._stop(ctx, f"Error: {text[:1].upper()}{text[1:]}.", gate.MODEL, verbose=verbose)
                except MemoryError:
                    self._stop(ctx, "Error: not enough memory.", gate.ERROR, verbose=verbose)
                except Exception as error:
                    first = (str(error).strip().splitlines() or [""])[0][:300]
                    self._stop(
                        ctx,
                        f"Internal error: {type(error).__name__}: {first}\n"
                        "This is a fault of aboveboard, not of your data. Please report it to the issue tracker of "
                        "the project, with what 'aboveboard -v ...' prints.",
                        gate.ERROR,
                        verbose=verbose,
                    )
        except _Terminated:
            _complain("Terminated. Nothing was written.")
            ctx.exit(_TERMINATED)
        except KeyboardInterrupt:
            _complain("Interrupted. Nothing was written.")
            ctx.exit(gate.INTERRUPTED)

    def _stop(self, ctx: click.Context, message: str, status: int, *, verbose: bool) -> None:
        if verbose:
            import traceback

            click.echo(traceback.format_exc(), err=True, nl=False)
        _complain(message)
        ctx.exit(status)


class _Terminated(KeyboardInterrupt):
    """SIGTERM: treated as Ctrl-C, so that what was found is kept."""


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[list[int]]:
    """Raise `_Terminated` on SIGTERM; the list that is given holds the signals that came."""
    signals: list[int] = []

    def stop(number: int, _: object) -> None:
        signals.append(number)
        raise _Terminated

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not in the main thread
        yield signals
        return
    try:
        yield signals
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _logged(*, verbose: bool) -> Iterator[None]:
    """Show what the library logs, and warnings, as plain lines; tracebacks only when they were asked for."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            _complain(record.getMessage())
            if verbose and record.exc_info:
                click.echo(logging.Formatter().formatException(record.exc_info), err=True)

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,  # noqa: ARG001 - no path is shown
        lineno: int,  # noqa: ARG001
        file: Any = None,  # noqa: ARG001
        line: str | None = None,  # noqa: ARG001
    ) -> None:
        _complain(f"Warning: {' '.join(str(message).split())} ({category.__name__})")

    logger, handler = logging.getLogger("aboveboard"), Lines(logging.WARNING)
    logger.addHandler(handler)
    propagated, logger.propagate = logger.propagate, False
    try:
        with warnings.catch_warnings():
            if not verbose:
                warnings.showwarning = show
            yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated


def _shown_plainly(error: click.ClickException) -> click.ClickException:
    """Return a usage error, which may repeat what was typed, without anything that could steer a terminal."""
    text = error.format_message()
    return error if _clean(text) == text else click.UsageError(_clean(text), getattr(error, "ctx", None))


def _complain(text: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(_clean(text), err=True)


def _say(text: str = "") -> None:
    """Print a result; where nobody reads any more, stay quiet and go on."""
    try:
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EINVAL):
            raise
        _silence_stdout()


def _silence_stdout() -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())


def _clean(text: str) -> str:
    """Return text without anything that could steer a terminal."""
    return "".join(char if char == "\n" or char.isprintable() else ascii(char)[1:-1] for char in text)


# --- help -------------------------------------------------------------------------------------------------------------


class _SectionOption(click.Option):
    """An option that stands in a section of the help."""

    def __init__(self, *args: Any, section: str = "Options", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


class _SectionCommand(click.Command):
    """A command whose options are listed in sections, with text for the end that keeps its lines."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                sections.setdefault(getattr(parameter, "section", "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=34)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        if self.epilog:
            formatter.write_paragraph()
            formatter.write(textwrap.dedent(self.epilog).strip("\n") + "\n")


def _option(section: str, *names: str, **attributes: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=_SectionOption, section=section, **attributes)


# --- values of options ------------------------------------------------------------------------------------------------


def _pairs(what: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """Return a callback that reads NAME=VALUE, given several times."""

    def read(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for value in values:
            name, equals, rest = value.partition("=")
            if not (name and equals and rest):
                raise click.BadParameter(f"{value!r} is not of the form {what}")
            if name in pairs:
                raise click.BadParameter(f"{name!r} is given twice")
            pairs[name] = rest
        return pairs

    return read


def _columns_by_role(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Read ROLE=COLUMN, given several times, also for one role."""
    columns: dict[str, tuple[str, ...]] = {}
    for value in values:
        role, equals, name = value.partition("=")
        if not (role and equals and name):
            raise click.BadParameter(f"{value!r} is not of the form ROLE=COLUMN")
        columns[role] = (*columns.get(role, ()), name)
    return columns


def _limit_pairs(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    limits = {}
    for name, text in _pairs("CHECK=VALUE")(ctx, parameter, values).items():
        try:
            limits[name] = float(text)
        except ValueError:
            raise click.BadParameter(f"{text!r}, the limit of {name}, is no number") from None
    return limits


def _listed(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Read names that are given several times, or split by commas."""
    return tuple(name.strip() for value in values for name in value.split(",") if name.strip())


def _row_numbers(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[int, ...]:
    """Read rows, counted from 1, given several times or split by commas."""
    rows = []
    for text in _listed(_, __, values):
        if not text.isdecimal() or int(text) < 1:
            raise click.BadParameter(f"{text!r} is no row: the first is 1")
        rows.append(int(text))
    return tuple(dict.fromkeys(rows))


def _not_nothing(_: click.Context, __: click.Parameter, value: Any) -> Any:
    for item in value if isinstance(value, tuple) else (value,):
        if item == "":
            raise click.BadParameter("a name must not be empty")
    return value


# --- aboveboard -------------------------------------------------------------------------------------------------------


@click.group(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="'aboveboard COMMAND --help' tells more. Without DATA, 'aboveboard audit' audits a bundled example.",
)
@click.version_option(__version__, prog_name="aboveboard", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Show tracebacks.")
def main(verbose: bool) -> None:
    """Audit a machine-learning model: what is wrong, how sure is that, and what to do about it."""


_AUDIT_EPILOG = """
Examples:
  aboveboard audit
      the bundled example: a boosted model on UCI Adult
  aboveboard audit test.csv --target income --predictions p --sensitive sex --sensitive age:25,40,60
      scores that are already in the table
  aboveboard audit test.parquet --target y --predictions p_a --predictions p_b --predictions p_c
      one column of scores per class
  aboveboard audit test.csv --target income --model model.skops --trust known --sensitive sex
      a model in a file, which runs in a process of its own
  aboveboard audit test.csv --target income --model https://host/predict --auth-env TOKEN --max-queries 500
      a model behind an address; the secret is in the environment variable TOKEN
  aboveboard audit test.csv --target income --model model.skops --compare other.skops --trust known
      for how many people would another model of the same accuracy decide otherwise?
  aboveboard audit june.csv --target income --predictions p --reference may.csv
      has anything changed since May: columns, scores, labels?
  aboveboard audit votes.csv --suite ranking --setting votes=rank
      another kind of data; 'aboveboard audit --list-checks' tells what each suite takes
  aboveboard audit --config audit.toml --fail-on warn --baseline main/report.json
      in a pipeline: only what is new or worse than in an earlier report fails

Exit status:
  0  nothing at or above --fail-on     3  the model crashed, hung or ran out of memory
  1  something is                      4  a check failed to run, or an internal error
  2  bad input or usage                130  interrupted; what was found is kept
"""

_DATA = "Data"
_MODEL = "The model"
_ENDPOINT = "An endpoint as the model"
_OTHER = "Another model for the same decisions"
_READ = "How the data are read"
_SUITES = "Data of another kind"
_CHECKS = "Checks"
_GATE = "Exit status"
_OUT = "Output"


@main.command(cls=_SectionCommand, epilog=_AUDIT_EPILOG, short_help="Audit a model, predictions or an example.")
@click.argument("data", required=False, type=click.Path(path_type=Path))
@_option(_DATA, "--target", metavar="COLUMN", callback=_not_nothing, help="The known answers.")
@_option(_DATA, "--predictions", metavar="COLUMN", multiple=True, callback=_not_nothing,
         help="Scores, labels or numbers; once per class for several classes.")  # fmt: skip
@_option(_DATA, "--sensitive", metavar="COLUMN[:CUTS]", multiple=True, callback=_not_nothing,
         help="Groups to compare, such as sex or age:25,40,60; may be repeated.")  # fmt: skip
@_option(_DATA, "--train", metavar="FILE", type=click.Path(path_type=Path), help="The training rows, with the target.")
@_option(_DATA, "--reference", metavar="FILE", type=click.Path(path_type=Path),
         help="Older rows, with or without the target and predictions: have the data changed?")  # fmt: skip
@_option(_DATA, "--weight", metavar="COLUMN", callback=_not_nothing, help="Weights of the rows.")
@_option(_DATA, "--id", metavar="COLUMN", callback=_not_nothing, help="Record ids: no feature, and never shown.")
@_option(_DATA, "--cluster", metavar="COLUMN", callback=_not_nothing,
         help="What rows belong to one person; intervals resample these.")  # fmt: skip
@_option(_DATA, "--drop", metavar="COLUMN", multiple=True, callback=_not_nothing,
         help="No feature either; may be repeated.")  # fmt: skip
@_option(_DATA, "--config", metavar="FILE", type=click.Path(path_type=Path),
         help="Options, types and accepted findings in a TOML file; the command line wins.")  # fmt: skip
@_option(_MODEL, "--model", metavar="SOURCE", callback=_not_nothing,
         help="A model file, module:function, or the address of an endpoint; instead of --predictions.")  # fmt: skip
@_option(_MODEL, "--trust", type=click.Choice(["known"]), help="Trust the reviewed types in a skops file.")
@_option(_MODEL, "--trust-type", metavar="NAME", multiple=True, callback=_not_nothing,
         help="Trust this type in a skops file; may be repeated.")  # fmt: skip
@_option(_MODEL, "--trust-pickle", is_flag=True, default=None,
         help="Unpickle .pkl or .joblib, which runs whatever code the file names.")  # fmt: skip
@_option(_MODEL, "--model-classes", metavar="LABELS", multiple=True, callback=_listed,
         help="Labels for the codes 0, 1, ... of a model that has none, split by commas.")  # fmt: skip
@_option(_MODEL, "--model-timeout", type=float, metavar="SECONDS",
         help=f"For reading it, for each 100,000 rows, or for a request. Default: {DEFAULT_TIMEOUT:g}.")  # fmt: skip
@_option(_MODEL, "--model-memory", type=float, metavar="GIB",
         help=f"What its process may hold. Default: {DEFAULT_MEMORY:g}.")  # fmt: skip
@_option(_OTHER, "--compare", metavar="SOURCE", callback=_not_nothing,
         help="Its file or module:function: for how many people does it decide otherwise? Trusted and bounded as the "
         "model is. (For two reports: aboveboard compare.)")  # fmt: skip
@_option(_OTHER, "--compare-predictions", metavar="COLUMN", multiple=True, callback=_not_nothing,
         help="Its scores or labels in DATA, instead; once per class for several classes.")  # fmt: skip
@_option(_OTHER, "--compare-classes", metavar="LABELS", multiple=True, callback=_listed,
         help="Labels for its codes, as --model-classes.")  # fmt: skip
@_option(_READ, "--stream/--no-stream", default=None,
         help="Read Parquet part by part. Default: where it would not fit into memory.")  # fmt: skip
@_option(_ENDPOINT, "--auth-env", metavar="NAME", callback=_not_nothing,
         help="The environment variable that holds its secret.")  # fmt: skip
@_option(_ENDPOINT, "--auth-header", metavar="NAME", callback=_not_nothing,
         help="The header for the secret. Default: Authorization, with Bearer.")  # fmt: skip
@_option(_ENDPOINT, "--endpoint-format", type=click.Choice(ENDPOINT_FORMATS),
         help="How rows are sent. Default: rows, as {\"rows\": [{...}]}.")  # fmt: skip
@_option(_ENDPOINT, "--max-queries", type=int, metavar="N", help="The most requests, retries included.")
@_option(_ENDPOINT, "--batch-rows", type=int, metavar="N", help="Rows in a request. Default: 500.")
@_option(_ENDPOINT, "--concurrency", type=int, metavar="N", help="Requests at once, at most 32. Default: 1.")
@_option(_ENDPOINT, "--ca-file", metavar="FILE", type=click.Path(path_type=Path),
         help="Certificates (PEM) that vouch for it, instead of the usual ones.")  # fmt: skip
@_option(_READ, "--task", type=click.Choice(TASKS), help="Default: auto, as the target's values suggest.")
@_option(_READ, "--positive", metavar="LABEL", callback=_not_nothing, help="The label that counts as 1.")
@_option(_READ, "--prediction-type", type=click.Choice(["score", "label"]), help="Default: as the values suggest.")
@_option(_READ, "--threshold", type=float, help="Scores at or above it predict the positive class. Default: 0.5.")
@_option(_READ, "--reference-group", metavar="COLUMN=GROUP", multiple=True, callback=_pairs("COLUMN=GROUP"),
         help="What the other groups are compared with; may be repeated. Default: everybody.")  # fmt: skip
@_option(_SUITES, "--suite", type=click.Choice([suite.name for suite in SUITES]),
         help="What kind of data; --list-checks tells all. Default: tabular.")  # fmt: skip
@_option(_SUITES, "--column", "columns", metavar="ROLE=COLUMN", multiple=True, callback=_columns_by_role,
         help="What a column holds; may be repeated.")  # fmt: skip
@_option(_SUITES, "--setting", "settings", metavar="NAME=VALUE", multiple=True, callback=_pairs("NAME=VALUE"),
         help="How the data are read; may be repeated.")  # fmt: skip
@_option(_CHECKS, "--only", metavar="CHECK|AREA", multiple=True, callback=_listed, help="Run these.")
@_option(_CHECKS, "--skip", metavar="CHECK|AREA", multiple=True, callback=_listed, help="Leave these out.")
@_option(_CHECKS, "--list-checks", is_flag=True, help="List the suites and checks with their limits, and stop.")
@_option(_CHECKS, "--effort", type=click.Choice(EFFORTS), help="How many rows heavy checks see. Default: standard.")
@_option(_CHECKS, "--limit", "limits", metavar="CHECK=VALUE", multiple=True, callback=_limit_pairs,
         help="A limit of your own; may be repeated.")  # fmt: skip
@_option(_CHECKS, "--min-cell", type=int, metavar="N", help="Show nothing about fewer than N people. Default: 10.")
@_option(
    _CHECKS,
    "--jobs",
    type=int,
    metavar="N",
    help="Checks, or parts of streamed data, that run at once; -1 for all cores. Default: 1.",
)
@_option(_CHECKS, "--seed", type=int, metavar="N", help="Same seed and data, same report. Default: 0.")
@_option(_GATE, "--fail-on", type=click.Choice(FAIL_ON), help="The least severity that counts. Default: fail.")
@_option(_GATE, "--strict/--no-strict", default=None, help="Inconclusive and skipped checks count too.")
@_option(_GATE, "--baseline", metavar="REPORT.JSON", type=click.Path(path_type=Path),
         help="Only findings that are new or worse than in this report count.")  # fmt: skip
@_option(_OUT, "--out", metavar="FOLDER", type=click.Path(path_type=Path),
         help="For index.html and report.json. Default: aboveboard-report.")  # fmt: skip
@_option(_OUT, "--show-rows", metavar="ROWS", multiple=True, callback=_row_numbers,
         help="Print why the model answered these rows as it did (3,17); never in the report.")  # fmt: skip
@_option(_OUT, "--force/--no-force", default=None, help="Write into a folder with other files; they stay.")
@_option(_OUT, "--format", type=click.Choice(FORMATS), help="What is printed. Default: table.")
@click.pass_context
def audit(ctx: click.Context, /, config: Path | None, list_checks: bool, **given: Any) -> None:
    """Audit a model on DATA (CSV, Parquet, Feather or Arrow) or its predictions there; without DATA, an example."""
    if list_checks:
        name = given["suite"]
        _list_checks(SUITES if name is None else (find_suite(name),))
        return
    if given["auth_env"] is not None and given["model"] is None:
        raise InputError(
            "--auth-env was given and no --model",
            expected="the address on the command line too: a config must not choose who gets a secret",
        )
    options = (Options() if config is None else read_config(config)).merged(given)
    ctx.exit(_audit(options))


def _list_checks(suites: Sequence[Suite]) -> None:
    for suite in suites:
        _say(click.style(f"{suite.title} (--suite {suite.name})", bold=True))
        _say(_indented(f"Takes {suite.takes}. Without DATA: {suite.example}.", 2))
        for what, entries in (("column", suite.columns), ("setting", suite.settings)):
            for entry in entries:
                choices = f" ({', '.join(entry.choices)})" if isinstance(entry, Setting) and entry.choices else ""
                _say(_indented(f"--{what} {entry.name}=...{choices}: {entry.help}", 2, 6))
        _list_areas(suite)
        _say()
    _say("Name checks or areas with --only and --skip, and limits with --limit NAME=VALUE.")


def _list_areas(suite: Suite) -> None:
    from aboveboard.auditing.limits import Limits

    limits = Limits()
    for area, title in AREAS.items():
        checks = [spec for spec in suite.checks if spec.area == area]
        if checks:
            _say(click.style(f"  {title} ({area})", bold=True))
        for spec in checks:
            _say(f"    {spec.name}")
            _say(_indented(spec.question, 8))
            asks = ["for " + ", ".join(sorted(spec.tasks))] if suite.name == "tabular" else []
            asks += [f"needs {need}" for need in sorted(spec.needs)]
            caps = [(cap, effort) for effort in EFFORTS if (cap := spec.rows(effort)) is not None]
            asks += [f"cost {spec.cost}", *(f"{cap:,} {suite.unit[1]} at {effort}" for cap, effort in caps)]
            _say(_indented("; ".join(asks), 8))
            for limit in limits.of(spec.name):
                _say(f"        limit {limit.name} = {limit.value:g} {limit.unit}".rstrip())


def _indented(text: str, first: int, then: int | None = None) -> str:
    return textwrap.fill(
        text, 98, initial_indent=" " * first, subsequent_indent=" " * (first if then is None else then)
    )


def _audit(options: Options) -> int:
    """Run an audit, print and write its report, and return the exit status."""
    from aboveboard.auditing.limits import Limits
    from aboveboard.auditing.output import check_folder, write_report
    from aboveboard.core.report import Report

    _refuse_early(options)
    Limits(options.limits)
    select(options.only, options.skip, suite=options.suite)
    check_folder(options.out, force=options.force)
    baseline = None if options.baseline is None else Report.from_json(options.baseline)
    try:
        report = _report(options)
    except KeyboardInterrupt:
        _complain("Interrupted before a check had ended; nothing was written.")
        return gate.INTERRUPTED
    verdict = gate.judge(report, fail_on=options.fail_on, strict=options.strict, baseline=baseline)
    write_report(report, options.out, force=options.force)
    for note in (*report.notes, *verdict.notes):
        _complain(f"Note: {note}")
    _print_report(report, options)
    if not report.complete:
        _complain(f"Interrupted: the report in {options.out} holds what had been found until then.")
    elif verdict.status != gate.PASSED:
        _complain(_why_it_fails(verdict, options.fail_on, strict=options.strict))
    return verdict.status


def _report(options: Options) -> "Report":
    if options.suite != "tabular":
        return _suite_report(options)
    return _example_report(options) if options.data is None else _data_report(options)


def _refuse_early(options: Options) -> None:
    if options.suite != "tabular":
        _refuse_tabular_options(options)
    elif options.columns or options.settings:
        name = "column" if options.columns else "setting"
        raise InputError(
            f"--{name} was given and the suite is tabular",
            expected="--target, --predictions and so on, or another --suite",
            remedy="See: aboveboard audit --list-checks",
        )
    elif options.data is None:
        given = [name for name in _NEEDS_DATA if getattr(options, name)]
        if given:
            name = given[0].replace("_", "-")
            raise InputError(
                f"{'[types]' if name == 'types' else '--' + name} was given and no DATA",
                expected="a file with the table, or none of these options for the bundled example",
            )
    else:
        if options.target is None:
            raise InputError(
                "no --target was given",
                expected=f"--target COLUMN, one of the columns of {options.data.name!r}",
                remedy="See: aboveboard audit --help",
            )
        if bool(options.model) == bool(options.predictions):
            raise InputError(
                f"{'both' if options.model else 'neither'} --model {'and' if options.model else 'nor'} --predictions "
                + ("were" if options.model else "was")
                + " given",
                expected=f"--predictions COLUMN, one of the columns of {options.data.name!r}, or --model SOURCE",
                remedy="See: aboveboard audit --help",
            )
    _refuse_other_early(options)
    trusted = options.trust or options.trust_type or options.trust_pickle
    if options.model is None and options.compare is None and trusted:
        raise InputError("something was trusted and no --model was given", expected="--trust with --model FILE.skops")
    if options.show_rows and options.data is not None and options.model is None:
        raise InputError("--show-rows was given and predictions instead of a model", expected="--model SOURCE")
    if options.model is None or not is_address(options.model):
        strange = [name for name in _FOR_ENDPOINTS if getattr(options, name) is not None]
        if strange:
            raise InputError(
                f"--{strange[0].replace('_', '-')} was given and the model is no endpoint",
                expected="--model with the address of one, https://host/path",
            )
    if options.seed < 0:
        raise InputError(f"the seed is {options.seed}", expected="a whole number, 0 or more")


def _refuse_other_early(options: Options) -> None:
    """Refuse another model that cannot be opened or told apart, before any work."""
    if options.compare is not None and options.compare_predictions:
        raise InputError(
            "both --compare and --compare-predictions were given",
            expected="one of the two: the other model, or its predictions in DATA",
        )
    if options.compare_classes and options.compare is None:
        raise InputError("--compare-classes was given and no --compare", expected="both, or neither")
    if options.compare is None:
        return
    if is_address(options.compare):
        raise InputError(
            "--compare names an endpoint, whose requests would not be planned and counted",
            expected="a model file, or module:function",
            remedy="Ask it about the rows and give its answers with --compare-predictions COLUMN; or in Python: "
            "audit(..., compare=open_model(address, max_queries=...))",
        )
    if options.compare == options.model:
        raise InputError(f"--compare names the model itself, {options.compare!r}", expected="another one")


def _refuse_tabular_options(options: Options) -> None:
    nothing = Options()
    for field in fields(Options):
        name = field.name
        if name not in _OF_ALL_SUITES and getattr(options, name) != getattr(nothing, name):
            raise InputError(
                f"--{name.replace('_', '-')} was given and the suite is {options.suite}",
                expected="--column ROLE=COLUMN and --setting NAME=VALUE to say what the data hold",
                remedy=f"See: aboveboard audit --list-checks --suite {options.suite}",
            )
    if options.data is None and (options.columns or options.types):
        raise InputError(
            f"{'--column' if options.columns else '[types]'} was given and no DATA",
            expected="a file with the data, or neither for the bundled example",
        )


def _common(options: Options) -> dict[str, Any]:
    return {
        "only": options.only,
        "skip": options.skip,
        "effort": options.effort,
        "limits": options.limits,
        "accept": options.accept,
        "min_cell": options.min_cell,
        "n_jobs": options.jobs,
        "random_state": options.seed,
    }


def _example_report(options: Options) -> "Report":
    from aboveboard.auditing.example import EXAMPLE_SENSITIVE, bundled_example
    from aboveboard.auditing.runner import audit as run_audit

    _complain("No DATA was given, so the bundled example is audited: a boosted model on UCI Adult.")
    example = bundled_example(random_state=options.seed)
    asked: tuple[Any, ...] = (example.model, example.X, example.y.rename("income"))
    report = run_audit(
        *asked,
        sensitive_features=list(EXAMPLE_SENSITIVE),
        train=(example.X_train, example.y_train),
        **_common(options),
    )
    _show_rows(options, *asked)
    return report


def _suite_report(options: Options) -> "Report":
    from aboveboard.auditing.reading import ReadTable
    from aboveboard.auditing.runner import audit as run_audit

    asked: dict[str, Any] = {"suite": options.suite, "columns": options.columns, "settings": options.settings}
    if options.data is None:
        _complain(f"No DATA was given, so the bundled example is audited: {find_suite(options.suite).example}.")
        return run_audit(None, **asked, **_common(options))
    table = _read_data(options)
    assert isinstance(table, ReadTable)
    report = run_audit(None, table.frame, **asked, **_common(options))
    return replace(report, notes=(*table.notes, *report.notes))


def _read_data(options: Options, *, train: "ReadTable | None" = None) -> "ReadTable | StreamedTable":
    from aboveboard.auditing.frames import missing_column
    from aboveboard.auditing.streaming import StreamedTable, read_or_stream

    assert options.data is not None
    types: Mapping[str, Any] = options.types
    stream = options.stream if options.suite == "tabular" else False  # the other suites need all rows at once
    table = read_or_stream(options.data, stream=stream, types=types, like=train)
    columns = list(table.source.kinds if isinstance(table, StreamedTable) else table.frame.columns)
    for name in types:
        if name not in columns:
            raise missing_column(name, columns, "[types] table of the config")
    return table


def _data_report(options: Options) -> "Report":
    from aboveboard.auditing.reading import read_table
    from aboveboard.auditing.runner import audit as run_audit
    from aboveboard.auditing.streaming import StreamedTable

    types: Mapping[str, Any] = options.types
    train = None if options.train is None else read_table(options.train, what="the training data", types=types)
    table = _read_data(options, train=train)
    _refuse_rows_that_are_not_there(options, table)
    older = None
    if options.reference is not None:
        alike = table.without_rows() if isinstance(table, StreamedTable) else table
        older = read_table(
            options.reference, what="the reference data", types=types, like=alike, like_what="the audited data"
        )
    more = {
        "training_rows": 0 if train is None else len(train.frame),
        "reference_rows": 0 if older is None else len(older.frame),
    }
    data = table if isinstance(table, StreamedTable) else table.frame
    known = table.first_rows(options.target) if isinstance(table, StreamedTable) else table.frame
    with (
        contextlib.nullcontext() if options.model is None else _opened(options, known, more) as model,
        contextlib.nullcontext() if options.compare is None else _opened_other(options, known) as other,
    ):
        roles: dict[str, Any] = {
            "prediction_type": options.prediction_type,
            "sensitive_features": list(options.sensitive),
            "task": options.task,
            "positive": options.positive,
            "threshold": options.threshold,
            "sample_weight": options.weight,
            "clusters": options.cluster,
            "ids": options.id,
            "drop": options.drop,
        }
        report = run_audit(
            model,
            data,
            options.target,
            predictions=_named_columns(options.predictions),
            compare=other,
            compare_predictions=_named_columns(options.compare_predictions),
            train=None if train is None else train.frame,
            reference=None if older is None else older.frame,
            reference_group=options.reference_group,
            **roles,
            **_common(options),
        )
        _show_rows(options, model, data, options.target, **roles)
    tables = [part for part in (train, table, older) if part is not None]
    read_notes = tuple(dict.fromkeys(note for part in tables for note in part.notes))
    return replace(report, notes=(*read_notes, *report.notes))


def _show_rows(options: Options, model: Any, data: Any, target: Any, **roles: Any) -> None:
    """Print why the rows of --show-rows were answered as they were; it is no part of any report."""
    if not options.show_rows:
        return
    from aboveboard.auditing.checks.reasons.rows import row_reasons
    from aboveboard.auditing.subject import make_subject

    subject = make_subject(model, data, target, **roles)
    for sentence in row_reasons(subject, options.show_rows, random_state=options.seed):
        _complain(sentence)


def _refuse_rows_that_are_not_there(options: Options, table: "ReadTable | StreamedTable") -> None:
    from aboveboard.auditing.checks.reasons.rows import refuse_missing_rows
    from aboveboard.auditing.streaming import StreamedTable

    if not options.show_rows:
        return
    if isinstance(table, StreamedTable):
        raise InputError("--show-rows was given and the data are streamed", expected="a table that fits into memory")
    refuse_missing_rows(options.show_rows, len(table.frame))


def _named_columns(columns: tuple[str, ...]) -> str | list[str] | None:
    return columns[0] if len(columns) == 1 else list(columns) or None


def _opened(options: Options, frame: "DataFrame", more: Mapping[str, int]) -> Any:
    """Open the model that --model names; the process that runs it, or its connections, end with the context."""
    from aboveboard.auditing.models import open_model

    assert options.model is not None
    if is_address(options.model):
        given = {name: getattr(options, name) for name in _FOR_ENDPOINTS}
        given["format"] = given.pop("endpoint_format")
        return open_model(
            options.model,
            timeout=options.model_timeout,
            classes=_labels_like(options.model_classes, options, frame),
            answers=options.prediction_type or "auto",
            random_state=options.seed,
            announce=lambda question: _complain(_planned(question, options, more)),
            **{name: value for name, value in given.items() if value is not None},
        )
    return open_model(
        options.model,
        trust=options.trust,
        trust_types=options.trust_type,
        trust_pickle=options.trust_pickle,
        classes=_labels_like(options.model_classes, options, frame),
        timeout=options.model_timeout,
        memory=options.model_memory,
    )


@contextlib.contextmanager
def _opened_other(options: Options, frame: "DataFrame") -> Iterator[Any]:
    """Open the model that --compare names, under the rules for --model; its process ends with the context."""
    from aboveboard.auditing.models import open_model
    from aboveboard.auditing.other_model import of_the_other

    assert options.compare is not None
    with of_the_other():
        other = open_model(
            options.compare,
            trust=options.trust,
            trust_types=options.trust_type,
            trust_pickle=options.trust_pickle,
            classes=_labels_like(options.compare_classes, options, frame),
            timeout=options.model_timeout,
            memory=options.model_memory,
        )
    with other:
        yield other


def _planned(question: Any, options: Options, more: Mapping[str, int]) -> str:
    from aboveboard.auditing.models.endpoint.plan import plan

    checks = select(options.only, options.skip)
    return plan(question, checks, effort=options.effort, **more).text(options.max_queries)


def _labels_like(labels: Sequence[str], options: Options, frame: "DataFrame") -> list[Any]:
    """Return labels that were typed as the target has them: numbers or true and false where it holds such."""
    from aboveboard.auditing.frames import plain_label

    values = frame[options.target].dropna().unique() if options.target in frame.columns else ()
    known = {plain_label(value): value for value in values}
    return [known.get(label, label) for label in labels]


def _print_report(report: "Report", options: Options) -> None:
    files = {"Report": str(options.out / "index.html"), "Data": str(options.out / "report.json")}
    _print_in_format(report, options.format, files=files)
    if options.format != "table":
        for name, place in files.items():
            _complain(f"{name}: {place}")


def _print_in_format(report: "Report", format_: str, *, files: Mapping[str, str] | None = None) -> None:
    if format_ == "json":
        _say_to_programs(report.to_json())
    elif format_ == "table":
        from aboveboard.auditing.report import print_report

        with _console() as console:
            print_report(report, console, files=files)
    else:
        from aboveboard.core.report import renderers

        _say_to_programs(renderers[format_](report))


def _say_to_programs(text: str) -> None:
    """Print what programs read: they expect UTF-8, whatever the terminal shows."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")
    _say(text.rstrip("\n"))


@contextlib.contextmanager
def _console() -> Iterator["Console"]:
    """Give a console for standard output, which may close before all is said."""
    from rich.console import Console

    plain: dict[str, Any] = {"width": 100, "color_system": None, "force_terminal": False}
    try:
        yield Console(file=sys.stdout, **({} if sys.stdout.isatty() else plain))
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()


def _why_it_fails(verdict: gate.Verdict, fail_on: str, *, strict: bool) -> str:
    if verdict.status == gate.ERROR:
        return "Exit status 4: not every check ran, so the report is not complete."
    from aboveboard.auditing.report.view import families

    ids = [family.head.id for family in families(verdict.counted)]
    shown = ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")
    return f"Exit status 1 (--fail-on {fail_on}{', --strict' if strict else ''}): {shown}."


# --- aboveboard show, compare -----------------------------------------------------------------------------------------


@main.command(cls=_SectionCommand, short_help="Print a report again, in any format.")
@click.argument("report", type=click.Path(path_type=Path))
@_option(_OUT, "--format", "format_", type=click.Choice([*FORMATS, "html"]), default="table",
         help="What is printed. Default: table.")  # fmt: skip
def show(report: Path, format_: str) -> None:
    """Print the report.json that an audit wrote, as the audit would print it; nothing is audited again."""
    from aboveboard.core.report import Report

    _print_in_format(Report.from_json(report), format_)


_COMPARE_EPILOG = """
Examples:
  aboveboard compare main/report.json aboveboard-report/report.json
  aboveboard compare main/report.json aboveboard-report/report.json --format markdown > comment.md

Exit status:
  0  nothing that counts is new or worse    2  bad input or usage, or reports on different questions
  1  something is                           4  a check failed to run in NEW, or NEW is not complete
"""


@main.command(cls=_SectionCommand, epilog=_COMPARE_EPILOG, short_help="Compare two reports.")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@_option(_GATE, "--fail-on", type=click.Choice(FAIL_ON), default="fail",
         help="The least severity that counts, where it is new or worse. Default: fail.")  # fmt: skip
@_option(_GATE, "--strict", is_flag=True, help="Inconclusive and skipped checks count too.")
@_option(_OUT, "--format", "format_", type=click.Choice(["table", "json", "markdown", "html"]), default="table",
         help="What is printed. Default: table.")  # fmt: skip
@click.pass_context
def compare(
    ctx: click.Context, old: Path, new: Path, fail_on: Literal["note", "warn", "fail"], strict: bool, format_: str
) -> None:
    """Tell what is new, worse, better or gone in the report NEW (a report.json) since OLD."""
    from aboveboard.auditing.comparison import compare as compare_reports

    comparison = compare_reports(old, new, fail_on=fail_on, strict=strict)
    if format_ == "table":
        from aboveboard.auditing.report.comparison import print_comparison

        with _console() as console:
            print_comparison(comparison, console)
    else:
        written = {"json": comparison.to_json, "markdown": comparison.to_markdown, "html": comparison.to_html}
        _say_to_programs(written[format_]())
    if comparison.verdict.status != gate.PASSED:
        _complain(_why_it_fails(comparison.verdict, fail_on, strict=strict))
    ctx.exit(comparison.verdict.status)


# --- aboveboard admit -------------------------------------------------------------------------------------------------


@main.command(cls=_SectionCommand, short_help="Ask an expert which drafts of a generator are acceptable.")
@click.argument("items", type=click.Path(path_type=Path))
@_option("Options", "--answers", type=click.Path(path_type=Path),
         help="Where each answer is kept as it is given. Default: beside ITEMS, ending in .answers.jsonl.")  # fmt: skip
@_option("Options", "--out", type=click.Path(path_type=Path),
         help="Where the calibration is written. Default: beside ITEMS, ending in .scope.json.")  # fmt: skip
@_option("Options", "--alpha", type=float, default=0.3, show_default=True,
         help="How often a set may hold no acceptable draft.")  # fmt: skip
@_option("Options", "--stages", metavar="NAMES", default="generation,diversity,quality", show_default=True,
         help="Without spaces; duplicates is another one.")  # fmt: skip
@_option("Options", "--score", type=click.Choice(["count", "sum", "max"]), default="sum", show_default=True,
         help="Of the drafts drawn so far: how many, or of their quality.")  # fmt: skip
@_option("Options", "--confidence", type=float, help="Make the level hold for the one calibration, this surely.")
@_option("Options", "--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.pass_context
def admit(
    ctx: click.Context,
    items: Path,
    answers: Path | None,
    out: Path | None,
    alpha: float,
    stages: str,
    score: Literal["count", "sum", "max"],
    confidence: float | None,
    seed: int,
) -> None:
    """Calibrate short sets of drafts: ask whether a draft is acceptable, as few times as the level allows.

    ITEMS holds one JSON object per line: "samples" (drafts in the order they were drawn) and, as far as the stages need
    them, "prompt", "quality" and "similarity". Ctrl-C stops; the same command goes on where it stopped.
    """
    from aboveboard.uncertainty import AnswerTakenBack, SCOPEGen, TerminalExpert, read_items

    answers = answers or items.with_suffix(".answers.jsonl")
    out = out or items.with_suffix(".scope.json")
    drafts = read_items(items)
    scope = SCOPEGen(
        alpha=alpha,
        stages=tuple(stages.split(",")),
        score=score,
        max_samples=min(map(len, drafts)),
        confidence=confidence,
        random_state=seed,
    )
    try:
        while True:
            with contextlib.suppress(AnswerTakenBack):
                scope.calibrate(drafts, TerminalExpert(drafts, answers))
                break
    except (click.Abort, KeyboardInterrupt):
        _complain(f"\nStopped. Every answer is in {answers.name}; the same command goes on from there.")
        ctx.exit(gate.INTERRUPTED)
    scope.save(out)
    rows = [
        (stage, f"{scope.alphas_[stage]:.3f}", str(block), str(scored), f"{scope.thresholds_[stage]:.4g}")
        for stage, (block, scored) in scope.stage_sizes_.items()
    ]
    _table(("Stage", "Level", "Items", "Scores", "Threshold"), rows)
    _say(scope.certificate_.guarantee)
    _complain(f"{scope.n_queries_} of {sum(map(len, drafts)):,} drafts were judged. Written: {out.name}.")


# --- aboveboard methods, cite, reproduce ------------------------------------------------------------------------------


@main.command(short_help="List the methods, or tell about one.")
@click.argument("name", required=False)
def methods(name: str | None) -> None:
    """List the methods of the catalogue, or tell what NAME does and what its evidence says."""
    from aboveboard.core.catalogue import catalogue, find_method

    if name is not None:
        _tell_method(find_method(name))
        return
    rows = [(method.name, method.area, method.tier, method.summary) for method in catalogue()]
    _table(("Name", "Area", "Tier", "What it does"), rows)


def _tell_method(method: "Method") -> None:
    _say(click.style(method.name, bold=True))
    _say(textwrap.fill(method.summary, 96, initial_indent="  ", subsequent_indent="  "))
    facts = {
        "import": "from {} import {}".format(*method.import_path.split(":")),
        "area": method.area,
        "role": ", ".join(method.role),
        "tier": method.tier,
        "needs": ", ".join(f"aboveboard[{extra}]" for extra in method.extras) or "nothing beyond aboveboard",
        "paper": str(method.paper),
        "evidence": _evidence_line(method),
    }
    for label, value in facts.items():
        _say(textwrap.fill(f"{label + ':':<10}{value}", 98, initial_indent="  ", subsequent_indent=" " * 12))
    if method.remedy:
        _say("\n  As a remedy:")
        _say(textwrap.indent(method.remedy.strip("\n"), "    "))


def _evidence_line(method: "Method") -> str:
    evidence = method.evidence
    if evidence is None:
        return f"none recorded; run: aboveboard reproduce {method.name}"
    criteria = evidence["full"]["criteria"]
    passed = sum(bool(criterion["passed"]) for criterion in criteria)
    return f"{passed} of {len(criteria)} criteria passed at full scale; run: aboveboard reproduce {method.name}"


@main.command(short_help="Print how to cite a method.")
@click.argument("name")
def cite(name: str) -> None:
    """Print the reference of the paper behind method NAME, and its BibTeX entry."""
    from aboveboard.core.catalogue import find_method

    paper = find_method(name).paper
    _say(str(paper))
    _say()
    _say(paper.bibtex())


@main.command(cls=_SectionCommand, short_help="Rerun the experiment behind a method.")
@click.argument("name")
@_option("Options", "--scale", type=click.Choice(["quick", "full"]), help="Seconds, or the full claim. Default: quick.")
@_option("Options", "--record", is_flag=True, help="Run both scales, and write the evidence (in a checkout).")
@_option("Options", "--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.pass_context
def reproduce(ctx: click.Context, name: str, scale: "Scale | None", record: bool, seed: int) -> None:
    """Rerun the experiment behind method NAME; exit status 1 when one of its criteria fails."""
    from aboveboard.core.catalogue import find_method

    method = find_method(name)
    if record and scale == "quick":
        raise InputError("--record was given with --scale quick", expected="--scale full, or no --scale")
    from aboveboard.reproduce import runner

    if record:
        outcome, path = runner.record(method, seed=seed)
        _complain(f"Recorded in {path.name}.")
    else:
        outcome = runner.run(method, scale or "quick", seed=seed)
    _tell_outcome(outcome)
    ctx.exit(gate.PASSED if outcome.passed else gate.FAILED)


def _tell_outcome(outcome: "Outcome") -> None:
    rows = [
        (
            criterion.id,
            f"{criterion.figure:.6g}",
            f"{criterion.relation} {criterion.bound:.6g}{' ' + criterion.unit if criterion.unit else ''}",
            "passed" if criterion.passed else "FAILED",
            f"{criterion.statement} ({criterion.statistic} of {len(criterion.values)})",
        )
        for criterion in outcome.criteria
    ]
    _table(("Criterion", "Figure", "Bound", "Verdict", "Claim"), rows)
    for note in outcome.notes:
        _complain(f"Note: {note}")


# --- aboveboard data --------------------------------------------------------------------------------------------------


@main.group(short_help="List the data sets, or tell about one.")
def data() -> None:
    """Real data sets with provenance, licence and caveats."""


@data.command("list")
def list_data() -> None:
    """List the data sets."""
    from aboveboard.data import list_datasets

    rows = [
        (record.name, f"{record.rows:,}", record.task, "bundled" if record.bundled else "fetched", record.summary)
        for record in list_datasets()
    ]
    _table(("Name", "Rows", "Task", "Where", "What it is"), rows)


@data.command("show")
@click.argument("name")
@click.option("--download", is_flag=True, help="Fetch it from its public source when it is not here yet.")
def show_data(name: str, download: bool) -> None:
    """Tell where data set NAME comes from, under what licence, and what to know before using it."""
    from aboveboard.data import info

    record = info(name)
    _say(click.style(f"{record.name}: {record.title}", bold=True))
    facts = {
        "what": record.summary,
        "size": f"{record.rows:,} rows x {record.columns:,} columns ({record.published_rows:,} rows published)",
        "task": record.task + (f", target {record.target}" if record.target else ""),
        "positive": record.positive,
        "sensitive": ", ".join(record.sensitive),
        "from": record.provenance,
        "link": record.url,
        "licence": record.licence,
        "cite": str(record.reference),
        "load": f"aboveboard.data.load({record.name!r})",
    }
    for label, value in facts.items():
        if value:
            _say(textwrap.fill(f"{label + ':':<11}{value}", 98, initial_indent="  ", subsequent_indent=" " * 13))
    _say("  caveats:")
    for caveat in record.caveats:
        _say(textwrap.fill(caveat, 98, initial_indent="    - ", subsequent_indent="      "))
    if download:
        from aboveboard.data import load

        loaded = load(record.name) if record.bundled else load(record.name, download=True)
        _complain(f"Here, with the right checksum: {len(loaded.X):,} rows.")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; the last column is wrapped."""
    cells = [[_clean(" ".join(str(cell).split())) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)][:-1]
    room = max(30, 110 - sum(widths) - 2 * len(widths))

    def show(row: Sequence[str], *, bold: bool = False) -> None:
        start = "".join(f"{cell:<{width + 2}}" for cell, width in zip(row, widths, strict=False))
        lines = textwrap.wrap(row[-1], room) or [""]
        _say(click.style(start + lines[0], bold=True) if bold else start + lines[0])
        for line in lines[1:]:
            _say(" " * len(start) + line)

    show(header, bold=True)
    for row in cells:
        show(row)


if __name__ == "__main__":
    main(prog_name="aboveboard")
