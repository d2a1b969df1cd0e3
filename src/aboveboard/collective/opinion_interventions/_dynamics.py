"""The network administrator of Chitra and Musco, who lowers disagreement without foreseeing that opinions move."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from aboveboard.collective.opinion_interventions._constraints import Constraint, FrobeniusBall, least_linear
from aboveboard.collective.opinion_interventions._equilibrium import FriedkinJohnsen
from aboveboard.collective.opinion_interventions._network import mutable_edges
from aboveboard.core.errors import InputError

__all__ = ["AdministratorPath", "administrator_dynamics"]


class AdministratorPath(NamedTuple):
    """Where the administrator's steps lead.

    Attributes
    ----------
    weights : csr_array of shape (n, n)
    opinions : ndarray of shape (n,)
    disagreement : ndarray of shape (steps + 1,)
        In the equilibrium before, and after each step.
    """

    weights: sparse.csr_array
    opinions: NDArray[np.float64]
    disagreement: NDArray[np.float64]


def administrator_dynamics(
    W: Any,
    s: ArrayLike,
    *,
    constraint: Constraint | None = None,
    mutable: Any = "all",
    symmetric: bool = True,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> AdministratorPath:
    """Alternate between opinions in equilibrium and the weights with the least disagreement for these opinions.

    A baseline: it takes opinions for fixed while it chooses weights. Once people have listened they no longer are, and
    disagreement can end higher than it began.

    Parameters
    ----------
    W, s, constraint, mutable, symmetric
        As for `OpinionInterventionOptimizer`; here `symmetric` is the default.
    max_iter : int
    tol : float
        Ends when no weight changes by more.

    Returns
    -------
    AdministratorPath

    Raises
    ------
    aboveboard.core.InputError
        As `OpinionInterventionOptimizer`.

    Notes
    -----
    With opinions held fixed, disagreement is linear in the weights; its least point in the set is the projection of a
    point far down the slope. A linear system and a projection per step.

    References
    ----------
    U. Chitra, C. Musco, "Analyzing the Impact of Filter Bubbles on Social Network Polarization", WSDM 2020.

    Examples
    --------
    Two people may be brought a fifth closer or moved a fifth apart. The administrator parts them, and disagreement
    rises from 0.1111:

    >>> from aboveboard.collective import administrator_dynamics
    >>> path = administrator_dynamics([[0, 1], [1, 0]], [1, 0])
    >>> path.weights.toarray().round(6).tolist(), path.disagreement.round(4).tolist()
    ([[0.0, 0.8], [0.8, 0.0]], [0.1111, 0.1183, 0.1183])
    """
    if max_iter < 1:
        raise InputError(f"max_iter is {max_iter!r}", expected="a whole number from 1 on")
    model = FriedkinJohnsen(W, s)
    edges = mutable_edges(model.W, mutable, symmetric=symmetric)
    project = (FrobeniusBall() if constraint is None else constraint).projection(edges)
    x, y = edges.start, model.equilibrium()
    path = [model.disagreement(y)]
    for _ in range(max_iter):
        slope = (y[edges.rows] - y[edges.cols]) ** 2
        if not slope.any():
            break
        chosen = least_linear(project, edges.start, slope)
        moved = float(np.abs(chosen - x).max())
        x = chosen
        edges.write(model.W, x)
        model.reweighted()
        y = model.equilibrium(start=y)
        path.append(model.disagreement(y))
        if moved <= tol:
            break
    return AdministratorPath(model.W, y, np.asarray(path))
