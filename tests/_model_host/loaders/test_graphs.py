import os

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import OneHotEncoder

import aboveboard
from aboveboard._model_host.loaders.graphs import load_onnx
from aboveboard.core.errors import InputError, ModelError

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
IRIS_X = IRIS_X.astype("float32")
FLOAT = TensorProto.FLOAT


def saved(folder, nodes, inputs, outputs, initializers=(), name="model.onnx", **options):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    sets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=sets, ir_version=8, producer_name="tests", **options)
    path = folder / name
    onnx.save(model, str(path))
    return path


def read(path):
    return load_onnx({"path": str(path)})


def tensor(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, list(shape))


def linear_classifier(model, *, labels, source="x", scores="probabilities", label="label"):
    """A LinearClassifier node with the coefficients of a logistic regression."""
    weights, intercepts = model.coef_, model.intercept_
    if len(weights) == 1:
        weights, intercepts = np.vstack([-weights, weights]), np.hstack([-intercepts, intercepts])
    kind = "classlabels_strings" if isinstance(labels[0], str) else "classlabels_ints"
    return helper.make_node(
        "LinearClassifier", [source], [label, scores], domain="ai.onnx.ml",
        coefficients=weights.ravel().tolist(), intercepts=intercepts.tolist(), multi_class=0,
        post_transform="LOGISTIC" if len(model.coef_) == 1 else "SOFTMAX", **{kind: labels},
    )  # fmt: skip


def tree_classifier(forest, labels):
    """A TreeEnsembleClassifier node with the trees of a random forest."""
    nodes = {key: [] for key in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")}
    leaves = {key: [] for key in ("treeids", "nodeids", "ids", "weights")}
    for t, estimator in enumerate(forest.estimators_):
        tree = estimator.tree_
        for i in range(tree.node_count):
            leaf = tree.children_left[i] < 0
            row = (
                t, i, 0 if leaf else int(tree.feature[i]), 0.0 if leaf else _next_below(tree.threshold[i]),
                "LEAF" if leaf else "BRANCH_LEQ", 0 if leaf else int(tree.children_left[i]),
                0 if leaf else int(tree.children_right[i]),
            )  # fmt: skip
            for key, value in zip(nodes, row, strict=True):
                nodes[key].append(value)
            if leaf:
                share = tree.value[i][0] / tree.value[i][0].sum() / len(forest.estimators_)
                for c, weight in enumerate(share):
                    for key, value in zip(leaves, (t, i, c, float(weight)), strict=True):
                        leaves[key].append(value)
    return helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["label", "probabilities"], domain="ai.onnx.ml", post_transform="NONE",
        classlabels_int64s=labels, **{f"nodes_{key}": value for key, value in nodes.items()},
        **{f"class_{key}": value for key, value in leaves.items()},
    )  # fmt: skip


def _next_below(threshold):
    """The largest single-precision number that is no larger, so that rounding moves no row to the other side."""
    value = np.float32(threshold)
    return float(value if value <= threshold else np.nextafter(value, np.float32(-np.inf)))


def test_a_linear_classifier_gives_the_probabilities_and_labels_of_the_model_it_was_made_from(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X[:, :5] / X[:, :5].max(axis=0)).astype("float32")
    names = np.array(["bad", "good"])[y]
    model = LogisticRegression().fit(X, names)
    node = linear_classifier(model, labels=["bad", "good"])
    path = saved(tmp_path, [node], [tensor("x", FLOAT, None, 5)],
                 [tensor("label", TensorProto.STRING, None), tensor("probabilities", FLOAT, None, 2)])  # fmt: skip
    loaded = read(path)
    assert (list(loaded.classes), loaded.n_features, loaded.feature_names) == (["bad", "good"], 5, None)
    np.testing.assert_allclose(loaded.questions["predict_proba"](X), model.predict_proba(X), atol=1e-6)
    assert (loaded.questions["predict"](X) == model.predict(X)).mean() > 0.99


def test_a_zip_map_gives_the_probabilities_in_the_order_of_the_labels(tmp_path):
    model = LogisticRegression(max_iter=1000).fit(IRIS_X, IRIS_Y * 10)
    zipped = helper.make_node("ZipMap", ["p"], ["maps"], domain="ai.onnx.ml", classlabels_int64s=[0, 10, 20])
    number = helper.make_tensor_type_proto(FLOAT, [])
    seq = helper.make_sequence_type_proto(helper.make_map_type_proto(TensorProto.INT64, number))
    path = saved(tmp_path, [linear_classifier(model, labels=[0, 10, 20], scores="p"), zipped],
                 [tensor("x", FLOAT, None, 4)],
                 [tensor("label", TensorProto.INT64, None), helper.make_value_info("maps", seq)])  # fmt: skip
    loaded = read(path)
    assert list(loaded.classes) == [0, 10, 20]
    np.testing.assert_allclose(loaded.questions["predict_proba"](IRIS_X), model.predict_proba(IRIS_X), atol=1e-6)


def test_a_forest_as_a_graph_answers_through_its_process_as_the_forest(tmp_path):
    forest = RandomForestClassifier(7, random_state=0).fit(IRIS_X, IRIS_Y)
    path = saved(tmp_path, [tree_classifier(forest, [0, 1, 2])], [tensor("x", FLOAT, None, 4)],
                 [tensor("label", TensorProto.INT64, None), tensor("probabilities", FLOAT, None, 3)])  # fmt: skip
    with aboveboard.open_model(path) as model:
        assert model.classes_ == [0, 1, 2]
        assert model.n_features_in_ == 4
        assert not hasattr(model, "feature_names_in_")
        np.testing.assert_allclose(model.predict_proba(IRIS_X), forest.predict_proba(IRIS_X), atol=1e-6)
        report = aboveboard.audit(model, IRIS_X, IRIS_Y, only=["performance", "model"], effort="quick")
    assert report.subject["model"] == "ONNX graph (tests)"
    assert report.subject["model_source"]["format"] == "onnx"
    accuracy = (forest.predict(IRIS_X) == IRIS_Y).mean()
    assert f"{accuracy:.3g}" in next(f.statement for f in report.findings if f.check == "performance")


def test_one_input_for_each_column_is_fed_by_name_with_numbers_and_text(tmp_path):
    frame = pd.DataFrame({"size": np.linspace(-2, 2, 60).astype("float32"), "colour": ["red", "blue", "green"] * 20})
    y = ((frame["size"] > 0) ^ (frame["colour"] == "red")).astype(int)
    encoder = OneHotEncoder(categories=[["blue", "green", "red"]], sparse_output=False).fit(frame[["colour"]])
    both = np.column_stack([frame["size"], encoder.transform(frame[["colour"]])])
    model = LogisticRegression().fit(both, y)
    nodes = [
        helper.make_node("OneHotEncoder", ["colour"], ["hot3"], domain="ai.onnx.ml", zeros=1,
                         cats_strings=["blue", "green", "red"]),
        helper.make_node("Reshape", ["hot3", "shape"], ["hot"]),
        helper.make_node("Concat", ["size", "hot"], ["x"], axis=1),
        linear_classifier(model, labels=[0, 1]),
    ]  # fmt: skip
    path = saved(
        tmp_path, nodes, [tensor("colour", TensorProto.STRING, None, 1), tensor("size", FLOAT, None, 1)],
        [tensor("label", TensorProto.INT64, None), tensor("probabilities", FLOAT, None, 2)],
        [numpy_helper.from_array(np.array([-1, 3], dtype="int64"), "shape")],
    )  # fmt: skip
    loaded = read(path)
    assert loaded.feature_names == ["colour", "size"]
    for rows in (frame, frame[["colour", "size"]], frame.astype({"colour": "category"})):
        np.testing.assert_allclose(loaded.questions["predict_proba"](rows), model.predict_proba(both), atol=1e-6)
    with pytest.raises(ValueError, match="'colour' takes text, which cannot be missing"):
        loaded.questions["predict_proba"](frame.assign(colour=[None] * 60))


def test_a_regression_gives_numbers_and_says_that_it_is_one(tmp_path):
    X, y = load_diabetes(return_X_y=True)
    model = LinearRegression().fit(X, y)
    node = helper.make_node("LinearRegressor", ["x"], ["y"], domain="ai.onnx.ml", coefficients=model.coef_.tolist(),
                            intercepts=[float(model.intercept_)])  # fmt: skip
    loaded = read(saved(tmp_path, [node], [tensor("x", FLOAT, None, 10)], [tensor("y", FLOAT, None, 1)]))
    assert loaded.regressor
    np.testing.assert_allclose(loaded.questions["predict"](X), model.predict(X), rtol=1e-5)


def test_plain_probabilities_have_codes_for_classes_and_the_report_says_so(tmp_path):
    W = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
    nodes = [helper.make_node("MatMul", ["x", "W"], ["z"]), helper.make_node("Softmax", ["z"], ["p"], axis=1)]
    path = saved(tmp_path, nodes, [tensor("x", FLOAT, None, 4)], [tensor("p", FLOAT, None, 3)],
                 [numpy_helper.from_array(W, "W")])  # fmt: skip
    loaded = read(path)
    z = np.exp(IRIS_X @ W)
    np.testing.assert_allclose(loaded.questions["predict_proba"](IRIS_X), z / z.sum(1, keepdims=True), atol=1e-5)
    assert list(loaded.classes) == [0, 1, 2]
    assert "codes 0 to 2" in loaded.notes[0]
    with aboveboard.open_model(path, classes=["a", "b", "c"]) as model:
        assert model.source_.notes == ()
        assert (model.predict(IRIS_X) == np.array(["a", "b", "c"])[z.argmax(1)]).all()
    with pytest.raises(InputError, match=r"2 class labels were given\. Expected 3"):
        aboveboard.open_model(path, classes=["a", "b"])


@pytest.mark.parametrize("shape", [(None, 1), (None,)])
def test_a_single_number_is_left_to_the_task(tmp_path, shape):
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=len(shape) - 1),
             helper.make_node("Sigmoid", ["m"], ["p"])]  # fmt: skip
    loaded = read(saved(tmp_path, nodes, [tensor("x", FLOAT, None, 4)], [tensor("p", FLOAT, *shape)]))
    assert list(loaded.questions) == ["call"]
    np.testing.assert_allclose(loaded.questions["call"](IRIS_X), 1 / (1 + np.exp(-IRIS_X.mean(1))), rtol=1e-5)


def test_a_graph_for_batches_of_one_size_answers_any_number_of_rows(tmp_path):
    nodes = [helper.make_node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=1)]
    loaded = read(saved(tmp_path, nodes, [tensor("x", FLOAT, 8, 4)], [tensor("m", FLOAT, 8, 1)]))
    for n in (1, 8, 9, 150):
        np.testing.assert_allclose(loaded.questions["call"](IRIS_X[:n]), IRIS_X[:n].mean(1), rtol=1e-6)


def test_whole_numbers_are_held_as_they_are_or_refused(tmp_path):
    nodes = [helper.make_node("Cast", ["x"], ["f"], to=FLOAT), helper.make_node("ReduceSum", ["f"], ["y"], keepdims=1)]
    loaded = read(saved(tmp_path, nodes, [tensor("x", TensorProto.INT64, None, 2)], [tensor("y", FLOAT, None, 1)]))
    ask = loaded.questions["call"]
    for wrong in ([[0.5, 1]], [[np.nan, 1.0]]):
        with pytest.raises(ValueError, match=r"whole numbers, which cannot|does not hold every value"):
            ask(np.array(wrong))
    with pytest.raises(ValueError, match="parse"):
        ask(pd.DataFrame({"a": ["one"], "b": [1]}))


# --- refused ----------------------------------------------------------------------------------------------------------


def with_weights_at(folder, location):
    W = numpy_helper.from_array(np.eye(4, dtype="float32"), "W")
    W.ClearField("raw_data")
    W.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", "64")):
        entry = W.external_data.add()
        entry.key, entry.value = key, value
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "W"], ["y"])], "g", [tensor("x", FLOAT, None, 4)],
                              [tensor("y", FLOAT, None, 4)], [W])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    return folder / "model.onnx"


def test_weights_beside_the_model_are_read_and_named(tmp_path):
    (tmp_path / "w.bin").write_bytes(np.eye(4, dtype="float32").tobytes())
    loaded = read(with_weights_at(tmp_path, "w.bin"))
    np.testing.assert_allclose(loaded.questions["predict_proba"](IRIS_X), IRIS_X)
    assert "'w.bin' (sha256 " in loaded.notes[0]


@pytest.mark.parametrize("location", ["../w.bin", "{folder}/w.bin", "link.bin", "linked/w.bin", "sub/../../w.bin", ""])
def test_weights_outside_the_folder_of_the_model_are_refused(tmp_path, location):
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    for folder in (tmp_path, home):
        (folder / "w.bin").write_bytes(np.eye(4, dtype="float32").tobytes())
    os.symlink(tmp_path / "w.bin", home / "link.bin")
    os.symlink(tmp_path, home / "linked")
    path = with_weights_at(home, location.format(folder=tmp_path))
    with pytest.raises(InputError, match="outside its folder"):
        read(path)


def test_weights_in_the_body_of_a_condition_are_looked_at_too(tmp_path):
    source = onnx.load(str(with_weights_at(tmp_path, "../w.bin")), load_external_data=False)
    W = source.graph.initializer[0]
    branch = helper.make_graph([helper.make_node("Identity", ["W"], ["w"])], "b", [], [tensor("w", FLOAT, 4, 4)], [W])
    node = helper.make_node("If", ["c"], ["v"], then_branch=branch, else_branch=branch)
    yes = numpy_helper.from_array(np.array(True), "c")
    path = saved(tmp_path, [node, helper.make_node("MatMul", ["x", "v"], ["y"])], [tensor("x", FLOAT, None, 4)],
                 [tensor("y", FLOAT, None, 4)], [yes])  # fmt: skip
    with pytest.raises(InputError, match="outside its folder"):
        read(path)


def test_weights_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read(with_weights_at(tmp_path, "gone.bin"))


def test_graphs_that_are_no_models_of_tables_are_refused_by_name(tmp_path):
    image = saved(tmp_path, [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", FLOAT, None, 3, 8, 8)],
                  [tensor("y", FLOAT, None, 3, 8, 8)])  # fmt: skip
    with pytest.raises(InputError, match=r"input 'x', which is tensor\(float\) of shape"):
        read(image)
    two = saved(tmp_path, [helper.make_node("Add", ["x", "z"], ["y"])],
                [tensor("x", FLOAT, None, 3), tensor("z", FLOAT, None, 3)], [tensor("y", FLOAT, None, 3)])  # fmt: skip
    with pytest.raises(InputError, match="'x' among them takes 3 columns"):
        read(two)
    nodes = [helper.make_node("Identity", ["x"], ["a"]), helper.make_node("Neg", ["x"], ["b"])]
    outputs = [tensor("a", FLOAT, None, 3), tensor("b", FLOAT, None, 3)]
    several = saved(tmp_path, nodes, [tensor("x", FLOAT, None, 3)], outputs)
    with pytest.raises(InputError, match="2 outputs that could be scores: 'a', 'b'"):
        read(several)


@pytest.mark.parametrize("content", [b"\x00" * 40, b"not a graph at all", b"\x08\x08"])
def test_a_file_that_is_no_graph_is_refused(tmp_path, content):
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(InputError, match=r"'model\.onnx' cannot be read as an ONNX model|has no input"):
        read(tmp_path / "model.onnx")


def test_hostile_names_of_inputs_and_classes_survive(tmp_path, hostile_names):
    names = [name for name in hostile_names.values() if name and "\ud800" not in name and "\x00" not in name][:12]
    model = LogisticRegression(max_iter=1000).fit(IRIS_X, IRIS_Y)
    labels = names[-3:]
    inputs = [tensor(name, FLOAT, None, 1) for name in names[:4]]
    nodes = [helper.make_node("Concat", names[:4], ["x"], axis=1), linear_classifier(model, labels=labels)]
    path = saved(tmp_path, nodes, inputs,
                 [tensor("label", TensorProto.STRING, None), tensor("probabilities", FLOAT, None, 3)])  # fmt: skip
    frame = pd.DataFrame(IRIS_X, columns=names[:4])
    with aboveboard.open_model(path) as hosted:
        assert hosted.feature_names_in_ == names[:4]
        assert hosted.classes_ == labels
        np.testing.assert_allclose(hosted.predict_proba(frame), model.predict_proba(IRIS_X), atol=1e-5)
        with pytest.raises(ModelError, match="raised"):
            hosted.predict_proba(frame.iloc[:, :2])
