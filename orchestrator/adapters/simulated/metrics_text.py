"""The simulated engine's counters as Prometheus text, under vLLM's names."""

from __future__ import annotations

from orchestrator.adapters.simulated.engine import SimulatedEngine


def metrics_text(engine: SimulatedEngine, model: str, started_unix_s: float) -> str:
    """Speculation's counters are left out in a baseline, as vLLM does."""
    counters, scheduler, accepted = engine.counters, engine.scheduler, engine.acceptance
    label = model.replace("\\", "\\\\").replace('"', '\\"')
    labels = f'engine="0",model_name="{label}"'
    lines: list[str] = []

    def metric(name: str, kind: str, value: float, extra: str = "") -> None:
        head = f"# TYPE {name} {kind}"
        if head not in lines:
            lines.extend((f"# HELP {name} Of a simulated engine.", head))
        lines.append(f"{name}{{{labels}{extra}}} {float(value)}")

    metric("vllm:num_requests_running", "gauge", scheduler.running)
    metric("vllm:num_requests_waiting", "gauge", len(scheduler.waiting))
    usage = scheduler.kv_used / scheduler.kv_capacity_tokens
    metric("vllm:kv_cache_usage_perc", "gauge", usage)
    metric("vllm:num_preemptions_total", "counter", counters.preemptions)
    metric("vllm:prompt_tokens_total", "counter", counters.prompt_tokens)
    metric("vllm:generation_tokens_total", "counter", counters.generation_tokens)
    finished = counters.requests_finished
    metric("vllm:request_success_total", "counter", finished, ',finished_reason="length"')
    if engine.configuration.speculation_length:
        prefix = "vllm:spec_decode_num"
        metric(f"{prefix}_drafts_total", "counter", accepted.drafts)
        metric(f"{prefix}_draft_tokens_total", "counter", accepted.draft_tokens)
        metric(f"{prefix}_accepted_tokens_total", "counter", accepted.accepted_tokens)
        for position, count in enumerate(accepted.accepted_per_position):
            name = f"{prefix}_accepted_tokens_per_pos_total"
            metric(name, "counter", count, f',position="{position}"')
    capacity = f'engine="0",num_gpu_blocks="{scheduler.kv_capacity_tokens}",block_size="1"'
    lines.append("# TYPE vllm:cache_config_info gauge")
    lines.append(f"vllm:cache_config_info{{{capacity}}} 1.0")
    lines.append("# TYPE process_start_time_seconds gauge")
    lines.append(f"process_start_time_seconds {started_unix_s}")
    lines.append("# TYPE simulated_engine_memory_bytes gauge")
    lines.append(f"simulated_engine_memory_bytes {engine.memory_bytes}")
    return "\n".join(lines) + "\n"
