"""Two or more equally good models that would do different things: make them agree, at no cost in accuracy.

A model recommends what its own probabilities make cheapest. Two models with the same Brier score can recommend
different things for the same person. `ReDCal` corrects both, patch by patch, on rows with known answers: where they
would act differently, at least one of them is measurably wrong, and is moved to the truth; then each is corrected until
what it expects a decision to cost is what it costs. Every patch lowers a Brier score, so there can only be so many.

References
----------
A. Du, D. Ngo, Z. S. Wu, "Reconciling Model Multiplicity for Downstream Decision Making", ICLR 2025.
A. Roth, A. Tolbert, S. Weinstein, "Reconciling Individual Probability Forecasts", FAccT 2023.
S. Zhao, M. P. Kim, R. Sahoo, T. Ma, S. Ermon, "Calibrating Predictions to Decisions: A Novel Approach to Multi-Class
Calibration", NeurIPS 2021.
"""

from aboveboard.uncertainty.reconcile._forecasts import Reconcile
from aboveboard.uncertainty.reconcile._losses import ActionNet, delta_net
from aboveboard.uncertainty.reconcile._measures import best_response, decision_calibration_error, disagreement
from aboveboard.uncertainty.reconcile._patches import Patch
from aboveboard.uncertainty.reconcile._redcal import ReDCal

__all__ = [
    "ActionNet",
    "Patch",
    "ReDCal",
    "Reconcile",
    "best_response",
    "decision_calibration_error",
    "delta_net",
    "disagreement",
]
