"""The shipped schema says exactly what a report may hold."""

import copy
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from aboveboard.auditing.report.schema import report_schema
from aboveboard.core import Report
from aboveboard.core.report import SCHEMA_VERSION

_validator = Draft202012Validator(report_schema())


def _parts(schema):
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from _parts(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _parts(value)


def test_the_schema_is_itself_valid():
    Draft202012Validator.check_schema(report_schema())


def test_the_schema_has_the_version_that_reports_are_written_with():
    assert report_schema()["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_every_object_with_named_properties_allows_no_others():
    for part in _parts(report_schema()):
        if "properties" in part and "$ref" not in part and isinstance(part.get("properties"), dict) and "type" in part:
            assert part.get("additionalProperties") is False or part.get("unevaluatedProperties") is False, part


def test_a_full_report_is_valid(report):
    _validator.validate(json.loads(report.to_json()))


def test_a_report_with_a_hostile_name_is_valid_and_comes_back_unchanged(make_report, hostile_name, tmp_path):
    written = make_report(hostile_name)
    path = tmp_path / "report.json"
    written.to_json(path)
    _validator.validate(json.loads(path.read_text(encoding="utf-8")))
    assert Report.from_json(path).to_dict() == json.loads(json.dumps(written.to_dict()))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(extra=1),
        lambda data: data["findings"][0].update(rows=[[1, 2]]),
        lambda data: data["findings"][0].update(severity="bad"),
        lambda data: data["findings"][0].update(status="skipped"),
        lambda data: data["not_run"][0].update(status="ran"),
        lambda data: data["subject"].update(path="/home/somebody/data.csv"),
        lambda data: data["findings"][0]["tables"][0].pop("note"),
        lambda data: data.update(schema_version=2),
    ],
)
def test_a_report_with_something_amiss_is_not_valid(report, spoil):
    data = copy.deepcopy(json.loads(report.to_json()))
    spoil(data)
    assert list(_validator.iter_errors(data))


def test_the_documentation_names_every_property_of_the_schema():
    page = Path(__file__).parents[3] / "docs" / "report.md"
    if not page.is_file():
        pytest.skip("the documentation is not part of this copy")
    text = page.read_text(encoding="utf-8")
    names = {name for part in _parts(report_schema()) for name in part.get("properties", {}) if name.isidentifier()}
    assert {name for name in names if f"`{name}`" not in text} == set()
