"""What IPOPT makes of the same interventions; run in an environment of its own by ``aboveboard reproduce``.

CasADi brings IPOPT. The opinions are variables beside the weights, and the equilibrium is a constraint: a plain
nonlinear program.
"""

import time

import casadi
import numpy as np


def disagreement(*, radius, names, fixed, **arrays):
    """Return the least disagreement that IPOPT finds from each start, per case, and the seconds that it took.

    ``<name>.ends`` (2, m) are the pairs, ``<name>.weights`` (m,) their weights, ``<name>.opinions`` (n,) the own
    opinions and ``<name>.starts`` (k, m) the weights to start from; `fixed` says of which cases the totals stay.
    """
    found, seconds = {}, {}
    for name in names:
        begun = time.process_time()
        parts = [arrays[f"{name}.{part}"] for part in ("ends", "weights", "opinions", "starts")]
        found[name] = _solve(*parts, radius, name in fixed)
        seconds[name] = time.process_time() - begun
    return {**found, "seconds": seconds}


def _solve(ends, weights, opinions, starts, radius, fixed):
    m, n = len(weights), len(opinions)
    w, y = casadi.MX.sym("w", m), casadi.MX.sym("y", n)
    difference = casadi.DM(m, n)
    for k, (i, j) in enumerate(ends.T.tolist()):
        difference[k, i], difference[k, j] = 1, -1
    difference = casadi.sparsify(difference)
    gaps = difference @ y
    equal = [y + difference.T @ (w * gaps) - opinions]
    if fixed:
        equal.append(casadi.fabs(difference).T @ (w - weights))
    ball = casadi.sumsqr(w - weights) - (radius * np.linalg.norm(weights)) ** 2
    problem = {"x": casadi.vertcat(w, y), "f": casadi.dot(w, gaps**2), "g": casadi.vertcat(*equal, ball)}
    quiet = {"ipopt.print_level": 0, "print_time": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-8, "ipopt.max_iter": 1000}
    solver = casadi.nlpsol("solver", "ipopt", problem, quiet)
    rows = sum(part.shape[0] for part in equal)
    values = []
    for start in starts:
        answer = solver(
            x0=np.concatenate([start, opinions]),
            lbx=np.concatenate([np.zeros(m), np.full(n, -np.inf)]),
            ubx=np.full(m + n, np.inf),
            lbg=np.concatenate([np.zeros(rows), [-np.inf]]),
            ubg=np.zeros(rows + 1),
        )
        values.append(float(answer["f"]) if solver.stats()["success"] else np.inf)
    return np.array(values)
