"""What the classifier and the regressor share: rows go in, rows come out, and it can be shown."""

import json
import math
import numbers
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import aboveboard
from aboveboard.core import Assumption, Certificate, InputError, Reference, require
from aboveboard.unlearning.dynfrs import persistence
from aboveboard.unlearning.dynfrs._input import categorical_mask, listed, read_features, read_ids, read_weights

__all__ = ["PAPER", "ForestEstimator"]

PAPER = Reference(
    title="DynFrs: An Efficient Framework for Machine Unlearning in Random Forest",
    authors="S. Wang, Z. Shen, X. Qiao, T. Zhang, M. Zhang",
    venue="ICLR",
    year=2025,
    url="https://arxiv.org/abs/2410.01588",
)

_NOT_COVERED = (
    "Requests chosen by somebody who has seen the forest: the paper's statement about its distribution, and "
    "what follows from it about privacy, is for requests chosen independently of its randomness. The equality with a "
    "refit holds for them too.",
    "Scalers, encoders and other steps before the forest that were fitted on the removed rows.",
    "Hyper-parameters, features or models that were chosen by looking at the removed rows.",
    "Copies outside the forest: source data, older files and backups, exports, predictions already given, "
    "and blocks that a disk has not yet overwritten.",
)


class ForestEstimator(BaseEstimator):  # type: ignore[misc]
    """The parts of both estimators; not for use by itself."""

    _regression: ClassVar[bool] = False

    forest_: Any
    seed_: int

    # -- changing -----------------------------------------------------------------------------------------------------

    def remove(self, sample_id: Any) -> Self:
        """Remove rows, as if they had never been there.

        Parameters
        ----------
        sample_id : int or array of int
            The ids of the rows, known and distinct.

        Returns
        -------
        self

        Raises
        ------
        KeyError
            For unknown ids, which it names; nothing has changed then.
        InputError
            For repeated ids, or where fewer than 2 rows would be left; nothing has changed then.

        Notes
        -----
        One row: O(k D p s) for k of the T trees, plus ``O(|S_u|)`` where the split of a node u with rows S_u changes
        and ``O(|S_u| s)`` per attribute whose range in u shrinks. The rows of many ids are routed down together.
        """
        check_is_fitted(self, "forest_")
        self.forest_.remove(self.check_removal(sample_id).tolist())
        return self

    def check_removal(self, sample_id: Any) -> np.ndarray:
        """Return the ids as an array if `remove` would accept them; raise what it would raise otherwise."""
        check_is_fitted(self, "forest_")
        ids = read_ids(sample_id)
        known = self.forest_.slot_of
        unknown = [i for i in ids.tolist() if i not in known]
        if unknown:
            raise KeyError(f"{len(unknown):,} record ids are unknown, nothing was removed: {listed(unknown)}")
        left = self.forest_.left_without(ids.tolist())
        if left < 2:
            raise InputError(
                f"removing {len(ids):,} of {len(known):,} rows would leave {left} of weight above 0",
                expected="at least 2 rows left",
                remedy="Discard the model instead",
            )
        return ids

    def resolve(self) -> Self:
        """Grow every node that waits for its next use; answers are the same before and after."""
        check_is_fitted(self, "forest_")
        self.forest_.resolve()
        return self

    # -- looking ------------------------------------------------------------------------------------------------------

    @property
    def sample_ids_(self) -> np.ndarray:
        """Ids of the rows that the forest holds, ascending, shape (n,), int64."""
        check_is_fitted(self, "forest_")
        return np.asarray(self.forest_.uid[self.forest_.order()])

    @property
    def n_tagged_(self) -> int:
        """How many nodes wait to be grown."""
        check_is_fitted(self, "forest_")
        return int(self.forest_.n_tagged)

    @property
    def memory_bytes_(self) -> int:
        """Bytes held by the rows and the trees."""
        check_is_fitted(self, "forest_")
        return int(self.forest_.memory_bytes)

    # -- proving ------------------------------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Return the sha256 of the whole forest in canonical form, as 64 hexadecimal digits.

        It covers the settings, the seed, the rows and their ids, and every node: split, counts, remembered candidates
        with their ranges. Two forests have equal fingerprints where they are bit-identical, and it does not depend on
        the order of requests, on the machine or on what has been asked. Grows all tagged nodes. Cost: one pass over
        rows and trees.
        """
        check_is_fitted(self, "forest_")
        return str(self.forest_.digest(self._header()))

    @property
    def certificate_(self) -> Certificate:
        """The guarantee, unchecked; `certify` checks it. Computes the fingerprint."""
        return self._certificate((), self.fingerprint())

    def certify(self, n_probe: int | None = None) -> Certificate:
        """Fit trees afresh on the rows that are left, and compare them with this forest's, node by node.

        Parameters
        ----------
        n_probe : int or None
            How many trees to check, spread evenly; None for all.

        Returns
        -------
        Certificate
            ``holds`` is False where a single node differs.

        Notes
        -----
        Costs a fit of the trees that are checked, one at a time.
        """
        check_is_fitted(self, "forest_")
        n_trees = self.forest_.n_trees
        if n_probe is not None and not (isinstance(n_probe, numbers.Integral) and 1 <= n_probe <= n_trees):
            raise InputError(f"n_probe is {n_probe!r}", expected=f"a whole number from 1 to {n_trees}, or None for all")
        probed = np.unique(np.linspace(0, n_trees - 1, int(n_probe or n_trees)).round().astype(int))
        differing, fingerprint = self.forest_.check(probed.tolist(), self._header())
        check = Assumption(
            "The forest equals one fitted afresh on the rows that are left.",
            "checked",
            f"{len(probed)} of {n_trees} trees refitted and compared bit by bit: splits, counts, candidates and rows",
            float(differing),
            0.0,
            differing == 0,
        )
        return self._certificate((check,), fingerprint, trees_compared=len(probed))

    def _certificate(self, checked: Sequence[Assumption], fingerprint: str, **more: Any) -> Certificate:
        check_is_fitted(self, "forest_")
        forest = self.forest_
        parameters = {"rows": len(forest), "trees": forest.n_trees, "trees_per_row": forest.k, "seed": self.seed_}
        return Certificate(
            kind="exact unlearning",
            guarantee=(
                "The forest is bit-identical to one fitted from scratch, with the same settings and seed, on exactly "
                f"the {len(forest):,} rows that it holds now; no other row that it ever held has any influence on it."
            ),
            parameters=parameters | more,
            assumptions=(
                *checked,
                Assumption("Settings and seed were chosen without looking at the rows that were removed."),
                Assumption("Record ids carry no information about the rows: they decide which trees hold a row."),
            ),
            numerics={
                "precision": "integer counts; thresholds in float32, scores in float64 computed from the counts",
                "noise_source": "none: hashes of seed, tree, path and attribute",
            },
            does_not_cover=_NOT_COVERED,
            subject={"model": fingerprint},
            library_version=aboveboard.__version__,
            reference=PAPER,
        )

    # -- keeping ------------------------------------------------------------------------------------------------------

    def save(self, path: Any) -> None:
        """Write the model to one file without pickle, replacing an older file in one step.

        The file holds the rows that the forest has now, their ids, the settings and the seed: they determine the
        forest. A row that was removed is in it nowhere. A crash leaves the old file or the new one, never a mixture.

        Parameters
        ----------
        path : str or path
        """
        check_is_fitted(self, "forest_")
        persistence.save(self, path)

    @classmethod
    def load(cls, path: Any, *, n_jobs: int | None = None) -> Self:
        """Read a model that `save` wrote, and grow its forest again: bit-identical, at the cost of a fit.

        Raises
        ------
        InputError
            When the file is no such model, is damaged, or was written by a version whose forests differ.
        """
        loaded: Self = persistence.load(cls, path, n_jobs=n_jobs)
        return loaded

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _header(self) -> dict[str, Any]:
        """Return everything that shapes the forest besides the rows."""
        from aboveboard.unlearning.dynfrs._forest import ALGORITHM

        cfg = self.forest_.cfg
        names = ("n_features", "n_candidates", "n_thresholds", "n_classes", "max_depth", "min_split")
        return {
            "algorithm": ALGORITHM,
            "estimator": type(self).__name__,
            "seed": self.seed_,
            "trees": self.forest_.n_trees,
            "trees_per_row": self.forest_.k,
            "categorical": np.flatnonzero(cfg.categorical).tolist(),
            **{name: int(getattr(cfg, name)) for name in names},
            **self._target_header(),
        }

    def _target_header(self) -> dict[str, Any]:
        raise NotImplementedError

    def _start(
        self, X: np.ndarray, label: np.ndarray, target: np.ndarray, weight: Any, sample_id: Any, n_classes: int
    ) -> None:
        """Build the forest from checked features and targets."""
        settings = self._settings(X.shape[1], n_classes)
        if len(X) < 2:
            raise InputError(f"{len(X)} sample was given", expected="at least 2 rows")
        ids = np.arange(len(X)) if sample_id is None else read_ids(sample_id, len(X))
        weights = read_weights(weight, len(X))
        self._check_total(target, weights)
        random = check_random_state(self.random_state)
        seed = (int(random.randint(2**32, dtype=np.uint64)) << 32) | int(random.randint(2**32, dtype=np.uint64))
        self.seed_ = seed
        self._next_id = int(ids.max()) + 1
        self._build(seed, settings, X, label, target, weights, ids)

    def _build(
        self,
        seed: int,
        settings: dict[str, Any],
        X: np.ndarray,
        label: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        ids: np.ndarray,
    ) -> None:
        require("numba", extra="fast", feature=type(self).__name__)
        from aboveboard.unlearning.dynfrs._forest import Forest
        from aboveboard.unlearning.dynfrs._kernels import Config

        self.forest_ = Forest(
            seed,
            settings["trees"],
            settings["trees_per_row"],
            Config(**settings["config"]),
            X,
            label,
            target,
            weight,
            ids,
            lazy=bool(self.lazy),
            n_jobs=self.n_jobs,
        )

    def _extend(self, X: np.ndarray, label: np.ndarray, target: np.ndarray, weight: Any, sample_id: Any) -> None:
        """Add checked rows to the forest."""
        n = len(X)
        if sample_id is None:
            sample_id = np.arange(self._next_id, self._next_id + n)
        ids = read_ids(sample_id, n)
        used = [i for i in ids.tolist() if i in self.forest_.slot_of]
        if used:
            raise InputError(
                f"{len(used):,} record ids are in use already: {listed(used)}",
                expected="a new id for each new row",
                remedy="Remove the old row first to correct it",
            )
        weights = read_weights(weight, n)
        if self.forest_.weight_total + int(weights.sum(dtype=np.int64)) >= 2**31:
            raise InputError("with these rows the weights would sum to 2**31 or more", expected="less")
        self._check_total(target, weights, self.forest_.target_total)
        self.forest_.add(X, label, target, weights, ids)
        self._next_id = max(self._next_id, int(ids.max()) + 1)

    def _check_total(self, target: np.ndarray, weight: np.ndarray, held: int = 0) -> None:
        """Refuse targets whose sums would not fit; only the regressor has any."""

    def _settings(self, d: int, n_classes: int) -> dict[str, Any]:
        """Return the checked settings."""
        whole: dict[str, tuple[Any, int, int]] = {
            "n_estimators": (self.n_estimators, 1, 2**20),
            "n_thresholds": (self.n_thresholds, 1, 2**15),
            "min_samples_split": (self.min_samples_split, 2, 2**31 - 1),
        }
        for name, (value, low, high) in whole.items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
                raise InputError(f"{name} is {value!r}", expected=f"a whole number from {low} to {high}")
        depth: Any = self.max_depth
        if depth is not None and (isinstance(depth, bool) or not isinstance(depth, numbers.Integral) or depth < 0):
            raise InputError(f"max_depth is {depth!r}", expected="a whole number at or above 0, or None for no limit")
        share: Any = self.occurrence
        if isinstance(share, bool) or not isinstance(share, int | float | np.number) or not 0 < share <= 1:
            raise InputError(f"occurrence is {share!r}", expected="a share of the trees in (0, 1]")
        trees, s = int(self.n_estimators), int(self.n_thresholds)
        names = getattr(self, "feature_names_in_", None)
        mask = categorical_mask(self.categorical_features, None if names is None else list(names), d)
        return {
            "trees": trees,
            "trees_per_row": max(1, math.ceil(float(share) * trees - 1e-9)),
            "config": {
                "n_features": d,
                "n_candidates": self._n_candidates(d),
                "n_thresholds": s,
                "stride": -(-s // 8) * 8,
                "n_classes": n_classes,
                "max_depth": 2**31 - 1 if depth is None else min(int(depth), 2**31 - 1),
                "min_split": int(self.min_samples_split),
                "regression": self._regression,
                "weighted": False,
                "categorical": mask,
            },
        }

    def _n_candidates(self, d: int) -> int:
        given: Any = self.max_features
        if given is None:
            return d
        if isinstance(given, str) and given == "sqrt":
            return min(d, math.isqrt(d) + 1)
        if isinstance(given, int | np.integer) and not isinstance(given, bool) and 1 <= given <= d:
            return int(given)
        if isinstance(given, float) and 0 < given <= 1:
            return max(1, int(given * d))
        raise InputError(
            f"max_features is {given!r}", expected=f"'sqrt', None, a whole number from 1 to {d}, or a share in (0, 1]"
        )

    def _features(self, X: Any, *, reset: bool) -> np.ndarray:
        return read_features(self, X, reset=reset)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "forest_")


def json_label(label: Any) -> Any:
    """Return a class label as JSON holds it; labels are text, numbers or booleans."""
    value = label.item() if hasattr(label, "item") else label
    json.dumps(value)
    return value
