"""What is read from one answer: key information, repetition, its ending, its language."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.analyse.answer_ending import cut_off, empty, open_code_block, refuses
from orchestrator.analyse.key_information import (
    kept_information,
    key_information,
    number_value,
    numbers,
)
from orchestrator.analyse.language import language
from orchestrator.analyse.repetition import (
    compression_ratio,
    distinct_n,
    longest_loop,
    loop_share,
)
from orchestrator.analyse.words import words

UNITS = st.lists(st.integers(0, 2), max_size=40)


# --- key information


def test_the_four_kinds() -> None:
    found = key_information(
        "In 1932 the engineer Mara Lindt built 3.50 km of track; see https://example.org/a_b?x=1. "
        "Call `loadTable()` or parse_rows(x) on a DataFrame."
    ).found
    assert found["numbers"] == {"1932", "3.5"}
    assert found["names"] == {"Mara", "Lindt"}
    assert found["urls"] == {"https://example.org/a_b?x=1"}
    assert found["identifiers"] == {"loadTable", "parse_rows", "DataFrame"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,200.0 and 1200", ["1200", "1200"]),
        ("−3 or -3", ["-3", "-3"]),
        ("1, 2, 3", ["1", "2", "3"]),
        ("v2 and x86_64", []),
        ("12,345,678", ["12345678"]),
        ("5.", ["5"]),
        ("in 2024 300 people", ["2024", "300"]),
        ("12\u202f000 km", ["12000"]),
    ],
)
def test_numbers(text: str, expected: list[str]) -> None:
    assert numbers(text) == expected


@given(st.integers(-(10**12), 10**12))
def test_a_number_has_one_normal_form(n: int) -> None:
    assert number_value(f"{n:,}") == number_value(f"{n}.000") == str(n)


def test_half_of_the_facts_are_kept() -> None:
    kept = kept_information("Pay 120 euros to Ana by 14:30, she said.", "Pay 120 euros by 15:30.")
    # 120, 14, 30 and Ana in the baseline; 14 and Ana are lost.
    assert kept.share == 0.5
    assert (kept.lost["numbers"], kept.lost["names"]) == (("14",), ("Ana",))
    assert kept.by_kind["urls"] is None


def test_a_name_at_the_start_of_a_sentence_is_kept() -> None:
    assert kept_information("We met Ana.", "Ana was there.").share == 1.0


def test_a_text_without_facts_has_no_share() -> None:
    assert kept_information("it depends on the weather", "yes").share is None


@given(st.text(max_size=200))
def test_every_text_keeps_its_own_information(text: str) -> None:
    assert kept_information(text, text).share in (None, 1.0)


# --- repetition


def test_words_of_scripts_with_and_without_spaces() -> None:
    assert words("It's 3.5 km: 你好!") == ["it's", "3.5", "km", "你", "好"]


def test_distinct_n_by_hand() -> None:
    # a b a b: bigrams ab, ba, ab.
    assert distinct_n("abab", 2) == 2 / 3
    assert distinct_n("a", 2) is None


@pytest.mark.parametrize(
    ("text", "period", "length"),
    [("xaaay", 1, 3), ("xabababy", 2, 6), ("abcabc", 3, 6), ("abcabca", 3, 7)],
)
def test_the_longest_loop(text: str, period: int, length: int) -> None:
    loop = longest_loop(text)
    assert loop is not None and (loop.period, loop.length) == (period, length)


def test_no_loop() -> None:
    assert longest_loop("abc") is None
    assert longest_loop("") is None
    assert loop_share("") is None
    assert loop_share("abcabc") == 0.0  # twice is not yet a loop
    assert loop_share("xyabababab") == 0.8


@given(UNITS)
def test_a_loop_is_what_it_says(units: list[int]) -> None:
    loop = longest_loop(units)
    if loop is not None:
        stretch = units[loop.start : loop.start + loop.length]
        assert len(stretch) == loop.length >= 2 * loop.period
        assert all(a == b for a, b in zip(stretch, stretch[loop.period :], strict=False))
    else:
        assert all(a != b for a, b in pairwise(units))


@given(UNITS, st.integers(1, 3))
def test_distinct_n_is_a_share(units: list[int], n: int) -> None:
    share = distinct_n(units, n)
    assert share is None or 0 < share <= 1


def test_a_loop_compresses_and_a_short_text_has_no_ratio() -> None:
    loop, prose = compression_ratio("again and again " * 40), compression_ratio(
        "The harbour froze early that year, and the ferry lay idle under a skin of ice while the "
        "pilots played cards in the customs house, waiting for wind; nobody spoke of the missing "
        "boat, though each had counted its absence twice."
    )  # fmt: skip
    assert loop is not None and prose is not None
    assert loop > 15 and prose < 2
    assert compression_ratio("short") is None


# --- the ending


def test_empty_cut_off_and_open() -> None:
    assert [empty(t) for t in ("", " \n\t", "\u200b\x00", "a", "。")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert [cut_off(r) for r in ("length", "stop", None)] == [True, False, None]
    assert open_code_block("```python\nx = 1")
    assert not open_code_block("```\nx\n```")


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I cannot assist with this request.",
        "As an AI language model, I do not have opinions and cannot judge.",
        "Es tut mir leid, aber ich kann das nicht tun.",
        "抱歉,我无法提供这些信息。",
        "Je suis désolé, mais je ne peux pas vous aider.",
    ],
)
def test_refusals(text: str) -> None:
    assert refuses(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry to hear that your dog is ill.",
        "You can help the seedlings by watering them.",
        "Write: \"Sorry for the delay\" and sign it.",
        "x" * 400 + " I cannot help with that.",
        "",
    ],
)  # fmt: skip
def test_no_refusals(text: str) -> None:
    assert not refuses(text)


# --- the language


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat is on the roof, and it was there for most of the day.", "en"),
        ("Die Katze ist auf dem Dach, und sie sitzt dort mit der Maus, wie es scheint.", "de"),
        ("Le chat est sur le toit et il ne veut pas descendre avec les enfants.", "fr"),
        ("El gato está en la casa y no quiere salir por la puerta con los niños.", "es"),
        ("Il gatto è sul tetto e non vuole scendere con i bambini della casa.", "it"),
        ("O gato está no telhado e não quer descer com os meninos da casa.", "pt"),
        ("De kat zit op het dak en wil niet naar beneden, maar dat is niet erg van hem.", "nl"),
        ("Кот сидит на крыше, и он не хочет спускаться, потому что это не для него.", "ru"),
        ("Кіт сидить на даху, і він не хоче злізати, бо це не для нього та й не з ним.", "uk"),
        ("猫在屋顶上,不愿意下来。", "zh"),
        ("猫は屋根の上にいて、降りたくない。", "ja"),
        ("고양이가 지붕 위에 있다.", "ko"),
        ("القط على السطح ولا يريد النزول", "ar"),
        ("42", None),
        ("Zugspitze 2962", None),
        ("", None),
    ],
)
def test_languages(text: str, expected: str | None) -> None:
    assert language(text) == expected


def test_a_chinese_answer_about_python_with_a_code_block_is_chinese() -> None:
    code = "```python\ndef mean(values): return the_sum_of(values)\n```"
    text = f"下面的函数返回列表的平均值:\n{code}\n完成。"
    assert language(text) == "zh"


@given(st.text(max_size=100))
def test_any_text_has_a_language_or_none(text: str) -> None:
    found = language(text)
    assert found is None or len(found) == 2
