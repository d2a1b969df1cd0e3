"""The certificate of a private method: what every one of them must say."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

from aboveboard.core import Assumption, Certificate, Reference
from aboveboard.privacy._noise import NoiseSource
from aboveboard.privacy._rdp.curve import Adjacency

__all__ = ["privacy_certificate"]

_NEIGHBOURS: Final = {
    "add_remove": "of which one has one record more",
    "replace_one": "of the same size that differ in one record",
}
_SEED: Final = Assumption(
    "Nobody who sees the release knows the seed that the noise was drawn from, or can find it by trying."
)
_LAST_BITS: Final = (
    "What the last bits of floating-point numbers tell: noise and sums are computed in float64, not with a mechanism "
    "that is safe against attacks on rounding."
)


def privacy_certificate(
    *,
    release: str,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    mechanism: str,
    noise: NoiseSource | None,
    parameters: Mapping[str, Any] | None = None,
    assumptions: Iterable[Assumption] = (),
    does_not_cover: Iterable[str] = (),
    floating_point: str = _LAST_BITS,
    subject: Mapping[str, str] | None = None,
    reference: Reference | None = None,
) -> Certificate:
    """Return a certificate of (epsilon, delta)-differential privacy.

    Parameters
    ----------
    release : str
        What is published, as the object of a sentence: ``"the coefficients"``.
    epsilon, delta : float
        Proved; rounded upwards in the sentence.
    adjacency : {"add_remove", "replace_one"}
    mechanism : str
        Noise, where it is added, and the accounting.
    noise : NoiseSource or None
        Where the noise came from; None for an accounting before anything is drawn.
    parameters : mapping, optional
        Further numbers of the guarantee.
    assumptions : iterable of Assumption
        What was checked and what is assumed, besides the seed, which is added where there was one.
    does_not_cover : iterable of str
        Besides what rounding tells.
    floating_point : str, optional
        What is said of rounding; empty for mechanisms that are safe against it.
    subject, reference
        As for `Certificate`.
    """
    from aboveboard import __version__

    source = "none: nothing has been drawn yet" if noise is None else noise.name
    seeded = noise is not None and not noise.cryptographic
    extra = f" plus {_rounded_up(delta)}" if delta else ""
    return Certificate(
        kind="differential privacy",
        guarantee=(
            f"For any two data sets {_NEIGHBOURS[adjacency]}, and any set of outcomes, the probability that "
            f"{release} fall into the set with the one is at most exp({_rounded_up(epsilon)}) times that with the "
            f"other{extra}."
        ),
        parameters={
            "epsilon": epsilon,
            "delta": delta,
            "adjacency": adjacency,
            "mechanism": mechanism,
            **(parameters or {}),
        },
        assumptions=(*assumptions, *([_SEED] if seeded else [])),
        numerics={"precision": "float64", "noise_source": source},
        does_not_cover=(*does_not_cover, *([floating_point] if floating_point else [])),
        subject=dict(subject or {}),
        library_version=__version__,
        reference=reference,
    )


def _rounded_up(value: float) -> str:
    """Return four digits that stand for no less than the value."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    text = f"{value:.4g}"
    return text if float(text) >= value else f"{float(text) + unit:.4g}"
