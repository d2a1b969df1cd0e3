"""The recorder keeps what the loop did, notices when that is not what was declared, and reads itself back from disk."""

import numpy as np
import pytest

from aboveboard.core import InputError
from aboveboard.explanation import DataValueEmbedding, TrajectoryRecorder, exact_tsloo

torch = pytest.importorskip("torch")

cross_entropy = torch.nn.functional.cross_entropy


def recorded(loops, kind="sgd", **options):
    model = loops.network()
    optimizer = loops.optimizers[kind](model.parameters())
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer, **options)
    loops.train(model, loops.problem(), loops.batches(), optimizer, recorder=recorder)
    return recorder


def influences(recorder, loops, curvature="fisher"):
    return DataValueEmbedding(curvature).embed(recorder).influence(loops.problem(5, seed=9))


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_a_recording_on_disk_is_that_in_memory_and_is_read_back(loops, tmp_path, kind):
    in_memory = recorded(loops, kind, weights=4)
    on_disk = recorded(loops, kind, weights=4, store=tmp_path / "run")
    opened = TrajectoryRecorder.open(tmp_path / "run", loops.network(seed=5), cross_entropy)
    assert (opened.n_steps, opened.n_rows, opened.finished) == (10, 80, True)
    assert opened.nbytes == on_disk.nbytes == in_memory.nbytes
    for curvature in ("fisher", "exact"):
        expected = influences(in_memory, loops, curvature)
        assert np.array_equal(influences(on_disk, loops, curvature), expected)
        assert np.array_equal(influences(opened, loops, curvature), expected)
    assert (tmp_path / "run" / "embeddings-exact.npy").is_file()
    with pytest.raises(InputError, match="not empty"):
        TrajectoryRecorder(loops.network(), cross_entropy, store=tmp_path / "run")
    with pytest.raises(InputError, match="weights to train"):
        TrajectoryRecorder.open(tmp_path / "run", torch.nn.Linear(2, 2), cross_entropy)
    with pytest.raises(InputError, match="no recorded training"):
        TrajectoryRecorder.open(tmp_path, loops.network(), cross_entropy)


def test_a_projected_recording_is_read_back_with_its_matrices(loops, tmp_path):
    written = recorded(loops, projection=(3, 2), store=tmp_path / "run")
    opened = TrajectoryRecorder.open(tmp_path / "run", loops.network(), cross_entropy)
    assert np.array_equal(influences(opened, loops), influences(written, loops))


@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
def test_less_precise_gradients_are_smaller_and_nearly_as_good(loops, precision, tolerance):
    exact, coarse = recorded(loops), recorded(loops, precision=precision)
    assert coarse.nbytes < 0.6 * exact.nbytes
    expected = influences(exact, loops)
    assert np.abs(influences(coarse, loops) - expected).max() < tolerance * np.abs(expected).max()


def test_half_precision_keeps_gradients_that_are_tiny_or_huge(loops):
    for factor in (1e-12, 1e12):
        model = loops.network()
        recorder = TrajectoryRecorder(
            model, lambda outputs, y, factor=factor: factor * cross_entropy(outputs, y), precision="float16"
        )
        X, y = loops.problem()
        recorder.step((X[:5], y[:5]), range(5), lr=0.0)
        recorder.finish()
        E = recorder._trajectory._rows(0)
        expected = factor * torch.as_tensor(gradients_of_rows(model, X[:5], y[:5]))
        assert torch.allclose(E, expected, rtol=2e-3, atol=2e-3 * factor)


def gradients_of_rows(model, X, y):
    rows = []
    for i in range(len(y)):
        model.zero_grad()
        cross_entropy(model(X[i : i + 1]), y[i : i + 1]).backward()
        rows.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    return torch.stack(rows).numpy()


def test_nothing_about_the_model_changes_by_being_recorded(loops):
    watched, alone = loops.network(), loops.network()
    for model in (watched, alone):
        recorder = None
        optimizer = loops.optimizers["momentum"](model.parameters())
        if model is watched:
            recorder = TrajectoryRecorder(model, cross_entropy, optimizer, weights=3)
        loops.train(model, loops.problem(), loops.batches(), optimizer, recorder=recorder)
    assert all(torch.equal(p, q) for p, q in zip(watched.parameters(), alone.parameters(), strict=True))
    assert watched.training


# --- the step that was taken is the step that was recorded ---------------------------------------------------------


def loop_of(loops, recorder, model, optimizer, **options):
    with pytest.raises(InputError) as caught:
        loops.train(model, loops.problem(), loops.batches(), optimizer, recorder=recorder, **options)
    return str(caught.value)


@pytest.mark.parametrize("options", [{}, {"layers": ["2"]}, {"projection": (2, 2)}, {"gradients": False, "weights": 2}])
def test_a_sum_taken_for_a_mean_is_noticed_at_the_second_step(loops, options):
    model = loops.network()
    optimizer = loops.optimizers["sgd"](model.parameters())
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer, **options)
    told = loop_of(loops, recorder, model, optimizer, mean=False)
    assert "step 0 is not the one that was recorded: it is 8 times as long; the loop sums" in told


def test_a_mean_taken_for_a_sum_another_rate_clipping_and_another_optimiser_are_noticed(loops):
    model = loops.network()
    optimizer = loops.optimizers["sgd"](model.parameters())
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer, reduction="sum")
    assert "the loop averages them" in loop_of(loops, recorder, model, optimizer)

    recorder = TrajectoryRecorder(model, cross_entropy, optimizer)
    assert "another learning rate, or clipping?" in loop_of(loops, recorder, model, optimizer, clip=0.01)

    recorder = TrajectoryRecorder(model, cross_entropy)
    data = loops.problem()
    adam = loops.optimizers["adam"](model.parameters())
    recorder.step((data[0][:8], data[1][:8]), range(8), lr=0.1)
    cross_entropy(model(data[0][:8]), data[1][:8]).backward()
    adam.step()
    with pytest.raises(InputError, match="direction is another one"):
        recorder.finish()


def test_a_step_recorded_after_it_was_taken_is_noticed(loops):
    model, (X, y) = loops.network(), loops.problem()
    recorder = TrajectoryRecorder(model, cross_entropy)
    recorder.step((X[:8], y[:8]), range(8), lr=0.1)
    with pytest.raises(InputError, match="weights have not changed"):
        recorder.step((X[8:16], y[8:16]), range(8, 16), lr=0.1)


def test_a_late_step_that_differs_is_warned_of_once_and_the_training_goes_on(loops):
    model = loops.network()
    optimizer = loops.optimizers["sgd"](model.parameters())
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer)
    skipped = {(step, place): 0.0 for step in (5, 7) for place in range(8)}
    with pytest.warns(UserWarning, match="step 5 is not the one") as caught:
        loops.train(model, loops.problem(), loops.batches(), optimizer, recorder=recorder, weights=skipped)
    assert len(caught) == 1
    assert recorder.finished


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"reduction": "none"}, "reduction is 'none'"),
        ({"precision": "float8"}, "precision is 'float8'"),
        ({"weights": 0}, "weights is 0"),
        ({"weights": True}, "weights is True"),
        ({"gradients": 1}, "gradients is 1"),
        ({"gradients": False}, "neither gradients nor weights"),
        ({"clip_norm": 0.0}, "clip_norm is 0.0"),
        ({"max_gib": float("inf")}, "max_gib is inf"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"layers": "0"}, "layers is '0'"),
        ({"layers": ["0", "0"]}, "names one twice"),
        ({"layers": ["7"]}, "there is no layer '7'"),
        ({"projection": (2, 0)}, "projection is"),
        ({"projection": (2, 2), "layers": ["1"]}, "'1' is Tanh"),
        ({"projection": (2, 2), "gradients": False, "weights": 1}, "projected gradients"),
    ],
)
def test_options_out_of_range_are_refused(loops, options, told):
    with pytest.raises(InputError, match=told):
        TrajectoryRecorder(loops.network(), cross_entropy, **options)


def test_optimisers_whose_step_is_another_one_are_refused(loops):
    model = loops.network()
    for optimizer, told in (
        (torch.optim.Adagrad(model.parameters()), "Adagrad"),
        (torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, dampening=0.5), "dampening"),
        (torch.optim.Adam(model.parameters(), amsgrad=True), "amsgrad"),
        (
            torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 1}], 0.1),
            "groups",
        ),
        (torch.optim.SGD(model[0].parameters(), lr=0.1), "does not hold the parameters"),
    ):
        with pytest.raises(InputError, match=told):
            TrajectoryRecorder(model, cross_entropy, optimizer)
    with pytest.raises(InputError, match="scales every weight apart"):
        TrajectoryRecorder(model, cross_entropy, torch.optim.AdamW(model.parameters()), projection=(2, 2))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"lr": None}, "learning rate is missing"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"indices": [0.5, 1.5]}, "which example it is"),
        ({"indices": [0, 1, 2]}, "3 indices for 2 rows"),
        ({"batch": torch.zeros(2, 4)}, "a batch is a Tensor"),
        ({"batch": (np.zeros((2, 4)), torch.zeros(2))}, "no tensor of rows"),
        ({"batch": (torch.zeros(2, 4), torch.zeros(3, dtype=torch.long))}, "rows"),
        ({"batch": (torch.full((2, 4), torch.nan), torch.zeros(2, dtype=torch.long))}, "NaN"),
    ],
)
def test_a_step_that_cannot_be_recorded_is_refused(loops, arguments, told):
    recorder = TrajectoryRecorder(loops.network(), cross_entropy)
    batch = torch.zeros(2, 4, dtype=torch.float64), torch.zeros(2, dtype=torch.long)
    with pytest.raises(InputError, match=told):
        recorder.step(**({"batch": batch, "indices": [0, 1], "lr": 0.1} | arguments))
    assert recorder.n_steps == 0
    with pytest.raises(InputError, match="no step was recorded"):
        recorder.finish()


def test_models_whose_rows_depend_on_each_other_or_on_chance_are_told(loops):
    batch = torch.zeros(2, 4, dtype=torch.float64), torch.zeros(2, dtype=torch.long)
    mixed = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).double()
    with pytest.raises(InputError, match="mixes the rows"):
        TrajectoryRecorder(mixed, cross_entropy).step(batch, [0, 1], 0.1)
    with pytest.warns(UserWarning, match="dropout"):
        recorder = TrajectoryRecorder(
            torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 3)).double(), cross_entropy, weights="every"
        )
    recorder.step(batch, [0, 1], 0.1)
    recorder.finish()
    with pytest.raises(InputError, match="dropout masks"):
        exact_tsloo(recorder, [(0, 0)], batch)
    with pytest.raises(InputError, match="float16"):
        TrajectoryRecorder(torch.nn.Linear(2, 2).half(), cross_entropy)
    with pytest.raises(InputError, match="requires a gradient"):
        TrajectoryRecorder(torch.nn.Linear(2, 2).requires_grad_(False), cross_entropy)
    with pytest.raises(InputError, match="2 numbers for one example"):
        TrajectoryRecorder(loops.network(), lambda outputs, y: outputs[0, :2]).step(batch, [0, 1], 0.1)


def test_a_plan_that_does_not_fit_is_refused_at_the_first_step_and_else_when_it_is_full(loops):
    options = {"max_gib": 1e-5, "weights": 5}
    model = loops.network()
    optimizer = loops.optimizers["sgd"](model.parameters())
    planned = TrajectoryRecorder(model, cross_entropy, optimizer, n_steps=10, **options)
    assert "GiB" in loop_of(loops, planned, model, optimizer)
    assert planned.n_steps == 0
    unplanned = TrajectoryRecorder(model, cross_entropy, optimizer, **options)
    loop_of(loops, unplanned, model, optimizer)
    assert 0 < unplanned.n_steps < 10


def test_weights_that_diverge_and_steps_after_the_last_are_refused(loops):
    model, (X, y) = loops.network(), loops.problem()
    recorder = TrajectoryRecorder(model, cross_entropy)
    recorder.step((X, y), range(40), lr=0.0)
    recorder.finish()
    with pytest.raises(InputError, match="is finished"):
        recorder.step((X, y), range(40), lr=0.0)
    with torch.no_grad():
        model[0].weight.fill_(torch.inf)
    with pytest.raises(InputError, match="not finite after 0 steps"):
        TrajectoryRecorder(model, cross_entropy).step((X, y), range(40), lr=0.1)
