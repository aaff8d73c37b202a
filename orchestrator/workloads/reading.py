"""What goes wrong while one source is read: every fault is collected, then raised at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.errors import Fault, WorkloadError
from orchestrator.plan.block import Prompt
from orchestrator.workloads.limits import DEFAULT_LIMITS, Limits


@dataclass(frozen=True, slots=True)
class Row:
    """One record of a source, before anything is known about its meaning."""

    line: int | None
    """First line of the record; None where the format has no lines (Parquet, a hub data set)."""
    ordinal: int
    """1 for the first record; names prompts that bring no id of their own."""
    fields: Mapping[str, Any]

    @property
    def place(self) -> str:
        return "" if self.line is not None else f"record {self.ordinal}"


def shown(value: object, width: int = 60) -> str:
    """The value as it appears in a message: quoted, on one line, short."""
    text = repr(value)
    return text if len(text) <= width else text[: width - 1] + "…"


@dataclass
class Reading:
    """One source being read."""

    file: str
    limits: Limits = DEFAULT_LIMITS
    faults: list[Fault] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    """Records that were left out on purpose, by reason."""

    def fault(
        self, row: Row | int | None, key: str, rule: str, value: object = None, hint: str = ""
    ) -> None:
        """Note a fault; the text of `value` is shortened. `value=None` shows no value."""
        line = row.line if isinstance(row, Row) else row
        place = row.place if isinstance(row, Row) else ""
        self.faults.append(
            Fault(
                self.file,
                line,
                f"{place} {key}".strip(),
                rule,
                None if value is None else shown(value),
                hint or None,
            )
        )

    def skip(self, reason: str) -> None:
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def notes(self) -> tuple[str, ...]:
        return tuple(f"skipped {count}: {reason}" for reason, count in sorted(self.skipped.items()))

    def raise_faults(self) -> None:
        """Raises: WorkloadError with every fault noted so far (the first 20, and how many more)."""
        if not self.faults:
            return
        lines = [str(fault) for fault in self.faults[: self.limits.faults_shown]]
        if len(self.faults) > len(lines):
            lines.append(f"… and {len(self.faults) - len(lines)} more faults in {self.file}")
        raise WorkloadError("\n".join(lines))

    def stop(
        self, line: int | None, key: str, rule: str, value: object = None, hint: str = ""
    ) -> WorkloadError:
        """The error to raise where reading cannot go on; holds the faults noted before as well."""
        self.fault(line, key, rule, value, hint)
        try:
            self.raise_faults()
        except WorkloadError as error:
            return error
        raise AssertionError("a fault was just noted")


ReadPrompt = Callable[[Row, Reading], Prompt | None]


def collect(rows: Iterable[Row], read_prompt: ReadPrompt, reading: Reading) -> list[Prompt]:
    """Every row's prompt.

    Raises: WorkloadError for faults in any row, two prompts with one id, too many prompts, none.
    """
    prompts: list[Prompt] = []
    first_row: dict[str, Row] = {}
    for row in rows:
        if len(prompts) >= reading.limits.prompts:
            raise reading.stop(
                row.line,
                "prompts",
                f"must hold at most {reading.limits.prompts} prompts",
                hint="keep a part of the file",
            )
        prompt = read_prompt(row, reading)
        if prompt is None:
            continue
        earlier = first_row.setdefault(prompt.id, row)
        if earlier is not row:
            where = f"line {earlier.line}" if earlier.line is not None else earlier.place
            reading.fault(
                row, "id", "must be unique", prompt.id, f"{where} has it too: rename one of them"
            )
        prompts.append(prompt)
    reading.raise_faults()
    if not prompts:
        reasons = ", ".join(reading.notes())
        raise reading.stop(
            None,
            "",
            "must hold at least one prompt" + (f" ({reasons})" if reasons else ""),
            hint="the file is empty or holds nothing that can be asked",
        )
    return prompts
