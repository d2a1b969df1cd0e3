"""Draw a `Figure` as inline SVG: Matplotlib lays it out, and what it writes is made fit for a web page.

The result has no style attributes (a strict content security policy forbids them), no ids but its own, and classes
beside its colours, so that a style sheet can repaint it for a dark page; without one it shows as on paper. The text of
labels never passes through Matplotlib: it lays out stand-ins of the same width, and the true text replaces them, so
that no name can be taken for mathematics, and no font lacks its letters.
"""

import io
import math
import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from aboveboard.auditing.report.view import clean, shorten
from aboveboard.core.finding import Figure, Series

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

__all__ = ["COLOURS", "draw"]

COLOURS: Final[dict[str, str]] = {
    "ink": "#39424e",
    "grid": "#dde3ea",
    "ref": "#7a2048",
    "s0": "#2459b3",
    "s1": "#b1480a",
    "s2": "#0f766e",
    "s3": "#7a3fb0",
    "s4": "#a8226b",
    "s5": "#66610a",
    "s6": "#46566b",
    "s7": "#80492c",
}
"""The colours on paper; the report's style sheet has a lighter twin of each for dark pages."""

_MARKERS: Final = "oDs^vPX*"
_DASHES: Final = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)))
_WIDTH: Final = 560.0
_FONT: Final = 11.5
_CHARACTER: Final = 0.56 * _FONT
_MOST_CATEGORIES: Final = 40
_MOST_POINTS: Final = 200
_LABEL: Final = 32
_SVG: Final = "{http://www.w3.org/2000/svg}"
_LINK: Final = "{http://www.w3.org/1999/xlink}href"
_lock = threading.Lock()


def draw(figure: Figure, *, prefix: str = "figure") -> str:
    """Return `figure` as one ``<svg>`` element.

    Parameters
    ----------
    figure : Figure
    prefix : str
        Begins every id inside, so that several figures can share a page.

    Returns
    -------
    str
        The same text for the same figure, whatever the locale, the style and the fonts of the machine.

    Notes
    -----
    At most 40 categories are drawn and 200 points of a curve, so its size is bounded; about 30 milliseconds each.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    labels = _Labels()
    with _settings():
        canvas = Canvas(figsize=(1, 1), dpi=72)
        FigureCanvasSVG(canvas)
        axes = canvas.add_axes((0, 0, 1, 1))
        canvas.patch.set_visible(False)
        axes.patch.set_visible(False)
        axes.set_axisbelow(True)
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.tick_params(length=0, labelsize=_FONT, labelcolor=COLOURS["ink"], pad=6)
        plot = _lines if figure.kind == "lines" else _categories
        height = plot(axes, figure, labels)
        if not any(not math.isnan(_value(y)) for series in figure.series for y in series.y):
            empty = axes.text(0.5, 0.5, "", ha="center", va="center", fontsize=_FONT, transform=axes.transAxes)
            labels.add(empty, "No values to show")
        canvas.set_size_inches(_WIDTH / 72, height / 72)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None})
    return _Page(figure, labels, prefix).rewritten(buffer.getvalue(), height)


@contextmanager
def _settings() -> Iterator[None]:
    """Matplotlib's own defaults, whatever style is in force; one figure at a time, since settings are global."""
    import matplotlib as mpl

    skipped = ("backend", "interactive", "toolbar", "webagg", "savefig.directory", "figure.raise_window")
    settings = {name: value for name, value in mpl.rcParamsDefault.items() if not name.startswith(skipped)}
    settings |= {"svg.fonttype": "none", "svg.hashsalt": "aboveboard", "font.family": ["DejaVu Sans"]}
    with _lock, mpl.rc_context(settings):
        yield


class _Labels:
    """The true text of every label, and the stand-ins that Matplotlib sees."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.full: list[str] = []

    def stand_in(self, text: str, width: int = _LABEL) -> str:
        full = clean(text)
        self.full.append(full)
        self.shown.append(shorten(full, width))
        return "".join(_narrow(letter) for letter in self.shown[-1]) or " "

    def tie(self, artist: "Text", at: int) -> None:
        artist.set_gid(f"label-{at}")
        artist.set_parse_math(False)

    def add(self, artist: "Text", text: str, width: int = _LABEL) -> None:
        artist.set_text(self.stand_in(text, width))
        self.tie(artist, len(self.shown) - 1)


def _narrow(letter: str) -> str:
    if letter.isascii() and letter.isalnum():
        return letter
    return "MM" if unicodedata.east_asian_width(letter) in "WF" else "n"


def _value(number: Any) -> float:
    return float(number) if isinstance(number, int | float) and math.isfinite(number) else math.nan


def _values(numbers: Sequence[Any], n: int) -> list[float]:
    return [_value(number) for number in numbers] if numbers else [math.nan] * n


def _tick(value: float, percent: bool) -> str:
    text = f"{100 * value:.4g}\u00a0%" if percent else f"{value:,.6g}"
    return text.replace("-", "−")


def _span(figure: Figure, *, zero: bool) -> tuple[float, float]:
    """Return the range of the value axis, with some air."""
    numbers = [_value(line.value) for line in figure.lines if not line.diagonal]
    for series in figure.series:
        for values in (series.y, series.low, series.high):
            numbers += [_value(value) for value in values]
    numbers = [number for number in numbers if not math.isnan(number)] or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    air = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    return (low if zero and low == 0 else low - air), high + air


def _categories(axes: "Axes", figure: Figure, labels: _Labels) -> float:
    """Draw estimates with intervals, or bars, one row per category; return the height in points."""
    bars = figure.kind == "bars"
    names = list(dict.fromkeys(str(x) for series in figure.series for x in series.x))[:_MOST_CATEGORIES]
    places = {name: place for place, name in enumerate(names)}
    several = max(len(figure.series), 1)
    step = (0.72 if bars else 0.6) / several
    for index, series in enumerate(figure.series):
        colour = COLOURS[f"s{index % 8}"]
        shift = (index - (several - 1) / 2) * step
        for place, value, low, high in _marks(series, places):
            at = place + shift
            if bars:
                axes.barh(at, value, height=0.9 * step, color=colour, alpha=0.78, linewidth=0)
            if not math.isnan(low + high):
                axes.plot([low, high], [at, at], color=COLOURS["ink"] if bars else colour, linewidth=1.6, zorder=3)
            if not bars:
                marker = _MARKERS[index % 8]
                axes.plot([value], [at], marker=marker, color=colour, markersize=6.5, linestyle="none", zorder=4)
        axes.plot([], [], marker="s" if bars else _MARKERS[index % 8], color=colour, markersize=6.5, linestyle="none")
    for index, line in enumerate(figure.lines):
        if line.value is not None:
            axes.axvline(_value(line.value), zorder=2, **_reference(index))
    axes.set_xlim(*_span(figure, zero=bars))
    axes.set_ylim(max(len(names), 1) - 0.5, -0.5)
    axes.xaxis.set_major_locator(_locator())
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value, figure.percent))
    axes.grid(axis="x", color=COLOURS["grid"], linewidth=1)
    first = len(labels.shown)
    axes.set_yticks(range(len(names)), [labels.stand_in(name) for name in names])
    for offset, artist in enumerate(axes.get_yticklabels()):
        labels.tie(artist, first + offset)
    longest = max((_length(shown) for shown in labels.shown[first:]), default=0)
    left = min(max(longest * _CHARACTER + 18, 40), 0.42 * _WIDTH)
    _axis_label(axes, labels, figure.y_label)
    rows = max(len(names), 1) * (16 * several + 12)
    return _place(axes, figure, labels, left=left, inner=rows)


def _marks(series: Series, places: dict[str, int]) -> Iterator[tuple[int, float, float, float]]:
    n = len(series.x)
    ends = (_values(series.y, n), _values(series.low, n), _values(series.high, n))
    for name, value, low, high in zip(series.x, *ends, strict=True):
        place = places.get(str(name))
        if place is not None and not math.isnan(value):
            yield place, value, low, high


def _lines(axes: "Axes", figure: Figure, labels: _Labels) -> float:
    """Draw curves with bands; return the height in points."""
    across: list[float] = []
    for index, series in enumerate(figure.series):
        colour = COLOURS[f"s{index % 8}"]
        keep = _thinned(len(series.x))
        n = len(series.x)
        x, y, low, high = (
            [values[i] for i in keep]
            for values in (
                _values(series.x, n),
                _values(series.y, n),
                _values(series.low, n),
                _values(series.high, n),
            )
        )
        across += [number for number in x if not math.isnan(number)]
        if any(not math.isnan(a + b) for a, b in zip(low, high, strict=True)):
            axes.fill_between(x, low, high, color=colour, alpha=0.16, linewidth=0)
        marker = _MARKERS[index % 8] if len(keep) <= 25 else None
        dashes: Any = _DASHES[index % 4]
        axes.plot(x, y, color=colour, linewidth=1.8, linestyle=dashes, marker=marker, markersize=5)
    low_y, high_y = _span(figure, zero=False)
    low_x, high_x = (min(across), max(across)) if across else (0.0, 1.0)
    air = 0.03 * (high_x - low_x) or 0.1 * abs(high_x) or 0.5
    low_x, high_x = low_x - air, high_x + air
    for index, line in enumerate(figure.lines):
        if line.diagonal:
            ends = (max(low_x, low_y), min(high_x, high_y))
            axes.plot(ends, ends, zorder=1.5, **_reference(index))
        elif line.value is not None:
            axes.axhline(_value(line.value), zorder=1.5, **_reference(index))
    axes.set_xlim(low_x, high_x)
    axes.set_ylim(low_y, high_y)
    axes.xaxis.set_major_locator(_locator())
    axes.yaxis.set_major_locator(_locator())
    fractions = figure.percent and any(line.diagonal for line in figure.lines)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value, fractions))
    axes.yaxis.set_major_formatter(lambda value, _: _tick(value, figure.percent))
    axes.grid(color=COLOURS["grid"], linewidth=1)
    _axis_label(axes, labels, figure.x_label)
    return _place(axes, figure, labels, left=62, inner=250, upright=figure.y_label)


def _reference(index: int) -> dict[str, Any]:
    """Return how the reference line at `index` is drawn: each has its own dashes."""
    dashes = ((4, 3), (1.2, 1.8), (8, 3), (8, 2, 1.5, 2))[index % 4]
    return {"color": COLOURS["ref"], "linewidth": 1.3, "linestyle": (0, dashes)}


def _thinned(n: int) -> list[int]:
    """Return which of `n` points are drawn: all, or 200 evenly spaced with both ends."""
    if n <= _MOST_POINTS:
        return list(range(n))
    return sorted({round(i * (n - 1) / (_MOST_POINTS - 1)) for i in range(_MOST_POINTS)})


def _locator() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10])


def _axis_label(axes: "Axes", labels: _Labels, text: str) -> None:
    axes.set_xlabel(labels.stand_in(text, 70), fontsize=_FONT, color=COLOURS["ink"], labelpad=8)
    labels.tie(axes.xaxis.label, len(labels.shown) - 1)


def _length(shown: str) -> int:
    return sum(len(_narrow(letter)) for letter in shown)


def _place(axes: "Axes", figure: Figure, labels: _Labels, *, left: float, inner: float, upright: str = "") -> float:
    """Set the plot between its labels and its legend, all in points; return the height of the whole."""
    keys = _legend_entries(figure)
    wide = max((_length(shorten(clean(text), _LABEL)) for _, text in keys), default=0) * _CHARACTER + 44
    columns = max(1, min(len(keys), int((_WIDTH - 16) // wide)))
    legend = 18.0 * math.ceil(len(keys) / columns) + 8 if keys else 0.0
    title = 22.0 if upright else 0.0
    top, bottom = legend + title + 8, 46.0
    height = top + inner + bottom
    axes.set_position((left / _WIDTH, bottom / height, (_WIDTH - left - 18) / _WIDTH, inner / height))
    if upright:
        artist = axes.figure.text(
            8 / _WIDTH, 1 - (legend + 14) / height, "", fontsize=_FONT, color=COLOURS["ink"], va="center"
        )
        labels.add(artist, upright, 70)
    if keys:
        drawn = axes.figure.legend(
            [handle for handle, _ in keys],
            ["n" * min(len(clean(text)), _LABEL) for _, text in keys],
            loc="upper left",
            bbox_to_anchor=(0.0, 1.0),
            ncols=columns,
            frameon=False,
            fontsize=_FONT,
            labelcolor=COLOURS["ink"],
            borderaxespad=0.2,
            borderpad=0.3,
            handlelength=1.6,
            columnspacing=1.4,
        )
        for artist, (_, text) in zip(drawn.get_texts(), keys, strict=True):
            labels.add(artist, text)
    return height


def _legend_entries(figure: Figure) -> list[tuple[Any, str]]:
    """Return a key and its text for each series, where there are several or it has a name, and each line."""
    from matplotlib.lines import Line2D

    entries: list[tuple[Any, str]] = []
    for index, series in enumerate(figure.series):
        if not series.name:
            continue
        colour = COLOURS[f"s{index % 8}"]
        if figure.kind == "lines":
            dashes: Any = _DASHES[index % 4]
            marker = _MARKERS[index % 8] if len(series.x) <= 25 else "None"
            key = Line2D([], [], color=colour, linewidth=1.8, linestyle=dashes, marker=marker, markersize=5)
        else:
            marker = "s" if figure.kind == "bars" else _MARKERS[index % 8]
            key = Line2D([], [], color=colour, marker=marker, markersize=6.5, linestyle="none")
        entries.append((key, series.name))
    for index, line in enumerate(figure.lines):
        entries.append((Line2D([], [], **_reference(index)), line.label))
    return entries


class _Page:
    """Turns what Matplotlib wrote into an element that belongs on a page."""

    _kept: Final = frozenset(
        {
            "fill",
            "fill-opacity",
            "font-size",
            "opacity",
            "stroke",
            "stroke-dasharray",
            "stroke-dashoffset",
            "stroke-linecap",
            "stroke-linejoin",
            "stroke-opacity",
            "stroke-width",
            "text-anchor",
        }
    )
    _names: Final = {colour: name for name, colour in COLOURS.items()}

    def __init__(self, figure: Figure, labels: _Labels, prefix: str) -> None:
        self.figure = figure
        self.labels = labels
        self.prefix = prefix
        self._ids: dict[str, str] = {}

    def rewritten(self, text: str, height: float) -> str:
        ElementTree.register_namespace("", "http://www.w3.org/2000/svg")
        root = ElementTree.fromstring(text)  # noqa: S314 - Matplotlib wrote it a moment ago, from stand-ins
        for child in list(root):
            if child.tag.endswith(("metadata", "title")) or child.find(f"{_SVG}style") is not None:
                root.remove(child)
        self._label(root)
        self._number(root)
        self._plain(root)
        self._unwrap(root)
        root.attrib.clear()
        title, desc = f"{self.prefix}-title", f"{self.prefix}-desc"
        root.attrib.update(
            {
                "class": "figure",
                "viewBox": f"0 0 {_WIDTH:g} {height:g}",
                "role": "img",
                "aria-labelledby": f"{title} {desc}" if self.figure.alt else title,
                "stroke-linejoin": "round",
                "font-family": "system-ui, sans-serif",
            }
        )
        self._describe(root, "desc", desc, self.figure.alt)
        self._describe(root, "title", title, self.figure.title)
        return ElementTree.tostring(root, encoding="unicode")

    def _describe(self, root: ElementTree.Element, tag: str, id_: str, text: str) -> None:
        if text:
            element = ElementTree.Element(f"{_SVG}{tag}", {"id": id_})
            element.text = clean(text)
            root.insert(0, element)

    def _label(self, root: ElementTree.Element) -> None:
        """Put the true text where the stand-ins are; what had to be cut keeps its full text as a tool tip."""
        for group in root.iter(f"{_SVG}g"):
            found = re.fullmatch(r"label-(\d+)", group.get("id", ""))
            if not found:
                continue
            shown, full = self.labels.shown[int(found[1])], self.labels.full[int(found[1])]
            for text in group.iter(f"{_SVG}text"):
                text.text = shown
                if shown != full:
                    title = ElementTree.SubElement(text, f"{_SVG}title")
                    title.text = shorten(full, 400)

    def _number(self, root: ElementTree.Element) -> None:
        """Rename the ids that something refers to, and drop the others."""
        used: set[str] = set()
        for element in root.iter():
            link = element.get(_LINK, "")
            used |= {link.removeprefix("#")} if link else set()
            used |= set(re.findall(r"url\(#([^)]+)\)", element.get("clip-path", "")))
        for element in root.iter():
            old = element.attrib.pop("id", "")
            if old in used:
                self._ids[old] = f"{self.prefix}-{len(self._ids)}"
                element.set("id", self._ids[old])
        for element in root.iter():
            link = element.attrib.pop(_LINK, "")
            if link:
                element.set("href", f"#{self._ids[link[1:]]}")
            clip = element.get("clip-path")
            if clip:
                element.set("clip-path", f"url(#{self._ids[clip[5:-1]]})")

    def _plain(self, root: ElementTree.Element) -> None:
        """Turn style attributes into presentation attributes, name colours by class, and shorten numbers."""
        for element in root.iter():
            if element.tag in (f"{_SVG}title", f"{_SVG}desc"):
                continue
            style = element.attrib.pop("style", "")
            for part in filter(None, (part.strip() for part in style.split(";"))):
                name, _, value = (piece.strip() for piece in part.partition(":"))
                if name == "font":
                    size = re.search(r"([\d.]+)px", value)
                    name, value = "font-size", size[1] if size else f"{_FONT:g}"
                if name in self._kept:
                    element.set(name, value.removesuffix("px"))
            classes = [
                f"{short}-{self._names[colour]}"
                for attribute, short in (("fill", "f"), ("stroke", "k"))
                if (colour := element.get(attribute, "")) in self._names
            ]
            if classes:
                element.set("class", " ".join(classes))
            for name in ("d", "transform", "x", "y", "width", "height"):
                if name in element.attrib:
                    element.set(name, _short(element.attrib[name]))
            if element.get("transform", "").startswith("rotate(0 "):
                del element.attrib["transform"]
            if element.tag != f"{_SVG}text":
                element.text = None
            element.tail = None

    def _unwrap(self, parent: ElementTree.Element) -> None:
        """Remove groups and definitions that say nothing."""
        for child in list(parent):
            self._unwrap(child)
            if child.tag == f"{_SVG}g" and not child.attrib:
                at = list(parent).index(child)
                parent.remove(child)
                for offset, grandchild in enumerate(child):
                    parent.insert(at + offset, grandchild)
            elif child.tag == f"{_SVG}defs" and not len(child):
                parent.remove(child)


def _short(text: str) -> str:
    """Round the numbers in a path or a transform to two decimals, and put it on one line."""
    rounded = re.sub(r"-?\d+\.\d+|-0\b", lambda found: f"{round(float(found[0]), 2) + 0.0:g}", text)
    return " ".join(rounded.split())
