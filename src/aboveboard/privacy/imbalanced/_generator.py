"""The generator of GEM: a network from fixed random inputs to a distribution of each column, fitted to noisy tables."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from aboveboard.core.extras import require
from aboveboard.privacy.imbalanced._marginals import Query

torch: Any = require("torch", extra="torch", feature="GEMSynthesizer")

__all__ = ["Generator"]

_INPUTS: Final = 16
_HIDDEN: Final = 256

Floats = NDArray[np.float64]


class Generator:
    """A mixture of `batch_size` product distributions over the columns.

    Distributions are padded to the largest number of codes, `width`; the label is the last column.
    """

    def __init__(self, sizes: tuple[int, ...], *, batch_size: int, learning_rate: float, seed: int) -> None:
        self._sizes = sizes
        self._width = max(sizes)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._inputs = torch.randn(batch_size, _INPUTS)
            self._network = torch.nn.Sequential(
                torch.nn.Linear(_INPUTS, _HIDDEN),
                torch.nn.ReLU(),
                torch.nn.Linear(_HIDDEN, _HIDDEN),
                torch.nn.ReLU(),
                torch.nn.Linear(_HIDDEN, len(sizes) * self._width),
            )
        present = torch.arange(self._width) < torch.tensor(sizes)[:, None]
        self._padding = torch.where(present, 0.0, -torch.inf)
        self._optimizer = torch.optim.Adam(self._network.parameters(), lr=learning_rate)
        self._pairs: tuple[list[int], list[int]] = ([], [])
        self._triples: tuple[list[int], list[int]] = ([], [])
        self._pair_targets: list[Any] = []
        self._triple_targets: list[Any] = []

    def add(self, query: Query, shares: Floats) -> None:
        """Remember a noisy table, whose cells are shares of all rows."""
        target = torch.zeros([self._width] * 2 + ([2] if len(query) == 3 else []))
        target[tuple(slice(size) for size in shares.shape)] = torch.as_tensor(shares, dtype=torch.float32)
        places, targets = (
            (self._triples, self._triple_targets) if len(query) == 3 else (self._pairs, self._pair_targets)
        )
        places[0].append(query[0])
        places[1].append(query[1])
        targets.append(target)

    def fit(self, steps: int) -> None:
        """Take steps of Adam on the squared error of all tables, the likelihood of Gaussian noise."""
        pair_targets = torch.stack(self._pair_targets) if self._pair_targets else None
        triple_targets = torch.stack(self._triple_targets) if self._triple_targets else None
        for _ in range(steps):
            columns = self._columns()
            loss = columns.new_zeros(())
            if pair_targets is not None:
                loss = loss + (self._pair_answers(columns) - pair_targets).square().sum()
            if triple_targets is not None:
                loss = loss + (self._triple_answers(columns) - triple_targets).square().sum()
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    def errors(self, queries: list[Query], tables: list[Floats], n: int) -> Floats:
        """Return the L1 error of each table, in counts."""
        with torch.no_grad():
            columns = self._columns()
            flat = columns.permute(1, 2, 0).reshape(-1, len(columns))
            label = columns[:, -1, :2]
            shape = (len(self._sizes), self._width, len(self._sizes), self._width)
            by_label = [((flat * label[:, c]) @ flat.T / len(columns)).reshape(shape).numpy() for c in (0, 1)]
        errors = []
        for query, table in zip(queries, tables, strict=True):
            j, k = query[:2]
            rows, width = self._sizes[j], self._sizes[k]
            answers = [part[j, :rows, k, :width] for part in by_label]
            answer = np.stack(answers, axis=-1) if len(query) == 3 else answers[0] + answers[1]
            errors.append(np.abs(n * answer - table).sum())
        return np.array(errors)

    def mixture(self) -> Floats:
        """Return the distributions, shape (batch_size, n_columns, width)."""
        with torch.no_grad():
            columns = self._columns().double().numpy()
        mixture: Floats = columns / columns.sum(axis=2, keepdims=True)
        return mixture

    def _columns(self) -> Any:
        logits = self._network(self._inputs).reshape(len(self._inputs), len(self._sizes), self._width)
        return torch.softmax(logits + self._padding, dim=2)

    def _pair_answers(self, columns: Any) -> Any:
        first, second = (columns[:, places] for places in self._pairs)
        return first.permute(1, 2, 0) @ second.transpose(0, 1) / len(columns)

    def _triple_answers(self, columns: Any) -> Any:
        first, second = (columns[:, places] for places in self._triples)
        with_label = second.transpose(0, 1)[..., None] * columns[None, :, -1, None, :2]
        answers = first.permute(1, 2, 0) @ with_label.flatten(2) / len(columns)
        return answers.unflatten(2, (self._width, 2))
