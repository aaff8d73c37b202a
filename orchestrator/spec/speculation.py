"""The ways to speculate. Every entry expands by itself: its lists multiply, not those of others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from orchestrator.spec.nearest import nearest
from orchestrator.spec.section import (
    Axis,
    Count,
    Mapped,
    NotNegative,
    Positive,
    Section,
    Share,
    Text,
    broken,
)

METHODS = ("ngram", "suffix", "draft_model", "eagle", "eagle3", "mtp", "medusa", "what_if")

_VLLM_TREE_DEPTH = 24
"""vLLM's own `suffix_decoding_max_tree_depth`."""

_SPELLED_ELSEWHERE = {
    "method": "method",
    "model": "draft",
    "num_speculative_tokens": "speculation_length",
}


class _Speculation(Section):
    """Common to every method. `options` are further fields of vLLM's `speculative_config`."""

    speculation_length: Axis[Count] = Field(description="K: tokens proposed per draft")
    options: Mapped = Field(
        default_factory=dict,
        description="further fields of vLLM's speculative_config, passed on as they are",
    )

    AXES: ClassVar[tuple[str, ...]] = ()
    """Fields that go into vLLM's speculative_config under their own name."""

    @field_validator("options")
    @classmethod
    def _not_spelled_twice(cls, options: dict[str, Any]) -> dict[str, Any]:
        for name in options:
            own = _SPELLED_ELSEWHERE.get(name) or (name if name in cls.model_fields else None)
            if own is not None:
                raise broken(
                    "must not be given under options",
                    hint=f"write it as the entry's own key '{own}'",
                    key=(name,),
                )
        return options

    def points(self) -> Iterator[dict[str, Any]]:
        """The product of the entry's lists, one mapping of single values at a time."""
        names = ["draft", "speculation_length", *self.AXES]
        axes = [getattr(self, name, None) or (None,) for name in names]
        for values in itertools.product(*axes):
            yield dict(zip(names, values, strict=True))


class Ngram(_Speculation):
    """Proposes what followed the same n tokens earlier in the request."""

    method: Literal["ngram"]
    prompt_lookup_min: Axis[Count] | None = None
    prompt_lookup_max: Axis[Count] | None = None

    AXES: ClassVar[tuple[str, ...]] = ("prompt_lookup_min", "prompt_lookup_max")

    @model_validator(mode="after")
    def _window(self) -> Ngram:
        low, high = self.prompt_lookup_min, self.prompt_lookup_max
        if low and high and min(low) > max(high):
            raise broken(
                "prompt_lookup_min <= prompt_lookup_max must hold",
                value=f"prompt_lookup_min={min(low)}, prompt_lookup_max={max(high)}",
                key=("prompt_lookup_min",),
                involves=[("prompt_lookup_max",)],
            )
        return self


class Suffix(_Speculation):
    """Suffix decoding: a tree over the request and over past answers; the draft's length varies.

    `speculation_length` is the longest draft; without it the depth of the tree is, as in vLLM.
    """

    method: Literal["suffix"]
    speculation_length: Axis[Count] | None = None  # type: ignore[assignment]
    suffix_decoding_max_tree_depth: Axis[Count] | None = None
    suffix_decoding_max_cached_requests: Axis[Annotated[int, Field(strict=True, ge=0)]] | None = (
        None
    )
    suffix_decoding_max_spec_factor: Axis[Positive] | None = None
    suffix_decoding_min_token_prob: Axis[Share] | None = None

    AXES: ClassVar[tuple[str, ...]] = (
        "suffix_decoding_max_tree_depth",
        "suffix_decoding_max_cached_requests",
        "suffix_decoding_max_spec_factor",
        "suffix_decoding_min_token_prob",
    )

    def points(self) -> Iterator[dict[str, Any]]:
        for point in super().points():
            depth = point["suffix_decoding_max_tree_depth"] or _VLLM_TREE_DEPTH
            yield point | {"speculation_length": point["speculation_length"] or depth}


class _Drafted(_Speculation):
    draft: Axis[Text] = Field(description="catalogue name, Hugging Face id, or path")
    draft_tensor_parallel_size: Axis[Count] | None = None

    AXES: ClassVar[tuple[str, ...]] = ("draft_tensor_parallel_size",)


class DraftModel(_Drafted):
    """A small model of the same vocabulary proposes."""

    method: Literal["draft_model"]


class Eagle(_Drafted):
    """A one-layer head on the target's hidden states proposes."""

    method: Literal["eagle"]


class Eagle3(_Drafted):
    """EAGLE-3: a head on hidden states of several layers of the target."""

    method: Literal["eagle3"]


class Medusa(_Drafted):
    """One head per position ahead."""

    method: Literal["medusa"]


class Mtp(_Speculation):
    """The target's own multi-token-prediction layers; `draft` only if they live elsewhere."""

    method: Literal["mtp"]
    draft: Axis[Text] | None = None


class WhatIf(_Speculation):
    """No draft: the target's own recorded answers are proposed, with errors and at a price.

    Verification is the target's, so the output is what it always is; what is set is how good the
    draft is. For a draft that does not exist yet.
    """

    method: Literal["what_if"]
    acceptance: Axis[Share] = Field(
        description="probability that a draft token is right, given that those before it were"
    )
    draft_cost_s: Axis[NotNegative] | None = Field(
        default=None, description="seconds that a draft takes per token of its length (default: 0)"
    )

    AXES: ClassVar[tuple[str, ...]] = ("acceptance", "draft_cost_s")

    @field_validator("options")
    @classmethod
    def _nothing_to_pass_on(cls, options: dict[str, Any]) -> dict[str, Any]:
        if options:
            raise broken("must be empty: there is no draft to pass them to", value=sorted(options))
        return options


def _method_of(entry: object) -> str | None:
    return entry.get("method") if isinstance(entry, dict) else getattr(entry, "method", None)


def _method_known(entry: object) -> object:
    """Passes an entry on; refuses an unknown method with what there is."""
    method = _method_of(entry)
    if not isinstance(entry, dict) and method is None:
        raise broken(
            "must be a mapping",
            value=entry,
            hint="for example: {method: ngram, speculation_length: [2, 4]}",
        )
    if method is None:
        raise broken("is required", hint=f"one of {', '.join(METHODS)}", key=("method",))
    if method not in METHODS:
        close = nearest(str(method), METHODS)
        raise broken(
            f"must be one of {', '.join(METHODS)}",
            value=f"'{method}'",
            hint=f"did you mean '{close}'?" if close else None,
            key=("method",),
        )
    return entry


_OF_METHOD: dict[str, type[_Speculation]] = {
    "ngram": Ngram,
    "suffix": Suffix,
    "draft_model": DraftModel,
    "eagle": Eagle,
    "eagle3": Eagle3,
    "mtp": Mtp,
    "medusa": Medusa,
}


def as_probably_meant(entry: object) -> dict[str, Any] | None:
    """An entry whose method is misspelt, with the nearest method and what that one knows of the
    other keys, so that these can be checked as well; None where no method is near."""
    if not isinstance(entry, dict):
        return None
    close = nearest(str(entry.get("method")), METHODS)
    if close is None:
        return None
    known = {name: value for name, value in entry.items() if name in _OF_METHOD[close].model_fields}
    return known | {"method": close}


Speculation = Annotated[
    Annotated[Ngram, Tag("ngram")]
    | Annotated[Suffix, Tag("suffix")]
    | Annotated[DraftModel, Tag("draft_model")]
    | Annotated[Eagle, Tag("eagle")]
    | Annotated[Eagle3, Tag("eagle3")]
    | Annotated[Mtp, Tag("mtp")]
    | Annotated[Medusa, Tag("medusa")]
    | Annotated[WhatIf, Tag("what_if")],
    Discriminator(_method_of),
    BeforeValidator(_method_known),
]
