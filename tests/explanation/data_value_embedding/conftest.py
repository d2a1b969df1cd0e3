"""A training loop in plain PyTorch, which knows nothing of recorders: the outside truth of these tests."""

from types import SimpleNamespace

import pytest


@pytest.fixture
def loops():
    """Return builders of small problems, and loops that train on them."""
    torch = pytest.importorskip("torch")
    cross_entropy = torch.nn.functional.cross_entropy

    def problem(n=40, d=4, classes=3, seed=0):
        generator = torch.Generator().manual_seed(seed)
        X = torch.randn(n, d, generator=generator, dtype=torch.float64)
        y = torch.randint(0, classes, (n,), generator=generator)
        return X, y

    def network(d=4, hidden=5, classes=3, seed=0):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Linear(d, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, classes)
        ).double()

    def batches(n=40, size=8, epochs=2, seed=0):
        generator = torch.Generator().manual_seed(seed)
        return [part for _ in range(epochs) for part in torch.randperm(n, generator=generator).split(size)]

    def train(
        model, data, order, optimizer, *, recorder=None, loss_fn=cross_entropy, weights=None, clip=None, lrs=None,
        mean=True,
    ):  # fmt: skip
        """Train; `weights` maps (step, place in the batch) to what that example's loss counts, 1 where it has none."""
        X, y = data
        for step, indices in enumerate(order):
            if lrs is not None:
                optimizer.param_groups[0]["lr"] = lrs[step]
            if recorder is not None:
                recorder.step((X[indices], y[indices]), indices)
            optimizer.zero_grad()
            losses = loss_fn(model(X[indices]), y[indices], reduction="none").reshape(len(indices), -1).mean(dim=1)
            counts = torch.ones(len(indices), dtype=losses.dtype)
            for (where, place), weight in (weights or {}).items():
                if where in (step, None):
                    counts[place] = weight
            ((losses @ counts) / (len(indices) if mean else 1)).backward()
            if clip is not None:
                torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        if recorder is not None:
            recorder.finish()
        return model

    def losses(model, targets, loss_fn=cross_entropy):
        with torch.no_grad():
            found = loss_fn(model(targets[0]), targets[1], reduction="none")
        return found.reshape(len(targets[1]), -1).mean(dim=1).numpy()

    optimizers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=0.1),
        "decay": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.05),
        "momentum": lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.9, weight_decay=0.02),
        "nesterov": lambda p: torch.optim.SGD(p, lr=0.03, momentum=0.8, nesterov=True),
        "adam": lambda p: torch.optim.Adam(p, lr=0.02, weight_decay=0.03),
        "adamw": lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.1, betas=(0.8, 0.95)),
    }
    return SimpleNamespace(
        problem=problem, network=network, batches=batches, train=train, losses=losses, optimizers=optimizers
    )
