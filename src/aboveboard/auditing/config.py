"""The options of an audit: from ``audit.toml``, from the command line, and checked before any work.

Loads neither NumPy nor pandas, so that a usage error is told at once.
"""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Literal

from aboveboard.auditing.models import DEFAULT_MEMORY, DEFAULT_TIMEOUT, ENDPOINT_FORMATS, is_address, is_function
from aboveboard.auditing.suites import EFFORTS, SUITES, Effort
from aboveboard.core.errors import InputError

__all__ = ["FAIL_ON", "FORMATS", "KINDS", "TASKS", "Options", "read_config"]

TASKS: Final = ("auto", "binary", "multiclass", "regression")
FAIL_ON: Final = ("note", "warn", "fail")
FORMATS: Final = ("table", "json", "markdown", "github", "junit", "sarif")
KINDS: Final = ("number", "category", "text", "boolean", "datetime")
_PREDICTION_TYPES: Final = ("score", "label")


def _read_by(read: Callable[[str, Any, Path], Any]) -> dict[str, Any]:
    """Return the metadata of an option: how its value in the config is read."""
    return {"read": read}


def _wrong(name: str, value: Any, expected: str) -> InputError:
    return InputError(f"{name} is {value!r} in the config", expected=expected)


def _text(name: str, value: Any, _: Path) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(name, value, "text")
    return value


def _label(name: str, value: Any, _: Path) -> str:
    if not isinstance(value, str | int | float):
        raise _wrong(name, value, "a label: text, a number, true or false")
    return str(value)


def _path(name: str, value: Any, folder: Path) -> Path:
    return folder / _text(name, value, folder)


def _texts(name: str, value: Any, folder: Path) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise _wrong(name, value, "text, or a list of texts")
    return tuple(_text(name, item, folder) for item in value)


def _labels(name: str, value: Any, folder: Path) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _wrong(name, value, "a list of labels")
    return tuple(_label(name, item, folder) for item in value)


def _flag(name: str, value: Any, _: Path) -> bool:
    if not isinstance(value, bool):
        raise _wrong(name, value, "true or false")
    return value


def _whole(name: str, value: Any, _: Path) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, "a whole number")
    return value


def _number(name: str, value: Any, _: Path) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, value, "a number")
    return value


def _text_or_number(name: str, value: Any, folder: Path) -> str | float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else _text(name, value, folder)


def _one_of(*allowed: str) -> Callable[[str, Any, Path], str]:
    def read(name: str, value: Any, _: Path) -> str:
        if value not in allowed:
            near = get_close_matches(str(value), allowed, n=1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise _wrong(name, value, ", ".join(allowed) + hint)
        return str(value)

    return read


def _source(name: str, value: Any, folder: Path) -> str:
    """Read where the model is; a function is code to run, which a file must not name."""
    text = _text(name, value, folder)
    if is_address(text):
        return text
    if is_function(text) and not (folder / text).exists():
        raise InputError(
            f"{name} is the function {text!r} in the config",
            expected="a model file: code to run is named on the command line only",
            remedy=f"Say --{name} {text}",
        )
    return str(folder / text)


def _command_line_only(name: str, _: Any, __: Path) -> Any:
    raise InputError(
        f"{name.replace('_', '-')!r} stands in the config",
        expected=f"--{name.replace('_', '-')} on the command line: a file must not vouch for another, nor say who gets "
        "a secret, nor show a person's row",
    )


def _table_of(read: Callable[[str, Any, Path], Any]) -> Callable[[str, Any, Path], dict[str, Any]]:
    def read_table(name: str, value: Any, folder: Path) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(name, value, f"a table: [{name}]")
        return {key: read(f"{name}.{key}", item, folder) for key, item in value.items()}

    return read_table


def _acceptances(name: str, value: Any, folder: Path) -> tuple[dict[str, Any], ...]:
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise _wrong(name, value, "tables: [[accept]] with id, reason and perhaps expires")
    for entry in value:
        for key in entry:
            if key not in ("id", "reason", "expires"):
                raise _unknown(key, ("id", "reason", "expires"), "an [[accept]] table")
        for key in ("id", "reason"):
            _text(f"accept.{key}", entry.get(key), folder)
        if not isinstance(entry.get("expires"), date | str | None):
            raise _wrong("accept.expires", entry["expires"], "a date, such as 2027-01-31")
    return tuple(dict(entry) for entry in value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Everything that ``aboveboard audit`` can be told; a name in the config is that of the field, with hyphens.

    Parameters
    ----------
    data, train, reference, baseline : Path, optional
    suite : str
        Which suite of checks; the options from `target` to `reference_group` belong to the tabular one.
    columns : dict of str to tuple of str
        For the other suites: the columns that have a role.
    settings : dict of str to str or float
        For the other suites: how the data are to be read.
    target, prediction_type, positive, threshold, weight, id, cluster, task, effort, jobs, seed, min_cell :
        As the parameters of `aboveboard.audit` (weight, id and cluster are column names).
    predictions, sensitive, drop, only, skip : tuple of str
    model : str, optional
        A model file, ``module:function`` or an address.
    compare : str, optional
        Another model for the same decisions: a model file or ``module:function``.
    compare_predictions : tuple of str
        Columns with its predictions, instead.
    compare_classes : tuple of str
        Labels for its codes, as `model_classes`.
    trust, trust_type, trust_pickle :
        What is vouched for in a model file; from the command line only.
    model_classes : tuple of str
        Labels for the codes of a model that has none of its own.
    model_timeout, model_memory : float
        Seconds and GiB that the model may take.
    auth_env, auth_header, endpoint_format, max_queries, batch_rows, concurrency, ca_file :
        For a model behind an address, as `aboveboard.auditing.models.endpoint.Endpoint` takes them (endpoint_format is
        its `format`); auth_env from the command line only.
    reference_group : dict of str to str
    limits : dict of str to float
    types : dict of str to {"number", "category", "text", "boolean", "datetime"}
    accept : tuple of dict
        Findings that somebody accepted: id, reason, expires.
    stream : bool, optional
        Read Parquet files part by part; default: where they would not fit into memory.
    show_rows : tuple of int
        Rows whose reasons are printed, counted from 1; from the command line only.
    fail_on : {"note", "warn", "fail"}
    strict : bool
        Inconclusive and skipped checks count against the exit status.
    out : Path
    force : bool
        Write into a folder that holds other files.
    format : {"table", "json", "markdown", "github", "junit", "sarif"}
    """

    data: Path | None = field(default=None, metadata=_read_by(_path))
    suite: str = field(default="tabular", metadata=_read_by(_one_of(*(suite.name for suite in SUITES))))
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict, metadata=_read_by(_table_of(_texts)))
    settings: dict[str, str | float] = field(default_factory=dict, metadata=_read_by(_table_of(_text_or_number)))
    target: str | None = field(default=None, metadata=_read_by(_text))
    predictions: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    prediction_type: Literal["score", "label"] | None = field(
        default=None, metadata=_read_by(_one_of(*_PREDICTION_TYPES))
    )
    model: str | None = field(default=None, metadata=_read_by(_source))
    compare: str | None = field(default=None, metadata=_read_by(_source))
    compare_predictions: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    compare_classes: tuple[str, ...] = field(default=(), metadata=_read_by(_labels))
    trust: Literal["known"] | None = field(default=None, metadata=_read_by(_command_line_only))
    trust_type: tuple[str, ...] = field(default=(), metadata=_read_by(_command_line_only))
    trust_pickle: bool = field(default=False, metadata=_read_by(_command_line_only))
    model_classes: tuple[str, ...] = field(default=(), metadata=_read_by(_labels))
    model_timeout: float = field(default=DEFAULT_TIMEOUT, metadata=_read_by(_number))
    model_memory: float = field(default=DEFAULT_MEMORY, metadata=_read_by(_number))
    auth_env: str | None = field(default=None, metadata=_read_by(_command_line_only))
    auth_header: str | None = field(default=None, metadata=_read_by(_text))
    endpoint_format: str | None = field(default=None, metadata=_read_by(_one_of(*ENDPOINT_FORMATS)))
    max_queries: int | None = field(default=None, metadata=_read_by(_whole))
    batch_rows: int | None = field(default=None, metadata=_read_by(_whole))
    concurrency: int | None = field(default=None, metadata=_read_by(_whole))
    ca_file: Path | None = field(default=None, metadata=_read_by(_path))
    sensitive: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    train: Path | None = field(default=None, metadata=_read_by(_path))
    stream: bool | None = field(default=None, metadata=_read_by(_flag))
    reference: Path | None = field(default=None, metadata=_read_by(_path))
    task: Literal["auto", "binary", "multiclass", "regression"] = field(
        default="auto", metadata=_read_by(_one_of(*TASKS))
    )
    positive: str | None = field(default=None, metadata=_read_by(_label))
    threshold: float | None = field(default=None, metadata=_read_by(_number))
    drop: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    weight: str | None = field(default=None, metadata=_read_by(_text))
    id: str | None = field(default=None, metadata=_read_by(_text))
    cluster: str | None = field(default=None, metadata=_read_by(_text))
    reference_group: dict[str, str] = field(default_factory=dict, metadata=_read_by(_table_of(_label)))
    only: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    skip: tuple[str, ...] = field(default=(), metadata=_read_by(_texts))
    effort: Effort = field(default="standard", metadata=_read_by(_one_of(*EFFORTS)))
    show_rows: tuple[int, ...] = field(default=(), metadata=_read_by(_command_line_only))
    fail_on: Literal["note", "warn", "fail"] = field(default="fail", metadata=_read_by(_one_of(*FAIL_ON)))
    strict: bool = field(default=False, metadata=_read_by(_flag))
    baseline: Path | None = field(default=None, metadata=_read_by(_path))
    accept: tuple[dict[str, Any], ...] = field(default=(), metadata=_read_by(_acceptances))
    limits: dict[str, float] = field(default_factory=dict, metadata=_read_by(_table_of(_number)))
    types: dict[str, str] = field(default_factory=dict, metadata=_read_by(_table_of(_one_of(*KINDS))))
    min_cell: int = field(default=10, metadata=_read_by(_whole))
    jobs: int | None = field(default=None, metadata=_read_by(_whole))
    out: Path = field(default=Path("aboveboard-report"), metadata=_read_by(_path))
    force: bool = field(default=False, metadata=_read_by(_flag))
    format: str = field(default="table", metadata=_read_by(_one_of(*FORMATS)))
    seed: int = field(default=0, metadata=_read_by(_whole))

    def merged(self, given: Mapping[str, Any]) -> "Options":
        """Return these options under those that were `given` on the command line.

        What was not given (None, or empty) leaves an option as it is. A list replaces the list of the config; limits,
        reference groups, columns and settings are joined, entry by entry.
        """
        changes = {name: value for name, value in given.items() if value is not None and value not in ((), {})}
        for name in ("limits", "reference_group", "columns", "settings"):
            if name in changes:
                changes[name] = {**getattr(self, name), **changes[name]}
        return replace(self, **changes)


def read_config(path: str | Path) -> Options:
    """Read the options in a TOML file; paths in it are relative to its folder.

    Raises
    ------
    InputError
        When the file cannot be read, is no TOML, has an unknown key (the nearest is named) or a value of another kind.
    """
    path = Path(path)
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"the config {path.name!r} cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:  # no TOML, or no UTF-8
        raise InputError(
            f"the config {path.name!r} is no TOML ({error})",
            expected="lines such as: target = 'income'",
        ) from error
    options = {f.name: f for f in fields(Options)}
    values: dict[str, Any] = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in options:
            raise _unknown(key, [option.replace("_", "-") for option in options], "the config")
        if name in values:
            raise InputError(f"{key!r} stands in the config twice, with a hyphen and with an underscore")
        values[name] = options[name].metadata["read"](key, value, path.parent)
    return Options(**values)


def _unknown(key: str, known: Any, where: str) -> InputError:
    near = get_close_matches(key, list(known), n=1, cutoff=0.5)
    return InputError(
        f"{where} has an unknown key {key!r}",
        expected=", ".join(known),
        remedy=f"Did you mean {near[0]!r}?" if near else "",
    )
