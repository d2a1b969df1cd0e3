"""Samples whose difference is known."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def gaussians():
    """Return a maker of two normal samples whose means are `delta` apart."""

    def make(delta: float, n: int, seed: int = 0, d: int = 3) -> dict[str, pd.DataFrame]:
        rng = np.random.default_rng(seed)
        shift = np.zeros(d)
        shift[0] = delta
        names = [f"x{j}" for j in range(d)]
        return {
            "left": pd.DataFrame(rng.normal(size=(n, d)), columns=names),
            "right": pd.DataFrame(rng.normal(size=(n, d)) + shift, columns=names),
        }

    return make
