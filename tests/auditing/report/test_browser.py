"""The page in a real browser: silent, offline, sortable by mouse and by keyboard, whole without scripts."""

import base64
import json
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

from aboveboard.core.report import renderers

_CHROMIUM = shutil.which("chromium")
_DRIVER = shutil.which("chromedriver")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (_CHROMIUM and _DRIVER), reason="needs a browser: install the Debian packages chromium and chromium-driver"
    ),
]

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--force-prefers-reduced-motion",
    "--window-size=1280,900",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = _CHROMIUM
    for option in (*_OPTIONS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture
def address(report, folder):
    path: Path = folder / "index.html"
    report.to_html(path)
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    """The report, freshly opened, with the logs of before thrown away."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(address)
    return browser


@contextmanager
def _screen(browser, width, height=800, scheme="light"):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def _requests(browser):
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            yield message["params"]["request"]["url"]


def _column(browser, table, at):
    return browser.execute_script(
        "return Array.from(arguments[0].tBodies[0].rows, r => r.cells[arguments[1]].textContent)", table, at
    )


def _rates(browser):
    """The table of rates, with its evidence unfolded."""
    return browser.execute_script(
        "return Array.from(document.querySelectorAll('table.sortable'))"
        ".find(t => t.caption.textContent === 'Selection rate by sex')"
    )


def test_the_console_is_silent_and_nothing_is_requested_but_the_page(opened, address):
    assert opened.get_log("browser") == []
    requests = list(_requests(opened))
    assert requests[0] == address
    assert all(url.startswith("data:") for url in requests[1:])
    assert opened.title.startswith("1 finding fails")


def test_hostile_names_leave_the_console_silent_and_run_nothing(browser, make_report, hostile_names, folder):
    for name in ("script", "attribute", "single-quote", "closing-style", "comment", "cdata", "lone-surrogate"):
        path = folder / f"{name}.html"
        path.write_text(renderers["html"](make_report(hostile_names[name])), encoding="utf-8")
        browser.get_log("browser")
        browser.get(path.as_uri())  # an alert would make the next call fail
        assert browser.get_log("browser") == []
        assert browser.execute_script("return document.scripts.length + document.styleSheets.length") == 2


def test_the_inline_style_is_in_force(opened):
    assert opened.execute_script("return getComputedStyle(document.querySelector('.banner')).display") == "flex"


def test_a_click_sorts_a_table_and_another_turns_it_round(opened):
    table = _rates(opened)
    button = table.find_elements("css selector", "thead button")[2]
    header = table.find_elements("css selector", "thead th")[2]
    before = _column(opened, table, 2)
    button.click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert _column(opened, table, 2) == ["8.1\u00a0%", "26.0\u00a0%", "suppressed", ""]
    button.click()
    assert header.get_attribute("aria-sort") == "descending"
    assert _column(opened, table, 2) == ["26.0\u00a0%", "8.1\u00a0%", "suppressed", ""]
    assert sorted(before) == sorted(_column(opened, table, 2))


def test_the_keyboard_sorts_a_table_too(opened):
    from selenium.webdriver.common.keys import Keys

    table = _rates(opened)
    name, count = table.find_elements("css selector", "thead button")[:2]
    opened.execute_script("arguments[0].focus()", name)
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert _column(opened, table, 0) == ["(missing)", "Female", "Male", "Other"]
    opened.switch_to.active_element.send_keys(Keys.TAB)
    assert opened.switch_to.active_element == count
    opened.switch_to.active_element.send_keys(Keys.SPACE)
    assert _column(opened, table, 1) == ["12", "5,421", "10,860", "suppressed"]
    sorted_ = [header.get_attribute("aria-sort") for header in table.find_elements("css selector", "thead th")]
    assert sorted_ == [None, "ascending", None, None, None]


def test_the_first_stop_of_the_keyboard_skips_to_the_report(opened):
    from selenium.webdriver.common.keys import Keys

    opened.find_element("tag name", "body").send_keys(Keys.TAB)
    assert opened.switch_to.active_element.text == "Skip to the report"
    opened.switch_to.active_element.send_keys(Keys.ENTER)
    assert opened.execute_script("return document.activeElement.id") == "main"


def test_a_remedy_link_leads_to_the_remedy(opened):
    opened.find_element("css selector", "#summary").find_element("link text", "RandomizedFairClassifier").click()
    place = opened.current_url.rpartition("#")[2]
    target = opened.find_element("id", place)
    assert target.find_element("tag name", "h3").text.startswith("RandomizedFairClassifier")
    assert opened.execute_async_script(
        "const done = arguments[1]; const look = (left) => {"
        "const box = arguments[0].getBoundingClientRect();"
        "if (box.top >= 0 && box.top < innerHeight) done(true);"
        "else if (left) setTimeout(look, 50, left - 1); else done(false); }; look(60)",
        target,
    )


def test_a_link_to_folded_evidence_unfolds_it(opened):
    folded = opened.execute_script(
        "const d = document.querySelector('details.fine'); d.open = false;"
        "location.hash = d.querySelector('article').id; return d"
    )
    assert opened.execute_async_script(
        "const done = arguments[1]; setTimeout(() => done(arguments[0].open), 300)", folded
    )


def test_without_scripts_the_page_says_the_same(browser, address):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(address)
        assert browser.find_element("tag name", "h1").text == "1 finding fails"
        assert browser.find_elements("css selector", "thead button") == []
        summary = browser.find_elements("css selector", "details:not([open]) > summary")[0]
        details = summary.find_element("xpath", "..")
        summary.click()
        assert details.get_attribute("open") is not None
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


@pytest.mark.parametrize("width", [360, 390, 768, 1280])
@pytest.mark.parametrize("name", ["Female", "long-word", "long", "wide"])
def test_no_screen_scrolls_sideways(browser, make_report, hostile_names, folder, width, name):
    path = folder / f"wide-{name}.html"
    path.write_text(renderers["html"](make_report(hostile_names.get(name, name))), encoding="utf-8")
    with _screen(browser, width):
        browser.get(path.as_uri())
        browser.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_dark_and_light_pages_differ_and_follow_the_reader(browser, address):
    colours = {}
    for scheme in ("light", "dark"):
        with _screen(browser, 1280, scheme=scheme):
            browser.get(address)
            colours[scheme] = browser.execute_script(
                "const of = (q, p) => getComputedStyle(document.querySelector(q))[p];"
                "return [of('body', 'backgroundColor'), of('body', 'color'), of('svg.figure .k-s0', 'stroke')]"
            )
    assert all(a != b for a, b in zip(colours["light"], colours["dark"], strict=True))


def test_the_page_prints_with_the_evidence_of_all_but_what_passed(opened):
    pdf = opened.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(pdf).startswith(b"%PDF-")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        hidden = opened.execute_script(
            "return Array.from(document.querySelectorAll('article, table, svg.figure'))"
            ".filter(e => e.getBoundingClientRect().height === 0)"
            ".map(e => e.closest('article').className)"
        )
        assert set(hidden) <= {"card finding is-ok", "card finding is-note"}
        assert opened.execute_script("return getComputedStyle(document.querySelector('.contents')).display") == "none"
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
