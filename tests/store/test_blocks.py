"""A block written is a block read back, whole or not at all."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import StoreError
from orchestrator.records import (
    BlockRecord,
    ClientHealth,
    CounterSnapshot,
    RequestError,
    RequestRecord,
    Sample,
)
from orchestrator.store.atomic import write_atomically
from orchestrator.store.block_file import read_block, write_block

REQUEST = RequestRecord(
    request_id="r-1",
    prompt_id="chat-001",
    category="advice",
    turn=0,
    offset_s=None,
    sent_s=0.0125,
    chunk_s=(0.1, 0.2, 0.3),
    chunk_tokens=(1, 3, 1),
    end_s=0.31,
    input_tokens=12,
    output_tokens=5,
    max_tokens=5,
    finish_reason="length",
    text="four words of text",
    token_ids=(5, 6, 7, 8, 9),
    tokens_from="usage_continuous",
    http_status=200,
)
BLOCK = BlockRecord(
    trial_id="t",
    pair_index=3,
    arm="speculative",
    position=0,
    kind="measured",
    started_unix_s=1.7e9,
    duration_s=0.31,
    requests=(REQUEST,),
    client=ClientHealth(0.001, 0.002, None, None, 0.05),
    counters_before=CounterSnapshot(1.0, ("a",), 0, 0, 0, (0.0, 0.0)),
    counters_after=None,
    samples=(Sample(0.25, {"host_cpu_fraction": 0.5}),),
    notes=("a note",),
    simulated=True,
)


def test_a_block_comes_back_as_it_was(tmp_path: Path) -> None:
    assert read_block(write_block(tmp_path, BLOCK)) == BLOCK


def test_undefined_stays_undefined(tmp_path: Path) -> None:
    failed = replace(
        REQUEST,
        sent_s=None,
        chunk_s=(),
        chunk_tokens=None,
        end_s=None,
        output_tokens=None,
        token_ids=None,
        error=RequestError.RESET,
        error_text="connection reset",
    )
    block = replace(BLOCK, requests=(failed,))
    assert read_block(write_block(tmp_path, block)).requests == (failed,)


@given(text=st.text(max_size=40))
def test_any_text_a_server_sends_can_be_stored(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    block = replace(BLOCK, requests=(replace(REQUEST, text=text),))
    folder = tmp_path_factory.mktemp("blocks")
    stored = read_block(write_block(folder, block)).requests[0].text
    assert stored == text.encode("utf-8", "replace").decode()


def test_a_lone_surrogate_is_stored_as_a_replacement(tmp_path: Path) -> None:
    block = replace(BLOCK, requests=(replace(REQUEST, text="bad \ud800 bytes"),))
    assert read_block(write_block(tmp_path, block)).requests[0].text == "bad ? bytes"


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = write_block(tmp_path, BLOCK)
    path.with_suffix(".parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(StoreError, match=r"003-B\.parquet.*move 003-B\.json"):
        read_block(path)


def test_nothing_half_written_is_left_when_the_write_fails(tmp_path: Path) -> None:
    block = replace(BLOCK, samples=(Sample(0.0, {"host_cpu_fraction": float("nan")}),))
    with pytest.raises(ValueError, match="JSON compliant"):
        write_block(tmp_path, block)
    assert [path.name for path in tmp_path.iterdir()] == ["003-B.parquet"]


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "free some space and run the same command again"),
        (errno.EACCES, "choose another with --results"),
    ],
)
def test_a_write_that_fails_says_what_to_do_and_leaves_nothing(
    tmp_path: Path, number: int, advice: str
) -> None:
    def refuse(temporary: Path) -> None:
        raise OSError(number, os.strerror(number))

    with pytest.raises(StoreError, match=advice):
        write_atomically(tmp_path / "x.json", refuse)
    assert list(tmp_path.iterdir()) == []
