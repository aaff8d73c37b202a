"""The matrix and its findings, in both languages."""

from __future__ import annotations

import pytest

from orchestrator.report.language import LANGUAGES, Language, Words
from orchestrator.report.suite_text import status_text
from orchestrator.run.suites.record import CaseStatus


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_status_has_a_word(language: Language) -> None:
    shown = {status_text(status, Words(language)) for status in CaseStatus}
    assert len(shown) == len(CaseStatus)


def test_in_english_a_status_is_called_what_it_is() -> None:
    assert all(status_text(status) == status.value for status in CaseStatus)
