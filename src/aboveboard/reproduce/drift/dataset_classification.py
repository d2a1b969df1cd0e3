"""Dataset classification: regions, surveys and curation pipelines are told apart, and random parts are not.

The paper's image collections are out of reach, so its claim is tried on other real data: US communities in four census
regions, two surveys of the same kind (Adult of 1994, and the American Community Survey, ACS, of Massachusetts in 2015,
made alike), two years of ACS, and Fashion-MNIST under three curation pipelines. Times are seconds on the wall, one
thread; every ratio is of times from this run.
"""

import itertools
import statistics
import time
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from sklearn.linear_model import LogisticRegression

from aboveboard.core.finding import Column, Figure, Line, Series, Table
from aboveboard.data import load_acs_employment, load_adult, load_communities_crime
from aboveboard.drift import DatasetClassification, SequentialTwoSample
from aboveboard.drift.dataset_classification._images import corruption
from aboveboard.drift.dataset_classification._tables import TableEncoder
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.reproduce._peers import PeerResult, run_peer

__all__ = ["regions", "run", "surveys"]

_TINY_P: Final = 1e-6
_REGIONS: Final = {
    "Northeast": (
        "Connecticut", "Maine", "Massachusetts", "New Hampshire", "New Jersey", "New York", "Pennsylvania",
        "Rhode Island", "Vermont",
    ),
    "Midwest": (
        "Illinois", "Indiana", "Iowa", "Kansas", "Michigan", "Minnesota", "Missouri", "Nebraska", "North Dakota",
        "Ohio", "South Dakota", "Wisconsin",
    ),
    "West": (
        "Alaska", "Arizona", "California", "Colorado", "Hawaii", "Idaho", "Montana", "Nevada", "New Mexico", "Oregon",
        "Utah", "Washington", "Wyoming",
    ),
}  # fmt: skip
"""The regions of the Census Bureau; the other states are its South."""
_SCHOOL: Final = {
    "Preschool": "none", "1st-4th": "grades 1 to 4", "5th-6th": "grades 5 and 6", "7th-8th": "grades 7 and 8",
    "9th": "grade 9", "10th": "grade 10", "11th": "grade 11", "12th": "grade 12", "HS-grad": "high school",
    "Some-college": "some college", "Assoc-acdm": "associate", "Assoc-voc": "associate", "Bachelors": "bachelor",
    "Masters": "master", "Doctorate": "doctorate", "Prof-school": "professional",
    "no schooling": "none", "nursery school": "none", "kindergarten": "none", "grade 1": "grades 1 to 4",
    "grade 2": "grades 1 to 4", "grade 3": "grades 1 to 4", "grade 4": "grades 1 to 4", "grade 5": "grades 5 and 6",
    "grade 6": "grades 5 and 6", "grade 7": "grades 7 and 8", "grade 8": "grades 7 and 8",
    "grade 12, no diploma": "grade 12", "high school diploma": "high school", "GED or similar": "high school",
    "some college, under 1 year": "some college", "college, no degree": "some college",
    "associate's degree": "associate", "bachelor's degree": "bachelor", "master's degree": "master",
    "professional degree": "professional",
}  # fmt: skip
_RACE: Final = {
    "White": "white",
    "Black": "black",
    "Black or African American": "black",
    "Asian-Pac-Islander": "Asian or Pacific",
    "Asian": "Asian or Pacific",
    "Native Hawaiian or Pacific Islander": "Asian or Pacific",
}
_BORN_IN_US: Final = ("United-States", "Outlying-US(Guam-USVI-etc)", "Puerto-Rico")


@dataclass(frozen=True, slots=True)
class _Plan:
    """How much of it is done."""

    seeds: int
    region_train: int
    region_growth: tuple[int, ...]
    region_pseudo: int
    survey_train: int
    survey_held_out: int
    survey_pseudo: int
    null_repeats: int
    level_draws: int
    streams: int
    costs: tuple[int, ...]
    peer_repeats: int
    images: int


_PLANS: Final[dict[Scale, _Plan]] = {
    "quick": _Plan(1, 50, (25, 50), 1, 1500, 1000, 1, 2, 5, 4, (200, 400), 0, 0),
    "full": _Plan(3, 200, (25, 50, 100, 200), 20, 5000, 4000, 5, 200, 2000, 2000, (1000, 2000, 4000, 8000), 40, 10_000),
}


def run(scale: Scale = "quick", *, random_state: int = 0) -> Outcome:
    """Tell real sources apart, fail to tell random parts apart, and compare with other two-sample tests.

    Parameters
    ----------
    scale : {"quick", "full"}
        A few hundred rows of the tables; or all, with images, peers, and 2,000 draws for each level.
    random_state : int
        Seed of everything drawn.
    """
    plan = _PLANS[scale]
    region, region_tables, region_figures = _region_part(plan, random_state)
    survey, survey_table, survey_marks = _survey_part(plan, random_state)
    level, level_table = _level_part(plan, random_state)
    stream, stream_table = _stream_part(plan, random_state)
    cost, cost_figure = _cost_part(plan, random_state)
    criteria = [*region, *survey, *level, *stream, *cost]
    tables = [*region_tables, survey_table, level_table, stream_table]
    marks = [*region_figures[0], *survey_marks]
    peers: dict[str, Any] = {}
    if plan.images:
        image, image_tables, image_marks = _image_part(plan.images, random_state)
        criteria += image
        tables += image_tables
        marks += image_marks
    if plan.peer_repeats:
        compared, peer_table, peers = _peer_part(plan.peer_repeats, random_state)
        criteria += compared
        tables.append(peer_table)
    return Outcome(
        criteria,
        figures=(_headline_figure(marks), region_figures[1], cost_figure),
        tables=tuple(tables),
        notes=(
            "The paper names three image collections of the web at 84.7 % where guessing gives 33.3 %. They are out of "
            "reach here; the claim is tried on tables and small images, and the paper's figure is not compared.",
            "The smallest of the four regions has 304 communities. Of each region 200 train, and 74 on average "
            "are judged, drawn by a fair die; growth is over 100, 200, 400 and 800 training rows in all.",
            "Adult and ACS share age, education, marital status, sex, race and place of birth, spelled alike; of ACS "
            "the employed from 17 on are kept, since Adult has none but workers.",
            "Alibi Detect fits one classifier and compares its scores on a quarter of the rows. Here two are "
            "cross-validated, chosen from and calibrated, and every column is shuffled to say what tells most, all of "
            "which the seconds include. Of the two p-values, that of the ranks of scores is compared.",
            "ACS is bundled for two years, which are compared with each other.",
        ),
        peers=peers,
    )


def regions() -> dict[str, pd.DataFrame]:
    """Return the communities by census region, without the state."""
    X = load_communities_crime().X
    region = pd.Series("South", index=X.index)
    for name, states in _REGIONS.items():
        region[X["state"].isin(states)] = name
    names = ("Northeast", "Midwest", "South", "West")
    return {name: X[region == name].drop(columns="state").reset_index(drop=True) for name in names}


def surveys() -> dict[str, pd.DataFrame]:
    """Return Adult and the workers of ACS 2015 with the columns that both have, spelled alike."""
    adult = load_adult().X
    country = adult["native_country"]
    old = pd.DataFrame(
        {
            "age": adult["age"],
            "education": _spelled(adult["education"], _SCHOOL),
            "marital": adult["marital_status"].astype(str).map(_marital).astype(object),
            "sex": adult["sex"].astype(str).str.lower().astype(object),
            "race": adult["race"].astype(str).map(_RACE).fillna("other").astype(object),
            "born_in_us": country.isin(_BORN_IN_US) | country.isna(),
        }
    )
    acs = load_acs_employment(year=2015)
    X = acs.X[(acs.y == "yes") & (acs.X["age"] >= 17)]
    new = pd.DataFrame(
        {
            "age": X["age"],
            "education": _spelled(X["education"], _SCHOOL),
            "marital": X["marital_status"].astype(str).map(_marital).astype(object),
            "sex": X["sex"].astype(str).astype(object),
            "race": X["race"].astype(str).map(_RACE).fillna("other").astype(object),
            "born_in_us": X["nativity"] == "native",
        }
    )
    return {"Adult 1994": old, "ACS 2015": new.reset_index(drop=True)}


def _spelled(column: "pd.Series[Any]", table: dict[str, str]) -> "pd.Series[Any]":
    text = column.astype(str)
    return text.map(table).fillna(text).astype(object)


def _marital(status: str) -> str:
    if status.lower().startswith("never"):
        return "never married"
    return "married" if status.lower().startswith("married") else status.lower()


def _region_part(plan: _Plan, seed: int) -> tuple[list[Criterion], list[Table], tuple[list[Any], Figure]]:
    sources, tests = regions(), []
    for s in range(plan.seeds):
        controls = ("pseudo", "growth", "ladder") if s == 0 else ("growth",)
        test = DatasetClassification(
            n_train=plan.region_train,
            controls=controls,
            ladder=("quantiles", "ranks"),
            growth_sizes=plan.region_growth,
            n_pseudo=plan.region_pseudo,
            random_state=seed + s,
        )
        tests.append(test.fit(sources))
    first, results = tests[0], {f"seed {seed + s}": test.result_ for s, test in enumerate(tests)}
    growth = np.mean([test.growth_["accuracy"] for test in tests], axis=0)
    sizes = [4 * size for size in plan.region_growth]
    steps = {f"{a} to {b} rows": float(y - x) for (a, b), (x, y) in zip(_pairs(sizes), _pairs(growth), strict=True)}
    pseudo = first.pseudo_
    criteria = [
        Criterion(
            "regions-p",
            "Four census regions are told apart with p below 1e-6.",
            {name: r.p_value for name, r in results.items()},
            "max",
            "<",
            _TINY_P,
        ),
        Criterion(
            "regions-accuracy",
            "The balanced accuracy is above 50 %, where guessing gives 25 %.",
            {name: r.balanced_accuracy for name, r in results.items()},
            "min",
            ">",
            0.5,
            tolerance=0.1,
        ),
        Criterion(
            "regions-pseudo",
            "Random parts of the same communities give 25 %, within 2 points, on average"
            if plan.region_pseudo > 1
            else "Random parts of the same communities give 25 %, within 10 points",
            {f"{len(pseudo)} repeats": abs(float(pseudo["accuracy"].mean()) - 0.25)},
            "max",
            "<=",
            0.02 if plan.region_pseudo > 1 else 0.1,
            tolerance=0.1,
        ),
        Criterion(
            "regions-beyond-pseudo",
            "The interval of the real accuracy lies above the intervals of all random parts.",
            {name: r.ci[0] - float(pseudo["high"].max()) for name, r in results.items()},
            "min",
            ">",
            0.0,
            tolerance=0.2,
        ),
        Criterion(
            "regions-growth",
            "Accuracy rises with every doubling of the training rows, on average over seeds.",
            steps,
            "min",
            ">",
            0.0,
            tolerance=0.15,
        ),
    ]
    figure = Figure(
        kind="lines",
        title="Census regions: more rows help",
        x_label="training rows",
        y_label="accuracy",
        series=(
            Series(
                "held-out communities",
                tuple(float(size) for size in sizes),
                tuple(growth.tolist()),
                tuple(np.mean([test.growth_["low"] for test in tests], axis=0).tolist()),
                tuple(np.mean([test.growth_["high"] for test in tests], axis=0).tolist()),
            ),
        ),
        lines=(Line("guessing", 0.25),),
        alt="Accuracy rises with the number of training rows, far above guessing.",
        percent=True,
    )
    marks = [("regions", first.result_.accuracy, *first.result_.ci), _worst_pseudo("regions, random parts", pseudo)]
    return criteria, [_ladder_table("Census regions: what is left", first)], (marks, figure)


def _survey_part(plan: _Plan, seed: int) -> tuple[list[Criterion], Table, list[Any]]:
    sources, tests = surveys(), {}
    for s in range(plan.seeds):
        test = DatasetClassification(
            n_train=plan.survey_train,
            n_val=plan.survey_held_out,
            ladder=("quantiles", "ranks", "leave_one_out") if s == 0 and plan.seeds > 1 else ("ranks",),
            n_pseudo=plan.survey_pseudo,
            random_state=seed + s,
        )
        tests[f"seed {seed + s}"] = test.fit(sources)
    ranks: dict[str, Any] = {name: test.ladder_.set_index("taken_away").loc["ranks"] for name, test in tests.items()}
    pseudo = {
        f"{name}, repeat {repeat}": abs(float(accuracy) - 0.5)
        for name, test in tests.items()
        for repeat, accuracy in test.pseudo_["accuracy"].items()
    }
    full = plan.survey_train >= 5000
    criteria = [
        Criterion(
            "surveys-ranks-p",
            "Adult and ACS are told apart with p below 1e-6 although every column is uniform in each.",
            {name: float(row["p_value"]) for name, row in ranks.items()},
            "max",
            "<",
            _TINY_P,
        ),
        Criterion(
            "surveys-ranks-accuracy",
            "The lower end of the interval of that accuracy is above 50 %.",
            {name: float(row["low"]) for name, row in ranks.items()},
            "min",
            ">",
            0.5,
            tolerance=0.06,
        ),
        Criterion(
            "surveys-pseudo",
            "Random parts of one survey give 50 %, within 2 points." if full else "Random parts give about 50 %.",
            pseudo,
            "max",
            "<=",
            0.02 if full else 0.1,
            tolerance=0.1,
        ),
    ]
    first = next(iter(tests.values()))
    row = next(iter(ranks.values()))
    marks = [
        ("surveys", first.result_.accuracy, *first.result_.ci),
        ("surveys, ranks", float(row["accuracy"]), float(row["low"]), float(row["high"])),
        _worst_pseudo("surveys, random parts", first.pseudo_),
    ]
    return criteria, _ladder_table("Adult 1994 and ACS 2015: what is left", first), marks


def _level_part(plan: _Plan, seed: int) -> tuple[list[Criterion], Table]:
    """Look at p-values where there is no difference: halves of a survey, and simulated samples."""
    acs = load_acs_employment(year=2015).X
    rng, halves = np.random.default_rng(seed), []
    for repeat in range(plan.null_repeats):
        order = rng.permutation(len(acs))
        cut = len(acs) // 2
        test = DatasetClassification(n_train=500, n_val=1000, controls=(), random_state=repeat)
        halves.append(test.fit({"one": acs.iloc[order[:cut]], "two": acs.iloc[order[cut:]]}).result_.p_value)
    found: dict[str, list[float]] = {"the test itself": [], "ranks": []}
    for draw in range(plan.level_draws):
        rows = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], size=400)
        test = DatasetClassification(
            estimator=LogisticRegression(), controls=("ladder",), ladder=("ranks",), random_state=draw
        ).fit({"one": rows[:200], "two": rows[200:]})
        found["the test itself"].append(float(test.ladder_["p_value"][0]))
        found["ranks"].append(float(test.ladder_["p_value"][1]))
    # 2 standard errors of a share of 5 % above it
    bound = 0.05 + 2 * np.sqrt(0.05 * 0.95 / plan.level_draws)
    uniform = float(stats.kstest(halves, "uniform").pvalue)
    shares = {name: float(np.mean(np.array(p_values) <= 0.05)) for name, p_values in found.items()}
    criteria = [
        Criterion(
            "null-uniform",
            f"The p-values of {plan.null_repeats} halvings of ACS 2015 are uniform (Kolmogorov-Smirnov p > 0.01).",
            {"ACS 2015": uniform},
            "min",
            ">",
            0.01,
            tolerance=0.6,
        ),
        Criterion(
            "level",
            f"Of {plan.level_draws} pairs of equal samples at most 5 %, plus 2 standard errors, have p <= 0.05.",
            shares,
            "max",
            "<=",
            float(bound),
            tolerance=0.2,
        ),
    ]
    shown = [(name, len(found[name]), share) for name, share in shares.items()]
    shown.append(("halves of ACS 2015", len(halves), float(np.mean(np.array(halves) <= 0.05))))
    table = Table(
        title="Without a difference",
        columns=(Column("p-value of", "text"), Column("draws", "count"), Column("at most 0.05", "percent")),
        rows=tuple(shown),
    )
    return criteria, table


def _stream_part(plan: _Plan, seed: int) -> tuple[list[Criterion], Table]:
    """Watch streams without a difference, and with one."""
    rng, last, crossed, alpha = np.random.default_rng(seed), [], [], 0.05
    for stream in range(plan.streams):
        watch = SequentialTwoSample(alpha=alpha, random_state=stream)
        for _ in range(15):
            watch.update(rng.normal(size=(10, 2)), rng.integers(2, size=10))
        last.append(watch.e_value_)
        crossed.append(watch.rejected_)
    error = float(np.std(last) / np.sqrt(len(last)))
    bound = alpha + 2 * np.sqrt(alpha * (1 - alpha) / plan.streams)
    criteria = [
        Criterion(
            "stream-mean",
            "The e-value after 150 rows without a difference averages at most 1, plus 3 standard errors.",
            {f"{plan.streams} streams": (float(np.mean(last)) - 1.0) / max(error, 1e-12)},
            "max",
            "<=",
            3.0,
            unit="standard errors above 1",
            tolerance=5.0,
        ),
        Criterion(
            "stream-level",
            "At most 5 % of them, plus 2 standard errors, ever reach 1 / alpha = 20.",
            {f"{plan.streams} streams": float(np.mean(crossed))},
            "max",
            "<=",
            float(bound),
            tolerance=0.3,
        ),
    ]
    rows = []
    for delta in (0.5, 1.0, 2.0) if plan.streams > 20 else (2.0,):
        seen = []
        for repeat in range(min(plan.streams, 20)):
            watch = SequentialTwoSample(alpha=0.01, random_state=repeat)
            sources = [rng.normal(size=(2000, 2)), rng.normal(size=(2000, 2)) + np.array([delta, 0.0])]
            seen.append(watch.watch(sources, most=1500).n_seen_)
        rows.append((delta, float(np.median(seen)), float(max(seen))))
    table = Table(
        title="Rows until a difference is certain at alpha = 0.01",
        columns=(
            Column("standard deviations apart", "number"),
            Column("median", "number"),
            Column("largest", "number"),
        ),
        rows=tuple(rows),
    )
    return criteria, table


def _cost_part(plan: _Plan, seed: int) -> tuple[list[Criterion], Figure]:
    sources = {"2015": load_acs_employment(year=2015).X, "2018": load_acs_employment(year=2018).X}
    seconds = []
    for size in plan.costs:
        times = []
        for _ in range(3 if len(plan.costs) > 2 else 1):
            start = time.perf_counter()
            DatasetClassification(n_train=size, n_val=1000, controls=(), random_state=seed).fit(sources)
            times.append(time.perf_counter() - start)
        seconds.append(min(times))
    growth = np.polyfit(np.log(plan.costs), np.log(seconds), 1)[0]
    criterion = Criterion(
        "cost",
        "Seconds grow no faster than the number of training rows (exponent of a power of them at most 1.2).",
        {"ACS": float(growth)},
        "max",
        "<=",
        1.2,
        unit="exponent",
        tolerance=None,
    )
    figure = Figure(
        kind="lines",
        title="Cost of the test itself, 16 columns",
        x_label="training rows per source",
        y_label="seconds",
        series=(Series("both candidates, cross-validated", tuple(map(float, plan.costs)), tuple(seconds)),),
        alt="Seconds grow more slowly than the number of training rows.",
    )
    return [criterion], figure


def _image_part(n_train: int, seed: int) -> tuple[list[Criterion], list[Table], list[Any]]:
    """Tell three pipelines apart that curated different pictures of the same clothing."""
    from aboveboard.data import load_fashion_mnist

    rng = np.random.default_rng(seed)
    clothing = load_fashion_mnist(split="train")
    images = clothing.X.to_numpy().reshape(-1, 28, 28, 1)
    labels = np.asarray(clothing.y.astype(str)) if clothing.y is not None else np.zeros(len(images))
    parts = np.array_split(rng.permutation(len(images)), 3)
    pipelines = {
        "plain": images[parts[0]],
        "24 pixels and back": corruption("low_resolution:24")(images[parts[1]], rng),
        "JPEG 60": corruption("jpeg:60")(images[parts[2]], rng),
    }

    def equalised(pictures: NDArray[np.uint8]) -> NDArray[np.uint8]:
        drawn = np.random.default_rng(seed)
        return corruption("noise:0.1")(corruption("low_resolution:7")(pictures, drawn), drawn)

    ladder = {
        "detail below 2 pixels": lambda pictures: corruption("low_resolution:14")(pictures, rng),
        "detail below 4 pixels": lambda pictures: corruption("low_resolution:7")(pictures, rng),
        "detail below 4 pixels, noise on top": equalised,
    }
    test = DatasetClassification(
        "image", n_train=n_train, n_val=1000, ladder=ladder, n_pseudo=1, random_state=seed
    ).fit(pipelines)
    probe = test.transfer(images[parts[0]][:6000], labels[parts[0]][:6000])
    left = test.ladder_.iloc[-1]
    criteria = [
        Criterion(
            "pipelines-accuracy",
            "Three curation pipelines of Fashion-MNIST are told apart with more than 90 %.",
            {"seed 0": test.result_.accuracy},
            "min",
            ">",
            0.9,
        ),
        Criterion(
            "pipelines-equalised",
            "Once fine detail is taken from all pictures alike, at least half of what is above chance is gone.",
            {"seed 0": float(left["artefact_share"])},
            "min",
            ">=",
            0.5,
            unit="share of the accuracy above chance",
        ),
        Criterion(
            "pipelines-beyond-pseudo",
            "The interval of the real accuracy lies above that of random parts.",
            {"seed 0": test.result_.ci[0] - float(test.pseudo_["high"].max())},
            "min",
            ">",
            0.0,
        ),
    ]
    table = Table(
        title="Linear classification of clothing, 3,000 pictures to fit and 3,000 to judge",
        columns=(Column("frozen features of", "text"), Column("accuracy", "percent"), Column("interval", "interval")),
        rows=tuple((row.features, row.accuracy, (row.low, row.high)) for row in _rows(probe)),
    )
    marks = [
        ("pipelines", test.result_.accuracy, *test.result_.ci),
        ("pipelines, no detail", float(left["accuracy"]), float(left["low"]), float(left["high"])),
        _worst_pseudo("pipelines, random parts", test.pseudo_),
    ]
    tables = [_ladder_table("Fashion-MNIST pipelines: what is left", test), table, _semantic(images, labels, seed)]
    return criteria, tables, marks


def _semantic(images: NDArray[np.uint8], labels: NDArray[Any], seed: int) -> Table:
    """Compare with a pipeline that keeps other clothing: a difference of content, which no corruption takes away."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(images))
    one, other = order[: len(order) // 2], order[len(order) // 2 :]
    share = np.where(np.isin(labels[other], ["trouser", "dress", "sandal", "bag"]), 1.0, 0.3)
    other = other[rng.random(len(other)) < share]

    def pooled(pictures: NDArray[np.uint8]) -> NDArray[np.float64]:
        return np.asarray(pictures.reshape(-1, 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(pictures), -1))

    test = DatasetClassification(
        "image",
        embedding=pooled,
        n_train=4000,
        n_val=1000,
        controls=("ladder",),
        ladder=("low_resolution:14", "low_resolution:7"),
        random_state=seed,
    ).fit({"as it is": images[one], "four kinds preferred": images[other]})
    return _ladder_table("Fashion-MNIST, other clothing preferred: what is left", test)


def _peer_part(repeats: int, seed: int) -> tuple[list[Criterion], Table, dict[str, Any]]:
    tasks = _peer_tasks(repeats, seed)
    arrays = {
        f"{name}.{r}.{side}": rows
        for name, pairs in tasks.items()
        for r, pair in enumerate(pairs)
        for side, rows in zip(("reference", "current"), pair, strict=True)
    }
    calls = {
        "Alibi Detect, classifier": ("alibi_detect", "classifier_drift"),
        "Alibi Detect, Kolmogorov-Smirnov": ("alibi_detect", "ks_drift"),
        "hyppo, energy distance": ("hyppo", "energy"),
        "hyppo, mean discrepancy": ("hyppo", "mmd"),
    }
    found = {name: run_peer(*call, arrays, seed=seed) for name, call in calls.items()}
    ours: dict[str, dict[str, list[float]]] = {"guesses": {}, "ranks": {}, "seconds": {}}
    for name, pairs in tasks.items():
        for repeat, (reference, current) in enumerate(pairs):
            start = time.perf_counter()
            test = DatasetClassification(controls=(), random_state=seed + repeat)
            test.fit({"reference": reference, "current": current})
            ours["seconds"].setdefault(name, []).append(time.perf_counter() - start)
            ours["guesses"].setdefault(name, []).append(test.result_.p_value)
            ours["ranks"].setdefault(name, []).append(float(test.result_.score_p_value or 0.0))
    mine, exact, classifier = "DatasetClassification, ranks", "DatasetClassification, exact", "Alibi Detect, classifier"
    theirs_p = {name: _by_task(f, "p_values") for name, f in found.items()}
    theirs_seconds = {name: _by_task(f, "seconds") for name, f in found.items()}
    all_p = {exact: ours["guesses"], mine: ours["ranks"], **theirs_p}
    all_seconds = {exact: ours["seconds"], mine: ours["seconds"], **theirs_seconds}
    power = {
        name: {task: float(np.mean(np.array(p) <= 0.05)) for task, p in by_task.items()}
        for name, by_task in all_p.items()
    }
    seconds = {
        name: {task: statistics.median(s) for task, s in by_task.items()} for name, by_task in all_seconds.items()
    }
    total = {name: sum(map(sum, by_task.values())) for name, by_task in all_seconds.items()}
    criteria = [
        Criterion(
            "peer-power",
            "Where only the dependence of columns differs, the ranks of its scores reject as often as every peer.",
            {n: power[mine][_TOGETHER] - power[n][_TOGETHER] for n in calls},
            "min",
            ">=",
            0.0,
            unit="difference of shares",
        ),
        Criterion(
            "peer-level",
            "Without a difference it rejects at 0.05 in no more than 5 %, plus 3 standard errors.",
            {name: power[name][_SAME] for name in (exact, mine)},
            "max",
            "<=",
            0.05 + 3 * float(np.sqrt(0.05 * 0.95 / (3 * repeats))),
        ),
        Criterion(
            "peer-time",
            "It takes no longer than the other classifier of sources, over all pairs together.",
            {classifier: total[mine] / total[classifier]},
            "max",
            "<=",
            1.0,
            unit="ratio of sums of seconds",
            tolerance=None,
        ),
    ]
    table = Table(
        title="The same pairs of samples: share rejected at 0.05, and seconds",
        columns=(
            Column("test", "text"),
            Column("samples", "text"),
            Column("rejected", "percent"),
            Column("median seconds", "number"),
        ),
        rows=tuple((name, task, power[name][task], seconds[name][task]) for name in power for task in tasks),
        note="The other tests at their defaults; each gets the same matrices of numbers.",
    )
    peers = {
        name: {"freeze": list(f.freeze), "power": power[name], "seconds": seconds[name]} for name, f in found.items()
    }
    return criteria, table, peers


_SAME: Final = "halves of ACS 2015, 500 + 500"
_YEARS: Final = "ACS 2015 and 2018, 1,000 + 1,000"
_SURVEYS: Final = "Adult and ACS, 250 + 250"
_TOGETHER: Final = "Adult and ACS, ranks, 500 + 500"


def _peer_tasks(repeats: int, seed: int) -> dict[str, list[tuple[NDArray[Any], NDArray[Any]]]]:
    rng = np.random.default_rng(seed)
    old, new = _matrices(load_acs_employment(year=2015).X, load_acs_employment(year=2018).X)
    adult, acs = _matrices(*surveys().values())
    ranked_adult, ranked_acs = _uniform(adult, rng), _uniform(acs, rng)

    def pairs(x: NDArray[Any], y: NDArray[Any], n: int, times: int) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        return [(rng.choice(x, size=n, replace=False), rng.choice(y, size=n, replace=False)) for _ in range(times)]

    same = []
    for _ in range(3 * repeats):
        rows = rng.permutation(old)[:1000]
        same.append((rows[:500], rows[500:]))
    return {
        _SAME: same,
        _YEARS: pairs(old, new, 1000, repeats),
        _SURVEYS: pairs(adult, acs, 250, repeats),
        _TOGETHER: pairs(ranked_adult, ranked_acs, 500, repeats),
    }


def _matrices(one: pd.DataFrame, other: pd.DataFrame) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return both tables as numbers, words by how common they are, which every test can take."""
    both = pd.concat([frame.astype(dict.fromkeys(frame.select_dtypes("category"), object)) for frame in (one, other)])
    values = TableEncoder().fit(both).transform(both).values
    return values[: len(one)], values[len(one) :]


def _uniform(values: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    ranks = np.empty(values.shape)
    for j, column in enumerate(values.T):
        ranks[np.lexsort((rng.random(len(column)), column)), j] = (np.arange(len(column)) + 0.5) / len(column)
    return ranks


def _by_task(found: PeerResult, field: str) -> dict[str, list[float]]:
    by_task: dict[str, list[float]] = {}
    for name, value in zip(found.options["names"], found.options[field], strict=True):
        by_task.setdefault(name.rpartition(".")[0], []).append(value)
    return by_task


def _pairs(values: Any) -> list[tuple[Any, Any]]:
    return list(itertools.pairwise(values))


def _rows(frame: pd.DataFrame) -> list[Any]:
    return list(frame.itertuples())


def _worst_pseudo(name: str, pseudo: pd.DataFrame) -> tuple[str, float, float, float]:
    worst = max(_rows(pseudo), key=lambda row: row.accuracy)
    return name, worst.accuracy, worst.low, worst.high


def _ladder_table(title: str, test: DatasetClassification) -> Table:
    rows = []
    for row in _rows(test.ladder_):
        what = f"{row.taken_away} {row.column}".strip().replace("leave_one_out", "without")
        rows.append((what, row.accuracy, (row.low, row.high), row.artefact_share))
    return Table(
        title=title,
        columns=(
            Column("taken away", "text"),
            Column("accuracy", "percent"),
            Column("95 % interval", "interval"),
            Column("share of the accuracy above chance that is gone", "percent"),
        ),
        rows=tuple(rows),
        note=f"Guessing gives {100 * test.result_.chance:.1f} %; {test.result_.n_held_out:,} held-out rows.",
    )


def _headline_figure(marks: list[tuple[str, float, float, float]]) -> Figure:
    names, values, lows, highs = zip(*marks, strict=True)
    return Figure(
        kind="intervals",
        title="Real sources are told apart, random parts are not",
        x_label="",
        y_label="accuracy on held-out rows",
        series=(Series("accuracy", names, values, lows, highs),),
        lines=(Line("two sources: guessing", 0.5), Line("four sources: guessing", 0.25)),
        alt="Accuracies on real sources lie far above those on random parts of the same rows, which are at chance.",
        percent=True,
    )
