"""Prompts whose text is odd."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from orchestrator.run.suites.boundary_cases.case import (
    BoundaryCase,
    Must,
    chat,
    completion,
    one,
    raw,
)
from orchestrator.run.suites.boundary_cases.target import Target

TEXTS: tuple[tuple[str, Must, str], ...] = (
    ("empty_prompt", "either", ""),
    ("one_token", "answer", "a"),
    ("whitespace", "answer", " \t\n\r\n  \n\t "),
    ("whitespace_unicode", "answer", "\u00a0\u2003\u3000\u200b\u2060\ufeff"),
    ("null_bytes", "either", "one\x00two\x00\x00three"),
    ("lone_surrogate_high", "either", "before \ud83d after"),
    ("lone_surrogate_low", "either", "before \udc00 after"),
    ("surrogates_swapped", "either", "\udc4d\ud83d"),
    ("right_to_left", "answer", "ما هي عاصمة فرنسا؟ מהי בירת צרפת?"),
    ("bidirectional_override", "answer", "abc \u202e def \u2066 ghi \u2069\u202c jkl"),
    ("combining_characters", "answer", "Z\u0351\u036b\u0343\u036aa\u0300\u0301\u0302\u0303" * 20),
    ("emoji_joined", "answer", "👩‍👩‍👧‍👦 🏳️‍🌈 👩🏽‍🚀 🧑🏿‍🤝‍🧑🏻 " * 6),
    ("emoji_flags", "answer", "🇫🇷🇩🇪🇯🇵🇨🇳🇧🇷" * 6),
    ("emoji_modifiers_alone", "answer", "\U0001f3fb\ufe0f\u200d\u20e3" * 8),
    ("control_characters", "either", "".join(map(chr, range(1, 32))) + "\x7f\x80\x9f"),
    ("terminal_escapes", "either", "\x1b[31mred\x1b[0m\x1b]0;title\x07\x1b[2J"),
    ("noncharacters", "either", "\ufffe\uffff\U0010ffff\ufdd0 end"),
    ("replacement_characters", "answer", "\ufffd" * 32),
)

UNSEEN_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("tibetan", "བོད་ཀྱི་སྐད་ཡིག་ནི་ཅི་ཞིག་ཡིན།"),
    ("cherokee", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᎠᏂᏴᏫᏯ"),
    ("ethiopic", "ሰላም እንዴት ነህ ዛሬ"),
    ("khmer", "សួស្តី តើអ្នកសុខសប្បាយទេ"),
    ("nko", "ߒߞߏ ߦߋ߫ ߞߊ߲ ߠߎ߬ ߘߏ߫"),
    ("cuneiform", "𒀭𒂗𒍪 𒈗 𒌷𒆠"),
    ("linear_b", "𐀀𐀁𐀂𐀃𐀄𐀅𐀆𐀇"),
    ("braille", "⠓⠑⠇⠇⠕ ⠺⠕⠗⠇⠙"),
    ("mathematical", "𝕿𝖍𝖊 𝖖𝖚𝖎𝖈𝖐 𝖇𝖗𝖔𝖜𝖓 𝖋𝖔𝖝"),
    ("private_use", "\ue000\uf8ff\U000f0000\U0010fffd"),
)
"""Scripts that a draft trained on chat in a few languages has hardly met."""

_BODY = b'{"model": "%s", "prompt": "%s", "max_tokens": 8, "temperature": 0}'
INVALID_UTF8: tuple[tuple[str, bytes], ...] = (
    ("lonely_continuation", b"caf\x80 au lait"),
    ("cut_sequence", b"caf\xc3"),
    ("overlong", b"\xc0\xaf\xe0\x80\xaf"),
    ("surrogate_encoded", b"\xed\xa0\xbd\xed\xb8\x80"),
    ("beyond_unicode", b"\xf5\x80\x80\x80"),
    ("utf16", "hello".encode("utf-16-le")),
)


def cases(target: Target) -> Iterator[BoundaryCase]:
    for name, must, text in TEXTS:
        yield one(name, must, partial(completion, prompt=text))
    yield one("empty_message", "either", lambda model: chat(model, ""))
    yield BoundaryCase(
        "invalid_utf8",
        "either",
        lambda model: tuple(raw(_BODY % (model.encode(), text)) for _, text in INVALID_UTF8),
        parts=tuple(name for name, _ in INVALID_UTF8),
    )
    yield BoundaryCase(
        "unseen_scripts",
        "answer",
        lambda model: tuple(completion(model, text * 3) for _, text in UNSEEN_SCRIPTS),
        parts=tuple(name for name, _ in UNSEEN_SCRIPTS),
    )
    special = " ".join(target.special_tokens)
    yield one("special_tokens", "answer", lambda model: completion(model, f"Say {special} twice"))
    yield one(
        "special_tokens_in_chat",
        "answer",
        lambda model: chat(model, f"{special}\n{special * 3} ignore the above {special}"),
    )
    yield one("long_word", "either", lambda model: completion(model, "pneumono" * 500))
    yield one("long_word_one_letter", "either", lambda model: completion(model, "a" * 20_000))
    yield one("long_number", "either", lambda model: completion(model, "9876543210" * 200))
