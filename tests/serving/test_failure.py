"""The class and the cause of a failed start, from what engines really write."""

from __future__ import annotations

import pytest

from orchestrator.records import FailureClass
from orchestrator.serving.failure import CAUSE_LENGTH, Failure, classify

PREFIX = "(EngineCore pid=4242) ERROR 11-30 11:00:01 [core.py:1214] "

LOGS = [
    (
        FailureClass.OUT_OF_MEMORY,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a "
        "total capacity of 79.11 GiB of which 3.02 GiB is free.",
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB",
    ),
    (
        FailureClass.OUT_OF_MEMORY,
        "ValueError: To serve at least one request with the models's max seq len (131072), "
        "(16.00 GiB KV cache is needed, which is larger than the available KV cache memory "
        "(3.10 GiB).",
        "ValueError: To serve at least one request",
    ),
    (
        FailureClass.OUT_OF_MEMORY,
        "ValueError: Free memory on device (3.1/79.1 GiB) on startup is less than desired GPU "
        "memory utilization (0.9, 71.2 GiB).",
        "ValueError: Free memory on device",
    ),
    (
        FailureClass.BAD_CONFIGURATION,
        "orchestrator.serving.engine_arguments.BadEngineArgument: engine.max_modal_len: not an "
        "engine argument of vLLM; did you mean 'max_model_len'?",
        "BadEngineArgument: engine.max_modal_len",
    ),
    (
        FailureClass.BAD_CONFIGURATION,
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for ModelConfig\n"
        "  Value error, User-specified max_model_len (99999) is greater than the derived "
        "max_model_len (max_position_embeddings=8192)",
        "ValidationError: 1 validation error for ModelConfig Value error, User-specified "
        "max_model_len (99999) is greater",
    ),
    (
        FailureClass.BAD_CONFIGURATION,
        "OSError: org/none is not a local folder and is not a valid model identifier listed on "
        "'https://huggingface.co/models'",
        "model not found: OSError: org/none",
    ),
    (
        FailureClass.START_FAILED,
        "AssertionError: tensor 3 has the wrong shape",
        "AssertionError: tensor 3 has the wrong shape",
    ),
]


@pytest.mark.parametrize(("failure", "line", "cause"), LOGS)
def test_the_innermost_error_counts(failure: FailureClass, line: str, cause: str) -> None:
    own = "\n".join(PREFIX + part for part in ["Traceback (most recent call last):", line])
    log = own.replace("\n  Value", f"\n{PREFIX}  Value") + (
        "\nTraceback (most recent call last):\n"
        '  File "x.py", line 3, in start\n'
        "RuntimeError: Engine core initialization failed. See root cause above. "
        "Failed core proc(s): {'EngineCore': 1}\n"
    )

    found = classify(log)

    assert found.failure == failure
    assert found.cause.startswith(cause)
    assert "\n" not in found.cause


def test_a_process_killed_for_memory_is_out_of_memory() -> None:
    found = classify("INFO loading\nKilled process 4242 (VLLM::EngineCore)")

    assert found.failure == FailureClass.OUT_OF_MEMORY


def test_a_log_that_says_nothing() -> None:
    assert classify("").cause == "the engine wrote nothing"
    assert classify("").failure == FailureClass.START_FAILED


def test_a_cause_is_short() -> None:
    assert len(classify("ValueError: " + "x" * 5000).cause) == CAUSE_LENGTH


def test_only_a_wrapper_is_better_than_nothing() -> None:
    found = classify("RuntimeError: Engine core initialization failed. See root cause above.")

    assert found.cause.startswith("RuntimeError: Engine core initialization failed")


def test_an_error_without_a_message_counts_too() -> None:
    log = 'Traceback (most recent call last):\n  File "x.py", line 1\nMemoryError\n'
    found = classify(log + "RuntimeError: Engine core initialization failed: 1\n")

    assert found == Failure(FailureClass.OUT_OF_MEMORY, "MemoryError")
