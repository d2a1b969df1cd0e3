"""Membership scores against their definition, row by row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from aboveboard.core import InputError
from aboveboard.unlearning import rmia_scores

chances = st.floats(1e-3, 1.0)


@given(
    arrays(float, 5, elements=chances),
    arrays(float, (3, 5), elements=chances),
    arrays(float, 7, elements=chances),
    arrays(float, (3, 7), elements=chances),
    st.sampled_from([0.5, 1.0, 2.0]),
)
def test_a_score_is_the_share_of_population_rows_that_the_row_beats(target, reference, z, z_reference, gamma):
    found = rmia_scores(target, reference, z, z_reference, gamma=gamma)
    for i in range(5):
        mine = target[i] / np.mean(reference[:, i]) / gamma
        beaten = sum(bool(mine >= z[j] / np.mean(z_reference[:, j])) for j in range(7))
        assert found[i] == beaten / 7


def test_rows_that_are_told_better_than_by_others_score_high():
    scores = rmia_scores([1.0, 0.5], [0.5, 0.5], [0.6, 0.6], [0.6, 0.6])
    assert scores.tolist() == [1.0, 1.0]
    assert rmia_scores([0.4], [0.5], [0.6, 0.6], [0.6, 0.6]).tolist() == [0.0]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.0], [0.5], [0.5], [0.5]), {}, "target holds"),
        (([0.5], [1.5], [0.5], [0.5]), {}, "reference holds"),
        (([0.5], [0.5], [np.nan], [0.5]), {}, "population_target holds"),
        (([0.5, 0.5], [0.5], [0.5], [0.5]), {}, "shape"),
        (([], [], [0.5], [0.5]), {}, "shape"),
        (([0.5], [0.5], [0.5], [0.5]), {"gamma": 0.0}, "gamma is 0.0"),
    ],
)
def test_what_is_no_probability_is_refused(arguments, options, message):
    with pytest.raises(InputError, match=message):
        rmia_scores(*arguments, **options)
