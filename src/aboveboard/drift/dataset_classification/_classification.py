"""The estimator: sources in, a test of their difference with its controls out."""

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from aboveboard.core.errors import InputError
from aboveboard.core.finding import Finding
from aboveboard.core.progress import progress
from aboveboard.drift.dataset_classification import _controls as controls_of
from aboveboard.drift.dataset_classification import _findings
from aboveboard.drift.dataset_classification._controls import Rung, Trial
from aboveboard.drift.dataset_classification._images import ImageModality
from aboveboard.drift.dataset_classification._learners import train
from aboveboard.drift.dataset_classification._modality import Modality
from aboveboard.drift.dataset_classification._result import judge
from aboveboard.drift.dataset_classification._splits import (
    FEWEST_ROWS,
    MOST_HELD_OUT,
    MOST_TRAIN,
    Split,
    balanced_split,
    needed,
    read_groups,
    whole_split,
)
from aboveboard.drift.dataset_classification._tables import Features, as_frame, named_frame
from aboveboard.drift.dataset_classification._tabular import TableModality
from aboveboard.drift.dataset_classification._text import TextModality
from aboveboard.drift.dataset_classification._usefulness import TargetLink, link, probe

__all__ = ["DatasetClassification"]

_CONTROLS: Final = ("pseudo", "ladder", "growth")
_PROTOTYPES: Final = 5
_SMALLEST_GROWTH: Final = 20


class DatasetClassification(BaseEstimator):  # type: ignore[misc]
    """Can a classifier tell which data set a row came from? With controls that say why.

    Parameters
    ----------
    modality : {"tabular", "image", "text"}
        What a row is. Tables: any container, numbers, words, booleans, missing values. Images: uint8, or fractions from
        0 to 1, all of one size (extra ``torch``, unless `estimator` or `embedding` is given). Texts: sequences of str.
    estimator : classifier, optional
        With ``fit`` and ``predict_proba``, cloned for each use. It gets tables as finite numbers (standardised, a
        column per common word, marks of what is missing), images and texts as they are. Default: for tables
        gradient-boosted trees or logistic regression, whichever has the better log-loss in a cross-validation within
        the training rows; for images a small convolutional network; for texts logistic regression on character n-grams.
    embedding : callable, optional
        For images and texts: given a batch of rows, returns an array of shape (n, d), which is then treated as a table.
    n_train : int, optional
        Training rows per source. Default: what is not held out, at most 20,000.
    n_val : int, optional
        Held-out rows per source on average. Default: what a third of the smallest source allows (of groups: two in
        five), at most 10,000.
    sampling : {"balanced", "all"}
        "balanced": as many rows of each source. "all": whatever there is of each, for sources of unequal size; here
        `n_train` and `n_val` are the most per source, `accuracy` is the mean over sources, and the p-value comes from
        shuffling.
    controls : collection of {"pseudo", "ladder", "growth"}
        What to run beside the test itself; each costs several fits.
    ladder : sequence of str, or mapping of str to callable, optional
        What to take away. For tables some of "no_missing" (gaps filled at random), "quantiles" (numbers rounded to
        tenths), "ranks" (every column made uniform in each source, so that only how columns hang together is left),
        "leave_one_out" (each of the ten most telling columns) and "without:COLUMN"; for images "noise:0.2", "blur:1",
        "low_resolution:14", "jpeg:50", "colour" and "grey"; for texts "case", "punctuation_digits", "length" and
        "word_order". Or functions of one's own, which get the rows of all sources as one table (array, list) and return
        as many. Default: all that apply.
    growth_sizes : sequence of int, optional
        Training rows per source for the growth curve; default an eighth, a quarter, half and all of them.
    groups : str, optional
        For tables: a column that says which rows belong together (a person, a household). See also `fit`.
    keep : collection of str
        Columns of a table to use although they identify rows, hold dates, or are wholly missing in a source. Such
        columns are otherwise left out, with a warning.
    n_pseudo : int
        Repeats of the pseudo-data-set control.
    device : str
        For the convolutional network, as PyTorch names it.
    random_state : int, RandomState, Generator or None
        Seed of splits, draws and classifiers.
    n_jobs : int or None
        Threads for the controls; with images leave it at None, since PyTorch uses threads itself.

    Attributes
    ----------
    sources_ : tuple of str
    result_ : SourceTest
        Accuracy with interval, chance, p-value, confusion, AUROC, bound of the total-variation distance, share of rows
        that give their source away.
    pseudo_ : DataFrame
        The same test on random parts of one source (of all rows, where none is large enough): must be at chance.
    ladder_ : DataFrame
        The same test with one thing taken away each time: what was ``taken_away``, ``accuracy`` with its interval,
        ``drop``, and ``artefact_share``, the share of the accuracy above chance that went with it.
    growth_ : DataFrame
        Accuracy against training rows per source: rising where there is something to learn, flat where it memorises.
    importance_ : DataFrame
        What shuffling each column (taking out each n-gram, covering each field of the picture) among held-out rows
        costs, the dearest first.
    prototypes_ : DataFrame
        Per source the five held-out rows that look most like it: their positions in the data as given.
    excluded_ : dict of str to str
        Columns left out, and why.
    rows_ : dict of str to ndarray of int
        Positions, per source, of the rows that were looked at.
    certificate_ : Certificate

    Raises
    ------
    InputError
        For fewer than two sources, sources with fewer than 200 rows, fewer than 100 held-out rows in all, columns or
        kinds of values that differ, the same rows passed twice, and settings that cannot be used.
    MissingExtra
        For images without PyTorch.

    Guarantee
    ---------
    If rows of all sources are independent draws from one distribution, ``P(p_value <= alpha) <= alpha`` for every
    alpha, whatever the classifier. Held-out rows take no part in training, choice or calibration. With "balanced"
    sampling the source of each held-out row is drawn by a fair die, so that the number named rightly is binomial; a
    draw that asks for more rows than a source has in reserve (4 standard errors above its share) is repeated, which
    moves the level by less than one part in a thousand. For two sources, with 95 % confidence the total-variation
    distance is at least `tv_lower_bound`.

    The reverse does not hold: an accuracy at chance proves nothing, since the classifier may be too weak.

    Notes
    -----
    m sources; the best accuracy any rule can have on two balanced sources is (1 + TV) / 2. Under "ranks" held-out rows
    are ranked among themselves; its p-value is approximate.

    Cost: one cross-validation of both candidates, one fit, and one fit per rung, repeat and size (a repeat of "pseudo"
    has its own cross-validation). O(n d) memory and about O(n d) time per fit for tables.

    ``check_estimator`` does not apply: `fit` takes a dict of data sets, not a matrix and a target.

    References
    ----------
    Z. Liu, K. He: "A Decade's Battle on Dataset Bias: Are We There Yet?", ICLR 2025, https://arxiv.org/abs/2403.08632.
    A. Torralba, A. A. Efros: "Unbiased Look at Dataset Bias", CVPR 2011.
    D. Lopez-Paz, M. Oquab: "Revisiting Classifier Two-Sample Tests", ICLR 2017.

    Examples
    --------
    >>> from aboveboard.data import load_communities_crime
    >>> from aboveboard.drift import DatasetClassification
    >>> X = load_communities_crime().X
    >>> west = X["state"].isin(["California", "Oregon", "Washington"])
    >>> texas = X["state"] == "Texas"
    >>> numbers = X.drop(columns="state")
    >>> test = DatasetClassification(ladder=["ranks"], n_pseudo=2, random_state=0)
    >>> test = test.fit({"west": numbers[west].head(400), "rest": numbers[~west].sample(400, random_state=0)})
    >>> test.result_.p_value < 1e-6
    True
    """

    def __init__(
        self,
        modality: Literal["tabular", "image", "text"] = "tabular",
        *,
        estimator: Any = None,
        embedding: Callable[[Any], Any] | None = None,
        n_train: int | None = None,
        n_val: int | None = None,
        sampling: Literal["balanced", "all"] = "balanced",
        controls: Collection[str] = ("pseudo", "ladder"),
        ladder: Sequence[str] | Mapping[str, Callable[[Any], Any]] | None = None,
        growth_sizes: Sequence[int] | None = None,
        groups: str | None = None,
        keep: Collection[str] = (),
        n_pseudo: int = 5,
        device: str = "cpu",
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.modality = modality
        self.estimator = estimator
        self.embedding = embedding
        self.n_train = n_train
        self.n_val = n_val
        self.sampling = sampling
        self.controls = controls
        self.ladder = ladder
        self.growth_sizes = growth_sizes
        self.groups = groups
        self.keep = keep
        self.n_pseudo = n_pseudo
        self.device = device
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        datasets: Mapping[str, Any],
        y: None = None,  # noqa: ARG002
        *,
        groups: Mapping[str, Any] | None = None,
    ) -> Self:
        """Run the test and its controls.

        Parameters
        ----------
        datasets : dict of str to rows
            Two sources or more: data frames (pandas, Polars, Arrow) or arrays of shape (n, d), images of shape
            (n, height, width) or (n, height, width, channels), or sequences of texts.
        y : None
            Ignored.
        groups : dict of str to array, optional
            Per source one value per row: rows with the same value, also across sources, belong together. They never
            stand on both sides of the split, and one of them at most is judged.

        Returns
        -------
        self
        """
        self._check_settings()
        rng = np.random.default_rng(_seed(self.random_state))
        modality = self._new_modality()
        parts, group_codes, kept = self._read(modality, datasets, groups, rng)
        names, m = tuple(parts), len(parts)
        codes = np.repeat(np.arange(m), [len(part) for part in parts.values()])
        data = modality.join(parts, codes)
        draw = balanced_split if self.sampling == "balanced" else whole_split
        split = draw(codes, names, group_codes, self.n_train, self.n_val, rng)
        features, candidates = modality.features(data, split), modality.candidates(self.estimator)
        self._check_controls(modality, features, int(np.bincount(codes[split.train]).min()))
        seeds = [int(seed) for seed in rng.integers(2**31, size=5)]
        with progress(2 + self._steps()) as bar:
            trial = Trial(features, codes, group_codes, split, names, candidates, data, self.n_jobs, bar)
            bar.step("classifier of sources")
            inside = None if group_codes is None else group_codes[split.train]
            self.trained_ = train(
                features.take(split.train), codes[split.train], m, candidates, seeds[0], groups=inside
            )
            self.result_, proba = judge(self.trained_, features, codes, split, names, seeds[0])
            self.sources_, self.rows_ = names, kept
            self.modality_, self.excluded_ = modality, dict(modality.excluded_)
            bar.step("what tells most")
            self.importance_ = modality.importance(self.trained_, trial, seeds[1])
            self.prototypes_ = self._typical(split, codes, proba)
            self._run_controls(trial, seeds[2:])
        self.certificate_ = _findings.certificate(self, _sha256(features))
        return self

    def source_proba(self, X: Any) -> NDArray[np.float64]:
        """Return calibrated probabilities of the sources, shape (n, m), as if all sources were equally common.

        Parameters
        ----------
        X : rows of the kind that was fitted
            Rows that were trained on look more certain than new ones.
        """
        check_is_fitted(self, "result_")
        return self.trained_.proba(self.modality_.read(X))

    def weights(self, source: str, target: str, X: Any, clip: tuple[float, float] | None = None) -> NDArray[np.float64]:
        """Return density ratios p_target(x) / p_source(x): weights under which rows of `source` stand for `target`.

        Parameters
        ----------
        source, target : str
            Names of two sources.
        X : rows of the kind that was fitted
            Usually rows of `source`.
        clip : (low, high), optional
            Limits for the weights.

        Returns
        -------
        ndarray of shape (n,), positive
            Their mean over rows of `source` is about 1; far from it, the weights are not to be trusted.

        Raises
        ------
        InputError
            For names that are no sources, and limits out of order.

        Notes
        -----
        The probabilities are calibrated by one exponent, fitted out of fold within the training rows, and hold for
        equally common sources, so that the ratio needs no factor for the numbers of rows.
        """
        check_is_fitted(self, "result_")
        for name in (source, target):
            if name not in self.sources_:
                raise InputError(
                    f"there is no source {name!r}", expected=f"one of {', '.join(map(repr, self.sources_))}"
                )
        if clip is not None and not 0 <= clip[0] <= clip[1]:
            raise InputError(f"clip is {clip!r}", expected="two numbers, 0 <= low <= high")
        proba = self.source_proba(X)
        ratio = proba[:, self.sources_.index(target)] / proba[:, self.sources_.index(source)]
        return ratio if clip is None else np.clip(ratio, *clip)

    def transfer(self, X: Any, y: Any) -> pd.DataFrame:
        """Ask whether what the classifier of sources learned serves a real task.

        A linear classifier of `y` is fitted to one half of the rows and judged on the other, on three sets of frozen
        features: those of the classifier of sources, those of random weights (for an `estimator`: random labels), and
        those of the same network trained on `y` itself.

        Parameters
        ----------
        X : rows of the kind that was fitted
        y : array of shape (n,)
            Class labels, 2 to 50 of them.

        Returns
        -------
        DataFrame
            ``features``, ``accuracy``, ``low``, ``high``.

        Raises
        ------
        InputError
            For classifiers without features of their own: they exist for images, and for an `estimator` with
            ``transform``.
        """
        check_is_fitted(self, "result_")
        make = self.modality_.candidates(self.estimator)[self.trained_.name]
        seed = int(np.random.default_rng(_seed(self.random_state)).integers(2**31))
        return probe(make, self.trained_.learner, self.modality_.read(X), y, seed)

    def target_link(self, datasets: Mapping[str, Any], targets: Mapping[str, Any]) -> TargetLink:
        """Ask whether the difference matters for a task: does the source tell more about y than x tells already?

        Parameters
        ----------
        datasets : dict of str to table
            Sources by the names that were fitted.
        targets : dict of str to array
            One value per row: classes, or numbers.

        Returns
        -------
        TargetLink
            Losses of two gradient-boosted models, out of fold, with and without the source among the features.

        Raises
        ------
        InputError
            For images and texts without an embedding, and for targets that do not fit the rows.
        """
        check_is_fitted(self, "result_")
        if set(datasets) != set(self.sources_) or set(targets) != set(self.sources_):
            raise InputError(
                f"datasets holds {', '.join(map(repr, datasets))}, targets {', '.join(map(repr, targets))}",
                expected=f"the sources {', '.join(map(repr, self.sources_))} in both",
            )
        parts = [self.modality_.read(datasets[name]) for name in self.sources_]
        if parts[0].values.ndim != 2 or parts[0].categorical is None:
            raise InputError(f"the rows are {self.modality}s", expected="tables, or an embedding")
        for name, part in zip(self.sources_, parts, strict=True):
            if len(targets[name]) != len(part):
                raise InputError(
                    f"{name} has {len(part)} rows and {len(targets[name])} targets", expected="one per row"
                )
        together = Features(np.concatenate([part.values for part in parts]), parts[0].names, parts[0].categorical)
        sources = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        y = pd.concat([pd.Series(targets[name]) for name in self.sources_], ignore_index=True)
        seed = int(np.random.default_rng(_seed(self.random_state)).integers(2**31))
        return link(together, sources, y, seed)

    def findings(self, purpose: _findings.Purpose = "bias") -> list[Finding]:
        """Return what was found, in the form that reports take.

        Parameters
        ----------
        purpose : {"bias", "leak", "drift"}
            Sources to be pooled (``source_identifiable``), training against test rows, which should be at chance
            (``leak_suspected``), or reference against production rows (``drift_detected``).

        Returns
        -------
        list of one Finding
            It fails where more than 20 % of rows give their source away (lower end of the interval), warns where the
            accuracy is certainly more than a tenth of the way from chance to 1 (for a leak: significantly above
            chance), is a note where it is significant and small, and inconclusive where random parts are told apart.
        """
        check_is_fitted(self, "result_")
        return _findings.findings(self, purpose)

    def summary(self) -> str:
        """Return the result and its controls in a few lines of plain text."""
        check_is_fitted(self, "result_")
        return _findings.summary(self)

    def _check_settings(self) -> None:
        if self.modality not in ("tabular", "image", "text"):
            raise InputError(f"modality is {self.modality!r}", expected="'tabular', 'image' or 'text'")
        if self.sampling not in ("balanced", "all"):
            raise InputError(f"sampling is {self.sampling!r}", expected="'balanced' or 'all'")
        if isinstance(self.controls, str) or set(self.controls) - set(_CONTROLS):
            raise InputError(f"controls is {self.controls!r}", expected=f"some of {', '.join(map(repr, _CONTROLS))}")
        for name in ("ladder", "keep"):
            if isinstance(getattr(self, name), str):
                raise InputError(f"{name} is {getattr(self, name)!r}", expected="several names: put it in brackets")
        if self.modality == "tabular" and self.embedding is not None:
            raise InputError("an embedding was given for tables", expected="modality 'image' or 'text' with it")
        if self.modality != "tabular" and (self.groups is not None or self.keep):
            raise InputError(
                f"groups and keep name columns, and {self.modality}s have none", expected="fit(..., groups={...})"
            )
        for name in ("n_train", "n_val", "n_pseudo"):
            value = getattr(self, name)
            wanted = value is not None or name == "n_pseudo"
            if wanted and (isinstance(value, bool) or not hasattr(value, "__index__") or value < 1):
                raise InputError(f"{name} is {value!r}", expected="a whole number above 0")

    def _check_controls(self, modality: Modality, features: Features, largest: int) -> None:
        if "ladder" in self.controls and self.ladder is not None and not isinstance(self.ladder, Mapping):
            for name in self.ladder:
                modality.check_rung(name, features)
        sizes = self.growth_sizes
        if "growth" in self.controls and sizes is not None:
            whole = all(hasattr(size, "__index__") for size in sizes)
            if not (len(sizes) and whole and min(sizes) >= _SMALLEST_GROWTH and max(sizes) <= largest):
                raise InputError(
                    f"growth_sizes is {sizes!r}",
                    expected=f"numbers of rows per source from {_SMALLEST_GROWTH} to {largest}",
                )

    def _new_modality(self) -> Modality:
        if self.modality == "image":
            return ImageModality(self.embedding, self.device)
        return TextModality(self.embedding) if self.modality == "text" else TableModality(self.keep)

    def _read(
        self, modality: Modality, datasets: Any, groups: Any, rng: np.random.Generator
    ) -> tuple[dict[str, Any], NDArray[np.intp] | None, dict[str, NDArray[np.intp]]]:
        """Return the rows to look at, per source, their groups, and their positions in the data as given."""
        if not isinstance(datasets, Mapping) or len(datasets) < 2:
            told = f"{len(datasets)} sources" if isinstance(datasets, Mapping) else type(datasets).__name__
            raise InputError(
                f"fit got {told}", expected='a dict of two sources or more: {"reference": X_old, "current": X_new}'
            )
        parts = {str(name): modality.check(str(name), data) for name, data in datasets.items()}
        if len(parts) < len(datasets):
            raise InputError(f"sources share a name: {', '.join(map(repr, datasets))}", expected="distinct names")
        _refuse_copies(modality, list(datasets.values()), parts)
        if self.groups is not None:
            parts, groups = _groups_from_column(self.groups, parts)
        sizes = {name: len(part) for name, part in parts.items()}
        for name, size in sizes.items():
            if size < FEWEST_ROWS:
                raise InputError(
                    f"{name} has {size} rows",
                    expected=f"at least {FEWEST_ROWS} rows per source: with fewer a classifier has next to no power",
                )
        group_codes = None if groups is None else read_groups(groups, sizes)
        most = self._most_rows(len(parts))
        kept = {
            name: np.sort(rng.permutation(size)[:most]) if size > most else np.arange(size)
            for name, size in sizes.items()
        }
        if group_codes is not None:
            starts = np.cumsum([0, *sizes.values()])[:-1]
            group_codes = group_codes[np.concatenate([start + rows for start, rows in zip(starts, kept.values())])]
        return {name: modality.take(part, kept[name]) for name, part in parts.items()}, group_codes, kept

    def _most_rows(self, m: int) -> int:
        """Return how many rows of a source are of use: enough for the test, and for its control on one source."""
        if self.sampling == "all":
            return 3 * MOST_TRAIN
        return m * ((self.n_train or MOST_TRAIN) + needed(self.n_val or MOST_HELD_OUT, m))

    def _steps(self) -> int:
        rungs = 13 if self.ladder is None else len(self.ladder)
        sizes = 4 if self.growth_sizes is None else len(self.growth_sizes)
        counts = {"pseudo": self.n_pseudo, "ladder": rungs, "growth": sizes}
        return sum(counts[name] for name in self.controls)

    def _run_controls(self, trial: Trial, seeds: list[int]) -> None:
        for name in _CONTROLS:
            if hasattr(self, f"{name}_"):
                delattr(self, f"{name}_")
        if "pseudo" in self.controls:
            self.pseudo_ = controls_of.pseudo(trial, self.n_pseudo, seeds[0])
        if "growth" in self.controls:
            self.growth_ = controls_of.growth(trial, self.trained_.name, self._sizes(trial), seeds[1])
        if "ladder" in self.controls:
            rungs = self._rungs(trial)
            self.ladder_ = controls_of.ladder(trial, self.trained_.name, rungs, self.result_, seeds[2])

    def _sizes(self, trial: Trial) -> list[int]:
        largest = int(np.bincount(trial.codes[trial.split.train]).min())
        if self.growth_sizes is None:
            sizes = [largest // 8, largest // 4, largest // 2, largest]
            return [size for size in sizes if size >= _SMALLEST_GROWTH]
        return sorted(int(size) for size in self.growth_sizes)

    def _rungs(self, trial: Trial) -> list[Rung]:
        if isinstance(self.ladder, Mapping):
            return [self._own_rung(str(name), change) for name, change in self.ladder.items()]
        names = self.modality_.default_rungs(trial.data) if self.ladder is None else tuple(self.ladder)
        return [rung for name in names for rung in self.modality_.rung(name, self.importance_, trial)]

    def _own_rung(self, name: str, change: Callable[[Any], Any]) -> Rung:
        def apply(trial: Trial, _: np.random.Generator) -> Features:
            modality = self._new_modality()
            changed = modality.check(f"what {name!r} gave", change(trial.data))
            if len(changed) != len(trial.codes):
                raise InputError(f"{name!r} gave {len(changed)} rows for {len(trial.codes)}", expected="as many rows")
            return modality.features(changed, trial.split)

        return Rung(name, apply)

    def _typical(self, split: Split, codes: NDArray[np.intp], proba: NDArray[np.float64]) -> pd.DataFrame:
        """Return the held-out rows of each source that look most like it."""
        positions, truth = np.concatenate(list(self.rows_.values())), codes[split.held_out]
        found: list[tuple[str, int, float]] = []
        for j, source in enumerate(self.sources_):
            own = np.flatnonzero(truth == j)
            best = own[np.argsort(-proba[own, j], kind="stable")][:_PROTOTYPES]
            found += [(source, int(positions[split.held_out[i]]), float(proba[i, j])) for i in best]
        return named_frame(found, ["source", "row", "probability"])


def _refuse_copies(modality: Modality, given: list[Any], parts: dict[str, Any]) -> None:
    names = list(parts)
    for j, name in enumerate(names):
        for i, other in enumerate(names[:j]):
            if given[i] is given[j] or modality.same(parts[other], parts[name]):
                raise InputError(
                    f"{other} and {name} hold the same rows",
                    expected="different samples",
                    remedy="Rows that two sources share are a leak that no classifier sees: near_duplicates finds them",
                )


def _groups_from_column(column: str, parts: dict[str, pd.DataFrame]) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    for name, part in parts.items():
        if column not in part.columns:
            raise InputError(f"{name} has no column {column!r}", expected="the column of groups in every source")
    groups = {name: part[column].to_numpy(dtype=object) for name, part in parts.items()}
    return {name: as_frame(part.drop(columns=column), name) for name, part in parts.items()}, groups


def _sha256(features: Features) -> str:
    digest = hashlib.sha256()
    if features.values.dtype == object:
        for text in features.values:
            encoded = text.encode("utf-8", "surrogatepass")
            digest.update(len(encoded).to_bytes(8, "big") + encoded)
    else:
        digest.update(np.ascontiguousarray(features.values).tobytes())
    return digest.hexdigest()


def _seed(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    return random_state
