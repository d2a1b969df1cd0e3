"""What the fuzz targets share: run under Atheris, or replay a folder of inputs (to measure coverage, or one crash)."""

import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["run"]


def run(test_one_input: Callable[[bytes], None], modules: list[str]) -> None:
    """Fuzz `test_one_input`, or with ``--replay PATH...`` feed it the files (or the files of the folders) once.

    Parameters
    ----------
    test_one_input : callable
        Raises where something is wrong.
    modules : list of str
        Modules of the project that are instrumented, so that the fuzzer sees which branches an input takes.
    """
    if "--replay" in sys.argv:
        for place in [Path(name).resolve() for name in sys.argv[sys.argv.index("--replay") + 1 :]]:
            for file in sorted(place.iterdir()) if place.is_dir() else [place]:
                test_one_input(file.read_bytes())
        return
    import atheris

    with atheris.instrument_imports(include=modules):
        for module in modules:
            __import__(module)
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()
