"""The paper that the methods come from."""

from typing import Final

from aboveboard.core import Reference

PAPER: Final = Reference(
    title="Differential Privacy Under Class Imbalance: Methods and Empirical Insights",
    authors="L. Rosenblatt, Y. Lut, E. Turok, M. Avella-Medina, R. Cummings",
    venue="ICML 2025",
    year=2025,
    url="https://arxiv.org/abs/2411.05733",
)
