"""Arguments that are refused, and how."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.privacy._rdp.checked import checked_fraction, checked_positive, checked_whole


def test_numbers_of_numpy_are_numbers():
    assert checked_positive(np.float32(2), "sigma") == 2.0
    assert checked_whole(np.int64(3), "steps") == 3
    assert checked_fraction(1, "rate") == 1.0


@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, "1", None, True])
def test_the_message_names_the_argument_and_what_was_got(value):
    with pytest.raises(InputError, match="sigma is"):
        checked_positive(value, "sigma")
