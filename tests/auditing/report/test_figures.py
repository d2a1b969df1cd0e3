"""A figure becomes one SVG element that a strict page can hold."""

import locale
import re
import threading
import warnings
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from aboveboard.auditing.report.figures import COLOURS, draw
from aboveboard.auditing.report.view import clean, shorten
from aboveboard.core import Figure, Line, Series

_SVG = "{http://www.w3.org/2000/svg}"
KINDS = ("intervals", "lines", "bars")


def _figure(kind, name="A", n=3, *, y=None, percent=False):
    x = tuple(f"{name} {i}" if i else name for i in range(n)) if kind != "lines" else tuple(i / 2 for i in range(n))
    y = tuple(i / 10 for i in range(n)) if y is None else y
    bounds = tuple(None if v is None else v - 0.05 for v in y), tuple(None if v is None else v + 0.05 for v in y)
    lines = (Line(name, 0.2), Line(name, diagonal=kind == "lines", value=None if kind == "lines" else 0.3))
    return Figure(kind, name, name, name, (Series(name, x, y, *bounds), Series("B", x, y)), lines, name, percent)


def _texts(svg):
    return ["".join(text.text or "") for text in ElementTree.fromstring(svg).iter(f"{_SVG}text")]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_figure_gives_the_same_bytes_whatever_the_settings(kind):
    first = draw(_figure(kind))
    with mpl.rc_context({"axes.grid": True, "font.size": 30, "svg.fonttype": "path", "axes.facecolor": "red"}):
        assert draw(_figure(kind)) == first


def test_figures_can_be_drawn_by_several_threads_at_once():
    wanted = {kind: draw(_figure(kind)) for kind in KINDS}
    got = []

    def work(kind):
        got.append(draw(_figure(kind)) == wanted[kind])

    threads = [threading.Thread(target=work, args=(kind,)) for kind in KINDS * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [True] * 9


def test_drawing_leaves_the_settings_of_matplotlib_as_they_were():
    before = dict(mpl.rcParams)
    draw(_figure("bars"))
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_in_a_figure_breaks_a_strict_content_security_policy(kind):
    root = ElementTree.fromstring(draw(_figure(kind)))
    for element in root.iter():
        assert element.tag in {
            f"{_SVG}{tag}" for tag in ("svg", "g", "defs", "path", "use", "text", "title", "desc", "clipPath", "rect")
        }
        assert "style" not in element.attrib
        assert not any(name.startswith("on") for name in element.attrib)
        for name in ("href", "{http://www.w3.org/1999/xlink}href"):
            assert element.get(name, "#").startswith("#")


@pytest.mark.parametrize("kind", KINDS)
def test_every_reference_in_a_figure_leads_to_an_id_of_its_own(kind):
    svg = draw(_figure(kind), prefix="one")
    ids = re.findall(r' id="([^"]+)"', svg)
    assert len(ids) == len(set(ids))
    assert all(name.startswith("one-") for name in ids)
    used = re.findall(r'href="#([^"]+)"', svg) + re.findall(r"url\(#([^)]+)\)", svg)
    assert set(used) <= set(ids)
    assert not set(ids) & set(re.findall(r' id="([^"]+)"', draw(_figure(kind), prefix="two")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_tells_readers_who_cannot_see_it_what_it_shows(kind):
    root = ElementTree.fromstring(draw(_figure(kind), prefix="f"))
    assert root.get("role") == "img"
    names = root.get("aria-labelledby").split()
    said = {element.get("id"): element.text for element in root if element.tag in (f"{_SVG}title", f"{_SVG}desc")}
    assert [said[name] for name in names] == ["A", "A"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_colour_of_a_figure_has_a_class_that_dark_pages_repaint(kind):
    for element in ElementTree.fromstring(draw(_figure(kind))).iter():
        for attribute, short in (("fill", "f"), ("stroke", "k")):
            colour = element.get(attribute, "none")
            if colour != "none":
                assert colour in COLOURS.values()
                name = next(name for name, value in COLOURS.items() if value == colour)
                assert f"{short}-{name}" in element.get("class").split()


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_names_are_shown_as_they_are_and_draw_without_a_warning(kind, hostile_names):
    plain = {element.tag for element in ElementTree.fromstring(draw(_figure(kind))).iter()}
    names = list(hostile_names.values())
    for some in (names[:20], names[20:40], names[40:]):
        x = tuple(some) if kind != "lines" else tuple(range(len(some)))
        series = tuple(Series(name, x, (0.5,) * len(some)) for name in some[:8])
        for name in some[:3]:
            figure = Figure(kind, name, name, name, series, tuple(Line(name, 0.2) for name in some), name)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                svg = draw(figure)
            root = ElementTree.fromstring(svg.encode("utf-8"))
            assert {element.tag for element in root.iter()} <= plain
            assert root.find(f"{_SVG}title") is None or root.find(f"{_SVG}title").text == clean(name)
            shown = {text.text for text in root.iter(f"{_SVG}text")}
            assert {shorten(clean(name), 32) for name in some} <= shown | {None, ""}


def test_a_label_is_never_read_as_mathematics():
    assert r"$\alpha$ and $x$" in _texts(draw(_figure("bars", r"$\alpha$ and $x$")))


def test_a_long_label_is_cut_and_keeps_its_full_text_as_a_tool_tip():
    name = "a very long name " * 6
    svg = ElementTree.fromstring(draw(_figure("bars", name)))
    cut = [text for text in svg.iter(f"{_SVG}text") if (text.text or "").endswith("…")]
    assert cut
    assert all(len(text.text) <= 70 for text in cut)
    assert name in {text.find(f"{_SVG}title").text for text in cut}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("series", [(), (Series("", (), ()),)])
def test_a_figure_without_values_says_so(kind, series):
    assert "No values to show" in _texts(draw(Figure(kind, "T", "x", "y", series)))


@pytest.mark.parametrize("kind", KINDS)
def test_missing_values_are_left_out(kind):
    with_gap = draw(_figure(kind, y=(0.1, None, 0.3)))
    assert with_gap != draw(_figure(kind, y=(0.1, 0.2, 0.3)))
    assert "nan" not in with_gap.lower().replace("domain", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0.0, 1.0, -2.5, 1e12, 1e-12])
def test_a_single_point_can_be_drawn(kind, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = ("only",) if kind != "lines" else (value,)
        assert draw(Figure(kind, "T", "x", "y", (Series("s", x, (value,)),)))


def test_a_figure_stays_small_whatever_its_data():
    many = Figure("intervals", "T", "x", "y", (Series("s", tuple(map(str, range(5000))), (0.5,) * 5000),))
    long = Figure("lines", "T", "x", "y", (Series("s", tuple(range(100_000)), tuple(i % 7 for i in range(100_000))),))
    assert len(draw(many)) < 40_000
    assert len(draw(long)) < 40_000


def test_positions_in_a_forest_plot_are_proportional_to_the_values():
    figure = Figure("intervals", "T", "x", "y", (Series("", ("a", "b", "c"), (0.0, 1.0, 4.0)),))
    marks = list(ElementTree.fromstring(draw(figure)).iter(f"{_SVG}use"))
    x = [float(mark.get("x")) for mark in marks[:3]]
    assert (x[2] - x[0]) / (x[1] - x[0]) == pytest.approx(4.0, abs=0.01)
    y = [float(mark.get("y")) for mark in marks[:3]]
    assert y[0] < y[1] < y[2]


def test_the_locale_does_not_change_a_figure():
    before = locale.setlocale(locale.LC_NUMERIC)
    first = draw(_figure("lines", percent=True))
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
        try:
            locale.setlocale(locale.LC_NUMERIC, name)
        except locale.Error:
            continue
        assert draw(_figure("lines", percent=True)) == first
    locale.setlocale(locale.LC_NUMERIC, before)
