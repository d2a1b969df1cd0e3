"""GEFA on models: tables, texts and images, against enumeration by hand; what is refused; what is said."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from aboveboard.core import InputError, ModelError
from aboveboard.explanation import GEFA, ImageMasker, TabularMasker, TokenMasker
from aboveboard.explanation.gefa._coalitions import every_coalition
from tests.explanation.gefa.games import by_orders


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.integers(18, 80, 300),
            "work": pd.Categorical(rng.choice(["private", "state", "none"], 300)),
            "hours": np.where(rng.random(300) < 0.1, np.nan, rng.normal(40, 10, 300)),
            "member": rng.random(300) < 0.3,
        }
    )
    y = (X["age"] > 40) & ((X["work"] == "private") | X["member"])
    encoder = make_column_transformer((OneHotEncoder(), ["work"]), remainder="passthrough")
    return make_pipeline(encoder, RandomForestClassifier(20, random_state=0)).fit(X, y), X


def by_hand(predict, x, background, n):
    """The definition: absent columns are copied from each background row, cell by cell."""
    answers = []
    for coalition in every_coalition(n):
        rows = background.copy()
        for column, present in zip(rows.columns, coalition, strict=True):
            if present:
                rows[column] = pd.Series([x[column].iloc[0]] * len(rows), index=rows.index, dtype=rows[column].dtype)
        answers.append(predict(rows).mean())
    powers = 1 << np.arange(n)
    return by_orders(lambda z: np.array(answers)[z @ powers], n), answers


# --- tables -----------------------------------------------------------------------------------------------------------


def test_columns_of_any_type_are_attributed_as_by_hand(people):
    model, X = people
    background = X[:7]
    truth, answers = by_hand(lambda rows: model.predict_proba(rows)[:, 1], X[50:51], background, 4)
    found = GEFA(model.predict_proba, TabularMasker(background), target=1).explain(X[50:51])
    assert found.values == pytest.approx(truth, abs=1e-12)
    assert (found.base_value, found.full_value) == pytest.approx((answers[0], answers[-1]))
    assert found.feature_names == ("age", "work", "hours", "member")
    assert found.feature_values[1] == X["work"].iloc[50]
    assert found.deterministic


def test_rows_as_series_dict_and_frame_are_the_same(people):
    model, X = people
    explainer = GEFA(model.predict_proba, TabularMasker(X[:3]), target=1)
    frame, series, plain = (explainer.explain(x).values for x in (X[50:51], X.iloc[50], X.iloc[50].to_dict()))
    assert np.array_equal(frame, series)
    assert np.array_equal(frame, plain)


def test_many_rows_are_explained_as_each_alone_in_any_batches_and_threads(people):
    model, X = people
    masker, options = TabularMasker(X[:5]), {"target": 0, "n_queries": 8, "random_state": 3}
    together = GEFA(model.predict_proba, masker, **options).explain_many(X[50:56])
    small = GEFA(model.predict_proba, masker, batch_size=7, **options).explain_many(X[50:56], n_jobs=2)
    assert together.method == "marginal weights"
    assert np.array_equal(together.values, small.values)
    for row in range(6):
        alone = GEFA(model.predict_proba, masker, **options).explain(X[50 + row : 51 + row])
        assert together[row].values == pytest.approx(alone.values, abs=1e-14)
        assert together[row].stderr == pytest.approx(alone.stderr, abs=1e-14)
        assert together[row].feature_values == alone.feature_values


def test_a_linear_models_effect_is_its_weight_times_the_distance_from_the_background(rng):
    weight, background, x = rng.normal(size=30), rng.normal(size=(4, 30)), rng.normal(size=30)
    found = GEFA(lambda X: X @ weight, TabularMasker(background), random_state=0).explain(x)
    assert found.values == pytest.approx(weight * (x - background.mean(axis=0)), abs=1e-12)


def test_groups_of_columns_are_one_feature(rng):
    weight, x = rng.normal(size=6), rng.normal(size=6)
    found = GEFA(lambda X: X @ weight, TabularMasker(np.zeros(6), groups={"b": [1, 4], "c": [3]})).explain(x)
    assert found.feature_names == ("x0", "b", "x2", "c", "x5")
    parts = [[0], [1, 4], [2], [3], [5]]
    assert found.values == pytest.approx([sum(weight[i] * x[i] for i in part) for part in parts], abs=1e-12)


def test_the_class_is_fixed_before_anything_is_masked():
    """With nothing known the other class would be likelier; class 0 is a class like any other."""

    def predict(X):
        p = np.where(X.sum(axis=1) > 1, 0.9, 0.2)
        return np.column_stack([p, 1 - p])

    found = GEFA(predict, TabularMasker(np.zeros(2))).explain(np.ones(2))
    assert found.target == 0
    assert (found.base_value, found.full_value) == (0.2, 0.9)
    assert GEFA(predict, TabularMasker(np.zeros(2)), target=0).explain(np.ones(2)).full_value == 0.9


def test_the_published_estimator_and_the_score_weights_can_be_asked_for():
    predict = lambda X: np.tanh(X.sum(axis=1))  # noqa: E731
    for weights, unbiased in (("score", True), ("published", False)):
        found = GEFA(predict, TabularMasker(np.zeros(20)), weights=weights, random_state=0).explain(np.ones(20))
        assert found.unbiased is unbiased
    assert abs(found.residual) > 1e-6


def test_a_model_that_answers_otherwise_each_time_is_noticed():
    rng = np.random.default_rng(0)
    explainer = GEFA(lambda X: rng.normal(size=len(X)), TabularMasker(np.zeros(3)))
    with pytest.warns(UserWarning, match="not deterministic"):
        found = explainer.explain(np.ones(3))
    assert not found.certificate().holds


# --- texts ------------------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=50)
@given(st.text(alphabet="ab \n\t", max_size=30), st.integers(0, 99))
def test_only_absent_words_are_replaced_and_white_space_stays(text, seed):
    words = text.split()
    if len(words) < 2:
        return
    present = np.random.default_rng(seed).random((1, len(words))) < 0.5
    (masked,) = TokenMasker(mask_token="*").bind_one(text).masked(np.zeros(1, dtype=int), present)
    assert masked.split() == [word if kept else "*" for word, kept in zip(words, present[0], strict=True)]
    assert [c for c in masked if c.isspace()] == [c for c in text if c.isspace()]


def test_the_words_of_a_text_are_its_features():
    seen = []

    def positive(texts):
        seen.extend(texts)
        return [text.split().count("good") - 2.0 * ("not" in text) for text in texts]

    found = GEFA(positive, TokenMasker(mask_token="[MASK]")).explain("good  not good")
    assert dict(zip(found.feature_names, found.values, strict=False))["not"] == -2.0
    assert found.values == pytest.approx([1, -2, 1])
    assert found.baseline == "[MASK]  [MASK] [MASK]"
    assert "good  [MASK] good" in seen


def test_a_fast_tokenizer_says_where_tokens_are_and_its_special_tokens_stay():
    class Tokenizer:
        mask_token = "<mask>"
        all_special_tokens = ("<s>", "</s>", "<mask>")

        def __call__(self, text, *, return_offsets_mapping):
            assert return_offsets_mapping
            return {"offset_mapping": [(0, 0), (0, 3), (3, 6), (7, 11), (0, 0)]}

    bound = TokenMasker(Tokenizer()).bind_one("unseen </s>")
    assert bound.names == ("un", "see") or bound.names == ("uns", "een")
    assert bound.masked(np.zeros(1, dtype=int), np.array([[True, False]])) == ["uns<mask> </s>"]
    assert len(TokenMasker(Tokenizer(), keep_special=False).bind_one("unseen </s>").names) == 3


def test_texts_of_one_length_share_their_coalitions():
    found = GEFA(lambda texts: [text.count("a") for text in texts], TokenMasker()).explain_many(["a b", "b a"])
    assert found.values.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert found[1].feature_values == ("b", "a")


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shape", "axis"), [((6, 4), None), ((6, 4, 3), -1), ((3, 6, 4), 0), ((6, 3, 4), 1)])
def test_blocks_of_pixels_with_all_their_channels_are_attributed(shape, axis, rng):
    image, weight = rng.random(shape), rng.normal(size=shape)
    predict = lambda images: (np.asarray(images) * weight).reshape(len(images), -1).sum(axis=1)  # noqa: E731
    found = GEFA(predict, ImageMasker(0.25, groups=2, channel_axis=axis)).explain(image)
    part = weight * (image - 0.25) if axis is None else np.moveaxis(weight * (image - 0.25), axis, -1).sum(axis=-1)
    blocks = [part[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].sum() for i, j in product(range(3), range(2))]
    assert found.values == pytest.approx(blocks, abs=1e-12)


def test_a_map_of_regions_and_a_baseline_image_are_taken_as_given():
    image, baseline = np.ones((4, 4)), np.full((4, 4), 0.5)
    regions = np.repeat([[7, 7, 9, 40]], 4, axis=0)
    found = GEFA(lambda x: x.sum(axis=(1, 2)), ImageMasker(baseline, groups=regions)).explain(image)
    assert found.values.tolist() == [4.0, 2.0, 2.0]
    assert np.array_equal(found.baseline, baseline)


def test_the_blurred_baseline_keeps_the_mean_of_a_flat_image():
    image = np.full((40, 40, 3), 0.3)
    bound = ImageMasker(channel_axis=-1).bind_one(image)
    assert bound.baseline(0) == pytest.approx(image)


def test_smooth_coalitions_are_blobs_and_said_to_be_biased():
    masker = ImageMasker(0.0, smoothing=2.0)
    bound = masker.bind_one(np.ones((20, 20)))
    assert bound.noise is not None
    scores = bound.noise(np.random.default_rng(0), 50).reshape(50, 20, 20)
    assert np.sort(scores[0].ravel()) == pytest.approx((np.arange(400) + 0.5) / 400, abs=0.5 / 400)
    present = scores < 0.5
    assert np.mean(present[:, :, 1:] == present[:, :, :-1]) > 0.8
    found = GEFA(lambda x: x.mean(axis=(1, 2)), masker, n_queries=50, random_state=0).explain(np.ones((20, 20)))
    assert not found.unbiased
    assert abs(found.residual) < 1e-12


# --- refused ----------------------------------------------------------------------------------------------------------

FRAME = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Categorical(["x", "y"])})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TabularMasker(np.zeros((0, 3))), "one row or more"),
        (lambda: TabularMasker(np.zeros(1)), "2 or more"),
        (lambda: TabularMasker(FRAME, groups={"g": ["c"]}), "'c'"),
        (lambda: TabularMasker(np.zeros(3), groups={"g": [0], "h": [0]}), "'g' and 'h'"),
        (lambda: TabularMasker(FRAME, groups={"a": ["b"]}), "another name"),
        (lambda: TabularMasker(pd.concat([FRAME, FRAME], axis=1)), "same name"),
        (lambda: TabularMasker(FRAME).bind(np.zeros((1, 2))), "data frame"),
        (lambda: TabularMasker(FRAME).bind_one(FRAME), "one row"),
        (lambda: TabularMasker(FRAME).bind(FRAME[["a"]]), "lack the column 'b'"),
        (lambda: TabularMasker(FRAME).bind(FRAME.assign(b=pd.Categorical(["z", "x"]))), "other categories"),
        (lambda: TabularMasker(np.zeros(3)).bind_one(np.zeros(4)), "3 columns"),
        (lambda: TokenMasker("words"), "a function"),
        (lambda: TokenMasker().bind([1]), "no texts"),
        (lambda: TokenMasker().bind(["a b", "a b c"]), "2 to 3 tokens"),
        (lambda: TokenMasker(lambda text: ["z"]).bind(["a b"]), "pieces of the text"),
        (lambda: ImageMasker("grey"), "'blur'"),
        (lambda: ImageMasker(groups=2, smoothing=1.0), "one of them"),
        (lambda: ImageMasker(smoothing=0.0), "positive"),
        (lambda: ImageMasker().bind_one(np.zeros((4, 4, 3))), "channel_axis"),
        (lambda: ImageMasker(channel_axis=3).bind_one(np.zeros((4, 4, 3))), "-3 to 2"),
        (lambda: ImageMasker(groups=9).bind_one(np.zeros((4, 4))), "2 or more"),
        (lambda: ImageMasker(groups=0).bind_one(np.zeros((4, 4))), "1 pixel or more"),
        (lambda: ImageMasker(groups=np.zeros((3, 3))).bind_one(np.zeros((4, 4))), "the same"),
        (lambda: ImageMasker(np.zeros((3, 3))).bind_one(np.zeros((4, 4))), "the shape of an image"),
        (lambda: GEFA("model", TabularMasker(FRAME)), "a function"),
        (lambda: GEFA(len, TabularMasker(FRAME), n_queries=7), "even"),
        (lambda: GEFA(len, TabularMasker(FRAME), target=-1), "0 or more"),
        (lambda: GEFA(len, TabularMasker(FRAME), batch_size=0), "1 or more"),
        (lambda: GEFA(lambda X: np.ones(len(X)), TabularMasker(FRAME), target=1).explain(FRAME[:1]), "no target"),
        (lambda: GEFA(lambda X: np.ones((len(X), 2)), TabularMasker(FRAME), target=2).explain(FRAME[:1]), "2 classes"),
        (lambda: GEFA(lambda X: np.ones(len(X)), TabularMasker(FRAME)).explain_many(FRAME[:0]), "no inputs"),
    ],
)
def test_what_cannot_be_used_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("predict", "message"),
    [(lambda X: np.ones(len(X) + 1), "shape"), (lambda X: np.full(len(X), np.inf), "not finite")],
)
def test_malformed_answers_are_refused(predict, message):
    with pytest.raises(ModelError, match=message):
        GEFA(predict, TabularMasker(FRAME)).explain(FRAME[:1])
