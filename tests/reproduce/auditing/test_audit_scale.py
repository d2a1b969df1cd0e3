"""The simulated tables on which the cost of an audit is measured."""

import numpy as np
import pandas as pd

from aboveboard.reproduce.auditing.audit_scale import simulated_table


def test_the_table_has_the_asked_features_three_sensitive_columns_a_target_and_a_score():
    table = simulated_table(500, 12, random_state=1)
    assert list(table.columns) == [*(f"x{i}" for i in range(12)), "sex", "age_band", "region", "y", "p"]
    assert len(table) == 500
    assert [table[name].nunique() for name in ("sex", "age_band", "region")] == [2, 4, 8]


def test_the_columns_are_mixed():
    table = simulated_table(2000, 10)
    kinds = [table[f"x{i}"].dtype for i in range(5)]
    assert [str(kind) for kind in kinds] == ["float64", "float64", "int64", "category", "bool"]
    assert 0.03 < table["x1"].isna().mean() < 0.07
    assert not table["x0"].isna().any()


def test_the_score_is_a_probability_that_ranks_the_target():
    table = simulated_table(20_000, 5)
    assert table["p"].between(0, 1).all()
    positive, negative = table.loc[table["y"] == 1, "p"], table.loc[table["y"] == 0, "p"]
    assert positive.mean() > negative.mean() + 0.2


def test_same_seed_same_table_and_another_seed_another():
    pd.testing.assert_frame_equal(simulated_table(100, 5, random_state=3), simulated_table(100, 5, random_state=3))
    assert not np.array_equal(
        simulated_table(100, 5, random_state=3)["x0"], simulated_table(100, 5, random_state=4)["x0"]
    )
