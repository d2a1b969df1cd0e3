"""Peers get the same arrays in a process of their own, and what they answer comes back unchanged."""

import shutil
import sys

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.reproduce import _peers

SCRIPT = """
import json

import numpy as np


def doubled(values, *, times):
    return {"doubled": values * times, "sum": float(values.sum()), "module": json.__name__}


def broken():
    raise ValueError("no such luck")
"""


@pytest.fixture
def peer(tmp_path, monkeypatch):
    """A peer called json, which runs in the interpreter of the tests; its name is that of a package it imports."""
    shutil.copy(_peers._FOLDER / "_exchange.py", tmp_path)
    (tmp_path / "json.py").write_text(SCRIPT, encoding="utf-8")
    (tmp_path / "json.txt").write_text("", encoding="utf-8")
    monkeypatch.setattr(_peers, "_FOLDER", tmp_path)
    monkeypatch.setattr(_peers, "_environment", lambda folder, pins: sys.executable)


@pytest.mark.usefixtures("peer")
def test_arrays_and_options_make_the_round_trip():
    values = np.array([0.1, 0.2, np.pi])
    answer = _peers.run_peer("json", "doubled", {"values": values}, times=2)
    assert answer.arrays["doubled"].tolist() == (2 * values).tolist()
    assert answer.options == {"sum": pytest.approx(values.sum(), rel=1e-15), "module": "json"}
    assert any(line.startswith("numpy==") for line in answer.freeze)


@pytest.mark.usefixtures("peer")
def test_a_peer_that_fails_says_why():
    with pytest.raises(RuntimeError, match="no such luck"):
        _peers.run_peer("json", "broken", {})


def test_an_unknown_peer_is_refused():
    with pytest.raises(InputError, match="no peer called 'nobody'"):
        _peers.run_peer("nobody", "anything", {})


def test_every_peer_is_pinned_exactly_and_has_a_script():
    pinned = sorted(_peers._FOLDER.glob("*.txt"))
    assert pinned
    for file in pinned:
        assert file.with_suffix(".py").is_file()
        assert all("==" in line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()), file.name
