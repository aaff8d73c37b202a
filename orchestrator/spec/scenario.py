"""A scenario: the shape of a workload, its objectives, and the figures that decide.

The five bundled ones are files in `orchestrator/scenarios/`; a user's own has the same form.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from orchestrator.errors import Fault, SpecError
from orchestrator.spec.document import key_text, parse
from orchestrator.spec.goals import SCENARIOS, Slo
from orchestrator.spec.section import Flag, Name, NotNegative, Positive, Section, Text, broken

SPEEDUP_FIGURES = ("speedup_throughput", "speedup_tpot", "speedup_e2e", "speedup_ttft")
RATIO_FIGURES = ("cost_ratio", "failures")
_STEADINESS = re.compile(r"steadiness:(ttft|tpot|itl|icl|e2e)_(p50|p90|p95|p99|mean)_s")


class Range(Section):
    """Within which a workload is of this scenario's shape."""

    min: NotNegative | None = None
    max: NotNegative | None = None

    def __str__(self) -> str:
        ends = ((">=", self.min), ("<=", self.max))
        return " ".join(f"{sign} {end:g}" for sign, end in ends if end is not None)

    def holds(self, value: float) -> bool:
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)


class Shape(Section):
    """Which of a sweep's cells speak for the scenario; what is left out is not asked."""

    input_tokens: Range = Range()
    output_tokens: Range = Range()
    temperature: Range = Range()
    load: Literal["any", "closed", "open"] = "any"


def _known(figure: str) -> str:
    known = figure in SPEEDUP_FIGURES or figure in RATIO_FIGURES
    if known or _STEADINESS.fullmatch(figure) or re.fullmatch(r"suite:[a-z_]+", figure):
        return figure
    raise broken(
        f"must be one of {', '.join((*SPEEDUP_FIGURES, *RATIO_FIGURES))}, suite:NAME or "
        "steadiness:METRIC_STATISTIC_s",
        value=f"'{figure}'",
    )


class Figure(Section):
    """One figure that decides.

    speedup_*: `need` better (called faster) or not_worse (not told to be worse).
    steadiness:NAME: the speculative arm's statistic / the baseline's, at most `at_most`.
    cost_ratio: cost per token within the objectives, speculative / baseline, at most `at_most`.
    failures: share of the speculative arm's requests that failed, at most `at_most`.
    suite:NAME: the suite found nothing.
    """

    figure: Annotated[Text, AfterValidator(_known)]
    need: Literal["better", "not_worse"] | None = None
    at_most: NotNegative | None = None
    weight: Positive = 1.0
    required: Flag = False

    @model_validator(mode="after")
    def _one_rule(self) -> Figure:
        speedup = self.figure in SPEEDUP_FIGURES
        ratio = self.figure in RATIO_FIGURES or self.figure.startswith("steadiness:")
        if speedup and (self.need is None or self.at_most is not None):
            raise broken("a speedup needs `need: better` or `need: not_worse`", key=("need",))
        if ratio and (self.at_most is None or self.need is not None):
            raise broken("a ratio needs `at_most`", key=("at_most",))
        if self.figure.startswith("suite:") and (self.need or self.at_most is not None):
            raise broken("a suite needs neither need nor at_most", key=("figure",))
        return self


class Titles(Section):
    """A short text in both languages of the report."""

    en: Text
    zh: Text


class Profile(Section):
    """One scenario."""

    name: Name
    title: Titles
    aim: Titles
    workload: Shape = Shape()
    slo: Slo = Field(default_factory=dict)
    """The experiment's own `slo:` takes its place, bound by bound."""
    operating_point: Literal["highest_load", "highest_throughput", "lowest_latency"]
    figures: tuple[Figure, ...] = Field(min_length=1)


def read_profile(name: str) -> Profile:
    """A bundled scenario by its name, or the file at a path. Raises: SpecError with every fault."""
    if name in SCENARIOS:
        text = files("orchestrator").joinpath("scenarios", f"{name}.yaml").read_text("utf-8")
        return _profile(text, f"scenarios/{name}.yaml")
    try:
        return _profile(Path(name).read_text(encoding="utf-8-sig"), name)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(
            [Fault(name, None, "", f"must be a file that can be read ({error})")]
        ) from None


def profile_from(plain: dict[str, Any]) -> Profile:
    """The profile that `model_dump(mode="json")` wrote. Raises: pydantic.ValidationError."""
    return Profile.model_validate(plain)


def _profile(text: str, file: str) -> Profile:
    document = parse(text, file)
    if document.faults:
        raise SpecError(list(document.faults))
    try:
        return Profile.model_validate(document.value)
    except ValidationError as error:
        faults = []
        for one in error.errors(include_url=False):
            context = one.get("ctx") or {}
            key = tuple(one["loc"])
            rule = str(context.get("rule") or one["msg"])
            line, hint = document.line(key), context.get("hint")
            faults.append(Fault(file, line, key_text(key), rule, context.get("value"), hint))
        raise SpecError(faults) from None
