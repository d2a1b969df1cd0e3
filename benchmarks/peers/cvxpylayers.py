"""What a cone program makes of the same games; run in its own environment by ``aboveboard reproduce``."""

import time

import cvxpy as cp
import numpy as np
import torch
from cvxpylayers.torch import CvxpyLayer


def game(n, d, alpha, beta, low, high, *, pairs=False):
    """Return the program of one game (congestion, costs in proportion to the distance), its parameters and reports.

    With `pairs`, every pair has a term of its own, as the externality is defined; else they are summed up first.
    """
    true, weight, reported = cp.Parameter((n, d)), cp.Parameter(d), cp.Variable((n, d))
    distance = cp.norm(reported - true, 2, axis=1)
    if pairs:
        externality = sum(cp.square(distance[i] + distance[j]) for i in range(n) for j in range(i))
    else:
        externality = (n - 2) * cp.sum_squares(distance) + cp.square(cp.sum(distance))
    worth = cp.sum(reported @ weight) - alpha * cp.sum(distance) - beta * externality
    problem = cp.Problem(cp.Maximize(worth), [reported >= low, reported <= high])
    return problem, true, weight, reported


def exact(X, coef, *, alpha, beta, low, high):
    """Return the equilibria of games (games, n, d), solved one after the other to high precision."""
    problem, true, weight, reported = game(*X.shape[1:], alpha, beta, low, high)
    weight.value = coef
    found = np.empty(X.shape)
    for k, features in enumerate(X):
        true.value = features
        # interior points stall some 1e-5 from the answer where an applicant barely stops at a bound; splitting does not
        problem.solve(solver=cp.SCS, eps_abs=1e-11, eps_rel=1e-11, max_iters=200_000)
        found[k] = reported.value
    return {"reported": found}


def layer(X, coef, *, alpha, beta, low, high, repeats):
    """Return the seconds of processor time that a differentiable layer takes for a batch of games, and its gradient."""
    problem, true, weight, reported = game(*X.shape[1:], alpha, beta, low, high)
    solve = CvxpyLayer(problem, parameters=[true, weight], variables=[reported])
    forward, both = [], []
    for _ in range(repeats):
        coefficients = torch.tensor(np.tile(coef, (len(X), 1)), requires_grad=True)
        start = time.process_time()
        (found,) = solve(torch.tensor(X), coefficients)
        forward.append(time.process_time() - start)
        found.sum().backward()
        both.append(time.process_time() - start)
    return {"forward": min(forward), "both": min(both), "reported": found.detach().numpy()}


def growth(*, sizes, d, alpha, beta, low, high):
    """Return the seconds of processor time for one game of each size, with a term for every pair."""
    rng = np.random.default_rng(0)
    seconds = []
    for n in sizes:
        problem, true, weight, _ = game(n, d, alpha, beta, low, high, pairs=True)
        weight.value = rng.normal(size=d)
        true.value = np.clip(rng.normal(size=(n, d)), low, high)
        problem.solve(solver=cp.CLARABEL)  # compiles
        start = time.process_time()
        problem.solve(solver=cp.CLARABEL)
        seconds.append(time.process_time() - start)
    return {"seconds": seconds}
