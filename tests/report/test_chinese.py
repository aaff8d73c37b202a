"""Every sentence of a Chinese report is Chinese, whatever happened in the sweep."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.report.language import Words
from orchestrator.report.markdown import markdown_report
from tests.sweep.world import run_story, write_experiment

ENGINES = {
    "healthy": "{profile: fast, acceptance: 0.8}",
    "never starts": "{profile: fast, speculative: {faults: {start_failure: start_failed}}}",
    "out of memory": "{profile: fast, speculative: {faults: {start_failure: out_of_memory}}}",
    "crashes": "{profile: fast, speculative: {faults: {crash_at_s: 0.05}}}",
    "accepts nothing": "{profile: fast, acceptance: 0.0}",
}


def english_sentences(markdown: str) -> list[str]:
    """Runs of three English words outside of code, logs and what engines said of themselves."""
    prose = re.sub(r"```.*?```|`[^`]*`", "", markdown, flags=re.DOTALL)
    return re.findall(r"[A-Za-z']{2,}(?: [A-Za-z']{2,}){2,}", prose)


@pytest.mark.parametrize("engines", ENGINES)
def test_no_english_sentence_is_left(engines: str, tmp_path: Path) -> None:
    file = write_experiment(tmp_path, simulated=ENGINES[engines], lengths="[2, 4, 30]")
    result = run_story(file, tmp_path / "r").result
    chinese = markdown_report(result, Words("zh"))
    quoted = [str(t.outcome.cause) for t in result.every if t.outcome is not None and t.failed]
    left = [s for s in english_sentences(chinese) if not any(s in cause for cause in quoted)]
    assert left == []
    assert "## 结论" in chinese
    assert "模拟结果" in chinese.splitlines()[0]
