"""The forest of the paper, written down slowly: an oracle that shares no code with the package but the hash."""

from fractions import Fraction

import numpy as np
import pytest

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def _mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _word(key, index):
    return _mix((key + (index + 1) * GOLDEN) & MASK)


def _below(word, bound):
    return ((word >> 32) * bound) >> 32


def _trees_of(seed, uid, n_trees, k):
    key = _word(_mix(seed ^ 0x4F4343), uid)
    order = list(range(n_trees))
    for j in range(k):
        other = j + _below(_word(key, j), n_trees - j)
        order[j], order[other] = order[other], order[j]
    return order[:k]


class SlowForest:
    """Grows one tree at a time from the definition: exact fractions, sets of ids, recursion."""

    def __init__(self, seed, n_trees, k, cfg, rows):
        self.seed, self.n_trees, self.k, self.cfg = seed, n_trees, k, cfg
        self.X, self.label, self.target, self.weight, self.uid = (
            rows[name].tolist() if name != "X" else rows[name] for name in ("X", "label", "target", "weight", "uid")
        )

    def tree(self, t):
        """Return the root as nested dicts."""
        mine = [
            i
            for i, uid in enumerate(self.uid)
            if self.weight[i] and t in _trees_of(self.seed, uid, self.n_trees, self.k)
        ]
        return self._node(mine, _word(_mix(self.seed ^ 0x54524545), t), 0)

    def _value(self, i, a, key):
        x = float(self.X[i, a])
        return (_word(key, int(x)) >> 40) * 2.0**-24 if self.cfg.categorical[a] else x

    def _node(self, ids, path, depth):
        cfg = self.cfg
        weights = [sum(self.weight[i] for i in ids if self.label[i] == c) for c in range(cfg.n_classes)]
        n = sum(weights)
        leaf = {"leaf": True, "ids": sorted(ids), "weights": weights, "path": path}
        if depth >= cfg.max_depth or n < cfg.min_split or n < 2:
            return leaf
        if not cfg.regression and max(weights) == n:
            return leaf
        order, picked, drawn = list(range(cfg.n_features)), [], 0
        order_key = _mix(path ^ 0x4F52444552)
        while len(picked) < cfg.n_candidates and drawn < cfg.n_features:
            other = drawn + _below(_word(order_key, drawn), cfg.n_features - drawn)
            order[drawn], order[other] = order[other], order[drawn]
            a = order[drawn]
            drawn += 1
            key = _word(path ^ 0x415454, a)
            values = {i: self._value(i, a, key) for i in ids}
            low, high = min(values.values()), max(values.values())
            if low < high:
                picked.append((a, values, self._cuts(key, low, high)))
        best = None
        for place, (_, values, cuts) in enumerate(picked):
            for j, cut in enumerate(cuts):
                impurity = self._impurity([i for i in ids if values[i] <= cut], [i for i in ids if values[i] > cut])
                if best is None or impurity < best[0]:
                    best = (impurity, place, j)
        if best is None:
            return leaf
        if cfg.regression and best[0] >= self._impurity(ids, []):
            return leaf
        _, place, j = best
        a, values, cuts = picked[place]
        left = [i for i in ids if values[i] <= cuts[j]]
        right = [i for i in ids if values[i] > cuts[j]]
        return {
            "leaf": False,
            "weights": weights,
            "path": path,
            "drawn": drawn,
            "feature": a,
            "threshold": cuts[j],
            "candidates": [self._candidate(ids, *each) for each in picked],
            "children": [
                self._node(left, _mix(path ^ 0x4C454654), depth + 1),
                self._node(right, _mix(path ^ 0x5249474854), depth + 1),
            ],
        }

    def _cuts(self, key, low, high):
        cuts = []
        for j in range(self.cfg.n_thresholds):
            word = _word(key, j - j % 2)
            half = (word >> 32) if j % 2 else word & 0xFFFFFFFF
            cut = float(np.float32(low + half * 2.0**-32 * (high - low)))
            cuts.append(min(max(cut, low), float(np.nextafter(np.float32(high), np.float32(low)))))
        return cuts

    def _impurity(self, left, right):
        total = Fraction(0)
        for side in (left, right):
            n = sum(self.weight[i] for i in side)
            if not n:
                continue
            if self.cfg.regression:
                s = sum(self.weight[i] * self.target[i] for i in side)
                total += sum(self.weight[i] * self.target[i] ** 2 for i in side) - Fraction(s * s, n)
            else:
                counts = [sum(self.weight[i] for i in side if self.label[i] == c) for c in range(self.cfg.n_classes)]
                total += n - Fraction(sum(c * c for c in counts), n)
        return total

    def _candidate(self, ids, a, values, cuts):
        low, high = min(values.values()), max(values.values())
        return {
            "attribute": a,
            "range": (low, high),
            "at": tuple(sum(self.weight[i] for i in ids if values[i] == end) for end in (low, high)),
            "left": [
                [sum(self.weight[i] for i in ids if self.label[i] == c and values[i] <= cut) for cut in cuts]
                for c in range(self.cfg.n_classes)
            ],
            "sums": [sum(self.weight[i] * self.target[i] for i in ids if values[i] <= cut) for cut in cuts]
            if self.cfg.regression
            else [],
        }


def _read_fast(tree, cfg, u=0):
    """Return a canonical tree of the package as the same nested dicts."""
    node = {"weights": tree.weight[u].tolist(), "path": int(tree.path[u])}
    if tree.child[u] < 0:
        start, n, _ = tree.place[u]
        return node | {"leaf": True, "ids": tree.ids[start : start + n].tolist()}
    r, s = tree.place[u, 0], cfg.n_thresholds
    left = tree.left[r].reshape(cfg.n_candidates, cfg.n_classes, cfg.stride)
    sums = tree.left_sum[r].reshape(cfg.n_candidates, cfg.stride) if cfg.regression else None
    return node | {
        "leaf": False,
        "drawn": int(tree.head[r, 1]),
        "feature": int(tree.feature[u]),
        "threshold": float(tree.threshold[u]),
        "candidates": [
            {
                "attribute": int(tree.attr[r, k, 0]),
                "range": tuple(tree.span[r, k].tolist()),
                "at": tuple(tree.attr[r, k, 1:].tolist()),
                "left": left[k, :, :s].tolist(),
                "sums": sums[k, :s].tolist() if cfg.regression else [],
            }
            for k in range(tree.head[r, 0])
        ],
        "children": [_read_fast(tree, cfg, tree.child[u] + side) for side in range(2)],
    }


@pytest.fixture(scope="session")
def assert_equals_definition():
    """Assert that every tree of an estimator's forest is the one that the definition gives for its rows."""

    def check(estimator, trees=None):
        forest = estimator.forest_
        slow = SlowForest(forest.seed, forest.n_trees, forest.k, forest.cfg, forest.living())
        for t in range(forest.n_trees) if trees is None else trees:
            assert _read_fast(forest.canonical(t), forest.cfg) == slow.tree(t), f"tree {t}"

    return check
