"""The live page in a real browser, on a running switch.

Skipped, and saying so, where Chromium or Playwright is missing: Debian `apt-get install chromium`,
or CHROMIUM=/path/to/chromium.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.serving.switch.page import live_page
from orchestrator.switch.guarding import Breach, Figure, GuardView
from orchestrator.switch.observation import ArmName, Observation
from tests.serving.switch.room import OPERATOR, Engine, Switch, ask, switch, wait_for

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
NASTY = "<img src=x onerror=document.title='broken'>"


def breached() -> GuardView:
    """A view with everything that a page may have to show, hostile names among it."""
    figures = []
    arms: dict[ArmName, float] = {"baseline": 1.0, "speculative": 0.7}
    for arm, times in arms.items():
        for name, value in (("ttft_p50_s", 0.15), ("tpot_p95_s", 0.045), ("e2e_p95_s", 7.2)):
            seen = value * times
            limit = 0.03 if (arm, name) == ("speculative", "tpot_p95_s") else None
            figures.append(Figure(name, arm, None, seen, seen * 0.9, seen * 1.15, limit, 412))
        figures.append(Figure("error_rate", arm, None, 0.004, 0.001, 0.02, 0.02, 412))
    for category, rate in ((None, 0.58), ("code", 0.71), ("fiction", 0.18), (NASTY, 0.5)):
        figures.append(
            Figure("acceptance_rate", "speculative", category, rate, rate - 0.03, None, 0.3, 90)
        )
    figures.append(Figure("evidence_acceptance_floor", None, "fiction", 1.2, None, None, 1.0, 90))
    figures.append(Figure("evidence_slower_ttft", None, None, 0.6, None, None, 1.0, 90))
    evidence = {"share": 0.82, "allowed": 0.7, "samples": 64, "acceptance_rate": 0.18,
                "began_s": 1_790_000_000.0}  # fmt: skip
    reason = Breach(1.79e9, "acceptance_floor", "acceptance is low", "fiction", evidence)
    return GuardView(
        "breached", False, (reason,), tuple(figures), 1.79e9,
        blocked_categories={"fiction": 0.0}, probe_at_s=1.79e9 + 300,
    )  # fmt: skip


class Told:
    """A guard that says what it is told to say."""

    def __init__(self) -> None:
        self.view = GuardView("healthy", True, since_s=time.time())

    def observe(self, seen: Observation) -> None:
        """Nothing is kept."""

    def evaluate(self, now_s: float) -> GuardView:
        return self.view

    def snapshot(self) -> dict[str, Any]:
        return {}

    def restore(self, snapshot: Any) -> None:
        """There is nothing to restore."""


@pytest.fixture(scope="module")
def guard() -> Told:
    return Told()


@pytest.fixture(scope="module")
def front(arms: dict[str, Engine], folder: Path, guard: Told) -> Iterator[Switch]:
    with switch(folder / "page", guard) as one:
        yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """The page at the door, everything it complained of, and every address it asked."""

    def __init__(self, browser: Any, port: int, width: int, scheme: str) -> None:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, locale="en-GB"
        )
        self.page = context.new_page()
        self.complaints: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.goto(f"http://127.0.0.1:{port}/")

    def enter(self) -> Opened:
        """By the keyboard alone: the field has the focus."""
        self.page.wait_for_function("document.activeElement.id === 'token'")
        self.page.keyboard.type(OPERATOR)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector("#room:not([hidden])")
        return self


def test_a_guard_that_breaks_shows_within_one_look(
    browser: Any, front: Switch, guard: Told
) -> None:
    guard.view = GuardView("healthy", True, since_s=time.time())
    wait_for(lambda: front.keeper.verdict.share == 1.0)
    one = Opened(browser, front.admin_port, 1280, "light").enter()
    assert one.page.text_content("#state") == "healthy"
    assert "100.0 %" in one.page.text_content("#legend")

    guard.view = breached()
    one.page.wait_for_selector("#state.breached")

    assert "acceptance is low; since about" in one.page.text_content("#reasons")
    one.page.wait_for_function("document.querySelector('#legend').textContent.includes('0.0 %')")
    assert "guard" in one.page.text_content("#facts")
    assert "fiction" in one.page.text_content("#facts")
    over = one.page.locator("td.over").all_text_contents()
    assert [text.split(" ")[0] for text in over] == ["31.5", "0.1800.150"]
    one.page.wait_for_function("document.querySelector('#events').textContent.includes('fallback')")
    assert NASTY in one.page.text_content("#acceptance")
    assert one.page.locator("img").count() == 0
    assert one.complaints == []
    assert {url.split("/", 3)[2] for url in one.asked} == {f"127.0.0.1:{front.admin_port}"}
    one.page.keyboard.press("Tab")
    one.page.click("#language")
    assert one.page.text_content("#state") == "越限"
    assert "接受率 0.18 低于下限 0.30" in one.page.text_content("#reasons")
    one.page.context.close()


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (390, "dark"), (1280, "dark")])
def test_it_fits_and_axe_has_no_serious_finding(
    browser: Any, front: Switch, guard: Told, width: int, scheme: str
) -> None:
    guard.view = breached()
    one = Opened(browser, front.admin_port, width, scheme).enter()
    one.page.wait_for_selector("#state.breached")
    assert one.page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe_runner.Axe().run(one.page).response["violations"]
    serious = [
        (v["id"], [n["html"][:160] for n in v["nodes"][:3]])
        for v in found
        if v["impact"] in ("serious", "critical")
    ]
    shots = os.environ.get("SCREENSHOTS")
    if shots:
        one.page.screenshot(path=f"{shots}/switch-{width}-{scheme}.png", full_page=True)
    assert serious == []
    one.page.context.close()


def test_a_wrong_token_stays_at_the_door(browser: Any, front: Switch) -> None:
    one = Opened(browser, front.admin_port, 390, "light")
    one.page.fill("#token", "sk-switch-" + "cd" * 32)
    one.page.keyboard.press("Enter")
    one.page.wait_for_function("document.querySelector('#wrong').textContent !== ''")
    assert one.page.is_hidden("#room")
    one.page.context.close()


def test_the_page_allows_its_own_script_alone(front: Switch) -> None:
    got = ask(front.admin_port, method="GET", path="/")
    policy = got.headers["content-security-policy"]
    assert got.status == 200 and got.body.decode() == live_page().html
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
