"""The page as a text: what it holds, what it leads to, what it cannot execute."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from orchestrator.decide.scenario_fit import scenario_fits
from orchestrator.decide.score_card import score_card
from orchestrator.decide.sweep_result import SweepResult, read_sweep
from orchestrator.report.language import LANGUAGES, Language, Words
from orchestrator.report.page import html_report
from orchestrator.report.page.page import embedded_json, marked
from orchestrator.store import SweepFolder
from tests.report.results import HOSTILE, hostile, in_language, many_cells, simulated_story

FIVE_MB = 5_000_000


class Elements(HTMLParser):
    """Tags with their attributes, ids, and links of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def values(self, name: str) -> list[str]:
        return [value or "" for _, own, value in self.attributes if own == name]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> SweepFolder:
    return simulated_story(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def result(story: SweepFolder) -> SweepResult:
    return read_sweep(story)


def without_scripts(html: str) -> str:
    return re.sub(r"<script.*?</script>|<style.*?</style>", "", html, flags=re.DOTALL)


def embedded(html: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert found is not None
    return dict(json.loads(found.group(1)))


def test_a_sweep_writes_the_page_and_the_markdown(story: SweepFolder) -> None:
    assert (story.path / "report.html").exists()
    assert (story.path / "report.md").exists()
    assert in_language(story, "zh").name == "report.zh.html"
    assert (story.path / "report.zh.md").exists()


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_stands_first_and_simulated_is_said(
    result: SweepResult, language: Language
) -> None:
    words = Words(language)
    text = without_scripts(html_report(result, words))
    assert f'lang="{words.tag}"' in text
    assert words("report.simulated") in text
    order = [
        text.index(f'id="{name}"')
        for name in ("verdict", "score-card", "effect", "cells", "trials")
    ]
    assert order == sorted(order)


def test_every_trial_is_reached_and_its_files_exist(
    story: SweepFolder, result: SweepResult
) -> None:
    """First click: from a number to its trial. Second: to the record beside the page."""
    page = Elements((story.path / "report.html").read_text(encoding="utf-8"))
    ids, links = set(page.values("id")), page.values("href")
    for trial in result.every:
        assert f"t-{trial.trial.id}" in ids
        assert links.count(f"#t-{trial.trial.id}") >= 2  # its speedup and its records
        assert f"{trial.trial.id}/blocks/000-A.json" in links
    for link in links:
        if link.startswith("#"):
            assert link[1:] in ids, link
        else:
            assert (story.path / link).exists(), link


def test_nothing_is_loaded_from_elsewhere(result: SweepResult) -> None:
    page = Elements(html_report(result, Words("en")))
    assert not {"link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert page.values("src") == []
    assert not [link for link in page.values("href") if re.match(r"[a-z]+:|//", link)]
    (policy,) = [v for v in page.values("content") if v.startswith("default-src")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_from_outside_stays_text(result: SweepResult, language: Language) -> None:
    plain, attacked = (Elements(html_report(r, Words(language))) for r in (result, hostile(result)))
    assert attacked.tags.count("script") == plain.tags.count("script")
    assert "img" not in attacked.tags
    assert not [name for _, name, _ in attacked.attributes if name.startswith("on")]
    html = html_report(hostile(result), Words(language))
    assert HOSTILE not in html
    assert "49" not in re.findall(r"<h1>.*?</h1>", html, re.DOTALL)[0]


def test_embedded_data_cannot_end_its_element() -> None:
    text = str(embedded_json({"a": "</script><!--", "b": "\u2028 & <b>"}))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--", "b": "\u2028 & <b>"}


def test_marks_of_our_own_sentences_do_not_open_a_way_in() -> None:
    assert str(marked("a *b* `<c>` <d>")) == "a <em>b</em> <code>&lt;c&gt;</code> &lt;d&gt;"


def test_downloads_hold_every_trial_and_pair(result: SweepResult) -> None:
    data = embedded(html_report(result, Words("en")))
    cells, pairs = data["cells"], data["pairs"]
    assert isinstance(cells, dict)
    assert isinstance(pairs, dict)
    column = cells["columns"].index("speedup_throughput")
    assert [row[0] for row in cells["rows"]] == [trial.trial.id for trial in result.every]
    for row, trial in zip(cells["rows"], result.every, strict=True):
        assert row[column] == pytest.approx(result.decision(trial).speedup, rel=1e-4)
    assert len(pairs["rows"]) == sum(len(trial.pairs) for trial in result.every)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_score_card_and_the_scenarios_are_whole(
    result: SweepResult, language: Language
) -> None:
    words = Words(language)
    html = html_report(result, words)
    for dimension in score_card(result):
        assert words(f"dimension.{dimension.name}") in html
    fits = scenario_fits(result)
    assert len(fits) == 5
    for fit in fits:
        assert getattr(fit.profile.title, language) in html


def test_what_was_not_recorded_is_said(result: SweepResult) -> None:
    text = without_scripts(html_report(result, Words("en")))
    assert "does not say what its steps spend their time on" in text
    assert "No suite was run" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_two_hundred_trials_stay_below_five_megabytes(
    result: SweepResult, language: Language
) -> None:
    html = html_report(many_cells(result, 200), Words(language))
    assert len(html.encode()) <= FIVE_MB
    assert html.count('class="trial"') == 202


def test_the_chinese_page_has_no_english_sentence(result: SweepResult) -> None:
    text = re.sub(r"<(code|pre|dd|a)\b.*?</\1>|<[^>]*>", "\n", without_scripts(
        html_report(result, Words("zh"))), flags=re.DOTALL)  # fmt: skip
    assert re.findall(r"[A-Za-z']{2,}(?: [A-Za-z']{2,}){2,}", text) == []


def test_an_empty_sweep_has_a_page(tmp_path: Path, story: SweepFolder) -> None:
    """Before the first trial ends: nothing measured, and the page says so."""
    manifest = story.manifest()
    folder = SweepFolder(tmp_path / "story")
    folder.begin(manifest)
    folder.save_trials(list(story.trials()))
    html = html_report(read_sweep(folder), Words("en"))
    assert "Nothing valid was measured" in html
