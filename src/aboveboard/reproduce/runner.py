"""Run an experiment, and record its evidence.

The evidence of a method holds the outcome at both scales, the seed, the commit, a hash of what the method's own source
does, versions, hardware and minutes. Recording is refused where the experiment or the method has uncommitted changes,
so that a figure can always be traced to the code that gave it.
"""

import ast
import hashlib
import importlib
import json
import os
import platform
import subprocess
import time
from importlib import metadata, resources
from pathlib import Path
from typing import Any

import aboveboard
from aboveboard.core.catalogue import Method
from aboveboard.core.errors import InputError
from aboveboard.reproduce import Outcome, Scale

__all__ = ["record", "run", "source_hash"]

_VERSIONED = ("numpy", "scipy", "scikit-learn", "pandas", "pyarrow", "joblib")
_OF_EXTRAS = {"cluster": "distributed", "fast": "numba", "solvers": "ortools", "torch": "torch"}
_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def run(method: Method, scale: Scale = "quick", *, seed: int = 0) -> Outcome:
    """Run the experiment of `method`.

    Parameters
    ----------
    scale : {"quick", "full"}
        Seconds, or the full claim.
    seed : int
    """
    experiment = importlib.import_module(f"aboveboard.reproduce.{method.area}.{method.slug}")
    outcome: Outcome = experiment.run(scale, random_state=seed)
    return outcome


def record(method: Method, *, seed: int = 0) -> tuple[Outcome, Path]:
    """Run both scales, and write the evidence beside the experiment.

    Raises
    ------
    InputError
        When the code is no checkout of the project, or when the method or its experiment has uncommitted changes.
    """
    folder = Path(str(resources.files("aboveboard"))) / "reproduce" / method.area
    commit = _clean_commit(method, folder)
    quick = run(method, "quick", seed=seed)
    start = time.monotonic()
    full = run(method, "full", seed=seed)
    evidence: dict[str, Any] = {
        "method": method.name,
        "seed": seed,
        "commit": commit,
        "source_sha256": source_hash(method),
        "versions": {"aboveboard": aboveboard.__version__, "python": platform.python_version()}
        | {name: metadata.version(name) for name in (*_VERSIONED, *map(_OF_EXTRAS.__getitem__, method.extras))},
        "hardware": _hardware(),
        "minutes": round((time.monotonic() - start) / 60, 2),
        "passed": full.passed,
        "full": full.to_dict(),
        "quick": quick.to_dict(),
    }
    path = folder / f"{method.slug}.json"
    path.write_text(json.dumps(evidence, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return full, path


def source_hash(method: Method) -> str:
    """Return the sha256 of what the method's module (or package) and its experiment do.

    Comments, layout and docstrings do not count, so that better wording leaves the evidence valid; any change to the
    code makes it stale. Code in other modules that the method calls does not count either.
    """
    digest = hashlib.sha256()
    for file in _sources(method):
        digest.update(file.name.encode() + b"\x00")
        digest.update(code_digest(file.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()


def code_digest(source: str) -> str:
    """Return the sha256 of the syntax tree of `source` without its docstrings.

    Only what the parser of every supported Python gives counts: empty and absent fields are left out, since newer
    versions add some.
    """
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _has_docstring(
            node
        ):
            del node.body[0]
    return hashlib.sha256(_spelled(tree).encode("utf-8", "surrogatepass")).hexdigest()


def _has_docstring(node: _Documented) -> bool:
    first = node.body[0] if node.body else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def _spelled(value: object) -> str:
    if isinstance(value, list):
        return "[" + ",".join(_spelled(item) for item in value) + "]"
    if not isinstance(value, ast.AST):
        return repr(value)
    fields = [f"{name}={_spelled(item)}" for name, item in ast.iter_fields(value) if item not in (None, [])]
    return f"{type(value).__name__}({','.join(fields)})"


def _sources(method: Method) -> list[Path]:
    root = Path(str(resources.files("aboveboard")))
    module = root.joinpath(*method.import_path.partition(":")[0].split(".")[1:])
    files = sorted(module.rglob("*.py")) if module.is_dir() else [module.with_suffix(".py")]
    return [*files, root / "reproduce" / method.area / f"{method.slug}.py"]


def _clean_commit(method: Method, folder: Path) -> str:
    try:
        changed = _git(folder, "status", "--porcelain", "--", *map(str, _sources(method)))
        commit = _git(folder, "rev-parse", "HEAD")
    except (OSError, subprocess.CalledProcessError) as error:
        raise InputError(
            "evidence can only be recorded in a git checkout of aboveboard",
            remedy="Clone the project, install it with 'pip install -e .', and run this there",
        ) from error
    if changed:
        raise InputError(
            f"the source of {method.name} has uncommitted changes: {changed.split()[-1]}",
            remedy="Commit them first, so that the evidence names the code that gave it",
        )
    return commit


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def _hardware() -> dict[str, Any]:
    import psutil

    return {
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30),
        "machine": platform.machine(),
        "system": platform.system(),
    }
