"""The mechanism: noise, projection, and what is promised."""

import numpy as np
import pytest

from aboveboard.core import Certificate, InputError
from aboveboard.privacy import gaussian_sigma, perturb_and_project, project_simplex_ball


def _identity(values):
    return values


def test_what_is_projected_is_the_answer_with_noise_of_the_calibrated_size():
    seen = []
    answer = np.linspace(0, 1, 4_000).reshape(40, 100)
    release = perturb_and_project(
        answer, lambda noisy: seen.append(noisy) or np.clip(noisy, 0, 1), sensitivity=2.0, epsilon=2.0, random_state=0
    )
    assert release.sigma == pytest.approx(gaussian_sigma(2.0, 1e-6, sensitivity=2.0), rel=1e-6)
    assert release.sigma >= gaussian_sigma(2.0, 1e-6, sensitivity=2.0)
    assert (seen[0] - answer).std() == pytest.approx(release.sigma, rel=0.05)
    assert np.array_equal(release.value, np.clip(seen[0], 0, 1))


def test_the_error_is_below_the_bound_that_was_printed():
    m, total = 500, 1.0
    answer = np.full(m, total / m)
    width = total * np.sqrt(2 * np.log(m))  # the largest of m normal numbers
    releases = [
        perturb_and_project(
            answer, lambda a: project_simplex_ball(a, total), sensitivity=0.05, width=width, random_state=seed
        )
        for seed in range(20)
    ]
    bound = releases[0].error_bound
    assert bound == releases[0].sigma * width / m
    assert np.mean([np.mean((release.value - answer) ** 2) for release in releases]) < bound < releases[0].sigma ** 2
    unbounded = perturb_and_project(answer, _identity, sensitivity=0.05, random_state=0)
    assert unbounded.error_bound is None
    wide = perturb_and_project(answer, _identity, sensitivity=0.05, width=1e9, random_state=0)
    assert wide.error_bound == wide.sigma**2


def test_the_certificate_names_everything():
    release = perturb_and_project(
        [1.0, 2.0], _identity, sensitivity=1.0, delta=1e-5, random_state=0, neighbours="two pets"
    )
    certificate = release.certificate()
    assert certificate.kind == "differential privacy"
    assert certificate.parameters["epsilon"] == 1.0
    assert certificate.parameters["delta"] == 1e-5
    assert certificate.parameters["adjacency"] == "two pets"
    assert certificate.parameters["sigma"] == release.sigma
    assert "predicted" in certificate.numerics["noise_source"]
    assert Certificate.from_dict(certificate.to_dict()) == certificate


def test_without_a_seed_the_certificate_says_that_noise_is_safe():
    pytest.importorskip("opendp")
    certificate = perturb_and_project([1.0], _identity, sensitivity=1.0).certificate()
    assert "OpenDP" in certificate.numerics["precision"]
    assert certificate.holds
    floating = perturb_and_project([1.0], _identity, sensitivity=1.0, noise="float64").certificate()
    assert floating.numerics["precision"] == "float64"
    assert "cryptographic" in floating.numerics["noise_source"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sensitivity": 0}, "sensitivity is 0"),
        ({"sensitivity": 1, "epsilon": -1}, "epsilon is -1"),
        ({"sensitivity": 1, "delta": 0}, "delta is 0"),
        ({"sensitivity": 1, "width": -2}, "width is -2"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        perturb_and_project([1.0, 2.0], _identity, random_state=0, **options)


def test_answers_and_projections_that_cannot_be_used_are_refused():
    with pytest.raises(InputError, match="missing or infinite"):
        perturb_and_project([np.nan], _identity, sensitivity=1.0)
    with pytest.raises(InputError, match="no entries"):
        perturb_and_project([], _identity, sensitivity=1.0)
    with pytest.raises(InputError, match="gave shape"):
        perturb_and_project([1.0, 2.0], lambda a: a[:1], sensitivity=1.0, random_state=0)
