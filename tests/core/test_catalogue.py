import importlib
import json

import pytest

from aboveboard.core.catalogue import find_method
from aboveboard.core.errors import InputError

module = importlib.import_module("aboveboard.core.catalogue")

ENTRY = """
name = "NiceMethod"
import_path = "aboveboard.fairness.nice:NiceMethod"
summary = "Does something nice."
role = ["repair"]
tier = "experimental"
remedy = "NiceMethod().fit(X, y)"

[paper]
title = "On Niceness"
authors = "A. First"
year = 2024
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "fairness").mkdir()
    (tmp_path / "fairness" / "nice.toml").write_text(ENTRY, encoding="utf-8")
    (tmp_path / "README").write_text("no area", encoding="utf-8")
    monkeypatch.setattr(module, "_root", lambda: tmp_path)
    module._read.cache_clear()
    yield tmp_path / "fairness"
    module._read.cache_clear()


def test_a_method_takes_its_slug_and_area_from_its_place(folder):
    (method,) = module.catalogue()
    assert (method.slug, method.area, method.name) == ("nice", "fairness", "NiceMethod")
    assert method.role == ("repair",)
    assert method.extras == ()
    assert method.paper.year == 2024


@pytest.mark.parametrize("name", ["NiceMethod", "nicemethod", "nice", "NICE", "fairness/nice"])
def test_a_method_is_found_by_name_or_slug_in_any_case(folder, name):
    assert find_method(name).slug == "nice"


def test_a_name_that_is_nearly_right_gets_a_hint(folder):
    with pytest.raises(InputError, match="Did you mean 'NiceMethod'"):
        find_method("NiceMehtod")
    with pytest.raises(InputError, match="aboveboard methods"):
        find_method("zzzzzz")


def test_evidence_is_none_until_it_is_recorded(folder):
    (method,) = module.catalogue()
    assert method.evidence is None
    (folder / "nice.json").write_text(json.dumps({"passed": True}), encoding="utf-8")
    assert method.evidence == {"passed": True}
