"""What ByzFL makes of the same messages; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
from byzfl.aggregators import CAF


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
