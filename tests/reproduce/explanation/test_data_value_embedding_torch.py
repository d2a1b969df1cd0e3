"""The experiment: its labels are wrong where it says so, its orders are epochs, its valley is one."""

import numpy as np
import pytest

from aboveboard.reproduce.explanation import data_value_embedding as experiment

torch = pytest.importorskip("torch")


@pytest.fixture
def images():
    rng = np.random.default_rng(0)
    rows = experiment._ROWS + experiment._HELD
    return experiment._images(rng.normal(size=(rows, 3)), rng.integers(0, 10, rows))


def test_a_tenth_of_the_labels_is_wrong_at_places_that_are_told(images):
    noisy = experiment._with_wrong_labels(images, 0)
    assert np.array_equal((noisy.y != images.y).numpy(), noisy.wrong)
    assert noisy.wrong.sum() == experiment._ROWS // 10
    assert set(noisy.y.tolist()) == set(range(10))
    assert torch.equal(noisy.y_held, images.y_held)


def test_every_epoch_of_an_order_sees_every_row_once():
    order = experiment._order(60, 20, 2, 0)
    for epoch in (order[:3], order[3:]):
        assert sorted(torch.cat(epoch).tolist()) == list(range(60))


def test_a_valley_is_measured_from_the_lower_of_its_sides():
    assert experiment._valley(np.array([3.0, 2.0, 1.0, 4.0, 2.0])) == 2.0
    assert experiment._valley(np.array([1.0, 2.0, 3.0])) == 0.5


def test_the_learning_rate_warms_up_over_the_first_tenth(images):
    recorder = experiment._trained(images, 0, warm_up=True, epochs=1)
    rates = [recorder._trajectory.lr(step) for step in range(recorder.n_steps)]
    assert rates[:6] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1, 0.1])
    assert set(rates[5:]) == {experiment._LR}


def test_ranks_are_averaged_over_targets():
    true = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    assert experiment._rank(true * [[1.0], [-1.0]], true) == pytest.approx(0.0)
    assert experiment._rank(true**3, true) == pytest.approx(1.0)
