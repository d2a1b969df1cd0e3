"""Published facts about the bundled data sets: counts, shares and class balance from their documentation."""

import math

import pytest

from aboveboard.core import InputError
from aboveboard.data import (
    load_acs_employment,
    load_adult,
    load_communities_crime,
    load_credit_default,
    load_german_credit,
    load_karate,
    load_les_miserables,
)


class TestAdult:
    def test_has_the_published_rows_and_split(self):
        assert [len(load_adult(split=split).X) for split in ("all", "train", "test")] == [48_842, 32_561, 16_281]

    def test_has_the_published_class_balance(self):
        adult = load_adult()
        assert round(100 * adult.y_binary.mean(), 2) == 23.93
        complete = adult.X.notna().all(axis=1)
        assert round(100 * adult.y_binary[complete].mean(), 2) == 24.78

    def test_has_the_published_number_of_complete_rows(self):
        complete = [load_adult(split=split).X.notna().all(axis=1).sum() for split in ("train", "test")]
        assert complete == [30_162, 15_060]

    def test_train_and_test_together_are_all(self):
        everything, train, test = load_adult(), load_adult(split="train"), load_adult(split="test")
        assert everything.X.iloc[:32_561].equals(train.X)
        assert everything.X.iloc[32_561:].reset_index(drop=True).equals(test.X)
        assert list(train.y.cat.categories) == list(test.y.cat.categories) == ["<=50K", ">50K"]

    def test_the_first_rows_are_those_of_the_published_files(self):
        first = load_adult(split="train").frame.iloc[0].to_dict()
        assert first == {
            "age": 39, "workclass": "State-gov", "fnlwgt": 77516, "education": "Bachelors", "education_num": 13,
            "marital_status": "Never-married", "occupation": "Adm-clerical", "relationship": "Not-in-family",
            "race": "White", "sex": "Male", "capital_gain": 2174, "capital_loss": 0, "hours_per_week": 40,
            "native_country": "United-States", "income": "<=50K",
        }  # fmt: skip
        assert load_adult(split="test").frame.iloc[0][["age", "education", "race"]].tolist() == [25, "11th", "Black"]

    def test_each_word_of_education_has_one_number_and_words_come_in_that_order(self):
        X = load_adult().X
        numbers = X.groupby("education", observed=True)["education_num"].agg(["min", "max"])
        assert (numbers["min"] == numbers["max"]).all()
        assert numbers["min"].tolist() == list(range(1, 17))

    def test_the_caveat_about_repeated_rows_counts_right(self):
        adult = load_adult()
        train, test = load_adult(split="train").frame, load_adult(split="test").frame
        shared = test.drop_duplicates().merge(train.drop_duplicates())
        assert f"{adult.frame.duplicated().sum()} rows repeat" in " ".join(adult.caveats)
        assert f"{len(shared)} rows of the published test set" in " ".join(adult.caveats)

    def test_another_split_is_refused(self):
        with pytest.raises(InputError, match=r"split is 'valid'\. Expected one of 'all', 'train', 'test'"):
            load_adult(split="valid")


class TestGermanCredit:
    def test_has_the_published_rows_columns_and_class_balance(self):
        german = load_german_credit()
        assert german.X.shape == (1000, 20)
        assert german.y.value_counts().to_dict() == {"good": 700, "bad": 300}
        assert german.positive == "bad"

    def test_the_first_row_reads_as_the_published_code_table_says(self):
        row = load_german_credit(labels="published").X.iloc[0]
        assert row["status"] == "below 0 DM"
        assert row["purpose"] == "radio or television"
        assert row["personal_status_sex"] == "male, single"
        assert row["housing"] == "own"

    def test_the_corrected_words_give_37_foreign_workers_and_no_way_to_tell_sex(self):
        german = load_german_credit()
        assert german.X["foreign_worker"].value_counts().to_dict() == {"no": 963, "yes": 37}
        assert german.X["personal_status_sex"].value_counts().to_dict() == {
            "male, married or widowed": 548,
            "female, not single; or male, single": 310,
            "female, single": 92,
            "male, divorced or separated": 50,
        }

    def test_under_the_corrected_words_a_fuller_account_goes_with_fewer_bad_loans(self):
        # The sense of Groemping's correction: "no checking account" is not the safest group, a well-filled one is.
        german = load_german_credit()
        bad = german.y_binary.groupby(german.X["status"], observed=True).mean()
        order = ["no checking account", "below 0 DM", "0 to 200 DM", "200 DM or more, or salary for a year"]
        assert bad[order].is_monotonic_decreasing

    def test_both_readings_are_the_same_rows_under_other_words(self):
        corrected, published = load_german_credit(), load_german_credit(labels="published")
        for column in corrected.X.select_dtypes("category"):
            assert (corrected.X[column].cat.codes == published.X[column].cat.codes).all()
        assert corrected.X.select_dtypes("number").equals(published.X.select_dtypes("number"))

    def test_other_labels_are_refused(self):
        with pytest.raises(InputError, match="'corrected' or 'published'"):
            load_german_credit(labels="raw")


class TestCreditDefault:
    def test_has_the_published_rows_columns_and_class_balance(self):
        credit = load_credit_default()
        assert credit.X.shape == (30_000, 23)
        assert credit.y_binary.sum() == 6_636
        assert round(100 * credit.y_binary.mean(), 2) == 22.12

    def test_has_the_published_numbers_of_women_and_men(self):
        assert load_credit_default().X["sex"].value_counts().to_dict() == {"female": 18_112, "male": 11_888}

    def test_has_the_published_counts_of_education_and_marriage(self):
        X = load_credit_default().X
        assert X["education"].value_counts().to_dict() == {
            "university": 14_030, "graduate school": 10_585, "high school": 4_917, "undocumented code 5": 280,
            "other": 123, "undocumented code 6": 51, "undocumented code 0": 14,
        }  # fmt: skip
        assert X["marriage"].value_counts().to_dict() == {
            "single": 15_964, "married": 13_659, "other": 323, "undocumented code 0": 54,
        }  # fmt: skip

    def test_the_first_row_is_the_published_one(self):
        row = load_credit_default().frame.iloc[0]
        assert row[["limit_bal", "sex", "education", "marriage", "age", "pay_0", "pay_2", "bill_amt1"]].tolist() == [
            20_000, "female", "university", "married", 24, 2, 2, 3_913,
        ]  # fmt: skip
        assert row["default"] == "yes"

    def test_the_caveat_about_repeated_rows_counts_right(self):
        credit = load_credit_default()
        assert f"{credit.frame.duplicated().sum()} rows repeat" in " ".join(credit.caveats)


class TestCommunitiesCrime:
    def test_has_the_published_rows_and_no_missing_value(self):
        crime = load_communities_crime()
        assert crime.X.shape == (1_994, 100)
        assert crime.X.notna().all(axis=None)

    def test_has_the_published_mean_spread_and_median_of_the_target(self):
        y = load_communities_crime().y
        assert [round(float(v), 2) for v in (y.min(), y.max(), y.mean(), y.std(), y.median())] == [
            0,
            1,
            0.24,
            0.23,
            0.15,
        ]

    def test_has_the_published_means_of_some_predictors(self):
        means = load_communities_crime().X[["population", "householdsize", "racepctblack", "racePctWhite"]].mean()
        assert means.round(2).tolist() == [0.06, 0.46, 0.18, 0.75]

    def test_970_communities_lie_above_the_usual_split_as_the_literature_reports(self):
        sensitive = load_communities_crime().sensitive
        assert sensitive["black_population"].value_counts().to_dict() == {"up to 0.06": 1_024, "above 0.06": 970}

    def test_the_first_community_is_the_first_of_the_published_file(self):
        row = load_communities_crime().frame.iloc[0]
        assert row["state"] == "Colorado"
        assert row[["population", "racepctblack", "PopDens", "ViolentCrimesPerPop"]].tolist() == [0.19, 0.02, 0.26, 0.2]

    def test_numbers_lie_between_0_and_1_and_46_states_occur(self):
        X = load_communities_crime().X
        assert X.select_dtypes("number").min().min() == 0
        assert X.select_dtypes("number").max().max() == 1
        assert X["state"].nunique() == 46


class TestAcsEmployment:
    @pytest.mark.parametrize(("year", "persons", "employed"), [(2015, 68_785, 34_106), (2018, 70_131, 35_422)])
    def test_the_sample_has_the_employed_share_of_the_whole_year_within_four_standard_errors(
        self, year, persons, employed
    ):
        acs = load_acs_employment(year=year)
        share, n = employed / persons, len(acs.X)
        error = math.sqrt(share * (1 - share) / n * (persons - n) / (persons - 1))
        assert n == 20_000
        assert acs.published_rows == persons
        assert abs(acs.y_binary.mean() - share) < 4 * error

    def test_nobody_under_16_is_employed(self):
        acs = load_acs_employment()
        assert (acs.y[acs.X["age"] < 16] == "no").all()

    def test_words_agree_with_age_where_the_survey_does_not_ask(self):
        X = load_acs_employment().X
        assert (X.loc[X["military_service"] == "not asked at this age", "age"] <= 16).all()
        assert (X.loc[X["education"] == "not asked at this age", "age"] < 3).all()
        assert (X.loc[X["cognitive_difficulty"] == "not asked at this age", "age"] < 5).all()
        assert (X.loc[X["marital_status"] != "never married or under 15", "age"] >= 15).all()

    def test_people_born_abroad_without_citizenship_are_foreign_born(self):
        X = load_acs_employment().X
        assert (X.loc[X["citizenship"].isin(["not a citizen", "naturalised"]), "nativity"] == "foreign born").all()
        assert (X.loc[X["citizenship"] == "born in the US", "nativity"] == "native").all()

    def test_husbands_and_wives_are_married(self):
        X = load_acs_employment(year=2015).X
        assert (X.loc[X["relationship"] == "husband or wife", "marital_status"] == "married").mean() > 0.99

    def test_both_years_have_the_same_columns(self):
        early, late = load_acs_employment(year=2015), load_acs_employment(year=2018)
        assert list(early.X.columns) == list(late.X.columns)
        assert early.sha256 != late.sha256

    def test_another_year_is_refused(self):
        with pytest.raises(InputError, match="2015 or 2018"):
            load_acs_employment(year=2016)


class TestNetworks:
    def test_the_karate_club_has_its_published_ties_and_split(self):
        ties = load_karate().X
        assert len(ties) == 78
        assert sorted({*ties["source"], *ties["target"]}) == list(range(34))
        degrees = ties["source"].value_counts().add(ties["target"].value_counts(), fill_value=0)
        assert [degrees[0], degrees[33]] == [16, 17]
        assert ties["weight"].sum() == 231
        sides = dict(zip(ties["target"], ties["target_faction"])) | dict(zip(ties["source"], ties["source_faction"]))
        assert [sides[0], sides[33]] == ["Mr. Hi", "Officer"]
        assert sum(side == "Officer" for side in sides.values()) == 17

    def test_the_novel_has_its_published_characters_and_pairs(self):
        pairs = load_les_miserables().X
        assert len(pairs) == 254
        assert len({*pairs["source"], *pairs["target"]}) == 77
        assert pairs["weight"].sum() == 820
        assert (pairs["source"] == "Valjean").sum() + (pairs["target"] == "Valjean").sum() == 36

    def test_every_tie_is_there_once_and_nobody_is_tied_to_themselves(self):
        for ties in (load_karate().X, load_les_miserables().X):
            ends = ties[["source", "target"]].astype(str)
            assert (ends["source"] != ends["target"]).all()
            assert len({frozenset(pair) for pair in ends.itertuples(index=False)}) == len(ties)
