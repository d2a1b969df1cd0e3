import json

import numpy as np
import pytest

from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.reference import Reference

CERTIFICATE = Certificate(
    kind="differential privacy",
    guarantee="The mechanism is (1, 0)-differentially private.",
    parameters={"epsilon": np.float64(1.0), "queries": np.int64(3)},
    assumptions=(
        Assumption("Rows are independent."),
        Assumption("The values are bounded.", "checked", "range", 0.5, 1.0, True),
    ),
    confidence=0.95,
    does_not_cover=("The choice of the data.",),
    subject={"data": "00"},
    library_version="0.1.0",
    reference=Reference(title="T"),
)


def test_it_round_trips_through_json():
    data = json.loads(json.dumps(CERTIFICATE.to_dict()))
    assert Certificate.from_dict(data) == CERTIFICATE
    assert Certificate.from_dict(data).to_dict() == data


def test_it_holds_until_a_checked_assumption_fails():
    failed = Assumption("The values are bounded.", "checked", "range", 2.0, 1.0, False)
    assert CERTIFICATE.holds
    assert not Certificate(kind="k", guarantee="g", assumptions=(failed,)).holds


def test_what_was_assumed_cannot_have_passed():
    with pytest.raises(ValueError, match="was not checked"):
        Assumption("Rows are independent.", passed=True)


def test_what_was_checked_must_say_whether_it_passed():
    with pytest.raises(ValueError, match="must say whether it passed"):
        Assumption("Rows are independent.", "checked")
