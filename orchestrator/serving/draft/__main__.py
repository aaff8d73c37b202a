"""`python -m orchestrator.serving.draft STAGE FOLDER`: one stage of a training, by itself."""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from orchestrator.serving.draft.job import Workplace, replace_text


def write_text_stage(folder: Path) -> None:
    from orchestrator.serving.draft.text import write_text

    write_text(Workplace(folder))


def train_stage(folder: Path) -> None:
    """Trains, measures what the draft would accept of the held-out answers, and writes it."""
    from safetensors.torch import save_file

    from orchestrator.serving.draft.acceptance import expected_acceptance
    from orchestrator.serving.draft.distill import small_matches, train_small, write_small
    from orchestrator.serving.draft.sequences import read_sequences
    from orchestrator.serving.draft.target import Target
    from orchestrator.serving.draft.text import layers_kept
    from orchestrator.serving.draft.train_head import (
        head_config,
        head_matches,
        head_tensors,
        train_head,
    )

    workplace = Workplace(folder)
    job = workplace.job()
    target = Target(Path(job.target))
    sequences = read_sequences(workplace.text)
    held_out = [one for one in sequences if one.held_out]
    made = workplace.draft.with_name(".draft.partial")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    length = job.speculation_length
    if job.method == "eagle":
        head, ids = train_head(job, workplace, sequences, target)
        matches = head_matches(head, ids, target, held_out, length)
        save_file(head_tensors(head, ids), str(made / "model.safetensors"), {"format": "pt"})
        config = head_config(job, target, head, layers_kept(target.config.num_hidden_layers))
        replace_text(made / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
    else:
        model = train_small(job, workplace, sequences, target)
        matches = small_matches(model, held_out, length, target.device)
        write_small(model, made, Path(job.target))
    expected = expected_acceptance(matches, length)
    learned = [one for one in sequences if not one.held_out]
    report = {
        "method": job.method,
        "speculation_length": length,
        "trained_on": {"answers": len(learned), "tokens": sum(one.answer for one in learned)},
        "expected": {name: asdict(found) for name, found in expected.items()},
    }
    replace_text(workplace.report, json.dumps(report, indent=1) + "\n")
    shutil.rmtree(workplace.draft, ignore_errors=True)
    made.rename(workplace.draft)


STAGES = {"text": write_text_stage, "train": train_stage}


def _stop(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="orchestrator.serving.draft", description=__doc__)
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _stop)
    try:
        STAGES[options.stage](options.folder)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
