"""One suite's run on disk: its requests as Parquet (one row each), everything else as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.errors import StoreError
from orchestrator.ports import Answer, Ask
from orchestrator.records import FailureClass, Outcome, RequestError
from orchestrator.run.suites.job import SuiteJob
from orchestrator.run.suites.record import Asked, Health, SuiteRecord, SuiteResult
from orchestrator.store.atomic import read_json, write_atomically, write_json

_PAIRS = pa.list_(pa.list_(pa.string()))
_ASKED_COLUMNS = pa.schema(
    [
        ("case", pa.string()),
        ("subject", pa.string()),
        ("repeat", pa.int32()),
        ("part", pa.string()),
        ("path", pa.string()),
        ("body", pa.binary()),
        ("method", pa.string()),
        ("headers", _PAIRS),
        ("timeout_s", pa.float64()),
        ("abandon_after_events", pa.int32()),
        ("abandon_after_s", pa.float64()),
        ("send_bytes_per_s", pa.float64()),
        ("read_bytes_per_s", pa.float64()),
        ("status", pa.int32()),
        ("answer", pa.string()),
        ("event_s", pa.list_(pa.float64())),
        ("event_data", pa.list_(pa.string())),
        ("content_type", pa.string()),
        ("error", pa.string()),
        ("error_text", pa.string()),
        ("seconds", pa.float64()),
        ("abandoned", pa.bool_()),
        ("truncated_body", pa.bool_()),
    ]
)
_ASK_FIELDS = tuple(field.name for field in fields(Ask))
_ANSWER_FIELDS = tuple(f.name for f in fields(Answer) if f.name not in ("body", "events"))


@dataclass(frozen=True)
class SuiteFolder:
    """Reads and writes `results/<sweep>/suites/<id>/`."""

    path: Path

    def begin(self, job: SuiteJob) -> None:
        write_json(
            self.path / "suite.json",
            {"id": job.id, "label": job.label(), "identity": job.identity()},
        )

    def save_record(self, record: SuiteRecord) -> None:
        """The requests first: a record exists when its JSON does. Raises: StoreError."""
        table = pa.Table.from_pylist([_row(asked) for asked in record.asked], _ASKED_COLUMNS)
        write_atomically(
            self.path / "asked.parquet",
            lambda temporary: pq.write_table(table, temporary, compression="zstd"),
        )
        write_json(
            self.path / "record.json",
            {
                **{
                    field.name: getattr(record, field.name)
                    for field in fields(record)
                    if field.name not in ("asked", "health")
                },
                "baseline": dict(record.baseline),
                "speculative": dict(record.speculative),
                "extra": dict(record.extra),
                "health": [asdict(state) for state in record.health],
            },
        )

    def record(self) -> SuiteRecord | None:
        """None while there is none. Raises: StoreError when it cannot be read back."""
        if not (self.path / "record.json").exists():
            return None
        facts: dict[str, Any] = read_json(self.path / "record.json")
        rows_path = self.path / "asked.parquet"
        try:
            rows = pq.read_table(rows_path).to_pylist()
            return SuiteRecord(
                **{
                    **facts,
                    "asked": tuple(_asked(row) for row in rows),
                    "health": tuple(Health(**state) for state in facts["health"]),
                    "notes": tuple(facts["notes"]),
                    "engines": tuple((n, v) for n, v in facts.get("engines", ())),
                }
            )
        except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
            raise StoreError(
                f"{rows_path}: cannot be read back ({type(error).__name__}: {error}); move "
                f"{self.path.name} away and run the sweep again: the suite is run anew"
            ) from error

    def save_outcome(self, outcome: Outcome) -> None:
        write_json(self.path / "outcome.json", asdict(outcome))

    def outcome(self) -> Outcome | None:
        """None while the suite has not ended."""
        path = self.path / "outcome.json"
        if not path.exists():
            return None
        facts = read_json(path)
        facts["failure"] = None if facts["failure"] is None else FailureClass(facts["failure"])
        return Outcome(**facts)

    def save_result(self, result: SuiteResult) -> None:
        """What the record was judged to show; derived, and written anew with every report."""
        write_json(self.path / "result.json", _plain(asdict(result)))

    def done(self, *, retry_failed: bool = False) -> bool:
        """Whether it need not be run again: it failed, or its record is complete."""
        outcome = self.outcome()
        if outcome is None:
            return False
        if outcome.status == "failed":
            return not retry_failed
        path = self.path / "record.json"
        return path.exists() and bool(read_json(path)["complete"])


def _row(asked: Asked) -> dict[str, Any]:
    ask, answer = asked.ask, asked.answer
    row: dict[str, Any] = {name: getattr(ask, name) for name in _ASK_FIELDS}
    row |= {name: getattr(answer, name) for name in _ANSWER_FIELDS}
    row |= {
        "case": asked.case,
        "subject": asked.subject,
        "repeat": asked.repeat,
        "part": asked.part,
        "path": _clean(ask.path),
        "method": _clean(ask.method),
        "headers": [[_clean(name), _clean(value)] for name, value in ask.headers],
        "answer": _clean(answer.body),
        "event_s": [at_s for at_s, _ in answer.events],
        "event_data": [_clean(data) for _, data in answer.events],
        "error": None if answer.error is None else answer.error.value,
        "error_text": None if answer.error_text is None else _clean(answer.error_text),
    }
    return row


def _clean(text: str) -> str:
    """Lone surrogates (odd headers are sent on purpose) are no UTF-8, and Parquet refuses them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _asked(row: Mapping[str, Any]) -> Asked:
    ask = {name: row[name] for name in _ASK_FIELDS}
    ask["headers"] = tuple((name, value) for name, value in row["headers"])
    answer = {name: row[name] for name in _ANSWER_FIELDS}
    answer["error"] = None if row["error"] is None else RequestError(row["error"])
    events = tuple(zip(row["event_s"], row["event_data"], strict=True))
    return Asked(
        case=row["case"],
        subject=row["subject"],
        ask=Ask(**ask),
        answer=Answer(**answer, body=row["answer"], events=events),
        repeat=row["repeat"],
        part=row["part"],
    )


def _plain(value: Any) -> Any:
    """As JSON has it; a figure that is not finite is not there."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        return None
    return value
