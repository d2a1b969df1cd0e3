"""What multi-freq-ldpy estimates from the same values; run in its own environment by ``aboveboard reproduce``."""

import time

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
from numba import njit


def frequencies(*, bins, k, epsilon, repeats, seed):
    """Estimate how often each of k bins occurs, by generalised randomised response and by optimised unary encoding."""
    _seed(seed)
    GRR_Client(0, k, epsilon), UE_Client(0, k, epsilon)  # compiles them
    grr, oue, seconds = [], [], {"grr": [], "oue": []}
    for _ in range(repeats):
        start = time.process_time()
        grr.append(GRR_Aggregator_MI([GRR_Client(int(value), k, epsilon) for value in bins], k, epsilon))
        middle = time.process_time()
        oue.append(UE_Aggregator_MI([UE_Client(int(value), k, epsilon) for value in bins], epsilon))
        seconds["grr"].append(middle - start)
        seconds["oue"].append(time.process_time() - middle)
    return {"grr": np.array(grr), "oue": np.array(oue), "seconds": seconds}


@njit
def _seed(value):
    np.random.seed(value)  # noqa: NPY002
