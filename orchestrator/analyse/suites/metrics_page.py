"""A page of metrics in Prometheus' text format, by name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class MetricsPage:
    """Samples by the name that they are exposed under (`…_total`, `…_count`)."""

    samples: Mapping[str, Mapping[_Labels, float]]
    types: Mapping[str, str]
    """By sample name: counter, gauge, histogram, summary, unknown."""
    families: int

    def total(self, name: str, **labels: str) -> float | None:
        """Sum over label sets that have these labels. Undefined (None): no such sample."""
        wanted = labels.items()
        values = [v for at, v in self.samples.get(name, {}).items() if wanted <= dict(at).items()]
        return math.fsum(values) if values else None

    def labels(self, name: str) -> tuple[str, ...]:
        return tuple(sorted({key for at in self.samples.get(name, {}) for key, _ in at}))

    def gone_back(self, earlier: MetricsPage) -> tuple[str, ...]:
        """Counters that are lower than on an earlier page: something was started anew, or is no
        counter."""
        return tuple(
            sorted(
                {
                    name
                    for name, before in earlier.samples.items()
                    if earlier.types.get(name) == "counter" and not name.endswith("_created")
                    for at, value in before.items()
                    if self.samples.get(name, {}).get(at, math.inf) < value
                }
            )
        )


def read_metrics_page(text: str) -> MetricsPage:
    """Raises: ValueError for a page that is not in the format, with the line that is not."""
    samples: dict[str, dict[_Labels, float]] = defaultdict(dict)
    types: dict[str, str] = {}
    families = 0
    for family in text_string_to_metric_families(text):
        families += 1
        for sample in family.samples:
            samples[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
            types[sample.name] = family.type
    return MetricsPage(dict(samples), types, families)


def first_exposed(page: MetricsPage, names: Iterable[str]) -> str | None:
    """Which of the names a metric goes by on other servers is on the page."""
    return next((name for name in names if name in page.samples), None)
