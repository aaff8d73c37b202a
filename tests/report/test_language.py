"""The catalogue: complete in every language, and able to say again what earlier stages said."""

from __future__ import annotations

import re
import string
from importlib.resources import files
from pathlib import Path

import pytest

import orchestrator
from orchestrator.analyse.losslessness import Losslessness
from orchestrator.plan import arms
from orchestrator.plan.plan import Notice
from orchestrator.report.language import LANGUAGES, Language, Words, catalogue


def base(key: str) -> str:
    """`pairs.one` and `pairs.other` are one text."""
    return re.sub(r"\.(one|other)$", "", key)


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_key(language: Language) -> None:
    assert {base(key) for key in catalogue(language)} == {base(key) for key in catalogue("en")}


@pytest.mark.parametrize("language", LANGUAGES)
def test_texts_name_the_same_values_in_every_language(language: Language) -> None:
    english = catalogue("en")
    for key, text in catalogue(language).items():
        known = set().union(*(fields(t) for k, t in english.items() if base(k) == base(key)))
        assert fields(text) <= known, key
        if not key.endswith(".one"):
            assert fields(text) >= known - {"count"}, key


def test_no_chinese_text_is_left_in_english() -> None:
    """Words that stay: names, units, and what METRICS calls by a Latin name."""
    for key, text in catalogue("zh").items():
        without_values = re.sub(r"\{[^}]*\}|`[^`]*`|<[^>]*>", "", text)
        words = re.findall(r"[A-Za-z]{4,}", without_values)
        assert not (len(words) > 3 and not re.search(r"[\u4e00-\u9fff]", text)), (key, text)


def test_texts_end_alike_in_both_languages() -> None:
    """A sentence is a sentence in both; a label has no full stop in either."""
    for key, text in catalogue("en").items():
        chinese = catalogue("zh").get(key)
        if chinese is not None and not key.startswith("said."):
            assert text.endswith(".") == chinese.endswith("。"), (key, text, chinese)


def test_every_key_that_is_spoken_by_name_has_a_text() -> None:
    """Every `said("key")`, `words("key")` and `Message("key")` of the product."""
    package = Path(orchestrator.__file__).parent
    known = {base(key) for key in catalogue("en")}
    spoken = re.compile(r'(?:said|words|w|Message)\(\s*"([a-z_]+(?:\.[a-z_]+)+)"')
    found = {
        key
        for pattern in ("**/*.py", "**/*.j2")
        for file in package.glob(pattern)
        for key in spoken.findall(file.read_text(encoding="utf-8"))
    }
    assert len(found) > 200
    assert found - known == set()


def test_a_count_chooses_its_form() -> None:
    words = Words("en")
    assert words("count.pairs", count=1) == "1 pair"
    assert words("count.pairs", count=2) == "2 pairs"
    assert Words("zh")("count.pairs", count=1) == "1 对"


def test_a_missing_key_is_an_error() -> None:
    with pytest.raises(KeyError):
        Words("zh")("no.such.key")


def test_sentences_of_earlier_stages_are_found_again_with_their_values() -> None:
    sentence = Words("zh").sentence
    assert sentence("16 in flight fit into the engine's cap of 32") == (
        "在途请求 16 个，未超过引擎上限 32"
    )
    assert sentence(
        "16 in flight: saturated: the queue does not grow: 3% of the requests that come stay"
    ) == ("在途 16：已饱和：队列没有增长：到来的请求中有 3% 滞留")
    assert sentence("something nobody ever said") == "something nobody ever said"
    assert Words("en").sentence("anything") == "anything"


def test_what_functional_cases_must_do_is_said_in_chinese() -> None:
    sentence = Words("zh").sentence
    text = files("orchestrator.run.suites").joinpath("functional_cases.yaml").read_text("utf-8")
    musts = {found[1] for found in re.finditer(r"^ +must: (.+)$", text, re.MULTILINE)}
    assert len(musts) > 20
    assert [must for must in musts if sentence(must) == must] == []


def test_verdicts_of_suites_are_said_in_chinese_whole_or_not() -> None:
    sentence = Words("zh").sentence
    assert sentence("1 finding in 41 cases (not complete)") == "41 个用例中发现 1 个问题（未完成）"
    assert sentence("2 leaks through speculation, 1 in both arms") == (
        "投机解码造成 2 处泄漏，两臂均有 1 处"
    )
    assert sentence("7 of 9 to be seen, 1 lost with speculation") == (
        "9 项中可见 7 项，启用投机后丢失 1 项"
    )
    assert [sentence(verdict.value) for verdict in Losslessness] == [
        "无损", "除并列外一致", "有损", "无法判定"
    ]  # fmt: skip


@pytest.mark.parametrize("notice", [arms._WRONG_SAMPLING, arms._TOP_K_ENDS_IT])
def test_warnings_of_an_engines_defects_are_found_again(notice: Notice) -> None:
    chinese = Words("zh").sentence(f"{notice.rule}: {notice.text}; {notice.hint}")
    assert "引擎" in chinese and notice.rule not in chinese


def test_values_that_look_like_templates_stay_as_they_are() -> None:
    """Text from outside is a value, never a template."""
    assert "{0.__class__}" in Words("en")("said.failed_rung", load="1", failure="x",
                                          cause="{0.__class__}")  # fmt: skip
