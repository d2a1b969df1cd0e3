import functools
import importlib
import os
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge, SGDClassifier, TweedieRegressor
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OutputCodeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import aboveboard
from aboveboard.auditing.models.trust import known_types, untrusted_message

X, Y = load_iris(return_X_y=True)
TWO = (Y > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(word=np.where(Y > 0, "u", "v"))
MIXED = FRAME.astype({"word": "category"})
SCALED = make_pipeline(SimpleImputer(), StandardScaler())

MODELS = {
    "logistic": lambda: LogisticRegression(max_iter=500).fit(X, Y),
    "ridge": lambda: Ridge().fit(X, Y),
    "poisson": lambda: PoissonRegressor().fit(X, Y),
    "tweedie": lambda: TweedieRegressor(power=1.5).fit(X, Y + 1.0),
    "sgd": lambda: SGDClassifier(loss="log_loss").fit(X, Y),
    "tree": lambda: DecisionTreeClassifier().fit(X, Y),
    "forest": lambda: RandomForestClassifier(2).fit(X, Y),
    "forest of numbers": lambda: RandomForestRegressor(2).fit(X, Y),
    "extra trees": lambda: ExtraTreesClassifier(2).fit(X, Y),
    "isolation": lambda: IsolationForest(n_estimators=2).fit(X),
    "bagging": lambda: BaggingClassifier(n_estimators=2).fit(X, Y),
    "boosting of stumps": lambda: AdaBoostClassifier(n_estimators=2).fit(X, Y),
    "boosting, two": lambda: GradientBoostingClassifier(n_estimators=2).fit(X, TWO),
    "boosting, three": lambda: GradientBoostingClassifier(n_estimators=2).fit(X, Y),
    "boosting, exponential": lambda: GradientBoostingClassifier(n_estimators=2, loss="exponential").fit(X, TWO),
    "boosting, huber": lambda: GradientBoostingRegressor(n_estimators=2, loss="huber").fit(X, Y),
    "histograms, two": lambda: HistGradientBoostingClassifier(max_iter=2).fit(X, TWO),
    "histograms, three": lambda: HistGradientBoostingClassifier(max_iter=2, early_stopping=True).fit(X, Y),
    "histograms, words": lambda: HistGradientBoostingClassifier(
        max_iter=2, categorical_features="from_dtype"
    ).fit(MIXED, Y),
    "histograms, numbers": lambda: HistGradientBoostingRegressor(max_iter=2).fit(X, Y),
    "histograms, absolute": lambda: HistGradientBoostingRegressor(max_iter=2, loss="absolute_error").fit(X, Y),
    "histograms, gamma": lambda: HistGradientBoostingRegressor(max_iter=2, loss="gamma").fit(X, Y + 1.0),
    "histograms, poisson": lambda: HistGradientBoostingRegressor(max_iter=2, loss="poisson").fit(X, Y),
    "histograms, quantile": lambda: HistGradientBoostingRegressor(max_iter=2, loss="quantile", quantile=0.5).fit(X, Y),
    "neighbours": lambda: KNeighborsClassifier().fit(X, Y),
    "neighbours, balls": lambda: KNeighborsClassifier(algorithm="ball_tree", p=1).fit(X, Y),
    "bayes": lambda: GaussianNB().fit(X, Y),
    "machine": lambda: SVC(probability=False).fit(X, Y),
    "network": lambda: MLPClassifier(max_iter=2).fit(X, Y),
    "network, sgd": lambda: MLPClassifier(max_iter=2, solver="sgd").fit(X, Y),
    "process": lambda: GaussianProcessClassifier(1.0 * RBF(1.0)).fit(X, Y),
    "codes": lambda: OutputCodeClassifier(LogisticRegression(max_iter=500)).fit(X, Y),
    "calibrated": lambda: CalibratedClassifierCV(RandomForestClassifier(2)).fit(X, Y),
    "calibrated, isotonic": lambda: CalibratedClassifierCV(GaussianNB(), method="isotonic").fit(X, Y),
    "vote": lambda: VotingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier())]).fit(X, Y),
    "stack": lambda: StackingClassifier([("a", GaussianNB()), ("b", DecisionTreeClassifier())]).fit(X, Y),
    "search": lambda: GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}).fit(X, Y),
    "search by f1": lambda: GridSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9]}, scoring="f1", cv=StratifiedKFold(3)
    ).fit(X, TWO),
    "columns": lambda: make_pipeline(
        make_column_transformer((SCALED, list("abcd")), (OneHotEncoder(handle_unknown="ignore"), ["word"])),
        LogisticRegression(max_iter=500),
    ).fit(FRAME, Y),
    "columns by kind": lambda: make_pipeline(
        make_column_transformer(
            (StandardScaler(), make_column_selector(dtype_include="number")), (OrdinalEncoder(), ["word"]),
            remainder="passthrough",
        ),
        RandomForestClassifier(2),
    ).fit(FRAME, Y),
    "changed columns": lambda: make_pipeline(
        FunctionTransformer(np.log1p), PowerTransformer(), QuantileTransformer(n_quantiles=5), KBinsDiscretizer(3),
        SplineTransformer(), SelectKBest(k=2), GaussianNB(),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", list(MODELS))
def test_the_reviewed_list_is_enough_for_the_models_of_scikit_learn(name):
    model = MODELS[name]()
    if name == "changed columns":
        for step in list(model.named_steps.values())[:-1]:
            step.fit(X, Y)
    untrusted = set(skops.io.get_untrusted_types(data=skops.io.dumps(model)))
    assert untrusted <= known_types()


HOSTILE = [
    os.system, os.remove, eval, exec, print, open, subprocess.run, importlib.import_module, np.load, np.save,
    functools.reduce, getattr, type, pd.read_pickle, pd.eval, Path.write_text, np.frompyfunc,
]  # fmt: skip


@pytest.mark.parametrize("function", HOSTILE, ids=lambda f: f"{f.__module__}.{f.__name__}")
def test_no_function_with_effects_is_trusted_however_it_is_wrapped(function):
    wrapped = [FunctionTransformer(function), FunctionTransformer(functools.partial(function, "x"))]
    written = 0
    for model in wrapped:
        try:
            content = skops.io.dumps(model)
        except Exception:  # skops refuses to write some of them, each in its own way
            continue
        written += 1
        assert set(skops.io.get_untrusted_types(data=content)) - known_types()
    if not written:
        pytest.skip("skops writes no file with this function")


def test_every_group_of_the_list_says_why_and_no_type_stands_in_two():
    path = Path(aboveboard.__file__).parent / "auditing" / "trusted_types.toml"
    groups = tomllib.loads(path.read_text(encoding="utf-8"))
    names = [name for group in groups.values() for name in group["types"]]
    assert len(names) == len(set(names))
    assert all(len(group["why"]) > 40 for group in groups.values())
    assert all(list(group["types"]) for group in groups.values())


def test_the_types_of_the_list_that_this_scikit_learn_has_are_what_they_say():
    """A name that is nothing at all is allowed (other versions have it); a name of another kind would be a slip."""
    found = 0
    for name in known_types():
        module, _, attribute = name.rpartition(".")
        try:
            thing = getattr(importlib.import_module(module), attribute)
        except (ImportError, AttributeError):
            continue
        found += 1
        assert callable(thing), name
    assert found > 60


def test_the_refusal_quotes_each_name_and_cannot_be_pasted_into_harm(hostile_names):
    types = ["sklearn.tree._tree.Tree", *hostile_names.values()]
    message = str(untrusted_message("m.skops", types))
    assert "'sklearn.tree._tree.Tree' (--trust known)" in message
    assert "--trust-type '; DROP" not in message
    assert "\x1b" not in message.split("--trust-type")[0]
    assert "more" in message
