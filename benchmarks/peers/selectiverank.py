"""What selectiverank does with the same votes; run in its own environment by ``aboveboard reproduce``."""

import contextlib
import io
import time

import numpy as np
import pandas as pd
from spa.data import PreferenceDataset
from spa.spa import SelectiveRankAggregator


def paths(*, repeats, **votes):
    """Return, for each matrix of scores (judges x items, higher is better), the tiers at every dissent of its path.

    ``<name>.rates`` holds the dissent rates, ``<name>.tiers`` one row of tiers per rate, and ``seconds`` for each
    matrix the least time of its path, and of counting and path together, over the repeats.
    """
    found = {"seconds": {}}
    for name, scores in votes.items():
        data = _dataset(scores)
        path_seconds, whole_seconds = [], []
        for _ in range(repeats):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                start = time.perf_counter()
                ranker = SelectiveRankAggregator(data, prefs=data.prefs.copy())
                counted = time.perf_counter()
                path, _ = ranker.fit_path()
                end = time.perf_counter()
            path_seconds.append(end - counted)
            whole_seconds.append(end - start)
        found["seconds"][name] = [min(path_seconds), min(whole_seconds)]
        rates = sorted(path.dissent_rates)
        tiers = np.zeros((len(rates), scores.shape[1]), dtype=np.int64)
        for row, rate in enumerate(rates):
            ranks = path[rate].ranks
            tiers[row, ranks["item_id"].to_numpy()] = ranks["rank"].to_numpy() - 1
        found[f"{name}.rates"], found[f"{name}.tiers"] = np.array(rates), tiers
    return found


def _dataset(scores):
    p, n = scores.shape
    first, second = np.triu_indices(n, 1)
    frame = pd.DataFrame(
        {
            "judge_id": np.repeat(np.arange(p), len(first)),
            "item_id_1": np.tile(first, p),
            "item_id_2": np.tile(second, p),
            "pref": np.sign(scores[:, first] - scores[:, second]).ravel().astype(int),
        }
    )
    return PreferenceDataset.parse_pairwise(frame, "pairwise")
