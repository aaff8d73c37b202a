"""The target's own answers, with its hidden states: what a draft learns from.

Written in shards, each whole or not there, so that a run that was killed goes on where it was.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.serving.draft.job import Job, TrainingPrompt, Workplace, replace_text
from orchestrator.serving.draft.said import say

OPENERS = (
    "Write a Python function that", "What does this code do?", "Fix the bug in this function:",
    "Write a class that", "Write a shell script that", "Write a SQL query that", "Refactor",
    "Write a JavaScript function that", "Explain how to implement", "Add tests for",
    "How do I", "Why does", "What is the best way to", "Explain", "Can you help me", "Plan a",
    "I have been", "My friend", "Compare", "Give me advice on", "Write a short", "Suggest",
    "What should I", "Is it", "Describe", "", "", "", "", "", "",
)  # fmt: skip
"""How the target is made to begin a prompt of its own; empty: as it likes."""
_MARK = "\u2063prompt\u2063"


def layers_kept(layers: int) -> tuple[int, ...]:
    """Layers whose states an EAGLE head reads: the middle one and the last."""
    return ((layers + 1) // 2, layers)


def write_text(workplace: Workplace) -> None:
    """Shards until the held-out prompts are answered and the training tokens are there."""
    job = workplace.job()
    workplace.text.mkdir(exist_ok=True)
    engine = _Engine(job)
    own = _own_prompts(job, workplace, engine)
    batches = list(_batches(job, workplace.prompts() + own))
    learned = 0
    for index, batch in enumerate(batches):
        path = workplace.text / f"{index:05}.safetensors"
        if not path.exists():
            engine.write_shard(path, batch)
        if not batch[0].prompt.held_out:
            learned += answer_tokens(path)
        say("text", tokens=learned, of=job.train_tokens, shard=index + 1)
        if learned >= job.train_tokens:
            return
    say("text", tokens=learned, of=job.train_tokens, note="no prompts left")


@dataclass(frozen=True)
class _Task:
    prompt: TrainingPrompt
    temperature: float
    seed: int


def _batches(job: Job, prompts: list[TrainingPrompt]) -> Iterator[list[_Task]]:
    """Held-out prompts first, greedy; then the others in random order: greedy, then sampled."""
    held_out = [_Task(prompt, 0.0, 0) for prompt in prompts if prompt.held_out]
    others = [prompt for prompt in prompts if not prompt.held_out]
    random.Random(job.seed).shuffle(others)
    greedy = [_Task(prompt, 0.0, 0) for prompt in others]
    sampled = [
        _Task(prompt, 0.8, turn * len(others) + index)
        for turn in range(4)
        for index, prompt in enumerate(others)
    ]
    for tasks in (held_out, greedy, sampled):
        for begin in range(0, len(tasks), job.requests):
            yield tasks[begin : begin + job.requests]


def answer_tokens(path: Path) -> int:
    from safetensors import safe_open

    with safe_open(str(path), framework="pt") as shard:
        return sum(row["answer"] for row in json.loads(shard.metadata()["sequences"]))


def _own_prompts(job: Job, workplace: Workplace, engine: _Engine) -> list[TrainingPrompt]:
    """Written once by the target in the user's place, and kept."""
    path = workplace.folder / "own_prompts.json"
    if not path.exists():
        replace_text(path, json.dumps(engine.own_prompts(job.own_prompts), indent=0))
    texts = json.loads(path.read_text(encoding="utf-8"))
    return [
        TrainingPrompt(f"own-{index}", "own", text, None, held_out=False)
        for index, text in enumerate(texts)
    ]


class _Engine:
    """vLLM in this process, with the states of its target kept."""

    def __init__(self, job: Job) -> None:
        os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
        from vllm import LLM

        self._job = job
        self._llm: Any = LLM(
            model=job.target,
            max_model_len=job.context,
            max_num_seqs=job.requests,
            max_num_batched_tokens=max(2048, job.context),
            enable_prefix_caching=False,
            enforce_eager=True,
            distributed_executor_backend="uni",
            seed=job.seed,
            disable_log_stats=True,
            worker_extension_cls="orchestrator.serving.draft.recorder.HiddenStateExtension",
        )
        self._tokenizer: Any = self._llm.get_tokenizer()
        config = self._llm.llm_engine.model_config.hf_config
        layers = layers_kept(config.num_hidden_layers)
        self._llm.collective_rpc("orchestrator_keep_hidden_states", args=(layers,))

    def own_prompts(self, count: int) -> list[str]:
        """Prompts as the target imagines its users', each text once."""
        from vllm import SamplingParams

        chat = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": _MARK}], tokenize=False, add_generation_prompt=True
        )
        before, after = chat.split(_MARK)
        end = after.lstrip().split("\n")[0].split("<")[1]
        openers = random.Random(self._job.seed).choices(OPENERS, k=count)
        found: dict[str, None] = {}
        for begin in range(0, count, self._job.requests):
            some = openers[begin : begin + self._job.requests]
            settings = [
                SamplingParams(
                    temperature=1.0, top_p=0.95, max_tokens=64, stop=[f"<{end}"],
                    seed=self._job.seed * 1_000_003 + begin + index,
                )
                for index, _ in enumerate(some)
            ]  # fmt: skip
            answers = self._llm.generate(
                [self._ids(before + opener) for opener in some], settings, use_tqdm=False
            )
            self._llm.collective_rpc("orchestrator_take_hidden_states")
            for opener, answer in zip(some, answers, strict=True):
                text = (opener + answer.outputs[0].text).strip()
                if len(text) > 12:
                    found.setdefault(text)
            say("prompts", written=len(found), of=count)
        return list(found)

    def _ids(self, text: str) -> dict[str, Any]:
        ids = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return {"prompt_token_ids": ids}

    def _prompt_ids(self, prompt: TrainingPrompt) -> list[int]:
        messages = [{"role": "user", "content": prompt.text}]
        if prompt.system is not None:
            messages.insert(0, {"role": "system", "content": prompt.system})
        text = self._tokenizer.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True
        )
        ids: list[int] = self._ids(text)["prompt_token_ids"]
        return ids

    def write_shard(self, path: Path, tasks: list[_Task]) -> None:
        import torch
        from safetensors.torch import save_file
        from vllm import SamplingParams

        longest = self._job.context - self._job.answer_tokens
        kept = [
            (task, ids) for task in tasks if len(ids := self._prompt_ids(task.prompt)) < longest
        ]
        answers = self._llm.generate(
            [{"prompt_token_ids": ids} for _, ids in kept],
            [
                SamplingParams(
                    temperature=task.temperature, max_tokens=self._job.answer_tokens,
                    seed=task.seed if task.temperature else None,
                )
                for task, _ in kept
            ],
            use_tqdm=False,
        )  # fmt: skip
        states = self._llm.collective_rpc("orchestrator_take_hidden_states")[0]
        rows, tokens, hidden = [], [], []
        for (task, ids), answer in zip(kept, answers, strict=True):
            sequence = [*ids, *answer.outputs[0].token_ids]
            state = states_of(states, answer.request_id)[: len(sequence) - 1]
            # The last token was never read by the target: nothing can be learned after it.
            sequence = sequence[: len(state) + 1]
            rows.append(
                {"id": task.prompt.id, "category": task.prompt.category,
                 "held_out": task.prompt.held_out, "temperature": task.temperature,
                 "length": len(sequence), "answer": len(sequence) - len(ids)}
            )  # fmt: skip
            tokens.extend(sequence)
            hidden.append(torch.cat([state, state.new_zeros(1, state.shape[1])]))
        partial = path.with_name(f".{path.name}.partial")
        save_file(
            {"tokens": torch.tensor(tokens, dtype=torch.int32), "hidden": torch.cat(hidden)},
            str(partial),
            metadata={"sequences": json.dumps(rows)},
        )
        partial.replace(path)


def states_of(states: dict[str, Any], request: str) -> Any:
    """Of a request by its name; vLLM appends a random part to it inside the engine."""
    found = [rows for name, rows in states.items() if name == request or
             name.rpartition("-")[0] == request]  # fmt: skip
    if len(found) != 1:
        raise RuntimeError(
            f"request {request}: hidden states of exactly one request must be there, got "
            f"{len(found)} among {sorted(states)[:4]}; the engine names requests otherwise"
        )
    return found[0]
