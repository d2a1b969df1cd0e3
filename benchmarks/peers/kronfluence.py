"""Influence scores by kronfluence's EK-FAC on the same arrays; run in an environment of its own."""

import tempfile
import time

import numpy as np
import torch
from kronfluence.analyzer import Analyzer, prepare_model
from kronfluence.arguments import FactorArguments, ScoreArguments
from kronfluence.task import Task
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import TensorDataset


class ConceptTask(Task):
    """Summed cross-entropy of all concepts; factors with labels drawn from the model."""

    def compute_train_loss(self, batch, model, sample=False):
        inputs, targets = batch
        logits = model(inputs)
        if sample:
            with torch.no_grad():
                targets = torch.bernoulli(torch.sigmoid(logits.detach()))
        return binary_cross_entropy_with_logits(logits, targets, reduction="sum")

    def compute_measurement(self, batch, model):
        return self.compute_train_loss(batch, model)


def leave_one_out(X, C, X_held, C_held, rows, weight, bias, *, l2):
    """Return the change of the summed held-out loss that is expected when each of `rows` is left out."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(X.shape[1], C.shape[1]).double())
    with torch.no_grad():
        model[0].weight.copy_(torch.as_tensor(weight))
        model[0].bias.copy_(torch.as_tensor(bias))
    train, held = (TensorDataset(torch.as_tensor(a), torch.as_tensor(b)) for a, b in ((X, C), (X_held, C_held)))
    task = ConceptTask()
    model = prepare_model(model, task)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        analyzer = Analyzer("concepts", model, task, output_dir=folder, disable_tqdm=True, cpu=True)
        analyzer.fit_all_factors(
            "ekfac",
            train,
            per_device_batch_size=len(X),
            factor_args=FactorArguments(strategy="ekfac"),
        )
        # kronfluence takes the mean curvature, so the ridge of the sum is divided by the rows
        analyzer.compute_pairwise_scores(
            "scores",
            "ekfac",
            held,
            torch.utils.data.Subset(train, rows.tolist()),
            per_device_query_batch_size=len(X_held),
            per_device_train_batch_size=len(rows),
            score_args=ScoreArguments(damping_factor=l2 / len(X)),
        )
        scores = analyzer.load_pairwise_scores("scores")["all_modules"]
    seconds = time.perf_counter() - start
    # removing a row adds H^-1 gradient to the parameters, and H of the sum is n times that of the mean
    return {"change": scores.sum(dim=0).double().numpy().astype(np.float64) / len(X), "seconds": [seconds]}
