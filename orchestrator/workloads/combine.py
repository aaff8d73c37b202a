"""A recorded trace given real text: row i asks a prompt of about its recorded length."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, replace

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.length import cut_prompt, join_prompts
from orchestrator.workloads.prompt_set import CountTokens, PromptSet, with_token_counts
from orchestrator.workloads.traces import ArrivalTrace


@dataclass(frozen=True, slots=True)
class TracedPrompts:
    """`prompts.prompts[i]` is sent at `offsets_s[i]` and answered in `output_tokens[i]` tokens."""

    prompts: PromptSet
    offsets_s: tuple[float, ...]
    output_tokens: tuple[int, ...]
    wanted_input_tokens: tuple[int, ...]

    @property
    def input_error(self) -> float:
        """Mean of |tokens − wanted| / wanted: how far the text is from the recorded lengths."""
        errors = [
            abs((prompt.tokens or 0) - wanted) / wanted
            for prompt, wanted in zip(self.prompts.prompts, self.wanted_input_tokens, strict=True)
        ]
        return sum(errors) / len(errors)


def combine(
    trace: ArrivalTrace,
    prompts: PromptSet,
    count_tokens: CountTokens,
    *,
    allow_reuse: bool = False,
) -> TracedPrompts:
    """For every row the shortest unused prompt that is long enough, cut to the row's input tokens.

    Where none is long enough the longest ones are joined and then cut. Only first turns are used.
    A prompt's text is used once; with `allow_reuse` all are used again when none is left, and the
    notes say how often: an engine with a prefix cache or a suffix tree answers text that it has
    seen faster than it would in production.
    Raises: WorkloadError when the text does not suffice, with the row at which it ran out.
    """
    stock = _Stock(with_token_counts(prompts, count_tokens), allow_reuse)
    made: list[Prompt] = []
    for row, wanted in enumerate(trace.input_tokens):
        try:
            text = stock.take(wanted, count_tokens)
        except _RanOut as error:
            raise WorkloadError(
                f"{prompts.source}: its text suffices for {row} of the {len(trace)} arrivals of "
                f"{trace.source}, each prompt used once; use a larger set, a window of the trace, "
                "or allow reuse"
            ) from error
        cut = cut_prompt(text, wanted, count_tokens)
        if not cut.turns[0].strip():
            # Not even one character fits: the row is kept, with the shortest text there is.
            shortest = text.turns[0].strip()[:1]
            cut = replace(text, turns=(shortest,), tokens=int(count_tokens([shortest])[0]))
        made.append(replace(cut, id=f"row-{row + 1:06d}", turns=cut.turns[:1], reference=None))
    notes = (*prompts.notes, *trace.notes)
    if stock.rounds > 1:
        notes = (*notes, f"text was reused: each prompt up to {stock.rounds} times")
    label = f"trace({trace.name})"
    return TracedPrompts(
        PromptSet.of(
            f"{prompts.name}+{label}",
            f"{prompts.source} × {trace.source}",
            made,
            treatment=f"{prompts.treatment} {label}".strip(),
            notes=notes,
        ),
        trace.offsets_s,
        trace.output_tokens,
        trace.input_tokens,
    )


class _RanOut(Exception):
    pass


class _Stock:
    """The prompts not used yet, shortest first."""

    def __init__(self, prompts: PromptSet, allow_reuse: bool) -> None:
        self._all = sorted(prompts.prompts, key=lambda prompt: (prompt.tokens or 0, prompt.id))
        self._left = list(self._all)
        self._allow_reuse = allow_reuse
        self.rounds = 1

    def take(self, wanted: int, count_tokens: CountTokens) -> Prompt:
        """A prompt of at least `wanted` tokens, joined from the longest if none has as many."""
        self._refill()
        place = bisect_left(self._left, wanted, key=lambda prompt: prompt.tokens or 0)
        if place < len(self._left):
            return self._left.pop(place)
        group: list[Prompt] = []
        parts = 0
        while True:
            self._refill()
            group.append(self._left.pop())
            parts += max(group[-1].tokens or 0, 1)
            if parts >= wanted:
                joined = join_prompts(group, count_tokens)
                if (joined.tokens or 0) >= wanted:
                    return joined

    def _refill(self) -> None:
        if self._left:
            return
        if not self._allow_reuse:
            raise _RanOut
        self._left = list(self._all)
        self.rounds += 1
