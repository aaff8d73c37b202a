"""Turns a GGUF file into a bfloat16 safetensors folder, as a program of its own."""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from pathlib import Path


def convert(gguf: Path, folder: Path, context: int) -> None:
    """Writes weights, configuration and tokenizer of `gguf` into `folder`.

    Quantized tensors are taken to bfloat16. `context` becomes the tokenizer's `model_max_length`:
    GGUF files leave it unset, and readers then believe there is no limit.
    """
    import gguf as library
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # transformers parses the file three times, and builds the table of tensor names once a layer
    # and kind: half of the time of the whole conversion. Both are the same every time.
    library.GGUFReader = cache(library.GGUFReader)
    library.get_tensor_name_map = cache(library.get_tensor_name_map)
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model = AutoModelForCausalLM.from_pretrained(
        **source,
        quantization_config=GgufConfig(gguf_file=gguf.name, dequantize=True),
        dtype=torch.bfloat16,
    )
    tokenizer = AutoTokenizer.from_pretrained(**source)
    tokenizer.model_max_length = context
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    _set(folder / "config.json", max_position_embeddings=context, _model_name_or_path=None)
    (folder / "model.safetensors").chmod(0o644)


def _set(path: Path, **changes: object) -> None:
    """Sets keys of a JSON file; None removes one."""
    content = json.loads(path.read_text(encoding="utf-8")) | changes
    kept = {key: value for key, value in content.items() if value is not None}
    path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="orchestrator.serving.convert", description=__doc__)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--context", type=int, required=True, help="longest sequence in tokens")
    options = parser.parse_args(arguments)
    convert(options.gguf, options.folder, options.context)
    return 0


if __name__ == "__main__":
    sys.exit(main())
