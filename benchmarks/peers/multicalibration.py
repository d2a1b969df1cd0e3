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


def _members(x, levels):
    groups = [np.flatnonzero(x[:, at] == level) for at, found in levels.items() for level in found]
    return [np.arange(len(x)), *groups]
