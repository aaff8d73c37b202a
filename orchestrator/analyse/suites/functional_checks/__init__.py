"""What must hold of each case of the functional suite. One function a rule; pure.

A check raises `Broken` with what was seen; it returns what it saw when all is well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from orchestrator.analyse.suites.functional_checks import (
    batch,
    constraints,
    logprobs,
    sampling,
    text,
    tools,
)
from orchestrator.analyse.suites.functional_checks.seen import Seen

Check = Callable[[Seen], str]

CHECKS: Mapping[str, Check] = {
    check.__name__: check
    for check in (
        text.answers,
        sampling.varied,
        sampling.only_the_likeliest,
        sampling.repeats_less,
        sampling.reproducible,
        text.stops_before_string,
        text.stops_at_token,
        text.one_token,
        sampling.as_many_choices,
        logprobs.logprobs_of_every_token,
        logprobs.logprobs_of_the_prompt,
        sampling.biased,
        constraints.json_object,
        constraints.json_schema,
        constraints.matches_regex,
        constraints.one_of_the_choices,
        tools.calls_the_tool,
        tools.may_call_the_tool,
        text.streamed_as_whole,
        text.reads_more,
        text.echoes,
        text.fills_the_context,
        batch.each_as_it_asks,
    )
}
"""By the name that `functional_cases.yaml` gives them."""
