"""Plain Reconcile: its end, its gains and its bound."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.uncertainty import Reconcile


def _binary(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.random(n)
    y = (rng.random(n) < x).astype(int)
    return [x, np.clip(np.where(x > 0.5, x - 0.25, x + 0.15), 0, 1)], y


@pytest.mark.parametrize(("eps", "alpha"), [(0.1, 0.05), (0.05, 0.01), (0.3, 0.2)])
def test_at_the_end_few_forecasts_are_far_apart_and_both_have_gained(eps, alpha):
    models, y = _binary()
    fitted = Reconcile(eps, alpha=alpha).fit(models, y)
    first, second = (part[:, 1] for part in fitted.transform(models))
    assert (np.abs(first - second) > eps).mean() <= alpha
    for before, after in zip(models, (first, second), strict=True):
        assert ((after - y) ** 2).mean() <= ((before - y) ** 2).mean() + 1e-12
    assert len(fitted.history_) <= fitted.bound_T_
    # two classes: each gain is at least twice (alpha / 2) (eps / 2)^2 in squared distance of vectors
    assert (fitted.history_["gain"] >= alpha * eps**2 / 4 - 1e-12).all()


def test_the_first_patch_is_the_largest_gain_over_directions_and_models():
    models, y = _binary()
    fitted = Reconcile(max_patches=1).fit(models, y)
    gains = {}
    for above in (True, False):
        rows = models[0] - models[1] > 0.1 if above else models[1] - models[0] > 0.1
        for k in range(2):
            gains[k, above] = rows.mean() * (y[rows].mean() - models[k][rows].mean()) ** 2
    line = fitted.history_.iloc[0]
    assert (line["model"], line["above"]) == max(gains, key=gains.get)
    assert line["gain"] == pytest.approx(2 * max(gains.values()), rel=1e-6)


def test_several_classes_end_close_too(two_views):
    models, y, _ = two_views()
    fitted = Reconcile(0.1, alpha=0.05).fit(models, y)
    first, second = fitted.transform(models)
    assert (np.abs(first - second) > 0.1).mean(axis=0).max() <= 0.05
    assert len(fitted.history_) <= fitted.bound_T_
    assert (fitted.history_["gain"] >= 0.05 * 0.1**2 / 8 - 1e-12).all()


def test_replaying_gives_the_same_bits(two_views):
    models, y, _ = two_views()
    fitted = Reconcile(min_event=20).fit(models, y)
    whole = fitted.transform(models)
    part = fitted.transform([matrix[100:130] for matrix in models])
    assert all((a[100:130] == b).all() for a, b in zip(whole, part, strict=True))


def test_equal_models_are_left_alone(two_views):
    models, y, _ = two_views()
    assert len(Reconcile().fit([models[0]] * 2, y).history_) == 0


def test_what_cannot_be_used_is_refused(two_views):
    models, y, _ = two_views(50, models=3)
    with pytest.raises(InputError, match="3 models"):
        Reconcile().fit(models, y)
    for options in ({"eps": 0}, {"eps": 1.5}, {"alpha": 0.0}):
        with pytest.raises(InputError, match="between 0 and 1"):
            Reconcile(**options).fit(models[:2], y)
    fitted = Reconcile().fit(models[:2], y)
    with pytest.raises(InputError, match="2 classes"):
        fitted.transform([[0.1, 0.9]] * 2)
