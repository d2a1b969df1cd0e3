"""What relplot says of the same confidences; run in its own environment by ``aboveboard reproduce``."""

import relplot
from relplot.metrics import binnedECE


def errors(*, y, **confidences):
    """Return for each array of confidences the smooth and the binned calibration error."""
    found = {}
    for name, values in confidences.items():
        found[f"{name}.smooth"] = float(relplot.smECE(values, y))
        found[f"{name}.binned"] = float(binnedECE(values, y, nbins=100))
    return found
