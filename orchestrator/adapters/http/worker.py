"""The load generator's own process: `python -m orchestrator.adapters.http.worker`.

Commands come as pickles on standard input, replies go to what was standard output; both ends of
the pipe are this product's own processes. It ends when the pipe closes, so that it cannot outlive
whoever started it, and it leaves Ctrl-C to the parent.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
import traceback
from typing import Any, BinaryIO

from orchestrator.adapters.http.session import LoopRunner, Session
from orchestrator.adapters.messages import read_message, write_message

_ORPHAN_CHECK_S = 1.0
_NICENESS = -5


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # It needs little processor time but needs it at once, often beside an engine that takes all
    # there is; and Ray starts its workers at niceness 15. Not allowed everywhere, needed nowhere.
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    commands = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not get between the replies.
    os.dup2(2, 1)
    session = Session(read_message(commands))
    LoopRunner().run(_serve(session, commands, replies))


async def _serve(session: Session, commands: BinaryIO, replies: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[Any] = asyncio.Queue()

    def listen() -> None:
        while True:
            try:
                message = read_message(commands)
            except EOFError:
                os._exit(0)
            loop.call_soon_threadsafe(queue.put_nowait, message)

    threading.Thread(target=listen, daemon=True, name="commands").start()
    _leave_with_parent(loop, os.getppid())
    while True:
        name, *arguments = await queue.get()
        try:
            reply = await getattr(session, name)(*arguments)
        except Exception as fault:  # noqa: BLE001  (handed to the parent, which raises it)
            write_message(replies, ("failed", fault.__class__.__name__, traceback.format_exc()))
        else:
            write_message(replies, ("done", reply))


def _leave_with_parent(loop: asyncio.AbstractEventLoop, parent: int) -> None:
    """A second guard: a copy of the pipe inherited by somebody else would hide its end."""
    if os.getppid() != parent:
        os._exit(0)
    loop.call_later(_ORPHAN_CHECK_S, _leave_with_parent, loop, parent)


if __name__ == "__main__":
    main()
