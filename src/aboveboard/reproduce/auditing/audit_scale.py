"""What an audit costs: seconds, memory and the size of its report, against rows and columns.

Each size is measured in a process of its own, so that its peak memory is its own. The tables are simulated: numbers
with and without gaps, whole numbers, categories and booleans, three sensitive columns of 2, 4 and 8 groups, and a score
that treats the groups a little differently.
"""

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from aboveboard.core.errors import ModelError
from aboveboard.core.finding import Column, Figure, Line, Series, Table
from aboveboard.reproduce import Criterion, Outcome, Scale

__all__ = ["run", "simulated_table"]

_SENSITIVE: Final = {"sex": 2, "age_band": 4, "region": 8}
_CATEGORIES: Final = 12
_MISSING: Final = 0.05
_GB, _MB = 1e9, 1e6
_CHILD: Final = "from aboveboard.reproduce.auditing.audit_scale import _answer; _answer()"


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which tables are measured: `rows` at `fixed_columns`, `columns` at `fixed_rows`, the headline several times."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    fixed_rows: int
    fixed_columns: int
    headline_rows: int
    repeats: int


_PLANS: Final[dict[Scale, _Plan]] = {
    "quick": _Plan((60, 120), (), 60, 3, 120, 1),
    "full": _Plan(
        (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000), (10, 25, 50, 100), 300_000, 50, 1_000_000, 3
    ),
}


@dataclass(frozen=True, slots=True)
class _Size:
    rows: int
    columns: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Cost:
    size: _Size
    seconds: float
    peak_bytes: int
    report_bytes: int


def run(scale: Scale = "quick", *, random_state: int = 0) -> Outcome:
    """Measure the audit of tables of growing size, and (at full scale) of the bundled example.

    Parameters
    ----------
    scale : {"quick", "full"}
        A hundred rows, or up to three million; the quick scale leaves out the bundled example and the columns.
    random_state : int
        Seed of the simulated tables and of the audits.
    """
    plan = _PLANS[scale]
    row_sizes = [_Size(n, plan.fixed_columns, random_state) for n in plan.rows]
    column_sizes = [_Size(plan.fixed_rows, d, random_state) for d in plan.columns]
    headline = [_Size(plan.headline_rows, plan.fixed_columns, random_state + i) for i in range(plan.repeats)]
    sizes = list(dict.fromkeys([*row_sizes, *column_sizes, *headline]))
    costs = {cost.size: cost for cost in _measure(sizes, shared_process=scale == "quick")}
    by_rows, by_columns = [costs[size] for size in row_sizes], [costs[size] for size in column_sizes]
    criteria = [
        *_headline_criteria([costs[size] for size in headline]),
        _report_criterion(list(costs.values())),
        _rows_criterion(by_rows),
    ]
    figures = [_figure("rows", plan.rows, by_rows, f"{plan.fixed_columns} columns")]
    if scale == "full":
        criteria = [_bundled_criterion(), *criteria, _columns_criterion(by_columns)]
        figures.append(_figure("columns", plan.columns, by_columns, f"{plan.fixed_rows:,} rows"))
    return Outcome(
        criteria,
        figures=tuple(figures),
        tables=(_cost_table(list(costs.values())),),
        notes=() if scale == "full" else ("The quick scale leaves out the bundled example and the number of columns.",),
    )


def simulated_table(rows: int, columns: int, *, random_state: int = 0) -> pd.DataFrame:
    """Return a table of mixed columns, three sensitive columns, a target `y` and a score `p`.

    Parameters
    ----------
    rows, columns : int
        `columns` counts the features; the three sensitive columns, `y` and `p` come on top.
    random_state : int
    """
    rng = np.random.default_rng(random_state)
    table: dict[str, object] = {}
    signal = np.zeros(rows)
    for number in range(columns):
        name, kind = f"x{number}", number % 5
        values = rng.standard_normal(rows)
        if number < 3:
            signal += values
        if kind == 0:
            table[name] = values
        elif kind == 1:
            table[name] = np.where(rng.random(rows) < _MISSING, np.nan, values)
        elif kind == 2:
            table[name] = np.floor(np.abs(values) * 20).astype(np.int64)
        elif kind == 3:
            codes = rng.integers(0, _CATEGORIES, rows).astype(np.int8)
            table[name] = pd.Categorical.from_codes(codes, pd.Index([f"kind {c}" for c in range(_CATEGORIES)]))
        else:
            table[name] = values > 0
    for name, groups in _SENSITIVE.items():
        codes = rng.integers(0, groups, rows).astype(np.int8)
        table[name] = pd.Categorical.from_codes(codes, pd.Index([f"{name} {g}" for g in range(groups)]))
        signal += 0.2 * (codes == 0)
    chance = 1 / (1 + np.exp(-(signal - 1)))
    table["y"] = (rng.random(rows) < chance).astype(np.int8)
    table["p"] = 1 / (1 + np.exp(-(0.9 * signal - 1)))
    return pd.DataFrame(table)


def _measure(sizes: Sequence[_Size], *, shared_process: bool) -> list[_Cost]:
    """Audit one table per size in fresh processes: one each, or one for all where peak memory does not matter."""
    batches = [list(sizes)] if shared_process else [[size] for size in sizes]
    costs: list[_Cost] = []
    for batch in batches:
        done = subprocess.run(
            [sys.executable, "-c", _CHILD],
            input=json.dumps([asdict(size) for size in batch]),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        costs += [_Cost(size, **found) for size, found in zip(batch, json.loads(done.stdout), strict=True)]
    return costs


def _answer() -> None:
    """Audit the sizes on standard input, and write what each cost to standard output: the child's whole work."""
    costs = [_audit_cost(_Size(**size)) for size in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(costs))


def _audit_cost(size: _Size) -> dict[str, float]:
    import aboveboard

    table = simulated_table(size.rows, size.columns, random_state=size.seed)
    start = time.perf_counter()
    report = aboveboard.audit(
        None,
        table,
        "y",
        predictions="p",
        sensitive_features=list(_SENSITIVE),
        random_state=size.seed,
        show_progress=False,
    )
    html = report.to_html()
    seconds = time.perf_counter() - start
    failed = [finding for finding in report.not_run if finding.status == "error"]
    if failed:
        raise RuntimeError(f"the audit is not whole, so its cost means nothing: {failed[0].check}: {failed[0].reason}")
    return {"seconds": seconds, "peak_bytes": _peak_bytes(), "report_bytes": len(html.encode())}


def _peak_bytes() -> int:
    """Return the most memory that this process has held, as the operating system counts it."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    if sys.platform == "win32":
        import psutil

        return int(psutil.Process().memory_info().peak_wset)
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _bundled_criterion() -> Criterion:
    """Time the whole command, from start to written report, as a user would see it."""
    seconds = {}
    for number in range(1, 4):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-m", "aboveboard", "audit"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
            seconds[f"run {number}"] = time.perf_counter() - start
            if done.returncode not in (0, 1) or not (Path(folder) / "aboveboard-report" / "index.html").is_file():
                raise ModelError(f"'aboveboard audit' ended with status {done.returncode}: {done.stderr[-500:]}")
    statement = "'aboveboard audit' fits and audits the bundled example in under 60 seconds"
    return Criterion("bundled-seconds", statement, seconds, "max", "<", 60.0, "s", None)


def _headline_criteria(costs: Sequence[_Cost]) -> list[Criterion]:
    size = costs[0].size
    what = f"{size.rows:,} rows x {size.columns} mixed columns, 3 sensitive columns"
    seconds = {f"seed {cost.size.seed}": cost.seconds for cost in costs}
    memory = {f"seed {cost.size.seed}": cost.peak_bytes / _GB for cost in costs}
    return [
        Criterion("large-seconds", f"{what}: under 3 minutes at default effort", seconds, "max", "<", 180.0, "s", None),
        Criterion("large-memory", f"{what}: under 4 GB, the table included", memory, "max", "<", 4.0, "GB", None),
    ]


def _report_criterion(costs: Collection[_Cost]) -> Criterion:
    sizes = {_label(cost.size): cost.report_bytes / _MB for cost in costs}
    statement = "the HTML report stays under 2 MB whatever the number of rows and columns"
    return Criterion("report-size", statement, sizes, "max", "<", 2.0, "MB", 0.1)


def _rows_criterion(costs: Sequence[_Cost]) -> Criterion:
    """Fit log seconds to log rows, for the four largest tables only: fixed costs rule the small ones."""
    upper = costs[-4:]
    statement = f"from {upper[0].size.rows:,} rows on, seconds grow no faster than rows to the power 1.1"
    slope = _slope([(cost.size.rows, cost.seconds) for cost in upper])
    return Criterion("rows-exponent", statement, {"log-log slope": slope}, "max", "<=", 1.1, "", None)


def _columns_criterion(costs: Sequence[_Cost]) -> Criterion:
    statement = "seconds grow no faster than columns to the power 1.1"
    slope = _slope([(cost.size.columns, cost.seconds) for cost in costs])
    return Criterion("columns-exponent", statement, {"log-log slope": slope}, "max", "<=", 1.1, "", None)


def _slope(points: Sequence[tuple[int, float]]) -> float:
    logs = np.log(np.array(points))
    return float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0])


def _figure(what: str, sizes: Sequence[int], costs: Sequence[_Cost], fixed: str) -> Figure:
    seconds = tuple(round(cost.seconds, 2) for cost in costs)
    each = costs[-1].seconds / sizes[-1]
    thousands = sizes[-1] >= 10_000
    x = tuple(size / 1000 if thousands else float(size) for size in sizes)
    return Figure(
        kind="lines",
        title=f"Seconds of an audit against {what} ({fixed})",
        x_label=f"Thousand {what}" if thousands else what.capitalize(),
        y_label="Seconds",
        series=(
            Series("measured", x, seconds),
            Series("in proportion", x, tuple(round(each * size, 2) for size in sizes)),
        ),
        lines=(Line("limit for a million rows", 180.0),) if what == "rows" and sizes[-1] >= 1_000_000 else (),
        alt=(
            f"With {fixed}, an audit takes {seconds[0]:g} s for {sizes[0]:,} {what} and {seconds[-1]:g} s for "
            f"{sizes[-1]:,} {what}; the second line shows what cost in proportion to {what} would be."
        ),
    )


def _cost_table(costs: Collection[_Cost]) -> Table:
    columns = (
        Column("Rows", "count"),
        Column("Columns", "count"),
        Column("Seed", "text"),
        Column("Seconds"),
        Column("Peak memory (GB)"),
        Column("Report (MB)"),
    )
    rows = tuple(
        (
            cost.size.rows,
            cost.size.columns,
            str(cost.size.seed),
            round(cost.seconds, 2),
            _rounded(cost.peak_bytes / _GB),
            _rounded(cost.report_bytes / _MB),
        )
        for cost in costs
    )
    return Table("What an audit costs", columns, rows)


def _rounded(value: float) -> float:
    return round(value, 3 - math.floor(math.log10(value)) - 1) if value else 0.0


def _label(size: _Size) -> str:
    return f"{size.rows:,} rows x {size.columns} columns, seed {size.seed}"
