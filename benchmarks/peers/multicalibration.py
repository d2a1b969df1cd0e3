"""What HKRR makes of forecasts and outcomes; run in its own environment by ``aboveboard reproduce``."""

import numpy as np
from multicalibration import MulticalibrationPredictor


def recalibrate(x, p, y, x_new, p_new, *, groups, seed):
    """Multicalibrate `p` on everybody and on each value of the columns `groups`, and apply that to `p_new`."""
    np.random.seed(seed)  # noqa: NPY002 - the package draws from the global state
    levels = {at: np.unique(x[:, at]) for at in groups}
    predictor = MulticalibrationPredictor("HKRR")
    options = {"alpha": 0.01, "lambda": 0.1, "max_iter": 100, "randomized": True, "use_oracle": False}
    predictor.fit(p, y, _members(x, levels), options)
    return {"p": np.asarray(predictor.predict(p_new, _members(x_new, levels)), dtype=np.float64)}


def calibrated(p0, p1, y, q0, q1, Z, new, *, seed):  # noqa: ARG001
    """Multicalibrate two models on rows (p, y, Z): everybody, and halves by every column; apply it to (q, new).

    One pass: with more, its answers for new rows become worse than what it starts from.
    """
    middle = np.median(Z, axis=0)

    def halves(rows):
        parts = [half for c in range(Z.shape[1]) for half in (rows[:, c] > middle[c], rows[:, c] <= middle[c])]
        return [np.arange(len(rows)).tolist(), *(np.flatnonzero(part).tolist() for part in parts)]

    options = {"alpha": 0.1, "lambda": 0.1, "max_iter": 1, "randomized": False, "use_oracle": False}
    found = {}
    for key, p, q in (("first", p0, q0), ("second", p1, q1)):
        predictor = MulticalibrationPredictor("HKRR")
        predictor.fit(p.copy(), y, halves(Z), options)
        found[key] = np.clip(np.asarray(predictor.predict(q.copy(), halves(new)), dtype=float), 0, 1)
    return found


def _members(x, levels):
    groups = [np.flatnonzero(x[:, at] == level) for at, found in levels.items() for level in found]
    return [np.arange(len(x)), *groups]
