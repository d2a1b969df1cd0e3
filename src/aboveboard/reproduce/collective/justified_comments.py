"""A feed by engagement or civility leaves groups out; representative ones do not, and cost little of the score.

The thirteen questions of Remesh are the paper's data; approvals are its published logits above zero. The mixture of two
camps is this project's. The paper's quality scores come from services on the network; civility is simulated instead.
"""

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from aboveboard.collective import RepresentativeRanker, justified_representation
from aboveboard.core import Column, Figure, InputError, Series, Table
from aboveboard.data import info, load_remesh
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.reproduce._peers import run_peer

__all__ = ["run"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_K: Final = 8
_RULES: Final = ("greedy", "score_greedy", "exact", "mes")
_PEERS: Final = ("seqcc", "seqphragmen", "equal-shares")
_SECONDS: Final = 120.0
_SIZES: Final = (125_000, 250_000, 500_000, 1_000_000)


def run(scale: Scale, *, random_state: int) -> Outcome:
    """Run the experiment: seconds, or some minutes with the questions, the peer and a million readers."""
    full = scale == "full"
    criteria, tables = _camps(range(random_state, random_state + (20 if full else 4)))
    criteria.append(_prefixes(random_state))
    figures: tuple[Figure, ...] = ()
    peers: dict[str, Any] = {}
    notes = [
        "Approvals of the Remesh questions are a model's logits above zero: most participants cast a few votes.",
        "The paper's scores for conversational quality come from services on the network; the civility of the mixture "
        "is simulated, and shows how the rules compare, not how civil anybody is.",
    ]
    if full:
        prompts = {name: np.asarray(load_remesh(name).X) > 0 for name in info("remesh").prompts}
        more, table, figure, peer = _remesh(prompts)
        criteria += more
        tables.append(table)
        figures = (figure,)
        peers["abcvoting"] = peer
        criteria.append(_agreement(random_state))
        speed, speed_table = _scale(random_state)
        criteria += speed
        tables.append(speed_table)
    return Outcome(criteria, figures, tuple(tables), tuple(notes), peers)


# --- two camps --------------------------------------------------------------------------------------------------------


def _camp(seed: int) -> tuple[Flags, Floats]:
    """Return approvals of 300 readers and 120 comments, and the civility of the comments."""
    rng = np.random.default_rng(seed)
    n, m = 300, 120
    minority, theirs = rng.random(n) < 0.3, rng.random(m) < 0.2
    chance = np.where(minority[:, None] == theirs, 0.5, 0.01) + rng.normal(0.0, 0.05, m)
    civility = np.clip(0.5 - 0.2 * theirs + rng.normal(0.0, 0.12, m), 0.0, 1.0)
    return rng.random((n, m)) < chance, civility


def _top(scores: Floats, k: int = _K) -> NDArray[np.intp]:
    return np.argsort(-scores, kind="stable")[:k]


def _camps(seeds: range) -> tuple[list[Criterion], list[Table]]:
    losses: dict[str, dict[str, float]] = {rule: {} for rule in _RULES}
    left_out, approved, worst = {}, {}, {}
    for seed in seeds:
        approvals, civility = _camp(seed)
        engagement = approvals.mean(axis=0)
        name = f"seed {seed}"
        left_out[name] = float(not justified_representation(approvals, _top(civility), _K).satisfied)
        approved[name] = float(not justified_representation(approvals, _top(engagement), _K).satisfied)
        for rule in _RULES:
            ranking = RepresentativeRanker(_K, rule=rule, time_limit=_SECONDS).rank(approvals, civility)
            losses[rule][name] = ranking.score_loss
            found = justified_representation(approvals, ranking.order, _K)
            worst[f"{name}, {rule}"] = found.worst_ratio
    gained = {name: losses["exact"][name] - losses["score_greedy"][name] for name in left_out}
    beaten = {name: losses["exact"][name] - losses["greedy"][name] for name in left_out}
    criteria = [
        Criterion(
            "camps-violated",
            "Two camps: the eight most civil comments leave out a group that is too large in at least 80 % of seeds.",
            left_out, "mean", ">=", 0.8, "share of seeds",
        ),
        Criterion(
            "camps-repaired",
            "Two camps: after the repair by any rule the largest excluded group is below n/k in every seed.",
            worst, "max", "<", 1.0, "n/k",
        ),
        Criterion(
            "camps-exact-best",
            "Two camps: the exact rule loses no more civility than either greedy rule, in every seed.",
            {**gained, **{f"{name}, greedy": value for name, value in beaten.items()}}, "max", "<=", 1e-9, "share",
        ),
        Criterion(
            "camps-exact-loss",
            "Two camps: the exact rule loses at most 4 % of the civility, on average.",
            losses["exact"], "mean", "<=", 0.04, "share",
        ),
    ]  # fmt: skip
    table = Table(
        "Two camps: what the guarantee costs in civility",
        (Column("Rule", "text"), Column("Loss, mean", "percent"), Column("Loss, most", "percent")),
        tuple((rule, float(np.mean(list(v.values()))), max(v.values())) for rule, v in losses.items()),
        note=(
            f"{len(seeds)} seeds, 300 readers, 120 comments, 8 places. The eight most approved comments leave a group "
            f"out in {int(sum(approved.values()))} of them."
        ),
    )
    return criteria, [table]


def _prefixes(seed: int) -> Criterion:
    approvals, civility = _camp(seed)
    worst: dict[str, float] = {}
    for rule in ("greedy", "score_greedy"):
        order = RepresentativeRanker(20, rule=rule, prefixes="all").rank(approvals, civility).order
        for p in range(1, 21):
            worst[f"{rule}, first {p}"] = justified_representation(approvals, order[:p], p).worst_ratio
    return Criterion(
        "prefixes",
        "Two camps: with every prefix guaranteed, no prefix of twenty comments leaves out n/k.",
        worst, "max", "<", 1.0, "n/k",
    )  # fmt: skip


# --- the questions of Remesh ------------------------------------------------------------------------------------------


def _remesh(prompts: dict[str, Flags]) -> tuple[list[Criterion], Table, Figure, dict[str, Any]]:
    violated, proved = {}, {}
    worst: dict[str, dict[str, float]] = {}
    served: dict[str, dict[str, float]] = {}
    loss: dict[str, dict[str, float]] = {}
    justifying = {}
    answers = run_peer(
        "abcvoting",
        "committees",
        {name: approvals.astype(np.int8) for name, approvals in prompts.items()},
        k=_K,
        rules=list(_PEERS),
    )
    for name, approvals in prompts.items():
        engagement = approvals.mean(axis=0)
        best = float(engagement[_top(engagement)].mean())
        before = justified_representation(approvals, _top(engagement), _K)
        violated[name] = float(not before.satisfied)
        chosen = {"top 8": _top(engagement), "diverse (MMR)": _diverse(approvals, engagement)}
        for rule in _RULES:
            ranking = RepresentativeRanker(_K, rule=rule, time_limit=_SECONDS).rank(approvals, engagement)
            chosen[rule] = ranking.order
            if rule == "greedy":
                justifying[name] = float(len(ranking.justifying_set))
            if rule == "exact":
                proved[name] = float(ranking.optimal)
        chosen |= {f"abcvoting {rule}": answers.arrays[f"{name}.{rule}"] for rule in _PEERS}
        for rule, selected in chosen.items():
            found = justified_representation(approvals, selected, _K)
            served.setdefault(rule, {})[name] = found.coverage
            loss.setdefault(rule, {})[name] = 1.0 - float(engagement[selected].mean()) / best
            worst.setdefault(rule, {})[name] = found.worst_ratio
    repaired = {f"{name}, {rule}": worst[rule][name] for rule in _RULES for name in prompts}
    more = {name: served["greedy"][name] - served["top 8"][name] for name in prompts}
    cheaper = {
        f"{name}, {rule}": loss["exact"][name] - loss[f"abcvoting {rule}"][name]
        for rule in _PEERS
        for name in prompts
        if worst[f"abcvoting {rule}"][name] < 1
    }
    criteria = [
        Criterion(
            "remesh-violated",
            "Remesh: the eight most approved statements leave out a group that is too large on 5 or more questions.",
            violated, "mean", ">=", 5 / 13, "share of questions",
        ),
        Criterion(
            "remesh-repaired",
            "Remesh: after the repair by any rule no excluded group reaches n/k on any question.",
            repaired, "max", "<", 1.0, "n/k",
        ),
        Criterion(
            "remesh-coverage",
            "Remesh: with the greedy repair at least 5 points more of the participants find a statement they approve, "
            "on average.",
            more, "mean", ">=", 0.05, "share of readers",
        ),
        Criterion(
            "remesh-greedy-loss",
            "Remesh: the greedy repair loses at most 10 % of the engagement on every question.",
            loss["greedy"], "max", "<=", 0.1, "share",
        ),
        Criterion(
            "remesh-exact-loss",
            "Remesh: the exact repair loses at most 4 % of the engagement, on average.",
            loss["exact"], "mean", "<=", 0.04, "share",
        ),
        Criterion(
            "remesh-exact-proved",
            "Remesh: the exact repair is proved to be the best on every question.",
            proved, "min", "==", 1.0, "questions", None,
        ),
        Criterion(
            "remesh-justifying",
            "Remesh: two statements or fewer serve every sizeable group, on every question.",
            justifying, "max", "<=", 2.0, "statements",
        ),
        Criterion(
            "remesh-peers",
            "Remesh: wherever a rule of abcvoting is representative, the exact repair loses no more engagement.",
            cheaper, "max", "<=", 1e-9, "share",
        ),
    ]  # fmt: skip
    table = Table(
        "Thirteen questions of Remesh, 8 statements by engagement",
        (
            Column("Selection", "text"),
            Column("Questions with a group left out", "number"),
            Column("Served, mean", "percent"),
            Column("Served, least", "percent"),
            Column("Engagement lost, mean", "percent"),
            Column("Engagement lost, most", "percent"),
        ),
        tuple(
            (
                rule,
                int(sum(ratio >= 1 for ratio in worst[rule].values())),
                float(np.mean(list(served[rule].values()))),
                min(served[rule].values()),
                float(np.mean(list(loss[rule].values()))),
                max(loss[rule].values()),
            )
            for rule in served
        ),
        note="Served: participants who approve one of the eight.",
    )
    names = tuple(name.replace("_", " ").partition(".")[0] + f" {i + 1}" for i, name in enumerate(prompts))
    figure = Figure(
        "bars",
        "Participants who approve one of the eight statements, by question",
        "Question",
        "Share of participants",
        tuple(
            Series(label, names, tuple(served[rule][name] for name in prompts))
            for rule, label in (("top 8", "most approved"), ("greedy", "greedy repair"))
        ),
        alt=f"The greedy repair serves {100 * float(np.mean(list(more.values()))):.0f} points more on average.",
        percent=True,
    )
    return criteria, table, figure, {"freeze": list(answers.freeze), "seconds": answers.options["seconds"]}


def _diverse(approvals: Flags, scores: Floats, weight: float = 0.7) -> NDArray[np.intp]:
    """Return the comments that maximal marginal relevance picks: score against the nearest comment picked before."""
    plain = approvals.astype(np.float64)
    norm = np.linalg.norm(plain, axis=0)
    alike = (plain.T @ plain) / np.maximum(np.outer(norm, norm), 1e-12)
    picked: list[int] = [int(scores.argmax())]
    while len(picked) < _K:
        value = weight * scores - (1 - weight) * alike[:, picked].max(axis=1)
        value[picked] = -np.inf
        picked.append(int(value.argmax()))
    return np.asarray(picked, dtype=np.intp)


def _agreement(seed: int) -> Criterion:
    """Hold the check against abcvoting's on 300 random profiles."""
    rng = np.random.default_rng(seed)
    cases: dict[str, NDArray[Any]] = {}
    ours = {}
    for case in range(300):
        n, m = int(rng.integers(3, 9)), int(rng.integers(4, 8))
        k = int(rng.integers(2, min(m, 4) + 1))
        approvals = rng.random((n, m)) < rng.uniform(0.1, 0.6)
        selected = rng.choice(m, size=k, replace=False)
        cases |= {f"c{case}.a": approvals.astype(np.int8), f"c{case}.w": selected}
        ours[f"c{case}"] = justified_representation(approvals, selected, k).satisfied
    theirs = run_peer("abcvoting", "verdicts", cases).options["holds"]
    differ = sum(ours[name] != theirs[name] for name in ours)
    if len(set(ours.values())) < 2:
        raise InputError("all random profiles have the same verdict", expected="both verdicts among them")
    return Criterion(
        "peer-verdicts",
        "The check of the property agrees with abcvoting's on 300 random profiles.",
        {"verdicts that differ": float(differ)}, "max", "==", 0.0, "profiles",
    )  # fmt: skip


# --- scale ------------------------------------------------------------------------------------------------------------


def _crowd(n: int, m: int, seed: int) -> sparse.csr_array:
    """Return sparse approvals of two camps; the j-th comment is approved by about 0.22 j^-0.6 of its camp."""
    rng = np.random.default_rng(seed)
    minority = rng.random(n) < 0.3
    rows, sizes = [], []
    for comment in range(m):
        count = rng.binomial(n, 0.22 * (comment + 1) ** -0.6)
        readers = np.unique(rng.integers(0, n, count))
        own = minority[readers] == (comment % 5 == 0)
        readers = readers[rng.random(len(readers)) < np.where(own, 0.95, 0.03)]
        rows.append(readers)
        sizes.append(len(readers))
    columns = sparse.csc_array(
        (np.ones(sum(sizes), dtype=np.int8), np.concatenate(rows), np.r_[0, np.cumsum(sizes)]), shape=(n, m)
    )
    return sparse.csr_array(columns)


def _scale(seed: int) -> tuple[list[Criterion], Table]:
    m, k = 10_000, 50
    rng = np.random.default_rng(seed)
    scores = 0.5 - 0.2 * (np.arange(m) % 5 == 0) + rng.normal(0.0, 0.12, m)
    rows: list[tuple[Any, ...]] = []
    seconds: dict[str, list[float]] = {rule: [] for rule in ("greedy", "score_greedy", "mes", "check", "exact")}
    votes, worst = [], {}
    for n in _SIZES:
        crowd = _crowd(n, m, seed)
        votes.append(crowd.nnz)
        top = _top(scores, k)
        before, least = _timed(partial(justified_representation, crowd, top, k), 2)
        seconds["check"].append(least)
        gap = None
        for rule in ("greedy", "score_greedy", "mes", "exact"):
            if rule == "exact" and n < _SIZES[-1]:
                continue
            ranker = RepresentativeRanker(k, rule=rule, time_limit=5.0)
            ranking, least = _timed(partial(ranker.rank, crowd, scores), 1 if rule in ("mes", "exact") else 2)
            seconds[rule].append(least)
            worst[f"{n:,} readers, {rule}"] = ranking.report.worst_ratio
            if rule == "exact":
                gap = ranking.gap
        times = [seconds[rule][-1] for rule in ("greedy", "score_greedy", "mes", "check")]
        exact = seconds["exact"][-1] if seconds["exact"] else None
        rows.append((n, crowd.nnz, before.worst_ratio, *times, exact, gap))
    small = _crowd(10_000, 500, seed)
    _, quick = _timed(partial(RepresentativeRanker(_K, rule="greedy").rank, small, scores[:500]), 2)
    criteria = [
        Criterion(
            "scale-seconds",
            "A million readers and 10,000 comments take the greedy rules and the check less than 10 seconds of one "
            "processor each.",
            {rule: seconds[rule][-1] for rule in ("check", "greedy", "score_greedy")}, "max", "<", 10.0, "s", None,
        ),
        Criterion(
            "small-seconds",
            "10,000 readers and 500 comments take the greedy rule less than a second.",
            {"greedy": quick}, "max", "<", 1.0, "s", None,
        ),
        Criterion(
            "scale-growth",
            "The time of the greedy rules and of the check grows with the votes at most in proportion, within 15 %.",
            {rule: _slope(votes, seconds[rule]) for rule in ("check", "greedy", "score_greedy")},
            "max", "<=", 1.15, "exponent", None,
        ),
        Criterion(
            "scale-repaired",
            "At every size and by every rule no excluded group reaches n/k.",
            worst, "max", "<", 1.0, "n/k",
        ),
    ]  # fmt: skip
    table = Table(
        "Seconds of the processor, 10,000 comments, 50 places",
        (
            Column("Readers", "count"),
            Column("Approvals", "number"),
            Column("Largest group left out before, n/k"),
            Column("Greedy"),
            Column("Score-aware greedy"),
            Column("Equal shares"),
            Column("Check"),
            Column("Exact (limit 5 s)"),
            Column("Exact: not proved", "percent"),
        ),
        tuple(rows),
    )
    return criteria, table


def _timed(call: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    """Return an answer, and the least seconds of the processor that it took: what else runs there does not count."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        answer = call()
        seconds.append(time.process_time() - start)
    return answer, min(seconds)


def _slope(sizes: list[int], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
