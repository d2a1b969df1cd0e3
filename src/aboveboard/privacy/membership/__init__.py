"""Can an outsider tell from a model's answers whose rows it was trained on, and whose rows most easily?

For whoever publishes a model of people. An attack gives every row a score, high where the row looks like one that the
model was trained on: `score_attack` from the answers alone, `likelihood_ratio_attack` with shadow models.
`attack_rates` says how many members an attack recognises and how many others it accuses wrongly, and `membership_audit`
makes findings of that: by group, by kind of row, and beside a certificate of differential privacy.

References
----------
N. Carlini, S. Chien, M. Nasr, S. Song, A. Terzis, F. Tramèr, "Membership Inference Attacks From First Principles", IEEE
Symposium on Security and Privacy 2022. https://arxiv.org/abs/2112.03570
S. Yeom, I. Giacomelli, M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning", CSF 2018 (loss threshold).
"""

from aboveboard.privacy.membership._audit import membership_audit
from aboveboard.privacy.membership._rates import AttackRate, attack_rates
from aboveboard.privacy.membership._scores import Attack, likelihood_ratios, score_attack
from aboveboard.privacy.membership._shadows import likelihood_ratio_attack

__all__ = [
    "Attack",
    "AttackRate",
    "attack_rates",
    "likelihood_ratio_attack",
    "likelihood_ratios",
    "membership_audit",
    "score_attack",
]
