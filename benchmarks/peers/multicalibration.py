"""What the package multicalibration makes of each model's probabilities; run by ``aboveboard reproduce``."""

import numpy as np
from multicalibration import MulticalibrationPredictor


def calibrated(p0, p1, y, q0, q1, Z, new, *, seed):  # noqa: ARG001
    """Multicalibrate two models (HKRR) on rows (p, y, Z): everybody, and halves by every column.

    One pass: with more, its answers for new rows become worse than what it starts from.
    """
    middle = np.median(Z, axis=0)

    def groups(rows):
        halves = [half for c in range(Z.shape[1]) for half in (rows[:, c] > middle[c], rows[:, c] <= middle[c])]
        return [np.arange(len(rows)).tolist(), *(np.flatnonzero(half).tolist() for half in halves)]

    params = {"lambda": 0.1, "alpha": 0.1, "max_iter": 1, "randomized": False, "use_oracle": False}
    found = {}
    for key, p, q in (("first", p0, q0), ("second", p1, q1)):
        model = MulticalibrationPredictor("HKRR")
        model.fit(p.copy(), y, groups(Z), params)
        found[key] = np.clip(np.asarray(model.predict(q.copy(), groups(new)), dtype=float), 0, 1)
    return found
