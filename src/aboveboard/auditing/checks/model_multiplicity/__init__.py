"""For how many people would another model, as good as this one, decide otherwise?

Where two models are equally good and decide differently, the decision depends on which of them somebody happened to
choose. The check tells whether they are equally good, how many decisions differ, by group and by what kind of row, and
tries the remedy on rows that were held out.

References
----------
A. Du, D. Ngo, Z. S. Wu, "Reconciling Model Multiplicity for Downstream Decision Making", ICLR 2025.
C. T. Marx, F. P. Calmon, B. Ustun, "Predictive Multiplicity in Classification", ICML 2020.
"""

from aboveboard.auditing.checks.model_multiplicity.comparison import compared
from aboveboard.auditing.checks.model_multiplicity.differences import by_group, differing, equally_good
from aboveboard.auditing.checks.model_multiplicity.reconciling import reconciled
from aboveboard.auditing.checks.model_multiplicity.whose import arbitrary
from aboveboard.auditing.subject import Subject
from aboveboard.auditing.suites import Effort
from aboveboard.core.finding import Finding

__all__ = ["check"]


def check(subject: Subject, *, random_state: int, effort: Effort) -> list[Finding]:  # noqa: ARG001 - one signature
    """Compare the decisions of two models on the same rows.

    Parameters
    ----------
    subject : Subject
        Binary or multiclass, with another model.
    random_state : int
        Seed of the halves of the rows on which a rule, and the remedy, are found and tried.
    effort : {"quick", "standard", "full"}
        How many rows are looked at, which the runner sees to.

    Returns
    -------
    list of Finding
        ``model_multiplicity/equally_good``, ``/decisions``, ``/by_group/<column>``, ``/arbitrary``, ``/reconciled``.

    Notes
    -----
    The models are not asked again. O(n log n) for each feature, and O(n) for each patch of the remedy.
    """
    pair = compared(subject)
    groups = [by_group(subject, pair, str(name)) for name in subject.sensitive.columns]
    return [
        equally_good(subject, pair),
        differing(subject, pair),
        *groups,
        arbitrary(subject, pair, random_state),
        reconciled(subject, random_state),
    ]
