"""What is guaranteed: on the rows of the fit with certainty, on held-out rows with a stated probability."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from aboveboard import __version__
from aboveboard._stats.intervals import clopper_pearson
from aboveboard.core.certificate import Assumption, Certificate
from aboveboard.core.reference import Reference
from aboveboard.uncertainty.reconcile._measures import Measures

if TYPE_CHECKING:
    from aboveboard.uncertainty.reconcile._redcal import ReDCal

__all__ = ["fitted_certificate", "held_out_certificate"]

_PAPER: Final = Reference(
    title="Reconciling Model Multiplicity for Downstream Decision Making",
    authors="A. Du, D. Ngo, Z. S. Wu",
    venue="ICLR 2025",
    year=2025,
    url="https://arxiv.org/abs/2405.19667",
)
_COMMON: Final = (
    "Losses that are not linear in the outcome, such as the worst tenth of it.",
    "Losses and actions other than those given.",
    "Groups of people by themselves.",
)


def fitted_certificate(model: "ReDCal", before: Measures, after: Measures, *, rows: int) -> Certificate:
    """Return what holds on the rows of the fit: what was measured there, beside what theory bounds it by."""
    losses = model.losses_
    gap = float(np.abs(after.realised - after.forecast).max())
    regret, event = float(after.regret.max()), max(float(mass.max()) for mass in after.event.values())
    bound = losses.padding.shape[1] * model.beta * losses.longest
    promised = {"redcal": (gap / bound, event / model.eta), "reconcile": (event / model.eta,)}
    largest = max(promised.get(model.mode, (gap / bound,)))
    return Certificate(
        kind="reconciled decisions, on the rows of the fit",
        guarantee=(
            f"On the {rows:,} rows of the fit, for each of {len(losses.names)} losses: two models act differently by a "
            f"margin of {model.alpha:g} on at most {event:.4g} of the rows for any two actions; each model's forecast "
            f"of its own mean loss is off by at most {gap:.4g}; no renaming of actions would lower a mean loss by more "
            f"than {regret:.4g}; and no model's Brier score is higher than before."
        ),
        parameters={
            "swap_regret": regret,
            "swap_regret_bound": 2 * bound,
            "loss_estimation_gap": gap,
            "loss_estimation_gap_bound": bound,
            "disagreement": max(float(mass.max()) for mass in after.total.values()),
            "disagreement_before": max(float(mass.max()) for mass in before.total.values()),
            "largest_event": event,
            "largest_event_bound": model.eta,
            "brier_before": before.brier.tolist(),
            "brier_after": after.brier.tolist(),
            "patches": len(model.patches_),
            "bound_T": _patch_bound(model, before),
            "alpha": model.alpha,
            "eta": model.eta,
            "beta": model.beta,
            "diameter": losses.diameter,
            "split": "the rows of the fit",
            "rows": rows,
        },
        assumptions=(
            _checked(
                "The fit ended because no event was left that is large enough, so that the bounds of the theory hold.",
                "why the fit stopped",
                model.stopped_ == "settled",
            ),
            _checked(
                "Events on fewer than min_event rows, which are left, are within the bounds too.",
                "largest gap of a forecast left, by its bound; largest event left, by eta",
                bool(largest <= 1),
                float(largest),
                1.0,
            ),
        ),
        does_not_cover=("Other rows than those of the fit: see certify.", *_COMMON),
        library_version=__version__,
        reference=_PAPER,
    )


def held_out_certificate(model: "ReDCal", found: Measures, *, rows: int, level: float) -> Certificate:
    """Return bounds for the population of held-out rows that hold at once.

    The chance of error is split evenly over three families: forecast gaps (two-sided Hoeffding for each model and
    loss), swap regrets (Hoeffding, and a union over all renamings), and shares of rows with different decisions
    (Clopper-Pearson).
    """
    losses, error = model.losses_, (1.0 - level) / 3
    models, count = found.realised.shape
    pairs = len(found.total)
    # a loss per row lies in an interval this long, and so does a forecast of it; their difference in twice that
    spans = np.array([float(np.ptp(losses.of(place))) for place in range(count)])
    width = 2 * spans * np.sqrt(np.log(2 * models * count / error) / (2 * rows))
    gap = np.abs(found.realised - found.forecast) + width
    actions = np.array([len(labels) for labels in losses.actions])
    renamings = actions * np.log(actions) + np.log(models * count / error)
    regret = found.regret + 2 * spans * np.sqrt(renamings / (2 * rows))
    share = {pair: np.round(total * rows).astype(int) for pair, total in found.total.items()}
    each = 1.0 - 2 * error / (pairs * count)  # one side of an interval at this level
    apart = {pair: np.asarray(clopper_pearson(k, np.full(count, rows), level=each)[1]) for pair, k in share.items()}
    worst_gap, worst_regret = float(gap.max()), float(regret.max())
    worst_apart = max(float(upper.max()) for upper in apart.values())
    return Certificate(
        kind="reconciled decisions, held out",
        guarantee=(
            f"With probability {level:g} over the {rows:,} held-out rows, in the population they were drawn from, for "
            f"each of {count} losses: two models act differently on at most {worst_apart:.4g} of the rows; each "
            f"model's forecast of its own mean loss is off by at most {worst_gap:.4g}; and no renaming of actions "
            f"would lower a mean loss by more than {worst_regret:.4g}."
        ),
        parameters={
            "swap_regret": worst_regret,
            "loss_estimation_gap": worst_gap,
            "disagreement": worst_apart,
            "swap_regret_measured": float(found.regret.max()),
            "loss_estimation_gap_measured": float(np.abs(found.realised - found.forecast).max()),
            "disagreement_measured": max(float(total.max()) for total in found.total.values()),
            "patches": len(model.patches_),
            "split": "held-out rows",
            "rows": rows,
        },
        assumptions=(
            Assumption("The rows are independent draws from the population in which decisions will be made."),
            Assumption("Neither the models nor the patches were fitted on these rows."),
        ),
        confidence=level,
        does_not_cover=("A population that changes.", *_COMMON),
        library_version=__version__,
        reference=_PAPER,
    )


def _checked(text: str, test: str, passed: bool, statistic: float | None = None, limit: float | None = None) -> Any:
    return Assumption(text, "checked", test, statistic, limit, passed)


def _patch_bound(model: "ReDCal", before: Measures) -> float:
    """Return how many patches there can be at most."""
    reconcile = model.eta * model.alpha**2 / (4 * model.losses_.diameter**2)
    gains = {"redcal": min(reconcile, model.beta**2), "reconcile": reconcile, "decision_calibration": model.beta**2}
    return float(before.brier.sum() / gains[model.mode])
