"""Votes of all kinds, and what is true of them by definition: counted judge by judge, searched ranking by ranking."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest


def _supports(score, i, j):
    """Whether a judge places i above j."""
    return bool(score[i] > score[j])  # NaN is above and below nothing


def _weights(votes, missing="dissent", ties="dissent"):
    """Return w, entry i, j: how many judges do not support j above i; one judge and pair at a time."""
    p, n = votes.shape
    w = np.zeros((n, n))
    for i, j in itertools.permutations(range(n), 2):
        compared = 0
        for judge in votes:
            if np.isnan(judge[i]) or np.isnan(judge[j]):
                w[i, j] += missing == "dissent"
                continue
            compared += 1
            if not _supports(judge, j, i):
                w[i, j] += 0.5 if ties == "half" and judge[i] == judge[j] else 1
        if missing == "rescale":
            w[i, j] = w[i, j] * p / compared if compared else p
    return w


def _rankings(n):
    """Yield every ranking with ties, as the tier of each item."""
    for tier in itertools.product(range(n), repeat=n):
        if set(tier) == set(range(max(tier) + 1)):
            yield np.array(tier)


def _best(w, p, tau):
    """Return every ranking within tau that makes the most comparisons."""
    found, most = [], -1
    for tier in _rankings(len(w)):
        claims = tier[None, :] < tier[:, None]
        if (w[claims] <= tau * p + 1e-9 * p).all():
            count = int(claims.sum())
            if count > most:
                found, most = [], count
            if count == most:
                found.append(tier)
    return found


@pytest.fixture(scope="session")
def brute():
    return SimpleNamespace(weights=_weights, rankings=_rankings, best=_best)


@pytest.fixture(scope="session")
def nba():
    """The ballots: 100 voters, seven coaches, in the order of the recorded matrix."""
    from aboveboard.data import load_nba_coach

    return load_nba_coach(names=False).X.T[
        [
            "Doc Rivers",
            "Monty Williams",
            "Steve Nash",
            "Michael Malone",
            "Nate McMillan",
            "Quin Snyder",
            "Tom Thibodeau",
        ]
    ]
