"""The load client of the simulated machine room: sends a block on virtual time.

It is never late: the client's own lags are exactly 0, unless planted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.adapters.simulated.answers import (
    Answer,
    answer_to,
    count_tokens,
    natural_length,
)
from orchestrator.adapters.simulated.configuration import EngineConfiguration
from orchestrator.adapters.simulated.drive import Arrival, drive
from orchestrator.adapters.simulated.engine import SimulatedEngine
from orchestrator.adapters.simulated.in_process import unix_of
from orchestrator.adapters.simulated.job import Job
from orchestrator.adapters.simulated.world import Room, SimulatedWorld
from orchestrator.plan.block import BlockPlan, PlannedRequest
from orchestrator.ports import BlockObservation, Endpoint
from orchestrator.records import ClientHealth, RequestError, RequestRecord

PUNCTUAL = ClientHealth(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Turn:
    """What a job stands for: turn `index` of a planned conversation."""

    planned: PlannedRequest
    index: int
    history: str
    """Everything said before, as one text."""
    answer: Answer
    stops: bool
    """The answer ends by itself, before its length limit."""


class SimulatedLoadClient:
    """Closed and open loops against simulated engines; records as a streaming server gives them."""

    def __init__(self, world: SimulatedWorld, *, health: ClientHealth = PUNCTUAL) -> None:
        self._world = world
        self._health = health

    def run_block(self, endpoint: Endpoint, block: BlockPlan) -> BlockObservation:
        """The engine's state (clock, drift, leak) goes on from block to block."""
        room = self._world.at(endpoint)
        if room is None:
            return self._nobody_there(block)
        with room.lock:
            began_s = self._world.enter(room.engine)
            sent = _Block(room, block, began_s).send()
            self._world.leave(room.engine)
        records = tuple(record_of(job, began_s) for job in sent)
        ends = [record.end_s for record in records if record.end_s is not None]
        return BlockObservation(unix_of(began_s), max(ends, default=0.0), records, self._health)

    def close(self) -> None:
        """Nothing is held."""

    def _nobody_there(self, block: BlockPlan) -> BlockObservation:
        records = tuple(
            RequestRecord(
                request_id=planned.request_id,
                prompt_id=planned.prompt.id,
                category=planned.prompt.category,
                turn=0,
                offset_s=planned.offset_s,
                sent_s=planned.offset_s or 0.0,
                chunk_s=(),
                chunk_tokens=None,
                end_s=planned.offset_s or 0.0,
                input_tokens=None,
                output_tokens=None,
                max_tokens=planned.max_tokens,
                finish_reason=None,
                text="",
                error=RequestError.CONNECT,
                error_text="connection refused: no such simulated engine",
            )
            for planned in block.requests
        )
        duration_s = max((record.end_s or 0.0 for record in records), default=0.0)
        return BlockObservation(unix_of(self._world.now_s), duration_s, records, self._health)


class _Block:
    """One block while it is sent."""

    def __init__(self, room: Room, block: BlockPlan, began_s: float) -> None:
        self._engine: SimulatedEngine = room.engine
        self._configuration = room.configuration
        self._plan = block
        self._began_s = began_s
        self._sent: list[Job] = []
        self._rest = iter(block.requests)

    def send(self) -> list[Job]:
        """All jobs, later turns included, in the order in which they were sent."""
        plan = self._plan
        if plan.load.mode == "closed":
            slots = plan.load.concurrency or 1
            arrivals = [a for _ in range(slots) for a in self._next(self._began_s)]
        else:
            arrivals = [
                (self._began_s + (planned.offset_s or 0.0), self._job(planned, 0, ""))
                for planned in plan.requests
            ]
        drive(self._engine, arrivals, self._after, plan.timeouts)
        return self._sent

    def _after(self, job: Job) -> Iterable[Arrival]:
        """The next turn of the same conversation, or (closed loop) the next conversation."""
        turn, end_s = _turn_of(job), _end(job)
        following = self._following_turn(turn, job)
        if following is not None:
            return [(end_s, following)]
        return self._next(end_s) if self._plan.load.mode == "closed" else []

    def _next(self, at_s: float) -> list[Arrival]:
        planned = next(self._rest, None)
        return [] if planned is None else [(at_s, self._job(planned, 0, ""))]

    def _following_turn(self, turn: Turn, job: Job) -> Job | None:
        prompt, index = turn.planned.prompt, turn.index
        more = self._plan.history != "first_turn" and index + 1 < len(prompt.turns)
        if not more or job.error is not None:
            return None
        if self._plan.history == "reference" and prompt.reference is not None:
            said = prompt.reference[index]
        else:
            said = turn.answer.text(0, job.generated)
        return self._job(turn.planned, index + 1, f"{turn.history}{prompt.turns[index]}{said}")

    def _job(self, planned: PlannedRequest, index: int, history: str) -> Job:
        job = job_of(
            planned,
            self._configuration,
            temperature=self._plan.sampling.temperature,
            fixed_length=self._plan.fixed_length,
            index=index,
            history=history,
        )
        self._sent.append(job)
        return job


def job_of(
    planned: PlannedRequest,
    configuration: EngineConfiguration,
    *,
    temperature: float,
    fixed_length: bool,
    index: int = 0,
    history: str = "",
) -> Job:
    """Turn `index` of a planned conversation, as an engine gets it."""
    prompt = planned.prompt
    text = f"{prompt.system or ''}{history}{prompt.turns[index]}"
    counted = prompt.tokens if index == 0 else None
    ends_at = natural_length(
        text,
        seed=planned.seed,
        temperature=temperature,
        mean=configuration.model.natural_output_tokens,
    )
    stops = not fixed_length and ends_at < planned.max_tokens
    answer = answer_to(
        text,
        seed=planned.seed,
        temperature=temperature,
        garbage=configuration.faults.garbage_output,
    )
    return Job(
        planned.request_id,
        count_tokens(text) if counted is None else counted,
        ends_at if stops else planned.max_tokens,
        category=prompt.category,
        temperature=temperature,
        tag=Turn(planned, index, history, answer, stops),
    )


def _turn_of(job: Job) -> Turn:
    assert isinstance(job.tag, Turn)
    return job.tag


def _end(job: Job) -> float:
    assert job.end_s is not None, "a job that was handed back has ended"
    return job.end_s


def record_of(job: Job, began_s: float) -> RequestRecord:
    """A job that has ended, as a streaming client sees it; times relative to `began_s`."""
    turn = _turn_of(job)
    failed = job.error is not None
    return RequestRecord(
        request_id=job.name,
        prompt_id=turn.planned.prompt.id,
        category=job.category,
        turn=turn.index,
        offset_s=turn.planned.offset_s if turn.index == 0 else None,
        sent_s=job.arrival_s - began_s,
        chunk_s=tuple([at_s - began_s for at_s in job.chunk_s]),
        chunk_tokens=tuple(job.chunk_tokens),
        end_s=_end(job) - began_s,
        input_tokens=job.prompt_tokens if job.chunk_s else None,
        output_tokens=sum(job.chunk_tokens) if job.chunk_s else None,
        max_tokens=turn.planned.max_tokens,
        finish_reason=None if failed else ("stop" if turn.stops else "length"),
        text=turn.answer.text(0, sum(job.chunk_tokens)),
        token_ids=turn.answer.token_ids(0, sum(job.chunk_tokens)),
        tokens_from="usage_continuous" if job.chunk_s else "none",
        http_status=job.http_status or (200 if job.chunk_s else None),
        error=job.error,
        error_text=job.error_text,
    )
