"""One request on its way: to an arm, or to the other if that dies, and back, byte for byte."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson

from orchestrator.serving.switch.arm import Arm, ArmLost
from orchestrator.serving.switch.board import Board
from orchestrator.serving.switch.refusals import Refused, error_body
from orchestrator.switch.answer_text import answer_text, repetition
from orchestrator.switch.asked import Asked, asks_for_count
from orchestrator.switch.observation import ArmName, Observation
from orchestrator.switch.routing import Asker, route
from orchestrator.switch.stream import StreamWatch, count, drafted

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOP = frozenset(
    {
        b"connection",
        b"date",
        b"keep-alive",
        b"proxy-authenticate",
        b"server",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""What belongs to a connection and not to an answer (RFC 9110, 7.6.1), and what Serve's own proxy
puts there."""
KEPT_BYTES = 256 * 1024
"""Of an answer, for comparison: a longer one is not compared."""
EVENT_STREAM = "text/event-stream"


@dataclass
class Told:
    """What was seen of one arm's answer to one request."""

    arm: ArmName
    begun_s: float
    watch: StreamWatch
    status: int | None = None
    streamed: bool = False
    error: str | None = None
    kept: bytearray = field(default_factory=bytearray)
    whole: bool = True
    """Everything was kept."""
    ended_s: float | None = None

    def keep(self, piece: bytes) -> None:
        if len(self.kept) + len(piece) > KEPT_BYTES:
            self.whole = False
        elif self.whole:
            self.kept += piece

    def finish(self) -> None:
        """Reads the count out of an answer that was not streamed."""
        self.ended_s = time.monotonic()
        if self.streamed or not self.whole or self.status != 200:
            return
        try:
            said = orjson.loads(self.kept)
        except orjson.JSONDecodeError:
            return
        if isinstance(said, dict):
            usage, metrics = said.get("usage"), said.get("metrics")
            self.watch.usage = usage if isinstance(usage, dict) else None
            self.watch.metrics = metrics if isinstance(metrics, dict) else None

    @property
    def output_tokens(self) -> int | None:
        return count(self.watch.usage, "completion_tokens")

    def text(self) -> str | None:
        return answer_text(bytes(self.kept), streamed=self.streamed) if self.whole else None


class Relay:
    """Runs once. `tokens` is what the engine counted; None: it did not say."""

    def __init__(
        self,
        *,
        board: Board,
        asked: Asked,
        body: bytes,
        method: str,
        target: str,
        headers: Mapping[str, str],
        tenant: str | None,
        category: str | None,
        sticky: str | None,
        arrived_s: float,
    ) -> None:
        self._board, self._asked, self._body = board, asked, body
        self._method, self._target, self._headers = method, target, headers
        self._tenant, self._category = tenant, category
        self._name = uuid.uuid4().hex
        self._arrived_s, self._arrived_unix_s = arrived_s, time.time()
        self._strips = board.config.watch_usage and asks_for_count(asked)
        asker = Asker(self._name, sticky, tenant, category)
        self._route = route(asker, board.policy, board.standing())
        self._told: Told | None = None
        self._headers_sent = False

    @property
    def tokens(self) -> float | None:
        usage = None if self._told is None else self._told.watch.usage
        return count(usage, "total_tokens")

    async def run(self, send: Send) -> None:
        """Raises: Refused 502 when neither arm answers; CancelledError when the caller has left."""
        arm = self._board.arms[self._route.arm]
        try:
            await self._from(arm, send, last=False)
        except _Elsewhere:
            await self._from(self._other(arm), send, last=True)

    def _other(self, arm: Arm) -> Arm:
        return self._board.arms["baseline" if arm.name == "speculative" else "speculative"]

    def _replaceable(self, arm: Arm) -> bool:
        """Whether the other arm may answer in this one's place: nothing has been sent yet."""
        if self._headers_sent or not self._other(arm).up:
            return False
        return arm.name == "speculative" or not arm.up

    async def _from(self, arm: Arm, send: Send, *, last: bool) -> None:
        told = self._told = Told(arm.name, time.monotonic(), StreamWatch(strip_usage=self._strips))
        arm.in_flight += 1
        lost: ArmLost | None = None
        try:
            answer, first = await arm.send(self._method, self._target, self._headers, self._body)
            try:
                told.status = answer.status
                if answer.status >= 500:
                    told.error = f"http_{answer.status}"
                    arm.doubt()
                    if not last and arm.name == "speculative" and self._replaceable(arm):
                        raise _Elsewhere
                await self._pass_on(arm, answer, first, told, send)
            finally:
                # Left with the answer unread, the engine sees the caller leave.
                if told.ended_s is None:
                    answer.close()
                else:
                    answer.release()
        except ArmLost as error:
            lost, told.error = error, error.why
        finally:
            arm.in_flight -= 1
            if told.ended_s is None and told.error is None:
                self._record(told, left=True)
            else:
                self._observe(told)
                self._record(told)
        if lost is not None:
            if not last and self._replaceable(arm):
                raise _Elsewhere
            await self._cut_off(lost, told, send)

    async def _pass_on(
        self, arm: Arm, answer: aiohttp.ClientResponse, first: bytes, told: Told, send: Send
    ) -> None:
        told.streamed = answer.content_type == EVENT_STREAM
        watch, piece = told.watch, first
        await send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": self._answered(answer, arm),
            }
        )
        self._headers_sent = True
        while piece:
            now_s = time.monotonic()
            passed = piece
            if told.streamed:
                passed = watch.feed(piece, now_s)
            elif watch.first_s is None:
                watch.first_s = now_s
            if passed:
                told.keep(passed)
                await send({"type": "http.response.body", "body": passed, "more_body": True})
            try:
                piece = await answer.content.readany()
            except (OSError, aiohttp.ClientError, TimeoutError) as error:
                raise arm.lost(error) from error
            arm.heard()
        rest = watch.finish() if told.streamed else b""
        told.keep(rest)
        if watch.error and told.error is None:
            told.error = "in_stream"
        told.finish()
        await send({"type": "http.response.body", "body": rest, "more_body": False})

    def _answered(self, answer: aiohttp.ClientResponse, arm: Arm) -> list[tuple[bytes, bytes]]:
        kept = [
            (name.lower(), text) for name, text in answer.raw_headers if name.lower() not in _HOP
        ]
        if self._board.config.arm_header is not None:
            kept.append((self._board.config.arm_header.lower().encode(), arm.name.encode()))
        return kept

    async def _cut_off(self, lost: ArmLost, told: Told, send: Send) -> None:
        """Says that the answer does not go on, as far as it can still be said."""
        text = f"the engine was lost ({lost.why}); ask again"
        if not self._headers_sent:
            raise Refused(504 if lost.why == "timeout" else 502, text)
        if not told.streamed:
            raise lost  # the connection breaks: the body is shorter than its length says
        event = b"data: " + error_body(502, text) + b"\n\n"
        await send({"type": "http.response.body", "body": event, "more_body": False})

    # What is told of it

    def _observe(self, told: Told, **changes: Any) -> None:
        watch, tokens = told.watch, told.output_tokens
        tpot_s = None
        if tokens is not None and tokens > 1 and told.streamed and watch.last_s is not None:
            assert watch.first_s is not None
            tpot_s = (watch.last_s - watch.first_s) / (tokens - 1)
        good = told.error is None and told.status == 200
        drafts, accepted, drafted_tokens = drafted(watch.metrics)
        text = told.text() if good and told.whole else None
        self._board.observe(
            Observation(
                at_s=time.time(),
                arm=told.arm,
                tenant=self._tenant,
                category=self._category,
                ttft_s=watch.first_s - told.begun_s
                if good and told.streamed and watch.first_s is not None
                else None,
                tpot_s=tpot_s if good else None,
                e2e_s=told.ended_s - told.begun_s if good and told.ended_s is not None else None,
                output_tokens=tokens,
                error=told.error,
                drafts=drafts,
                accepted_tokens=accepted,
                draft_tokens=drafted_tokens,
                repetition=None if text is None else repetition(text),
                **changes,
            )
        )
        self._board.count(f"{told.arm}_{'mirrored' if changes.get('mirrored') else 'requests'}")
        if told.error is not None:
            self._board.count(f"{told.arm}_errors")

    def _record(self, told: Told, *, left: bool = False, **more: Any) -> None:
        watch = told.watch
        line: dict[str, Any] = {
            "id": self._name,
            "at": self._arrived_unix_s,
            "tenant": self._tenant,
            "category": self._category,
            "path": self._asked.path,
            "arm": told.arm,
            "why": self._route.why,
            "status": told.status,
            "error": "caller left" if left else told.error,
            "streamed": told.streamed,
            "waited_s": told.begun_s - self._arrived_s,
            "ttft_s": None if watch.first_s is None else watch.first_s - told.begun_s,
            "e2e_s": None if told.ended_s is None else told.ended_s - told.begun_s,
            "prompt_tokens": count(watch.usage, "prompt_tokens"),
            "output_tokens": told.output_tokens,
            **more,
        }
        if self._board.config.records.texts:
            said = self._asked.said or {}
            line["messages"], line["prompt"] = said.get("messages"), said.get("prompt")
            line["answer"] = told.text()
        self._board.record(line)

    # The other arm, afterwards

    def mirror(self) -> None:
        """Asks the other arm the same, if this request was picked for it; nobody waits for it."""
        told = self._told
        answered = told is not None and told.ended_s is not None and told.status == 200
        if not self._route.mirror or not answered:
            return
        self._board.mirrored += 1
        task = asyncio.create_task(self._mirrored())
        self._board.mirror_tasks.add(task)
        task.add_done_callback(self._mirror_ended)

    def _mirror_ended(self, task: asyncio.Task[None]) -> None:
        self._board.mirrored -= 1
        self._board.mirror_tasks.discard(task)
        if task.cancelled():
            self._board.count("mirrors_dropped")
        else:
            task.result()

    async def _mirrored(self) -> None:
        own = self._told
        assert own is not None
        arm = self._other(self._board.arms[own.arm])
        told = Told(arm.name, time.monotonic(), StreamWatch(strip_usage=self._strips))
        try:
            answer, piece = await arm.send(self._method, self._target, self._headers, self._body)
            try:
                told.status = answer.status
                told.streamed = answer.content_type == EVENT_STREAM
                if answer.status >= 500:
                    told.error = f"http_{answer.status}"
                while piece:
                    now_s = time.monotonic()
                    told.keep(told.watch.feed(piece, now_s) if told.streamed else piece)
                    piece = await answer.content.readany()
                    arm.heard()
                told.finish()
            finally:
                answer.close() if told.ended_s is None else answer.release()
        except ArmLost as error:
            told.error = error.why
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            told.error = arm.lost(error).why
        equal = None
        if self._asked.greedy and told.status == 200 and told.error is None:
            ours, theirs = own.text(), told.text()
            equal = None if ours is None or theirs is None else ours == theirs
        self._observe(told, shadow_equal=equal, mirrored=True)
        self._record(told, mirrored=True, equal=equal)


class _Elsewhere(Exception):
    """The other arm is to answer."""
