"""Engine arguments: a free mapping, spelled as vLLM spells them in Python."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema

from orchestrator.spec.section import broken, plain_value

FROM = "from"
"""Key whose value names a Ray Serve config file that the other arguments are taken from."""

SIMULATED = "simulated"
"""Key whose mapping describes the simulated engine."""

_BELONGS_ELSEWHERE = {
    "model": "name the model under target",
    "speculative_config": "write it under sweep.speculation: the baseline must not have it",
    "spec_method": "write it under sweep.speculation: the baseline must not have it",
    "spec_model": "write it under sweep.speculation: the baseline must not have it",
    "spec_tokens": "write it under sweep.speculation: the baseline must not have it",
    "served_model_name": "the platform names its deployments",
    "host": "the platform listens on loopback and chooses the port",
    "port": "the platform listens on loopback and chooses the port",
    "api_key": "secrets do not belong in a file that is copied into the results",
    "hf_token": "secrets do not belong in a file that is copied into the results; set HF_TOKEN",
}

_COUNTS = (
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
    "tensor_parallel_size",
    "pipeline_parallel_size",
)


def _engine_arguments(engine: dict[str, Any]) -> dict[str, Any]:
    plain_value(engine)
    for name, value in engine.items():
        if name in _BELONGS_ELSEWHERE:
            raise broken(
                "is not an engine argument here", hint=_BELONGS_ELSEWHERE[name], key=(name,)
            )
        if "-" in name:
            raise broken(
                "is spelled as on vLLM's command line",
                hint=f"write '{name.lstrip('-').replace('-', '_')}'",
                key=(name,),
            )
        if name in _COUNTS and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
            raise broken("must be a whole number >= 1", value=repr(value), key=(name,))
        if name == SIMULATED and not isinstance(value, dict):
            raise broken(
                "must be a mapping that describes the simulated engine",
                value=value,
                hint="an empty one, {}, takes every default",
                key=(name,),
            )
    return engine


Engine = Annotated[
    dict[str, Any],
    AfterValidator(_engine_arguments),
    WithJsonSchema(
        {
            "type": "object",
            "description": "vLLM engine arguments, for both arms",
            "properties": {
                FROM: {
                    "type": "string",
                    "description": "Ray Serve config file (file or file#application) "
                    "whose args.engine is the starting point",
                },
                SIMULATED: {"type": "object"},
                **{name: {"type": "integer", "minimum": 1} for name in _COUNTS},
            },
        }
    ),
]
