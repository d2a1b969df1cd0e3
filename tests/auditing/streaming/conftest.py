import runpy
from pathlib import Path

import pytest

_SHARED = runpy.run_path(str(Path(__file__).with_name("people.py")))


@pytest.fixture(scope="session")
def table():
    """People with scores, labels, classes and amounts, predicted more or less well."""
    return _SHARED["people"]()
