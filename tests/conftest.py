"""What all tests share."""

import runpy
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("house", deadline=None, derandomize=True)  # no test depends on a clock or on luck
settings.load_profile("house")

_HOSTILE: dict[str, str] = runpy.run_path(str(Path(__file__).with_name("hostile.py")))["HOSTILE"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `hostile_name` runs once with each name of the corpus (tests/hostile.py)."""
    if "hostile_name" in metafunc.fixturenames:
        metafunc.parametrize("hostile_name", list(_HOSTILE.values()), ids=list(_HOSTILE))


@pytest.fixture(scope="session")
def hostile_names() -> dict[str, str]:
    """All nasty names at once, by what is nasty about them."""
    return dict(_HOSTILE)
