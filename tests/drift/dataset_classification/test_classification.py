"""The test and its controls on samples whose difference is known, and on real tables."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from aboveboard.core.errors import InputError
from aboveboard.data import load_acs_employment
from aboveboard.drift import DatasetClassification


def plain(**settings):
    return DatasetClassification(**({"controls": (), "random_state": 0} | settings))


def test_the_accuracy_is_the_best_there_is_and_the_bound_stays_below_the_distance(gaussians):
    delta = 1.5
    best, distance = stats.norm.cdf(delta / 2), 2 * stats.norm.cdf(delta / 2) - 1
    result = plain().fit(gaussians(delta, 5000)).result_
    error = np.sqrt(best * (1 - best) / result.n_held_out)
    assert result.accuracy == pytest.approx(best, abs=2 * error)
    assert result.ci[0] < best < result.ci[1]
    assert 0.8 * distance < result.tv_lower_bound <= distance
    assert result.score_p_value < 1e-6
    assert result.auroc == pytest.approx(stats.norm.cdf(delta / np.sqrt(2)), abs=0.02)


def test_the_figures_of_the_result_belong_together(gaussians):
    result = plain().fit(gaussians(1.0, 800)).result_
    table = result.confusion.to_numpy()
    assert table.sum() == result.n_held_out
    assert np.trace(table) == result.n_correct
    assert result.accuracy == result.n_correct / result.n_held_out
    assert result.balanced_accuracy == pytest.approx(np.mean(np.diag(table) / table.sum(axis=1)))
    assert result.p_value == pytest.approx(stats.binom.sf(result.n_correct - 1, result.n_held_out, 0.5))
    assert list(result.confusion.index) == list(result.sources) == ["left", "right"]
    assert result.to_dict()["confusion"] == table.tolist()


def test_without_a_difference_p_values_are_uniform(gaussians):
    """200 pairs of equal normal samples and a weak classifier."""
    test = plain(estimator=LogisticRegression())
    p_values = [test.set_params(random_state=s).fit(gaussians(0.0, 200, s, 1)).result_.p_value for s in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_names_of_sources_play_no_part(gaussians):
    """The same rows under other names: the same split, and the same figures under the new names."""
    sources = gaussians(1.0, 600)
    one = plain().fit(sources)
    other = plain().fit({"right": sources["left"], "left": sources["right"]})
    assert one.result_.accuracy == other.result_.accuracy
    np.testing.assert_array_equal(one.result_.confusion.to_numpy(), other.result_.confusion.to_numpy())
    swapped = plain(estimator=LogisticRegression()).fit({"right": sources["right"], "left": sources["left"]})
    straight = plain(estimator=LogisticRegression()).fit(sources)
    assert swapped.result_.accuracy == pytest.approx(straight.result_.accuracy, abs=0.06)


def test_the_same_seed_gives_the_same_figures(gaussians):
    one, other = (DatasetClassification(random_state=3, n_pseudo=1).fit(gaussians(0.5, 300)) for _ in range(2))
    assert one.summary() == other.summary()
    pd.testing.assert_frame_equal(one.ladder_, other.ladder_)
    again = clone(one).set_params(n_jobs=2).fit(gaussians(0.5, 300))
    pd.testing.assert_frame_equal(one.ladder_, again.ladder_)
    pd.testing.assert_frame_equal(one.pseudo_, again.pseudo_)


def test_a_watermark_is_the_most_telling_column_and_without_it_all_is_at_chance():
    rng = np.random.default_rng(0)
    frames = {}
    for mark, name in enumerate(["one", "two", "three"]):
        frame = pd.DataFrame(rng.normal(size=(300, 4)), columns=list("abcd"))
        frame["watermark"] = np.where(rng.random(300) < 0.95, mark, rng.integers(3, size=300)).astype(float)
        frames[name] = frame
    test = DatasetClassification(controls=("ladder",), random_state=0).fit(frames)
    assert test.result_.accuracy > 0.9
    assert test.importance_["column"].iloc[0] == "watermark"
    without = test.ladder_.set_index("column").loc["watermark"]
    assert without["p_value"] > 0.001
    assert without["artefact_share"] == pytest.approx(1.0, abs=0.15)
    others = test.ladder_[test.ladder_["column"].isin(list("abcd"))]
    assert (others["drop"].abs() < 0.05).all()


def test_ranks_take_away_what_single_columns_tell_and_leave_what_they_tell_together():
    rng, n = np.random.default_rng(0), 1500
    apart = {
        "one": pd.DataFrame({"x": rng.normal(size=n), "w": rng.choice(["a", "b", "c"], n, p=[0.7, 0.2, 0.1])}),
        "two": pd.DataFrame({"x": rng.exponential(size=n), "w": rng.choice(["a", "b", "c"], n, p=[0.2, 0.3, 0.5])}),
    }
    ladder = DatasetClassification(controls=("ladder",), ladder=["ranks"], random_state=0).fit(apart).ladder_
    assert ladder["accuracy"][0] > 0.75
    assert ladder["p_value"][1] > 0.001
    x = rng.normal(size=(2 * n, 1))
    together = {
        "tied": pd.DataFrame(np.hstack([x[:n], x[:n] + 0.3 * rng.normal(size=(n, 1))]), columns=["x", "y"]),
        "free": pd.DataFrame(np.hstack([x[n:], rng.normal(size=(n, 1))]), columns=["x", "y"]),
    }
    ladder = DatasetClassification(controls=("ladder",), ladder=["ranks"], random_state=0).fit(together).ladder_
    assert ladder["p_value"][1] < 1e-6


def test_gaps_and_rounding_are_taken_away_by_their_rungs():
    rng, n = np.random.default_rng(0), 800
    gaps = {
        name: pd.DataFrame({"x": np.where(rng.random(n) < share, np.nan, rng.normal(size=n)), "y": rng.normal(size=n)})
        for name, share in (("few", 0.05), ("many", 0.6))
    }
    ladder = DatasetClassification(controls=("ladder",), random_state=0).fit(gaps).ladder_.set_index("taken_away")
    assert ladder.loc["nothing", "accuracy"] > 0.7
    assert ladder.loc["no_missing", "p_value"] > 0.001
    rounded = {
        "exact": pd.DataFrame({"x": rng.normal(size=n)}),
        "rounded": pd.DataFrame({"x": np.round(rng.normal(size=n), 1)}),
    }
    ladder = DatasetClassification(controls=("ladder",), ladder=["quantiles"], random_state=0).fit(rounded).ladder_
    assert ladder["p_value"][1] > 0.001


def test_random_parts_are_at_chance_while_more_rows_help_where_there_is_a_difference(gaussians):
    weak = LogisticRegression(C=10.0)
    test = DatasetClassification(estimator=weak, controls=("pseudo", "growth"), n_pseudo=12, random_state=0)
    test.fit(gaussians(1.0, 2500, d=20))
    assert (test.pseudo_["drawn_from"] == "all sources").all()
    assert test.pseudo_["accuracy"].mean() == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / (12 * 1900)))
    assert test.growth_["n_train"].tolist() == [208, 416, 833, 1667]
    assert test.growth_["accuracy"].iloc[-1] > test.growth_["accuracy"].iloc[0]
    assert test.pseudo_["low"].mean() < 0.5 < test.result_.ci[0]
    null = DatasetClassification(estimator=weak, controls=("growth",), random_state=0).fit(gaussians(0.0, 2500, d=20))
    assert ((null.growth_["low"] < 0.51) & (null.growth_["high"] > 0.49)).all()


def test_random_parts_come_from_one_source_where_it_is_large_enough(gaussians):
    sources = gaussians(1.0, 900)
    test = DatasetClassification(controls=("pseudo",), n_train=150, n_val=100, n_pseudo=1, random_state=0)
    assert (test.fit(sources).pseudo_["drawn_from"] == "left").all()


def test_rows_of_one_person_on_both_sides_inflate_and_groups_prevent_it():
    """Each person's rows are nearly equal, and persons of both sources are alike: chance is all there is."""
    rng, persons, rows = np.random.default_rng(0), 200, 4
    frames = {}
    for name in ("one", "two"):
        centres = np.repeat(rng.normal(size=(persons, 6)), rows, axis=0)
        frames[name] = pd.DataFrame(centres + 0.01 * rng.normal(size=centres.shape), columns=list("abcdef"))
        frames[name]["person"] = [f"{name}{i}" for i in np.repeat(np.arange(persons), rows)]
    inflated = plain().fit({name: frame.drop(columns="person") for name, frame in frames.items()}).result_
    assert inflated.p_value < 1e-6
    honest = plain(groups="person").fit(frames).result_
    assert honest.p_value > 0.01
    assert honest.n_held_out <= 160
    given = plain().fit(
        {name: frame.drop(columns="person") for name, frame in frames.items()},
        groups={name: frame["person"] for name, frame in frames.items()},
    )
    assert given.result_.accuracy == honest.accuracy
    control = DatasetClassification(controls=("pseudo",), groups="person", n_pseudo=3, random_state=0).fit(frames)
    assert (control.pseudo_["p_value"] > 0.003).all()


def test_sources_of_very_unequal_size_can_be_used_whole(gaussians):
    large, small = gaussians(1.0, 3000), gaussians(1.0, 300, seed=1)
    test = DatasetClassification(sampling="all", n_pseudo=2, random_state=0)
    test.fit({"left": large["left"], "right": small["right"]})
    result = test.result_
    assert result.accuracy == result.balanced_accuracy
    assert result.accuracy == pytest.approx(stats.norm.cdf(0.5), abs=0.06)
    assert result.ci[0] < stats.norm.cdf(0.5) < result.ci[1]
    assert 0 < result.tv_lower_bound <= 2 * stats.norm.cdf(0.5) - 1
    assert (test.pseudo_["p_value"] > 0.01).all()


def test_weights_are_the_density_ratio(gaussians):
    """For normal samples delta apart it is exp(delta x - delta^2 / 2)."""
    sources = gaussians(1.0, 4000, d=1)
    test = plain(estimator=LogisticRegression(C=10.0)).fit(sources)
    x = pd.DataFrame({"x0": np.linspace(-2, 3, 11)})
    truth = np.exp(x["x0"] - 0.5)
    np.testing.assert_allclose(test.weights("left", "right", x), truth, rtol=0.2)
    np.testing.assert_allclose(test.weights("right", "left", x), 1 / truth, rtol=0.25)
    clipped = test.weights("left", "right", x, clip=(0.5, 2.0))
    assert (clipped.min(), clipped.max()) == (0.5, 2.0)
    weights = test.weights("left", "right", sources["left"])
    assert weights.mean() == pytest.approx(1.0, abs=0.08)
    assert np.average(sources["left"]["x0"], weights=weights) == pytest.approx(1.0, abs=0.12)


def test_probabilities_sum_to_one_and_typical_rows_look_like_their_source(gaussians):
    sources = gaussians(1.5, 700)
    test = plain().fit(sources)
    proba = test.source_proba(sources["left"])
    assert proba.dtype == np.float64
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    typical = test.prototypes_
    assert typical.groupby("source").size().to_dict() == {"left": 5, "right": 5}
    for row in typical.itertuples():
        own = test.source_proba(sources[row.source].iloc[[row.row]])[0, test.sources_.index(row.source)]
        assert own == pytest.approx(row.probability)


def test_real_halves_of_a_survey_are_not_told_apart_and_any_container_gives_the_same():
    acs = load_acs_employment(year=2015).X.sample(1000, random_state=0)
    halves = {"one": acs.iloc[:500], "two": acs.iloc[500:]}
    result = plain().fit(halves).result_
    assert result.p_value > 0.01
    polars = plain().fit({name: pl.from_pandas(half) for name, half in halves.items()}).result_
    assert polars.n_correct == result.n_correct


def test_ladders_of_one_s_own(gaussians):
    sources = gaussians(1.5, 400)
    test = DatasetClassification(
        controls=("ladder",), ladder={"first": lambda frame: frame.assign(x0=0.0)}, random_state=0
    ).fit(sources)
    assert test.ladder_["taken_away"].tolist() == ["nothing", "first"]
    assert test.ladder_["p_value"][1] > 0.001
    named = DatasetClassification(controls=("ladder",), ladder=["without:x0"], random_state=0).fit(sources)
    assert named.ladder_["column"].tolist() == ["", "x0"]
    short = DatasetClassification(controls=("ladder",), ladder={"short": lambda frame: frame.head(3)})
    for bad, message in [(short, "as many rows"), (clone(short).set_params(ladder=["blur:1"]), "for tables")]:
        with pytest.raises(InputError, match=message):
            bad.fit(sources)


def test_the_source_says_more_about_the_target_only_where_the_relation_differs(gaussians):
    sources = gaussians(0.3, 600)
    test = plain().fit(sources)
    rng = np.random.default_rng(0)

    def target(name, sign):
        return (sign * sources[name]["x1"] + 0.5 * rng.normal(size=600) > 0).astype(int)

    same = test.target_link(sources, {"left": target("left", 1), "right": target("right", 1)})
    other = test.target_link(sources, {"left": target("left", 1), "right": target("right", -1)})
    assert same.ci[0] <= 0.005
    assert other.ci[0] > 0.2
    assert other.p_value < 1e-6
    numbers = test.target_link(sources, {"left": sources["left"]["x1"], "right": 2 + sources["right"]["x1"]})
    assert numbers.loss == "squared error"
    assert numbers.gain > 0.5


def test_an_estimator_with_a_transform_can_be_probed(gaussians):
    class Linear(LogisticRegression):
        def transform(self, X):
            return self.decision_function(X)[:, None]

    sources = gaussians(1.5, 600)
    test = plain(estimator=Linear()).fit(sources)
    rows = pd.concat(sources.values(), ignore_index=True)
    probe = test.transfer(rows, (rows["x0"] > 0.75).astype(int)).set_index("features")["accuracy"]
    assert probe["classifier of sources"] > 0.9
    assert probe["supervised"] > 0.9
    assert set(probe.index) == {"classifier of sources", "random weights", "supervised"}
    with pytest.raises(InputError, match="features of its own"):
        plain().fit(sources).transfer(rows, np.zeros(len(rows)))
    with pytest.raises(InputError, match="classes"):
        test.transfer(rows, np.zeros(len(rows)))


def test_a_fitted_test_can_be_kept(gaussians):
    sources = gaussians(1.0, 300)
    test = plain().fit(sources)
    kept = pickle.loads(pickle.dumps(test))
    np.testing.assert_array_equal(kept.source_proba(sources["left"]), test.source_proba(sources["left"]))


def test_what_is_left_out_is_told(gaussians):
    sources = gaussians(1.0, 300)
    for name, frame in sources.items():
        frame["id"] = np.arange(300) + 1000 * (name == "right")
    with pytest.warns(UserWarning, match="'id'"):
        test = plain().fit(sources)
    assert test.excluded_ == {"id": "an identifier of rows"}
    assert plain(keep=("id",)).fit(sources).result_.accuracy > 0.99


def test_hostile_names_of_sources_and_columns_are_told_as_they_are(hostile_name, gaussians):
    sources = {
        hostile_name: gaussians(1.0, 220)["left"].set_axis(pd.Index([hostile_name, "b", "c"], dtype=object), axis=1),
        hostile_name + "2": gaussians(1.0, 220)["right"].set_axis(
            pd.Index([hostile_name, "b", "c"], dtype=object), axis=1
        ),
    }
    test = plain(estimator=LogisticRegression(), controls=("ladder",), ladder=["leave_one_out"]).fit(sources)
    assert test.importance_["column"].iloc[0] == hostile_name
    assert hostile_name in test.ladder_["column"].tolist()
    assert test.sources_[0] == hostile_name
    (finding,) = test.findings()
    assert hostile_name in finding.statement
    assert hostile_name in test.summary()
    assert repr(test.result_)


def frames(n=250, m=2, **columns):
    rng = np.random.default_rng(0)
    return {f"s{j}": pd.DataFrame({"a": rng.normal(size=n), **columns}) for j in range(m)}


SAME = frames(m=1)["s0"]


@pytest.mark.parametrize(
    ("settings", "datasets", "message"),
    [
        ({}, [1, 2], "fit got list"),
        ({}, {"a": SAME}, "fit got 1 sources"),
        ({}, {"a": SAME, "b": SAME}, "same rows"),
        ({}, {"a": SAME, "b": SAME.copy()}, "same rows"),
        ({}, {1: SAME, "1": frames()["s1"]}, "share a name"),
        ({}, frames(n=199), "199 rows"),
        ({}, {"a": SAME, "b": SAME.head(2)}, "2 rows"),
        ({}, {"a": SAME, "b": SAME.rename(columns={"a": "b"})}, "columns differ"),
        ({"n_val": 10}, frames(), "held-out"),
        ({"n_val": 0}, frames(), "n_val is 0"),
        ({"n_train": 2.5}, frames(), "n_train is 2.5"),
        ({"n_train": 250}, frames(), "fewer training rows"),
        ({"n_pseudo": None}, frames(), "n_pseudo"),
        ({"modality": "audio"}, frames(), "modality"),
        ({"sampling": "half"}, frames(), "sampling"),
        ({"controls": "pseudo"}, frames(), "controls"),
        ({"controls": ("magic",)}, frames(), "controls"),
        ({"ladder": "ranks"}, frames(), "brackets"),
        ({"controls": ("ladder",), "ladder": ["nope"]}, frames(), "'nope'"),
        ({"controls": ("ladder",), "ladder": ["without:a"]}, frames(), "another one"),
        ({"controls": ("growth",), "growth_sizes": [10**6]}, frames(), "growth_sizes"),
        ({"estimator": 3}, frames(), "estimator"),
        ({"embedding": len}, frames(), "embedding"),
        ({"groups": "person"}, frames(), "person"),
        ({"modality": "text", "keep": ("a",)}, frames(), "fit"),
    ],
)
def test_what_cannot_be_used_is_refused(settings, datasets, message):
    with pytest.raises(InputError, match=message):
        plain(**settings).fit(datasets)


def test_questions_that_a_fitted_test_cannot_answer_are_refused(gaussians):
    sources = gaussians(1.0, 300)
    test = plain().fit(sources)
    for call, message in [
        (lambda: test.weights("left", "up", sources["left"]), "no source 'up'"),
        (lambda: test.weights("left", "right", sources["left"], clip=(2, 1)), "clip"),
        (lambda: test.source_proba(sources["left"][["x0"]]), "lacks"),
        (lambda: test.findings("fun"), "purpose"),
        (lambda: test.target_link(sources, {"left": [1]}), "targets"),
        (lambda: test.target_link(sources, {"left": [1], "right": [2]}), "one per row"),
        (lambda: test.target_link(sources, {"left": np.zeros(300), "right": np.full(300, np.nan)}), "missing"),
        (lambda: test.target_link(sources, {"left": ["a"] * 300, "right": ["a"] * 300}), "classes"),
    ]:
        with pytest.raises(InputError, match=message):
            call()


def test_nothing_is_answered_before_it_is_fitted(gaussians):
    from sklearn.exceptions import NotFittedError

    for call in ("summary", "findings"):
        with pytest.raises(NotFittedError):
            getattr(plain(), call)()


def test_the_ranks_of_scores_are_those_of_mann_and_whitney_on_all_rows_that_did_not_train(gaussians):
    sources = gaussians(0.6, 400, d=1)
    test = plain(estimator=LogisticRegression(), n_train=300).fit(sources)
    result = test.result_
    assert result.n_held_out < 200
    assert result.score_p_value < 1e-3
    null = [
        plain(estimator=LogisticRegression(), random_state=s).fit(gaussians(0.0, 200, s, 1)).result_.score_p_value
        for s in range(100)
    ]
    assert stats.kstest(null, "uniform").pvalue > 0.001
    three = {**sources, "third": gaussians(0.0, 400, 5, 1)["left"]}
    assert plain(estimator=LogisticRegression()).fit(three).result_.score_p_value is None


def test_a_rung_chooses_its_classifier_anew():
    """A straight line tells the rows apart as they are, and is blind to what ranks leave: a checkerboard."""
    rng, n = np.random.default_rng(0), 1500
    frames = {}
    for sign, name in ((1, "same"), (-1, "opposite")):
        x, y = rng.uniform(-1, 1, size=(2, n))
        frames[name] = pd.DataFrame(
            {"x": x, "y": sign * np.sign(x) * np.abs(y), "z": rng.normal(2.5 * sign, 1, size=n)}
        )
    test = DatasetClassification(controls=("ladder",), ladder=["ranks"], random_state=0).fit(frames)
    linear = DatasetClassification(
        estimator=LogisticRegression(), controls=("ladder",), ladder=["ranks"], random_state=0
    ).fit(frames)
    assert test.result_.accuracy > 0.98
    assert linear.ladder_["accuracy"][1] < 0.6
    assert test.ladder_["accuracy"][1] > 0.9
