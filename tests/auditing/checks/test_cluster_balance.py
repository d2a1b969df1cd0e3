"""The check hands clusters, groups, limits and the smallest cell to the audit of clusters."""

import numpy as np
import pandas as pd

import aboveboard
from aboveboard.core import SUPPRESSED


def audited(counts, **options):
    """Audit clusters (rows of `counts`) with so many people of each group (columns)."""
    counts = np.asarray(counts)
    cluster, group = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(counts.shape))
    frame = pd.DataFrame({"cluster": cluster, "group": group})
    columns = {"cluster": "cluster", "sensitive": "group"}
    (finding,) = aboveboard.audit(None, frame, suite="clustering", columns=columns, **options).findings
    return finding


def test_the_limits_in_force_decide():
    even, off = [[50, 50], [50, 50]], [[44, 56], [56, 44]]
    assert audited(even).severity == "ok"
    assert audited(off).severity == "ok"  # 44 of 100, and the default slack allows 40 to 62.5
    strict = audited(off, limits={"cluster_balance.slack": 0.1})
    assert (strict.severity, strict.value) == ("ok", 1.0)  # 45 are wanted, one is missing
    assert audited(off, limits={"cluster_balance.slack": 0.0}).severity == "fail"
    assert audited(off, limits={"cluster_balance.slack": 0.1, "cluster_balance.people": 1}).severity == "fail"


def test_figures_on_few_people_are_withheld_and_none_gives_them_away():
    finding = audited([[100, 5], [80, 60], [90, 70]])
    rows = {row[:2]: row[2] for row in finding.tables[0].rows}
    assert rows["0", "1"] == SUPPRESSED
    assert rows["0", "0"] == SUPPRESSED  # its cluster's other part
    hidden = sum(n == SUPPRESSED for n in rows.values())
    assert hidden >= 4  # and two of another cluster, lest the groups' totals give them away
    assert finding.severity == "fail"
    assert finding.value is None
    assert "people too" not in finding.statement


def test_many_small_cells_hide_the_whole_table():
    finding = audited(np.tile([[40, 3]], (250, 1)))
    assert all(row[2] == SUPPRESSED for row in finding.tables[0].rows)


def test_an_empty_cell_is_shown():
    finding = audited([[100, 0], [100, 50]])
    assert {row[:2]: row[2] for row in finding.tables[0].rows}["0", "1"] == 0
    assert "cluster 0" in finding.statement


def test_the_remedy_is_named_where_it_fails():
    assert audited([[100, 0], [100, 50]]).remedies == ("RelaxMergeFairKMeans",)
    assert audited([[50, 50], [50, 50]]).remedies == ()
