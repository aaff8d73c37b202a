"""EAGLE heads: kept without the output matrix, whose rows are the target's, and completed with it.

Both files are safetensors: a length, a JSON header, then the bytes of the tensors. The rows are
copied as they are, so nothing has to know what a bfloat16 is.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orchestrator.errors import ModelUnavailable

OUTPUT = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"
OFFSETS = "d2t"
"""Per token of the draft: the target's id minus the draft's."""
WEIGHTS = "model.safetensors"


@dataclass(frozen=True)
class _Tensor:
    file: Path
    begin: int
    """In the file, in bytes."""
    nbytes: int
    dtype: str
    shape: tuple[int, ...]

    def rows(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Shape (rows, bytes of a row)."""
        read = np.memmap(self.file, dtype=np.uint8, mode="r", offset=self.begin, shape=self.nbytes)
        return read.reshape(self.shape[0], -1)


def complete_head(head: Path, target: Path, folder: Path) -> None:
    """Writes `head` into `folder`, with the target's output rows for the tokens it proposes.

    A head whose tokens are the target's, one to one, shares the target's matrix: nothing is added.
    Raises: ModelUnavailable when the two do not belong together.
    """
    tensors = _tensors(head / WEIGHTS)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(head, folder, ignore=shutil.ignore_patterns(WEIGHTS))
    contents = {name: tensor.rows() for name, tensor in tensors.items()}
    if OFFSETS in tensors and OUTPUT not in tensors:
        offsets = np.ascontiguousarray(contents[OFFSETS]).view("<i8").ravel()
        ids = offsets + np.arange(len(offsets))
        output = _output_of(target)
        if ids.min() < 0 or ids.max() >= output.shape[0]:
            raise ModelUnavailable(
                f"{head}: its tokens must be the target's, 0 to {output.shape[0] - 1}, got "
                f"{ids.min()} to {ids.max()}; it was trained for another target than {target}"
            )
        contents[OUTPUT] = output.rows()[ids]
        tensors[OUTPUT] = _Tensor(
            folder / WEIGHTS, 0, contents[OUTPUT].size, output.dtype, (len(ids), *output.shape[1:])
        )
    _write(folder / WEIGHTS, tensors, contents)


def _output_of(target: Path) -> _Tensor:
    found: dict[str, _Tensor] = {}
    for file in sorted(target.glob("*.safetensors")):
        found.update(_tensors(file))
    for name in (OUTPUT, EMBEDDING):
        if name in found:
            return found[name]
    raise ModelUnavailable(
        f"{target}: its weights must hold {OUTPUT} or {EMBEDDING}, found {len(found)} tensors"
    )


def _tensors(file: Path) -> dict[str, _Tensor]:
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8).ljust(8, b"\0"))
            header: dict[str, Any] = json.loads(stream.read(min(length, file.stat().st_size)))
    except OSError as error:
        raise ModelUnavailable(f"{file}: cannot be read ({error})") from error
    except ValueError as error:
        raise ModelUnavailable(f"{file}: is not a safetensors file ({error})") from error
    begin = 8 + length
    return {
        name: _Tensor(
            file,
            begin + entry["data_offsets"][0],
            entry["data_offsets"][1] - entry["data_offsets"][0],
            entry["dtype"],
            tuple(entry["shape"]),
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def _write(file: Path, tensors: Mapping[str, _Tensor], contents: Mapping[str, Any]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    # The widest numbers first, so that each begins at a multiple of its width.
    order = sorted(tensors, key=lambda name: (tensors[name].dtype not in ("I64", "F64"), name))
    for name in order:
        size = int(contents[name].size)
        header[name] = {
            "dtype": tensors[name].dtype,
            "shape": list(tensors[name].shape),
            "data_offsets": [at, at + size],
        }
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as stream:
        stream.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            stream.write(np.ascontiguousarray(contents[name]).tobytes())
