"""`ports.Asker` of the simulated machine room: on virtual time, without a socket."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import orjson

from orchestrator.adapters.simulated.drive import Arrival, drive
from orchestrator.adapters.simulated.engine import SimulatedEngine
from orchestrator.adapters.simulated.front import EVENT_STREAM, Front, Reply, json_reply, refusal
from orchestrator.adapters.simulated.generation import Generation
from orchestrator.adapters.simulated.in_process import unix_of
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.openai_payloads import BadRequest
from orchestrator.adapters.simulated.world import Room, SimulatedWorld
from orchestrator.plan.block import Timeouts
from orchestrator.ports import Answer, Ask, Endpoint
from orchestrator.records import RequestError

BODY_LIMIT = 4 * 2**20
_REPLY_S = 1e-4
"""A reply that needs no generation."""


class SimulatedAsker:
    """Puts requests to simulated engines; what an engine says is the same as over HTTP."""

    def __init__(self, world: SimulatedWorld, *, body_limit: int = BODY_LIMIT) -> None:
        self._world, self._body_limit = world, body_limit
        self._fronts: dict[str, Front] = {}

    def ask(self, endpoint: Endpoint, asks: Sequence[Ask], *, in_flight: int = 1) -> list[Answer]:
        if in_flight < 1:
            raise ValueError(f"in_flight >= 1 must hold, got {in_flight}")
        room = self._world.at(endpoint)
        if room is None:
            return [_refused("no such simulated engine") for _ in asks]
        with room.lock:
            began_s = self._world.enter(room.engine)
            answers = _Asking(room, self._front(room), endpoint, asks).run(in_flight, began_s)
            self._world.leave(room.engine)
        return [_cut(answer, self._body_limit) for answer in answers]

    def _front(self, room: Room) -> Front:
        """One per life of an engine."""
        front = self._fronts.get(room.replica_id)
        if front is None:
            front = self._fronts[room.replica_id] = Front(
                room.configuration,
                room.engine,
                seed=f"{self._world.seed} {room.deployment.key} {room.start_index}",
                started_unix_s=unix_of(room.started_at_s),
            )
        return front


@dataclass(frozen=True, slots=True)
class _Sent:
    index: int
    ask: Ask
    generation: Generation
    sending_s: float


class _Asking:
    """One call of `ask`: a closed loop over its requests."""

    def __init__(self, room: Room, front: Front, endpoint: Endpoint, asks: Sequence[Ask]) -> None:
        self._engine, self._front = room.engine, front
        self._endpoint_headers = {k.lower(): v for k, v in endpoint.headers.items()}
        self._rest = iter(enumerate(asks))
        self._answers: list[Answer | None] = [None] * len(asks)
        self._longest_s = max((ask.timeout_s for ask in asks), default=0.0)

    def run(self, in_flight: int, began_s: float) -> list[Answer]:
        arrivals = [a for _ in range(in_flight) for a in self._next(began_s)]
        limits = Timeouts(
            connect_s=self._longest_s,
            first_token_s=self._longest_s,
            stall_s=self._longest_s,
            total_s=self._longest_s,
        )
        drive(self._engine, arrivals, self._ended, limits)
        assert all(answer is not None for answer in self._answers)
        return [answer for answer in self._answers if answer is not None]

    def _next(self, at_s: float) -> list[Arrival]:
        """The next request that needs the engine; those before it are answered on the spot."""
        for index, ask in self._rest:
            pace = ask.send_bytes_per_s
            arrives_s = at_s + (len(ask.body) / pace if pace else 0.0)
            if self._engine.crashed:
                self._answers[index] = _refused("the engine is dead")
                continue
            if self._engine.hung:
                text = f"limit of {ask.timeout_s:g} s passed"
                self._answers[index] = _no_answer(
                    RequestError.TOTAL_TIMEOUT, text, seconds=ask.timeout_s
                )
                continue
            headers = {**self._endpoint_headers, **{k.lower(): v for k, v in ask.headers}}
            made = self._front.handle(ask.method, ask.path, headers, ask.body)
            if _is_dead(self._engine):
                self._answers[index] = _no_answer(RequestError.RESET, "the engine died")
                continue
            if isinstance(made, Reply):
                self._answers[index] = _limited(ask, _replied(made, arrives_s - at_s + _REPLY_S))
                continue
            made.job.tag = _Sent(index, ask, made, arrives_s - at_s)
            if ask.abandon_after_events is not None or ask.abandon_after_s is not None:
                _shorten(made.job, ask, self._engine.configuration.speculation_length)
            return [(arrives_s, made.job)]
        return []

    def _ended(self, job: Job) -> Iterable[Arrival]:
        sent = job.tag
        if not isinstance(sent, _Sent):
            return []  # somebody else's request in the same engine
        assert job.end_s is not None
        answer = _limited(sent.ask, _generated(sent))
        self._answers[sent.index] = answer
        began_s = job.arrival_s - sent.sending_s
        return self._next(max(began_s + answer.seconds, self._engine.now_s))


def _is_dead(engine: SimulatedEngine) -> bool:
    return engine.crashed


def _shorten(job: Job, ask: Ask, length: int) -> None:
    """A client that leaves ends the generation: no more tokens than it can have seen."""
    if ask.abandon_after_events is not None:
        job.max_tokens = min(job.max_tokens, max(1, ask.abandon_after_events) * (length + 1))


def _generated(sent: _Sent) -> Answer:
    job, generation = sent.generation.job, sent.generation
    assert job.end_s is not None
    seconds = sent.sending_s + job.end_s - job.arrival_s
    if job.error is not None and job.error is not RequestError.STREAM_ERROR:
        if job.error is not RequestError.HTTP_STATUS:
            error, text = _as_seen(job.error), job.error_text
            if error is RequestError.TOTAL_TIMEOUT:
                text = f"limit of {sent.ask.timeout_s:g} s passed"
            events = _events(sent)[:-1] if generation.asked.stream else []
            return _streamed(_no_answer(error, text, seconds=seconds), events)
        status = job.http_status or 500
        return _replied(refusal(BadRequest(job.error_text or "refused", status=status)), seconds)
    if generation.asked.stream:
        return _streamed(Answer(200, "", seconds=seconds), _events(sent))
    if job.error is not None:
        return _replied(refusal(BadRequest(job.error_text or "failed", status=500)), seconds)
    return _replied(json_reply(generation.whole()), seconds)


def _as_seen(error: RequestError) -> RequestError:
    """The engine's limits of time are one for who asks."""
    timeouts = (RequestError.FIRST_TOKEN_TIMEOUT, RequestError.STALL_TIMEOUT)
    return RequestError.TOTAL_TIMEOUT if error in timeouts else error


def _events(of: _Sent) -> list[tuple[float, str]]:
    generation, job, sent = of.generation, of.generation.job, 0
    began_s = job.arrival_s - of.sending_s
    assert job.end_s is not None
    found: list[tuple[float, str]] = []
    for at_s, tokens in zip(job.chunk_s, job.chunk_tokens, strict=True):
        for payload in generation.chunks(sent, sent + tokens):
            found.append((at_s - began_s, orjson.dumps(payload).decode()))
        sent += tokens
    end_s = job.end_s - began_s
    found += [(end_s, orjson.dumps(payload).decode()) for payload in generation.closing()]
    return [*found, (end_s, "[DONE]")]


def _streamed(answer: Answer, events: Sequence[tuple[float, str]]) -> Answer:
    """With these events as what came; without any, nothing came at all."""
    if not events:
        return answer
    body = "".join(f"data: {data}\n\n" for _, data in events)
    return replace(answer, status=200, body=body, events=tuple(events), content_type=EVENT_STREAM)


def _replied(reply: Reply, seconds: float) -> Answer:
    text = reply.body.decode("utf-8", "replace")
    return Answer(reply.status, text, content_type=reply.content_type, seconds=seconds)


def _limited(ask: Ask, answer: Answer) -> Answer:
    """The answer as a client sees it that leaves, has no more time, or reads slowly."""
    wanted = ask.abandon_after_events
    if wanted is not None and wanted < len(answer.events):
        kept = answer.events[:wanted]
        return _left(answer, kept, kept[-1][0] if kept else answer.events[0][0])
    for limit_s, leaves in ((ask.abandon_after_s, True), (ask.timeout_s, False)):
        if limit_s is not None and answer.seconds > limit_s:
            kept = tuple(event for event in answer.events if event[0] <= limit_s)
            if leaves:
                return _left(answer, kept, limit_s)
            text = f"limit of {limit_s:g} s passed"
            return _streamed(_no_answer(RequestError.TOTAL_TIMEOUT, text, seconds=limit_s), kept)
    if ask.read_bytes_per_s is not None:
        reading_s = len(answer.body.encode()) / ask.read_bytes_per_s
        return replace(answer, seconds=max(answer.seconds, reading_s))
    return answer


def _left(answer: Answer, kept: Sequence[tuple[float, str]], at_s: float) -> Answer:
    head = answer.status if answer.events and at_s >= answer.events[0][0] else None
    gone = Answer(head, "", content_type=answer.content_type, seconds=at_s, abandoned=True)
    return _streamed(gone, kept)


def _no_answer(error: RequestError, text: str | None, *, seconds: float = 0.0) -> Answer:
    return Answer(None, "", error=error, error_text=text, seconds=seconds)


def _refused(why: str) -> Answer:
    return _no_answer(RequestError.CONNECT, f"connection refused: {why}")


def _cut(answer: Answer, limit: int) -> Answer:
    if len(answer.body) <= limit:
        return answer
    return replace(answer, body=answer.body[:limit], truncated_body=True)
