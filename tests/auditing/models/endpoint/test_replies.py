import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aboveboard.auditing.models.endpoint.replies import ReplyError, read_reply, understood
from aboveboard.core.errors import ModelError

BINARY = ("no", "yes")


def understand(answer, n, task="binary", classes=BINARY, **options):
    said = read_reply(json.dumps(answer).encode(), n)
    return understood(said.entries, said.names, task=task, classes=classes, **options)


def told(answer, n, **options):
    return understand(answer, n, **options)[0]


# --- what an answer means ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        {"predictions": [0.25, 1]},
        {"probabilities": [0.25, 1]},
        [0.25, 1],
        {"predictions": [[0.25], [1]]},
    ],
)
def test_numbers_in_a_binary_task_are_probabilities_of_the_positive_class(answer):
    got, kind = understand(answer, 2)
    assert got.probabilities.tolist() == [0.25, 1.0]
    assert got.labels is None
    assert kind in ("score", None)


def test_numbers_that_are_all_classes_are_labels_unless_told_otherwise():
    got, kind = understand({"predictions": [0, 1.0, 1]}, 3, classes=(1, 0))
    assert got.labels.tolist() == [1, 0, 0]
    assert got.probabilities is None
    assert kind == "label"
    got, kind = understand({"predictions": [0, 1.0, 1]}, 3, classes=(1, 0), answers="score")
    assert got.probabilities.tolist() == [0.0, 1.0, 1.0]
    assert kind == "score"
    assert told({"predictions": [0, 1]}, 2, classes=("0", "1")).labels.tolist() == [0, 1]  # classes read as text


@pytest.mark.parametrize(
    "answer",
    [
        {"predictions": [[0.8, 0.2], [0.1, 0.9]], "classes": ["yes", "no"]},
        {"probabilities": [[0.8, 0.2], [0.1, 0.9]], "classes": ["yes", "no"]},
        {"predictions": [{"yes": 0.8, "no": 0.2}, {"no": 0.9, "yes": 0.1}]},
        {"probabilities": [{"yes": 0.8, "no": 0.2}, {"no": 0.9, "yes": 0.1}], "classes": ["no", "yes"]},
        {"predictions": [[0.2, 0.8], [0.9, 0.1]]},  # without names: the natural order, no before yes
    ],
)
def test_probabilities_of_each_class_go_by_their_names(answer):
    np.testing.assert_array_equal(told(answer, 2).probabilities, [[0.2, 0.8], [0.9, 0.1]])
    np.testing.assert_array_equal(told(answer, 2, classes=("yes", "no")).probabilities, [[0.8, 0.2], [0.1, 0.9]])


def test_names_of_classes_are_text_in_json_and_numbers_in_the_data():
    answer = {"predictions": [{"3": 0.1, "1": 0.7, "2.0": 0.2}]}
    got = told(answer, 1, task="multiclass", classes=(1, 2, 3)).probabilities
    np.testing.assert_array_equal(got, [[0.7, 0.2, 0.1]])


@pytest.mark.parametrize(
    ("answer", "classes", "codes"),
    [
        ({"predictions": ["yes", "no"]}, BINARY, [1, 0]),
        ({"labels": ["yes", "no"]}, BINARY, [1, 0]),
        ({"predictions": [["yes"], ["no"]]}, BINARY, None),
        ({"predictions": [True, False]}, (False, True), [1, 0]),
        ({"predictions": [True, False]}, (0, 1), [1, 0]),
        ({"predictions": [3, 1.0]}, (1, 2, 3), [2, 0]),
        ({"predictions": ["3", "1"]}, (1, 2, 3), [2, 0]),
    ],
)
def test_labels_are_classes_whatever_their_type(answer, classes, codes):
    task = "binary" if len(classes) == 2 else "multiclass"
    if codes is None:
        with pytest.raises(ReplyError, match="text where a number was expected"):
            told(answer, 2, task=task, classes=classes)
        return
    got = told(answer, 2, task=task, classes=classes)
    assert got.labels.tolist() == codes
    assert got.probabilities is None


def test_codes_stand_for_the_classes_in_the_order_that_was_given():
    got, kind = understand([0, 1, 1.0], 3, order=("yes", "no"))
    assert got.labels.tolist() == [1, 0, 0]
    assert kind == "code"
    assert understand([1, 1], 2, order=("yes", "no"), answers="label")[1] == "code"
    assert understand([0, 1], 2, order=("yes", "no"), answers="score")[1] == "score"
    numbers = {"task": "multiclass", "classes": (1, 2, 3), "order": (1, 2, 3)}
    got, kind = understand([0, 2, 1], 3, **numbers)
    assert got.labels.tolist() == [0, 2, 1]
    assert told([1, 2, 1], 3, kind=kind, **numbers).labels.tolist() == [1, 2, 1]  # codes they were, and stay
    with pytest.raises(ModelError, match="gave the code 3; expected whole numbers from 0 to 2, as before"):
        told([3], 1, kind=kind, **numbers)
    with pytest.raises(ModelError, match=r"predicted the class '0\.5'"):
        told([0.5], 1, answers="label", order=("yes", "no"))


def test_probabilities_without_names_stand_in_the_order_that_was_given():
    np.testing.assert_array_equal(told([[0.8, 0.2]], 1, order=("yes", "no")).probabilities, [[0.2, 0.8]])
    with pytest.raises(ModelError, match="3 probabilities for each row and 2 classes"):
        told([[0.5, 0.3, 0.2]], 1, order=("yes", "no"))


def test_labels_and_probabilities_may_come_together():
    for labels in ("labels", "predictions"):
        got = told({labels: ["no", "yes"], "probabilities": [0.6, 0.7]}, 2)
        assert got.labels.tolist() == [0, 1]
        assert got.probabilities.tolist() == [0.6, 0.7]


def test_a_regression_is_answered_with_numbers():
    got = told({"predictions": [1, -2.5e300, [3.0]][:2]}, 2, task="regression", classes=())
    assert got.labels.tolist() == [1.0, -2.5e300]
    assert told([[1.5], [2]], 2, task="regression", classes=()).labels.tolist() == [1.5, 2.0]


def test_other_names_in_an_answer_do_no_harm():
    assert told({"model": "v1", "predictions": [0.5], "probabilities": None}, 1).probabilities.tolist() == [0.5]


# --- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "no JSON"),
        (b"<html>", "no JSON"),
        (b'{"predictions": [0.5', "no JSON"),
        (b'{"predictions": [NaN]}', "NaN, which is no JSON"),
        (b'{"predictions": [-Infinity]}', "-Infinity, which is no JSON"),
        (b'{"predictions": [1e999]}', "beyond the range of a double"),
        (b'{"predictions": [1' + b"0" * 400 + b"]}", "beyond the range of a double"),
        (b'{"predictions": [1' + b"0" * 5000 + b"]}", "no JSON"),
        (b'{"predictions": [0.5], "predictions": [0.6]}', "one name twice"),
        (b'{"predictions": ["\xff"]}', "no UTF-8"),
        (b"[" * 1_000_000, "nested too deeply"),
        (b'{"a":' * 1_000_000, "nested too deeply"),
        (b"null", "with null"),
        (b'"yes"', "with text"),
        (b"0.5", "with a number"),
        (b"{}", "an empty object and without predictions"),
        (b'{"error": "no"}', "an object that has 'error' and without predictions"),
        (b'{"predictions": {"0": 1}}', "an object as predictions"),
        (b'{"predictions": [0.5, 0.5]}', "gave 2 predictions for 1 rows"),
        (b'{"predictions": []}', "gave 0 predictions for 1 rows"),
        (b'{"predictions": [0.5], "probabilities": []}', "gave 0 probabilities"),
        (b'{"predictions": [null]}', "gave nothing for row 1"),
        (b'{"predictions": [[]]}', "gave nothing for row 1"),
        (b'{"predictions": [[0.5, "a"]]}', "text where a number was expected"),
        (b'{"predictions": [[0.5, true]]}', "a boolean where a number was expected"),
        (b'{"predictions": [[[0.5]]]}', "a list where a number was expected"),
        (b'{"probabilities": ["0.5"]}', r"text where a number was expected \(row 1 of its probabilities\)"),
        (b'{"probabilities": [true]}', "a boolean where a number was expected"),
        (b'{"labels": [["yes"]]}', "a list as a label"),
        (b'{"predictions": [0.5], "classes": "yes"}', "no list of names"),
        (b'{"predictions": [0.5], "classes": [null]}', "neither text nor numbers"),
        (b'{"predictions": [[0.5, 0.5]], "classes": ["a", "a"]}', "names a class twice"),
        (b'{"predictions": [{"a": 1}], "classes": ["b"]}', "otherwise than under 'classes'"),
    ],
    ids=range(33),
)
def test_an_answer_that_is_not_as_it_should_be_is_refused(body, message):
    with pytest.raises(ReplyError, match=message) as caught:
        read_reply(body, 1)
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([0.5, [0.5, 0.5]], "changes the form of its predictions at row 2"),
        ([[0.5, 0.5], 0.5], "changes the form of its predictions at row 2"),
        ([[0.5, 0.5], [1.0]], "gave 1 numbers for row 2 and 2 before"),
        ([{"a": 0.5}, {"b": 0.5}], "other classes in row 2"),
        ([{"a": 0.5}, [0.5]], "changes the form"),
    ],
)
def test_rows_of_several_forms_are_refused(rows, message):
    with pytest.raises(ReplyError, match=message):
        read_reply(json.dumps({"predictions": rows}).encode(), 2)


@pytest.mark.parametrize(
    ("answer", "task", "classes", "message"),
    [
        (["maybe"], "binary", BINARY, r"predicted the class 'maybe', which is not among.*'no', 'yes'.*--train"),
        ([{"maybe": 0.5, "no": 0.5}], "binary", BINARY, "probabilities of the class 'maybe'"),
        ([{"no": 0.5}], "binary", BINARY, "no probability of the class 'yes'"),
        ({"predictions": [[0.5, 0.5]], "classes": [1, "1"]}, "binary", (0, 1), "class"),
        ([[0.2, 0.3, 0.5]], "binary", BINARY, "3 probabilities for each row, and there are 2 classes"),
        ({"predictions": [[0.2, 0.3, 0.5]], "classes": ["no", "yes"]}, "binary", BINARY, "3 prob.* and 2 classes"),
        ([7], "binary", BINARY, "neither classes of the target nor probabilities"),
        ([-0.2], "binary", BINARY, "neither classes of the target nor probabilities"),
        ([0.5], "multiclass", (1, 2, 3), "not all classes of the target"),
        ({"probabilities": [0.5]}, "multiclass", (1, 2, 3), "one probability for each row, and there are 3 classes"),
        (["1.5"], "regression", (), "gave text as a prediction, and the task is regression"),
        ([True], "regression", (), "gave a boolean as a prediction"),
        ([[1.0, 2.0]], "regression", (), "gave a list of 2 numbers as a prediction"),
        ({"labels": [1]}, "regression", (), "gave no predictions"),
        ({"predictions": [[0.5, 0.5]], "probabilities": [0.5]}, "binary", BINARY, "probabilities twice"),
    ],
)
def test_an_answer_that_makes_no_sense_for_the_task_is_a_model_error(answer, task, classes, message):
    with pytest.raises(ModelError, match=message):
        told(answer, 1, task=task, classes=classes)


def test_a_nasty_class_name_is_shown_in_few_printable_characters(hostile_name):
    with pytest.raises(ModelError) as caught:
        told([hostile_name + "?"], 1)
    assert len(str(caught.value)) < 700
    assert str(caught.value).isprintable()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(["predictions", "probabilities", "labels", "classes", "other"])


@given(
    st.dictionaries(KEYS, JSON, max_size=4) | JSON,
    st.integers(1, 3),
    st.sampled_from(["binary", "multiclass", "regression"]),
)
def test_whatever_comes_is_understood_or_refused_in_words(answer, n, task):
    classes = {"binary": (0, 1), "multiclass": ("a", "b", 3), "regression": ()}[task]
    try:
        got = told(answer, n, task=task, classes=classes)
    except (ReplyError, ModelError):
        return
    values = [part for part in (got.labels, got.probabilities) if part is not None]
    assert values
    assert all(len(part) == n and np.isfinite(part).all() for part in values)


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_are_read_or_refused(body):
    try:
        read = read_reply(body, 1)
    except ReplyError:
        return
    assert len(read.entries) == 1


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.randoms(use_true_random=False))
def test_the_order_of_the_classes_in_an_answer_does_not_matter(scores, random):
    order = ["a", "b", "c"]
    rows = [{"a": score, "b": 1 - score, "c": 0.0} for score in scores]
    expected = np.array([[row[name] for name in order] for row in rows])
    random.shuffle(order)
    shuffled = {"predictions": [[row[name] for name in order] for row in rows], "classes": order}
    got = told(shuffled, len(rows), task="multiclass", classes=("a", "b", "c")).probabilities
    np.testing.assert_array_equal(got, expected)
