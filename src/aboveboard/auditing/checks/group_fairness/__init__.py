"""Is any group selected, missed or wronged more often than others?

Each group's rates are compared with those of everybody (or of a reference group that the user named), for every
sensitive column and for their intersections. A verdict is about a family: one metric over all groups of one column.
Its intervals hold for all groups at once. It fails when an interval lies wholly beyond the limit, passes when all lie
within, and is inconclusive otherwise: too few people are no proof of fairness. The distance between the largest and the
smallest rate is shown and never judged, because it grows with the number of groups even where all are alike.

References
----------
R. G. Newcombe, "Interval estimation for the difference between independent proportions: comparison of eleven methods",
Statistics in Medicine 17, 1998.
M. Hardt, E. Price, N. Srebro, "Equality of opportunity in supervised learning", NeurIPS 2016 (the metrics).
"""

from aboveboard.auditing.checks.group_fairness.families import families
from aboveboard.auditing.checks.group_fairness.findings import family_findings, left_out_finding
from aboveboard.auditing.checks.group_fairness.sums import FairnessLayout, FairnessSums, layout, summarise
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["FairnessLayout", "FairnessSums", "check", "judge", "layout", "summarise"]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:
    """Compare the groups of every sensitive column, and of their intersections.

    Parameters
    ----------
    subject : Subject
        With at least one sensitive column.
    random_state : int
    effort : {"quick", "standard", "full"}
        How many bootstrap replicates; all rows are always looked at.

    Returns
    -------
    list of Finding
        One per metric and partition, ``group_fairness/<metric>/<column>`` (``<column> & <column>``), with the table and
        the figure, and one per group that lies beyond the limit, ``group_fairness/<metric>/<column>=<group>``.

    Notes
    -----
    O(n) time and 8 bytes a row per partition; the intervals cost O(groups) whatever the number of rows. Groups of
    fewer than ``subject.min_cell`` people are withheld, and so are groups from which those could be computed; a group
    of the latter kind is still judged, without figures.
    """
    return judge(subject, summarise(subject, layout(subject)), random_state=random_state, effort=effort)


def judge(subject: Subject, sums: FairnessSums, *, random_state: int, effort: Effort) -> list[Finding]:
    """Make findings of sums over all rows; `subject` tells what they are about, and no row of it is looked at."""
    found, left_out = families(subject, sums, random_state=random_state, effort=effort)
    findings = [finding for family in found for finding in family_findings(subject, family)]
    if left_out:
        findings.append(left_out_finding(left_out))
    return findings
