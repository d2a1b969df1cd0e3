"""What SliceLine says of the same rows; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
from sliceline import Slicefinder


def decayed_slices(*, min_share, bins, **pairs):
    """Find slices of each target where errors are frequent, and keep those that got worse since the source.

    Arrays are called ``<pair>.X0``, ``<pair>.e0`` (errors), ``<pair>.X1`` and ``<pair>.e1``. A slice counts where its
    score is above 0, SliceLine's own sign that it is worth a look, and its error rate is higher than in the source.
    """
    names = sorted({name.rsplit(".", 1)[0] for name in pairs})
    found, seconds = [], []
    for name in names:
        X0, e0, X1, e1 = (pairs[f"{name}.{part}"] for part in ("X0", "e0", "X1", "e1"))
        start = time.perf_counter()
        cuts = [np.unique(np.quantile(column, np.linspace(0, 1, bins + 1)[1:-1])) for column in X1.T]
        old, new = (np.column_stack([np.digitize(X[:, j], cuts[j]) for j in range(X.shape[1])]) for X in (X0, X1))
        finder = Slicefinder(alpha=0.95, k=5, max_l=2, min_sup=min_share, verbose=False)
        finder.fit(new, e1)
        worse = 0
        for row in finder.top_slices_:
            fixed = [(j, value) for j, value in enumerate(row) if value is not None]
            inside0, inside1 = (np.all([X[:, j] == value for j, value in fixed], axis=0) for X in (old, new))
            worse += bool(inside0.any() and e1[inside1].mean() > e0[inside0].mean())
        found.append(worse)
        seconds.append(time.perf_counter() - start)
    return {"names": names, "worse": found, "seconds": seconds}
