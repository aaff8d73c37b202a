"""The functional suite: every feature of the API, put to both arms. The cases are data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
import yaml

from orchestrator.errors import DeploymentError
from orchestrator.plan.identity import content_hash
from orchestrator.ports import Ask
from orchestrator.records import ARMS
from orchestrator.run.suites.asking import Attendant
from orchestrator.run.suites.margins import read_margins
from orchestrator.run.suites.openai import Said, chat, completion, read
from orchestrator.run.suites.partings import partings
from orchestrator.run.suites.record import Subject, SuiteRecord
from orchestrator.run.suites.suite import Bench

NAME = "functional"
OPENING = "opening"
"""The case of the first request: a plain greedy answer, from which others are made."""
MODELS = "models"
_LONGEST_FILL = 200_000
_LATEST = 0.8
"""Of the opening answer: what stops it must come before, so that there is something to cut."""


@dataclass(frozen=True)
class Case:
    """One line of the compatibility matrix."""

    name: str
    must: str
    check: str
    asks: tuple[Mapping[str, Any], ...]
    in_flight: int = 1
    needs: str | None = None


@cache
def _table() -> dict[str, Any]:
    text = files("orchestrator.run.suites").joinpath("functional_cases.yaml").read_text("utf-8")
    return dict(yaml.safe_load(text))


@cache
def cases() -> tuple[Case, ...]:
    """The cases in order, from `functional_cases.yaml`."""
    return tuple(
        Case(
            entry["case"],
            entry["must"],
            entry["check"],
            tuple(entry["asks"]),
            entry.get("in_flight", 1),
            entry.get("needs"),
        )
        for entry in _table()["cases"]
    )


def cases_for(engine: Mapping[str, Any]) -> tuple[Case, ...]:
    """Those that make sense with these engine arguments."""
    return tuple(case for case in cases() if case.needs is None or engine.get(case.needs))


@dataclass(frozen=True)
class FunctionalSuite:
    """See docs/suites.md."""

    name: str = NAME

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"cases": content_hash(_table())}

    def run(self, bench: Bench) -> SuiteRecord:
        found = cases_for(bench.baseline["engine"])
        notes: list[str] = []
        margins: dict[str, Any] = {}
        complete = True
        try:
            known = {arm: _opening(bench, arm) for arm in ARMS}
            bench.look_after(OPENING)
            for case in found:
                if not bench.time_left:
                    complete = False
                    notes.append(f"time ran out before {case.name}")
                    break
                bench.say(case.name)
                for arm in ARMS:
                    _put(bench, case, arm, known[arm])
                bench.look_after(case.name)
            compared = [case for case in found if _is_compared(case)]
            attendant = Attendant(bench)
            names = {case.name for case in compared}
            margins = read_margins(attendant, "speculative", [*partings(bench.asked, names)])
            notes += attendant.notes
            _put_again(bench, compared)
        except DeploymentError as error:
            complete = False
            notes.append(f"an engine could not be started again: {error.cause}")
        extra = {"margins": {"speculative": margins}}
        return bench.record(NAME, complete=complete, notes=notes, extra=extra)


@dataclass(frozen=True)
class Known:
    """What later requests are made from: the opening answer, the context's length, the adapter."""

    said: Said = field(default_factory=Said)
    max_model_len: int | None = None
    adapter: str | None = None

    def filled(self, value: Any, *, max_tokens: int) -> Any:
        """`value` with every `$name` replaced. Raises: LookupError when one is not known."""
        if isinstance(value, Mapping):
            return {
                str(self.filled(name, max_tokens=max_tokens)): self.filled(
                    item, max_tokens=max_tokens
                )
                for name, item in value.items()
            }
        if isinstance(value, list):
            return [self.filled(item, max_tokens=max_tokens) for item in value]
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        made = self._named(value[1:], max_tokens)
        if made is None:
            raise LookupError(value)
        return made

    def _named(self, name: str, max_tokens: int) -> Any:
        ids = self.said.first.token_ids or ()
        if name == "opening":
            return _table()["opening"]["chat"]
        if name == "stop_word":
            return stop_word(self.said.text)
        if name == "first_token":
            return ids[0] if ids else None
        if name in ("stop_token", "other_token"):
            return _late_first(ids)
        if name == "adapter":
            return self.adapter
        if name == "fill" and ids and self.max_model_len is not None:
            count = self.max_model_len - max_tokens
            return (list(ids) * (count // len(ids) + 1))[: min(count, _LONGEST_FILL)]
        return None


def stop_word(text: str) -> str | None:
    """The word that comes first as late as possible before the last fifth of a text."""
    found = [
        match
        for match in re.finditer(r"[^\W\d_]{3,}", text)
        if 0 < match.start() < _LATEST * len(text) and text.find(match[0]) == match.start()
    ]
    return found[-1][0] if found else None


def _late_first(ids: Sequence[int]) -> int | None:
    """The token that comes first as late as possible, before the last fifth; never the first."""
    early = ids[: int(_LATEST * len(ids))]
    found = [token for index, token in enumerate(early) if index and token not in ids[:index]]
    return found[-1] if found else None


def _opening(bench: Bench, subject: Subject) -> Known:
    (models,) = bench.put(MODELS, subject, [Ask("/v1/models", method="GET", headers=())])
    limit = None
    if models.status == 200:
        served = orjson.loads(models.body).get("data") or [{}]
        limit = served[0].get("max_model_len")
    entry = _table()["opening"]
    (answer,) = bench.put(OPENING, subject, [_ask(bench.model(subject), entry, Known())])
    modules = bench.baseline["engine"].get("lora_modules") or [{}]
    return Known(read(answer), limit, modules[0].get("name"))


def _put(bench: Bench, case: Case, subject: Subject, known: Known) -> None:
    """A request that cannot be made (the server gave no token ids, say) is left out."""
    made: list[tuple[str, Ask]] = []
    for entry in case.asks:
        try:
            made.append((entry["part"], _ask(bench.model(subject), entry, known)))
        except LookupError:
            continue
    asks, parts = [ask for _, ask in made], [part for part, _ in made]
    if asks:
        bench.put(case.name, subject, asks, in_flight=case.in_flight, parts=parts)


def _put_again(bench: Bench, compared: Sequence[Case]) -> None:
    """Everything greedy once more to the baseline relaunched: the floor of differences."""
    if "baseline_again" not in bench.subjects.available or not bench.time_left:
        return
    bench.say("the same to the baseline again")
    known = _opening(bench, "baseline_again")
    for case in compared:
        if bench.time_left:
            _put(bench, case, "baseline_again", known)
    bench.look_after("again", ["baseline_again"])


def _is_compared(case: Case) -> bool:
    return any(entry.get("temperature") == 0 for entry in case.asks)


def _ask(model: str, entry: Mapping[str, Any], known: Known) -> Ask:
    """Raises: LookupError when something that it needs is not known."""
    given = {k: v for k, v in entry.items() if k not in ("part", "chat", "completion", "model")}
    most = int(given.get("max_tokens", 0))
    fields = known.filled(given, max_tokens=most)
    named = known.filled(entry.get("model", model), max_tokens=most)
    if "chat" in entry:
        return chat(named, known.filled(entry["chat"], max_tokens=most), **fields)
    return completion(named, known.filled(entry["completion"], max_tokens=most), **fields)
