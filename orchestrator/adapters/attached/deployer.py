"""`ports.Deployer` for servers that somebody else started, and will stop."""

from __future__ import annotations

from orchestrator.adapters.attached.access import Access
from orchestrator.adapters.attached.placement import server_pids
from orchestrator.adapters.attached.server import FoundServer, answers, find_server
from orchestrator.errors import DeploymentError
from orchestrator.plan.arms import ATTACHED
from orchestrator.plan.deployment import Deployment
from orchestrator.ports import Endpoint
from orchestrator.records import EngineFacts, FailureClass


class AttachedDeployer:
    """Starts and stops nothing: `start` makes sure that the server answers.

    `model` is attach.model; `target` the experiment's target, taken when the server serves it.
    """

    def __init__(
        self, access: Access, *, model: str | None = None, target: str | None = None
    ) -> None:
        self._access, self._model, self._target = access, model, target
        self._found: dict[str, tuple[FoundServer, EngineFacts]] = {}

    def start(self, deployment: Deployment, *, name: str, timeout_s: float) -> Endpoint:
        """Raises: DeploymentError when the server does not answer, or not for one model."""
        url = deployment.engine.get(ATTACHED)
        if not isinstance(url, str):
            raise DeploymentError(
                FailureClass.BAD_CONFIGURATION,
                f"{deployment.label()} is no attached server: it has no address",
            )
        server = find_server(
            url, self._access, wanted=self._model, hint=self._target, timeout_s=timeout_s
        )
        pids = server_pids(url)
        self._found[name] = (server, self._facts(deployment, server, pids))
        return Endpoint(
            name=name,
            base_url=url,
            model=server.model,
            headers=dict(self._access.headers),
            pids=pids,
            simulated=server.simulated,
        )

    def facts(self, name: str) -> EngineFacts:
        return self._found[name][1]

    def healthy(self, name: str) -> bool:
        found = self._found.get(name)
        return found is not None and answers(found[0], self._access)

    def stop(self, name: str) -> None:
        """Lets go of it; the server goes on."""
        self._found.pop(name, None)

    def autopsy(self, name: str) -> None:
        """Nothing is known of a server that somebody else started."""

    def close(self) -> None:
        self._found.clear()

    def _facts(
        self, deployment: Deployment, server: FoundServer, pids: tuple[int, ...]
    ) -> EngineFacts:
        identity = server.identity
        extra: dict[str, object] = {"attached": server.url}
        if identity.speculation:
            extra["speculation"] = dict(identity.speculation)
        if deployment.replica_of is not None:
            extra["same_server_as"] = deployment.replica_of
        return EngineFacts(
            deployment_key=deployment.key,
            engine=identity.engine,
            engine_version=self._access.masked(identity.version),
            model=server.model,
            start_s=None,
            pids=pids,
            kv_capacity_tokens=identity.kv_capacity_tokens,
            simulated=server.simulated,
            extra=self._access.masked(extra),
        )
