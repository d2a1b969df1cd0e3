"""Selective rankings keep what they say when the judges change, where the usual orders turn round; and their whole path
takes less time than one search for components.

The ballots for the NBA coach of the year and the ranks of computer science departments are the paper's; its training
labels (DICES) cannot be had offline, and simulated raters of the German credit applicants stand in for direction only.
"""

import itertools
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from aboveboard.collective import SelectiveRanker, check_tiers
from aboveboard.core import Column, Figure, Series, Table
from aboveboard.data import (
    load_acs_employment,
    load_adult,
    load_credit_default,
    load_csrankings,
    load_german_credit,
    load_nba_coach,
)
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.reproduce._peers import PeerResult, run_peer

__all__ = ["run"]

Floats = NDArray[np.float64]

_NAMES: Final = ("Rivers", "Williams", "Nash", "Malone", "McMillan", "Snyder", "Thibodeau")
_WEIGHTS: Final = (
    (0, 6, 95, 95, 89, 26, 7),
    (95, 0, 99, 100, 99, 73, 52),
    (88, 4, 0, 95, 88, 25, 6),
    (88, 4, 95, 0, 88, 25, 5),
    (88, 4, 95, 95, 0, 25, 5),
    (92, 28, 96, 96, 89, 0, 17),
    (95, 48, 99, 99, 99, 83, 0),
)
"""The disagreement weights of the published ballots."""
_OTHERS: Final = frozenset({"Rivers", "Nash", "Malone", "McMillan"})
_TIERS: Final[dict[float, list[set[str] | frozenset[str]]]] = {
    0.25: [frozenset(_NAMES)],
    0.26: [{"Williams", "Snyder", "Thibodeau"}, _OTHERS],
    0.28: [{"Williams", "Thibodeau"}, {"Snyder"}, _OTHERS],
    0.48: [{"Williams"}, {"Thibodeau"}, {"Snyder"}, _OTHERS],
}
_TAU: Final = 0.28
_SIZES: Final = (1000, 2000, 4000, 8000)
_JUDGES: Final = (50, 100, 200, 400, 800)


def run(scale: Scale, *, random_state: int) -> Outcome:
    """Run the experiment: seconds, or some minutes with the peer and the models."""
    full = scale == "full"
    ballots = _nba()
    criteria = _published_tiers(ballots)
    reversals = _reversals(ballots, 1000, random_state)
    criteria += _stability(reversals)
    tables: list[Table] = [_reversal_table(reversals)]
    criteria.append(_raters(range(random_state, random_state + (20 if full else 3)), 50))
    figures: tuple[Figure, ...] = (_reversal_figure(reversals),)
    peers: dict[str, Any] = {}
    notes = [
        "The training labels of the paper (DICES) are not public in any package; simulated raters of the German credit "
        "applicants show the direction only.",
    ]
    if full:
        growth, growth_table, growth_figure = _growth(random_state)
        criteria += growth
        tables.append(growth_table)
        figures += (growth_figure,)
        speed, speed_table, peer = _speed(random_state)
        criteria += speed
        tables.append(speed_table)
        peers["selectiverank"] = {"freeze": list(peer.freeze), "seconds": peer.options["seconds"]}
        more, more_table = _other_boards(random_state)
        criteria += more
        tables.append(more_table)
        notes.append(
            "Ours and the peer are timed on the same votes, alone on the machine but for what else runs there: the "
            "least of several repeats each. Reading the votes in is left out on both sides."
        )
    return Outcome(criteria, figures, tuple(tables), tuple(notes), peers)


# --- the ballots ------------------------------------------------------------------------------------------------------


def _nba() -> Floats:
    """Return the ranks, 100 voters x 7 coaches, in the order of `_NAMES`."""
    ranks = load_nba_coach(names=False).X.T
    ranks.columns = [name.rpartition(" ")[2] for name in ranks.columns]
    return ranks[list(_NAMES)].to_numpy(dtype=np.float64)


def _published_tiers(ballots: Floats) -> list[Criterion]:
    ranker = SelectiveRanker(votes="rank").fit(pd.DataFrame(ballots, columns=list(_NAMES)))
    wrong = {
        f"tau {tau:g}": float([set(tier) for tier in ranker.path_.at(tau)] != [set(tier) for tier in tiers])
        for tau, tiers in _TIERS.items()
    }
    wrong["number of levels"] = float(ranker.path_.levels.tolist() != [0.26, 0.28, 0.48])
    wrong["weights"] = float((ranker.weights_ != np.array(_WEIGHTS)).any())
    failed = {
        f"tau {tau:g}": float(
            not (found := check_tiers(ranker.path_.tiers(tau), ranker.weights_, n_judges=100, tau=tau)).feasible
            or not found.maximal
        )
        for tau in (0.0, *_TIERS, 0.4999)
    }
    return [
        Criterion(
            "nba-tiers",
            "The tiers of the NBA ballots are exactly the published ones at every level.",
            wrong, "max", "==", 0.0,
        ),
        Criterion(
            "nba-check",
            "Every ranking of the path passes the check that does not use the algorithm.",
            failed, "max", "==", 0.0,
        ),
    ]  # fmt: skip


# --- judges drawn anew ------------------------------------------------------------------------------------------------


def _reversals(ranks: Floats, draws: int, seed: int) -> pd.DataFrame:
    """Draw the judges anew; return for each rule the share of its comparisons that turn round, one row per draw."""
    rng = np.random.default_rng(seed)
    rules = _rules()
    selective = SelectiveRanker(votes="rank").fit(ranks).path_.tier_of(_TAU)
    before = {name: rule(ranks) for name, rule in rules.items()}
    rows = []
    for _ in range(draws):
        drawn = ranks[rng.integers(len(ranks), size=len(ranks))]
        again = SelectiveRanker(votes="rank").fit(drawn).path_.tier_of(_TAU)
        row = {"selective": _turned(-selective, -again)}
        for name, rule in rules.items():
            after = rule(drawn)
            row[name] = _turned(before[name], after)
            first, second = np.argsort(-before[name], kind="stable")[:2]
            row[f"{name}: leaders"] = float(after[first] < after[second])
        rows.append(row)
    return pd.DataFrame(rows)


def _turned(before: NDArray[Any], after: NDArray[Any]) -> float:
    """Return the share of strict comparisons that are turned round."""
    claims = before[:, None] > before[None, :]
    return float((claims & (after[:, None] < after[None, :])).sum() / max(claims.sum(), 1))


def _rules() -> dict[str, Callable[[Floats], Floats]]:
    """Return the usual rules, each a score per item from ranks: higher is better."""
    return {"Borda": _borda, "award points": _points, "Copeland": _copeland, "MC4": _mc4, "Kemeny": _kemeny}


def _support(ranks: Floats) -> Floats:
    return np.asarray((ranks[:, :, None] < ranks[:, None, :]).sum(axis=0), dtype=np.float64)


def _borda(ranks: Floats) -> Floats:
    support = _support(ranks)
    return np.asarray((support - support.T).sum(axis=1))


def _points(ranks: Floats) -> Floats:
    worth = {1: 5.0, 2: 3.0, 3: 1.0}
    return np.asarray(sum(value * (ranks == place).sum(axis=0) for place, value in worth.items()), dtype=np.float64)


def _copeland(ranks: Floats) -> Floats:
    support = _support(ranks)
    return np.asarray(np.sign(support - support.T).sum(axis=1), dtype=np.float64)


def _mc4(ranks: Floats) -> Floats:
    """Return the stationary shares of a walk that moves to a drawn item where a majority prefers it."""
    support = _support(ranks)
    n = len(support)
    step = (support < support.T) / n
    np.fill_diagonal(step, 0.0)
    np.fill_diagonal(step, 1.0 - step.sum(axis=1))
    step = 0.95 * step + 0.05 / n
    share = np.full(n, 1.0 / n)
    for _ in range(200):
        share = share @ step
    return np.round(share, 12)


def _kemeny(ranks: Floats) -> Floats:
    """Return an order with the fewest disagreements, by dynamic programming over sets of items."""
    support = _support(ranks)
    n = len(support)
    cost = support.T - support  # of placing the row's item above the column's
    best: dict[frozenset[int], tuple[float, tuple[int, ...]]] = {frozenset(): (0.0, ())}
    for size in range(1, n + 1):
        for members in itertools.combinations(range(n), size):
            found = []
            for last in members:
                total, order = best[frozenset(members) - {last}]
                found.append((total + sum(cost[i, last] for i in order), (*order, last)))
            best[frozenset(members)] = min(found)
    order = best[frozenset(range(n))][1]
    score = np.empty(n)
    score[list(order)] = -np.arange(n)
    return score


def _stability(reversals: pd.DataFrame) -> list[Criterion]:
    return [
        Criterion(
            "nba-reversals",
            f"Of the comparisons of the selective ranking at {_TAU}, none turns round in 1,000 draws of the judges.",
            {"largest share in a draw": float(reversals["selective"].max())}, "max", "==", 0.0, "share",
        ),
        Criterion(
            "nba-borda",
            "The Borda count turns its two leaders round in at least 25 % of the draws.",
            {"share of draws": float(reversals["Borda: leaders"].mean())}, "mean", ">=", 0.25, "share",
        ),
    ]  # fmt: skip


def _reversal_table(reversals: pd.DataFrame) -> Table:
    rows = [
        (
            name,
            float(reversals[name].mean()),
            float((reversals[name] > 0).mean()),
            float(reversals[f"{name}: leaders"].mean()) if f"{name}: leaders" in reversals else None,
        )
        for name in ("selective", *_rules())
    ]
    return Table(
        "NBA ballots: what turns round when the 100 voters are drawn anew",
        (
            Column("Ranking", "text"),
            Column("Comparisons turned round, on average", "percent"),
            Column("Draws with any", "percent"),
            Column("Draws that swap the two leaders", "percent"),
        ),
        tuple(rows),
        note=f"1,000 draws; the selective ranking tolerates a dissent of {_TAU}. Kemeny breaks ties by name.",
    )


def _reversal_figure(reversals: pd.DataFrame) -> Figure:
    names = ("selective", *_rules())
    shares = tuple(float((reversals[name] > 0).mean()) for name in names)
    return Figure(
        "bars",
        "Draws of the judges in which a comparison turns round",
        "Ranking",
        "Share of 1,000 draws",
        (Series("draws", names, shares),),
        alt=f"The selective ranking never turns a comparison round; Borda does in {100 * shares[1]:.0f} % of draws.",
        percent=True,
    )


def _raters(seeds: range, tests: int) -> Criterion:
    """Let five raters score German credit applicants; how many of what other raters prefer do the results reverse?"""
    credit = load_german_credit()
    good = (np.asarray(credit.y_binary) == 0).astype(np.float64)
    gaps = {}
    for seed in seeds:
        rng = np.random.default_rng(seed)
        chosen = good[rng.choice(len(good), size=30, replace=False)]
        noise = rng.uniform(0.2, 0.8, size=5 + tests)[:, None]
        scores = np.round(chosen + noise * rng.normal(size=(5 + tests, len(chosen))), 1)
        train, test = scores[:5], scores[5:]
        path = SelectiveRanker().fit(train).path_
        selective = _overruled(-path.tier_of(path.finest), test)
        gaps[f"seed {seed}"] = 0.0 if selective is None else (_overruled(_borda(-train), test) or 0.0) - selective
    return Criterion(
        "raters",
        "Of what other raters prefer, selective rankings of five raters reverse a smaller share than the Borda count, "
        "on average over seeds; without a comparison they win nothing (simulated raters; direction only).",
        gaps, "mean", ">", 0.0, "share",
    )  # fmt: skip


def _overruled(score: NDArray[Any], votes: Floats) -> float | None:
    """Return which share of the raters' strict preferences an order reverses, of those on pairs that it orders."""
    claims = score[:, None] > score[None, :]
    support = np.asarray((votes[:, :, None] > votes[:, None, :]).sum(axis=0), dtype=np.float64)
    agree, against = float(support[claims].sum()), float(support.T[claims].sum())
    return against / (agree + against) if agree + against else None


# --- speed ------------------------------------------------------------------------------------------------------------


def _votes(p: int, n: int, spread: float, seed: int) -> Floats:
    """Return scores of judges who agree on far-apart items; some items are close, and some judges have ties."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(p, n)) + spread * np.sort(rng.normal(size=n)), 2)


def _least(call: Callable[[], Any], repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    seconds = []
    for _ in range(repeats):
        start = clock()
        call()
        seconds.append(clock() - start)
    return min(seconds)


def _slope(sizes: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _growth(seed: int) -> tuple[list[Criterion], Table, Figure]:
    by_items, by_judges = [], []
    for n in _SIZES:
        ranker = SelectiveRanker().fit(_votes(20, n, 20.0, seed))
        path = _least(partial(ranker._path, ranker._tally), 5, time.process_time)
        by_items.append((path, _least(ranker._ballots.tally, 5, time.process_time)))
    for p in _JUDGES:
        ranker = SelectiveRanker().fit(_votes(p, 1000, 20.0, seed))
        by_judges.append(_least(ranker._ballots.tally, 5, time.process_time))
    path_seconds, count_seconds = [list(column) for column in zip(*by_items, strict=True)]
    criteria = [
        Criterion(
            "path-growth",
            "The processor time of the whole path grows with the items at most like their square, within 15 %.",
            {"exponent": _slope(_SIZES, path_seconds)}, "max", "<=", 2.3, "exponent", None,
        ),
        Criterion(
            "count-growth",
            "The processor time of counting grows with the judges at most in proportion, within 15 %.",
            {"exponent": _slope(_JUDGES, by_judges)}, "max", "<=", 1.15, "exponent", None,
        ),
        Criterion(
            "large-path",
            "With 1,000 items and 200 judges, counting and path together take less than a second.",
            {"seconds": by_judges[_JUDGES.index(200)] + path_seconds[_SIZES.index(1000)]}, "max", "<", 1.0, "s", None,
        ),
    ]  # fmt: skip
    rows = [(20, n, count, path) for n, count, path in zip(_SIZES, count_seconds, path_seconds, strict=True)]
    rows += [(p, 1000, count, None) for p, count in zip(_JUDGES, by_judges, strict=True)]
    table = Table(
        "Seconds of one processor, by judges and items",
        (Column("Judges", "count"), Column("Items", "count"), Column("Counting"), Column("Path")),
        tuple(rows),
    )
    figure = Figure(
        "lines",
        "Seconds by number of items, 20 judges (logarithms)",
        "log10 of the items",
        "log10 of the seconds",
        (
            Series("path", tuple(np.log10(_SIZES).tolist()), tuple(np.log10(path_seconds).tolist())),
            Series("counting", tuple(np.log10(_SIZES).tolist()), tuple(np.log10(count_seconds).tolist())),
        ),
        alt="Both lines rise by about two for each step of one.",
    )
    return criteria, table, figure


def _speed(seed: int) -> tuple[list[Criterion], Table, PeerResult]:
    """Hold path and counting against the peer's on the same votes, and compare every ranking."""
    votes = {
        "close": _votes(50, 200, 3.0, seed),
        "spread": _votes(50, 200, 30.0, seed + 1),
        "wide": _votes(51, 200, 300.0, seed + 2),
    }
    peer = run_peer("selectiverank", "paths", votes, repeats=2)
    path_ratios, whole_ratios, differ, rows = {}, {}, {}, []
    for name, scores in votes.items():
        ranker = SelectiveRanker().fit(scores)
        path_seconds = _least(partial(ranker._path, ranker._tally), 20)
        whole = _least(partial(SelectiveRanker().fit, scores), 10)
        theirs_path, theirs_whole = peer.options["seconds"][name]
        path_ratios[name], whole_ratios[name] = theirs_path / path_seconds, theirs_whole / whole
        rates, tiers = peer.arrays[f"{name}.rates"], peer.arrays[f"{name}.tiers"]
        differ[name] = float(
            sum((ranker.path_.tier_of(float(rate)) != row).any() for rate, row in zip(rates, tiers, strict=True))
        )
        found = len(ranker.path_.to_frame())
        differ[f"{name}, number of rankings"] = float(abs(found - len(rates)))
        rows.append((name, found, path_seconds, theirs_path, whole, theirs_whole))
    criteria = [
        Criterion(
            "path-speed",
            "With 200 items the path takes at least 50 times less time than the peer's.",
            path_ratios, "min", ">=", 50.0, "times", None,
        ),
        Criterion(
            "whole-speed",
            "With 200 items counting and path together take at least 50 times less time than the peer's.",
            whole_ratios, "min", ">=", 50.0, "times", None,
        ),
        Criterion(
            "peer-rankings",
            "Every ranking of the peer's path is ours at the same dissent, and there are as many.",
            differ, "max", "==", 0.0, "rankings",
        ),
    ]  # fmt: skip
    table = Table(
        "Seconds for 200 items, ours and selectiverank's",
        (
            Column("Votes", "text"),
            Column("Rankings", "count"),
            Column("Path, ours"),
            Column("Path, peer"),
            Column("Counting and path, ours"),
            Column("Counting and path, peer"),
        ),
        tuple(rows),
        note="50 judges (wide: 51). The peer counts from a table of all comparisons, ours from the scores.",
    )
    return criteria, table, peer


# --- other boards -----------------------------------------------------------------------------------------------------


def _other_boards(seed: int) -> tuple[list[Criterion], Table]:
    """Draw the judges of two more boards anew: departments by research area, and models by data set and metric."""
    departments = -load_csrankings().X.T.to_numpy(dtype=np.float64)
    models = _model_scores(seed)
    rows, turned = [], {}
    for board, scores in (("departments", departments), ("models", models)):
        ranker = SelectiveRanker().fit(scores)
        for tau in ranker.path_.levels.tolist():
            found = ranker.stability(tau, n_bootstrap=1000, random_state=seed)
            rows.append(
                (
                    board,
                    tau,
                    len(ranker.path_.at(tau)),
                    ranker.path_.share_comparable(tau),
                    float(found.selective_reversed.mean()),
                    float(found.borda_reversed.mean()),
                    found.borda_top_reversed,
                )
            )
            turned[f"{board}, tau {tau:.3g}"] = float(found.selective_reversed.mean() - found.borda_reversed.mean())
    criterion = Criterion(
        "other-boards",
        "On the departments and the models, at every level, the selective ranking turns a smaller share of its "
        "comparisons round than the Borda count when the judges are drawn anew.",
        turned, "max", "<=", 0.0, "share",
    )  # fmt: skip
    table = Table(
        "Departments (175, by 5 areas) and models (12, by 60 data sets x metrics x splits), judges drawn anew",
        (
            Column("Board", "text"),
            Column("Tolerated dissent", "percent"),
            Column("Tiers", "count"),
            Column("Ordered pairs", "percent"),
            Column("Selective: turned round", "percent"),
            Column("Borda: turned round", "percent"),
            Column("Borda: leaders swapped", "percent"),
        ),
        tuple(rows),
        note="Means over 1,000 draws.",
    )
    return [criterion], table


def _model_scores(seed: int) -> Floats:
    """Return scores of 12 classifiers (columns) on 5 data sets x 4 metrics x 3 splits (rows)."""
    from sklearn.metrics import balanced_accuracy_score, brier_score_loss, f1_score, roc_auc_score
    from sklearn.model_selection import train_test_split

    models = _models(seed)
    rows = []
    for X, y in _tasks(seed):
        for split in range(3):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.4, stratify=y, random_state=seed + split
            )
            columns = []
            for make in models.values():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    score = make().fit(X_train, y_train).predict_proba(X_test)[:, 1]
                label = (score >= 0.5).astype(int)
                columns.append(
                    [
                        roc_auc_score(y_test, score),
                        -brier_score_loss(y_test, score),
                        balanced_accuracy_score(y_test, label),
                        f1_score(y_test, label, zero_division=0),
                    ]
                )
            rows += np.round(np.array(columns).T, 4).tolist()
    return np.array(rows)


def _tasks(seed: int) -> list[tuple[Floats, NDArray[np.int64]]]:
    """Return the numbers in five data sets, at most 1,500 rows each, and their classes."""
    from sklearn.datasets import load_breast_cancer

    found = []
    for data in (load_german_credit(), load_adult(split="test"), load_credit_default(), load_acs_employment()):
        X = data.X.copy()
        for name in X.columns:
            if not pd.api.types.is_numeric_dtype(X[name]):
                X[name] = pd.factorize(X[name])[0]
        rows = np.random.default_rng(seed).permutation(len(X))[:1500]
        found.append((np.nan_to_num(X.to_numpy(dtype=np.float64)[rows]), np.asarray(data.y_binary, dtype=int)[rows]))
    X, y = load_breast_cancer(return_X_y=True)
    return [*found, (X, y)]


def _models(seed: int) -> dict[str, Callable[[], Any]]:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.ensemble import (
        AdaBoostClassifier,
        ExtraTreesClassifier,
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "linear discriminant": LinearDiscriminantAnalysis,
        "quadratic discriminant": lambda: QuadraticDiscriminantAnalysis(reg_param=0.1),
        "naive Bayes": GaussianNB,
        "neighbours": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
        "tree": lambda: DecisionTreeClassifier(max_depth=5, random_state=seed),
        "forest": lambda: RandomForestClassifier(100, random_state=seed),
        "extra trees": lambda: ExtraTreesClassifier(100, random_state=seed),
        "boosting": lambda: GradientBoostingClassifier(random_state=seed),
        "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=60, random_state=seed),
        "AdaBoost": lambda: AdaBoostClassifier(random_state=seed),
        "network": lambda: make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=200, random_state=seed)),
    }
