"""Fair clusters cost less than k-means made fair afterwards, and 200,000 rows take minutes.

The paper's tables were not at hand; its claim, that relaxing and merging beats the baselines, is run on samples of
Adult against the fair linear program on the centres of k-means (Bera et al. 2019) and on those of the best single group
(Boehm et al. 2021), once as they are and once all refined alike. Assignments are held against HiGHS on the whole
program; barycenters against POT.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_digits, make_moons

from aboveboard._optimize.linear import linear_program
from aboveboard.core import Column, Figure, Series, Table
from aboveboard.data import load_adult, load_compas, load_credit_default, load_fashion_mnist, load_german_credit
from aboveboard.fairness import RelaxMergeFairKMeans, sparse_wasserstein_barycenter
from aboveboard.fairness.fair_kmeans._assignment import fair_assignment, squared_distances
from aboveboard.fairness.fair_kmeans._groups import Fairness, Groups, read_groups, shares_allowed
from aboveboard.fairness.fair_kmeans._relax_merge import refined
from aboveboard.fairness.fair_kmeans._rounding import by_flow, by_integer_program, cell_masses
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.reproduce._peers import run_peer

__all__ = ["run"]

_COLUMNS: Final = ["age", "fnlwgt", "education_num", "capital_gain", "hours_per_week"]
_REFINE: Final = 5
_CHILD: Final = "from aboveboard.reproduce.fairness.fair_kmeans import _answer; _answer()"
_GB: Final = 1e9
_ATOMS: Final = 20
_LONG: Final = 200  # rounds of refinement of barycenters, ours and POT's
_IMAGES: Final = 4

Floats = NDArray[np.float64]


def run(scale: Scale, *, random_state: int) -> Outcome:
    """Run the experiment: a few seconds, or some ten minutes."""
    full = scale == "full"
    start = time.perf_counter()
    rows, k = (1000, 6) if full else (200, 4)
    seeds = range(random_state, random_state + (10 if full else 2))
    tasks = [_adult(seed, rows) for seed in seeds]
    results = [_compared(task, k, 0.0) for task in tasks]
    minutes = (time.perf_counter() - start) / 60
    optimal, seconds = _against_highs((1000, 2000, 5000) if full else (300,), random_state)
    criteria = [*_claims(results), optimal, _strict(random_state, 200 if full else 40)]
    figures: tuple[Figure, ...] = (_costs_figure(results),)
    tables: tuple[Table, ...] = (_costs_table(results), _violations_table(results), seconds)
    notes = [
        "The method refines from two starts, the merged centres and those of plain k-means, so with equal refinement "
        "it cannot be behind k-means with the fair linear program; the table shows by how little it is ahead.",
        "Labels of the flow break a bound by fewer than 2 points where each point is in one group. With sex and race, "
        "which overlap, they can break one by more; rounding='milp' then looks for the smallest violation first.",
        "Rounding may cut the cost by several percent: freeing less than a point per group spares an outlier of "
        "capital gain a far centre. That is legitimate, and the violation says what was freed.",
    ]
    peers: dict[str, Any] = {}
    if full:
        criteria.append(
            Criterion(
                "minutes-adult",
                "The ten samples with all baselines take under 10 minutes",
                {"all": minutes},
                "max",
                "<=",
                10.0,
                "minutes",
                None,
            )
        )
        sizes = [_measured(n, random_state) for n in (25_000, 50_000, 100_000, 200_000)]
        criteria += _scale_claims(sizes)
        figures += (_growth_figure(sizes),)
        tables += (
            _growth_table(sizes),
            _other_slacks(tasks[:3], k),
            _other_data(random_state),
            _all_adult(random_state),
        )
        theirs = run_peer(
            "kmeans_constrained",
            "even_sizes",
            {f"{i}.X": task.X for i, task in enumerate(tasks[:3])},
            tasks=3,
            k=k,
            seed=random_state,
        )
        tables += (_sizes_only(tasks[:3], k, theirs.arrays),)
        peers["k-means-constrained"] = {"freeze": list(theirs.freeze), "seconds": theirs.options["seconds"]}
        criterion, table, peers["POT"] = _barycenters(random_state)
        criteria.append(criterion)
        tables += (table,)
    return Outcome(criteria, figures, tables, tuple(notes), peers)


# --- Adult, and the baselines -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    name: str
    X: Floats
    sensitive: pd.DataFrame
    groups: Groups
    seed: int


def _task(
    name: str, X: Any, sensitive: pd.DataFrame, seed: int, *, rows: int | None = None, scaled: bool = True
) -> _Task:
    values = np.asarray(X, dtype=np.float64)
    chosen = np.arange(len(values))
    if rows is not None and rows < len(values):
        chosen = np.random.default_rng(seed).choice(len(values), rows, replace=False)
    values = values[chosen]
    if scaled:
        values = (values - values.mean(axis=0)) / np.where(values.std(axis=0) > 0, values.std(axis=0), 1.0)
    groups = sensitive.iloc[chosen].astype(str).reset_index(drop=True)
    return _Task(name, values, groups, read_groups(groups, len(chosen)), seed)


def _adult(seed: int, rows: int | None, *, scaled: bool = True) -> _Task:
    adult = load_adult()
    return _task(f"seed {seed}", adult.X[_COLUMNS], adult.X[["sex", "race"]], seed, rows=rows, scaled=scaled)


@dataclass(frozen=True)
class _Result:
    """Fractional costs of one task, and by how many points bounds are broken."""

    name: str
    k_means: float
    costs: dict[str, float]
    refined: dict[str, float]
    before: float
    flow: float
    flow_one: float
    milp: float
    flow_cost: float
    milp_cost: float
    unfair: float


def _compared(task: _Task, k: int, slack: float, *, labels: bool = True) -> _Result:
    n, groups = len(task.X), task.groups
    allowed = shares_allowed(groups, slack, None)
    fairness, weight = Fairness.of(groups, allowed), np.ones(n)
    plain = KMeans(k, n_init=10, random_state=task.seed).fit(task.X)
    starts = {"k-means + LP": [plain.cluster_centers_], "best single group + LP": _single_groups(task, k)}
    costs, again = {}, {}
    for name, centres in starts.items():
        found = [fair_assignment(squared_distances(task.X, c), weight, groups.cell, fairness) for c in centres]
        best = int(np.argmin([f.cost for f in found]))
        costs[name] = found[best].cost
        again[name] = refined(task.X, weight, groups.cell, fairness, centres[best], refine=_REFINE, time_limit=120.0)[
            1
        ].cost
    fair = RelaxMergeFairKMeans(k, slack=slack, rounding=None, refine=_REFINE, random_state=task.seed)
    fair.fit(task.X, sensitive_features=task.sensitive)
    costs["relax and merge, not refined"] = fair.merged_cost_
    costs["RelaxMergeFairKMeans"] = again["RelaxMergeFairKMeans"] = fair.fractional_cost_
    mass = cell_masses(fair.assignment_, groups.cell, groups.n_cells)
    before = float(fairness.violation(mass).max(initial=0.0))
    flow = flow_one = milp = flow_cost = milp_cost = float("nan")
    if labels:
        cost = squared_distances(task.X, fair.cluster_centers_)
        again_assigned = fair_assignment(cost, weight, groups.cell, fairness)
        by_flow_labels = by_flow(cost, again_assigned, groups.cell, groups.n_cells)
        by_program, _ = by_integer_program(cost, again_assigned, groups.cell, fairness, 60.0)
        flow, milp = (_violation(groups, fairness, one, k) for one in (by_flow_labels, by_program))
        flow_cost, milp_cost = (float(cost[np.arange(n), one].sum()) for one in (by_flow_labels, by_program))
        flow_one = _one_attribute(task, k, slack)
    return _Result(
        task.name, float(plain.inertia_), costs, again, before, flow, flow_one, milp, flow_cost, milp_cost,
        _violation(groups, fairness, plain.labels_, k),
    )  # fmt: skip


def _single_groups(task: _Task, k: int) -> list[Floats]:
    """Return the centres of k-means on each group alone."""
    groups = task.groups
    centres = []
    for member in groups.member:
        rows = member[groups.cell]
        if rows.sum() >= k:
            centres.append(KMeans(k, n_init=10, random_state=task.seed).fit(task.X[rows]).cluster_centers_)
    return centres


def _one_attribute(task: _Task, k: int, slack: float) -> float:
    """Return the violation of the flow's labels where each point is in one group: its sex."""
    groups = read_groups(task.sensitive["sex"], len(task.X))
    fairness = Fairness.of(groups, shares_allowed(groups, slack, None))
    plain = KMeans(k, n_init=10, random_state=task.seed).fit(task.X)
    cost = squared_distances(task.X, plain.cluster_centers_)
    found = fair_assignment(cost, np.ones(len(cost)), groups.cell, fairness)
    return _violation(groups, fairness, by_flow(cost, found, groups.cell, groups.n_cells), k)


def _violation(groups: Groups, fairness: Fairness, labels: Any, k: int) -> float:
    counts = np.zeros((groups.n_cells, k))
    np.add.at(counts, (groups.cell, labels), 1.0)
    return float(fairness.violation(counts).max(initial=0.0))


def _claims(results: Sequence[_Result]) -> list[Criterion]:
    ours = {r.name: r.costs["RelaxMergeFairKMeans"] for r in results}
    base = {r.name: r.costs["k-means + LP"] for r in results}
    lowest = {r.name: min(r.costs["k-means + LP"], r.costs["best single group + LP"]) for r in results}
    return [
        Criterion(
            "cheaper",
            "On Adult (sex and race, exact proportions) the fractional fair cost is at least 3 % below that of k-means "
            "with the fair linear program, on average",
            {name: 1 - ours[name] / base[name] for name in ours},
            "mean",
            ">=",
            0.03,
            "share of the cost",
            1e-3,
        ),
        Criterion(
            "cheaper-often",
            "It is below both baselines in at least 8 of 10 samples",
            {name: float(ours[name] < lowest[name]) for name in ours},
            "mean",
            ">=",
            0.8,
            "share of samples",
        ),
        Criterion(
            "fair-before",
            "Before rounding no bound is broken",
            {r.name: r.before for r in results},
            "max",
            "<=",
            1e-6,
            "points",
            1e-6,
        ),
        Criterion(
            "fair-after",
            "After rounding by the integer program, sex and race, no bound is broken by 2 points",
            {r.name: r.milp for r in results},
            "max",
            "<",
            2.0,
            "points",
            0.5,
        ),
        Criterion(
            "fair-after-one-attribute",
            "After rounding by the flow, sex alone, no bound is broken by 2 points",
            {r.name: r.flow_one for r in results},
            "max",
            "<",
            2.0,
            "points",
            0.5,
        ),
        Criterion(
            "rounding-costs-nothing",
            "The flow's labels cost no more than the fractional assignment",
            {r.name: r.flow_cost / r.costs["RelaxMergeFairKMeans"] for r in results},
            "max",
            "<=",
            1 + 1e-6,
            "of the fractional cost",
            0.02,
        ),
    ]


def _costs_table(results: Sequence[_Result]) -> Table:
    names = list(results[0].costs)
    rows: list[tuple[Any, ...]] = [("k-means, not fair", _mean(r.k_means for r in results), None, None, None)]
    base = _mean(r.costs["k-means + LP"] for r in results)
    base_refined = _mean(r.refined["k-means + LP"] for r in results)
    for name in names:
        cost = _mean(r.costs[name] for r in results)
        again = _mean(r.refined[name] for r in results) if name in results[0].refined else None
        rows.append((name, cost, cost / base - 1, again, None if again is None else again / base_refined - 1))
    return Table(
        "Fractional fair cost, mean over the samples of Adult",
        (
            Column("method", "text"),
            Column("cost"),
            Column("against k-means + LP", "percent"),
            Column("cost, all refined alike"),
            Column("against k-means + LP, refined", "percent"),
        ),
        tuple(rows),
        note=f"Refined: up to {_REFINE} rounds of moving centres and assigning again.",
    )


def _violations_table(results: Sequence[_Result]) -> Table:
    return Table(
        "By how many points a bound is broken at most, sex and race, exact proportions",
        (
            Column("sample", "text"),
            Column("k-means"),
            Column("fractional"),
            Column("flow"),
            Column("integer program"),
            Column("flow, cost against fractional", "percent"),
            Column("integer program, cost against fractional", "percent"),
        ),
        tuple(
            (
                r.name, r.unfair, r.before, r.flow, r.milp,
                r.flow_cost / r.costs["RelaxMergeFairKMeans"] - 1, r.milp_cost / r.costs["RelaxMergeFairKMeans"] - 1,
            )
            for r in results
        ),
    )  # fmt: skip


def _costs_figure(results: Sequence[_Result]) -> Figure:
    names = list(results[0].costs)
    by_name = {name: [r.costs[name] / r.costs["k-means + LP"] for r in results] for name in names}
    return Figure(
        "intervals",
        "Cost of fair clusters of Adult, against k-means with the fair linear program",
        "method",
        "fractional cost / that of k-means + LP",
        (
            Series(
                "samples",
                tuple(names),
                tuple(_mean(by_name[name]) for name in names),
                tuple(min(by_name[name]) for name in names),
                tuple(max(by_name[name]) for name in names),
            ),
        ),
        alt="Mean and range over the samples of each method's fair cost relative to k-means with the fair linear "
        "program: relaxing and merging, refined, lies below both baselines.",
    )


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


# --- against HiGHS ----------------------------------------------------------------------------------------------------


def _against_highs(sizes: Sequence[int], seed: int) -> tuple[Criterion, Table]:
    off: dict[str, float] = {}
    rows: list[tuple[Any, ...]] = []
    for n in sizes:
        task = _adult(seed, n)
        fairness = Fairness.of(task.groups, shares_allowed(task.groups, 0.0, None))
        centres = KMeans(6, n_init=1, random_state=seed).fit(task.X).cluster_centers_
        cost = squared_distances(task.X, centres)
        start = time.perf_counter()
        ours = fair_assignment(cost, np.ones(n), task.groups.cell, fairness)
        middle = time.perf_counter()
        theirs = _whole_program(cost, task.groups, fairness)
        rows.append((n, middle - start, time.perf_counter() - middle))
        off[f"n {n:,}"] = abs(ours.cost / theirs - 1)
    criterion = Criterion(
        "optimal",
        "Assignments cost what HiGHS says on the whole program",
        off,
        "max",
        "<=",
        1e-6,
        "relative difference",
        1e-6,
    )
    table = Table(
        "One assignment of Adult to 6 centres, sex and race, exact proportions",
        (Column("rows", "count"), Column("seconds"), Column("seconds, HiGHS on the whole program")),
        tuple(rows),
    )
    return criterion, table


def _whole_program(cost: Floats, groups: Groups, fairness: Fairness) -> float:
    n, k = cost.shape
    rows = sparse.vstack(
        [
            sparse.kron(sparse.eye_array(n), np.ones((1, k))),
            sparse.kron(sparse.csr_array(fairness.rows[:, groups.cell]), sparse.eye_array(k)),
        ]
    )
    low = np.r_[np.ones(n), np.where(np.repeat(fairness.equal, k), 0.0, -np.inf)]
    return linear_program(cost.ravel(), rows, low, np.r_[np.ones(n), np.zeros(len(low) - n)]).objective


# --- the strict variant -----------------------------------------------------------------------------------------------


def _strict(seed: int, n: int) -> Criterion:
    broken = {}
    moons, label = make_moons(2 * n, noise=0.1, random_state=seed)
    women, men = (_adult(seed, 4 * n).sensitive["sex"] == sex for sex in ("Female", "Male"))
    values = _adult(seed, 4 * n).X
    some = np.r_[np.flatnonzero(women)[: n // 2], np.flatnonzero(men)[:n]]
    for name, X, group in (
        ("moons", moons, label),
        ("Adult, sex, 1 to 2", values[some], np.r_[[0] * (n // 2), [1] * n]),
    ):
        fair = RelaxMergeFairKMeans(5, strict=True, random_state=seed).fit(X, sensitive_features=group)
        broken[name] = fair.max_violation_
    return Criterion("strict", "Clusters of fairlets break no bound", broken, "max", "<=", 1e-9, "points", 1e-9)


# --- time and memory --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Size:
    n: int
    seconds: float
    assignment_seconds: float
    peak_bytes: float
    gap: float
    violation: float


def _measured(n: int, seed: int) -> _Size:
    """Fit in a process of its own, so that its peak memory is its own."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD],
        input=json.dumps({"n": n, "seed": seed}),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the measurement of {n:,} rows failed:\n{done.stderr[-2000:]}")
    return _Size(**json.loads(done.stdout))


def _answer() -> None:
    asked = json.loads(sys.stdin.read())
    X, group = _simulated(asked["n"], asked["seed"])
    start = time.perf_counter()
    fair = RelaxMergeFairKMeans(10, slack=0.05, random_state=asked["seed"]).fit(X, sensitive_features=group)
    seconds = time.perf_counter() - start
    groups = read_groups(group, len(X))
    fairness = Fairness.of(groups, shares_allowed(groups, 0.05, None))
    start = time.perf_counter()
    again = fair_assignment(squared_distances(X, fair.cluster_centers_), np.ones(len(X)), groups.cell, fairness)
    alone = time.perf_counter() - start
    peak = 1024.0 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = _Size(len(X), seconds, alone, peak, again.gap, fair.max_violation_)
    sys.stdout.write(json.dumps(asdict(found)))


def _simulated(n: int, seed: int) -> tuple[Floats, NDArray[np.intp]]:
    """Return 20 columns in 30 clouds that the five groups share unevenly."""
    random = np.random.default_rng(seed)
    cloud = random.integers(0, 30, n)
    X = 2.0 * random.normal(size=(30, 20))[cloud] + random.normal(size=(n, 20))
    edges = np.cumsum(random.dirichlet(np.full(5, 3.0), size=30), axis=1)
    return X, np.minimum((random.random(n)[:, None] > edges[cloud]).sum(axis=1), 4)


def _scale_claims(sizes: Sequence[_Size]) -> list[Criterion]:
    last = sizes[-1]
    slope = np.polyfit(np.log([s.n for s in sizes]), np.log([s.seconds for s in sizes]), 1)[0]
    label = f"n {last.n:,}"
    return [
        Criterion(
            "large-minutes",
            "200,000 rows of 20 columns in 10 clusters with 5 groups take under 5 minutes, from the data to the labels",
            {label: last.seconds / 60},
            "max",
            "<=",
            5.0,
            "minutes",
            None,
        ),
        Criterion(
            "large-memory",
            "and under 4 GB",
            {label: last.peak_bytes / _GB},
            "max",
            "<=",
            4.0,
            "GB",
            None,
        ),
        Criterion(
            "large-optimal",
            "Their assignment is optimal, by its dual bound",
            {f"n {s.n:,}": s.gap for s in sizes},
            "max",
            "<=",
            1e-6,
            "relative gap",
            1e-6,
        ),
        Criterion(
            "large-fair",
            "No bound is broken by 2 points",
            {f"n {s.n:,}": s.violation for s in sizes},
            "max",
            "<",
            2.0,
            "points",
            None,
        ),
        Criterion(
            "growth",
            "Time grows no faster than n to the power of 1.3",
            {"slope": float(slope)},
            "max",
            "<=",
            1.3,
            "power of n",
            None,
        ),
    ]


def _growth_figure(sizes: Sequence[_Size]) -> Figure:
    n = tuple(float(s.n) for s in sizes)
    return Figure(
        "lines",
        "Seconds by the number of rows: 20 columns, 10 clusters, 5 groups",
        "rows",
        "seconds",
        (
            Series("fit, from the data to the labels", n, tuple(s.seconds for s in sizes)),
            Series("one assignment, to the optimum", n, tuple(s.assignment_seconds for s in sizes)),
        ),
        alt="Two lines: seconds of a whole fit and of one assignment, which grow about in proportion to the rows.",
    )


def _growth_table(sizes: Sequence[_Size]) -> Table:
    return Table(
        "Time and memory by the number of rows: 20 columns, 10 clusters, 5 groups, slack 0.05",
        (
            Column("rows", "count"),
            Column("seconds, fit"),
            Column("seconds, one assignment"),
            Column("peak memory, GB"),
            Column("relative gap"),
        ),
        tuple((s.n, s.seconds, s.assignment_seconds, s.peak_bytes / _GB, s.gap) for s in sizes),
    )


# --- other bounds, other data -----------------------------------------------------------------------------------------


def _other_slacks(tasks: Sequence[_Task], k: int) -> Table:
    rows: list[tuple[Any, ...]] = []
    for slack in (0.0, 0.1, 0.2):
        found = [_compared(task, k, slack, labels=False) for task in tasks]
        rows.append((f"standardised, slack {slack:g}", *_relative(found)))
    raw = [_compared(_adult(task.seed, len(task.X), scaled=False), k, 0.0, labels=False) for task in tasks]
    rows.append(("not standardised, slack 0", *_relative(raw)))
    return Table(
        "Adult with other bounds: fractional cost against k-means + LP, mean of three samples",
        (Column("setting", "text"), *_RELATIVE),
        tuple(rows),
        note="Without standardising, the sampling weight swamps the other columns. Looser bounds leave less to save.",
    )


_RELATIVE: Final = (
    Column("best single group + LP", "percent"),
    Column("relax and merge, not refined", "percent"),
    Column("RelaxMergeFairKMeans", "percent"),
    Column("it against k-means + LP refined", "percent"),
)


def _relative(found: Sequence[_Result]) -> tuple[float, float, float, float]:
    base = [r.costs["k-means + LP"] for r in found]
    names = ("best single group + LP", "relax and merge, not refined", "RelaxMergeFairKMeans")
    a, b, c = (_mean(r.costs[name] / low - 1 for r, low in zip(found, base, strict=True)) for name in names)
    return a, b, c, _mean(r.refined["RelaxMergeFairKMeans"] / r.refined["k-means + LP"] - 1 for r in found)


def _other_data(seed: int) -> Table:
    rows = []
    for name, tasks in _data_sets(seed):
        found = [_compared(task, 6, 0.0, labels=False) for task in tasks]
        rows.append((name, len(tasks[0].X), *_relative(found)))
    return Table(
        "Other data, exact proportions, 6 clusters: fractional cost against k-means + LP, mean of two samples",
        (Column("data", "text"), Column("rows", "count"), *_RELATIVE),
        tuple(rows),
    )


def _data_sets(seed: int) -> Iterator[tuple[str, list[_Task]]]:
    german, credit, compas, cancer = load_german_credit(), load_credit_default(), load_compas(), load_breast_cancer()
    young = pd.DataFrame({"age": np.where(german.X["age"] < 26, "young", "older")})
    columns = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
    spent = [name for name in credit.X.columns if name.startswith(("limit", "bill", "pay_amt"))] or list(
        credit.X.select_dtypes("number").columns
    )
    sets = {
        "German credit, under 26": (german.X.select_dtypes("number"), young),
        "credit default, sex, education, marriage": (credit.X[spent], credit.X[["sex", "education", "marriage"]]),
        "COMPAS, sex and race": (compas.X[columns], compas.X[["sex", "race"]]),
        "breast cancer, diagnosis": (cancer.data, pd.DataFrame({"diagnosis": cancer.target})),
    }
    for name, (X, sensitive) in sets.items():
        yield name, [_task(name, X, sensitive, s, rows=600) for s in (seed, seed + 1)]


def _all_adult(seed: int) -> Table:
    task = _adult(seed, None)
    start = time.perf_counter()
    fair = RelaxMergeFairKMeans(6, slack=0.0, random_state=seed).fit(task.X, sensitive_features=task.sensitive)
    seconds = time.perf_counter() - start
    plain = KMeans(6, n_init=10, random_state=seed).fit(task.X)
    fairness = Fairness.of(task.groups, shares_allowed(task.groups, 0.0, None))
    base = fair_assignment(
        squared_distances(task.X, plain.cluster_centers_), np.ones(len(task.X)), task.groups.cell, fairness
    )
    return Table(
        "All of Adult: sex and race, exact proportions, 6 clusters",
        (
            Column("rows", "count"),
            Column("seconds"),
            Column("cost"),
            Column("cost, k-means + LP"),
            Column("points beyond a bound, labels"),
            Column("share beyond a bound, labels", "percent"),
        ),
        (
            (
                len(task.X), seconds, fair.fractional_cost_, base.cost, fair.max_violation_, fair.max_violation_share_,
            ),
        ),
    )  # fmt: skip


def _sizes_only(tasks: Sequence[_Task], k: int, arrays: dict[str, NDArray[Any]]) -> Table:
    rows = []
    for position, task in enumerate(tasks):
        fairness = Fairness.of(task.groups, shares_allowed(task.groups, 0.0, None))
        labels = arrays[f"{position}.labels"]
        rows.append((task.name, _violation(task.groups, fairness, labels, k)))
    return Table(
        "k-means-constrained, which bounds the sizes of clusters: points beyond a bound on groups",
        (Column("sample", "text"), Column("points")),
        tuple(rows),
        note="Clusters of equal size are no fairer to groups than others.",
    )


# --- barycenters ------------------------------------------------------------------------------------------------------


def _barycenters(seed: int) -> tuple[Criterion, Table, dict[str, Any]]:
    arrays: dict[str, Any] = {}
    seconds = []
    sets = list(_images(seed))
    names = [name for name, _, _ in sets]
    for task, (_, supports, masses) in enumerate(sets):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            ours = sparse_wasserstein_barycenter(
                supports, masses, _ATOMS, n_candidates=100, refine=_LONG, random_state=seed
            )
        seconds.append(time.perf_counter() - start)
        arrays |= {f"{task}.x.{i}": x for i, x in enumerate(supports)}
        arrays |= {f"{task}.p.{i}": p for i, p in enumerate(masses)}
        arrays |= {f"{task}.atoms": ours.atoms, f"{task}.masses": ours.masses}
    theirs = run_peer("pot", "barycenters", arrays, tasks=len(sets), k=_ATOMS, iterations=_LONG, seed=seed)
    pairs = list(zip(theirs.options["ours"], theirs.options["theirs"], strict=True))
    criterion = Criterion(
        "barycenter",
        "Barycenters of images with 20 atoms cost less than POT's free-support ones in at least 8 of 10 tasks, as "
        "POT's solver has it",
        {name: float(ours < other) for name, (ours, other) in zip(names, pairs, strict=True)},
        "mean",
        ">=",
        0.8,
        "share of tasks",
        None,
    )
    columns = (Column("images", "text"), *map(Column, ("cost", "cost, POT", "seconds", "seconds, POT")))
    rows = zip(names, *zip(*pairs, strict=True), seconds, theirs.options["seconds"], strict=True)
    table = Table(
        "Barycenters of four images with 20 atoms, cost in squared pixels",
        columns,
        tuple(rows),
        note=f"POT's atoms have equal masses, ours the best ones; both move their atoms for at most {_LONG} rounds.",
    )
    return criterion, table, {"freeze": list(theirs.freeze), "seconds": theirs.options["seconds"]}


def _images(seed: int) -> Iterator[tuple[str, list[Floats], list[Floats]]]:
    """Four images of each of five kinds of clothing and of five digits, as measures on the plane."""
    fashion, digits = load_fashion_mnist(split="test"), load_digits()
    assert fashion.y is not None
    kinds = np.unique(fashion.y.astype(str))[:5]
    random = np.random.default_rng(seed)
    for side, images, labels, wanted in (
        (28, fashion.X.to_numpy(), fashion.y.astype(str).to_numpy(), kinds),
        (8, digits.data, digits.target, np.arange(5)),
    ):
        where = np.stack(np.divmod(np.arange(side * side), side), axis=1).astype(np.float64)
        for kind in wanted:
            rows = random.choice(np.flatnonzero(labels == kind), _IMAGES, replace=False)
            grey = [images[row].astype(np.float64) for row in rows]
            yield str(kind), [where[g > 0] for g in grey], [g[g > 0] / g.sum() for g in grey]
