import numpy as np
import pandas as pd
import pytest

from aboveboard.auditing.checks import model_multiplicity
from aboveboard.auditing.subject import make_subject


def _subject_of(n=4000, seed=0, apart=0.3, extra=0.0, scores=True, **options):
    """Two models of one truth that differ for the group "b" alone, one the mirror of the other."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(20, 80, n).round(1), "town": rng.choice(["A", "B", "C"], n)})
    group = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    truth = rng.uniform(0.05, 0.95, n)
    y = (rng.random(n) < truth).astype(int)
    noise = apart * rng.standard_normal(n) * (group == "b")
    p, q = (np.clip(truth + sign * noise + (sign < 0) * extra, 0, 1) for sign in (1, -1))
    if not scores:
        p, q = (p >= 0.5).astype(int), (q >= 0.5).astype(int)
    return make_subject(
        None, X, y, predictions=p, compare_predictions=q, sensitive_features=pd.DataFrame({"g": group}), **options
    )


def _findings_of(subject, seed=0):
    found = model_multiplicity.check(subject, random_state=seed, effort="standard")
    assert all(f.check == "model_multiplicity" and f.area == "uncertainty" for f in found)
    return {f.id.removeprefix("model_multiplicity/"): f for f in found}


@pytest.fixture
def subject_of():
    return _subject_of


@pytest.fixture
def findings_of():
    return _findings_of
