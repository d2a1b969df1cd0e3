import json

import pytest

from aboveboard.core.errors import MissingExtra
from aboveboard.core.extras import require


def test_a_package_that_is_there_is_imported():
    assert require("json", extra="fast", feature="this test") is json


def test_a_package_that_is_not_there_names_its_extra():
    with pytest.raises(MissingExtra, match=r"aboveboard\[fast\]"):
        require("no_such_package_anywhere", extra="fast", feature="this test")


def test_a_package_that_is_there_but_broken_tells_its_own_error(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import a_package_that_it_lacks\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_it_lacks") as caught:
        require("broken_package", extra="fast", feature="this test")
    assert not isinstance(caught.value, MissingExtra)
