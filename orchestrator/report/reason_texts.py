"""Parts of sentences and reasons, which several statements share: English, Chinese."""

from __future__ import annotations

from collections.abc import Mapping

REASON_TEXTS: Mapping[str, tuple[str, str]] = {
    "value.none": ("", ""),
    "value.unknown": ("not available", "不可用"),
    "unit.closed": ("in flight", "并发"),
    "unit.open": ("requests/s", "请求/秒"),
    "load.closed": ("{level:g} in flight", "并发 {level:g}"),
    "load.open": ("{level:g} requests/s", "{level:g} 请求/秒"),
    "load.trace": ("the trace at x{scale:g}", "轨迹 x{scale:g}"),
    "metric.speedup_throughput": ("throughput", "吞吐量"),
    "metric.speedup_tpot": ("time per output token", "单令牌延迟"),
    "metric.speedup_e2e": ("end-to-end latency", "端到端响应时间"),
    "metric.speedup_ttft": ("time to first token", "首令牌延迟"),
    "cell.speedup": (
        "{load}: {speedup:.2f}x [{low:.2f}, {high:.2f}]",
        "{load}：{speedup:.2f}x [{low:.2f}, {high:.2f}]",
    ),
    "cell.metric": (
        "{load}: {metric} {speedup:.2f}x [{low:.2f}, {high:.2f}]",
        "{load}：{metric} {speedup:.2f}x [{low:.2f}, {high:.2f}]",
    ),
    "cell.few": ("{load}: only {pairs} valid pairs", "{load}：仅 {pairs} 个有效配对"),
    "cell.missing": ("{load}: {why}", "{load}：{why}"),
    "missing.not_ended": ("has not ended", "尚未结束"),
    "missing.failed": ("failed ({failure})", "失败（{failure}）"),
    "missing.stopped": ("not run to its end ({cause})", "未运行完毕（{cause}）"),
    "missing.no_valid_pairs": ("no valid pair", "没有有效配对"),
    "pairs.unknown": (
        "no sensible number of further pairs would decide",
        "再增加合理数量的配对也无法判定",
    ),
    "pairs.further": (
        "about {pairs} further pairs would decide",
        "再约 {pairs} 个配对可判定",
    ),
    "length.at_load": (
        "{load}: {change} from {short} ({short_tokens} tokens, {short_speedup}) to {long} "
        "({long_tokens} tokens, {long_speedup})",
        "{load}：从 {short}（{short_tokens} 令牌，{short_speedup}）到 {long}"
        "（{long_tokens} 令牌，{long_speedup}）{change}",
    ),
    "length.change.grows": ("the speedup grows", "加速比增大"),
    "length.change.falls": ("the speedup falls", "加速比减小"),
    "length.change.untold": ("no change is told", "无法判定变化"),
    "choice.none_at": ("{load}: none is faster", "{load}：没有更快的"),
    "choice.nothing_at": ("{load}: nothing measured", "{load}：未测量"),
    "choice.leads_alone": (
        "{load}: {draft}, {speedup:.2f}x [{low:.2f}, {high:.2f}]",
        "{load}：{draft}，{speedup:.2f}x [{low:.2f}, {high:.2f}]",
    ),
    "choice.leads_among": (
        "{load}: {draft}, {speedup:.2f}x [{low:.2f}, {high:.2f}], not told from {rivals}",
        "{load}：{draft}，{speedup:.2f}x [{low:.2f}, {high:.2f}]，与 {rivals} 无法区分",
    ),
    "acceptance.at_load": (
        "{load}: {measured:.2f} tokens a step, {needed:.2f}{span} needed{by_steps}{rate}",
        "{load}：每步 {measured:.2f} 令牌，需要 {needed:.2f}{span}{by_steps}{rate}",
    ),
    "acceptance.by_steps": (
        " (by the engine's own step times {needed:.2f})",
        "（按引擎自身的步时为 {needed:.2f}）",
    ),
    "acceptance.span": (" [{low:.2f}, {high:.2f}]", " [{low:.2f}, {high:.2f}]"),
    "acceptance.rate": (", acceptance rate {rate:.2f}", "，接受率 {rate:.2f}"),
    "suite.functional": ("functional matrix", "功能矩阵"),
    "suite.quality": ("quality", "质量"),
    "suite.losslessness": ("losslessness", "无损性"),
    "suite.boundary": ("boundary input", "边界输入"),
    "suite.observability": ("observability", "可观测性"),
    "suite.performance": ("performance", "性能"),
    "suite.soak": ("soak", "持续压测"),
    "stability.class": ("{count} x {failure}", "{count} × {failure}"),
    "resources.device_memory_bytes": (
        "device memory {baseline:.2f} -> {speculative:.2f} GiB ({difference:+.2f})",
        "设备内存 {baseline:.2f} → {speculative:.2f} GiB（{difference:+.2f}）",
    ),
    "resources.host_memory_bytes": (
        "host memory of the engine {baseline:.2f} -> {speculative:.2f} GiB ({difference:+.2f})",
        "引擎主机内存 {baseline:.2f} → {speculative:.2f} GiB（{difference:+.2f}）",
    ),
    "resources.kv_capacity_tokens": (
        "KV capacity {baseline:.0f} -> {speculative:.0f} tokens ({percent:+.1f} %)",
        "KV 缓存容量 {baseline:.0f} → {speculative:.0f} 令牌（{percent:+.1f} %）",
    ),
    "resources.start_s": (
        "shortest start-up {baseline:.0f} -> {speculative:.0f} s",
        "最短启动时间 {baseline:.0f} → {speculative:.0f} s",
    ),
    "resources.energy_j_per_token": (
        "energy {baseline:.3g} -> {speculative:.3g} J per output token ({percent:+.1f} %)",
        "能耗 {baseline:.3g} → {speculative:.3g} J/输出令牌（{percent:+.1f} %）",
    ),
    "bottleneck.at_load.decoding": (
        "{load}: {percent:.0f} % serial decoding{step}",
        "{load}：串行解码占 {percent:.0f} %{step}",
    ),
    "bottleneck.at_load.prefill": (
        "{load}: {percent:.0f} % serial decoding, the rest is the wait for the first token{step}",
        "{load}：串行解码占 {percent:.0f} %，其余为首令牌等待{step}",
    ),
    "bottleneck.at_load.queue": (
        "{load}: {percent:.0f} % serial decoding, most of the rest is the queue{step}",
        "{load}：串行解码占 {percent:.0f} %，其余大部分为排队{step}",
    ),
    "bottleneck.step": (
        ", of a step {percent:.0f} % in the target's forward pass",
        "，一步中目标模型前向占 {percent:.0f} %",
    ),
    "risk.few_prompts.of": ("{workload} ({prompts})", "{workload}（{prompts}）"),
    "gap.load_above": ("loads above {high:g} {unit}", "高于 {high:g} {unit} 的负载"),
    "gap.load_outside": (
        "loads below {low:g} and above {high:g} {unit}",
        "低于 {low:g} 及高于 {high:g} {unit} 的负载",
    ),
    "gap.one_length": (
        "inputs much shorter or longer than {tokens} tokens",
        "远短于或远长于 {tokens} 令牌的输入",
    ),
    "gap.lengths_outside": (
        "inputs shorter than {low} or longer than {high} tokens",
        "短于 {low} 或长于 {high} 令牌的输入",
    ),
    "gap.one_temperature": (
        "temperatures other than {temperature:g}",
        "{temperature:g} 以外的温度",
    ),
    "gap.length_and_topic": (
        "length alone: {short} and {long} also differ in what is asked",
        "单纯的长度影响：{short} 与 {long} 的提问内容也不同",
    ),
    "gap.longer": ("speculation lengths above {length}", "大于 {length} 的投机长度"),
    "gap.shorter": ("speculation lengths below {length}", "小于 {length} 的投机长度"),
    "gap.quality": ("whether the answers are the same", "输出是否一致"),
    "gap.suite_incomplete": ("the cases that were not reached", "未运行到的用例"),
    "gap.stages": (
        "how a step divides into drafting, verification and sampling",
        "一步在起草、校验与采样之间的划分",
    ),
    "gap.device_memory_bytes": ("device memory", "设备内存"),
    "gap.host_memory_bytes": ("host memory of the engine", "引擎主机内存"),
    "gap.kv_capacity_tokens": ("KV capacity", "KV 缓存容量"),
    "gap.start_s": ("start-up time", "启动时间"),
    "gap.energy_j_per_token": ("energy per token", "每令牌能耗"),
}
