"""`draft`: train a draft for a target, on text that the target writes itself."""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from orchestrator.adapters.node_facts import this_node
from orchestrator.errors import Fault, ModelUnavailable, SpecError
from orchestrator.models.cache import (
    SERVED,
    describe,
    put_in_place,
    sha256_of,
    training_folder,
    write_manifest,
)
from orchestrator.models.heads import WEIGHTS, complete_head
from orchestrator.models.resolve import resolve
from orchestrator.plan.block import Prompt
from orchestrator.serving.draft.job import Job, TrainingPrompt, Workplace
from orchestrator.serving.draft.stages import run_stage
from orchestrator.workloads.held_out import hold_out, some_of
from orchestrator.workloads.load import load_prompts

HELD_OUT_SHARE = 0.1
METHODS = {"eagle": "eagle", "distill": "draft_model"}
"""The speculation method that each kind of draft is served with."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    train = actions.add_parser(
        "train", help="the target writes text, the draft learns from it, the rest says what it got"
    )
    train.add_argument("--target", required=True, help="catalogue name or folder")
    train.add_argument(
        "--prompts", required=True, action="append", metavar="REF",
        help="what the target answers: bundled:chat, a file, …; may be given several times",
    )  # fmt: skip
    train.add_argument(
        "--held-out", action="append", default=[], metavar="REF",
        help="prompts to judge by, never learned from (default: a tenth of --prompts by category)",
    )  # fmt: skip
    train.add_argument("--method", required=True, choices=METHODS)
    train.add_argument("--name", help="of the draft (default: TARGET-METHOD)")
    train.add_argument("--out", type=Path, help="folder to work in (default: in the cache)")
    train.add_argument("--seed", type=_whole(0), default=0)
    numbers: tuple[tuple[str, int, str], ...] = (
        ("--tokens", 200_000, "the target's own tokens to learn from"),
        ("--answer-tokens", 192, "longest answer"),
        ("--context", 640, "longest prompt with its answer, in tokens"),
        ("--held-out-prompts", 40, "most prompts held out of one set"),
        ("--requests", 48, "answers written at once"),
        ("--speculation-length", 3, "K that the draft is trained and judged for"),
        ("--draft-vocabulary", 8192, "most frequent tokens that an EAGLE head proposes"),
        ("--layers", 4, "of the target that a distilled draft keeps"),
    )
    for flag, default, text in numbers:
        train.add_argument(flag, type=_whole(1), default=default, help=f"{text} ({default})")
    train.add_argument(
        "--own-prompts", type=_whole(0), default=0, metavar="N",
        help="prompts that the target writes itself, besides --prompts (0)",
    )  # fmt: skip
    train.add_argument("--passes", type=float, default=6.0, help="readings of the text (6)")


def run(args: argparse.Namespace) -> int:
    job, prompts = asked(args)
    workplace = Workplace(args.out or training_folder(job.name))
    _begin(workplace, job, prompts)
    console = Console()
    held = sum(prompt.held_out for prompt in prompts)
    console.print(
        f"{job.name}: {len(prompts) - held} prompts to learn from and {job.own_prompts} of the "
        f"target's own, {held} held out. Ctrl-C stops; the same command goes on."
    )
    accelerators = this_node().gpus > 0
    for stage in ("text", "train"):
        run_stage(stage, workplace.folder, Progress(console.print), accelerators=accelerators)
    _finish(workplace, job, console)
    return 0


def asked(args: argparse.Namespace) -> tuple[Job, list[TrainingPrompt]]:
    """Raises: SpecError, ModelUnavailable, WorkloadError; nothing is started."""
    if args.answer_tokens >= args.context:
        raise _fault("--context", "must be above --answer-tokens", args.context)
    if not args.passes > 0:
        raise _fault("--passes", "must be above 0", args.passes)
    target = resolve(args.target, offline=True)
    if target.local_path is None:
        raise ModelUnavailable(f"{args.target}: training needs the target's weights in a folder")
    learned: list[Prompt] = []
    held: list[Prompt] = []
    for reference in args.prompts:
        learned += _named(reference, None, args.seed)
    for reference in args.held_out:
        held += _named(reference, args.held_out_prompts, args.seed)
    if not held:
        learned, held = hold_out(learned, HELD_OUT_SHARE, seed=args.seed)
    if not held:
        raise _fault("--prompts", "must leave some to judge by; every category has one prompt",
                     len(learned))  # fmt: skip
    texts = {prompt.turns[0] for prompt in held}
    both = [prompt.id for prompt in learned if prompt.turns[0] in texts]
    if both:
        raise _fault("--held-out", "must share no prompt with --prompts", ", ".join(both[:5]))
    name = args.name or f"{Path(args.target).name}-{args.method}"
    job = Job(
        name=name,
        target=str(target.local_path),
        method=args.method,
        seed=args.seed,
        train_tokens=args.tokens,
        answer_tokens=args.answer_tokens,
        context=args.context,
        own_prompts=args.own_prompts,
        requests=args.requests,
        passes=args.passes,
        speculation_length=args.speculation_length,
        draft_vocabulary=args.draft_vocabulary,
        layers=args.layers,
    )
    return job, [_training(p, False) for p in learned] + [_training(p, True) for p in held]


def _named(reference: str, most: int | None, seed: int) -> list[Prompt]:
    """Prompts whose categories carry the set's name, as several sets come together."""
    prompts = load_prompts(reference, base=Path.cwd())
    chosen = prompts.prompts if most is None else some_of(prompts, most, seed=seed)
    return [
        replace(prompt, id=f"{prompts.name}/{prompt.id}",
                category=f"{prompts.name}/{prompt.category}")
        for prompt in chosen
    ]  # fmt: skip


def _training(prompt: Prompt, held_out: bool) -> TrainingPrompt:
    return TrainingPrompt(prompt.id, prompt.category, prompt.turns[0], prompt.system, held_out)


def _begin(workplace: Workplace, job: Job, prompts: list[TrainingPrompt]) -> None:
    """Goes on with what a killed run of the same command left.

    Raises: SpecError when the folder holds another training.
    """
    if (workplace.folder / "job.json").exists():
        kept, now = workplace.job(), workplace.prompts()
        if (kept, now) == (job, prompts):
            return
        before, after = asdict(kept), asdict(job)
        changed = [name for name in after if before[name] != after[name]] or ["prompts"]
        raise _fault(
            "--out",
            f"holds a training with other {', '.join(changed)}; give another folder or --name",
            str(workplace.folder),
        )
    workplace.write(job, prompts)


def _finish(workplace: Workplace, job: Job, console: Console) -> None:
    served, made = workplace.folder / SERVED, workplace.folder / f".{SERVED}.partial"
    if job.method == "eagle":
        complete_head(workplace.draft, Path(job.target), made)
    else:
        shutil.rmtree(made, ignore_errors=True)
        shutil.copytree(workplace.draft, made)
    source = f"trained here for {Path(job.target).name}, seed {job.seed}"
    weights = sha256_of(workplace.draft / WEIGHTS)
    write_manifest(made, describe(made, name=job.name, source=source, source_sha256=weights))
    put_in_place(made, served)
    report = json.loads(workplace.report.read_text(encoding="utf-8"))
    console.print(expected_table(report))
    console.print(
        "Greedy, on answers of the target to prompts that the draft never saw. Serve it with:\n"
        f"  {{method: {METHODS[job.method]}, draft: {served}, "
        f"speculation_length: [{job.speculation_length}]}}"
    )


def expected_table(report: Mapping[str, Any]) -> Table:
    """Expected acceptance per category, before anything is served."""
    length = report["speculation_length"]
    table = Table(title=f"expected acceptance, K={length}", box=None, pad_edge=False)
    columns = ("category", "answers", "drafts", "acceptance length")
    for name in (*columns, *(f"position {n}" for n in range(1, length + 1))):
        table.add_column(name, justify="left" if name == "category" else "right")
    for name, found in report["expected"].items():
        reached = found["acceptance_length"]
        table.add_row(
            name, str(found["answers"]), str(found["drafts"]),
            "–" if reached is None else f"{reached:.2f}",
            *(f"{share:.2f}" for share in found["per_position"]),
        )  # fmt: skip
    return table


class Progress:
    """One line when a stage begins, and then at most one in ten seconds."""

    def __init__(self, show: Any, now: Any = time.monotonic) -> None:
        self._show, self._now = show, now
        self._stage: str | None = None
        self._began = self._said = 0.0
        self._first: float | None = None

    def __call__(self, said: Mapping[str, Any]) -> None:
        stage, now = str(said["stage"]), float(self._now())
        done = float(said.get("step", said.get("tokens", said.get("written", 0))))
        if stage != self._stage:
            self._stage, self._began, self._first = stage, now, done
        elif now - self._said < 10 and done < said["of"]:
            return
        self._said = now
        rest = ", ".join(
            f"{name} {value}" for name, value in said.items() if name in ("loss", "note")
        )
        self._show(
            f"  {stage}: {done:,.0f} of {said['of']:,}{self._left(now, done, said['of'])}"
            + (f" ({rest})" if rest else "")
        )

    def _left(self, now: float, done: float, of: float) -> str:
        gained = done - (self._first or 0.0)
        if gained <= 0 or done >= of:
            return ""
        return f", about {(now - self._began) * (of - done) / gained / 60:.0f} min left"


def _whole(least: int) -> Any:
    def read(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be >= {least}, got {value}")
        return value

    read.__name__ = "whole number"
    return read


def _fault(flag: str, rule: str, value: object) -> SpecError:
    return SpecError([Fault(flag, None, "", rule, str(value))])
