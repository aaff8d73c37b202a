"""A request inside the simulated engine."""

from __future__ import annotations

from orchestrator.records import RequestError


class Job:
    """One request, from arrival to its last token. Times are on the engine's clock.

    `chunk_s[i]` is when chunk i came out and `chunk_tokens[i]` how many tokens it carried.
    """

    __slots__ = (
        "arrival_s",
        "category",
        "chunk_s",
        "chunk_tokens",
        "computed",
        "end_s",
        "error",
        "error_text",
        "generated",
        "http_status",
        "max_tokens",
        "name",
        "preemptions",
        "prompt_tokens",
        "tag",
        "temperature",
        "thresholds",
    )

    def __init__(
        self,
        name: str,
        prompt_tokens: int,
        max_tokens: int,
        *,
        category: str = "",
        temperature: float = 0.0,
        tag: object = None,
    ) -> None:
        self.name = name
        self.prompt_tokens = prompt_tokens
        self.max_tokens = max_tokens
        self.category = category
        self.temperature = temperature
        self.tag = tag
        self.arrival_s = 0.0
        self.computed = 0
        """Tokens whose keys and values are in the cache."""
        self.generated = 0
        self.chunk_s: list[float] = []
        self.chunk_tokens: list[int] = []
        self.thresholds: list[float] = []
        """Probability that at least i drafts are accepted, for i = K..1 (ascending)."""
        self.preemptions = 0
        self.end_s: float | None = None
        self.error: RequestError | None = None
        self.error_text: str | None = None
        self.http_status: int | None = None

    @property
    def to_compute(self) -> int:
        """Tokens to be read before the next one can be sampled."""
        return self.prompt_tokens + self.generated - self.computed

    def fail(self, error: RequestError, text: str, at_s: float, status: int | None = None) -> None:
        self.error, self.error_text, self.end_s, self.http_status = error, text, at_s, status
