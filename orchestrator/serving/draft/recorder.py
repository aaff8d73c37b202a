"""Hidden states of the target while it answers, taken inside vLLM's worker.

An EAGLE head reads the target's hidden states; reading the text a second time to get them would
take as long as writing it. This extension (`worker_extension_cls`) keeps those of the layers named,
request by request, in the order of the tokens.
"""

from __future__ import annotations

from typing import Any


class HiddenStateExtension:
    """Mixed into vLLM's worker; its methods are reached with `collective_rpc`."""

    model_runner: Any
    orchestrator_states: dict[str, list[Any]]

    def orchestrator_keep_hidden_states(self, layers: tuple[int, ...]) -> None:
        """From now on. Layer n is what n decoder layers make of the embedding (vLLM's count)."""
        import torch

        runner = self.model_runner
        kept: dict[str, list[Any]] = {}
        outputs: dict[int, Any] = {}
        for layer in layers:
            module = runner.model.model.layers[layer - 1]

            def note(_: Any, __: Any, output: Any, layer: int = layer) -> None:
                hidden, residual = output
                outputs[layer] = hidden + residual

            module.register_forward_hook(note)
        execute = runner.execute_model

        def execute_model(scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
            result = execute(scheduler_output, *args, **kwargs)
            counts: dict[str, int] = scheduler_output.num_scheduled_tokens
            if counts:
                states = torch.cat([outputs[layer] for layer in layers], dim=-1)
                begin = 0
                computed = runner.input_batch.num_computed_tokens_cpu
                for index, name in enumerate(runner.input_batch.req_ids):
                    end = begin + counts.get(name, 0)
                    if computed[index] == 0:
                        # Its first tokens; or all of them again, after it was preempted.
                        kept[name] = []
                    rows = states[begin:end]
                    kept[name].append(rows.to("cpu", torch.bfloat16, copy=True))
                    begin = end
            return result

        runner.execute_model = execute_model
        self.orchestrator_states = kept

    def orchestrator_take_hidden_states(self) -> dict[str, Any]:
        """Of every request since the last call: tensor of shape (tokens read, layers x hidden)."""
        import torch

        taken = {name: torch.cat(rows) for name, rows in self.orchestrator_states.items()}
        self.orchestrator_states.clear()
        return taken
