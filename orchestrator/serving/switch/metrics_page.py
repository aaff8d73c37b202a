"""The switch's state as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

STATES = ("healthy", "breached", "cooling", "probing")


class _Families:
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def metrics_page(state: Mapping[str, Any]) -> str:
    """Of `Keeper.state()`. What is not known is not there."""
    registry = CollectorRegistry()
    registry.register(_Families(_families(state)))
    return generate_latest(registry).decode()


def _families(state: Mapping[str, Any]) -> list[Metric]:
    def gauge(name: str, text: str, value: float) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"switch_{name}", text, value=value)

    guard = state["guard"]
    arm_up = GaugeMetricFamily("switch_arm_up", "1: the arm answers", labels=["arm"])
    busy = GaugeMetricFamily("switch_arm_in_flight", "Requests at the arm", labels=["arm"])
    for arm, seen in state["arms"].items():
        arm_up.add_metric([arm], float(seen["up"]))
        busy.add_metric([arm], seen["in_flight"])
    closed = GaugeMetricFamily("switch_closed_by", "1: holds the share at 0", labels=["by"])
    for by in ("paused", "guard", "arm", "load"):
        closed.add_metric([by], float(by in state["closed_by"]))
    guarded = GaugeMetricFamily("switch_guard_state", "1: the guard's state", labels=["state"])
    for name in STATES:
        guarded.add_metric([name], float(guard["state"] == name))
    blocked = GaugeMetricFamily(
        "switch_category_blocked", "1: the guard keeps it on the baseline", labels=["category"]
    )
    for category in sorted({f["category"] for f in guard["figures"] if f["category"]}):
        blocked.add_metric([category], float(category in guard["blocked_categories"]))
    counts = CounterMetricFamily(
        "switch_events", "What replicas that are alive counted", labels=["what"]
    )
    for what, number in sorted(state["counts"].items()):
        counts.add_metric([what], number)
    labels = ["name", "arm", "category"]
    figures = GaugeMetricFamily("switch_figure", "Figures of the guard's window", labels=labels)
    limits = GaugeMetricFamily("switch_figure_limit", "Their limits", labels=labels)
    for one in guard["figures"]:
        told = [one["name"], one["arm"] or "", one["category"] or ""]
        for family, value in ((figures, one["value"]), (limits, one["limit"])):
            if value is not None:
                family.add_metric(told, value)
    return [
        gauge("share", "Share of callers sent to the speculative arm, 0 to 1", state["share"]),
        gauge("paused", "1: paused by an operator", float(state["settings"]["paused"])),
        gauge("alarms", "Alarms that stand", len(state["alarms"])),
        gauge("settings_version", "Version of the settings", state["settings"]["version"]),
        gauge("in_flight", "Callers in flight", state["load"]["in_flight"]),
        gauge("rate_rps", "Callers a second, over 10 s", state["load"]["rps"]),
        gauge("replicas", "Replicas of the switch that report", len(state["replicas"])),
        arm_up,
        busy,
        closed,
        guarded,
        blocked,
        counts,
        figures,
        limits,
    ]
