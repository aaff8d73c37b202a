"""A text file's content, or an error that says where it stops being text."""

from __future__ import annotations

from pathlib import Path

from orchestrator.workloads.reading import Reading


def read_bytes(path: Path, reading: Reading) -> bytes:
    """Raises: WorkloadError when the file is missing, a folder, unreadable, empty or too large."""
    try:
        if not path.exists():
            raise reading.stop(
                None,
                "",
                "must be an existing file",
                hint="the path is relative to the file naming it",
            )
        if not path.is_file():
            raise reading.stop(None, "", "must be a regular file", hint="name one file of prompts")
        size = path.stat().st_size
        if size == 0:
            raise reading.stop(None, "", "must not be empty (0 bytes)", hint="put prompts into it")
        if size > reading.limits.file_bytes:
            raise reading.stop(
                None,
                "",
                f"must be at most {reading.limits.file_bytes} bytes",
                size,
                "keep a part of it: a sweep uses a few thousand prompts at most",
            )
        return path.read_bytes()
    except OSError as error:
        raise reading.stop(
            None, "", f"must be readable ({error.strerror})", hint="check the file's permissions"
        ) from error


def decode(raw: bytes, reading: Reading) -> str:
    """UTF-8 with or without a byte-order mark; NUL characters are refused.

    Raises: WorkloadError with the line of the first byte that is not UTF-8, or of the first NUL.
    """
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise reading.stop(
            1, "", "must be UTF-8 (this is UTF-16)", hint="save the file again as UTF-8"
        )
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts from behind the byte-order mark that it dropped.
        start = error.start + (3 if raw.startswith(b"\xef\xbb\xbf") else 0)
        raise reading.stop(
            raw.count(b"\n", 0, start) + 1,
            "",
            f"must be UTF-8 (byte 0x{raw[start]:02x} at offset {start})",
            hint="save the file again as UTF-8",
        ) from error
    nul = text.find("\0")
    if nul >= 0:
        raise reading.stop(
            text.count("\n", 0, nul) + 1,
            "",
            "must not hold NUL characters",
            hint="the file is binary, or damaged",
        )
    if not text.strip():
        raise reading.stop(
            None, "", "must not be empty (only white space)", hint="put prompts into it"
        )
    return text
