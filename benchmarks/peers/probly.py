"""probly's measures of the same members; run in an environment of its own."""

import sys
import time
from unittest.mock import MagicMock

import numpy as np

sys.modules["torchvision"] = (
    MagicMock()
)  # imported for image data sets that are not used; must match the build of torch
from probly.quantification.classification import conditional_entropy, mutual_information, total_entropy  # noqa: E402


def entropies(members):
    """Return the three measures that it has in common with the log score, in nats, and their seconds."""
    probs = np.ascontiguousarray(members.transpose(1, 0, 2))  # it wants rows first
    start = time.process_time()
    found = {
        "predictive_entropy": total_entropy(probs, base=np.e),
        "expected_entropy": conditional_entropy(probs, base=np.e),
        "mutual_information": mutual_information(probs, base=np.e),
    }
    return {**found, "seconds": time.process_time() - start}
