"""Influences are what a plain loop of PyTorch, closed forms and differences say they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aboveboard.core import InputError
from aboveboard.explanation import DataValueEmbedding, TrajectoryRecorder, exact_tsloo

torch = pytest.importorskip("torch")

OPTIMIZERS = ["sgd", "decay", "momentum", "nesterov", "adam", "adamw"]
cross_entropy, mse_loss = torch.nn.functional.cross_entropy, torch.nn.functional.mse_loss


@pytest.fixture
def recorded(loops):
    """Return a function that trains a small network and records it."""

    def record(kind="sgd", clip=None, order=None, data=None, model=None, loss_fn=cross_entropy, **options):
        data = loops.problem() if data is None else data
        model = loops.network() if model is None else model
        options = {"weights": "every"} | options
        optimizer = loops.optimizers[kind](model.parameters())
        recorder = TrajectoryRecorder(model, loss_fn, optimizer, clip_norm=clip, **options)
        mean = options.get("reduction", "mean") == "mean"
        order = loops.batches() if order is None else order
        loops.train(model, data, order, optimizer, recorder=recorder, clip=clip, loss_fn=loss_fn, mean=mean)
        return recorder

    return record


def targets_of(loops, n=6):
    return loops.problem(n, seed=9)


# --- closed forms --------------------------------------------------------------------------------------------------


def squares(seed=0, n=30, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X @ rng.normal(size=d) + rng.normal(size=n), [rng.permutation(n)[:6] for _ in range(12)]


def fitted_by_hand(X, y, order, lr, without=None):
    """Gradient steps on mean squares from 0, one example left out of one step."""
    theta = np.zeros(X.shape[1])
    for step, batch in enumerate(order):
        kept = [i for i in batch if (step, i) != without]
        theta = theta - lr / len(batch) * 2 * X[kept].T @ (X[kept] @ theta - y[kept])
    return theta


def linear_recorder(X, y, order, lr, **options):
    model = torch.nn.Linear(X.shape[1], 1, bias=False).double()
    torch.nn.init.zeros_(model.weight)
    tensors = torch.as_tensor(X), torch.as_tensor(y)[:, None]
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    with TrajectoryRecorder(model, mse_loss, optimizer, **options) as recorder:
        for batch in order:
            recorder.step((tensors[0][batch], tensors[1][batch]), batch)
            optimizer.zero_grad()
            mse_loss(model(tensors[0][batch]), tensors[1][batch]).backward()
            optimizer.step()
    return recorder


@pytest.mark.parametrize("curvature", ["exact", "ggn"])
def test_for_least_squares_the_embedding_is_the_change_of_the_weights(curvature):
    X, y, order = squares()
    values = DataValueEmbedding(curvature).embed(linear_recorder(X, y, order, 0.05, weights=5))
    base = fitted_by_hand(X, y, order, 0.05)
    for row in values.columns().itertuples():
        change = fitted_by_hand(X, y, order, 0.05, without=(row.step, row.index)) - base
        assert np.allclose(values.embeddings_.E[row.Index], change, atol=1e-12)


def test_the_fisher_recursion_is_the_product_of_its_factors():
    X, y, order = squares()
    values = DataValueEmbedding("fisher").embed(linear_recorder(X, y, order, 0.02))
    theta, gradients = np.zeros(3), []
    for batch in order:
        gradients.append(2 * (X[batch] @ theta - y[batch])[:, None] * X[batch])
        theta = theta - 0.02 * gradients[-1].mean(axis=0)
    product = np.eye(3)
    for step in reversed(range(len(order))):
        rows = values.embeddings_.E[values.embeddings_.step == step]
        assert np.allclose(rows, 0.02 / 6 * gradients[step] @ product.T, atol=1e-15)
        product = product @ (np.eye(3) - 0.02 / 6 * gradients[step].T @ gradients[step])


def test_one_step_moves_by_learning_rate_times_gradient():
    X, y, order = squares()
    values = DataValueEmbedding("fisher").embed(linear_recorder(X, y, order[:1], 0.05))
    assert np.allclose(values.embeddings_.E, 0.05 / 6 * -2 * y[order[0]][:, None] * X[order[0]])


def test_the_curvature_of_a_linear_model_is_its_gauss_newton_matrix(loops, recorded):
    recorder = recorded(model=torch.nn.Linear(4, 3).double())
    exact, ggn = (DataValueEmbedding(c, propagation="adjoint").embed(recorder) for c in ("exact", "ggn"))
    assert np.allclose(exact.influence(targets_of(loops)), ggn.influence(targets_of(loops)), atol=1e-14)


# --- derivatives and retraining ------------------------------------------------------------------------------------


@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_exact_influence_is_the_derivative_by_the_weight_of_the_example(loops, recorded, kind, clip):
    recorder = recorded(kind, clip, weights=3)
    values = DataValueEmbedding("exact", propagation="adjoint").embed(recorder)
    found, order, targets = values.influence(targets_of(loops)), loops.batches(), targets_of(loops)
    for step, place in ((0, 2), (4, 0), (len(order) - 1, 5)):
        ends = []
        for weight in (1 + 1e-4, 1 - 1e-4):
            model = loops.network()
            optimizer = loops.optimizers[kind](model.parameters())
            loops.train(model, loops.problem(), order, optimizer, weights={(step, place): weight}, clip=clip)
            ends.append(loops.losses(model, targets))
        expected = (ends[1] - ends[0]) / 2e-4
        column = np.flatnonzero((values.columns()["step"] == step).to_numpy())[place]
        assert np.allclose(found[:, column], expected, rtol=1e-4, atol=1e-8)


@pytest.mark.parametrize("clip", [None, 0.2])
@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_the_truth_is_that_of_a_plain_loop_without_the_example(loops, recorded, kind, clip):
    recorder, order, targets = recorded(kind, clip, weights=4), loops.batches(), targets_of(loops)
    base = loops.losses(recorder._trajectory.losses.model, targets)
    removals = [(6, int(order[6][1])), (0, int(order[0][3])), (9, int(order[9][0]))]
    found = exact_tsloo(recorder, removals, targets)
    for number, (step, index) in enumerate(removals):
        model = loops.network()
        place = order[step].tolist().index(index)
        optimizer = loops.optimizers[kind](model.parameters())
        loops.train(model, loops.problem(), order, optimizer, weights={(step, place): 0.0}, clip=clip)
        assert np.allclose(found[:, number], loops.losses(model, targets) - base, atol=1e-12)


def test_without_a_step_the_example_is_left_out_of_all(loops, recorded):
    order = [torch.arange(8), torch.arange(8, 16), torch.arange(8)]
    recorder, targets = recorded(order=order, weights=2), targets_of(loops)
    base = loops.losses(recorder._trajectory.losses.model, targets)
    model = loops.network()
    gone = {(0, 3): 0.0, (2, 3): 0.0}
    loops.train(model, loops.problem(), order, loops.optimizers["sgd"](model.parameters()), weights=gone)
    assert np.allclose(exact_tsloo(recorder, [(None, 3)], targets)[:, 0], loops.losses(model, targets) - base)


def test_halving_one_learning_rate_quarters_the_error(loops):
    """Removal at that step is then half as large, and what the first order leaves out a quarter."""
    order, targets, step = loops.batches(), targets_of(loops), 4
    errors = []
    for lr in (0.04, 0.02):
        model, lrs = loops.network(), [0.1] * len(order)
        lrs[step] = lr
        optimizer = loops.optimizers["sgd"](model.parameters())
        recorder = TrajectoryRecorder(model, cross_entropy, optimizer, weights="every")
        loops.train(model, loops.problem(), order, optimizer, recorder=recorder, lrs=lrs)
        values = DataValueEmbedding("exact", propagation="adjoint").embed(recorder)
        rows = values.columns()["step"].to_numpy() == step
        true = exact_tsloo(recorder, [(step, int(i)) for i in order[step]], targets)
        errors.append(np.abs(true - values.influence(targets)[:, rows]).sum())
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.2)


def test_a_whole_batch_left_out_is_the_sum_of_its_examples_to_first_order(loops, recorded):
    order, targets = loops.batches(), targets_of(loops)
    values = DataValueEmbedding("exact").embed(recorded(order=order))
    predicted = values.influence(targets)[:, values.columns()["step"].to_numpy() == 9].sum(axis=1)
    model = loops.network()
    weights = {(9, place): 1 - 1e-4 for place in range(8)}
    loops.train(model, loops.problem(), order, loops.optimizers["sgd"](model.parameters()), weights=weights)
    base = loops.losses(values.recorder_._trajectory.losses.model, targets)
    assert np.allclose((loops.losses(model, targets) - base) / 1e-4, predicted, rtol=1e-3, atol=1e-7)


def test_attention_can_be_differentiated_twice(loops):
    class Reader(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(7, 4)
            self.attention = torch.nn.MultiheadAttention(4, 2, batch_first=True)
            self.norm, self.head = torch.nn.LayerNorm(4), torch.nn.Linear(4, 2)

        def forward(self, tokens):
            words = self.words(tokens)
            return self.head(self.norm(words + self.attention(words, words, words)[0]).mean(dim=1))

    def reader():
        torch.manual_seed(0)
        return Reader().double()

    rng = np.random.default_rng(0)
    data = torch.as_tensor(rng.integers(0, 7, (12, 5))), torch.as_tensor(rng.integers(0, 2, 12))
    order = [torch.arange(0, 6), torch.arange(6, 12), torch.arange(3, 9)]
    model = reader()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer, weights="every")
    loops.train(model, data, order, optimizer, recorder=recorder)
    ends = []
    for weight in (1 + 1e-4, 1 - 1e-4):
        other = reader()
        loops.train(other, data, order, torch.optim.SGD(other.parameters(), lr=0.2), weights={(0, 1): weight})
        ends.append(loops.losses(other, data))
    exact = DataValueEmbedding("exact", propagation="adjoint").embed(recorder).influence(data)
    assert np.allclose(exact[:, 1], (ends[1] - ends[0]) / 2e-4, rtol=1e-4, atol=1e-8)
    ggn = DataValueEmbedding("ggn", propagation="adjoint").embed(recorder).influence(data)
    assert np.corrcoef(ggn.ravel(), exact.ravel())[0, 1] > 0.9


# --- the ways to one answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("curvature", ["fisher", "ggn", "exact", "none"])
@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_both_propagations_agree(loops, recorded, curvature, kind):
    recorder, targets = recorded(kind, 0.5), targets_of(loops)
    found = [
        DataValueEmbedding(curvature, propagation=way, damping=0.01).embed(recorder).influence(targets)
        for way in ("embedding", "adjoint")
    ]
    assert np.abs(found[0]).max() > 1e-4
    assert np.allclose(*found, rtol=1e-9, atol=1e-13)


@settings(max_examples=10)
@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 10_000))
def test_both_propagations_agree_for_every_size(size, steps, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(8, 2)), rng.normal(size=8)
    order = [rng.choice(8, size) for _ in range(steps)]
    recorder = linear_recorder(X, y, order, 0.1)
    targets = torch.as_tensor(X), torch.as_tensor(y)[:, None]
    embedded, adjoint = (DataValueEmbedding(propagation=way).embed(recorder) for way in ("embedding", "adjoint"))
    assert np.allclose(embedded.influence(targets), adjoint.influence(targets), rtol=1e-9, atol=1e-14)
    assert adjoint.influence(targets, per="example").sum() == pytest.approx(adjoint.influence(targets).sum())


@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_segments_put_together_are_the_whole(recorded, kind):
    recorder = recorded(kind)
    whole, segments = (DataValueEmbedding(n_jobs=n).embed(recorder).embeddings_.E for n in (None, 3))
    assert np.allclose(whole, segments, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("kind", ["momentum", "adamw"])
def test_replayed_weights_and_gradients_are_those_that_were_not_kept(loops, recorded, kind):
    kept = DataValueEmbedding("exact").embed(recorded(kind, weights="every")).embeddings_.E
    replayed = DataValueEmbedding("exact").embed(recorded(kind, weights=4, gradients=False)).embeddings_.E
    assert np.allclose(kept, replayed, rtol=1e-9, atol=1e-15)


def test_sums_and_means_of_losses_agree(loops, recorded):
    order = loops.batches(n=40, size=8)
    loops.optimizers["sum"] = lambda p: torch.optim.SGD(p, lr=0.1 / 8)
    mean, summed = recorded(order=order), recorded("sum", order=order, reduction="sum")
    found = [DataValueEmbedding("exact").embed(recorder).influence(targets_of(loops)) for recorder in (mean, summed)]
    assert np.allclose(*found, rtol=1e-9, atol=1e-14)


def test_a_batch_in_another_order_has_its_rows_in_that_order_and_equal_examples_have_equal_ones(loops, recorded):
    first, swap = loops.batches(), torch.tensor([3, 0, 1, 2, 5, 4, 7, 6])
    data = loops.problem()
    for part in data:
        part[first[0][6]] = part[first[0][2]]
    found = [
        DataValueEmbedding().embed(recorded(order=order, data=data)).embeddings_.E[:8]
        for order in (first, [first[0][swap], *first[1:]])
    ]
    assert np.allclose(found[0][swap.numpy()], found[1], atol=1e-14)
    assert np.allclose(found[0][6], found[0][2], atol=1e-15)


def test_a_step_of_length_zero_leaves_no_trace(loops):
    model, order = loops.network(), loops.batches()
    optimizer = loops.optimizers["sgd"](model.parameters())
    recorder = TrajectoryRecorder(model, cross_entropy, optimizer)
    loops.train(model, loops.problem(), order, optimizer, recorder=recorder, lrs=[0.1, 0.0, *[0.1] * 8])
    embeddings = DataValueEmbedding().embed(recorder).embeddings_
    assert not embeddings.E[embeddings.step == 1].any()
    assert embeddings.E[embeddings.step == 2].any()


def test_some_layers_are_followed_as_if_the_others_stood_still(loops, recorded):
    """With the first layer frozen in the loop as well, following the last alone is exact."""
    model, targets = loops.network(), targets_of(loops)
    model[0].requires_grad_(False)
    optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
    frozen = TrajectoryRecorder(model, cross_entropy, optimizer, weights="every")
    loops.train(model, loops.problem(), loops.batches(), optimizer, recorder=frozen)
    assert frozen.followed == 1

    whole = recorded(layers=["2"], weights=3)
    assert whole.followed == 18 / 43
    values = DataValueEmbedding("exact").embed(whole)
    assert values.embeddings_.E.shape == (80, 18)
    assert np.corrcoef(values.influence(targets).ravel(), exact_of(recorded(), targets).ravel())[0, 1] > 0.9
    found = DataValueEmbedding("exact").embed(frozen)
    assert found.compare_with_retrain(targets, 10).pearson > 0.999


def exact_of(recorder, targets):
    return DataValueEmbedding("exact").embed(recorder).influence(targets)


# --- what is returned ----------------------------------------------------------------------------------------------


def test_columns_tell_steps_examples_and_epochs_and_sums_agree(loops, recorded):
    values = DataValueEmbedding().embed(recorded())
    targets, order = targets_of(loops), torch.cat(loops.batches()).numpy()
    by_step, by_example, by_epoch = (values.influence(targets, per=per) for per in ("step", "example", "epoch"))
    assert np.array_equal(values.columns()["index"], order)
    assert values.columns("example")["index"].tolist() == list(range(40))
    assert values.columns("epoch")["epoch"].tolist() == [0] * 40 + [1] * 40
    for index in (0, 17):
        assert np.allclose(by_example[:, index], by_step[:, order == index].sum(axis=1))
        assert np.allclose(by_example[:, index], by_epoch[:, index] + by_epoch[:, 40 + index])
    phases = values.phases(targets)
    assert phases["step"].tolist() == list(range(10))
    assert phases["mean_abs"].iloc[3] == pytest.approx(np.abs(by_step[:, 24:32]).mean())
    assert phases["mean"].iloc[3] == pytest.approx(by_step[:, 24:32].mean())


def test_fit_trains_as_a_plain_loop_does_and_knows_the_examples_of_a_loader_that_shuffles(loops):
    data, targets = loops.problem(), targets_of(loops)
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(*data), 8, shuffle=True, generator=torch.Generator().manual_seed(3)
    )
    model = loops.network()
    optimizer = loops.optimizers["momentum"](model.parameters())
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.5)
    values = DataValueEmbedding("exact", random_state=0)
    values.fit(model, cross_entropy, loader, optimizer, 2, scheduler=schedule, clip_norm=0.5)
    order = values.columns().groupby("step")["index"].apply(lambda part: torch.tensor(part.to_list())).tolist()
    assert sorted(torch.cat(order[:5]).tolist()) == list(range(40))
    again = loops.network()
    lrs = [0.03 * 0.5 ** (step // 4) for step in range(10)]
    loops.train(again, data, order, loops.optimizers["momentum"](again.parameters()), lrs=lrs, clip=0.5)
    assert np.allclose(loops.losses(model, targets), loops.losses(again, targets))
    found = values.compare_with_retrain(targets, 12)
    assert found.true.shape == found.predicted.shape == (6, 12)
    assert found.pearson > 0.9


def test_a_loop_in_single_precision_gives_nearly_the_same(loops, recorded):
    X, y = loops.problem()
    targets = targets_of(loops)
    model = loops.network().float()
    single = recorded(data=(X.float(), y), model=model)
    found = DataValueEmbedding("exact").embed(single).influence((targets[0].float(), targets[1]))
    assert np.allclose(found, exact_of(recorded(), targets), rtol=1e-3, atol=1e-6)


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"curvature": "hessian"}, "curvature is 'hessian'"),
        ({"propagation": "forward"}, "propagation is 'forward'"),
        ({"damping": -1.0}, "damping is -1.0"),
        ({"damping": float("nan")}, "damping is nan"),
    ],
)
def test_options_out_of_range_are_refused(recorded, options, told):
    with pytest.raises(InputError, match=told):
        DataValueEmbedding(**options).embed(recorded())


def test_a_recording_that_lacks_what_is_needed_is_refused(loops, recorded):
    bare = recorded(weights="none")
    with pytest.raises(InputError, match="needs the weights"):
        DataValueEmbedding("exact").embed(bare)
    with pytest.raises(InputError, match="no weights were kept"):
        exact_tsloo(bare, [(0, 0)], targets_of(loops))
    with pytest.raises(InputError, match="projected recording"):
        DataValueEmbedding("ggn").embed(recorded(projection=(2, 2)))
    with pytest.raises(InputError, match="n_jobs=2 needs gradients"):
        DataValueEmbedding("exact", n_jobs=2).embed(recorded())
    unfinished = TrajectoryRecorder(loops.network(), cross_entropy)
    with pytest.raises(InputError, match="not finished"):
        DataValueEmbedding().embed(unfinished)
    with pytest.raises(TypeError, match="TrajectoryRecorder"):
        DataValueEmbedding().embed(None)
    with pytest.raises(InputError, match="nothing has been embedded"):
        DataValueEmbedding().influence(targets_of(loops))


def test_a_matrix_that_does_not_fit_is_refused_and_the_adjoint_is_not(loops, recorded):
    recorder = recorded(weights="none", max_gib=5e-5)
    with pytest.raises(InputError, match="adjoint"):
        DataValueEmbedding().embed(recorder)
    assert DataValueEmbedding(propagation="adjoint").embed(recorder).influence(targets_of(loops)).shape == (6, 80)


def test_what_is_asked_must_exist(loops, recorded):
    recorder, targets = recorded(), targets_of(loops)
    values = DataValueEmbedding().embed(recorder)
    with pytest.raises(InputError, match="per is 'row'"):
        values.influence(targets, per="row")
    with pytest.raises(InputError, match="n_rows is 2"):
        values.compare_with_retrain(targets, 2)
    with pytest.raises(InputError, match="step 10 was not recorded"):
        exact_tsloo(recorder, [(10, 0)], targets)
    with pytest.raises(InputError, match="example 40 was not in any step"):
        exact_tsloo(recorder, [(None, 40)], targets)
    with pytest.raises(InputError, match=r"sorted|rows"):
        values.influence((targets[0], targets[1][:2]))
    with pytest.raises(InputError, match="epochs is 0"):
        DataValueEmbedding().fit(None, cross_entropy, None, None, 0)
    with pytest.raises(InputError, match="which examples are in a batch"):
        DataValueEmbedding().fit(None, cross_entropy, iter([]), None, 1)


def test_an_unstable_training_is_told_with_its_step():
    X, y, order = squares(d=1)
    targets = torch.as_tensor(X), torch.as_tensor(y)[:, None]
    curvature = [2 * float(np.mean(X[batch] ** 2)) for batch in order]
    lr = 2.2 / max(curvature)
    with pytest.warns(UserWarning, match=f"reaches 2.2 at step {int(np.argmax(curvature))}"):
        values = DataValueEmbedding("exact").embed(linear_recorder(X, y, order, lr, weights="every"))
    assert values.sharpness_ == pytest.approx({k: lr * value for k, value in enumerate(curvature)})
    recorder = linear_recorder(X, y, order * 40, 2.2 / min(curvature), weights="every")
    with pytest.raises(InputError, match="overflows at step"):
        DataValueEmbedding("exact", propagation="adjoint", damping=1e6).embed(recorder).influence(targets)
