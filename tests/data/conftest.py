"""Fixtures for data that does not ship with the package."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).parents[3] / "shared" / "data"


@pytest.fixture
def offline(monkeypatch, tmp_path):
    """No folder named, an empty cache, no system folder: as on a fresh machine."""
    monkeypatch.delenv("ABOVEBOARD_DATA", raising=False)
    cache = tmp_path / "cache"
    monkeypatch.setattr("aboveboard.data.store.cache_folder", lambda: cache)
    return cache


@pytest.fixture
def given(monkeypatch):
    """Return a function that demands a file of ABOVEBOARD_DATA, or skips and names what is missing."""
    folder = Path(os.environ.get("ABOVEBOARD_DATA") or SHARED)
    if folder.is_dir():
        monkeypatch.setenv("ABOVEBOARD_DATA", str(folder))

    def demand(name: str) -> Path:
        if not (folder / name).is_file():
            pytest.skip(f"{name} is missing: name the folder that holds it in ABOVEBOARD_DATA")
        return folder / name

    return demand
