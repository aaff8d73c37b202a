"""Recorded arrivals, and real text given to them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.combine import combine
from orchestrator.workloads.prompt_set import PromptSet
from orchestrator.workloads.traces import ArrivalTrace, load_trace
from tests.workloads.counting import count_words

DATA = Path(__file__).parents[1] / "data" / "workloads"


def prompts(*lengths: int) -> PromptSet:
    return PromptSet.of(
        "set",
        "here",
        [
            Prompt(f"p{i}", "c", (" ".join(f"p{i}w{n}" for n in range(length)), "more"))
            for i, length in enumerate(lengths, start=1)
        ],
    )


def trace(*input_tokens: int) -> ArrivalTrace:
    n = len(input_tokens)
    return ArrivalTrace("t", "t.csv", tuple(map(float, range(n))), input_tokens, (1,) * n)


class TestReading:
    def test_azure(self) -> None:
        found = load_trace("azure_trace.csv", base=DATA)
        assert found.offsets_s == (0.0, 0.25, 2.0)
        assert found.input_tokens == (12, 30, 7)
        assert found.output_tokens == (4, 9, 2)
        assert found.rate_rps == 1.0  # 3 arrivals, 2 gaps, 2 seconds

    def test_azure_with_time_zone_and_over_midnight(self, tmp_path: Path) -> None:
        (tmp_path / "z.csv").write_text(
            "TIMESTAMP,ContextTokens,GeneratedTokens\n"
            "2024-05-10 23:59:59.500000+00:00,1,1\n2024-05-11 00:00:00.250000+00:00,1,1\n"
        )
        assert load_trace("z.csv", base=tmp_path).offsets_s == (0.0, 0.75)

    def test_burstgpt_leaves_out_requests_that_failed_and_counts_them(self) -> None:
        found = load_trace("burstgpt_trace.csv", base=DATA)
        assert found.offsets_s == (0.0, 0.0, 8.0)
        assert found.input_tokens == (20, 40, 9)
        assert found.notes == (
            "skipped 1: requests without input or output tokens (failed when recorded)",
        )

    def test_one_model_of_burstgpt(self) -> None:
        found = load_trace("burstgpt_trace.csv", base=DATA, model="GPT-4")
        assert (found.name, found.output_tokens) == ("burstgpt_trace[GPT-4]", (16,))
        assert found.rate_rps is None
        with pytest.raises(WorkloadError, match=r"among the trace's \['ChatGPT', 'GPT-4'\]"):
            load_trace("burstgpt_trace.csv", base=DATA, model="other")

    def test_every_fault_with_its_line(self, tmp_path: Path) -> None:
        (tmp_path / "bad.csv").write_text(
            "Timestamp,Model,Request tokens,Response tokens\n"
            "9,m,1,1\n8,m,1,1\nsoon,m,1,1\n10,m,-3,1\n11,m,1,1.5\nnan,m,1,1\n"
        )
        with pytest.raises(WorkloadError) as caught:
            load_trace("bad.csv", base=tmp_path)
        text = str(caught.value)
        assert "bad.csv:3 timestamp: must not run backwards, got '1 s'; sort the file" in text
        assert "bad.csv:4 timestamp: must be seconds, a finite number, got 'soon'" in text
        assert "bad.csv:5 request tokens: must be a token count" in text
        assert "bad.csv:6 response tokens: must be a token count" in text
        assert "bad.csv:7 timestamp: must be seconds" in text

    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            ("when,how\n1,2\n", "o.csv:1 header: must be Azure's"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n", "must hold at least one arrival"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\nnoon,1,1\n", "o.csv:2 timestamp: must be a"),
            ("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-01-01,1,0\n", "usable arrival"),
        ],
    )
    def test_what_is_no_trace(self, tmp_path: Path, content: str, expected: str) -> None:
        (tmp_path / "o.csv").write_text(content)
        with pytest.raises(WorkloadError, match=expected):
            load_trace("o.csv", base=tmp_path)


class TestReshaping:
    def test_a_window_starts_at_its_first_arrival(self) -> None:
        cut = load_trace("azure_trace.csv", base=DATA).window(0.2, 2.5)
        assert (cut.offsets_s, cut.input_tokens) == ((0.0, 1.75), (30, 7))
        with pytest.raises(WorkloadError, match="nothing arrived from 1 s to 2 s"):
            load_trace("azure_trace.csv", base=DATA).window(1, 2)

    def test_another_rate_keeps_the_shape(self) -> None:
        faster = load_trace("azure_trace.csv", base=DATA).at_rate(4.0)
        assert faster.offsets_s == (0.0, 0.0625, 0.5)
        assert faster.rate_rps == pytest.approx(4.0)
        with pytest.raises(WorkloadError, match="rate must be positive"):
            faster.at_rate(0)


class TestCombine:
    def test_the_shortest_that_is_long_enough_is_taken_and_cut(self) -> None:
        made = combine(trace(4, 9, 2), prompts(3, 5, 10), count_words)
        assert [prompt.turns[0].split()[0] for prompt in made.prompts.prompts] == [
            "p2w0",  # 4 wanted: the one of 5
            "p3w0",  # 9 wanted: the one of 10
            "p1w0",  # 2 wanted: the one of 3
        ]
        assert [prompt.tokens for prompt in made.prompts.prompts] == [4, 9, 2]
        assert [prompt.id for prompt in made.prompts.prompts] == [
            "row-000001",
            "row-000002",
            "row-000003",
        ]
        assert made.input_error == 0
        assert made.prompts.name == "set+trace(t)"

    def test_where_none_is_long_enough_the_longest_are_joined(self) -> None:
        made = combine(trace(12), prompts(3, 5, 10), count_words)
        (prompt,) = made.prompts.prompts
        assert prompt.tokens == 12
        assert prompt.turns[0].startswith("p3w0")
        assert "\n\np2w0" in prompt.turns[0]

    def test_too_little_text_is_an_error_that_says_how_far_it_went(self) -> None:
        with pytest.raises(WorkloadError, match="suffices for 2 of the 3 arrivals"):
            combine(trace(3, 3, 3), prompts(5, 5), count_words)

    def test_reuse_is_allowed_by_name_only_and_recorded(self) -> None:
        made = combine(trace(3, 3, 3), prompts(5, 5), count_words, allow_reuse=True)
        assert len(made.prompts) == 3
        assert made.prompts.notes[-1] == "text was reused: each prompt up to 2 times"

    @given(
        st.lists(st.integers(1, 40), min_size=1, max_size=10),
        st.lists(st.integers(1, 40), min_size=1, max_size=10),
    )
    def test_every_row_gets_its_length_in_its_place(
        self, wanted: list[int], lengths: list[int]
    ) -> None:
        made = combine(trace(*wanted), prompts(*lengths), count_words, allow_reuse=True)
        assert [prompt.tokens for prompt in made.prompts.prompts] == wanted
        assert made.wanted_input_tokens == tuple(wanted)
