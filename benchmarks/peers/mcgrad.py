"""What MCGrad makes of each model's probabilities; run in its own environment by ``aboveboard reproduce``."""

import numpy as np
import pandas as pd
from mcgrad.methods import MCGrad


def calibrated(p0, p1, y, q0, q1, Z, new, *, seed):
    """Multicalibrate two models on rows (p, y, Z), with every encoded column as a feature, and apply it to (q, new)."""
    names = [f"z{i}" for i in range(Z.shape[1])]
    found = {}
    for key, p, q in (("first", p0, q0), ("second", p1, q1)):
        old = pd.DataFrame(Z, columns=names).assign(p=np.clip(p, 1e-6, 1 - 1e-6), y=y)
        fresh = pd.DataFrame(new, columns=names).assign(p=np.clip(q, 1e-6, 1 - 1e-6))
        model = MCGrad(random_state=seed)
        model.fit(old, prediction_column_name="p", label_column_name="y", numerical_feature_column_names=names)
        answer = model.predict(fresh, prediction_column_name="p", numerical_feature_column_names=names)
        found[key] = np.clip(np.asarray(answer, dtype=float), 0, 1)
    return found
