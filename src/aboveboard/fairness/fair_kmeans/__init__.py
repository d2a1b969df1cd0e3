"""Clusters in which no group is rarer, or more common, than its bounds allow.

For whoever segments people and must show that no segment is a proxy for sex or race. `RelaxMergeFairKMeans` is k-means
under bounds on the share of every group in every cluster; `sparse_wasserstein_barycenter` solves the same problem for
measures; `cluster_balance_audit` holds any clustering against such bounds.

References
----------
S. Song, G. Mo, Q. Yang, H. Ding, "Relax and Merge: A Simple Yet Effective Framework for Solving Fair k-Means and
k-sparse Wasserstein Barycenter Problems", ICLR 2025. https://arxiv.org/abs/2411.01115
"""

from aboveboard.fairness.fair_kmeans._audit import cluster_balance_audit
from aboveboard.fairness.fair_kmeans._barycenter import Barycenter, sparse_wasserstein_barycenter
from aboveboard.fairness.fair_kmeans._estimator import RelaxMergeFairKMeans

__all__ = ["Barycenter", "RelaxMergeFairKMeans", "cluster_balance_audit", "sparse_wasserstein_barycenter"]
