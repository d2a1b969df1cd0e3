"""Which measure tells errors, held-out classes and foreign images: ensembles on Fashion-MNIST, Adult and digits.

Five small convolutional networks are trained on eight of the ten kinds of clothing, for three seeds; the paper's
ensembles of ResNets on CIFAR and TinyImageNet are scaled down to what a processor trains in minutes. Then time and
memory for ten members of a million rows, beside an implementation by pairs of members and beside probly. The quick
scale tells the errors of small forests on Adult.
"""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from aboveboard.core import Column, Figure, Series, Table, require
from aboveboard.data import load_adult, load_fashion_mnist
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.uncertainty import RiskDecomposition, named_measure, rank_measures, uncertainty_measures
from aboveboard.uncertainty.risk_decomposition._ranking import column_text

__all__ = ["run"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_TOTAL: Final = ("log", "total", "inner", "inner")
_INFORMATION: Final = ("log", "excess", "outer", "inner")
_ZERO_ONE: Final = ("zero_one", "excess", "outer", "inner")
_COMPARED: Final = (
    _TOTAL,
    ("log", "bayes", "outer", ""),
    _INFORMATION,
    ("log", "excess", "outer", "outer"),
    ("brier", "total", "inner", "inner"),
    ("brier", "excess", "outer", "inner"),
    ("spherical", "excess", "outer", "inner"),
    ("zero_one", "total", "inner", "inner"),
    _ZERO_ONE,
)
_MEMBERS: Final = 5
_EPOCHS: Final = 3
_MB: Final = 2.0**20


def run(scale: Scale, *, random_state: int) -> Outcome:
    """Run the experiment: seconds with forests, or some minutes with networks, time and memory."""
    if scale == "quick":
        parts = {f"seed {seed}": _adult(random_state + seed) for seed in range(2)}
        return Outcome([_errors(parts, "Adult"), _identities(parts)], tables=(_table(parts),))
    parts = {f"seed {seed}": _fashion(random_state + seed) for seed in range(3)}
    speed, speed_figure, speed_table = _speed()
    peer, peer_criteria, peer_row = _peer(random_state)
    dropout = _table({seed: part["dropout"] for seed, part in parts.items()}, "Ten passes with dropout: ")
    tables = (_table(parts), dropout, _other_ensembles(random_state), _table_of_speed(speed_table, peer_row))
    return Outcome(
        [_errors(parts, "Fashion-MNIST"), _held_out(parts), _identities(parts), *speed, *peer_criteria],
        (_figure(parts), speed_figure),
        tables,
        (
            "Scaled down: five networks of two small convolutions and one hidden layer, three epochs, instead of the "
            "paper's ResNets on CIFAR-10, CIFAR-100 and TinyImageNet. The bounds of the first two criteria are ours.",
            "Peak memory is that of a process of its own, less what it held before the measures were computed.",
            "probly has three of these measures, for the log score, and wants rows first; the same arrays were given.",
        ),
        {"probly": peer},
    )


# --- which measure for what -------------------------------------------------------------------------------------------


def _errors(parts: dict[str, dict[str, Any]], data: str) -> Criterion:
    return Criterion(
        "errors",
        f"On {data} the log score's total risk tells errors better than mutual information, by 0.02 AUROC or more for "
        "every seed",
        {seed: _area(part, "errors", _TOTAL) - _area(part, "errors", _INFORMATION) for seed, part in parts.items()},
        "min",
        ">=",
        0.02,
        tolerance=0.02,
    )


def _held_out(parts: dict[str, dict[str, Any]]) -> Criterion:
    task = "held-out classes"
    return Criterion(
        "held-out-classes",
        "On Fashion-MNIST the log score's excess risk tells held-out classes better than the zero-one score's, by 0.05 "
        "AUROC or more for every seed",
        {seed: _area(part, task, _INFORMATION) - _area(part, task, _ZERO_ONE) for seed, part in parts.items()},
        "min",
        ">=",
        0.05,
    )


def _identities(parts: dict[str, dict[str, Any]]) -> Criterion:
    return Criterion(
        "identities",
        "Additivity, pairs, Jensen's gap and the law of the centre hold on every row and for every score, to 1e-6",
        {seed: part["identities"] for seed, part in parts.items()},
        "max",
        "<=",
        1e-6,
        tolerance=1e-9,
    )


def _area(part: dict[str, Any], task: str, label: tuple[str, ...]) -> float:
    return float(part["areas"][task]["auroc"][label])


def _evaluated(known: Floats, wrong: Bools, foreign: dict[str, Floats]) -> dict[str, Any]:
    """Return the areas of each task, and the largest violation of an identity, from what members say."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # members that say zero; eps is the default
        family = uncertainty_measures(known)
        others = {name: uncertainty_measures(members) for name, members in foreign.items()}
    areas = {"errors": rank_measures(family, wrong)}
    for name, other in others.items():
        event = np.arange(len(family) + len(other)) >= len(family)
        areas[name] = rank_measures(pd.concat([family, other], ignore_index=True), event)
    return {
        "areas": areas,
        "identities": max(_violation(table) for table in (family, *others.values())),
        "accuracy": 1.0 - float(wrong.mean()),
    }


def _violation(family: pd.DataFrame) -> float:
    """Return how far the identities are from holding, at most, over rows and scores."""
    worst = 0.0
    for score in ("log", "brier", "spherical", "zero_one"):
        own = family[score]
        excess, bayes, total = own["excess"], own["bayes"], own["total"]
        gaps = [
            excess["outer", "outer"] - excess["outer", "inner"] - excess["inner", "outer"],
            excess["outer", "inner"] - bayes["inner", ""] + bayes["outer", ""],
        ]
        for truth, prediction in total.columns:
            added = 0 if truth == prediction else excess[truth, prediction]
            gaps.append(total[truth, prediction] - bayes[truth, ""] - added)
        if score != "zero_one":  # whose centre is the mean by convention, and no minimum
            gaps.append(excess["inner", "outer"] - excess["inner", "central"] - excess["central", "outer"])
        worst = max(worst, *(float(np.abs(gap).max()) for gap in gaps))
    return worst


def _figure(parts: dict[str, dict[str, Any]]) -> Figure:
    """Return the areas of the compared measures, the mean over seeds with the range."""
    series = []
    for task in ("errors", "held-out classes"):
        areas = np.array([[_area(part, task, label) for label in _COMPARED] for part in parts.values()])
        series.append(
            Series(
                task,
                tuple(column_text(label) for label in _COMPARED),
                tuple(areas.mean(axis=0).tolist()),
                tuple(areas.min(axis=0).tolist()),
                tuple(areas.max(axis=0).tolist()),
            )
        )
    total, information = (
        float(np.mean([_area(part, "errors", label) for part in parts.values()])) for label in (_TOTAL, _INFORMATION)
    )
    return Figure(
        "intervals",
        "No measure is best at everything",
        "measure",
        "AUROC, mean and range over seeds",
        tuple(series),
        alt=f"Errors are told best by total risks ({total:.2f} for the log score) and worse by mutual information "
        f"({information:.2f}).",
    )


def _table(parts: dict[str, dict[str, Any]], what: str = "") -> Table:
    tasks = list(next(iter(parts.values()))["areas"])
    rows: list[tuple[Any, ...]] = []
    for label in _COMPARED:
        means = (float(np.mean([_area(part, task, label) for part in parts.values()])) for task in tasks)
        rows.append((column_text(label), *means))
    accuracy = np.mean([part["accuracy"] for part in parts.values()])
    return Table(
        f"{what}AUROC by measure and task, mean over seeds",
        (Column("measure", "text"), *(Column(task) for task in tasks)),
        tuple(rows),
        note=f"The members' mean is right in {100 * accuracy:.1f} % of the test rows of the known classes.",
    )


# --- members ----------------------------------------------------------------------------------------------------------


def _adult(seed: int) -> dict[str, Any]:
    adult = load_adult(split="train")
    X, y = adult.X.select_dtypes("number"), np.asarray(adult.y_binary)
    forest = RandomForestClassifier(10, min_samples_leaf=20, random_state=seed).fit(X[:4000], y[:4000])
    known = RiskDecomposition(forest).member_proba(X[4000:8000])
    return _evaluated(known, known.mean(axis=0).argmax(axis=1) != y[4000:8000], {})


def _fashion(seed: int) -> dict[str, Any]:
    """Train the networks of one seed, and evaluate them on known, held-out and foreign images."""
    images, codes = _images("train")
    tests, test_codes = _images("test")
    nets = [_trained(images[codes < 8], codes[codes < 8], 100 * seed + member) for member in range(_MEMBERS)]
    members = RiskDecomposition(nets).member_proba
    inside = test_codes < 8
    known = members(tests[inside])
    wrong = known.mean(axis=0).argmax(axis=1) != test_codes[inside]
    rng = np.random.default_rng(seed)
    some = tests[inside][rng.permutation(int(inside.sum()))[:2000]]
    foreign = {
        "held-out classes": tests[~inside],
        "digits": _large_digits(),
        "noise": rng.random((2000, 1, 28, 28)).astype(np.float32),
        "turned by 30 degrees": _turned(some, 30.0),
        "turned by 90 degrees": _turned(some, 90.0),
        "blurred": _blurred(some, 1.5),
    }
    found = _evaluated(known, wrong, {name: members(pixels) for name, pixels in foreign.items()})
    dropping = RiskDecomposition(nets[0], n_draws=10, random_state=seed).member_proba
    drawn = dropping(tests[inside])
    missed = drawn.mean(axis=0).argmax(axis=1) != test_codes[inside]
    found["dropout"] = _evaluated(drawn, missed, {"held-out classes": dropping(tests[~inside])})
    return found


def _images(split: Any) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    data = load_fashion_mnist(split=split)
    assert data.y is not None
    kinds = sorted(set(map(str, data.y)))
    # the classes that are held out are bags and ankle boots, the last two of the published order
    kinds = [kind for kind in kinds if kind not in ("bag", "ankle boot")] + ["bag", "ankle boot"]
    codes = np.array([kinds.index(str(kind)) for kind in data.y], dtype=np.int64)
    pixels = np.asarray(data.X, dtype=np.float32).reshape(-1, 1, 28, 28)
    return np.asarray(pixels / 255, dtype=np.float32), codes


def _trained(images: NDArray[np.float32], codes: NDArray[np.int64], seed: int) -> Any:
    torch = require("torch", extra="torch", feature="The experiment of RiskDecomposition")
    nn = torch.nn
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Dropout(0.25),
            nn.Linear(16 * 49, 64),
            nn.ReLU(),
            nn.Linear(64, 8),
        )
        optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
        X, y = torch.as_tensor(images), torch.as_tensor(codes)
        for _ in range(_EPOCHS):
            for rows in torch.randperm(len(X)).split(256):
                optimizer.zero_grad()
                nn.functional.cross_entropy(net(X[rows]), y[rows]).backward()
                optimizer.step()
    return net


def _large_digits() -> NDArray[np.float32]:
    from scipy.ndimage import zoom

    images = load_digits().images / 16.0
    return np.asarray(np.clip(zoom(images, (1, 3.5, 3.5), order=1), 0, 1)[:, None], dtype=np.float32)


def _turned(images: NDArray[np.float32], degrees: float) -> NDArray[np.float32]:
    from scipy.ndimage import rotate

    return np.asarray(rotate(images, degrees, axes=(2, 3), reshape=False, order=1), dtype=np.float32)


def _blurred(images: NDArray[np.float32], sigma: float) -> NDArray[np.float32]:
    from scipy.ndimage import gaussian_filter

    return np.asarray(gaussian_filter(images, (0, 0, sigma, sigma)), dtype=np.float32)


def _other_ensembles(seed: int) -> Table:
    """Return the areas for errors of other ensembles, each on rows that it was not fitted on."""
    adult = load_adult(split="train")
    X, y = adult.X.select_dtypes("number"), np.asarray(adult.y_binary)
    digits, kinds = load_digits(return_X_y=True)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=seed)
    forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=seed)
    ensembles: dict[str, tuple[Any, Any, Any, Any, Any]] = {
        "random forest, Adult": (forest, X[:15_000], y[:15_000], X[15_000:], y[15_000:]),
        "bagged trees, Adult": (
            BaggingClassifier(tree, 30, random_state=seed), X[:15_000], y[:15_000], X[15_000:], y[15_000:],
        ),
        "bagged trees, digits": (
            BaggingClassifier(tree, 30, random_state=seed), digits[:900], kinds[:900], digits[900:], kinds[900:],
        ),
    }  # fmt: skip
    columns = {}
    for name, (model, X_train, y_train, X_test, y_test) in ensembles.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # leaves of one class
            compared = RiskDecomposition(model.fit(X_train, y_train)).compare(X_test, y_test)
        columns[name] = compared.loc["misclassification"]["auroc"]
    rows: tuple[tuple[Any, ...], ...] = tuple(
        (column_text(label), *(float(columns[name][label]) for name in columns)) for label in _COMPARED
    )
    return Table(
        "Other ensembles: AUROC for errors", (Column("measure", "text"), *(Column(name) for name in columns)), rows
    )


# --- time and memory --------------------------------------------------------------------------------------------------


def _speed() -> tuple[list[Criterion], Figure, list[tuple[Any, ...]]]:
    whole = _in_child("family", 1_000_000)
    pairs, ours = _in_child("pairs", 100_000), _in_child("epkl", 100_000)
    sizes = (30_000, 100_000, 300_000, 1_000_000)
    costs = [_in_child("family", rows)["seconds"] for rows in sizes[:-1]] + [whole["seconds"]]
    growth = float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])
    criteria = [
        Criterion(
            "seconds",
            "All 64 measures of 10 members, 1,000,000 rows and 10 classes take 30 seconds of one core at most",
            {"1,000,000 rows": whole["seconds"]},
            "max",
            "<=",
            30.0,
            unit="s",
            tolerance=None,
        ),
        Criterion(
            "memory",
            "They take 100 MB of memory at most, besides input and output",
            {"1,000,000 rows": whole["peak_mb"] - whole["out_mb"]},
            "max",
            "<=",
            100.0,
            unit="MB",
            tolerance=None,
        ),
        Criterion(
            "pairs",
            "The divergence of all pairs takes a tenth of the memory of an array of pairs, or less",
            {"100,000 rows": pairs["peak_mb"] / max(ours["peak_mb"], 1.0)},
            "min",
            ">=",
            10.0,
            unit="times",
            tolerance=None,
        ),
        Criterion(
            "growth",
            "Time grows with the rows to the power 1.15 at most",
            {"30,000 to 1,000,000 rows": growth},
            "max",
            "<=",
            1.15,
            tolerance=None,
        ),
    ]
    figure = Figure(
        "lines",
        "Time of all measures",
        "log10 of the rows",
        "log10 of the seconds",
        (
            Series(
                "10 members, 10 classes",
                tuple(float(np.log10(n)) for n in sizes),
                tuple(float(np.log10(cost)) for cost in costs),
            ),
        ),
        alt=f"Seconds of one core against rows on logarithmic axes: a straight line of slope {growth:.2f}.",
    )
    rows: list[tuple[Any, ...]] = [
        ("all 64 measures", 1_000_000, whole["seconds"], whole["peak_mb"] - whole["out_mb"]),
        ("pairwise divergence, ours", 100_000, ours["seconds"], ours["peak_mb"]),
        ("pairwise divergence, an array of pairs", 100_000, pairs["seconds"], pairs["peak_mb"]),
    ]
    return criteria, figure, rows


def _table_of_speed(rows: list[tuple[Any, ...]], peer_row: list[tuple[Any, ...]]) -> Table:
    columns = (
        Column("what", "text"),
        Column("rows", "count"),
        Column("seconds", help="Of one core."),
        Column("MB besides input and output"),
    )
    return Table("10 members, 10 classes: time and memory", columns, (*rows, *peer_row))


def _in_child(what: str, rows: int) -> dict[str, float]:
    command = [sys.executable, "-m", "aboveboard.reproduce.uncertainty.risk_decomposition", what, str(rows)]
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads, check=False)
    if done.returncode:
        raise RuntimeError(f"the measurement of {what} failed:\n{done.stderr[-2000:]}")
    return {name: float(value) for name, value in json.loads(done.stdout).items()}


def _child(what: str, rows: int) -> dict[str, float]:
    """Measure the time of one computation, and by how much it raises the peak of this process' memory."""
    members = np.random.default_rng(0).random((10, rows, 10))
    for member in members:  # in place and in parts: the peak must not be that of making the input
        member /= member.sum(axis=1, keepdims=True)
    computations: dict[str, Callable[[Floats], Any]] = {
        "family": uncertainty_measures,
        "epkl": partial(named_measure, name="epkl"),
        "pairs": _by_pairs,
    }
    compute = computations[what]
    compute(members[:, :10])  # what is loaded once
    before = _peak_mb()
    start = time.process_time()
    found = compute(members)
    seconds = time.process_time() - start
    return {"seconds": seconds, "peak_mb": _peak_mb() - before, "out_mb": np.asarray(found).nbytes / _MB}


def _by_pairs(members: Floats) -> Floats:
    """Return the expected pairwise divergence as it is often written: by an array of all pairs of members."""
    ratio = np.log(members[:, None] / members[None])
    return np.asarray((members[:, None] * ratio).sum(axis=-1).mean(axis=(0, 1)))


def _peak_mb() -> float:
    """Return the peak of this program's memory; that of `getrusage` is inherited from the process that started it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return float(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024.0


def _peer(seed: int) -> tuple[dict[str, Any], list[Criterion], list[tuple[Any, ...]]]:
    from aboveboard.reproduce._peers import run_peer

    members = np.random.default_rng(seed).dirichlet(np.full(10, 0.5), size=(10, 100_000))
    found = run_peer("probly", "entropies", {"members": members})
    names = ("predictive_entropy", "expected_entropy", "mutual_information")
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = {name: named_measure(members, name) for name in names}
    seconds = time.process_time() - start
    apart = {name: float(np.abs(ours[name] - found.arrays[name]).max()) for name in names}
    criterion = Criterion(
        "probly",
        "The three measures that probly has too agree with it to 1e-6 on 100,000 rows",
        apart,
        "max",
        "<=",
        1e-6,
        tolerance=None,
    )
    theirs = float(found.options["seconds"])
    rows: list[tuple[Any, ...]] = [
        ("three entropies, ours", 100_000, seconds, None),
        ("three entropies, probly", 100_000, theirs, None),
    ]
    told = {"packages": list(found.freeze), "seconds": theirs, "seconds_ours": seconds}
    return told, [criterion], rows


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_child(sys.argv[1], int(sys.argv[2]))))
