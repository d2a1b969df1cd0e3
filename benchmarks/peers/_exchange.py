"""Run one function of a peer's script on arrays from a file: ``python -P _exchange.py SCRIPT FUNCTION FOLDER``.

FOLDER holds ``in.npz`` and ``options.json``. The function gets the arrays and the options by name, and returns a dict:
its arrays go to ``out.npz``, all else to ``out.json``.
"""

import json
import runpy
import sys
from pathlib import Path

import numpy as np


def main(script: str, function: str, folder: Path) -> None:
    with np.load(folder / "in.npz") as file:
        arrays = dict(file)
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    found = runpy.run_path(script)[function](**arrays, **options)
    np.savez(folder / "out.npz", **{name: value for name, value in found.items() if isinstance(value, np.ndarray)})
    plain = {name: value for name, value in found.items() if not isinstance(value, np.ndarray)}
    (folder / "out.json").write_text(json.dumps(plain), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
