"""What hyppo says of the same pairs of samples; run in its own environment by ``aboveboard reproduce``."""

import time

from hyppo.ksample import MMD, Energy


def energy(*, seed, **pairs):  # noqa: ARG001
    """Test each pair by the distance between energies, with the chi-square approximation."""
    return _each(pairs, lambda x, y: Energy().test(x, y, auto=True))


def mmd(*, seed, **pairs):  # noqa: ARG001
    """Test each pair by the maximum mean discrepancy (Gaussian kernel, median width), chi-square approximation."""
    return _each(pairs, lambda x, y: MMD().test(x, y, auto=True))


def _each(pairs, test):
    """Arrays are called ``<pair>.reference`` and ``<pair>.current``."""
    names = [name.removesuffix(".reference") for name in pairs if name.endswith(".reference")]
    p_values, seconds = [], []
    for name in names:
        start = time.perf_counter()
        p_values.append(float(test(pairs[f"{name}.reference"], pairs[f"{name}.current"])[1]))
        seconds.append(time.perf_counter() - start)
    return {"names": names, "p_values": p_values, "seconds": seconds}
