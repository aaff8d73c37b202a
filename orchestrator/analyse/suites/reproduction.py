"""A command line that puts one request of a suite again."""

from __future__ import annotations

import shlex

from orchestrator.ports import Ask
from orchestrator.run.suites.record import Asked

LONGEST_BODY = 1500


def reproduction(asked: Asked) -> str:
    """`curl …` against `$URL`; a body too long for a line is named by where it is kept."""
    ask = asked.ask
    words = ["curl", "-sS", "-X", ask.method, f'"$URL{ask.path}"', *_headers(ask), *_manner(ask)]
    if ask.body:
        words += ["--data-binary", _body(asked)]
    return " ".join(words)


def _headers(ask: Ask) -> list[str]:
    words: list[str] = []
    for name, value in ask.headers:
        shown = value if len(value) < 200 else f"{value[:20]}… ({len(value)} characters)"
        words += ["-H", shlex.quote(f"{name}: {shown}")]
    return words


def _manner(ask: Ask) -> list[str]:
    words: list[str] = []
    if ask.abandon_after_s is not None:
        words += ["--max-time", f"{ask.abandon_after_s:g}"]
    elif ask.abandon_after_events is not None:
        words += ["--no-buffer", "--max-time", "0.2"]
    if ask.send_bytes_per_s is not None or ask.read_bytes_per_s is not None:
        pace = ask.send_bytes_per_s or ask.read_bytes_per_s or 0
        words += ["--limit-rate", f"{pace:.0f}"]
    return words


def _body(asked: Asked) -> str:
    body = asked.ask.body
    if len(body) > LONGEST_BODY:
        part = f", part {asked.part}" if asked.part else ""
        return f"@BODY  # {len(body)} bytes: in the suite's record, case {asked.case}{part}"
    try:
        text = body.decode("ascii")
        if text.isprintable():
            return shlex.quote(text)
    except UnicodeDecodeError:
        pass
    return "$'" + "".join(_escaped(byte) for byte in body) + "'"


def _escaped(byte: int) -> str:
    character = chr(byte)
    return character if 32 <= byte < 127 and character not in "'\\" else f"\\x{byte:02x}"
