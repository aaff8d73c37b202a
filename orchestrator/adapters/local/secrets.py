"""Nothing that looks like a token, key or password leaves this machine in a record.

Two rules, either is enough: the *name* says it is a secret, or the *value* looks like one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***masked***"

_SECRET_NAME = re.compile(r"token|key|secret|passw|pwd|credential|auth", re.IGNORECASE)
# Words that contain one of the above and mean no secret.
_HARMLESS_NAME = re.compile(r"tokenizers?|author(s|ed)?(?![a-z])|monkey|keyboard", re.IGNORECASE)
_COUNT_NAME = re.compile(r"tokens(?![a-z])|keys(?![a-z])", re.IGNORECASE)
_COUNT = re.compile(r"-?\d{1,12}(\.\d+)?|true|false|none|", re.IGNORECASE)

_SECRET_VALUES = (
    r"-----BEGIN [A-Z0-9 ]+-----.*?(?:-----END [A-Z0-9 ]+-----|\Z)",
    r"[a-z][a-z0-9+.\-]*://[^\s/?#]*@",  # user:password@ without a slash in it
    r"[a-z][a-z0-9+.\-]*://[^\s/:?#]*:\S*@",  # a password may hold slashes too
    r"\bhf_[A-Za-z0-9]{8,}",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_\-]{8,}",
    r"\b(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,}",
    r"\beyJ[A-Za-z0-9_\-]{4,}\.[A-Za-z0-9_\-]{4,}(?:\.[A-Za-z0-9_\-]*)?",
    r"\bgh[pousr]_[A-Za-z0-9]{16,}",
    r"\bgithub_pat_[A-Za-z0-9_]{16,}",
    r"\bglpat-[A-Za-z0-9_\-]{16,}",
    r"\bxox[abeoprs]-[A-Za-z0-9\-]{8,}",
    r"\bAIza[A-Za-z0-9_\-]{30,}",
    r"\bnvapi-[A-Za-z0-9_\-]{16,}",
    r"\bya29\.[A-Za-z0-9_\-]{16,}",
    r"(?i:\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,})",
    # name=value, "name": "value", 'name': ['one', 'two']; a measured "token: 12 ms" is none
    r"""(?ix:
        (?<![a-z]) (?:[a-z0-9]+[_\-])* (?:token|api[_\-]?key|key|secret|password|passwd|pwd
            |credentials?|authorization|auth) (?![a-z]) ["']? \s* [=:] \s*
        (?! [\d.]+ \s* (?:[mun]?s|%|/s|tok/s)? (?:[\s,;)]|\Z) )
        (?: (?:bearer|basic) \s+ \S+ | \[ [^\]]* \]? | "[^"]*"? | '[^']*'? | [^\s"'\[]+ )
    )""",
    # --name value
    r"""(?ix:
        --[a-z0-9\-_]* (?:token|key|secret|password|credentials?|auth) (?![a-z]) \s+
        (?: "[^"]*"? | '[^']*'? | [^\s"']+ )
    )""",
)
_SECRET_VALUE = re.compile("|".join(f"(?:{pattern})" for pattern in _SECRET_VALUES), re.DOTALL)
_FORTY = re.compile(r"[A-Za-z0-9/+]{40}=?")


def name_is_secret(name: str) -> bool:
    """Whether a variable or field of this name holds a secret, whatever its value."""
    return bool(_SECRET_NAME.search(_HARMLESS_NAME.sub("", name)))


def value_is_secret(value: str) -> bool:
    """Whether the text holds something of a secret's shape (see `mask_text`)."""
    return bool(_SECRET_VALUE.search(value)) or _is_aws_secret(value.strip())


def mask_value(name: str, value: str) -> str:
    """The value, or the mask instead of all of it when its name or shape says secret.

    A count is none: `VLLM_MAX_TOKENS=512` stays, as does `TOKENIZERS_PARALLELISM=false`.
    """
    if value_is_secret(value):
        return MASK
    if not name_is_secret(name):
        return value
    only_counts = not name_is_secret(_COUNT_NAME.sub("", name))
    return value if only_counts and _COUNT.fullmatch(value) else MASK


def mask_text(text: str) -> str:
    """Prose or a log, with every stretch that looks like a secret replaced by the mask."""
    masked = _SECRET_VALUE.sub(MASK, text)
    return MASK if _is_aws_secret(masked.strip()) else masked


def mask_tree(value: Any, name: str = "") -> Any:
    """Plain JSON with every string in it masked by the name it stands under and by its shape."""
    if isinstance(value, Mapping):
        return {mask_text(str(key)): mask_tree(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mask_tree(item, name) for item in value]
    return mask_value(name, value) if isinstance(value, str) else value


def _is_aws_secret(value: str) -> bool:
    """40 characters of base64 with all three kinds: not a SHA-1, which has no upper case."""
    return bool(
        _FORTY.fullmatch(value)
        and re.search("[A-Z]", value)
        and re.search("[a-z]", value)
        and re.search("[0-9]", value)
    )
