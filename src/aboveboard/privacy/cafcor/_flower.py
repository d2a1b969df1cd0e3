"""CafCor in Flower: a client app, a modifier for other client apps, and a strategy. Importing this needs Flower."""

from collections.abc import Callable, Iterable, Mapping
from importlib import metadata
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core import InputError, require
from aboveboard.privacy.cafcor._accountant import FederatedNoise
from aboveboard.privacy.cafcor._objectives import objective_of
from aboveboard.privacy.cafcor._protocol import CafCorClient, CafCorServer, ClientState, Rejected, Update
from aboveboard.privacy.cafcor._trainer import draw_batch, step

__all__ = ["CafCorClientMod", "CafCorStrategy", "cafcor_client_app"]

Floats = NDArray[np.float64]

_LEAST_VERSION: Final = (1, 42)


def _check_version() -> None:
    """Refuse an old Flower, which pip installs without a word where another package caps what the new one needs."""
    try:
        found = metadata.version("flwr")
    except metadata.PackageNotFoundError:
        return  # the import says so
    if tuple(map(int, found.split(".")[:2])) < _LEAST_VERSION:
        raise InputError(
            f"Flower {found} is installed",
            expected="Flower {}.{} or newer".format(*_LEAST_VERSION),
            remedy="Give it an environment of its own: pip install 'aboveboard[federated]'",
        )


_check_version()
_app: Any = require("flwr.app", extra="federated", feature="CafCorStrategy")
_clientapp: Any = require("flwr.clientapp", extra="federated", feature="CafCorStrategy")
_strategy: Any = require("flwr.serverapp.strategy", extra="federated", feature="CafCorStrategy")

_UPDATE: Final = "cafcor-update"
_ROUND: Final = "cafcor-round"
_CLIENT: Final = "cafcor-client"
_MOMENTUM: Final = "cafcor-momentum"
_STATE: Final = "cafcor-state"


class CafCorStrategy(_strategy.FedAvg):  # type: ignore[misc]
    """The server's part of CafCor, as a strategy of Flower.

    Parameters
    ----------
    noise : FederatedNoise
        That the clients add. All `noise.n_clients` clients take part in every round; training waits for them.
    learning_rate : float or callable, default 0.5
        Or a function of the round's number. 1 for clients that send whole updates (`CafCorClientMod`).
    weight_decay : float, default 1e-4
    aggregator : str or callable, default "caf"
        As for `CafCorServer`.
    nodes : mapping of int to int, optional
        From Flower's node ids to numbers of clients. Without it, the first node that claims a number keeps it; where
        clients may lie about who they are, say who is who.
    **options
        As for Flower's ``FedAvg``: ``fraction_evaluate``, ``arrayrecord_key`` and others. Default: no evaluation by
        clients.

    Raises
    ------
    aboveboard.core.MissingExtra
        Without Flower (extra ``federated``).
    InputError
        With a Flower older than 1.42.

    Notes
    -----
    A reply that is lost, failed, late, repeated or malformed is left out of its round, and counted in the metrics.
    """

    def __init__(
        self,
        noise: FederatedNoise,
        *,
        learning_rate: float | Callable[[int], float] = 0.5,
        weight_decay: float = 1e-4,
        aggregator: str | Callable[[Floats, int], Any] = "caf",
        nodes: Mapping[int, int] | None = None,
        **options: Any,
    ) -> None:
        n = noise.n_clients
        super().__init__(
            **{"fraction_evaluate": 0.0} | options, fraction_train=1.0, min_train_nodes=n, min_available_nodes=n
        )
        self._noise, self._rate, self._decay, self._aggregator = noise, learning_rate, weight_decay, aggregator
        self._client_of = dict(nodes or {})
        self._names_are_given = nodes is not None
        self._server: CafCorServer | None = None
        self._arrays: Any = None

    def configure_train(self, server_round: int, arrays: Any, config: Any, grid: Any) -> Iterable[Any]:
        """Send the model and the number of the round to all clients."""
        self._arrays = arrays
        if self._server is None:
            self._server = CafCorServer(
                self._noise.n_clients,
                dimension=len(_flat(arrays)),
                byzantine=self._noise.byzantine,
                aggregator=self._aggregator,
            )
        # a copy: a message that still waits must not take on the number of a later round
        numbered = _app.ConfigRecord(dict(config) | {_ROUND: self._server.open_round()})
        messages: Iterable[Any] = super().configure_train(server_round, arrays, numbered, grid)
        return messages

    def aggregate_train(self, server_round: int, replies: Iterable[Any]) -> tuple[Any, Any]:
        """Move the model along the aggregate of the updates that are sound."""
        assert self._server is not None
        failed = rejected = 0
        for reply in replies:
            if reply.has_error():
                failed += 1
                continue
            try:
                self._server.receive(self._update(reply))
            except Rejected:
                rejected += 1
        counts = {"failed": failed, "rejected": rejected}
        try:
            aggregate = self._server.close_round()
        except InputError:
            return None, _app.MetricRecord(counts | {"counted": 0})
        rate = self._rate(server_round) if callable(self._rate) else self._rate
        moved = step(_flat(self._arrays), aggregate.vector, rate, self._decay)
        counted = {"counted": len(aggregate.present), "norm": float(np.linalg.norm(aggregate.vector))}
        return _like(moved, self._arrays), _app.MetricRecord(counts | counted)

    def _update(self, reply: Any) -> Update:
        try:
            metrics = next(iter(reply.content.metric_records.values()))
            client, round_number = metrics[_CLIENT], metrics[_ROUND]
            vector = reply.content.array_records[_UPDATE][_UPDATE].numpy()
        except Exception as error:  # whatever a liar makes of it
            raise Rejected("the reply holds no update", expected="what cafcor_client_app sends") from error
        node = reply.metadata.src_node_id
        known = self._client_of.get(node)
        if known is None and not self._names_are_given and client not in self._client_of.values():
            known = self._client_of[node] = client
        if known is None or known != client:
            raise Rejected(f"node {node} calls itself client {client!r}", expected="its own number")
        return Update(client, round_number, vector)


def cafcor_client_app(
    model: Any, examples: Callable[[Any], tuple[Any, Any]], client_of: Callable[[Any], CafCorClient]
) -> Any:
    """Return a client app of Flower that does what `CafCorTrainer` does for one client.

    Parameters
    ----------
    model : SoftmaxRegression, torch.nn.Module or Objective
    examples : callable
        From Flower's ``Context`` of a node to its features and labels.
    client_of : callable
        From the ``Context`` to a new `CafCorClient`, with the number, the seeds and the noise of the node. What it must
        remember is kept in the context.

    Returns
    -------
    flwr.clientapp.ClientApp

    Raises
    ------
    aboveboard.core.MissingExtra
        Without Flower (extra ``federated``).
    """
    app = _clientapp.ClientApp()

    @app.train()  # type: ignore[untyped-decorator]
    def train(message: Any, context: Any) -> Any:
        objective = objective_of(model)
        client = _restored(client_of(context), context)
        X, y = objective.check(*examples(context))
        config = next(iter(message.content.config_records.values()))
        arrays = next(iter(message.content.array_records.values()))
        rows = draw_batch(len(y), client.noise, client.client, config[_ROUND], client.random_state)
        total = objective.clipped_sum(_flat(arrays), X[rows], y[rows], client.noise.clip)
        update = client.update_from_mean(total / client.noise.batch_size, round_number=config[_ROUND])
        return _reply(update, client, message, context)

    return app


class CafCorClientMod:
    """A modifier for client apps of Flower that train by themselves: it hides their whole update.

    Parameters
    ----------
    client_of : callable
        From Flower's ``Context`` of a node to a new `CafCorClient` whose noise has ``unit="client"``.

    Notes
    -----
    The app may train as it likes and return a model. Old minus new model is shortened to the norm `noise.clip`, and
    hidden; metrics of the app are dropped, since they would tell of the data. All data of a client are protected.

    Examples
    --------
    ``app = flwr.clientapp.ClientApp(mods=[CafCorClientMod(client_of)])``
    """

    def __init__(self, client_of: Callable[[Any], CafCorClient]) -> None:
        self._client_of = client_of

    def __call__(self, message: Any, context: Any, call_next: Callable[[Any, Any], Any]) -> Any:
        """Let the app train, and hide what it returns."""
        if message.metadata.message_type != _app.MessageType.TRAIN:
            return call_next(message, context)
        client = _restored(self._client_of(context), context)
        if client.noise.unit != "client":
            raise InputError("the noise protects single examples", expected="noise with unit 'client'")
        config = next(iter(message.content.config_records.values()))
        round_number = config[_ROUND]
        before = _flat(next(iter(message.content.array_records.values())))
        reply = call_next(message, context)
        if reply.has_error():
            return reply
        after = _flat(next(iter(reply.content.array_records.values())))
        update = client.update((before - after)[None], round_number=round_number)
        return _reply(update, client, message, context)


def _restored(client: CafCorClient, context: Any) -> CafCorClient:
    """Return the client as it was after the last round that the node answered."""
    if _STATE in context.state:
        told = context.state[_STATE]
        momentum = context.state[_MOMENTUM][_MOMENTUM].numpy()
        client.state = ClientState(told["last-round"], told["answered"], momentum)
    return client


def _reply(update: Update, client: CafCorClient, message: Any, context: Any) -> Any:
    state = client.state
    context.state[_STATE] = _app.ConfigRecord({"last-round": state.last_round, "answered": state.answered})
    context.state[_MOMENTUM] = _app.ArrayRecord({_MOMENTUM: _app.Array(state.momentum)})
    content = _app.RecordDict(
        {
            _UPDATE: _app.ArrayRecord({_UPDATE: _app.Array(update.vector)}),
            "metrics": _app.MetricRecord({_CLIENT: update.client, _ROUND: update.round_number}),
        }
    )
    return _app.Message(content=content, reply_to=message)


def _flat(arrays: Any) -> Floats:
    return np.concatenate([np.asarray(array, dtype=np.float64).ravel() for array in arrays.to_numpy_ndarrays()])


def _like(flat: Floats, arrays: Any) -> Any:
    """Return the numbers as arrays with the names, shapes and types of others."""
    named, start = {}, 0
    for name, array in arrays.items():
        old = array.numpy()
        named[name] = _app.Array(flat[start : start + old.size].reshape(old.shape).astype(old.dtype))
        start += old.size
    return _app.ArrayRecord(named)
