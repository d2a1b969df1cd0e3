"""What abcvoting does with the same approvals; run in its own environment by ``aboveboard reproduce``."""

import random
import time

import numpy as np
from abcvoting import abcrules, properties
from abcvoting.preferences import Profile


def verdicts(**cases):
    """Return whether abcvoting finds justified representation: ``<name>.a`` approvals, ``<name>.w`` selected."""
    found = {}
    for name in sorted({key.rpartition(".")[0] for key in cases}):
        profile = _profile(cases[f"{name}.a"])
        found[name] = bool(properties.check("jr", profile, cases[f"{name}.w"].tolist(), algorithm="brute-force"))
    return {"holds": found}


def committees(*, k, rules, **cases):
    """Return the committee of each rule for each matrix of approvals, ``<name>.<rule>``, and the seconds it took."""
    random.seed(0)
    found, seconds = {}, {}
    for name, approvals in cases.items():
        profile = _profile(approvals)
        for rule in rules:
            start = time.perf_counter()
            committee = abcrules.compute(rule, profile, committeesize=k, resolute=True)[0]
            seconds[f"{name}.{rule}"] = time.perf_counter() - start
            found[f"{name}.{rule}"] = np.array(sorted(committee), dtype=np.int64)
    found["seconds"] = seconds
    return found


def _profile(approvals):
    profile = Profile(approvals.shape[1])
    profile.add_voters([np.flatnonzero(row).tolist() for row in approvals])
    return profile
