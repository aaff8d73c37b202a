"""Scenarios, score card and cost in words: English, Chinese."""

from __future__ import annotations

from collections.abc import Mapping

FIT_TEXTS: Mapping[str, tuple[str, str]] = {
    "figure.not_measured": ("{figure} not measured", "{figure} 未测量"),
    "figure.need.better": ("must be better", "须更好"),
    "figure.need.not_worse": ("must not be worse", "不得更差"),
    "figure.speedup": (
        "{metric} {speedup:.2f}x [{low:.2f}, {high:.2f}], {need}",
        "{metric} {speedup:.2f}x [{low:.2f}, {high:.2f}]，{need}",
    ),
    "figure.suite_not_run": ("suite {suite} not run", "套件 {suite} 未运行"),
    "figure.suite": ("suite {suite}: {verdict}", "套件 {suite}：{verdict}"),
    "figure.cost_ratio": (
        "cost per token x{ratio:.2f} [{low:.2f}, {high:.2f}], at most x{at_most:g}",
        "每令牌成本 x{ratio:.2f} [{low:.2f}, {high:.2f}]，至多 x{at_most:g}",
    ),
    "figure.failures": (
        "{failed} of {planned} requests failed",
        "{planned} 个请求中失败 {failed} 个",
    ),
    "figure.steadiness": (
        "{figure} x{ratio:.2f} of the baseline's, at most x{at_most:g}",
        "{figure} 为基线的 x{ratio:.2f}，至多 x{at_most:g}",
    ),
    "bound.broken": (
        "{name} is {seen:.3g} s, at most {bound:g} s is asked",
        "{name} 为 {seen:.3g} s，要求至多 {bound:g} s",
    ),
    "bound.not_measured": ("{name} not measured", "{name} 未测量"),
    "fit.fits": ("fits", "适配"),
    "fit.fits with conditions": ("fits with conditions", "有条件适配"),
    "fit.does not fit": ("does not fit", "不适配"),
    "fit.not enough evidence": ("not enough evidence", "证据不足"),
    "scenario.no_shape": (
        "no measured cell has this scenario's shape ({shape})",
        "没有单元符合该场景的负载形态（{shape}）",
    ),
    "scenario.nothing_measured": (
        "nothing valid was measured in the cells of this shape",
        "该形态的单元没有有效测量",
    ),
    "scenario.control_failed": (
        "the A/A control failed, so no speed is known",
        "A/A 对照失败，速度未知",
    ),
    "scenario.fits": (
        "{draft} at {load}: {figures}",
        "{draft}，{load}：{figures}",
    ),
    "scenario.refused": (
        "none of {cells} measured cells will do; in the best: {why}",
        "{cells} 个测量单元均不符合；最佳者：{why}",
    ),
    "scenario.unknown": (
        "what decides is not known; in the best cell: {why}",
        "决定性指标未知；最佳单元：{why}",
    ),
    "scenario.simulated": ("simulated, not measured", "模拟，非实测"),
    "scenario.not_as_needed": ("not as wished: {figure}", "不如期望：{figure}"),
    "scenario.not_known": ("not known: {figure}", "未知：{figure}"),
    "scenario.not_at": ("not at {cells}", "不适用于 {cells}"),
    "scenario.not_on": ("not on {cells}", "不适用于 {cells}"),
    "dimension.functional_completeness": ("functional completeness", "功能完整性"),
    "dimension.effectiveness": ("effectiveness", "有效性"),
    "dimension.performance": ("performance", "性能"),
    "dimension.stability": ("stability", "稳定性"),
    "dimension.usability": ("usability", "易用性"),
    "dimension.compatibility": ("compatibility", "兼容性"),
    "dimension.observability": ("observability", "可观测性"),
    "dimension.cost": ("cost", "成本"),
    "status.measured": ("measured", "已测量"),
    "status.not measured": ("not measured", "未测量"),
    "status.failed": ("failed", "未通过"),
    "card.suites": ("{verdicts}", "{verdicts}"),
    "card.suite_not_run": ("suites not run: {suites}", "未运行的套件：{suites}"),
    "card.no_trials": ("no trial has valid pairs", "没有试验具有有效配对"),
    "card.all_failed": ("every trial failed", "所有试验失败"),
    "card.control_failed": (
        "a baseline differs from itself beyond the margin",
        "基线与自身之差超出容差",
    ),
    "card.performance": (
        "{told} of {cells} cells have a verdict: {faster} faster, {slower} slower",
        "{cells} 个单元中 {told} 个有判定：{faster} 个更快，{slower} 个更慢",
    ),
    "card.no_engine": ("no engine with speculation has started", "没有投机引擎启动过"),
    "card.usability": (
        "{draft}: {flags} settings, {artifacts} extra artifacts, start-up {start_s:.0f} s "
        "(baseline {baseline_start_s} s), errors met: {errors}",
        "{draft}：{flags} 项设置，{artifacts} 个额外产物，启动 {start_s:.0f} s"
        "（基线 {baseline_start_s} s），遇到的错误：{errors}",
    ),
    "card.each": ("{each}", "{each}"),
    "card.no_device": ("no device was measured", "没有实测设备"),
    "card.compatibility": (
        "{device}; {engines}; {how}. Other devices and forms of deployment: not measured",
        "{device}；{engines}；{how}。其他设备与部署形式：未测量",
    ),
    "card.attached": ("an endpoint that was running already", "已在运行的服务端点"),
    "card.served": ("served behind Ray Serve", "由 Ray Serve 托管"),
    "card.no_cost": ("tokens per device-hour are not known", "每设备小时的令牌数未知"),
    "card.cost": (
        "{cells} cells priced: {cheaper} cheaper per token, {dearer} dearer",
        "{cells} 个单元已计价：{cheaper} 个每令牌更便宜，{dearer} 个更贵",
    ),
    "card.cost_without_price": (
        "no price was given; per token and device-hour, {cheaper} of {cells} cells are cheaper, "
        "{dearer} dearer",
        "未给出价格；按每令牌设备小时计，{cells} 个单元中 {cheaper} 个更便宜，{dearer} 个更贵",
    ),
    "advice.nothing_measured": (
        "Not decided: nothing valid was measured.",
        "未决定：没有任何有效测量。",
    ),
    "advice.control_failed": (
        "Not decided: a baseline differs from itself beyond the margin.",
        "未决定：基线与自身之差超出容差。",
    ),
    "advice.none_faster": (
        "Off: no cell is faster with speculation.",
        "关闭：没有单元因投机解码而更快。",
    ),
    "advice.none_told": (
        "Not decided: no cell can be told from the baseline.",
        "未决定：没有单元能与基线区分。",
    ),
    "advice.unsound": (
        "Off: the fastest cell, {cell}, is not sound ({suites}).",
        "关闭：最快的单元 {cell} 存在问题（{suites}）。",
    ),
    "advice.not_confirmed": (
        "Off: the fastest cell, {cell}, was not faster on prompts not used before.",
        "关闭：最快的单元 {cell} 在全新提示上并不更快。",
    ),
    "advice.on": (
        "On: {cell}, {speedup:.2f}x [{low:.2f}, {high:.2f}] on prompts not used before.",
        "启用：{cell}，在全新提示上 {speedup:.2f}x [{low:.2f}, {high:.2f}]。",
    ),
    "advice.on_unconfirmed": (
        "A candidate for a canary: {cell}, {speedup:.2f}x [{low:.2f}, {high:.2f}], not confirmed "
        "on prompts not used before.",
        "可作灰度候选：{cell}，{speedup:.2f}x [{low:.2f}, {high:.2f}]，未在全新提示上证实。",
    ),
}
