"""CafCor in Flower gives what the trainer gives; what Flower loses, repeats or garbles is left out."""

from importlib import metadata
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

from aboveboard.core import InputError
from aboveboard.privacy import (
    CafCorClient,
    CafCorTrainer,
    PairwiseNoise,
    SoftmaxRegression,
    calibrate_federated_noise,
    simulated_seeds,
)

pytest.importorskip("flwr")
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from aboveboard.privacy import CafCorClientMod, CafCorStrategy, cafcor_client_app
from aboveboard.privacy.cafcor import _flower

N, ROUNDS, SEED = 4, 3, 5
DIMENSION = 65 * 10
NOISE = calibrate_federated_noise(20.0, 1e-3, n_clients=N, byzantine=1, batch_size=30, steps=ROUNDS)
WHOLE = calibrate_federated_noise(20.0, 1e-3, n_clients=N, byzantine=1, steps=ROUNDS, unit="client")


def examples_of(number):
    X, y = load_digits(return_X_y=True)
    return X[number::N] / 16, y[number::N]


def number_of(context):
    return int(context.node_config["partition-id"])


def client_of(context, noise=NOISE):
    number = number_of(context)
    shared = PairwiseNoise(number, simulated_seeds(N, SEED)[number], noise.sigma_cor)
    return CafCorClient(number, shared, noise, random_state=SEED)


def initial():
    return ArrayRecord({"table": Array(np.zeros((65, 10)))})


def context_of(number):
    return Context(
        run_id=1, node_id=100 + number, node_config={"partition-id": number}, state=RecordDict(), run_config={}
    )


def asked(round_number, arrays=None, node=100):
    content = RecordDict(
        {"arrays": arrays or initial(), "config": ConfigRecord({"cafcor-round": round_number, "server-round": 1})}
    )
    return Message(content=content, message_type=MessageType.TRAIN, dst_node_id=node)


def opened(noise=NOISE, **options):
    """A strategy in its first round, with Flower's choice of nodes left out."""
    strategy = CafCorStrategy(noise, **options)
    grid = SimpleNamespace(get_node_ids=lambda: [100 + number for number in range(N)])
    messages = list(strategy.configure_train(1, initial(), ConfigRecord(), grid))
    assert {message.metadata.dst_node_id for message in messages} == {100, 101, 102, 103}
    return strategy, messages[0].content["config"]["cafcor-round"]


def reply(node, client, round_number, vector, key="cafcor-update"):
    message = asked(round_number, node=node)
    content = RecordDict(
        {
            key: ArrayRecord({key: Array(vector)}),
            "metrics": MetricRecord({"cafcor-client": client, "cafcor-round": round_number}),
        }
    )
    return SimpleNamespace(
        content=content, metadata=SimpleNamespace(src_node_id=message.metadata.dst_node_id), has_error=lambda: False
    )


def test_flower_is_not_an_old_one_that_the_resolver_fell_back_to():
    assert tuple(map(int, metadata.version("flwr").split(".")[:2])) >= _flower._LEAST_VERSION


def test_an_old_flower_is_refused(monkeypatch):
    monkeypatch.setattr(_flower.metadata, "version", lambda name: "1.9.0")
    with pytest.raises(InputError, match=r"Flower 1\.9\.0 is installed\. Expected Flower 1\.42"):
        _flower._check_version()


def test_the_simulation_engine_gives_the_parameters_of_the_trainer(monkeypatch):
    pytest.importorskip("ray")
    from flwr.simulation import run_simulation

    for name in ("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "RAY_worker_niceness", "RAY_USAGE_STATS_ENABLED"):
        monkeypatch.setenv(name, "0")

    model = SoftmaxRegression(64, 10)
    trainer = CafCorTrainer(model, NOISE, random_state=SEED).fit([examples_of(number) for number in range(N)])
    found = {}
    server = ServerApp()

    @server.main()
    def main(grid, context):
        result = CafCorStrategy(NOISE).start(grid, initial(), num_rounds=ROUNDS, timeout=200)
        found["table"] = result.arrays["table"].numpy()
        found["counted"] = [metrics["counted"] for metrics in result.train_metrics_clientapp.values()]

    client = cafcor_client_app(model, lambda context: examples_of(number_of(context)), client_of)
    one_process = {"init_args": {"num_cpus": 1}, "client_resources": {"num_cpus": 1, "num_gpus": 0.0}}
    run_simulation(server, client, num_supernodes=N, backend_config=one_process)
    assert found["counted"] == [N] * ROUNDS
    np.testing.assert_allclose(found["table"].ravel(), trainer.parameters_, rtol=0, atol=1e-6)
    assert np.abs(trainer.parameters_).max() > 1e-3


def test_a_node_remembers_its_momentum_and_its_last_round():
    context = context_of(2)
    app = cafcor_client_app(SoftmaxRegression(64, 10), lambda context: examples_of(number_of(context)), client_of)
    first = app(asked(1), context)
    second = app(asked(2), context)
    assert first.content["metrics"]["cafcor-client"] == 2
    assert context.state["cafcor-state"]["answered"] == 2
    sent = second.content["cafcor-update"]["cafcor-update"].numpy()
    np.testing.assert_array_equal(context.state["cafcor-momentum"]["cafcor-momentum"].numpy(), sent)
    with pytest.raises(Exception, match="round 2 comes after round 2"):
        app(asked(2), context)


def test_lost_failed_repeated_and_garbled_replies_are_left_out():
    strategy, round_number = opened(learning_rate=1.0, weight_decay=0.0)
    ones = np.ones(DIMENSION)
    failed = SimpleNamespace(has_error=lambda: True)
    replies = [
        reply(100, 0, round_number, ones),
        reply(100, 0, round_number, 9 * ones),  # once more
        reply(101, 1, round_number, ones),
        reply(101, 2, round_number, 9 * ones),  # in another's name
        failed,
        reply(102, 2, round_number - 1, 9 * ones),  # from an earlier round
        reply(102, 2, round_number, ones[:-1]),
        reply(102, 2, round_number, ones, key="something-else"),
        reply(102, 2, round_number, np.full(DIMENSION, np.nan)),
        reply(102, 2, round_number, ones),
    ]
    arrays, metrics = strategy.aggregate_train(1, replies)
    np.testing.assert_allclose(arrays["table"].numpy(), -1.0, rtol=1e-15)
    assert dict(metrics) == {
        "failed": 1,
        "rejected": 6,
        "counted": 3,
        "norm": pytest.approx(np.sqrt(DIMENSION), rel=1e-12),
    }


def test_a_round_with_too_few_replies_leaves_the_model_as_it_was():
    strategy, round_number = opened()
    arrays, metrics = strategy.aggregate_train(1, [reply(100, 0, round_number, np.ones(DIMENSION))])
    assert arrays is None
    assert metrics["counted"] == 0


def test_a_message_that_still_waits_keeps_the_number_of_its_round():
    strategy = CafCorStrategy(NOISE)
    grid = SimpleNamespace(get_node_ids=lambda: [100 + number for number in range(N)])
    config = ConfigRecord()
    first = list(strategy.configure_train(1, initial(), config, grid))
    list(strategy.configure_train(2, initial(), config, grid))
    assert [message.content["config"]["cafcor-round"] for message in first] == [1] * N


def test_nodes_that_are_named_cannot_take_another_s_place():
    strategy, round_number = opened(nodes={100 + number: number for number in range(N)})
    replies = [reply(103, 0, round_number, np.ones(DIMENSION)), reply(999, 1, round_number, np.ones(DIMENSION))]
    _, metrics = strategy.aggregate_train(1, replies)
    assert metrics["rejected"] == 2


def test_the_modifier_hides_whole_updates_and_drops_the_metrics_of_the_app():
    app = ClientApp(mods=[CafCorClientMod(lambda context: client_of(context, WHOLE))])

    @app.train()
    def train(message, context):
        trained = ArrayRecord({"table": Array(np.full((65, 10), 3.0))})
        metrics = MetricRecord({"loss": 0.25, "num-examples": 7})
        return Message(content=RecordDict({"arrays": trained, "metrics": metrics}), reply_to=message)

    answer = app(asked(1), context_of(1))
    assert set(answer.content["metrics"]) == {"cafcor-client", "cafcor-round"}
    sent = answer.content["cafcor-update"]["cafcor-update"].numpy()
    shared = PairwiseNoise(1, simulated_seeds(N, SEED)[1], WHOLE.sigma_cor)
    clipped = np.full(DIMENSION, -1.0 / np.sqrt(DIMENSION))  # old minus new model, of norm 1
    expected = CafCorClient(1, shared, WHOLE, random_state=SEED).update_from_mean(clipped, round_number=1)
    np.testing.assert_allclose(sent, expected.vector, rtol=0, atol=1e-12)


def test_the_modifier_refuses_noise_for_single_examples():
    app = ClientApp(mods=[CafCorClientMod(client_of)])

    @app.train()
    def train(message, context):
        raise AssertionError

    with pytest.raises(Exception, match="protects single examples"):
        app(asked(1), context_of(1))
