"""The documentation page about data says what is so."""

import doctest
from pathlib import Path

import pytest

from aboveboard.data import list_datasets, load

PAGE = Path(__file__).parents[2] / "docs" / "data.md"
ROWS = {
    cells[0].strip("` "): [cell.strip() for cell in cells[1:]]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `") and len(cells := line.strip("|").split("|")) >= 4
}


def test_the_examples_run_as_printed():
    text = PAGE.read_text(encoding="utf-8").replace("```", "")
    test = doctest.DocTestParser().get_doctest(text, {}, "data.md", str(PAGE), 0)
    assert len(test.examples) >= 7
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test).failed == 0


@pytest.mark.parametrize("record", list_datasets(), ids=lambda record: record.name)
def test_every_data_set_is_in_a_table_with_its_size_and_licence(record):
    row = ROWS[record.name]
    assert row[-1] == record.licence
    if record.bundled:
        assert row[:2] == [f"{record.rows:,}", str(record.columns)]
        data = load(record.name)
        if record.task == "binary":
            assert row[2] == f"`{record.target}` is `{record.positive}`"
            assert row[3] == f"{100 * data.y_binary.mean():.1f} %"
    else:
        assert row[1].startswith(f"{record.rows:,} x {record.columns}")


def test_every_column_of_the_census_survey_is_named():
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{column}`" in text for column in load("acs_employment").X.columns)
