"""`draft train`: what is asked is checked before anything starts, and its stages end cleanly."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli import draft
from orchestrator.errors import ModelUnavailable, SpecError
from orchestrator.serving.draft.job import Workplace
from orchestrator.serving.draft.stages import run_command


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "model.safetensors").write_bytes(b"x")
    return folder


def _args(target: Path, *more: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    draft.add_arguments(parser)
    base = ["train", "--target", str(target), "--method", "eagle", "--prompts", "bundled:chat"]
    return parser.parse_args([*base, *more])


def test_a_tenth_of_every_category_is_held_out(target: Path) -> None:
    job, prompts = draft.asked(_args(target))
    held = [prompt for prompt in prompts if prompt.held_out]
    assert job.name == "target-eagle" and job.target == str(target)
    assert len(prompts) == 160 and 12 <= len(held) <= 24
    categories = {prompt.category for prompt in prompts}
    assert {prompt.category for prompt in held} == categories
    assert all(category.startswith("chat/") for category in categories)
    assert draft.asked(_args(target)) == (job, prompts), "seeded"
    assert draft.asked(_args(target, "--seed", "1"))[1] != prompts


def test_named_prompts_are_held_out_and_at_most_so_many(target: Path) -> None:
    flags = ("--held-out", "bundled:code", "--held-out-prompts", "7")
    _, prompts = draft.asked(_args(target, *flags))
    held = [prompt for prompt in prompts if prompt.held_out]
    assert len(held) == 7 and all(prompt.id.startswith("code/") for prompt in held)
    assert len(prompts) == 160 + 7


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--held-out", "bundled:chat"), "--held-out: must share no prompt with --prompts"),
        (("--passes", "0"), "--passes: must be above 0, got 0"),
        (("--context", "100"), "--context: must be above --answer-tokens, got 100"),
    ],
)
def test_what_makes_no_sense_is_refused(target: Path, flags: tuple[str, ...], said: str) -> None:
    with pytest.raises(SpecError) as refused:
        draft.asked(_args(target, *flags))
    assert str(refused.value).startswith(said)


def test_a_target_that_is_not_here_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match="no such folder"):
        draft.asked(_args(tmp_path / "nothing"))


def test_a_folder_goes_on_with_its_own_training_only(target: Path, tmp_path: Path) -> None:
    job, prompts = draft.asked(_args(target))
    place = Workplace(tmp_path / "work")
    draft._begin(place, job, prompts)
    draft._begin(place, job, prompts)
    other, others = draft.asked(_args(target, "--seed", "1"))
    with pytest.raises(SpecError, match=r"holds a training with other seed; give another folder"):
        draft._begin(place, other, others)
    with pytest.raises(SpecError, match=r"with other prompts"):
        draft._begin(place, job, prompts[1:])


def test_progress_is_one_line_in_ten_seconds_and_says_how_long_still() -> None:
    shown: list[str] = []
    moments = iter([0.0, 1.0, 60.0, 61.0])
    progress = draft.Progress(shown.append, lambda: next(moments))
    for step in (0, 1, 50, 100):
        progress({"stage": "train", "step": step, "of": 100, "loss": 3.5})
    assert shown == [
        "  train: 0 of 100 (loss 3.5)",
        "  train: 50 of 100, about 1 min left (loss 3.5)",
        "  train: 100 of 100 (loss 3.5)",
    ]


def test_the_table_says_what_is_expected_by_category() -> None:
    found = {"answers": 2, "drafts": 9, "acceptance_length": 1.66, "per_position": [0.5, 0.16]}
    nothing = {"answers": 1, "drafts": 0, "acceptance_length": None, "per_position": []}
    table = draft.expected_table(
        {"speculation_length": 2, "expected": {"all": found, "chat": nothing}}
    )
    columns = [list(column.cells) for column in table.columns]
    assert columns[0] == ["all", "chat"]
    assert columns[3] == ["1.66", "–"]
    assert columns[4] == ["0.50", ""]


def _stage(tmp_path: Path, code: str) -> list[str]:
    script = tmp_path / "stage.py"
    script.write_text(code)
    return [sys.executable, str(script), "stage", "folder"]


def test_a_stage_passes_its_progress_on_and_logs_the_rest(tmp_path: Path) -> None:
    said: list[Any] = []
    line = 'draft> {"stage": "text", "tokens": 5, "of": 9}'
    code = f"print({line!r})\nprint('a warning')"
    run_command(_stage(tmp_path, code), tmp_path / "log", said.append, environment={"X": "1"})
    assert said == [json.loads(line.removeprefix("draft> "))]
    assert (tmp_path / "log").read_text() == "a warning\n"


def test_a_stage_that_fails_says_with_what(tmp_path: Path) -> None:
    command = _stage(tmp_path, "raise SystemExit('no memory')")
    with pytest.raises(ModelUnavailable, match=r"(?s)status 1; .*the same command goes on.*no mem"):
        run_command(command, tmp_path / "log", print, environment={})


def test_ctrl_c_ends_the_stage_too(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\n"
        'print(\'draft> {"stage": "train"}\', flush=True)\n'
        "time.sleep(60)"
    )

    def interrupted(said: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_command(_stage(tmp_path, code), tmp_path / "log", interrupted, environment={})
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
