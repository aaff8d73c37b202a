"""Recorded arrivals: when requests came and how long they were. No text.

| trace | columns |
|---|---|
| Azure LLM inference | `TIMESTAMP,ContextTokens,GeneratedTokens` |
| BurstGPT | `Timestamp,Model,Request tokens,Response tokens,…` |

Source: Patel et al., Splitwise, 2311.18677 (Azure 2023); Stojkovic et al., DynamoLLM, 2408.00741
(Azure 2024); Wang et al., BurstGPT, 2401.17644.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.errors import WorkloadError
from orchestrator.plan.identity import content_hash
from orchestrator.workloads.limits import DEFAULT_LIMITS, Limits
from orchestrator.workloads.reading import Reading, Row
from orchestrator.workloads.rows import csv_rows
from orchestrator.workloads.text_file import decode, read_bytes


@dataclass(frozen=True, slots=True)
class ArrivalTrace:
    """Row i arrived `offsets_s[i]` after the first one; offsets do not decrease."""

    name: str
    source: str
    offsets_s: tuple[float, ...]
    input_tokens: tuple[int, ...]
    output_tokens: tuple[int, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.offsets_s)

    @property
    def hash(self) -> str:
        return content_hash(
            [list(self.offsets_s), list(self.input_tokens), list(self.output_tokens)]
        )

    @property
    def rate_rps(self) -> float | None:
        """Formula: (rows − 1) / time between first and last. Undefined: None for one instant."""
        span = self.offsets_s[-1] - self.offsets_s[0]
        return (len(self) - 1) / span if span > 0 else None

    def window(self, start_s: float, end_s: float) -> ArrivalTrace:
        """Rows with start_s <= offset < end_s, counted from the window's first arrival.

        Raises: WorkloadError when nothing arrived in it.
        """
        kept = [i for i, offset in enumerate(self.offsets_s) if start_s <= offset < end_s]
        if not kept:
            raise WorkloadError(
                f"{self.source}: nothing arrived from {start_s:g} s to {end_s:g} s; "
                f"the trace runs to {self.offsets_s[-1]:g} s"
            )
        origin = self.offsets_s[kept[0]]
        return replace(
            self,
            name=f"{self.name}[{start_s:g}..{end_s:g}s]",
            offsets_s=tuple(self.offsets_s[i] - origin for i in kept),
            input_tokens=tuple(self.input_tokens[i] for i in kept),
            output_tokens=tuple(self.output_tokens[i] for i in kept),
        )

    def at_rate(self, rate_rps: float) -> ArrivalTrace:
        """The same arrivals stretched or squeezed in time to a mean rate; bursts keep their shape.

        Raises: WorkloadError for a rate that is not positive, or a trace of one instant.
        """
        own = self.rate_rps
        if own is None or not (math.isfinite(rate_rps) and rate_rps > 0):
            raise WorkloadError(
                f"{self.source}: rate must be positive and the trace longer than an instant, "
                f"got {rate_rps} rps over {self.offsets_s[-1]:g} s"
            )
        return replace(
            self,
            name=f"{self.name}@{rate_rps:g}rps",
            offsets_s=tuple(offset * own / rate_rps for offset in self.offsets_s),
        )


def load_trace(
    reference: str, *, base: Path, model: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> ArrivalTrace:
    """The trace in a CSV file, Azure's or BurstGPT's by its header; `model` keeps one model's rows.

    Requests that produced no token (BurstGPT marks failures so) are left out and counted.
    Raises: WorkloadError with every fault: bad numbers, time running backwards, unknown header.
    """
    path = base / Path(reference).expanduser()
    reading = Reading(str(path), limits)
    rows = list(csv_rows(decode(read_bytes(path, reading), reading), reading))
    if not rows:
        reading.raise_faults()
        raise reading.stop(
            None, "", "must hold at least one arrival", hint="there is only a header"
        )
    # BurstGPT's and Azure's header differ in case between releases.
    rows = [replace(row, fields={k.lower(): v for k, v in row.fields.items()}) for row in rows]
    time_of, input_key, output_key = _layout(rows[0], reading)
    arrivals: list[tuple[float, int, int]] = []
    latest = -math.inf
    for row in rows:
        if model is not None and row.fields.get("model") != model:
            continue
        at = time_of(row, reading)
        inputs = _tokens(row, input_key, reading)
        outputs = _tokens(row, output_key, reading)
        if at is None or inputs is None or outputs is None:
            continue
        if at < latest:
            reading.fault(
                row, "timestamp", "must not run backwards", f"{latest - at:g} s", "sort the file"
            )
        latest = max(at, latest)
        if inputs == 0 or outputs == 0:
            reading.skip("requests without input or output tokens (failed when recorded)")
            continue
        arrivals.append((at, inputs, outputs))
    reading.raise_faults()
    if not arrivals and model is not None:
        models = sorted({str(row.fields.get("model")) for row in rows})
        raise reading.stop(None, "model", f"must be among the trace's {models}", model)
    if not arrivals:
        raise reading.stop(None, "", f"must hold a usable arrival ({', '.join(reading.notes())})")
    origin = arrivals[0][0]
    return ArrivalTrace(
        name=path.stem if model is None else f"{path.stem}[{model}]",
        source=reference,
        # Microseconds: what the traces hold; below that there is only noise of the subtraction.
        offsets_s=tuple(round(at - origin, 6) for at, _, _ in arrivals),
        input_tokens=tuple(inputs for _, inputs, _ in arrivals),
        output_tokens=tuple(outputs for _, _, outputs in arrivals),
        notes=reading.notes(),
    )


TimeOf = Callable[[Row, Reading], float | None]


def _layout(first: Row, reading: Reading) -> tuple[TimeOf, str, str]:
    keys = set(first.fields)
    if {"timestamp", "contexttokens", "generatedtokens"} <= keys:
        return _calendar_s, "contexttokens", "generatedtokens"
    if {"timestamp", "request tokens", "response tokens"} <= keys:
        return _number_s, "request tokens", "response tokens"
    raise reading.stop(
        1,
        "header",
        "must be Azure's (TIMESTAMP,ContextTokens,GeneratedTokens) or BurstGPT's "
        "(Timestamp,Model,Request tokens,Response tokens)",
        sorted(keys),
        "rename the columns of your own trace to Azure's",
    )


def _calendar_s(row: Row, reading: Reading) -> float | None:
    """`2023-11-16 18:15:46.6805900`; without an offset it is taken as UTC (only gaps matter)."""
    text = str(row.fields["timestamp"]).strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        reading.fault(row, "timestamp", "must be a date and time (ISO 8601)", text)
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _number_s(row: Row, reading: Reading) -> float | None:
    text: Any = row.fields["timestamp"]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        reading.fault(row, "timestamp", "must be seconds, a finite number", text)
        return None
    return value


def _tokens(row: Row, key: str, reading: Reading) -> int | None:
    text = str(row.fields[key]).strip()
    # Tables written by pandas hold `374.0` where a column once had a gap.
    digits = text.removesuffix(".0")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        reading.fault(row, key, "must be a token count, an integer of 0 or more", text)
        return None
    return int(digits)
