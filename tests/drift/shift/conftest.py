"""Domains that the tests of SHIFT share."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression


@pytest.fixture(scope="session")
def fast():
    """Settings under which a fit takes a fraction of a second."""
    return {"outcome_model": LogisticRegression(), "density_model": LogisticRegression(), "n_bootstrap": 2000}


@pytest.fixture(scope="session")
def flipped():
    """Two domains of 3,000 rows; labels of the target are flipped in two of five rows where x1 > 1."""
    rng = np.random.default_rng(0)
    X0, X1 = rng.normal(size=(2, 3000, 3))
    y0, y1 = ((rng.random(3000) < 1 / (1 + np.exp(-3 * X[:, 0]))).astype(int) for X in (X0, X1))
    y1 = np.where((X1[:, 1] > 1) & (rng.random(3000) < 0.4), 1 - y1, y1)
    return X0, y0, X1, y1


class Sign:
    """A model that looks at the first column alone."""

    def predict_proba(self, X):
        one = 1.0 / (1.0 + np.exp(-3.0 * np.asarray(X)[:, 0]))
        return np.column_stack([1.0 - one, one])


@pytest.fixture(scope="session")
def sign():
    return Sign()
