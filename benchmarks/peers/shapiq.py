"""Shapley estimators of shapiq and of shap on games given by all their values; run in an environment of its own."""

import time
import warnings

import numpy as np
import shap
from shapiq import approximator
from sklearn.ensemble import RandomForestClassifier

warnings.filterwarnings("ignore")

SHAPIQ = {
    "shapiq permutation": (approximator.PermutationSamplingSV, {}),
    "shapiq stratified": (approximator.StratifiedSamplingSV, {}),
    "shapiq Owen": (approximator.OwenSamplingSV, {}),
    "shapiq SVARM, paired": (approximator.SVARM, {"pairing_trick": True}),
    "shapiq SHAP-IQ, paired": (approximator.SHAPIQ, {"index": "SV", "max_order": 1, "pairing_trick": True}),
    "shapiq KernelSHAP, paired": (approximator.KernelSHAP, {"pairing_trick": True}),
    "shapiq unbiased KernelSHAP, paired": (approximator.UnbiasedKernelSHAP, {"pairing_trick": True}),
    "shapiq kADD-SHAP of order 2, paired": (approximator.kADDSHAP, {"max_order": 2, "pairing_trick": True}),
}


class Game:
    """A game that is read off a table, and counts how often it is asked."""

    def __init__(self, values):
        self.values = values
        self.powers = 1 << np.arange(int(np.log2(len(values))))
        self.asked = 0

    def __call__(self, coalitions):
        z = np.asarray(coalitions).reshape(-1, len(self.powers)) > 0.5
        self.asked += len(z)
        return self.values[z @ self.powers]


def estimators(games, budget, repeats, seed):
    """Return, by estimator: estimates (games x repeats x n), mean queries and seconds of one estimate."""
    n = int(np.log2(games.shape[1]))
    found, queries, seconds = {}, {}, {}
    for name, estimate in _all(n, budget).items():
        estimate(Game(games[0]), seed)  # what is compiled once
        values = np.empty((len(games), repeats, n))
        asked, start = 0, time.process_time()
        for g, table in enumerate(games):
            for repeat in range(repeats):
                game = Game(table)
                values[g, repeat] = estimate(game, seed + repeat)
                asked += game.asked
        seconds[name] = (time.process_time() - start) / (len(games) * repeats)
        queries[name] = asked / (len(games) * repeats)
        found[name] = values
    return {**found, "queries": queries, "seconds": seconds}


def _all(n, budget):
    return {
        **{name: _shapiq(n, budget, *how) for name, how in SHAPIQ.items()},
        "shap KernelExplainer": lambda game, seed: _kernel(game, n, budget, seed, l1_reg=False),
        "shap KernelExplainer, its defaults": lambda game, seed: _kernel(game, n, budget, seed),
        "shap PermutationExplainer": lambda game, seed: _permutation(game, n, budget, seed),
    }


def _shapiq(n, budget, kind, options):
    def estimate(game, seed):
        empty = game.values[0]
        found = kind(n=n, random_state=seed, **options).approximate(budget, lambda z: game(z) - empty)
        return np.array([found[(i,)] for i in range(n)])

    return estimate


def _kernel(game, n, budget, seed, **options):
    np.random.seed(seed)  # noqa: NPY002 - it draws from NumPy's global generator
    explainer = shap.KernelExplainer(game, np.zeros((1, n)))
    game.asked = 0
    return explainer.shap_values(np.ones((1, n)), nsamples=budget, silent=True, **options)[0]


def _permutation(game, n, budget, seed):
    masker = shap.maskers.Independent(np.zeros((1, n)), max_samples=1)
    explainer = shap.PermutationExplainer(game, masker, seed=seed)
    return explainer(np.ones((1, n)), max_evals=budget, silent=True).values[0]


def forest(X, y, explained, background, coalitions, seed):
    """Return TreeExplainer's interventional values of a forest, and its answers about every coalition."""
    model = RandomForestClassifier(30, max_depth=6, random_state=seed).fit(X, y)
    values = shap.TreeExplainer(model, background, feature_perturbation="interventional").shap_values(explained)
    inputs = np.where(coalitions, explained[:, None, :], background[0])
    answers = model.predict_proba(inputs.reshape(-1, X.shape[1]))[:, 1].reshape(len(explained), -1)
    return {"values": values[..., 1], "answers": answers}
