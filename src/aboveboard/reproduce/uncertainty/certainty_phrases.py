"""GPT-4o's phrases on TruthfulQA, rebuilt from published counts; words for classifiers; a small model asked here.

The paper's reports and surveys of radiologists are not public, so that the counts of its tutorial carry the claim.
"""

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from aboveboard._stats.bootstrap import percentile_interval
from aboveboard.core import Column, Figure, InputError, Line, Series, Table, require
from aboveboard.data import load_adult, load_smollm2
from aboveboard.reproduce import Criterion, Outcome, Scale
from aboveboard.reproduce._peers import run_peer
from aboveboard.uncertainty import (
    CertaintyCalibrator,
    PhraseVocabulary,
    choose_phrases,
    phrase_calibration,
    truthfulqa_phrases,
)

__all__ = ["run"]

_SPLITS: Final = 30
_SIZES: Final = (25, 50, 100, 200)
_FACTS: Final = 400
_SAID: Final = ("isotonic regression, said by the nearest phrase", "Platt's curve, said by the nearest phrase")
_RELEASES: Final = Path("/usr/share/distro-info/ubuntu.csv")

Floats = NDArray[np.float64]
Items = tuple[Any, Floats]


def run(scale: Scale, *, random_state: int) -> Outcome:
    """Run the experiment: seconds for the published counts; some minutes with classifiers and the language model."""
    full = scale == "full"
    phrases, correct, vocabulary = truthfulqa_phrases()
    items: Items = (np.array(phrases, dtype=object), correct.astype(np.float64))
    now = phrase_calibration(phrases, correct, vocabulary)
    fitted = CertaintyCalibrator(vocabulary).fit(phrases, correct)
    held_out = _held_out(items, _ways(vocabulary), _SPLITS if full else 5, random_state)
    before, after = held_out["unchanged"], held_out["as published"]
    best = held_out["all moves together"].mean(axis=0)
    definitely = fitted.rule_[vocabulary.codes(["Definitely"])[0], vocabulary.codes(["Possibly"])[0]]
    (_, brier_before, _), (error, brier, _) = _scores(fitted.scores_)
    criteria = [
        Criterion(
            "before-least",
            "Before: the published counts give a calibration error of at least 0.278",
            {"817 items": now.ece},
            "min",
            ">=",
            0.278,
        ),
        Criterion("before-most", "and of at most 0.285", {"817 items": now.ece}, "max", "<=", 0.285),
        Criterion(
            "after",
            "Restated, the error is at most 0.10 on the same items",
            {"817 items": float(error)},
            "max",
            "<=",
            0.10,
            tolerance=1e-4,
        ),
        Criterion(
            "brier",
            "and the Brier score falls by at least 0.06",
            {"817 items": float(brier_before - brier)},
            "min",
            ">=",
            0.06,
            tolerance=1e-4,
        ),
        Criterion(
            "definitely",
            "The plan restates 'Definitely' as 'Possibly', for at least 90 % of its uses",
            {"weight": float(definitely)},
            "min",
            ">=",
            0.9,
            tolerance=1e-3,
        ),
        Criterion(
            "held-out",
            "On held-out halves the error is at most 0.12, averaged over the splits",
            _named(after[:, 0]),
            "mean",
            "<=",
            0.12,
            tolerance=1e-3,
        ),
        Criterion(
            "held-out-brier",
            "and the Brier score falls",
            _named(before[:, 1] - after[:, 1]),
            "mean",
            ">",
            0.0,
            tolerance=1e-3,
        ),
        Criterion(
            "joint",
            "All moves priced together (not in the paper) give an error that is no larger on held-out halves",
            _named(after[:, 0] - held_out["all moves together"][:, 0]),
            "mean",
            ">=",
            0.0,
            tolerance=1e-3,
        ),
        Criterion(
            "ahead",
            "All moves together have a smaller held-out error than recalibrated means said by the nearest phrase",
            {name: float(held_out[name][:, 0].mean() - best[0]) for name in _SAID},
            "min",
            ">",
            0.0,
            tolerance=None,
        ),
        Criterion(
            "ahead-brier",
            "and a Brier score that is no larger",
            {name: float(held_out[name][:, 1].mean() - best[1]) for name in _SAID},
            "min",
            ">=",
            0.0,
            tolerance=None,
        ),
    ]
    figures = (_figure(items, vocabulary, fitted),)
    tables = [_ways_table(held_out)]
    notes = [
        "An item is a pair of phrase and outcome; the 817 are rebuilt from the counts of uses and of right answers.",
        "A speaker whose every phrase came true as often as its mean says would not have an error of 0 here but of "
        f"{now.floor:.3f}: a phrase that covers a wide range is wrong somewhere in it. No plan gets far below that.",
        "Recalibrated numbers (isotonic regression, Platt's curve, a new dictionary) leave the words as they are: they "
        "help a reader of 'Definitely' only if the dictionary reaches him. Put back into words, by the nearest phrase, "
        "they do about as well as the plan, with a slightly better Brier score: such curves use that surer words come "
        "true more often, and a plan does not.",
    ]
    peers: dict[str, Any] = {}
    if full:
        more, more_tables, peers = _full(items, vocabulary, random_state)
        criteria += more
        tables += more_tables
        notes += [
            "SmolLM2 has 135 million weights, here of four bits each. No published figure exists for it: what was "
            "found is shown with intervals, and asked is only that its held-out Brier score does not rise.",
            "netcal was left out as a peer: it would bring PyTorch for CUDA into its environment, for the error of "
            "phrase means that relplot gives too.",
        ]
    return Outcome(criteria, figures, tuple(tables), tuple(notes), peers)


# --- ways to restate --------------------------------------------------------------------------------------------------

Way = Callable[[Any, Floats, Any, Floats], tuple[float, float, float]]


def _ways(vocabulary: PhraseVocabulary) -> dict[str, Way]:
    """Return what can be done, each as a function of training and held-out items: error, Brier score, entropy."""

    def restated(**options: Any) -> Way:
        def score(p: Any, y: Floats, q: Any, z: Floats) -> tuple[float, float, float]:
            error, brier, entropy = _scores(CertaintyCalibrator(vocabulary, **options).fit(p, y).evaluate(q, z))[1]
            return error, brier, entropy

        return score

    return {
        "unchanged": lambda p, y, q, z: _measured(q, z, vocabulary),  # noqa: ARG005
        "as published": restated(),
        "priced anew three times": restated(search="relinearised"),
        "as published, eps = 0": restated(eps=0.0),
        "all moves together": restated(search="joint"),
        "the best substitute for each phrase (row by row)": restated(eps=0.0, tau=0.0),
        "usage of phrases kept (balanced)": restated(eps=0.0, tau=np.inf),
        "one replacement each (deterministic)": restated(eps=0.0, deterministic=True),
        **{name: _said(vocabulary, curve) for name, curve in zip(_SAID, (_isotonic, _platt))},
        "a new dictionary (words unchanged)": lambda p, y, q, z: _measured(q, z, _posterior(p, y, vocabulary)),
        "isotonic regression (numbers, not words)": _numbers(vocabulary, _isotonic),
    }


def _scores(frame: Any) -> Floats:
    """Return error, Brier score and entropy before, and after."""
    return np.asarray(frame[["ece", "brier", "entropy"]], dtype=np.float64)


def _measured(phrases: Any, y: Floats, vocabulary: PhraseVocabulary) -> tuple[float, float, float]:
    found = phrase_calibration(phrases, y, vocabulary)
    return found.ece, found.brier, found.entropy


def _posterior(p: Any, y: Floats, vocabulary: PhraseVocabulary) -> PhraseVocabulary:
    codes = vocabulary.codes(p)
    n, s = np.bincount(codes, minlength=len(vocabulary)), np.bincount(codes, weights=y, minlength=len(vocabulary))
    return PhraseVocabulary(vocabulary.phrases, (s + 1) / (n + 2), n + 2)


def _isotonic(means: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = IsotonicRegression(out_of_bounds="clip", y_min=0.0, y_max=1.0).fit(means, y)
    return lambda x: np.asarray(fitted.predict(x))


def _platt(means: Floats, y: Floats) -> Callable[[Floats], Floats]:
    fitted = LogisticRegression(C=1e6).fit(means[:, None], y)
    return lambda x: np.asarray(fitted.predict_proba(x[:, None])[:, 1])


def _said(vocabulary: PhraseVocabulary, curve: Callable[[Floats, Floats], Callable[[Floats], Floats]]) -> Way:
    def score(p: Any, y: Floats, q: Any, z: Floats) -> tuple[float, float, float]:
        recalibrate = curve(vocabulary.mean[vocabulary.codes(p)], y)
        words = vocabulary.verbalise(recalibrate(vocabulary.mean[vocabulary.codes(q)]))
        return _measured(words, z, vocabulary)

    return score


def _numbers(vocabulary: PhraseVocabulary, curve: Callable[[Floats, Floats], Callable[[Floats], Floats]]) -> Way:
    def score(p: Any, y: Floats, q: Any, z: Floats) -> tuple[float, float, float]:
        recalibrated = curve(vocabulary.mean[vocabulary.codes(p)], y)(vocabulary.mean)
        return _measured(q, z, PhraseVocabulary.from_points(dict(zip(vocabulary.phrases, recalibrated.tolist()))))

    return score


def _held_out(items: Any, ways: dict[str, Way], n_splits: int, random_state: int) -> dict[str, Floats]:
    """Return error, Brier score and entropy on the other half, splits x 3, for each way."""
    phrases, y = items
    scores: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for split in range(n_splits):
        order = np.random.default_rng([random_state, split]).permutation(len(y))
        first, second = order[: len(y) // 2], order[len(y) // 2 :]
        for name, way in ways.items():
            scores[name].append(way(phrases[first], y[first], phrases[second], y[second]))
    return {name: np.array(rows) for name, rows in scores.items()}


def _named(values: Floats) -> dict[str, float]:
    return {f"split {i}": float(value) for i, value in enumerate(values)}


def _ways_table(held_out: dict[str, Floats]) -> Table:
    return Table(
        "On held-out halves of the published counts",
        (
            Column("What is done", "text"),
            Column("Error", "number"),
            Column("Its standard deviation", "number"),
            Column("Brier score", "number"),
            Column("Entropy of the phrases (nats)", "number"),
        ),
        tuple(
            (name, *(float(v) for v in (s[:, 0].mean(), s[:, 0].std(ddof=1), s[:, 1].mean(), s[:, 2].mean())))
            for name, s in held_out.items()
        ),
        note=f"Means over {len(held_out['unchanged'])} random halves.",
    )


def _figure(items: Items, vocabulary: PhraseVocabulary, fitted: CertaintyCalibrator) -> Figure:
    phrases, y = items
    after = CertaintyCalibrator(**{**fitted.get_params(), "random_state": 0}).fit(phrases, y).transform(phrases)
    series = []
    for name, words in (("as said", phrases), ("restated", after)):
        curve = phrase_calibration(words, y, vocabulary, n_boot=200, random_state=0).curve
        seen = curve[curve["weight"] > 1e-3]
        columns = (tuple(float(v) for v in seen[c]) for c in ("confidence", "accuracy", "low", "high"))
        series.append(Series(name, *columns))
    return Figure(
        "lines",
        "GPT-4o's phrases of certainty on TruthfulQA",
        "probability that is said",
        "share of answers that were right",
        tuple(series),
        lines=(Line("honest", diagonal=True),),
        alt=(
            "Reliability curves with bootstrap bands. As said, the curve stays far below the diagonal: even the "
            "surest words were right little more than half of the time. Restated, it runs near the "
            "diagonal, on a shorter range."
        ),
        percent=True,
    )


# --- the full scale ---------------------------------------------------------------------------------------------------


def _full(
    items: Items, vocabulary: PhraseVocabulary, random_state: int
) -> tuple[list[Criterion], list[Table], dict[str, Any]]:
    words, words_table = _classifiers(vocabulary, random_state)
    live, live_tables = _live(vocabulary, random_state)
    growth = _growth()
    peer, peer_table = _relplot(items, vocabulary)
    criteria = [
        Criterion(
            "classifiers",
            "For two classifiers that speak in phrases, restating does not raise the held-out Brier score",
            words,
            "max",
            "<=",
            0.0,
            tolerance=1e-6,
        ),
        Criterion(
            "live",
            "For SmolLM2 on 400 claims (currencies, releases), restating does not raise the held-out Brier score",
            _named(live),
            "mean",
            "<=",
            0.0,
            tolerance=1e-3,
        ),
        Criterion(
            "growth",
            "The time for the prices grows at most like the number of phrases, own and target alike, to the power 2.3",
            growth,
            "max",
            "<=",
            2.3,
            tolerance=None,
        ),
    ]
    return criteria, [words_table, *live_tables, peer_table], {"relplot": peer}


def _classifiers(vocabulary: PhraseVocabulary, random_state: int) -> tuple[dict[str, float], Table]:
    """Let naive Bayes speak in phrases, whose truth is known, on two data sets; restate, and hold out."""
    adult = load_adult(split="train")
    sets = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "Adult": (adult.X.select_dtypes("number").to_numpy(dtype=np.float64), adult.y_binary.to_numpy()),
    }
    rows: list[tuple[Any, ...]] = []
    changes = {}
    for name, (X, y) in sets.items():
        order = np.random.default_rng(random_state).permutation(len(y))
        train, tune, test = np.array_split(order, 3)
        model = GaussianNB().fit(X[train], y[train])
        said: Any = np.array(vocabulary.verbalise(model.predict_proba(X)[:, 1]), dtype=object)
        calibrator = CertaintyCalibrator(vocabulary, eps=0.0).fit(said[tune], y[tune])
        found = _scores(calibrator.evaluate(said[test], y[test]))
        changes[name] = float(found[1, 1] - found[0, 1])
        rows.append((name, len(test), *found[:, :2].T.ravel().tolist()))
    columns = ("Error before", "Error after", "Brier score before", "Brier score after")
    table = Table(
        "Naive Bayes that speaks in phrases, on held-out rows",
        (Column("Data", "text"), Column("Rows", "count"), *(Column(c, "number") for c in columns)),
        tuple(rows),
        note="Each probability is said by the phrase of the nearest mean.",
    )
    return changes, table


def _growth() -> dict[str, float]:
    """Return the exponent at which the time of the prices grows in K = L."""
    seconds = []
    for K in _SIZES:
        means = (np.arange(K) + 0.5) / K
        vocabulary = PhraseVocabulary([f"phrase {k}" for k in range(K)], means, np.full(K, 10.0))
        said = [vocabulary.phrases[k] for k in np.arange(20 * K) % K]
        y = np.random.default_rng(K).random(len(said)) < 0.5
        start = time.process_time()
        repeats = max(1, 20_000 // K**2)
        for _ in range(repeats):
            CertaintyCalibrator(vocabulary, eps=1e-3, tau=0.0).fit(said, y)
        seconds.append((time.process_time() - start) / repeats)
    slope = np.polyfit(np.log(_SIZES[1:]), np.log(seconds[1:]), 1)[0]
    return {f"{_SIZES[1]} to {_SIZES[-1]} phrases": float(slope)}


def _relplot(items: Items, vocabulary: PhraseVocabulary) -> tuple[dict[str, Any], Table]:
    phrases, y = items
    restated = CertaintyCalibrator(vocabulary, eps=0.0, deterministic=True).fit(phrases, y).transform(phrases)
    means = {
        "said": vocabulary.mean[vocabulary.codes(phrases)],
        "restated": vocabulary.mean[vocabulary.codes(restated)],
    }
    peer = run_peer("relplot", "errors", {"said": means["said"], "restated": means["restated"], "y": y})
    points = vocabulary.points
    table = Table(
        "The error of phrase means, as other measures see it",
        (
            Column("Phrases", "text"),
            Column("relplot, smooth error", "number"),
            Column("relplot, binned error", "number"),
            Column("here, phrases as points", "number"),
            Column("here, phrases as distributions", "number"),
        ),
        tuple(
            (
                name,
                float(peer.options[f"{name}.smooth"]),
                float(peer.options[f"{name}.binned"]),
                phrase_calibration(words, y, points).ece,
                phrase_calibration(words, y, vocabulary).ece,
            )
            for name, words in (("said", phrases), ("restated", restated))
        ),
        note="No package measures the error of phrases as distributions.",
    )
    return {"freeze": list(peer.freeze), **peer.options}, table


# --- a small language model -------------------------------------------------------------------------------------------


def _live(vocabulary: PhraseVocabulary, random_state: int) -> tuple[Floats, list[Table]]:
    """Ask SmolLM2 how certain claims are; return the change of the held-out Brier score per split, and tables."""
    claims = _claims(random_state)
    smollm2 = load_smollm2()
    prompts = [smollm2.prompt(_conversation(claim)) for claim, _ in claims]
    said: Any = np.array(choose_phrases(smollm2.log_probabilities, prompts, vocabulary), dtype=object)
    y = np.array([float(true) for _, true in claims])
    ways = {name: _ways(vocabulary)[name] for name in ("unchanged", "as published", "all moves together")}
    scores = _held_out((said, y), ways, _SPLITS, random_state)
    found = phrase_calibration(said, y, vocabulary, n_boot=1000, random_state=random_state)
    assert found.ci is not None
    restated = _bootstrapped(said, y, vocabulary, random_state)
    measures = Table(
        f"SmolLM2-135M-Instruct on {len(y)} claims, {int(y.sum())} of them true",
        (Column("", "text"), Column("Error", "number"), Column("95 %", "interval"), Column("Brier score", "number"),
         Column("95 % of it", "interval")),
        (
            ("as said", found.ece, _ends(found.ci, "ece"), found.brier, _ends(found.ci, "brier")),
            *(
                (f"{name}, held out", float(s[:, 0].mean()), None, float(s[:, 1].mean()), None)
                for name, s in scores.items()
            ),
            restated,
        ),
        note=f"Held out: means over {_SPLITS} halves; the intervals are bootstrap intervals over the claims.",
    )  # fmt: skip
    used = Table(
        "What SmolLM2 says, and what is true",
        (Column("Phrase", "text"), Column("Claims", "count"), Column("Says", "percent"), Column("True", "percent")),
        tuple((str(p), int(row.n), float(row.mean), float(row.rate)) for p, row in _rows(found.counts)),
    )
    return scores["as published"][:, 1] - scores["unchanged"][:, 1], [measures, used]


def _rows(counts: Any) -> list[tuple[Any, Any]]:
    return list(zip(counts.index, counts.itertuples(index=False)))


def _ends(ci: Any, name: str) -> tuple[float, float]:
    return float(ci.loc[name, "low"]), float(ci.loc[name, "high"])


def _bootstrapped(said: Any, y: Floats, vocabulary: PhraseVocabulary, random_state: int) -> tuple[Any, ...]:
    """Return the row of the restated phrases: fit on a resample, judged on the claims left out of it."""
    rng = np.random.default_rng(random_state)
    scores = []
    for _ in range(200):
        drawn = rng.integers(len(y), size=len(y))
        out = np.setdiff1d(np.arange(len(y)), drawn)
        calibrator = CertaintyCalibrator(vocabulary, eps=0.0).fit(said[drawn], y[drawn])
        scores.append(_scores(calibrator.evaluate(said[out], y[out]))[1, :2])
    low, high = percentile_interval(np.array(scores))
    error, brier = np.mean(scores, axis=0)
    ends = [(float(a), float(b)) for a, b in zip(low, high)]
    return ("as published, on claims left out of a resample", float(error), ends[0], float(brier), ends[1])


def _conversation(claim: str) -> list[dict[str, str]]:
    return [
        {"role": "system", "content": "You judge statements."},
        {"role": "user", "content": f'How certain is it that this is true: "{claim}" Answer with a word of certainty.'},
    ]


def _claims(random_state: int) -> list[tuple[str, bool]]:
    """Return claims about currencies (CLDR, by babel) and Ubuntu's releases (distro-info-data), half of them true."""
    require("babel", extra="docs", feature="the claims about currencies")
    from babel import Locale
    from babel.numbers import get_territory_currencies

    english, rng = Locale("en"), np.random.default_rng(random_state)
    currency = {}
    for code, territory in sorted(english.territories.items()):
        found = get_territory_currencies(code) if len(code) == 2 and code.isalpha() else []
        if len(found) == 1 and found[0] in english.currencies:
            currency[territory] = english.currencies[found[0]]
    releases = [(row["version"].removesuffix(" LTS"), int(row["release"][:4])) for row in _release_rows()]
    claims = []
    for version, year in releases:
        other = year + int(rng.choice([-3, -2, -1, 1, 2, 3]))
        claims += [
            (f"Ubuntu {version} was released in {year}.", True),
            (f"Ubuntu {version} was released in {other}.", False),
        ]
    names = sorted(set(currency.values()))
    left = (_FACTS - len(claims)) // 2
    for place in rng.permutation(len(currency))[:left]:
        territory = list(currency)[place]
        wrong = rng.choice([name for name in names if name != currency[territory]])
        for name, true in ((currency[territory], True), (wrong, False)):
            claims.append((f"The currency of {territory} is the {name}.", true))
    return claims


def _release_rows() -> list[dict[str, str]]:
    if not _RELEASES.is_file():
        raise InputError(
            f"{_RELEASES} is missing",
            expected="the dates of Ubuntu's releases",
            remedy="Install Debian's package distro-info-data",
        )
    with _RELEASES.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))
