"""Opacus' Rényi accountant on the same mechanisms; run in an environment of its own."""

import numpy as np
from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent


def poisson(orders, multipliers, rates):
    """Return the divergences of one sampled Gaussian release, by mechanism and order."""
    return {
        "values": np.array(
            [
                compute_rdp(q=float(rate), noise_multiplier=float(multiplier), steps=1, orders=orders.tolist())
                for multiplier, rate in zip(multipliers, rates)
            ]
        )
    }


def composition(orders, multiplier, steps, delta):
    """Return the epsilon of composed Gaussian releases, by number of steps."""
    found = []
    for count in steps.astype(int).tolist():
        divergences = compute_rdp(q=1.0, noise_multiplier=multiplier, steps=count, orders=orders.tolist())
        found.append(get_privacy_spent(orders=orders.tolist(), rdp=divergences, delta=delta)[0])
    return {"epsilon": np.array(found)}
