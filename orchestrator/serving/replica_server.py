"""What vLLM's app takes for the HTTP server that runs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ReplicaServer:
    """Stands where uvicorn's server does, in `app.state.server`.

    When a request meets a dead engine, vLLM's error handler tells that server to exit and then
    answers the client. Here Serve runs the app, and takes the replica down by its health check; so
    nothing is done, but without the attribute the handler itself fails and the answer hides why.
    """

    should_exit: bool = False
