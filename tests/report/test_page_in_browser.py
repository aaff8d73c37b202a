"""The page in a real browser: headless Chromium, at a phone's width, a laptop's and a desk's.

Skipped, and saying so, where Chromium or Playwright is missing: Debian `apt-get install chromium`,
or CHROMIUM=/path/to/chromium.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.decide.sweep_result import read_sweep
from orchestrator.report.language import LANGUAGES, Language, Words
from orchestrator.report.page import html_report
from orchestrator.store import SweepFolder
from tests.report.results import hostile, in_language, many_cells, simulated_story

sync_api = pytest.importorskip(
    "playwright.sync_api",
    reason="the page is NOT tested: Playwright is missing (pip install -e .[dev])",
)
axe_runner = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="accessibility is NOT tested: axe is missing"
)
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="the page is NOT tested: no Chromium (apt-get install chromium)"
    ),
]
WIDTHS = (390, 1280, 1920)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    """A simulated sweep whose folder also holds a page of 40 cells, so that plots are many."""
    folder = simulated_story(tmp_path_factory.mktemp("browser"))
    in_language(folder, "zh")
    result = read_sweep(folder)
    for language in LANGUAGES:
        many = html_report(many_cells(result, 40), Words(language))
        (folder.path / f"many.{language}.html").write_text(many, encoding="utf-8")
    attacked = html_report(hostile(result), Words("en"))
    (folder.path / "hostile.html").write_text(attacked, encoding="utf-8")
    return folder


class Opened:
    """A page, everything it complained of, and every address it asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.page = browser.new_page(
            viewport={"width": width, "height": 900}, color_scheme=scheme, accept_downloads=True
        )
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(path.as_uri())
        self.draw_everything()

    def draw_everything(self) -> None:
        """Scroll through, so that every plot comes into view, and open all details."""
        self.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        self.page.evaluate(
            "document.querySelectorAll('.panels .panel').forEach(p => p.width || p.redraw())"
        )
        self.page.wait_for_timeout(100)


@pytest.fixture
def opened(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Opens pages and closes them again."""
    pages: list[Opened] = []

    def open_page(path: Path, width: int = 1280, scheme: str = "light") -> Opened:
        pages.append(Opened(browser, path, width, scheme))
        return pages[-1]

    yield open_page
    for one in pages:
        one.page.close()


def name_of(language: Language) -> str:
    return "report.html" if language == "en" else "report.zh.html"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_complaint_no_network_no_overflow(
    opened: Any, story: SweepFolder, language: Language, width: int
) -> None:
    for name in (name_of(language), f"many.{language}.html"):
        one = opened(story.path / name, width)
        assert one.complaints == []
        assert all(url.startswith("file:") for url in one.requests)
        wide = one.page.evaluate(
            """() => [...document.querySelectorAll('main *, header *')].filter(e => {
                 const inner = e.closest('.scroll, pre, svg');
                 return e.getBoundingClientRect().right > innerWidth + 1 && (!inner || inner === e);
               }).map(e => e.outerHTML.slice(0, 120))"""
        )
        assert wide == []
        assert one.page.evaluate("document.documentElement.scrollWidth") <= width
        assert one.page.locator(".panels .panel svg").count() > 10


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_axe_has_no_serious_finding(
    opened: Any, story: SweepFolder, language: Language, scheme: str
) -> None:
    one = opened(story.path / name_of(language), 1280, scheme)
    found = axe_runner.Axe().run(one.page).response["violations"]
    serious = [
        (v["id"], v["impact"], [n["html"][:160] for n in v["nodes"][:3]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_text_from_outside_is_not_executed(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "hostile.html")
    assert one.page.evaluate("window.hacked") is None
    assert one.complaints == []
    assert one.page.locator("main img").count() == 0


def test_a_number_leads_to_its_trial_and_from_there_to_a_file(
    opened: Any, story: SweepFolder
) -> None:
    one = opened(story.path / "report.html")
    one.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    one.page.locator("#cell-table tbody td.speed a").nth(1).click()
    trial = one.page.locator("details.trial[open]")
    assert trial.count() == 1
    assert trial.locator("svg").count() >= 4  # its pairs, and three latencies
    with one.page.expect_navigation():
        trial.locator(".files a").first.click()
    assert one.page.url.endswith("/trial.json")


def test_points_of_plots_are_links_with_names(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "report.html")
    links = one.page.locator("#over-load svg a")
    assert links.count() == 4
    assert links.first.get_attribute("aria-label")
    links.first.focus()
    one.page.keyboard.press("Enter")
    assert one.page.evaluate("location.hash").startswith("#t-")


def test_the_table_sorts_and_filters_from_the_keyboard(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "many.en.html")
    heading = one.page.locator("#cell-table th", has_text="speedup")
    heading.locator("button").focus()
    one.page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "ascending"
    speeds = "[...document.querySelectorAll('td.speed')].map(c => parseFloat(c.dataset.sort))"
    values = one.page.evaluate(speeds)
    assert values == sorted(values)
    one.page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    one.page.fill("#filter", "eagle")
    shown = one.page.locator("#cell-table tbody tr:visible")
    assert shown.count() == 20
    assert one.page.locator("#shown").inner_text().startswith("20 of ")
    one.page.fill("#filter", "no such cell")
    assert shown.count() == 0
    assert one.page.locator("#none-shown").is_visible()


def test_another_speedup_can_be_drawn(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "report.html")
    label = "#over-load svg a"
    before = one.page.locator(label).first.get_attribute("aria-label")
    one.page.select_option("#metric", "speedup_tpot")
    one.draw_everything()
    assert one.page.locator(label).first.get_attribute("aria-label") != before


def test_downloads(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "report.html")

    def download(what: str) -> str:
        with one.page.expect_download() as started:
            one.page.click(f"[data-download={what}]")
        return Path(started.value.path()).read_text(encoding="utf-8")

    trials = [trial.id for trial in story.trials()]
    assert {row["trial_id"] for row in csv.DictReader(io.StringIO(download("cells")))} == {*trials}
    assert {row["trial_id"] for row in csv.DictReader(io.StringIO(download("pairs")))} == {*trials}
    assert set(json.loads(download("all"))["trials"]) == {*trials}
    assert one.complaints == []


def test_dark_and_light_by_hand(opened: Any, story: SweepFolder) -> None:
    one = opened(story.path / "report.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    before = one.page.evaluate(ground)
    one.page.click("#theme")
    assert one.page.evaluate(ground) != before
    assert one.page.locator("#theme").get_attribute("aria-pressed") == "true"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_words_in_plots_are_told_from_their_ground(
    opened: Any, story: SweepFolder, scheme: str
) -> None:
    """axe looks at no text inside SVG."""
    one = opened(story.path / "report.html", 1280, scheme)
    fills = one.page.evaluate(
        "[...new Set([...document.querySelectorAll('.plot text')]"
        ".map(t => getComputedStyle(t).fill))]"
    )
    ground = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert fills
    for fill in fills:
        assert contrast(fill, ground) >= 4.5, (fill, ground)


def contrast(one: str, other: str) -> float:
    """Of two `rgb(r, g, b)`. Source: WCAG 2.2, relative luminance and contrast ratio."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def test_it_prints_with_its_plots(opened: Any, story: SweepFolder, browser: Any) -> None:
    """Plots that were never scrolled to are drawn for the printer."""
    page = browser.new_page()
    page.goto((story.path / "report.html").as_uri())
    undrawn = "[...document.querySelectorAll('.panels .panel')].filter(p => !p.width).length"
    assert page.evaluate(undrawn) > 0
    assert page.pdf()[:5] == b"%PDF-"
    assert page.evaluate(undrawn) == 0
    page.close()
