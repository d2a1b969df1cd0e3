"""The trees: flat arrays that grow and shrink in place, and the compiled loops over them.

One tree is a `Tree`, a tuple of arrays. A node is *internal* (its two children stand side by side, and a record holds
its candidates), a *leaf*, or *tagged* (it holds only its rows and must be grown before use). Leaves and tagged nodes
own a segment of ``ids``; internal nodes own none, their rows are those of the leaves below them. Freed nodes and
records are chained in free lists and wiped.

Only integers are ever accumulated, so no order of requests can leave a trace; a score is computed afresh from them.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from aboveboard.unlearning.dynfrs._hash import below, child_path, hash_value, mix, stream_word

__all__ = [
    "FREE",
    "IDS_END",
    "LEAF",
    "LIVE",
    "N_NODES",
    "N_TAGGED",
    "TAGGED",
    "Config",
    "Rows",
    "Tree",
    "accumulate",
    "compact",
    "empty_tree",
    "modify",
    "plant",
    "reserve_ids",
    "resolve",
    "settle",
]

LEAF, TAGGED, FREE = -1, -2, -3
# Places of a tree's counters in ``meta``.
N_NODES, FREE_PAIR, N_RECORDS, FREE_RECORD, IDS_END, N_TAGGED, LIVE = range(7)

_ATTRIBUTE_SALT, _ORDER_SALT = np.uint64(0x415454), np.uint64(0x4F52444552)
_S32 = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


class Tree(NamedTuple):
    """One tree; N nodes, R records, p attributes per record, C classes (1 for regression), s' padded thresholds."""

    child: np.ndarray  # (N,) int32: left child, the right one follows it; LEAF, TAGGED or FREE
    feature: np.ndarray  # (N,) int32: split attribute
    threshold: np.ndarray  # (N,) float32: a row goes left where its value is at most this
    depth: np.ndarray  # (N,) int32
    path: np.ndarray  # (N,) uint64: hash of the way from the root
    place: np.ndarray  # (N, 3) int32: record of an internal node, else offset, length and capacity in ids
    weight: np.ndarray  # (N, C) int32: weight of the rows, by class
    total: np.ndarray  # (N,) int64: sum of the targets (regression)
    head: np.ndarray  # (R, 3) int32: remembered attributes, attributes drawn, best candidate (place * s + threshold)
    attr: np.ndarray  # (R, p, 3) int32: attribute, weight at its minimum, weight at its maximum
    span: np.ndarray  # (R, p, 2) float32: minimum, maximum
    left: np.ndarray  # (R, p * C * s') int32: weight left of each candidate, by class
    left_sum: np.ndarray  # (R, p * s') int64: sum of targets left of each candidate (regression, else R = 0)
    ids: np.ndarray  # int32: rows, in segments
    meta: np.ndarray  # (8,) int64: counters


class Rows(NamedTuple):
    """The rows that ids point to: value of attribute a in row i is ``values[i * row_step + a * column_step]``."""

    values: np.ndarray  # float32, flat
    row_step: int
    column_step: int
    label: np.ndarray  # (n,) int32, class codes (0 for regression)
    target: np.ndarray  # (n,) int64, targets in steps (regression, else empty)
    weight: np.ndarray  # (n,) int32


class Config(NamedTuple):
    """What shapes a tree, all of it known before any row is seen."""

    n_features: int
    n_candidates: int  # p
    n_thresholds: int  # s
    stride: int  # s rounded up to whole vectors
    n_classes: int  # C, 1 for regression
    max_depth: int
    min_split: int
    regression: bool
    weighted: bool
    categorical: np.ndarray  # (d,) bool


class _Work(NamedTuple):
    values: np.ndarray
    offset: np.ndarray
    weight: np.ndarray
    target: np.ndarray
    order: np.ndarray
    below: np.ndarray
    below_sum: np.ndarray
    cut: np.ndarray
    score: np.ndarray
    side: np.ndarray


@njit(cache=True, nogil=True)
def empty_tree(path: np.uint64, n_ids: int, n_nodes: int, n_records: int, cfg: Config) -> Tree:
    """Return a tree whose root is tagged and holds no rows yet."""
    sums = n_records if cfg.regression else 0
    p, wide = cfg.n_candidates, cfg.n_candidates * cfg.stride
    tree = Tree(
        np.full(n_nodes, FREE, np.int32),
        np.full(n_nodes, -1, np.int32),
        np.zeros(n_nodes, np.float32),
        np.zeros(n_nodes, np.int32),
        np.zeros(n_nodes, np.uint64),
        np.zeros((n_nodes, 3), np.int32),
        np.zeros((n_nodes, cfg.n_classes), np.int32),
        np.zeros(n_nodes, np.int64),
        np.zeros((n_records, 3), np.int32),
        np.zeros((n_records, p, 3), np.int32),
        np.zeros((n_records, p, 2), np.float32),
        np.zeros((n_records, wide * cfg.n_classes), np.int32),
        np.zeros((sums, wide), np.int64),
        np.full(n_ids, -1, np.int32),
        np.zeros(8, np.int64),
    )
    tree.child[0] = TAGGED
    tree.path[0] = path
    tree.meta[N_NODES] = 1
    tree.meta[FREE_PAIR] = -1
    tree.meta[FREE_RECORD] = -1
    tree.meta[N_TAGGED] = 1
    return tree


# -- growing ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def plant(tree: Tree, rows: Rows, ids: np.ndarray) -> None:
    """Give the tagged root of an empty tree its rows."""
    for i in range(ids.size):
        r = ids[i]
        tree.ids[i] = r
        if rows.target.size:
            tree.weight[0, 0] += rows.weight[r]
            tree.total[0] += rows.target[r] * rows.weight[r]
        else:
            tree.weight[0, rows.label[r]] += rows.weight[r]
    tree.place[0, 0] = 0
    tree.place[0, 1] = ids.size
    tree.place[0, 2] = ids.size
    tree.meta[IDS_END] = ids.size
    tree.meta[LIVE] = ids.size


@njit(cache=True, nogil=True)
def resolve(tree: Tree, rows: Rows, cfg: Config) -> Tree:
    """Grow every tagged node; return the tree (its arrays may have been enlarged)."""
    if tree.meta[N_TAGGED] == 0:
        return tree
    largest = 1
    for u in range(tree.meta[N_NODES]):
        if tree.child[u] == TAGGED:
            largest = max(largest, tree.place[u, 1])
    work = _workspace(largest, cfg)
    stack = np.empty(64, np.int64)
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        u = stack[top]
        if tree.child[u] == TAGGED:
            if _lacks_room(tree):
                tree = _enlarged(tree, cfg)
            _grow(tree, rows, cfg, work, u)
        c = tree.child[u]
        if c >= 0:
            if top + 2 > stack.size:
                stack = _longer(stack)
            stack[top] = c + 1
            stack[top + 1] = c
            top += 2
    return tree


@njit(cache=True, nogil=True)
def settle(tree: Tree, rows: Rows, cfg: Config, X: np.ndarray) -> Tree:
    """Grow the tagged nodes that the queries `X` pass; return the tree."""
    work = _workspace(0, cfg)
    for i in range(X.shape[0]):
        u = 0
        while True:
            if tree.child[u] == TAGGED:
                if tree.place[u, 1] > work.values.size:
                    work = _workspace(tree.place[u, 1], cfg)
                if _lacks_room(tree):
                    tree = _enlarged(tree, cfg)
                _grow(tree, rows, cfg, work, u)
            c = tree.child[u]
            if c < 0:
                break
            a = tree.feature[u]
            x = X[i, a]
            if cfg.categorical[a]:
                x = hash_value(_attribute_key(tree.path[u], a), x)
            u = c + (1 if x > tree.threshold[u] else 0)
    return tree


@njit(cache=True, nogil=True)
def _workspace(n: int, cfg: Config) -> _Work:
    return _Work(
        np.empty(n, np.float32),
        np.empty(n, np.int32),
        np.empty(n, np.int32),
        np.empty(n if cfg.regression else 0, np.int64),
        np.empty(cfg.n_features, np.int32),
        np.zeros(cfg.n_classes * cfg.stride, np.int32),
        np.zeros(cfg.stride if cfg.regression else 0, np.int64),
        np.empty(cfg.stride, np.float32),
        np.empty((4, cfg.stride), np.float64),
        np.empty(n, np.int32),
    )


@njit(cache=True, nogil=True)
def _grow(tree: Tree, rows: Rows, cfg: Config, work: _Work, u: int) -> None:
    """Turn the tagged node `u` into a leaf, or choose its split and give it two tagged children."""
    tree.meta[N_TAGGED] -= 1
    if _is_leaf(tree.weight[u], tree.depth[u], cfg):
        tree.child[u] = LEAF
        return
    offset, m = tree.place[u, 0], tree.place[u, 1]
    ids = tree.ids[offset : offset + m]
    for i in range(m):
        r = ids[i]
        work.offset[i] = rows.label[r] * cfg.stride
        if cfg.weighted:
            work.weight[i] = rows.weight[r]
        if cfg.regression:
            work.target[i] = rows.target[r]
    record = _next_record(tree)
    path = tree.path[u]
    d, s, stride = cfg.n_features, cfg.n_thresholds, cfg.stride
    wide = cfg.n_classes * stride
    for a in range(d):
        work.order[a] = a
    picked, drawn = 0, 0
    best, best_score, best_cut = -1, -np.inf, np.float32(0.0)
    while picked < cfg.n_candidates and drawn < d:
        a = _draw(work.order, path, drawn, d)
        drawn += 1
        key = _attribute_key(path, a)
        low, high = _gather_values(rows, cfg, ids, a, key, work.values)
        if low == high:
            continue
        low_weight, high_weight = _extreme_weights(work.values, work.weight, m, low, high, cfg.weighted)
        _cuts(key, low, high, s, work.cut)
        _count(work, m, cfg)
        j, best_score = _best_cut(
            work.below, 0, work.below_sum, 0, tree.weight[u], tree.total[u], cfg, work.score, best_score
        )
        if j >= 0:
            best, best_cut = picked * s + j, work.cut[j]
        tree.attr[record, picked, 0] = a
        tree.attr[record, picked, 1] = low_weight
        tree.attr[record, picked, 2] = high_weight
        tree.span[record, picked, 0] = low
        tree.span[record, picked, 1] = high
        tree.left[record, picked * wide : (picked + 1) * wide] = work.below
        if cfg.regression:
            tree.left_sum[record, picked * stride : (picked + 1) * stride] = work.below_sum
        picked += 1
    if picked == 0 or (cfg.regression and best_score <= 0.0):
        _wipe_record(tree, record)
        tree.child[u] = LEAF
        return
    _take_record(tree, record)
    tree.head[record, 0] = picked
    tree.head[record, 1] = drawn
    tree.head[record, 2] = best
    feature = tree.attr[record, best // s, 0]
    _gather_values(rows, cfg, ids, feature, _attribute_key(path, feature), work.values)
    pair = _take_pair(tree)
    n_left = _partition(tree, rows, cfg, work, ids, pair, best_cut)
    for side in range(2):
        v = pair + side
        tree.child[v] = TAGGED
        tree.depth[v] = tree.depth[u] + 1
        tree.path[v] = child_path(path, side == 1)
        tree.place[v, 0] = offset + (n_left if side else 0)
        tree.place[v, 1] = m - n_left if side else n_left
        tree.place[v, 2] = tree.place[v, 1]
    tree.meta[N_TAGGED] += 2
    tree.child[u] = pair
    tree.feature[u] = feature
    tree.threshold[u] = best_cut
    tree.place[u, 0] = record
    tree.place[u, 1] = 0
    tree.place[u, 2] = 0


@njit(cache=True, nogil=True)
def _is_leaf(weight: np.ndarray, depth: int, cfg: Config) -> bool:
    n, most = 0, 0
    for c in range(weight.size):
        n += weight[c]
        most = max(most, weight[c])
    return depth >= cfg.max_depth or n < cfg.min_split or n < 2 or (most == n and not cfg.regression)


@njit(cache=True, nogil=True)
def _draw(order: np.ndarray, path: np.uint64, step: int, d: int) -> int:
    """Return the attribute at place `step` of the node's random order, shuffling `order` one step further."""
    other = step + below(stream_word(mix(path ^ _ORDER_SALT), step), d - step)
    a = order[other]
    order[other] = order[step]
    order[step] = a
    return int(a)


@njit(cache=True, nogil=True)
def _attribute_key(path: np.uint64, a: int) -> np.uint64:
    return stream_word(path ^ _ATTRIBUTE_SALT, a)


@njit(cache=True, nogil=True)
def _gather_values(
    rows: Rows, cfg: Config, ids: np.ndarray, a: int, key: np.uint64, out: np.ndarray
) -> tuple[np.float32, np.float32]:
    """Write the values of attribute `a` to `out`; return their minimum and maximum."""
    base = a * rows.column_step
    step = rows.row_step
    m = ids.size
    if cfg.categorical[a]:
        for i in range(m):
            out[i] = hash_value(key, rows.values[ids[i] * step + base])
    else:
        for i in range(m):
            out[i] = rows.values[ids[i] * step + base]
    low = high = out[0]
    for i in range(1, m):
        x = out[i]
        low = x if x < low else low
        high = x if x > high else high
    return low, high


@njit(cache=True, nogil=True)
def _extreme_weights(
    values: np.ndarray, weight: np.ndarray, m: int, low: np.float32, high: np.float32, weighted: bool
) -> tuple[int, int]:
    at_low, at_high = 0, 0
    for i in range(m):
        w = weight[i] if weighted else 1
        at_low += w if values[i] == low else 0
        at_high += w if values[i] == high else 0
    return at_low, at_high


@njit(cache=True, nogil=True, error_model="numpy")
def _cuts(key: np.uint64, low: np.float32, high: np.float32, s: int, cut: np.ndarray) -> None:
    """Write the `s` thresholds, uniform on [low, high) and each a float32; pads are below every value."""
    base, width = np.float64(low), np.float64(high) - np.float64(low)
    last = np.nextafter(high, low)
    # Two thresholds from each word, pads included, so that the loop has no branch and runs in vectors.
    for half in range(cut.size // 2):
        word = stream_word(key, 2 * half)
        first = np.float32(base + np.float64(word & _LOW) * 2.0**-32 * width)
        second = np.float32(base + np.float64(word >> _S32) * 2.0**-32 * width)
        first = low if first < low else first
        second = low if second < low else second
        cut[2 * half] = last if first > last else first
        cut[2 * half + 1] = last if second > last else second
    for j in range(s, cut.size):
        cut[j] = -np.inf


@njit(cache=True, nogil=True)
def _count(work: _Work, m: int, cfg: Config) -> None:
    """Weigh what lies left of every threshold, by class."""
    acc, cut, stride = work.below, work.cut, cfg.stride
    acc[:] = 0
    if cfg.weighted:
        for i in range(m):
            x, start, w = work.values[i], work.offset[i], work.weight[i]
            row = acc[start : start + stride]
            for j in range(stride):
                row[j] += w * np.int32(x <= cut[j])
    else:
        for i in range(m):
            x, start = work.values[i], work.offset[i]
            row = acc[start : start + stride]
            for j in range(stride):
                row[j] += np.int32(x <= cut[j])
    if cfg.regression:
        sums = work.below_sum
        sums[:] = 0
        for i in range(m):
            x, t = work.values[i], work.target[i]
            if cfg.weighted:
                t *= work.weight[i]
            for j in range(stride):
                sums[j] += t if x <= cut[j] else 0


@njit(cache=True, nogil=True, error_model="numpy")
def _best_cut(
    left: np.ndarray,
    start: int,
    sums: np.ndarray,
    sum_start: int,
    weight: np.ndarray,
    total: int,
    cfg: Config,
    score: np.ndarray,
    bar: float,
) -> tuple[int, float]:
    """Return the first of the best thresholds of one attribute and its score, or -1 where none is above `bar`.

    Classification: (S_l n_r + S_r n_l) / (n_l n_r), S the sum of squared class weights of a side; it is largest where
    the weighted Gini impurity is smallest. Regression: the squared difference of the sides' centred sums over
    n_l n_r, which is largest where the squared error is smallest.
    """
    s, stride, n_classes = cfg.n_thresholds, cfg.stride, cfg.n_classes
    n = 0
    for c in range(n_classes):
        n += weight[c]
    n_all = np.float64(n)
    out = score[0]
    if cfg.regression:
        centre = total // n
        rest = np.float64(total - centre * n)
        for j in range(s):
            w = np.int64(left[start + j])
            n_l = np.float64(w)
            apart = np.float64(sums[sum_start + j] - centre * w) * n_all - rest * n_l
            out[j] = apart * apart / (n_l * (n_all - n_l))
    elif n_classes == 2:
        all_0, all_1 = np.float64(weight[0]), np.float64(weight[1])
        row_0, row_1 = left[start : start + s], left[start + stride : start + stride + s]
        for j in range(s):
            a_0, a_1 = np.float64(row_0[j]), np.float64(row_1[j])
            b_0, b_1 = all_0 - a_0, all_1 - a_1
            n_l = a_0 + a_1
            n_r = n_all - n_l
            out[j] = ((a_0 * a_0 + a_1 * a_1) * n_r + (b_0 * b_0 + b_1 * b_1) * n_l) / (n_l * n_r)
    else:
        n_left, s_left, s_right = score[1], score[2], score[3]
        n_left[:] = 0.0
        s_left[:] = 0.0
        s_right[:] = 0.0
        for c in range(n_classes):
            whole = np.float64(weight[c])
            row = left[start + c * stride : start + (c + 1) * stride]
            for j in range(stride):
                a = np.float64(row[j])
                b = whole - a
                n_left[j] += a
                s_left[j] += a * a
                s_right[j] += b * b
        for j in range(s):
            n_l = n_left[j]
            n_r = n_all - n_l
            out[j] = (s_left[j] * n_r + s_right[j] * n_l) / (n_l * n_r)
    better = np.int64(0)
    for j in range(s):
        better += np.int64(out[j] > bar)
    best, top = -1, bar
    if better:
        for j in range(s):
            if out[j] > top:
                best, top = j, out[j]
    return best, top


@njit(cache=True, nogil=True)
def _partition(tree: Tree, rows: Rows, cfg: Config, work: _Work, ids: np.ndarray, pair: int, cut: np.float32) -> int:
    """Move the rows at or below `cut` to the front, keeping their order; weigh both children; return how many."""
    for side in range(2):
        tree.weight[pair + side, :] = 0
        tree.total[pair + side] = 0
    n_left, n_right = 0, 0
    for i in range(ids.size):
        r = ids[i]
        w = work.weight[i] if cfg.weighted else 1
        right = work.values[i] > cut
        v = pair + (1 if right else 0)
        if cfg.regression:
            tree.weight[v, 0] += w
            tree.total[v] += w * work.target[i]
        else:
            tree.weight[v, rows.label[r]] += w
        if right:
            work.side[n_right] = r
            n_right += 1
        else:
            ids[n_left] = r
            n_left += 1
    for i in range(n_right):
        ids[n_left + i] = work.side[i]
    return n_left


# -- changing ---------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def modify(tree: Tree, rows: Rows, cfg: Config, alive: np.ndarray, batch: np.ndarray, sign: int) -> None:
    """Add (`sign` 1) or remove (-1) the rows of `batch` in one tree.

    Rows to remove must be marked dead in `alive` beforehand, rows to add alive, and their values must still be there.
    ``ids`` must have room (`reserve_ids`).
    """
    batch = batch.copy()
    room = tree.meta[LIVE] + batch.size
    buffer = np.empty(room, np.int32)
    values = np.empty(room, np.float32)
    parts = np.empty(batch.size, np.int32)
    order = np.empty(cfg.n_features, np.int32)
    picked = np.empty(cfg.n_features, np.bool_)
    cut = np.empty(cfg.stride, np.float32)
    score = np.empty((4, cfg.stride), np.float64)
    stack = np.empty((64, 4), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, 0, batch.size, -1
    top = 1
    tree.meta[LIVE] += sign * batch.size
    while top > 0:
        top -= 1
        u, lo, hi, witness = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        mine = batch[lo:hi]
        before = 0
        for c in range(cfg.n_classes):
            before += tree.weight[u, c]
        for i in range(mine.size):
            r = mine[i]
            w = sign * rows.weight[r]
            if cfg.regression:
                tree.weight[u, 0] += w
                tree.total[u] += w * rows.target[r]
            else:
                tree.weight[u, rows.label[r]] += w
        if tree.child[u] < 0:
            _edit_segment(tree, alive, u, mine, sign)
            if tree.child[u] == LEAF and not _is_leaf(tree.weight[u], tree.depth[u], cfg):
                tree.child[u] = TAGGED
                tree.meta[N_TAGGED] += 1
            continue
        if sign > 0 and witness < 0:
            witness = _any_row(tree, u)
        keep = not _is_leaf(tree.weight[u], tree.depth[u], cfg) and 3 * _weight_of(rows, mine) <= before
        if keep and sign > 0:
            keep = not _wakes(tree, rows, cfg, u, mine, witness, order, picked)
        n_left = 0
        if keep and sign < 0:
            # Rows to remove lie where the split that still stands sent them; rows to add follow the new one.
            n_left = _route(tree, rows, cfg, u, mine, parts)
        if keep:
            keep = _update(tree, rows, cfg, alive, u, mine, sign, buffer, values, cut, score)
        if not keep:
            n = _gather(tree, alive, u, buffer)
            if sign > 0:
                buffer[n : n + mine.size] = mine
                n += mine.size
            _collapse(tree, u, buffer[:n], _is_leaf(tree.weight[u], tree.depth[u], cfg))
            continue
        if sign > 0:
            n_left = _route(tree, rows, cfg, u, mine, parts)
        if top + 2 > stack.shape[0]:
            longer = np.empty((2 * stack.shape[0], 4), np.int64)
            longer[: stack.shape[0]] = stack
            stack = longer
        for side in range(2):
            start, stop = (lo + n_left, hi) if side else (lo, lo + n_left)
            if start < stop:
                v = tree.child[u] + side
                stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = v, start, stop, -1
                if witness >= 0 and _goes_right(tree, rows, cfg, u, witness) == (side == 1):
                    stack[top, 3] = witness
                top += 1


@njit(cache=True, nogil=True)
def _weight_of(rows: Rows, ids: np.ndarray) -> int:
    n = 0
    for i in range(ids.size):
        n += rows.weight[ids[i]]
    return n


@njit(cache=True, nogil=True)
def _value(rows: Rows, cfg: Config, r: int, a: int, key: np.uint64) -> np.float32:
    x = rows.values[r * rows.row_step + a * rows.column_step]
    return hash_value(key, x) if cfg.categorical[a] else x


@njit(cache=True, nogil=True)
def _goes_right(tree: Tree, rows: Rows, cfg: Config, u: int, r: int) -> bool:
    a = tree.feature[u]
    x = rows.values[r * rows.row_step + a * rows.column_step]
    if cfg.categorical[a]:
        x = hash_value(_attribute_key(tree.path[u], a), x)
    return bool(x > tree.threshold[u])


@njit(cache=True, nogil=True)
def _any_row(tree: Tree, u: int) -> int:
    while tree.child[u] >= 0:
        u = tree.child[u]
    return int(tree.ids[tree.place[u, 0]])


@njit(cache=True, nogil=True)
def _route(tree: Tree, rows: Rows, cfg: Config, u: int, mine: np.ndarray, parts: np.ndarray) -> int:
    n_left, n_right = 0, 0
    for i in range(mine.size):
        r = mine[i]
        if _goes_right(tree, rows, cfg, u, r):
            parts[n_right] = r
            n_right += 1
        else:
            mine[n_left] = r
            n_left += 1
    for i in range(n_right):
        mine[n_left + i] = parts[i]
    return n_left


@njit(cache=True, nogil=True)
def _wakes(
    tree: Tree, rows: Rows, cfg: Config, u: int, mine: np.ndarray, witness: int, order: np.ndarray, picked: np.ndarray
) -> bool:
    """Return whether an added row differs from the node's rows in an attribute that was skipped as constant."""
    record, path = tree.place[u, 0], tree.path[u]
    n_picked, n_drawn = tree.head[record, 0], tree.head[record, 1]
    if n_picked == n_drawn:
        return False
    for a in range(cfg.n_features):
        order[a] = a
        picked[a] = False
    for k in range(n_picked):
        picked[tree.attr[record, k, 0]] = True
    for step in range(n_drawn):
        a = _draw(order, path, step, cfg.n_features)
        if picked[a]:
            continue
        key = _attribute_key(path, a)
        x = _value(rows, cfg, witness, a, key)
        for i in range(mine.size):
            if _value(rows, cfg, mine[i], a, key) != x:
                return True
    return False


@njit(cache=True, nogil=True)
def _update(
    tree: Tree,
    rows: Rows,
    cfg: Config,
    alive: np.ndarray,
    u: int,
    mine: np.ndarray,
    sign: int,
    buffer: np.ndarray,
    values: np.ndarray,
    cut: np.ndarray,
    score: np.ndarray,
) -> bool:
    """Bring the candidates of an internal node up to date; return False where its children do not survive that."""
    record, path = tree.place[u, 0], tree.path[u]
    s, stride = cfg.n_thresholds, cfg.stride
    wide = cfg.n_classes * stride
    left = tree.left[record]
    sums = tree.left_sum[record] if cfg.regression else tree.total[:0]
    n_below = -1
    best, best_score = -1, -np.inf
    for k in range(tree.head[record, 0]):
        a = tree.attr[record, k, 0]
        key = _attribute_key(path, a)
        low, high = tree.span[record, k, 0], tree.span[record, k, 1]
        _cuts(key, low, high, s, cut)
        moved = False
        for i in range(mine.size):
            r = mine[i]
            x = _value(rows, cfg, r, a, key)
            w = np.int32(sign * rows.weight[r])
            if x < low or x > high:
                moved = True
                break
            if x == low:
                tree.attr[record, k, 1] += w
            elif x == high:
                tree.attr[record, k, 2] += w
            start = k * wide + rows.label[r] * stride
            row = left[start : start + stride]
            for j in range(stride):
                row[j] += w * np.int32(x <= cut[j])
            if cfg.regression:
                t = w * rows.target[r]
                row_sum = sums[k * stride : (k + 1) * stride]
                for j in range(stride):
                    row_sum[j] += t if x <= cut[j] else 0
        if moved or tree.attr[record, k, 1] == 0 or tree.attr[record, k, 2] == 0:
            if n_below < 0:
                n_below = _gather(tree, alive, u, buffer)
                if sign > 0:
                    buffer[n_below : n_below + mine.size] = mine
                    n_below += mine.size
            if not _recount(tree, rows, cfg, u, k, a, key, buffer[:n_below], values, cut):
                return False
        j, best_score = _best_cut(
            left, k * wide, sums, k * stride, tree.weight[u], tree.total[u], cfg, score, best_score
        )
        if j >= 0:
            best = k * s + j
    if cfg.regression and best_score <= 0.0:
        return False
    tree.head[record, 2] = best
    a = tree.attr[record, best // s, 0]
    key = _attribute_key(path, a)
    _cuts(key, tree.span[record, best // s, 0], tree.span[record, best // s, 1], s, cut)
    chosen = cut[best % s]
    if a == tree.feature[u] and chosen == tree.threshold[u]:
        return True
    return _same_sides(tree, rows, cfg, alive, u, a, key, chosen, buffer)


@njit(cache=True, nogil=True)
def _recount(
    tree: Tree,
    rows: Rows,
    cfg: Config,
    u: int,
    k: int,
    a: int,
    key: np.uint64,
    ids: np.ndarray,
    values: np.ndarray,
    cut: np.ndarray,
) -> bool:
    """Derive an attribute's range and counts from the rows again; return False where it has become constant."""
    record, stride = tree.place[u, 0], cfg.stride
    wide = cfg.n_classes * stride
    low, high = _gather_values(rows, cfg, ids, a, key, values)
    if low == high:
        return False
    _cuts(key, low, high, cfg.n_thresholds, cut)
    tree.left[record, k * wide : (k + 1) * wide] = 0
    at_low, at_high = 0, 0
    for i in range(ids.size):
        r = ids[i]
        x, w = values[i], rows.weight[r]
        at_low += w if x == low else 0
        at_high += w if x == high else 0
        start = k * wide + rows.label[r] * stride
        row = tree.left[record, start : start + stride]
        for j in range(stride):
            row[j] += w * np.int32(x <= cut[j])
    if cfg.regression:
        row_sum = tree.left_sum[record, k * stride : (k + 1) * stride]
        row_sum[:] = 0
        for i in range(ids.size):
            x, t = values[i], rows.target[ids[i]] * rows.weight[ids[i]]
            for j in range(stride):
                row_sum[j] += t if x <= cut[j] else 0
    tree.attr[record, k, 1] = at_low
    tree.attr[record, k, 2] = at_high
    tree.span[record, k, 0] = low
    tree.span[record, k, 1] = high
    return True


@njit(cache=True, nogil=True)
def _same_sides(
    tree: Tree,
    rows: Rows,
    cfg: Config,
    alive: np.ndarray,
    u: int,
    a: int,
    key: np.uint64,
    chosen: np.float32,
    buffer: np.ndarray,
) -> bool:
    """Take over a new split if it sends every row of the children to the child where it already is."""
    first = tree.child[u]
    for side in range(2):
        n = _gather(tree, alive, first + side, buffer)
        for i in range(n):
            if (_value(rows, cfg, buffer[i], a, key) > chosen) != (side == 1):
                return False
    tree.feature[u] = a
    tree.threshold[u] = chosen
    return True


@njit(cache=True, nogil=True)
def _gather(tree: Tree, alive: np.ndarray, u: int, out: np.ndarray) -> int:
    """Write the living rows below `u` to `out`; return how many."""
    stack = np.empty(64, np.int64)
    stack[0] = u
    top, n = 1, 0
    while top > 0:
        top -= 1
        v = stack[top]
        c = tree.child[v]
        if c >= 0:
            if top + 2 > stack.size:
                stack = _longer(stack)
            stack[top] = c + 1
            stack[top + 1] = c
            top += 2
        else:
            start = tree.place[v, 0]
            for i in range(start, start + tree.place[v, 1]):
                r = tree.ids[i]
                if alive[r]:
                    out[n] = r
                    n += 1
    return n


@njit(cache=True, nogil=True)
def _collapse(tree: Tree, u: int, ids: np.ndarray, leaf: bool) -> None:
    """Drop everything below the internal node `u`, and hold its rows in `u` itself."""
    pairs = np.empty(64, np.int64)
    pairs[0] = tree.child[u]
    top = 1
    _free_record(tree, tree.place[u, 0])
    while top > 0:
        top -= 1
        pair = pairs[top]
        for v in range(pair, pair + 2):
            c = tree.child[v]
            if c >= 0:
                if top + 2 > pairs.size:
                    pairs = _longer(pairs)
                _free_record(tree, tree.place[v, 0])
                pairs[top] = c
                top += 1
            else:
                start = tree.place[v, 0]
                tree.ids[start : start + tree.place[v, 2]] = -1
                if c == TAGGED:
                    tree.meta[N_TAGGED] -= 1
        _free_pair(tree, pair)
    start = tree.meta[IDS_END]
    tree.ids[start : start + ids.size] = ids
    tree.meta[IDS_END] += ids.size
    tree.place[u, 0] = start
    tree.place[u, 1] = ids.size
    tree.place[u, 2] = ids.size
    tree.feature[u] = -1
    tree.threshold[u] = 0.0
    tree.child[u] = LEAF if leaf else TAGGED
    if not leaf:
        tree.meta[N_TAGGED] += 1


@njit(cache=True, nogil=True)
def _edit_segment(tree: Tree, alive: np.ndarray, u: int, mine: np.ndarray, sign: int) -> None:
    """Add rows to, or remove them from, the segment of a leaf or tagged node."""
    start, n, capacity = tree.place[u, 0], tree.place[u, 1], tree.place[u, 2]
    if sign > 0:
        if n + mine.size > capacity:
            fresh = tree.meta[IDS_END]
            tree.ids[fresh : fresh + n] = tree.ids[start : start + n]
            tree.ids[start : start + n] = -1
            tree.place[u, 0] = fresh
            tree.place[u, 2] = 2 * (n + mine.size)
            tree.meta[IDS_END] += tree.place[u, 2]
            start = fresh
        tree.ids[start + n : start + n + mine.size] = mine
        tree.place[u, 1] = n + mine.size
    elif mine.size == 1:
        for i in range(start, start + n):
            if tree.ids[i] == mine[0]:
                tree.ids[i] = tree.ids[start + n - 1]
                break
        tree.ids[start + n - 1] = -1
        tree.place[u, 1] = n - 1
    else:
        kept = start
        for i in range(start, start + n):
            r = tree.ids[i]
            if alive[r]:
                tree.ids[kept] = r
                kept += 1
        tree.ids[kept : start + n] = -1
        tree.place[u, 1] = kept - start


# -- storage ----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _longer(stack: np.ndarray) -> np.ndarray:
    longer = np.empty(2 * stack.size, stack.dtype)
    longer[: stack.size] = stack
    return longer


@njit(cache=True, nogil=True)
def _lacks_room(tree: Tree) -> bool:
    no_pair = tree.meta[FREE_PAIR] < 0 and tree.meta[N_NODES] + 2 > tree.child.size
    no_record = tree.meta[FREE_RECORD] < 0 and tree.meta[N_RECORDS] + 1 > tree.head.shape[0]
    return bool(no_pair or no_record)


@njit(cache=True, nogil=True)
def _enlarged(tree: Tree, cfg: Config) -> Tree:
    """Return the tree with room for a quarter more nodes and records."""
    n_nodes, n_records = tree.child.size, tree.head.shape[0]
    if tree.meta[FREE_PAIR] < 0 and tree.meta[N_NODES] + 2 > n_nodes:
        n_nodes += max(8, n_nodes // 4)
    if tree.meta[FREE_RECORD] < 0 and tree.meta[N_RECORDS] + 1 > n_records:
        n_records += max(4, n_records // 4)
    other = empty_tree(np.uint64(0), 0, n_nodes, n_records, cfg)
    n, r = tree.child.size, tree.head.shape[0]
    other.child[:n] = tree.child
    other.feature[:n] = tree.feature
    other.threshold[:n] = tree.threshold
    other.depth[:n] = tree.depth
    other.path[:n] = tree.path
    other.place[:n] = tree.place
    other.weight[:n] = tree.weight
    other.total[:n] = tree.total
    other.head[:r] = tree.head
    other.attr[:r] = tree.attr
    other.span[:r] = tree.span
    other.left[:r] = tree.left
    if cfg.regression:
        other.left_sum[:r] = tree.left_sum
    return _rebuilt(other, tree.ids, tree.meta)


@njit(cache=True, nogil=True)
def _rebuilt(tree: Tree, ids: np.ndarray, meta: np.ndarray) -> Tree:
    return Tree(
        tree.child,
        tree.feature,
        tree.threshold,
        tree.depth,
        tree.path,
        tree.place,
        tree.weight,
        tree.total,
        tree.head,
        tree.attr,
        tree.span,
        tree.left,
        tree.left_sum,
        ids,
        meta,
    )


@njit(cache=True, nogil=True)
def _next_record(tree: Tree) -> int:
    r = tree.meta[FREE_RECORD]
    return int(r if r >= 0 else tree.meta[N_RECORDS])


@njit(cache=True, nogil=True)
def _take_record(tree: Tree, record: int) -> None:
    if tree.meta[FREE_RECORD] >= 0:
        tree.meta[FREE_RECORD] = tree.head[record, 1]
    else:
        tree.meta[N_RECORDS] += 1


@njit(cache=True, nogil=True)
def _wipe_record(tree: Tree, record: int) -> None:
    tree.attr[record] = 0
    tree.span[record] = 0
    tree.left[record] = 0
    if tree.left_sum.shape[0]:
        tree.left_sum[record] = 0


@njit(cache=True, nogil=True)
def _free_record(tree: Tree, record: int) -> None:
    """Wipe a record and put it on the free list."""
    _wipe_record(tree, record)
    tree.head[record, 0] = 0
    tree.head[record, 1] = tree.meta[FREE_RECORD]
    tree.head[record, 2] = 0
    tree.meta[FREE_RECORD] = record


@njit(cache=True, nogil=True)
def _take_pair(tree: Tree) -> int:
    pair = tree.meta[FREE_PAIR]
    if pair >= 0:
        tree.meta[FREE_PAIR] = tree.place[pair, 0]
    else:
        pair = tree.meta[N_NODES]
        tree.meta[N_NODES] += 2
    return int(pair)


@njit(cache=True, nogil=True)
def _free_pair(tree: Tree, pair: int) -> None:
    """Wipe two sibling nodes and put them on the free list."""
    for v in range(pair, pair + 2):
        tree.child[v] = FREE
        tree.feature[v] = -1
        tree.threshold[v] = 0.0
        tree.path[v] = 0
        tree.weight[v] = 0
        tree.total[v] = 0
        tree.place[v] = 0
    tree.place[pair, 0] = tree.meta[FREE_PAIR]
    tree.meta[FREE_PAIR] = pair


@njit(cache=True, nogil=True)
def reserve_ids(tree: Tree, extra: int) -> Tree:
    """Return the tree with room for any change of `extra` added rows; segments move together when there is none.

    A change writes each living row to a new segment at most once, and gives a leaf twice the room that it needs.
    """
    need = 2 * (tree.meta[LIVE] + extra)
    if tree.ids.size - tree.meta[IDS_END] >= need:
        return tree
    ids = np.full(tree.meta[LIVE] + 2 * need, -1, np.int32)
    end = 0
    stack = np.empty(64, np.int64)
    stack[0] = 0
    top = 1
    while top > 0:
        top -= 1
        u = stack[top]
        c = tree.child[u]
        if c >= 0:
            if top + 2 > stack.size:
                stack = _longer(stack)
            stack[top] = c + 1
            stack[top + 1] = c
            top += 2
        else:
            start, n = tree.place[u, 0], tree.place[u, 1]
            ids[end : end + n] = tree.ids[start : start + n]
            tree.place[u, 0] = end
            tree.place[u, 2] = n
            end += n
    tree.meta[IDS_END] = end
    return _rebuilt(tree, ids, tree.meta)


@njit(cache=True, nogil=True)
def compact(tree: Tree, rank: np.ndarray, cfg: Config, slack: float) -> Tree:
    """Return a copy with nodes and records in preorder, nothing freed or stale, and row r renamed ``rank[r]``.

    Within a leaf the rows are sorted, so two trees that are equal have equal copies, bit for bit. `slack` is the
    fraction of room to leave for later growth: 0 for a canonical copy.
    """
    n_nodes, n_records = 0, 0
    for u in range(tree.meta[N_NODES]):
        if tree.child[u] != FREE:
            n_nodes += 1
            n_records += 1 if tree.child[u] >= 0 else 0
    n_ids = tree.meta[LIVE]
    more = n_ids + 2 * n_ids if slack > 0 else n_ids
    if slack > 0:
        room_nodes, room_records = int(n_nodes * (1 + slack)) + 2, int(n_records * (1 + slack)) + 1
    else:
        room_nodes, room_records = n_nodes, n_records
    out = empty_tree(np.uint64(0), more, room_nodes, room_records, cfg)
    stack = np.empty((64, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, 0
    top, nodes, records, end, tagged = 1, 1, 0, 0, 0
    while top > 0:
        top -= 1
        u, v = stack[top, 0], stack[top, 1]
        c = tree.child[u]
        out.feature[v] = tree.feature[u]
        out.threshold[v] = tree.threshold[u]
        out.depth[v] = tree.depth[u]
        out.path[v] = tree.path[u]
        out.weight[v] = tree.weight[u]
        out.total[v] = tree.total[u]
        if c >= 0:
            r = tree.place[u, 0]
            out.child[v] = nodes
            out.place[v, 0], out.place[v, 1], out.place[v, 2] = records, 0, 0
            out.head[records] = tree.head[r]
            k = tree.head[r, 0]
            wide = cfg.n_classes * cfg.stride
            out.attr[records, :k] = tree.attr[r, :k]
            out.span[records, :k] = tree.span[r, :k]
            out.left[records, : k * wide] = tree.left[r, : k * wide]
            if cfg.regression:
                out.left_sum[records, : k * cfg.stride] = tree.left_sum[r, : k * cfg.stride]
            records += 1
            if top + 2 > stack.shape[0]:
                longer = np.empty((2 * stack.shape[0], 2), np.int64)
                longer[: stack.shape[0]] = stack
                stack = longer
            stack[top, 0], stack[top, 1] = c + 1, nodes + 1
            stack[top + 1, 0], stack[top + 1, 1] = c, nodes
            top += 2
            nodes += 2
        else:
            out.child[v] = c
            tagged += 1 if c == TAGGED else 0
            start, n = tree.place[u, 0], tree.place[u, 1]
            for i in range(n):
                out.ids[end + i] = rank[tree.ids[start + i]]
            out.ids[end : end + n].sort()
            out.place[v, 0], out.place[v, 1], out.place[v, 2] = end, n, n
            end += n
    out.meta[N_NODES] = nodes
    out.meta[N_RECORDS] = records
    out.meta[IDS_END] = end
    out.meta[N_TAGGED] = tagged
    out.meta[LIVE] = n_ids
    return out


# -- asking -----------------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def accumulate(tree: Tree, cfg: Config, X: np.ndarray, out: np.ndarray, start: int) -> int:
    """Add the tree's answers to the rows of `X` from `start` on to `out`; return where a tagged node stopped it.

    Classification adds the class shares of the leaf, regression its mean in target steps. All rows: ``len(X)``.
    """
    for i in range(start, X.shape[0]):
        u = 0
        c = tree.child[0]
        while c >= 0:
            a = tree.feature[u]
            x = X[i, a]
            if cfg.categorical[a]:
                x = hash_value(_attribute_key(tree.path[u], a), x)
            u = c + (1 if x > tree.threshold[u] else 0)
            c = tree.child[u]
        if c == TAGGED:
            return i
        n = 0
        for k in range(cfg.n_classes):
            n += tree.weight[u, k]
        if cfg.regression:
            out[i, 0] += np.float64(tree.total[u]) / n
        else:
            for k in range(cfg.n_classes):
                out[i, k] += np.float64(tree.weight[u, k]) / n
    return len(X)
