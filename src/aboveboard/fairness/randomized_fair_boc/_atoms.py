"""From scores and outcomes to atoms, and from a rate back to a threshold on the score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from aboveboard.fairness.randomized_fair_boc._optimum import (
    Constraint,
    Floats,
    GroupCurve,
    Indices,
    best_rates,
    constraint_mass,
    without_mass,
)

__all__ = ["SAME_SCORE", "GroupAtoms", "Rule", "SortedScores", "accepted", "all_present", "fair_rules"]

SAME_SCORE: Final = 1e-12
"""Scores closer than this are equal: one person's score may differ in the last bits from batch to batch."""


class Rule(NamedTuple):
    """Accept scores above the threshold, and with probability `tie` those that equal it."""

    threshold: float
    tie: float


def accepted(score: Floats, threshold: Floats | float, tie: Floats | float) -> Floats:
    """Return the probability of acceptance of each score."""
    return np.where(np.abs(score - threshold) <= SAME_SCORE, tie, score > threshold).astype(np.float64)


@dataclass(frozen=True, slots=True)
class SortedScores:
    """Rows sorted by group and then by score: sorted once, whatever is computed from them.

    Parameters
    ----------
    order : ndarray of int, shape (n,)
        Row that stands at each place.
    score, y, weight : ndarray of float, shape (n,)
        In that order; weights are positive and sum to one.
    bounds : ndarray of int, shape (n_groups + 1,)
        Where each group begins, and the end.
    """

    order: Indices
    score: Floats
    y: Floats
    weight: Floats
    bounds: Indices

    @classmethod
    def build(cls, score: Floats, y: Floats, weight: Floats, code: Indices, n_groups: int) -> "SortedScores":
        order = np.argsort(score, kind="stable")
        order = order[np.argsort(code[order].astype(np.int16 if n_groups < 2**15 else np.intp), kind="stable")]
        bounds = np.concatenate([[0], np.cumsum(np.bincount(code, minlength=n_groups))])
        return cls(order, score[order], y[order], weight[order] / weight.sum(), bounds)

    @property
    def codes(self) -> Indices:
        """The group of the row at each place."""
        return np.repeat(np.arange(len(self.bounds) - 1), np.diff(self.bounds))

    def slices(self) -> list[slice]:
        """Return the places of each group."""
        return [slice(a, b) for a, b in zip(self.bounds[:-1], self.bounds[1:], strict=True)]

    def atoms(
        self, constraint: Constraint, *, calibrate: bool, keep: NDArray[np.bool_] | None = None
    ) -> "list[GroupAtoms | None]":
        """Return the atoms of each group, of all rows or of those to keep; None for a group without constraint mass."""
        found = []
        for places in self.slices():
            rows: Any = places if keep is None else np.flatnonzero(keep[places]) + places.start
            found.append(
                GroupAtoms.build(self.score[rows], self.y[rows], self.weight[rows], constraint, calibrate=calibrate)
            )
        return found


@dataclass(frozen=True, slots=True)
class GroupAtoms:
    """The atoms of one group in the order in which they are accepted: descending score.

    Parameters
    ----------
    score, mass, eta, weight : ndarray of float, shape (n_atoms,)
        Score, mass, probability of a positive outcome, and constraint mass.
    curve : GroupCurve
        Of the atoms that have constraint mass: places `first` to `last`.
    first, last : int
    """

    score: Floats
    mass: Floats
    eta: Floats
    weight: Floats
    curve: GroupCurve
    first: int
    last: int

    @classmethod
    def build(
        cls, score: Floats, y: Floats, weight: Floats, constraint: Constraint, *, calibrate: bool
    ) -> "GroupAtoms | None":
        """Build them from rows in ascending order of score; None where they have no constraint mass."""
        if not len(score):
            return None
        starts = np.flatnonzero(np.diff(score, prepend=-np.inf) > SAME_SCORE)
        mass = np.add.reduceat(weight, starts)
        top = score[np.append(starts[1:], len(score)) - 1]
        if calibrate:
            eta = _isotonic(np.add.reduceat(weight * y, starts) / mass, mass)
        else:
            eta = top
        top, mass, eta = top[::-1], mass[::-1], eta[::-1]
        c = constraint_mass(mass, eta, constraint)
        inside = np.flatnonzero(c)
        if not len(inside):
            return None
        first, last = int(inside[0]), int(inside[-1]) + 1
        curve = GroupCurve.from_sorted(mass[first:last], eta[first:last], constraint)
        return cls(top, mass, eta, c, curve, first, last)

    def rule(self, rate: float) -> Rule:
        """Return the threshold that gives this rate, and the probability of acceptance at it."""
        whole, part = (values[0] for values in self.curve.cut(np.array([rate])))
        if part > 0:
            return Rule(float(self.score[self.first + whole]), float(part))
        return self.whole_rule(self.first + int(whole))

    def whole_rule(self, n_accepted: int) -> Rule:
        """Return the threshold that accepts the `n_accepted` highest atoms."""
        if n_accepted == len(self.score):
            return Rule(-np.inf, 1.0)
        return Rule(float(self.score[n_accepted - 1]), 1.0) if n_accepted else Rule(np.inf, 0.0)

    def best_rule(self) -> Rule:
        """Return the threshold that is best without any constraint."""
        return self.whole_rule(int((self.eta > 0.5).sum()))

    def acceptance(self, rule: Rule) -> Floats:
        """Return the probability of acceptance of each atom."""
        return accepted(self.score, *rule)

    def rate(self, rule: Rule) -> float:
        return float(self.weight @ self.acceptance(rule) / self.curve.total)


def fair_rules(
    rows: SortedScores, groups: Sequence[Any], constraint: Constraint, slack: float, *, calibrate: bool
) -> tuple[list[GroupAtoms], list[Rule]]:
    """Return the atoms of each group, and the rules of the most accurate fair classifier over them."""
    atoms = all_present(rows.atoms(constraint, calibrate=calibrate), groups, constraint)
    rates = best_rates([group.curve for group in atoms], slack)
    return atoms, [group.rule(rate) for group, rate in zip(atoms, rates, strict=True)]


def all_present(atoms: Sequence[GroupAtoms | None], groups: Sequence[Any], constraint: Constraint) -> list[GroupAtoms]:
    """Return the atoms, or say which group has none that count."""
    for group, found in zip(groups, atoms, strict=True):
        if found is None:
            raise without_mass(group, constraint)
    return [found for found in atoms if found is not None]


def _isotonic(mean: Floats, mass: Floats) -> Floats:
    """Return the non-decreasing sequence nearest to `mean`."""
    from scipy.optimize import isotonic_regression

    eta: Floats = np.clip(isotonic_regression(mean, weights=mass).x, 0.0, 1.0)
    return eta
