"""Run a peer (another library) on the same arrays, in an environment of its own, as a subprocess.

``benchmarks/peers/NAME.txt`` pins its packages, ``benchmarks/peers/NAME.py`` holds its functions, and the environment
is made in ``benchmarks/peers/.env-NAME`` when it is first needed, and again when the pins change.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.errors import InputError

__all__ = ["PeerResult", "run_peer"]

_FOLDER = Path(__file__).parents[3] / "benchmarks" / "peers"


@dataclass(frozen=True)
class PeerResult:
    """What a peer answered.

    Attributes
    ----------
    arrays : dict of str to ndarray
    options : dict
        All that it returned besides arrays.
    freeze : tuple of str
        The packages of its environment: ``"numpy==2.4.6"`` and so on.
    """

    arrays: dict[str, NDArray[Any]]
    options: dict[str, Any]
    freeze: tuple[str, ...]


def run_peer(name: str, command: str, arrays: Mapping[str, NDArray[Any]], **options: Any) -> PeerResult:
    """Call a function of a peer's script.

    Parameters
    ----------
    name : str
        Of the peer, such as ``"fairlearn"``.
    command : str
        A function in ``benchmarks/peers/<name>.py``; it takes the arrays and the options by name and returns a dict.
    arrays : mapping of str to ndarray
    **options
        Anything that JSON can hold.

    Returns
    -------
    PeerResult

    Raises
    ------
    InputError
        When this is no checkout of the project, or there is no such peer.
    RuntimeError
        When its environment cannot be made, or the peer fails; with the end of what it wrote.
    """
    script, pins = _FOLDER / f"{name}.py", _FOLDER / f"{name}.txt"
    if not (script.is_file() and pins.is_file()):
        raise InputError(
            f"there is no peer called {name!r}",
            expected="a checkout of the project, with benchmarks/peers/<name>.py and .txt",
            remedy="Clone the project, install it with 'pip install -e .', and run this there",
        )
    python = _environment(_FOLDER / f".env-{name}", pins)
    with tempfile.TemporaryDirectory() as temporary:
        exchange = Path(temporary)
        np.savez(exchange / "in.npz", **arrays)  # type: ignore[arg-type]
        (exchange / "options.json").write_text(json.dumps(options), encoding="utf-8")
        # -P: the script is called like the package that it imports
        _call([python, "-P", "-W", "ignore", str(_FOLDER / "_exchange.py"), str(script), command, temporary])
        with np.load(exchange / "out.npz") as file:
            found = dict(file)
        plain = json.loads((exchange / "out.json").read_text(encoding="utf-8"))
    freeze = _call([python, "-m", "pip", "freeze", "--disable-pip-version-check"])
    return PeerResult(found, plain, tuple(line for line in freeze.splitlines() if "==" in line))


def _environment(folder: Path, pins: Path) -> str:
    """Return the interpreter of the peer's environment, made anew where the pins have changed."""
    python, stamp = folder / "bin" / "python", folder / "pins.sha256"
    wanted = hashlib.sha256(pins.read_bytes()).hexdigest()
    if not (python.is_file() and stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted):
        _call([sys.executable, "-m", "venv", "--clear", str(folder)])
        _call([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)])
        stamp.write_text(wanted, encoding="utf-8")
    return str(python)


def _call(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:4])} failed with status {done.returncode}:\n{done.stderr[-3000:]}")
    return done.stdout
