"""A Ray cluster's nodes and devices: found, reserved, and worked on where they are."""

from orchestrator.adapters.ray_cluster.agent import AgentOf, Measuring, NodePorts
from orchestrator.adapters.ray_cluster.nodes import ClusterNodes, find_nodes
from orchestrator.adapters.ray_cluster.reserve import EnginePlace, Reserved, reserve

__all__ = [
    "AgentOf",
    "ClusterNodes",
    "EnginePlace",
    "Measuring",
    "NodePorts",
    "Reserved",
    "find_nodes",
    "reserve",
]
