"""Seeded noise, drawn in blocks so that a step costs a list pop."""

from __future__ import annotations

import math

import numpy as np

_BLOCK = 4096


class Noise:
    """Uniforms for acceptance and a mean-one factor for step times."""

    def __init__(
        self, rng: np.random.Generator, sigma: float, slow_sigma: float, slow_correlation_s: float
    ) -> None:
        self._rng = rng
        self._sigma, self._slow_sigma = sigma, slow_sigma
        self._correlation_s = slow_correlation_s
        self._factors: list[float] = []
        self._normals: list[float] = []
        self._level: float | None = None
        self._level_at_s = 0.0
        self.quiet = sigma == 0 and slow_sigma == 0

    def uniforms(self, at_least: int) -> list[float]:
        """A fresh block of uniforms on [0, 1)."""
        drawn: list[float] = self._rng.random(max(_BLOCK, at_least)).tolist()
        return drawn

    def factor(self, now_s: float) -> float:
        """What a step that starts now is multiplied by.

        Formula: exp(σ·z − σ²/2) · exp(σ_slow·w − σ_slow²/2), z independent, w an AR(1) process in
        time with correlation exp(−Δt / correlation_s); each has mean one.
        """
        factor = 1.0
        if self._sigma:
            if not self._factors:
                draws = self._rng.standard_normal(_BLOCK)
                self._factors = np.exp(self._sigma * draws - self._sigma**2 / 2).tolist()
            factor = self._factors.pop()
        if self._slow_sigma:
            if self._level is None:
                self._level = self._normal()
            else:
                keep = self._kept(now_s - self._level_at_s)
                self._level = keep * self._level + math.sqrt(1 - keep * keep) * self._normal()
            self._level_at_s = now_s
            factor *= math.exp(self._slow_sigma * self._level - self._slow_sigma**2 / 2)
        return factor

    def _kept(self, elapsed_s: float) -> float:
        return math.exp(-elapsed_s / self._correlation_s) if self._correlation_s > 0 else 0.0

    def _normal(self) -> float:
        if not self._normals:
            self._normals = self._rng.standard_normal(_BLOCK).tolist()
        return self._normals.pop()
