"""Clusters of people: a label for each row, and the sensitive columns that clusters should not set apart."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from aboveboard.auditing.frames import plain_label
from aboveboard.auditing.suite_subject import Example, RoleColumns, SuiteSubject, fingerprint
from aboveboard.core.errors import InputError

__all__ = ["ClusteringSubject", "example", "read"]

_MOST_GROUPS: Final = 50
_MOST_CLUSTERS: Final = 1_000
_MISSING: Final = "(missing)"


@dataclass(frozen=True, kw_only=True)
class ClusteringSubject(SuiteSubject):
    """Who was put into which cluster.

    Attributes
    ----------
    cluster : Series of text
    sensitive : DataFrame of text
        Missing values are a group of their own.
    """

    cluster: "pd.Series[Any]"
    sensitive: pd.DataFrame

    def __len__(self) -> int:
        return len(self.cluster)

    @property
    def summary(self) -> str:
        """What was audited, in a few words."""
        clusters = self.cluster.nunique()
        return f"{clusters:,} {'cluster' if clusters == 1 else 'clusters'} of {len(self):,} people"

    def facts(self) -> tuple[tuple[str, str | int | float], ...]:
        """Return the counts."""
        return (
            ("Clusters", int(self.cluster.nunique())),
            *((f"Groups of {name}", int(self.sensitive[name].nunique())) for name in self.sensitive.columns),
        )


def read(table: RoleColumns, settings: Mapping[str, Any], **common: Any) -> ClusteringSubject:  # noqa: ARG001
    """Read clusters and groups.

    Raises
    ------
    InputError
        Without a column of clusters or a sensitive one; for rows without a cluster, more than 1,000 clusters, or a
        sensitive column with more than 50 values.
    """
    table.need("cluster", why="the cluster of each row")
    table.need("sensitive", why="the groups that clusters should not set apart")
    cluster = table["cluster"]
    missing = int(cluster.isna().sum())
    if missing:
        raise InputError(
            f"the cluster is missing in {missing:,} rows",
            expected="a cluster for every row",
            remedy="Leave those rows out, or give them a cluster of their own, such as 'none'",
        )
    if cluster.nunique() > _MOST_CLUSTERS:
        raise InputError(
            f"the column {cluster.name!r} has {cluster.nunique():,} values",
            expected=f"the names of at most {_MOST_CLUSTERS:,} clusters",
            remedy="Is it an identifier?",
        )
    labels = _texts(cluster)
    notes: list[str] = []
    groups: dict[str, pd.Series[Any]] = {}
    for column in table.all("sensitive"):
        if column.nunique() > _MOST_GROUPS:
            raise InputError(
                f"the sensitive column {column.name!r} has {column.nunique():,} values",
                expected=f"at most {_MOST_GROUPS} groups",
                remedy="Put numbers into bands first, such as ages by decade",
            )
        without = int(column.isna().sum())
        if without:
            notes.append(f"Missing values of {column.name} are a group of their own, {_MISSING}.")
        groups[str(column.name)] = _texts(column)
    sensitive = pd.DataFrame(dict(enumerate(groups.values()))).set_axis(pd.Index(list(groups), dtype=object), axis=1)
    parts = [list(labels), *(list(part) for part in groups.values()), list(groups)]
    return ClusteringSubject(
        cluster=labels, sensitive=sensitive, data_sha256=fingerprint(*parts), notes=tuple(notes), **common
    )


def example(*, random_state: int) -> Example:
    """Return plain k-means clusters of people of the UCI Adult test set, with their sex and race."""
    from sklearn.cluster import KMeans

    from aboveboard.data import load_adult

    adult = load_adult(split="test").X
    values = adult[["age", "education_num", "hours_per_week"]].to_numpy(dtype="float64")
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    labels = KMeans(6, n_init=3, random_state=random_state).fit_predict(scaled)
    frame = pd.DataFrame({"segment": labels, "sex": adult["sex"].astype(str), "race": adult["race"].astype(str)})
    return Example(
        frame=frame,
        columns={"cluster": "segment", "sensitive": ["sex", "race"]},
        note="People of the UCI Adult test set in six clusters by age, education and hours, made by plain k-means.",
    )


def _texts(column: "pd.Series[Any]") -> "pd.Series[Any]":
    values = np.array([_MISSING if missing else plain_label(value) for value, missing in zip(column, column.isna())])
    return pd.Series(values.astype(object), dtype=object)
