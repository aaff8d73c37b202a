"""What is asked: prompts, their length, and the length of the answers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from orchestrator.spec.section import Count, Flag, Name, OneOf, Section, Text, broken, defaults

FORMATS = ("auto", "jsonl", "csv", "parquet", "text", "spec-bench", "sharegpt", "mt-bench")


class InputTokens(Section):
    """Bounds on a prompt's length, in the target's tokens, and how they are met.

    selection: only prompts inside the bounds; cut: longer prompts end early (real text, cut at a
    token); join: short prompts are put one after another up to it.
    """

    min: Count | None = None
    max: Count | None = None
    exactly: Count | None = None
    by: Literal["selection", "cut", "join"] = "selection"

    @model_validator(mode="after")
    def _bounds(self) -> InputTokens:
        if self.exactly is not None and (self.min is not None or self.max is not None):
            raise broken(
                "must not be given together with min or max",
                value=self.exactly,
                key=("exactly",),
                involves=[("min",), ("max",)],
            )
        if self.min is not None and self.max is not None and self.min > self.max:
            raise broken(
                "min <= max must hold",
                value=f"min={self.min}, max={self.max}",
                key=("min",),
                involves=[("max",)],
            )
        return self

    @model_validator(mode="after")
    def _length_to_cut_or_join_to(self) -> InputTokens:
        if self.by != "selection" and self.exactly is None and self.max is None:
            raise broken(
                "needs max or exactly",
                value=f"'{self.by}'",
                key=("by",),
                involves=[("max",), ("exactly",), ("min",)],
            )
        return self


SOURCES = ("bundled:", "hf:", "random:")
"""How a reference begins that is not a path."""

BUNDLED = ("chat", "code", "reasoning", "rewrite", "summarize", "translation")
"""The prompt sets that come with the product (`orchestrator/workloads/bundled`)."""


def _known_source(prompts: str) -> str:
    scheme, _, rest = prompts.partition(":")
    if f"{scheme}:" in SOURCES and not rest:
        raise broken(
            f"'{scheme}:' must be followed by a name",
            value=f"'{prompts}'",
            hint="for example bundled:chat, hf:owner/dataset, or a path",
        )
    return prompts


class Workload(Section):
    """One kind of request."""

    name: Name
    prompts: Annotated[Text, AfterValidator(_known_source)] = Field(
        description="bundled:NAME, a path relative to this file, hf:OWNER/DATASET, "
        "or random:count=N,tokens=N (random tokens: labelled, and misleading)"
    )
    format: Annotated[str, OneOf(FORMATS)] = "auto"
    categories: tuple[Text, ...] | None = Field(default=None, min_length=1)
    input_tokens: InputTokens = defaults()
    output_tokens: Count
    fixed_length: Flag = Field(
        default=True, description="every answer has exactly output_tokens, in both arms"
    )
    endpoint: Literal["chat", "completion"] = "chat"
    system: str | None = Field(default=None, strict=True)
    history: Literal["first_turn", "own", "reference"] = Field(
        default="first_turn",
        description="own: an arm's answers are part of its next turn; "
        "reference: the recorded answers are",
    )
    allow_reuse: Flag = Field(
        default=False, description="a set that is too small may be asked again; recorded"
    )

    @model_validator(mode="after")
    def _turns_need_chat(self) -> Workload:
        if self.endpoint == "completion" and self.history != "first_turn":
            raise broken(
                "must be first_turn with endpoint: completion (there are no turns)",
                value=f"'{self.history}'",
                key=("history",),
                involves=[("endpoint",)],
            )
        if self.endpoint == "completion" and self.system is not None:
            raise broken(
                "must not be given with endpoint: completion (there is no system message)",
                key=("system",),
                involves=[("endpoint",)],
            )
        return self
