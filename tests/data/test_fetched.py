"""Published facts about the data sets that do not ship with the package; those without a copy here are skipped."""

import csv
import io
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.data import (
    fetched,
    info,
    load_compas,
    load_csrankings,
    load_fashion_mnist,
    load_law_school,
    load_nba_coach,
    load_remesh,
    store,
)


class TestCompas:
    def test_has_the_published_rows_and_two_year_rate(self, given):
        given("compas_two_years.csv")
        compas = load_compas()
        assert compas.X.shape == (7_214, 15)
        assert round(100 * compas.y_binary.mean(), 2) == 45.07

    def test_has_the_published_false_positive_rates_of_black_and_white_defendants(self, given):
        # ProPublica, "How We Analyzed the COMPAS Recidivism Algorithm": 44.85 and 23.45 % at medium or high.
        given("compas_two_years.csv")
        compas = load_compas()
        high = compas.X["score_text"] != "Low"
        innocent = compas.y_binary == 0
        for race, rate in (("African-American", 44.85), ("Caucasian", 23.45)):
            assert round(100 * high[innocent & (compas.X["race"] == race)].mean(), 2) == rate

    def test_the_usual_filter_leaves_the_published_6172(self, given):
        given("compas_two_years.csv")
        compas = load_compas()
        assert (compas.X["days_b_screening_arrest"].abs() <= 30).sum() == 6_172
        assert compas.X["days_b_screening_arrest"].isna().sum() == 307

    def test_names_dates_and_case_numbers_are_dropped_from_the_published_file(self):
        columns = ["id", "name", "dob", *fetched.COMPAS_COLUMNS, "c_case_number", "decile_score", "priors_count"]
        row = ["1", "Ann, Example", "1980-01-01", *map(str, range(16)), "13X", "first wins", "first wins"]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([columns, row])
        (content,) = fetched._compas_columns({"compas-scores-two-years.csv": out.getvalue().encode()}).values()
        assert content.decode() == ",".join(fetched.COMPAS_COLUMNS) + "\n" + ",".join(map(str, range(16))) + "\n"


class TestLawSchool:
    def test_has_the_published_rows_and_women(self, given):
        given("law_school.csv")
        law = load_law_school()
        assert law.X.shape == (21_791, 4)
        assert law.X["sex"].value_counts().to_dict() == {"male": 12_254, "female": 9_537}
        assert round(100 * (law.X["race"] == "White").mean(), 1) == 83.9
        assert law.X["race"].nunique() == 8

    def test_the_grades_are_standardised_and_follow_lsat(self, given):
        given("law_school.csv")
        law = load_law_school()
        assert abs(law.y.mean()) < 0.1
        assert 0.9 < law.y.std() < 1.0
        assert law.y.corr(law.X["LSAT"]) > 0.2

    def test_the_pass_fail_column_can_be_the_target(self, given):
        given("law_school.csv")
        law = load_law_school(target="PF")
        assert law.task == "binary"
        assert round(100 * law.y_binary.mean(), 2) == 88.84
        assert list(law.X.columns) == ["LSAT", "UGPA", "race", "sex"]

    def test_the_published_archive_holds_the_same_file(self, given):
        content = given("law_school.csv").read_bytes()
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            archive.writestr("law.csv", content)
        assert fetched._unzipped({"law.csv.zip": out.getvalue()}) == {"law_school.csv": content}

    def test_another_target_is_refused(self):
        with pytest.raises(InputError, match="'ZFYA' or 'PF'"):
            load_law_school(target="LSAT")


class TestRemesh:
    @pytest.mark.parametrize("prompt", list(info("remesh").prompts))
    def test_every_question_is_a_full_matrix_of_finite_logits(self, given, prompt):
        given("remesh_polarized_issues.npz")
        X = load_remesh(prompt).X
        assert min(X.shape) >= 100
        assert np.isfinite(X.to_numpy()).all()
        assert (X.dtypes == "float32").all()

    def test_the_first_logits_are_those_of_the_published_file(self, given):
        given("remesh_polarized_issues.npz")
        X = load_remesh("campus_protests.492eac83").X
        published = [-0.04308581352233887, 0.6743488311767578, 1.4081023931503296]
        assert X.iloc[0, :3].tolist() == published
        assert X.iloc[1, 0] == np.float32(0.8020483255386353)

    def test_the_wordings_are_those_that_came_with_the_copy(self, given):
        wordings = json.loads(given("remesh_questions.json").read_text(encoding="utf-8"))
        assert {name: " ".join(text.split()) for name, text in wordings.items()} == dict(info("remesh").prompts)

    def test_the_published_json_files_give_the_known_content(self, given):
        with np.load(given("remesh_polarized_issues.npz")) as arrays:
            published = {
                f"{name.removesuffix('.utility')}.json": json.dumps({"utility_matrix": arrays[name].tolist()}).encode()
                for name in arrays.files
            }
        assert set(published) == {file.name for file in info("remesh").originals}
        (content,) = fetched._utilities(published).values()
        assert store._sha256_arrays(content) == info("remesh").files[0].sha256

    def test_a_json_file_without_a_matrix_is_refused(self):
        for content in (b"{}", b"[]", b"not json", b'{"utility_matrix": [[1], [2, 3]]}'):
            with pytest.raises(InputError, match="does not hold a utility matrix"):
                fetched._utilities({"campus_protests.492eac83.json": content})

    def test_an_unknown_question_is_refused(self):
        with pytest.raises(InputError, match=r"no prompt named 'x'.*campus_protests\.492eac83"):
            load_remesh("x")


class TestRankings:
    def test_csrankings_has_175_departments_in_5_areas_with_one_best_each(self, given):
        given("csrankings_rankings.csv")
        X = load_csrankings().X
        assert X.shape == (175, 5)
        assert (X.min() == 1).all()
        assert X.index.is_unique
        assert X.loc["CMU"].tolist() == [1, 2, 1, 5, 1]

    def test_csrankings_ranks_count_those_before(self, given):
        given("csrankings_rankings.csv")
        X = load_csrankings().X
        assert (len(X) >= X).all(axis=None)

    def test_each_of_100_voters_names_three_of_seven_coaches(self, given):
        given("nba_coach_2021_rankings.csv")
        X = load_nba_coach().X
        assert X.shape == (7, 100)
        for rank in (1, 2, 3):
            assert ((rank == X).sum() == 1).all()
        assert ((X == 4).sum() == 4).all()

    def test_tom_thibodeau_won_with_the_published_points(self, given):
        # The league published 351 points (43 first places) for Thibodeau and 340 (45) for Williams; 5-3-1 scoring.
        given("nba_coach_2021_rankings.csv")
        X = load_nba_coach().X
        points = 5 * (X == 1).sum(axis=1) + 3 * (X == 2).sum(axis=1) + (X == 3).sum(axis=1)
        firsts = (X == 1).sum(axis=1)
        assert (points["Tom Thibodeau"], firsts["Tom Thibodeau"]) == (351, 43)
        assert (points["Monty Williams"], firsts["Monty Williams"]) == (340, 45)

    def test_the_ballots_without_names_are_those_with_names(self, given):
        bare = load_nba_coach(names=False).X
        given("nba_coach_2021_rankings.csv")
        named = load_nba_coach().X
        assert list(bare.columns) == [f"voter {k}" for k in range(1, 101)]
        assert sorted(bare.loc[named.index].T.to_numpy().tolist()) == sorted(named.T.to_numpy().tolist())

    def test_the_ballots_without_names_need_no_file(self, monkeypatch, tmp_path):
        monkeypatch.setenv("ABOVEBOARD_DATA", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert load_nba_coach(names=False).X.shape == (7, 100)


class TestFashionMnist:
    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        record = info("fashion_mnist")
        if not all((Path(record.system_folder) / file.name).is_file() for file in record.files):
            pytest.skip(f"Debian's package {record.debian_package} is not installed")
        monkeypatch.delenv("ABOVEBOARD_DATA", raising=False)

    @pytest.mark.parametrize(("split", "each"), [("train", 6_000), ("test", 1_000)])
    def test_has_the_published_number_of_images_of_each_kind(self, offline, split, each):
        fashion = load_fashion_mnist(split=split)
        assert fashion.X.shape == (10 * each, 784)
        assert (fashion.y.value_counts() == each).all()
        assert fashion.y.nunique() == 10
        assert (fashion.X.dtypes == "uint8").all()

    def test_the_first_training_image_is_an_ankle_boot_and_has_the_published_mean_brightness(self, offline):
        fashion = load_fashion_mnist(split="train")
        assert fashion.y.iloc[0] == "ankle boot"
        # Mean and spread that are in common use to normalise the training images.
        assert round(float(fashion.X.to_numpy().mean() / 255), 4) == 0.286
        assert round(float(fashion.X.to_numpy().std(dtype=np.float64) / 255), 4) == 0.353

    def test_all_is_train_then_test(self, offline):
        everything, test = load_fashion_mnist(), load_fashion_mnist(split="test")
        assert len(everything.X) == 70_000
        assert everything.X.iloc[60_000:].reset_index(drop=True).equals(test.X)

    def test_another_split_is_refused(self, offline):
        with pytest.raises(InputError, match="'all', 'train', 'test'"):
            load_fashion_mnist(split="validation")
