"""Facts about what is known of each data set without reading it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.data import info, list_datasets
from aboveboard.data.manifest import PACKAGE

NAMES = [record.name for record in list_datasets()]


def test_listing_the_data_sets_loads_neither_numpy_nor_pandas_nor_pyarrow():
    program = (
        "import sys, aboveboard.data as d; d.list_datasets(); d.info('adult').to_dict(); "
        "print(sorted({'numpy', 'pandas', 'pyarrow', 'sklearn'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_data_sets_of_the_documentation_are_all_there():
    assert set(NAMES) == {
        "adult", "german_credit", "credit_default", "communities_crime", "acs_employment", "karate",
        "les_miserables", "compas", "law_school", "remesh", "csrankings", "nba_coach", "fashion_mnist",
    }  # fmt: skip


def test_the_bundled_files_take_less_than_eight_megabytes_and_none_is_left_over():
    files = list((PACKAGE / "files").iterdir())
    assert sum(file.stat().st_size for file in files) < 8_000_000
    assert {file.name for file in files} == {
        file.name for record in list_datasets() if record.bundled for file in record.files
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_data_set_says_where_it_comes_from_under_which_licence_and_what_to_beware_of(name):
    record = info(name)
    assert record.title
    assert "\n" not in record.summary
    assert len(record.summary) <= 110
    assert record.provenance.endswith(".")
    assert record.url.startswith("https://")
    assert record.reference.title
    assert len(record.caveats) >= 3
    assert all(caveat.endswith(".") for caveat in record.caveats)
    assert bool(record.positive) == (record.task == "binary")
    assert record.licence


@pytest.mark.parametrize("name", [name for name in NAMES if info(name).bundled])
def test_whatever_is_bundled_brings_the_text_of_its_licence(name):
    text = info(name).licence_path.read_text(encoding="utf-8")
    if info(name).licence == "CC BY 4.0":
        assert text.startswith("Creative Commons Attribution 4.0 International")
        attribution = (PACKAGE / "licences" / "UCI-ATTRIBUTION.txt").read_text(encoding="utf-8")
        assert info(name).files[0].name in attribution
    else:
        assert all(file.name in text for file in info(name).files)


@pytest.mark.parametrize("name", [name for name in NAMES if not info(name).bundled])
def test_whatever_is_not_bundled_names_a_public_address_for_each_published_file(name):
    record = info(name)
    assert all(file.url.startswith("https://raw.githubusercontent.com/") for file in record.published)
    assert all(len(file.sha256) == 64 for file in record.files)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_known_turns_into_plain_json_without_a_path_of_this_machine(name):
    text = json.dumps(info(name).to_dict())
    assert str(PACKAGE) not in text
    assert json.loads(text)["name"] == name


@pytest.mark.parametrize("written", ["adult", "Adult", " ADULT ", "load_adult"])
def test_a_name_may_be_written_in_several_ways(written):
    assert info(written).name == "adult"


def test_hyphens_stand_for_underscores():
    assert info("german-credit").name == "german_credit"


@pytest.mark.parametrize(
    ("typo", "meant"), [("adlut", "adult"), ("germancredit", "german_credit"), ("compass", "compas")]
)
def test_an_unknown_name_is_refused_and_the_nearest_is_suggested(typo, meant):
    with pytest.raises(InputError, match=f"nearest is '{meant}'"):
        info(typo)


def test_a_name_like_no_other_is_refused_with_the_list_of_names():
    with pytest.raises(InputError, match=r"no data set named 'zzz'.*adult, german_credit"):
        info("zzz")


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_any_text_is_a_known_name_or_refused(text):
    wanted = text.strip().lower().replace("-", "_").removeprefix("load_")
    if wanted in NAMES:
        assert info(text).name == wanted
    else:
        with pytest.raises(InputError, match=re.escape(repr(text))):
            info(text)


@pytest.mark.parametrize("name", NAMES)
def test_no_sentence_holds_a_local_path_except_debians(name):
    record = info(name)
    for sentence in (*record.caveats, record.provenance, record.summary):
        assert str(Path.home()) not in sentence
        assert "/tmp" not in sentence
