"""The sources on which dataset classification is tried: whole, and spelled alike."""

import numpy as np

from aboveboard.data import load_acs_employment, load_communities_crime
from aboveboard.reproduce.drift import dataset_classification as experiment


def test_every_community_is_in_one_of_the_four_regions_of_the_census():
    found = experiment.regions()
    states = load_communities_crime().X["state"]
    assert sum(map(len, found.values())) == len(states) == 1994
    assert len(found["Midwest"]) == 304
    assert all("state" not in frame for frame in found.values())
    known = {state for names in experiment._REGIONS.values() for state in names}
    south = set(states.unique()) - known
    assert south == {
        "Alabama", "Arkansas", "Delaware", "District of Columbia", "Florida", "Georgia", "Kentucky", "Louisiana",
        "Maryland", "Mississippi", "North Carolina", "Oklahoma", "South Carolina", "Tennessee", "Texas", "Virginia",
        "West Virginia",
    } & set(states.unique())  # fmt: skip


def test_the_two_surveys_use_the_same_words():
    old, new = experiment.surveys().values()
    assert list(old.columns) == list(new.columns)
    assert not old.isna().any(axis=None)
    assert not new.isna().any(axis=None)
    for column in ("education", "marital", "sex", "race"):
        assert set(old[column]) == set(new[column]), column
    acs = load_acs_employment(year=2015)
    assert len(new) == ((acs.y == "yes") & (acs.X["age"] >= 17)).sum()


def test_samples_made_uniform_have_the_same_columns_and_keep_their_dependence():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 2))
    values[:, 1] += values[:, 0]
    uniform = experiment._uniform(values, rng)
    np.testing.assert_allclose(np.sort(uniform, axis=0), np.tile((np.arange(500) + 0.5)[:, None] / 500, 2))
    assert np.corrcoef(uniform.T)[0, 1] > 0.6


def test_pairs_for_the_peers_are_disjoint_and_alike_in_form():
    tasks = experiment._peer_tasks(1, 0)
    assert {name: len(pairs) for name, pairs in tasks.items()} == {
        experiment._SAME: 3,
        experiment._YEARS: 1,
        experiment._SURVEYS: 1,
        experiment._TOGETHER: 1,
    }
    for pairs in tasks.values():
        for reference, current in pairs:
            assert reference.shape[1] == current.shape[1]
            assert np.isfinite(reference).all()
            assert np.isfinite(current).all()
