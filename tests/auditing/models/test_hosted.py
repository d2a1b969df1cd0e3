import numpy as np
import pytest
import skops.io
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import aboveboard
from aboveboard.core.errors import InputError
from aboveboard.data import load_german_credit

CREDIT = load_german_credit()
X, Y = CREDIT.X.select_dtypes("number"), CREDIT.y.astype(str)


def test_a_model_in_a_skops_file_answers_as_the_same_model_in_this_process(tmp_path):
    fitted = LogisticRegression(max_iter=1000).fit(X, Y)
    skops.io.dump(fitted, tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops") as model:
        assert (model.predict_proba(X) == fitted.predict_proba(X)).all()
        assert (model.predict(X) == fitted.predict(X)).all()
        assert list(model.classes_) == list(fitted.classes_)
        assert list(model.feature_names_in_) == list(X.columns)


def test_types_that_nobody_vouched_for_are_named_with_the_flag_that_would_trust_each(tmp_path):
    forest = RandomForestClassifier(5, random_state=0).fit(X, Y)
    skops.io.dump(forest, tmp_path / "model.skops")
    with pytest.raises(InputError, match=r"'sklearn\.tree\._tree\.Tree' \(--trust known\)"):
        aboveboard.open_model(tmp_path / "model.skops")
    with aboveboard.open_model(tmp_path / "model.skops", trust="known") as model:
        assert np.array_equal(model.predict_proba(X), forest.predict_proba(X))
        assert model.source_.trusted_types == ("sklearn.tree._tree.Tree",)
