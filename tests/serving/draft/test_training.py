"""Training on a tiny target: what it learns, what it leaves, and that it goes on when killed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the extra `cpu` is not installed")

from orchestrator.models.heads import complete_head  # noqa: E402
from orchestrator.serving.draft.__main__ import train_stage  # noqa: E402
from orchestrator.serving.draft.head import Chain, EagleHead, Shape, from_target  # noqa: E402
from orchestrator.serving.draft.job import Job, Workplace  # noqa: E402
from orchestrator.serving.draft.learning import Learning  # noqa: E402
from orchestrator.serving.draft.sequences import batch_of, read_sequences  # noqa: E402
from orchestrator.serving.draft.target import Target  # noqa: E402
from orchestrator.serving.draft.train_head import _steps, head_loss  # noqa: E402
from tests.serving.draft.tiny import CYCLE, VOCABULARY, tiny_target, write_shard  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Tiny matrices are only slowed down by a second thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def _job(target: Path, **changes: Any) -> Job:
    job = Job(
        name="tiny", target=str(target), method="eagle", seed=0, train_tokens=1000,
        answer_tokens=30, context=64, own_prompts=0, requests=4, passes=30.0,
        speculation_length=3, draft_vocabulary=32, layers=1,
    )  # fmt: skip
    return replace(job, **changes)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """(the target's folder, a folder with shards)."""
    folder = tmp_path_factory.mktemp("tiny")
    target, text = folder / "target", folder / "text"
    text.mkdir()
    model = tiny_target(target)
    rows = []
    for begin in range(24):
        ids = [CYCLE[(begin + j) % len(CYCLE)] for j in range(36 - begin % 3)]
        rows.append(("a/x" if begin % 2 else "b/y", begin >= 20, ids, 28))
    write_shard(text / "00000.safetensors", model, rows)
    return target, text


def _workplace(folder: Path, place: tuple[Path, Path], job: Job) -> Workplace:
    workplace = Workplace(folder)
    workplace.write(job, [])
    workplace.text.symlink_to(place[1])
    return workplace


def test_a_head_learns_the_cycle_and_says_so_of_answers_it_never_saw(
    tmp_path: Path, place: tuple[Path, Path]
) -> None:
    workplace = _workplace(tmp_path / "work", place, _job(place[0]))

    train_stage(workplace.folder)

    report = json.loads(workplace.report.read_text(encoding="utf-8"))
    assert list(report["expected"]) == ["a", "a/x", "all", "b", "b/y"]
    assert report["expected"]["all"]["answers"] == 4
    assert report["expected"]["all"]["acceptance_length"] > 3.5
    config = json.loads((workplace.draft / "config.json").read_text(encoding="utf-8"))
    assert config["eagle_aux_hidden_state_layer_ids"] == [1, 2]
    assert config["draft_vocab_size"] == 32


def test_the_served_folder_has_the_targets_rows_for_the_tokens_that_are_proposed(
    tmp_path: Path, place: tuple[Path, Path]
) -> None:
    from safetensors.torch import load_file

    workplace = _workplace(tmp_path / "work", place, _job(place[0], passes=1.0))
    train_stage(workplace.folder)

    complete_head(workplace.draft, place[0], tmp_path / "served")

    kept = load_file(str(workplace.draft / "model.safetensors"))
    served = load_file(str(tmp_path / "served" / "model.safetensors"))
    target = load_file(str(place[0] / "model.safetensors"))["model.embed_tokens.weight"]
    ids = served["d2t"] + torch.arange(32)
    assert set(CYCLE) <= set(ids.tolist()) and ids.max() < VOCABULARY
    assert torch.equal(served["lm_head.weight"], target[ids])
    for name, tensor in kept.items():
        assert torch.equal(served[name], tensor), name


def test_a_small_model_learns_too(tmp_path: Path, place: tuple[Path, Path]) -> None:
    from orchestrator.serving.draft.acceptance import expected_acceptance
    from orchestrator.serving.draft.distill import layers_taken, small_matches, train_small

    assert layers_taken(4, 30) == [0, 10, 19, 29]
    assert layers_taken(1, 30) == [29]
    workplace = _workplace(tmp_path / "work", place, _job(place[0], method="distill"))
    sequences = read_sequences(workplace.text)
    model = train_small(workplace.job(), workplace, sequences, Target(place[0]))
    held_out = [one for one in sequences if one.held_out]
    found = expected_acceptance(small_matches(model, held_out, 3, "cpu"), 3)["all"]
    assert found.acceptance_length is not None and found.acceptance_length > 3.5


def test_a_killed_training_goes_on_and_ends_where_it_would_have_ended(
    tmp_path: Path, place: tuple[Path, Path]
) -> None:
    class Killed(Exception):
        pass

    def run(checkpoint: Path, until: int | None) -> Any:
        torch.manual_seed(1)
        module = torch.nn.Linear(3, 1)
        learning = Learning(module, 9, 0.05, checkpoint)

        def loss_of(step: int) -> Any:
            if step == until:
                learning.save()
                raise Killed
            return ((module(torch.full((4, 3), float(step))) - 1) ** 2).mean()

        learning.run(loss_of)
        return module.weight.detach().clone()

    whole = run(tmp_path / "whole.safetensors", None)
    with pytest.raises(Killed):
        run(tmp_path / "cut.safetensors", 4)
    assert torch.equal(run(tmp_path / "cut.safetensors", None), whole)


def test_a_later_draft_token_sees_the_text_up_to_where_its_chain_began_and_its_own_chain() -> None:
    """Chains of all positions at once give what one chain alone gives."""
    torch.manual_seed(0)
    shape = Shape(16, 2, 2, 8, 24, 2, 1e-5, 10_000.0)
    head = EagleHead(shape)
    embeds, hidden = torch.randn(1, 9, 16), torch.randn(1, 9, 16)

    def after_two_steps(length: int) -> Any:
        chain = Chain()
        state = head.step(embeds[:, :length], hidden[:, :length], chain)
        return head.step(embeds[:, 1 : length + 1], state, chain)

    alone = after_two_steps(5)
    assert torch.allclose(after_two_steps(8)[:, :5], alone, atol=1e-5)


def test_an_untrained_head_reads_the_targets_last_state(place: tuple[Path, Path]) -> None:
    target = Target(place[0])
    head = from_target(target.config, target.weights, 2)
    sequences = read_sequences(place[1])
    batch = batch_of(sequences[:2], "cpu")
    assert torch.equal(head.fc(batch.hidden.float()), batch.hidden[..., 32:].float())
    states = list(_steps(head, target, batch, 3))
    assert [tuple(state.shape) for state in states] == [(2, 34, 32)] * 3
    rows = target.output[:32]
    assert torch.isfinite(head_loss(head, target, rows, batch, 3))
