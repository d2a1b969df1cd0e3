"""What ByzFL makes of the same messages; run in its own environment by ``aboveboard reproduce``."""

import sys
import time
from unittest.mock import MagicMock

import numpy as np

# only its benchmark wants torchvision, whose compiled part has to fit the build of PyTorch
sys.modules |= {name: MagicMock() for name in ("torchvision", "torchvision.models")}
from byzfl.aggregators import CAF  # noqa: E402


def caf(*, f, times, **sets):
    """Filter each set of messages several times: the result depends on NumPy's global generator."""
    found, seconds = {}, []
    for name, x in sets.items():
        for repeat in range(times):
            np.random.seed(repeat)  # noqa: NPY002
            start = time.process_time()
            found[f"{name}.{repeat}"] = np.asarray(CAF(f=f)(x))
            seconds.append(time.process_time() - start)
    nothing = CAF(f=0)(next(iter(sets.values()))[:, :10])
    return found | {"seconds": seconds, "without_liars": "nothing" if nothing is None else "a mean"}
