"""What the tests of streaming share: a table, how to write it to files, and how to compare two reports."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import aboveboard


def people():
    """People with scores, labels, classes and amounts, predicted more or less well."""
    rng = np.random.default_rng(0)
    n = 3000
    sex, region = rng.choice(["f", "m"], n), rng.choice(list("abcd"), n, p=[0.4, 0.3, 0.2, 0.1])
    signal = rng.normal(size=n) + 0.4 * (sex == "m")
    kind = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    chances = rng.dirichlet(np.ones(3), n) * 0.6 + 0.4 * np.eye(3)[kind]
    amount = rng.gamma(2, 3, n)
    frame = pd.DataFrame(
        {
            "x0": signal + rng.normal(size=n),
            "x1": np.where(rng.random(n) < 0.05 + 0.2 * (sex == "f"), np.nan, rng.normal(size=n)),
            "x2": rng.choice(["red", "green", "blue"], n),
            "sex": sex,
            "region": region,
            "age": rng.integers(18, 80, n),
            "w": rng.uniform(0.2, 3, n),
            "who": rng.integers(0, 700, n),
            "y": (rng.random(n) < 1 / (1 + np.exp(-signal))).astype(int),
            "p": 1 / (1 + np.exp(-1.4 * signal)),
            "said": np.where(signal > 0, 1, 0),
            "kind": np.array(["k0", "k1", "k2"])[kind],
            "amount": amount,
            "guess": amount + rng.normal(0, 1, n),
        }
    )
    for c in range(3):
        frame[f"p_k{c}"] = chances[:, c]
    return frame


CASES = {
    "scores": {"y": "y", "predictions": "p", "sensitive_features": ["sex", "region", "age:30,50"]},
    "weights": {"y": "y", "predictions": "p", "sensitive_features": ["sex", "age"], "sample_weight": "w"},
    "clusters": {
        "y": "y", "predictions": "p", "sensitive_features": ["sex"], "sample_weight": "w", "clusters": "who",
    },
    "labels": {"y": "y", "predictions": "said", "sensitive_features": ["sex"], "reference_group": {"sex": "m"}},
    "classes": {"y": "kind", "predictions": ["p_k2", "p_k0", "p_k1"], "sensitive_features": ["sex"]},
    "numbers": {"y": "amount", "predictions": "guess", "sensitive_features": ["sex"], "sample_weight": "w"},
    "clustered numbers": {"y": "amount", "predictions": "guess", "sensitive_features": ["sex"], "clusters": "who"},
}  # fmt: skip


def write(frame, folder, sizes, *, group=400):
    """Write rows to as many files as there are sizes, and return the folder."""
    folder.mkdir(exist_ok=True)
    start = 0
    for number, size in enumerate(sizes):
        part = pa.Table.from_pandas(frame.iloc[start : start + size], preserve_index=False)
        pq.write_table(part, folder / f"part-{number:03}.parquet", row_group_size=group)
        start += size
    return folder


def audited(X, case, **options):
    """Return the report of one of the cases as a dict, without what tells when and how the data were read."""
    given = dict(CASES[case]) | {"effort": "quick", "show_progress": False, "skip": ["duplicates"]} | options
    own = {"y", "p", "said", "kind", "amount", "guess", "w", "who", "p_k0", "p_k1", "p_k2"}
    used = {given["y"], given.get("sample_weight"), given.get("clusters")}
    used |= {given["predictions"]} if isinstance(given["predictions"], str) else set(given["predictions"])
    report = aboveboard.audit(None, X, given.pop("y"), drop=sorted(own - used), **given)
    found = json.loads(report.to_json())
    found.pop("timing")
    found["subject"].pop("data_sha256")
    found["notes"] = [note for note in found["notes"] if "were streamed" not in note]
    return found


def differences(one, other, path="", *, tolerance=1e-9):
    """Return where two reports differ: numbers by more than the tolerance, all else at all."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = one.keys() | other.keys()
        return [d for k in keys for d in differences(one.get(k), other.get(k), f"{path}/{k}", tolerance=tolerance)]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [d for i, (a, b) in pairs for d in differences(a, b, f"{path}[{i}]", tolerance=tolerance)]
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if one == other or (numbers and abs(one - other) <= tolerance * max(1.0, abs(one))):
        return []
    return [(path, one, other)]
