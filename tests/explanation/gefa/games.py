"""Games whose Shapley values are known."""

from itertools import permutations
from math import factorial

import numpy as np


def monomials(n, terms, rng):
    """Return a random sum of products of players, and its Shapley values, which share each product equally."""
    members = [rng.choice(n, size=rng.integers(1, min(n, 5)), replace=False) for _ in range(terms)]
    factors = rng.normal(size=terms)
    truth = np.zeros(n)
    for players, factor in zip(members, factors, strict=True):
        truth[players] += factor / len(players)

    def game(z):
        return sum(c * z[:, s].all(axis=1) for s, c in zip(members, factors, strict=True))

    return game, truth


def table_game(n, rng):
    """Return a game whose 2^n values are drawn independently: as far from additive as can be."""
    values = rng.normal(size=1 << n)
    powers = 1 << np.arange(n)
    return (lambda z: values[np.asarray(z) @ powers]), values


def by_orders(game, n):
    """The definition: the mean gain of a player over all orders in which players may arrive."""
    phi = np.zeros(n)
    for order in permutations(range(n)):
        z = np.zeros((n + 1, n), dtype=bool)
        for place, player in enumerate(order):
            z[place + 1 :, player] = True
        phi[list(order)] += np.diff(game(z))
    return phi / factorial(n)
