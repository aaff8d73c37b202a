"""Things that go wrong, on purpose: with processes, the network, the host. Everything is undone."""

from orchestrator.adapters.faults.injector import HostFaults

__all__ = ["HostFaults"]
