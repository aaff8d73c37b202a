"""How a server can be asked: how much it counts, and which fields it refuses.

Found out with the client that will measure, in requests of a few tokens, before the first trial.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.server import refused_key
from orchestrator.adapters.http.client import HttpLoadClient
from orchestrator.adapters.http.request import UsageWanted
from orchestrator.errors import DeploymentError
from orchestrator.plan.block import BlockPlan, PlannedRequest, Prompt, Timeouts
from orchestrator.plan.trial import LoadPoint, Sampling
from orchestrator.ports import Endpoint
from orchestrator.records import FailureClass, RequestRecord

USAGES: tuple[UsageWanted, ...] = ("continuous", "final", "none")
"""From the most that a server can count to the least."""
_TOKENS = 16
"""More than one: a server that counts only at the end must not look as if it counted every chunk,
also when it sends several tokens at once."""
_PROMPT = Prompt("asking", "asking", ("Count from one to one hundred, in words.",))
_NOT_ABOUT_FIELDS = (None, 401, 403, 429, 503)
"""Statuses that another way of asking would not change; None = no answer at all."""

Ask = Callable[[BlockPlan, UsageWanted], RequestRecord]
EndpointKind = Literal["chat", "completion"]


@dataclass(frozen=True, slots=True)
class Question:
    """One way in which the sweep asks."""

    endpoint: EndpointKind
    sampling: Sampling
    fixed_length: bool
    workloads: tuple[str, ...] = ()
    """Who asks so; for messages."""

    def plan(self, timeouts: Timeouts) -> BlockPlan:
        request = PlannedRequest("asking", _PROMPT, None, _TOKENS, seed=1)
        return BlockPlan(
            requests=(request,),
            load=LoadPoint("closed", concurrency=1),
            sampling=self.sampling,
            endpoint=self.endpoint,
            fixed_length=self.fixed_length,
            history="first_turn",
            timeouts=timeouts,
        )

    @property
    def bare(self) -> Question:
        """The same without any field that OpenAI's own servers need not know."""
        plain = Sampling(temperature=self.sampling.temperature, seeded=False)
        return replace(self, sampling=plain, fixed_length=False)


@dataclass(frozen=True, slots=True)
class Counting:
    """What a server counts for us."""

    usage: UsageWanted
    tells_tokens: bool
    """Whether it says how many tokens an answer had, asked or not."""


def weaker(countings: Sequence[Counting]) -> Counting:
    """What all of them can do: both arms are asked the same way."""
    return Counting(
        max((each.usage for each in countings), key=USAGES.index),
        all(each.tells_tokens for each in countings),
    )


def asking(endpoint: Endpoint, access: Access, timeouts: Timeouts) -> Ask:
    """Sends one request, as it will be sent when measuring."""

    def ask(plan: BlockPlan, usage: UsageWanted) -> RequestRecord:
        plan = replace(plan, timeouts=timeouts)
        verify, authority = access.tls.verify, access.tls.ca_file
        with HttpLoadClient(
            workers=0, usage=usage, tls_ca_file=authority, tls_verify=verify
        ) as client:
            return client.run_block(endpoint, plan).requests[0]

    return ask


def how_to_ask(url: str, questions: Sequence[Question], ask: Ask, access: Access) -> Counting:
    """How the server at `url` counts, if it takes every question that the sweep will send.

    Raises: DeploymentError naming each field that it refuses, and what to change in the file.
    """
    countings = []
    for _, same in itertools.groupby(
        sorted(questions, key=lambda question: question.endpoint), key=lambda q: q.endpoint
    ):
        group = list(same)
        counting = _counting(url, group[0].bare, ask, access)
        countings.append(counting)
        for question in group:
            _refuse_refusals(url, question, counting.usage, ask, access)
    return weaker(countings)


def _counting(url: str, bare: Question, ask: Ask, access: Access) -> Counting:
    """Asks for the most first; what the server honours counts, not what it puts up with."""
    for usage in USAGES:
        record = ask(bare.plan(Timeouts()), usage)
        if record.completed:
            honoured: UsageWanted = {
                "usage_continuous": "continuous",
                "token_ids": "continuous",
                "usage_final": "final",
            }.get(record.tokens_from, "none")  # type: ignore[assignment]
            weaker_of_both = max(usage, honoured, key=USAGES.index)
            return Counting(weaker_of_both, record.output_tokens is not None)
        if record.http_status in _NOT_ABOUT_FIELDS:
            break
    raise _failed(url, bare, record, access)


def _refuse_refusals(
    url: str, question: Question, usage: UsageWanted, ask: Ask, access: Access
) -> None:
    record = ask(question.plan(Timeouts()), usage)
    if record.completed:
        return
    if record.http_status in _NOT_ABOUT_FIELDS:
        raise _failed(url, question, record, access)
    refused = []
    for field, mend, alone in _fields(question):
        answer = ask(alone.plan(Timeouts()), usage)
        if not answer.completed and answer.http_status not in _NOT_ABOUT_FIELDS:
            refused.append(f"{field} ({_told(answer, access)}): {mend}")
    if not refused:
        raise _failed(url, question, record, access)
    raise DeploymentError(
        FailureClass.BAD_CONFIGURATION,
        f"{url} refuses fields that the sweep sends:\n  " + "\n  ".join(refused),
    )


def _fields(question: Question) -> Iterator[tuple[str, str, Question]]:
    """(field, what to change in the file, the bare question with this field alone)."""
    bare, sampling = question.bare, question.sampling
    if question.fixed_length:
        who = ", ".join(question.workloads)
        mend = f"set fixed_length: false in workload {who} (answers then end where they end)"
        yield "ignore_eos", mend, replace(bare, fixed_length=True)
    if sampling.seeded:
        seeded = replace(bare.sampling, seeded=True)
        yield "seed", "set sampling.seeded: false", replace(bare, sampling=seeded)
    for name in ("top_p", "top_k", "min_p"):
        value = getattr(sampling, name)
        if value is not None:
            alone = Sampling(temperature=sampling.temperature, seeded=False, **{name: value})
            yield name, f"leave out sampling.{name}", replace(bare, sampling=alone)


def _failed(url: str, question: Question, record: RequestRecord, access: Access) -> DeploymentError:
    status = record.http_status
    if status in (401, 403):
        return refused_key(url, access, status, record.error_text)
    sent = f"a {question.endpoint} request at temperature {question.sampling.temperature:g}"
    mend = ""
    if status == 404:
        other = "completion" if question.endpoint == "chat" else "chat"
        mend = f"; check attach.model, or set endpoint: {other} in the workload"
    return DeploymentError(
        FailureClass.START_FAILED
        if status in _NOT_ABOUT_FIELDS
        else FailureClass.BAD_CONFIGURATION,
        f"{url} did not answer {sent}: {_told(record, access)}{mend}",
    )


def _told(record: RequestRecord, access: Access) -> str:
    words = access.masked(record.error_text) or "no text"
    return words if record.http_status is not None else f"{record.error}: {words}"
