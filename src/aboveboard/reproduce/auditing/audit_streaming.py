"""What a streamed audit costs, seconds and memory against rows, and whether its figures are those of one in memory.

Tables of a target, a score and two sensitive columns are written to one Parquet file each, by row groups of a million,
and audited in a process of their own: performance, calibration and group fairness. One limit on the address space of
the process is set for both ways of reading the largest table.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from aboveboard.core.errors import ModelError
from aboveboard.core.finding import Column, Figure, Series, Table
from aboveboard.reproduce import Criterion, Outcome, Scale

__all__ = ["figures_of", "run", "write_table"]

_GROUP: Final = 1_000_000
_REGIONS: Final = 6
_CHECKS: Final = ("performance", "calibration", "group_fairness")
_LIMIT: Final = 4 * 2**30
_MB: Final = 1e6
_CHILD: Final = "from aboveboard.reproduce.auditing.audit_streaming import _answer; _answer()"


@dataclass(frozen=True, slots=True)
class _Plan:
    """The numbers of rows, that at which both ways are compared, and whether the limit is tried (at the largest)."""

    rows: tuple[int, ...]
    compared: int
    limited: bool


_PLANS: Final[dict[Scale, _Plan]] = {
    "quick": _Plan((1_000, 2_000), 2_000, limited=False),
    "full": _Plan((100_000, 1_000_000, 10_000_000, 100_000_000), 1_000_000, limited=True),
}


@dataclass(frozen=True, slots=True)
class _Task:
    """One audit that a child does: of which file, how, under which limit of its address space (0 for none)."""

    path: str
    stream: bool
    seed: int
    jobs: int = 1
    limit: int = 0


def run(scale: Scale = "quick", *, random_state: int = 0) -> Outcome:
    """Measure streamed audits of tables of growing size.

    Parameters
    ----------
    scale : {"quick", "full"}
        Two thousand rows, or a hundred million (about 1 GB in a temporary folder, deleted after).
    random_state : int
        Seed of the simulated tables and of the audits.
    """
    plan = _PLANS[scale]
    costs: dict[int, dict[str, Any]] = {}
    outcomes: dict[str, float] = {}
    gaps: dict[str, float] = {}
    limit = _LIMIT if plan.limited else 0
    with tempfile.TemporaryDirectory(prefix="aboveboard-") as folder:
        for rows in plan.rows:
            path = write_table(Path(folder) / f"{rows}.parquet", rows, random_state=random_state)
            costs[rows] = _audited(_Task(str(path), True, random_state, limit=limit)) | {"file": path.stat().st_size}
            if rows == plan.compared:
                memory = _audited(_Task(str(path), False, random_state))
                gaps["largest difference"] = _largest_gap(memory["figures"], costs[rows]["figures"])
            if rows == plan.rows[-1] and plan.limited:
                twice = _audited(_Task(str(path), True, random_state, jobs=2))
                gaps["two processes, largest table"] = _largest_gap(twice["figures"], costs[rows]["figures"])
                outcomes["streamed"] = float(bool(costs[rows]["figures"]))
                outcomes["in memory"] = float(
                    bool(_audited(_Task(str(path), False, random_state, limit=limit), check=False))
                )
            path.unlink()
    criteria = [_same_criterion(plan, gaps), *_growth_criteria(plan, costs)]
    if plan.limited:
        criteria += _limit_criteria(outcomes)
    return Outcome(
        criteria,
        figures=(_seconds_figure(costs), _memory_figure(costs)),
        tables=(_cost_table(costs),),
        notes=() if plan.limited else ("The quick scale leaves out the limit and the second process.",),
    )


def write_table(path: Path, rows: int, *, random_state: int = 0) -> Path:
    """Write a table of a target `y`, a score `p` and the groups `sex` and `region` by row groups, and return its path.

    Parameters
    ----------
    path : Path
    rows : int
    random_state : int
    """
    writer: pq.ParquetWriter | None = None
    for table in _tables(rows, random_state):
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()
    return path


def _tables(rows: int, seed: int) -> Iterator[pa.Table]:
    for number, start in enumerate(range(0, rows, _GROUP)):
        n = min(_GROUP, rows - start)
        rng = np.random.default_rng([seed, number])
        sex, region = rng.integers(0, 2, n, dtype=np.int8), rng.integers(0, _REGIONS, n, dtype=np.int8)
        signal = rng.standard_normal(n) + 0.3 * sex
        y = rng.random(n) < 1 / (1 + np.exp(-signal))
        columns = {
            "y": pa.array(y.astype(np.int8)),
            "p": pa.array(1 / (1 + np.exp(-0.9 * signal))),
            "sex": pa.DictionaryArray.from_arrays(pa.array(sex), ["f", "m"]),
            "region": pa.DictionaryArray.from_arrays(pa.array(region), [f"region {i}" for i in range(_REGIONS)]),
        }
        yield pa.table(columns)


def figures_of(report: Any) -> dict[str, float]:
    """Return every number in the findings of a report, by where it stands."""
    found: dict[str, float] = {}

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                walk(item, f"{path}/{key}")
        elif isinstance(value, list | tuple):
            for i, item in enumerate(value):
                walk(item, f"{path}/{i}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found[path] = float(value)

    for finding in report.findings:
        walk(finding.to_dict(), finding.id)
    return found


def _audited(task: _Task, *, check: bool = True) -> dict[str, Any]:
    """Audit in a fresh process; nothing comes back where that ran out of memory and `check` is not set."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD], input=json.dumps(asdict(task)), capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    if check or "MemoryError" not in done.stderr:
        raise ModelError(f"the audit of {Path(task.path).name} failed: {done.stderr[-500:]}")
    return {}


def _answer() -> None:
    """Do the audit on standard input, and write figures and cost to standard output: the child's whole work."""
    import aboveboard
    from aboveboard.reproduce.auditing.audit_scale import _peak_bytes

    task = _Task(**json.load(sys.stdin))
    if task.limit:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (task.limit, task.limit))
    start = time.perf_counter()
    report = aboveboard.audit(
        None,
        task.path,
        "y",
        predictions="p",
        sensitive_features=["sex", "region"],
        only=_CHECKS,
        stream=task.stream,
        n_jobs=task.jobs,
        random_state=task.seed,
        show_progress=False,
    )
    seconds = time.perf_counter() - start
    failed = [finding for finding in report.not_run if finding.status == "error"]
    if failed:
        raise MemoryError(failed[0].reason) if "memory" in failed[0].reason else RuntimeError(failed[0].reason)
    sys.stdout.write(json.dumps({"seconds": seconds, "peak": _peak_bytes(), "figures": figures_of(report)}))


def _largest_gap(one: dict[str, float], other: dict[str, float]) -> float:
    if one.keys() != other.keys():
        return float("inf")
    return max(abs(value - other[key]) / max(1.0, abs(value)) for key, value in one.items())


def _same_criterion(plan: _Plan, gaps: dict[str, float]) -> Criterion:
    statement = (
        f"Every figure of the streamed audit is that of the audit in memory to 1e-9 ({plan.compared:,} rows), and with "
        "two processes that with one"
    )
    return Criterion("same-figures", statement, gaps, "max", "<=", 1e-9, "relative to 1 or more", 1e-9)


def _growth_criteria(plan: _Plan, costs: dict[int, dict[str, Any]]) -> list[Criterion]:
    upper = plan.rows[-3:]
    seconds = _slope([(rows, costs[rows]["seconds"]) for rows in upper])
    memory = _slope([(rows, costs[rows]["peak"]) for rows in upper])
    span = f"from {upper[0]:,} to {upper[-1]:,} rows"
    return [
        Criterion(
            "rows-exponent",
            f"{span}, seconds grow no faster than rows to the power 1.1",
            {"log-log slope": seconds},
            "max",
            "<=",
            1.1,
            "",
            None,
        ),
        Criterion(
            "memory-exponent",
            f"{span}, peak memory grows no faster than rows to the power 0.05: it is flat",
            {"log-log slope": memory},
            "max",
            "<=",
            0.05,
            "",
            None,
        ),
        Criterion(
            "memory",
            f"{plan.rows[-1]:,} rows are audited in less than 1 GB, Python and its libraries included",
            {f"{plan.rows[-1]:,} rows": costs[plan.rows[-1]]["peak"] / 1e9},
            "max",
            "<",
            1.0,
            "GB",
            None,
        ),
    ]


def _limit_criteria(outcomes: dict[str, float]) -> list[Criterion]:
    limit = f"a limit of {_LIMIT / 2**30:.0f} GiB on the address space of the process"
    return [
        Criterion(
            "limit-streamed",
            f"Under {limit}, the streamed audit of the largest table finishes",
            {"finished": outcomes["streamed"]},
            "min",
            ">=",
            1.0,
            "",
            None,
        ),
        Criterion(
            "limit-in-memory",
            f"Under {limit}, the audit in memory of the same table runs out of it",
            {"finished": outcomes["in memory"]},
            "max",
            "<=",
            0.0,
            "",
            None,
        ),
    ]


def _slope(points: Sequence[tuple[int, float]]) -> float:
    logs = np.log(np.array(points))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def _seconds_figure(costs: dict[int, dict[str, Any]]) -> Figure:
    rows, last = sorted(costs), max(costs)
    x = tuple(float(np.log10(n)) for n in rows)
    measured = tuple(float(np.log10(costs[n]["seconds"])) for n in rows)
    level = float(np.log10(costs[last]["seconds"] / last))
    return Figure(
        kind="lines",
        title="Seconds of a streamed audit against rows",
        x_label="Rows (power of ten)",
        y_label="Seconds (power of ten)",
        series=(Series("measured", x, measured), Series("in proportion", x, tuple(level + at for at in x))),
        alt=(
            f"A streamed audit takes {costs[rows[0]]['seconds']:.1f} s for {rows[0]:,} rows and "
            f"{costs[last]['seconds']:.0f} s for {last:,}; the second line is what cost in proportion would be."
        ),
    )


def _memory_figure(costs: dict[int, dict[str, Any]]) -> Figure:
    rows, last = sorted(costs), max(costs)
    x = tuple(float(np.log10(n)) for n in rows)
    return Figure(
        kind="lines",
        title="Peak memory of a streamed audit against rows",
        x_label="Rows (power of ten)",
        y_label="Megabytes",
        series=(
            Series("peak memory", x, tuple(round(costs[n]["peak"] / _MB, 1) for n in rows)),
            Series("size of the file", x, tuple(round(costs[n]["file"] / _MB, 1) for n in rows)),
        ),
        alt=(
            f"A streamed audit holds {costs[rows[0]]['peak'] / _MB:.0f} MB at most for {rows[0]:,} rows and "
            f"{costs[last]['peak'] / _MB:.0f} MB for {last:,}, whose file has {costs[last]['file'] / _MB:.0f} MB."
        ),
    )


def _cost_table(costs: dict[int, dict[str, Any]]) -> Table:
    columns = (Column("Rows", "count"), Column("Seconds"), Column("Peak memory (MB)"), Column("File (MB)"))
    rows = tuple(
        (n, round(cost["seconds"], 2), round(cost["peak"] / _MB, 1), round(cost["file"] / _MB, 1))
        for n, cost in sorted(costs.items())
    )
    return Table("What a streamed audit costs", columns, rows)
