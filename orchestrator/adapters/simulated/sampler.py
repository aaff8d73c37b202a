"""Chooses tokens as vLLM's sampler does: bias, penalties, temperature, then min-p, top-k, top-p."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from math import exp

from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.draft_sampling import WRONG_DRAWS, drawn_wrongly
from orchestrator.adapters.simulated.toy_language import (
    UNLIKELY,
    ToyLanguage,
    log_probabilities,
)

_OFF_ZERO = 3.0
_DIFFERS_FROM = 4
"""Where `greedy_differs` begins: answers agree for a while, as they do in reality."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Under OpenAI's and vLLM's names; the defaults change nothing."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logit_bias: Mapping[int, float] = field(default_factory=dict)

    @property
    def is_greedy(self) -> bool:
        """vLLM's own bound."""
        return self.temperature < 1e-5


@dataclass(frozen=True, slots=True)
class Chosen:
    """One token, and what the model thought of it and of the best ones."""

    token: int
    logprob: float
    top: tuple[tuple[int, float], ...]
    """All candidates with their log-probabilities, best first; before bias and penalties."""


class Sampler:
    """Draws one answer, token by token."""

    def __init__(
        self,
        language: ToyLanguage,
        settings: SamplingSettings,
        rng: random.Random,
        wrong: Set[Defect],
    ) -> None:
        self._language, self._settings, self._rng = language, settings, rng
        self._wrong = wrong
        self._said: Counter[int] = Counter()
        self._before: tuple[int, ...] = ()
        self._index = 0

    def next(self) -> Chosen:
        raw = self._language.scores(self._before)
        scores = self._adjusted(raw)
        token = self._greedy(scores) if self._is_greedy else self._drawn(scores)
        known = log_probabilities({token: UNLIKELY, **raw})
        top = sorted(known.items(), key=lambda item: -item[1])
        self._said[token] += 1
        self._before, self._index = (*self._before[-2:], token), self._index + 1
        return Chosen(token, known[token], tuple(top))

    @property
    def _is_greedy(self) -> bool:
        return self._settings.is_greedy or Defect.IGNORES_TEMPERATURE in self._wrong

    def _adjusted(self, raw: Mapping[int, float]) -> dict[int, float]:
        settings, wrong = self._settings, self._wrong
        scores = dict(raw)
        if Defect.IGNORES_LOGIT_BIAS not in wrong:
            for token, bias in settings.logit_bias.items():
                scores[token] = scores.get(token, UNLIKELY) + bias
        for token, score in scores.items():
            times = self._said[token]
            if not times:
                continue
            if Defect.IGNORES_REPETITION_PENALTY not in wrong:
                # A score below zero grows more negative, as in the paper (CTRL, 1909.05858); the
                # toy's scores all lie below, so the best is moved off zero first.
                score = (score - _OFF_ZERO) * settings.repetition_penalty + _OFF_ZERO
            if Defect.IGNORES_FREQUENCY_PENALTY not in wrong:
                score -= settings.frequency_penalty * times
            if Defect.IGNORES_PRESENCE_PENALTY not in wrong:
                score -= settings.presence_penalty
            scores[token] = score
        return scores

    def _greedy(self, scores: Mapping[int, float]) -> int:
        ranked = sorted(scores, key=lambda token: -scores[token])
        differs = Defect.GREEDY_DIFFERS in self._wrong and self._index >= _DIFFERS_FROM
        return ranked[1 if differs and len(ranked) > 1 else 0]

    def _drawn(self, scores: Mapping[int, float]) -> int:
        chances = self.chances(scores)
        if WRONG_DRAWS & self._wrong:
            return drawn_wrongly(chances, self._index, self._rng, self._wrong)
        return self._rng.choices(list(chances), list(chances.values()))[0]

    def chances(self, scores: Mapping[int, float]) -> dict[int, float]:
        """The distribution that a token is drawn from; best first, not summing to one."""
        settings, wrong = self._settings, self._wrong
        top = max(scores.values())
        ranked = sorted(scores, key=lambda token: -scores[token])
        chances = {t: exp((scores[t] - top) / settings.temperature) for t in ranked}
        if settings.min_p > 0 and Defect.IGNORES_MIN_P not in wrong:
            chances = {t: p for t, p in chances.items() if p >= settings.min_p}
        if settings.top_k > 0 and Defect.IGNORES_TOP_K not in wrong:
            chances = dict(list(chances.items())[: settings.top_k])
        if settings.top_p < 1 and Defect.IGNORES_TOP_P not in wrong:
            total, reached = sum(chances.values()), 0.0
            kept: dict[int, float] = {}
            for token, chance in chances.items():
                if kept and reached >= settings.top_p * total:
                    break
                kept[token] = chance
                reached += chance
            chances = kept
        return chances
