"""The mutable forest behind the estimators: the rows, the trees, and a lock that lets many ask while one changes.

The forest owns its rows. A row lives in a *slot*; a removal wipes its slot and hands it to the next row that comes.
Nothing here knows about labels, data frames or scikit-learn.
"""

import hashlib
import json
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import joblib
import numpy as np

from aboveboard.unlearning.dynfrs._hash import occurrences, root_path
from aboveboard.unlearning.dynfrs._kernels import (
    FREE,
    IDS_END,
    LIVE,
    N_NODES,
    N_TAGGED,
    TAGGED,
    Config,
    Rows,
    Tree,
    accumulate,
    compact,
    empty_tree,
    modify,
    plant,
    reserve_ids,
    resolve,
    settle,
)

__all__ = ["ALGORITHM", "Forest", "SharedLock"]

ALGORITHM = 1
"""Changes whenever the forest that a seed and rows give changes; a file of another number is not loaded."""

_ROOM = 0.06
_CHUNK = 4096
_PARALLEL_BATCH = 64


class SharedLock:
    """Many readers or one writer; a writer that waits goes before readers that come after it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._readers = 0
        self._writing = False
        self._waiting = 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: not self._writing and not self._waiting)
            self._readers += 1
        try:
            yield
        finally:
            with self._condition:
                self._readers -= 1
                if not self._readers:
                    self._condition.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._condition:
            self._waiting += 1
            try:
                self._condition.wait_for(lambda: not self._writing and not self._readers)
            finally:
                self._waiting -= 1
            self._writing = True
        try:
            yield
        finally:
            with self._condition:
                self._writing = False
                self._condition.notify_all()


class Forest:
    """A forest of extremely randomised trees from which rows can be taken and to which rows can be added.

    Parameters
    ----------
    seed : int
        64 bits; with the rows and their ids it determines the forest.
    n_trees, k : int
        Trees, and how many of them each row is put into.
    cfg : Config
    X : ndarray of float32, shape (n, d)
    label : ndarray of int32, shape (n,)
    target : ndarray of int64, shape (n,), or (0,) for classification
    weight : ndarray of int32, shape (n,)
    uid : ndarray of int64, shape (n,)
        Distinct.
    lazy : bool
        Whether changed nodes are grown when they are next needed, or at once.
    n_jobs : int or None
        Threads over trees.
    """

    def __init__(
        self,
        seed: int,
        n_trees: int,
        k: int,
        cfg: Config,
        X: np.ndarray,
        label: np.ndarray,
        target: np.ndarray,
        weight: np.ndarray,
        uid: np.ndarray,
        *,
        lazy: bool,
        n_jobs: int | None,
    ) -> None:
        self.seed, self.n_trees, self.k = seed, n_trees, k
        self.cfg = cfg._replace(weighted=bool((weight != 1).any()))
        self.lazy, self.n_jobs = lazy, n_jobs
        self.X = np.array(X, dtype=np.float32, order="C")
        self.label, self.target = label.astype(np.int32), target.astype(np.int64)
        self.weight, self.uid = weight.astype(np.int32), uid.astype(np.int64)
        self.alive = np.ones(len(X), dtype=np.uint8)
        self.free: list[int] = []
        self.n_counting, self.weight_total, self.target_total = 0, 0, 0
        self._tally(slice(None), 1)
        self.slot_of = dict(zip(self.uid.tolist(), range(len(X)), strict=True))
        self.version = 0
        self.lock = SharedLock()
        self.broken = False
        self.trees: list[Tree] = self._all_grown()

    def __len__(self) -> int:
        return len(self.slot_of)

    def __getstate__(self) -> dict[str, Any]:
        with self.lock.reading():
            state = {key: value for key, value in self.__dict__.items() if key != "lock"}
            state["trees"] = [tuple(tree) for tree in self.trees]
            state["cfg"] = tuple(self.cfg)
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.trees = [Tree(*(np.array(field) for field in tree)) for tree in state["trees"]]
        self.cfg = Config(*state["cfg"])
        self.lock = SharedLock()

    # -- changing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock for a change; first grow all trees afresh where an earlier change was cut short."""
        with self.lock.writing():
            if self.broken:
                self.trees = self._all_grown()
                self.broken = False
            yield

    def add(self, X: np.ndarray, label: np.ndarray, target: np.ndarray, weight: np.ndarray, uid: np.ndarray) -> None:
        """Add rows; their ids must be new. When it is interrupted, the rows are not there."""
        with self._changing():
            if not self.slot_of.keys().isdisjoint(uid.tolist()):
                raise ValueError("another thread has added rows with these ids meanwhile")
            if (weight != 1).any():
                self.cfg = self.cfg._replace(weighted=True)
            slots = self._take_slots(len(uid))
            self.X[slots], self.label[slots] = X, label
            self.weight[slots], self.uid[slots] = weight, uid
            if self.cfg.regression:
                self.target[slots] = target
            self.alive[slots] = 1
            try:
                self._change(slots, 1)
            except BaseException:
                self.broken = True
                self._wipe(slots)
                raise
            self.slot_of.update(zip(uid.tolist(), slots.tolist(), strict=True))
            self._tally(slots, 1)
            self.version += 1

    def remove(self, uid: Sequence[int]) -> None:
        """Remove rows; their ids must be known and distinct. When it is interrupted, the rows are still there."""
        with self._changing():
            slots = np.array([self.slot_of[i] for i in uid], dtype=np.int32)
            self.alive[slots] = 0
            try:
                self._change(slots, -1)
            except BaseException:
                self.broken = True
                self.alive[slots] = 1
                raise
            self._tally(slots, -1)
            self._wipe(slots)
            for i in uid:
                del self.slot_of[i]
            self.version += 1

    def resolve(self) -> None:
        """Grow every tagged node."""
        with self._changing():
            self._resolve()

    def _resolve(self) -> None:
        tagged = [t for t, tree in enumerate(self.trees) if tree.meta[N_TAGGED]]
        rows = self._rows()
        for t, tree in zip(tagged, self._each(tagged, lambda t: resolve(self.trees[t], rows, self.cfg)), strict=True):
            self.trees[t] = tree

    def _change(self, slots: np.ndarray, sign: int) -> None:
        rows, cfg, alive = self._rows(), self.cfg, self.alive
        trees = self.trees

        def apply(t: int, batch: np.ndarray) -> None:
            tree = trees[t]
            extra = len(batch) if sign > 0 else 0
            if tree.ids.size - tree.meta[IDS_END] < 2 * (tree.meta[LIVE] + extra):
                trees[t] = tree = reserve_ids(tree, extra)
            modify(tree, rows, cfg, alive, batch, sign)
            if not self.lazy and tree.meta[N_TAGGED]:
                trees[t] = resolve(tree, rows, cfg)

        if len(slots) == 1 and self.weight[slots[0]]:
            for t in occurrences(np.uint64(self.seed), self.uid[slots], self.n_trees, self.k)[0].tolist():
                apply(t, slots)
            return
        members = self._members(slots)
        touched = [t for t in range(self.n_trees) if len(members[t])]
        if len(slots) < _PARALLEL_BATCH:
            for t in touched:
                apply(t, members[t])
        else:
            self._each(touched, lambda t: apply(t, members[t]))

    def _wipe(self, slots: np.ndarray) -> None:
        """Overwrite rows and free their slots."""
        self.alive[slots] = 0
        self.X[slots], self.label[slots], self.weight[slots], self.uid[slots] = 0.0, 0, 0, -1
        if self.cfg.regression:
            self.target[slots] = 0
        self.free += slots.tolist()

    def _take_slots(self, n: int) -> np.ndarray:
        fresh = n - len(self.free)
        if fresh > 0:
            size = len(self.uid)
            grown = size + max(fresh, size // 4, 16)
            for name in ("X", "label", "weight", "uid", "alive", *(["target"] if self.cfg.regression else [])):
                old = getattr(self, name)
                new = np.zeros((grown, *old.shape[1:]), dtype=old.dtype)
                new[:size] = old
                setattr(self, name, new)
            self.uid[size:] = -1
            self.free += range(grown - 1, size - 1, -1)
        return np.array([self.free.pop() for _ in range(n)], dtype=np.int32)

    # -- asking -------------------------------------------------------------------------------------------------------

    def answer(self, X: np.ndarray) -> np.ndarray:
        """Return the mean of the trees' answers: class shares, shape (n, C), or means in target steps, shape (n, 1)."""
        X = np.ascontiguousarray(X, dtype=np.float32)
        with self.lock.reading():
            out = None if self.broken else self._answer(X)
        if out is None:
            with self._changing():
                out = self._answer_growing(X)
        return out

    def _answer(self, X: np.ndarray) -> np.ndarray | None:
        """Return the mean answer, or None where a tagged node stands in the way. Empty trees do not vote."""
        voting = [tree for tree in self.trees if tree.meta[LIVE]]
        out = np.zeros((len(X), self.cfg.n_classes))

        def ask(start: int) -> bool:
            rows, sums = X[start : start + _CHUNK], out[start : start + _CHUNK]
            return all(accumulate(tree, self.cfg, rows, sums, 0) == len(rows) for tree in voting)

        return out / len(voting) if all(self._each(range(0, len(X), _CHUNK), ask)) else None

    def _answer_growing(self, X: np.ndarray) -> np.ndarray:
        """Return the mean answer, growing the tagged nodes on the way."""
        rows = self._rows()
        out = np.zeros((len(X), self.cfg.n_classes))
        voting = [t for t, tree in enumerate(self.trees) if tree.meta[LIVE]]
        for t in voting:
            done = accumulate(self.trees[t], self.cfg, X, out, 0)
            if done < len(X):
                self.trees[t] = settle(self.trees[t], rows, self.cfg, X[done:])
                accumulate(self.trees[t], self.cfg, X, out, done)
        return out / len(voting)

    # -- proving ------------------------------------------------------------------------------------------------------

    def canonical(self, t: int) -> Tree:
        """Return tree `t`, grown whole, in preorder, with rows named by the rank of their ids."""
        with self._changing():
            return self._canonical(t, self.rank())

    def check(self, trees: Sequence[int], header: dict[str, Any]) -> tuple[int, str]:
        """Return how many of `trees` differ from the same tree grown afresh on the living rows, and the digest."""
        with self._changing():
            order, rank = self.order(), self.rank()
            held = occurrences(np.uint64(self.seed), self.uid[order], self.n_trees, self.k)
            differing = 0
            for t in trees:
                mine = (held == t).any(axis=1) & (self.weight[order] > 0)
                tree, _ = self._grown(t, order[mine])
                afresh = compact(tree, np.flatnonzero(mine).astype(np.int32), self.cfg, 0)
                differing += tree_digest(afresh) != tree_digest(self._canonical(t, rank))
            return differing, self._digest(header)

    def _canonical(self, t: int, rank: np.ndarray) -> Tree:
        self.trees[t] = resolve(self.trees[t], self._rows(), self.cfg)
        return compact(self.trees[t], rank, self.cfg, 0)

    def left_without(self, uid: Sequence[int]) -> int:
        """Return how many rows of weight above 0 would be left without these."""
        with self.lock.reading():
            slots = np.array([self.slot_of[i] for i in uid], dtype=np.int64)
            return self.n_counting - int((self.weight[slots] > 0).sum())

    def order(self) -> np.ndarray:
        """Return the slots of the living rows, in the order of their ids."""
        slots = np.flatnonzero(self.alive)
        return slots[np.argsort(self.uid[slots])].astype(np.int32)

    def rank(self) -> np.ndarray:
        """Return for each slot the rank of its id among the living, -1 for empty slots."""
        rank = np.full(len(self.uid), -1, dtype=np.int32)
        order = self.order()
        rank[order] = np.arange(len(order), dtype=np.int32)
        return rank

    def digest(self, header: dict[str, Any]) -> str:
        """Return the sha256 of `header`, the rows in the order of their ids, and every tree in canonical form."""
        with self._changing():
            return self._digest(header)

    def _digest(self, header: dict[str, Any]) -> str:
        order, rank = self.order(), self.rank()
        state = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        for name in ("uid", "X", "label", "weight", *(["target"] if self.cfg.regression else [])):
            state.update(_bytes(getattr(self, name)[order]))
        for tree in self._each(range(self.n_trees), lambda t: tree_digest(self._canonical(t, rank))):
            state.update(tree)
        return state.hexdigest()

    def living(self) -> dict[str, np.ndarray]:
        """Return copies of the living rows, in the order of their ids: X, label, target, weight and uid."""
        with self.lock.reading():
            order = self.order()
            rows = {name: getattr(self, name)[order] for name in ("X", "label", "weight", "uid")}
            rows["target"] = self.target[order] if self.cfg.regression else self.target
            return rows

    @property
    def n_tagged(self) -> int:
        with self.lock.reading():
            return int(sum(tree.meta[N_TAGGED] for tree in self.trees))

    @property
    def rows_waiting(self) -> int:
        """How many rows, counted once per tree, lie in nodes that wait to be grown."""
        with self.lock.reading():
            return int(
                sum(
                    tree.place[: tree.meta[N_NODES], 1][tree.child[: tree.meta[N_NODES]] == TAGGED].sum()
                    for tree in self.trees
                    if tree.meta[N_TAGGED]
                )
            )

    @property
    def n_nodes(self) -> int:
        with self.lock.reading():
            return int(sum((tree.child[: tree.meta[N_NODES]] != FREE).sum() for tree in self.trees))

    @property
    def memory_bytes(self) -> int:
        with self.lock.reading():
            rows = sum(getattr(self, name).nbytes for name in ("X", "label", "target", "weight", "uid", "alive"))
            return int(rows + sum(field.nbytes for tree in self.trees for field in tree))

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _tally(self, slots: Any, sign: int) -> None:
        """Keep the totals that decide whether a request can be met; whole numbers of any size."""
        weight = self.weight[slots]
        self.n_counting += sign * int((weight > 0).sum())
        self.weight_total += sign * int(weight.sum(dtype=np.int64))
        if self.cfg.regression:
            # In halves of 31 bits, so that no sum overflows before Python takes over.
            size = np.abs(self.target[slots])
            high, low = size >> 31, size & (2**31 - 1)
            self.target_total += sign * ((int((high * weight).sum()) << 31) + int((low * weight).sum()))

    def _rows(self) -> Rows:
        return Rows(self.X.reshape(-1), self.cfg.n_features, 1, self.label, self.target, self.weight)

    def _members(self, slots: np.ndarray) -> list[np.ndarray]:
        """Return for each tree which of `slots` it holds, in their order; rows of weight 0 are in none."""
        if not self.weight[slots].all():
            slots = slots[self.weight[slots] > 0]
        trees = occurrences(np.uint64(self.seed), self.uid[slots], self.n_trees, self.k).reshape(-1)
        kind = np.uint16 if self.n_trees <= 2**16 else np.int64
        by_tree = np.argsort(trees.astype(kind), kind="stable")
        bounds = np.concatenate([[0], np.cumsum(np.bincount(trees, minlength=self.n_trees))])
        held = slots[by_tree // self.k]
        return [held[bounds[t] : bounds[t + 1]] for t in range(self.n_trees)]

    def _all_grown(self) -> list[Tree]:
        """Return all trees, grown afresh on the living rows."""
        members = self._members(np.flatnonzero(self.alive).astype(np.int32))
        return self._each(range(self.n_trees), lambda t: compact(*self._grown(t, members[t]), self.cfg, _ROOM))

    def _grown(self, t: int, slots: np.ndarray) -> tuple[Tree, np.ndarray]:
        """Grow tree `t` on a packed copy of its rows, columns together; its ids count rows of the copy."""
        cfg = self.cfg
        block = np.ascontiguousarray(self.X[slots].T)
        target = self.target[slots] if cfg.regression else self.target
        rows = Rows(block.reshape(-1), 1, len(slots), self.label[slots], target, self.weight[slots])
        tree = empty_tree(np.uint64(root_path(np.uint64(self.seed), t)), len(slots), 64, 32, cfg)
        plant(tree, rows, np.arange(len(slots), dtype=np.int32))
        return resolve(tree, rows, cfg), slots

    def _each(self, items: Sequence[int], work: Callable[[int], Any]) -> list[Any]:
        """Run `work` for every item, in threads where `n_jobs` allows it; the kernels let go of the interpreter."""
        jobs = joblib.effective_n_jobs(self.n_jobs)
        if jobs == 1 or len(items) < 2:
            return [work(item) for item in items]
        return list(joblib.Parallel(n_jobs=jobs, prefer="threads")(joblib.delayed(work)(item) for item in items))


def tree_digest(tree: Tree) -> bytes:
    """Return the sha256 of a canonical tree: its splits, counts, remembered candidates and rows."""
    state = hashlib.sha256()
    for field in tree:
        state.update(_bytes(field))
    return state.digest()


def _bytes(array: np.ndarray) -> bytes:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return struct.pack("<q", little.nbytes) + little.tobytes()
