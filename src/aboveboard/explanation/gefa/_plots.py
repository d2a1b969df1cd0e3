"""The pictures of an explanation: a waterfall for one answer, a beeswarm for many."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from aboveboard.explanation.gefa._coalitions import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_beeswarm", "draw_waterfall"]

_UP: Final = "#b3411e"
_DOWN: Final = "#1d6a96"
_PALE: Final = "#d9d9d9"
_LONGEST: Final = 40
_BINS: Final = 60


def draw_waterfall(
    names: Sequence[str],
    values: Floats,
    half: Floats,
    ends: tuple[float, float],
    max_display: int,
    ax: "Axes | None",
) -> "Axes":
    """Draw bars from the baseline's answer (below) to the answer (above), the largest step on top."""
    order = np.argsort(-np.abs(values), kind="stable")
    kept = order if len(order) <= max_display else order[: max_display - 1]
    rest = order[len(kept) :]
    steps = [(names[i], float(values[i]), float(half[i])) for i in kept]
    if len(rest):
        # the errors of values with a fixed sum are negatively correlated, so that this bar is too long if anything
        off = float(np.sqrt(np.square(half[rest]).sum()))
        steps.append((f"{len(rest)} more", float(values[rest].sum()), off))
    steps.reverse()
    axes = _axes(ax, rows=len(steps))
    start = ends[0]
    for place, (_, value, off) in enumerate(steps):
        axes.barh(place, value, left=start, color=_UP if value >= 0 else _DOWN, height=0.7)
        axes.errorbar(start + value, place, xerr=off, color="black", capsize=3, linewidth=1)
        axes.text(start + value / 2, place + 0.38, f"{value:+.3g}", ha="center", va="bottom", fontsize="small")
        start += value
    for end, text, height, offset in ((ends[0], "nothing known", 0.0, -26), (ends[1], "the answer", 1.0, 4)):
        axes.axvline(end, color="grey", linewidth=0.8, linestyle="--")
        axes.annotate(
            f"{text}: {end:.3g}",
            (end, height),
            xycoords=("data", "axes fraction"),
            xytext=(0, offset),
            textcoords="offset points",
            ha="center",
            fontsize="small",
        )
    _label(axes, [name for name, _, _ in steps])
    return axes


def draw_beeswarm(
    names: Sequence[str],
    values: Floats,
    levels: Sequence[Floats],
    noise: Floats,
    ax: "Axes | None",
) -> "Axes":
    """Draw one line of points per feature, the first on top; levels in [0, 1] colour them, NaN is grey."""
    from matplotlib import colormaps

    axes = _axes(ax, rows=len(names))
    colours = colormaps["viridis"]
    for k in range(len(names)):
        place = len(names) - 1 - k
        axes.barh(place, 2 * noise[k], left=-noise[k], color=_PALE, height=0.8, zorder=0)
        known = np.isfinite(levels[k])
        paint = np.where(known[:, None], colours(np.where(known, levels[k], 0.0)), np.array([0.5, 0.5, 0.5, 1.0]))
        axes.scatter(values[:, k], place + _swarm(values[:, k]), c=paint, s=9, linewidths=0)
    axes.axvline(0.0, color="grey", linewidth=0.8)
    axes.set_xlabel("effect on the answer (dark: low values of the feature; light: high values)")
    _label(axes, list(reversed(names)))
    return axes


def _swarm(values: Floats) -> Floats:
    """Return heights between -0.4 and 0.4 at which points of nearly equal value do not hide each other."""
    span = float(np.ptp(values)) or 1.0
    bins = np.minimum(((values - values.min()) / span * _BINS).astype(int), _BINS - 1)
    order = np.argsort(bins, kind="stable")
    counts = np.bincount(bins, minlength=_BINS)
    within = np.empty(len(values))
    within[order] = np.arange(len(values)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray((within - (counts[bins] - 1) / 2) * 0.8 / max(int(counts.max()), 1))


def _axes(ax: "Axes | None", *, rows: int) -> "Axes":
    if ax is not None:
        return ax
    from matplotlib import pyplot as plt

    _, made = plt.subplots(figsize=(7.0, 1.2 + 0.42 * rows), layout="constrained")
    return made


def _label(axes: "Axes", names: Sequence[str]) -> None:
    axes.set_yticks(range(len(names)))
    for label in axes.set_yticklabels([_short(name) for name in names]):
        label.set_parse_math(False)
    axes.set_ylim(-0.6, len(names) - 0.3)


def _short(name: str) -> str:
    line = " ".join(name.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
