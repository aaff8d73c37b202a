"""The sentences of conclusions: English, Chinese. Every key of `orchestrator.decide` has one."""

from __future__ import annotations

from collections.abc import Mapping

_HEAD_EN = "{draft} on {workload} at T={temperature:g}"
_HEAD_ZH = "{draft}，{workload}，T={temperature:g}"

CONCLUSION_TEXTS: Mapping[str, tuple[str, str]] = {
    # The sweep as a whole
    "overall.nothing_planned": ("No comparison was planned.", "没有计划任何比较。"),
    "overall.nothing_measured": (
        "Nothing valid was measured in any of {cells} cells: nothing can be said of speed.",
        "{cells} 个单元中没有任何有效测量：无法对速度下结论。",
    ),
    "overall.control_failed": (
        "No verdict may be used: a baseline differs from itself by "
        "[{control_low:.3f}, {control_high:.3f}]. Something other than speculation differs between "
        "the arms; find it first.",
        "任何判定都不可用：基线与自身之比为 [{control_low:.3f}, {control_high:.3f}]。"
        "两臂之间存在投机解码以外的差异，须先找到原因。",
    ),
    "overall.cannot_tell": (
        "It cannot be told whether speculation pays: none of {cells} cells has a verdict.",
        "无法判定投机解码是否划算：{cells} 个单元均无判定。",
    ),
    "overall.faster_but_findings": (
        "Speculation is faster in {faster} of {cells} cells, but its answers are not sound: "
        "{suites}. Do not switch it on before that is explained.",
        "{cells} 个单元中有 {faster} 个更快，但输出存在问题：{suites}。在查明原因之前不要启用。",
    ),
    "overall.depends": (
        "It depends: faster in {faster}, slower in {slower} of {cells} cells "
        "({equal} without practical difference, {open} not told, {missing} not measured).",
        "视条件而定：{cells} 个单元中 {faster} 个更快，{slower} 个更慢"
        "（{equal} 个无实际差异，{open} 个无法判定，{missing} 个未测量）。",
    ),
    "overall.faster": (
        "Speculation is faster in all {cells} measured cells.",
        "在全部 {cells} 个测量单元中，投机解码均更快。",
    ),
    "overall.faster_in_part": (
        "Speculation is faster in {faster} of {cells} cells and slower in none "
        "({equal} without practical difference, {open} not told, {missing} not measured).",
        "{cells} 个单元中 {faster} 个更快，没有更慢的"
        "（{equal} 个无实际差异，{open} 个无法判定，{missing} 个未测量）。",
    ),
    "overall.no_gain": (
        "No gain was found: slower in {slower} of {cells} cells and faster in none "
        "({equal} without practical difference, {open} not told, {missing} not measured).",
        "未发现收益：{cells} 个单元中 {slower} 个更慢，没有更快的"
        "（{equal} 个无实际差异，{open} 个无法判定，{missing} 个未测量）。",
    ),
    "overall.equal": (
        "No practical difference in {equal} of {cells} cells; none is faster or slower "
        "({open} not told, {missing} not measured).",
        "{cells} 个单元中 {equal} 个无实际差异，没有更快或更慢的"
        "（{open} 个无法判定，{missing} 个未测量）。",
    ),
    # Effect over load
    "effect.not_measured": (
        f"{_HEAD_EN}: not measured ({{missing}}).",
        f"{_HEAD_ZH}：未测量（{{missing}}）。",
    ),
    "effect.cannot_tell": (
        f"{_HEAD_EN}: it cannot be told whether {{metric}} changes ({{open}}); {{further_pairs}}.",
        f"{_HEAD_ZH}：无法判定{{metric}}是否变化（{{open}}）；{{further_pairs}}。",
    ),
    "effect.faster_throughout": (
        f"{_HEAD_EN}: {{metric}} is better at every measured load from {{low}} to {{high}} "
        "({faster}).",
        f"{_HEAD_ZH}：从 {{low}} 到 {{high}} 的每个测量负载下{{metric}}都更好（{{faster}}）。",
    ),
    "effect.faster_here": (
        f"{_HEAD_EN}: {{metric}} is better at the one measured load ({{faster}}).",
        f"{_HEAD_ZH}：在唯一测量的负载下{{metric}}更好（{{faster}}）。",
    ),
    "effect.faster_partly": (
        f"{_HEAD_EN}: {{metric}} is better at some loads ({{faster}}); no practical difference: "
        "{equal}; not told: {open}; not measured: {missing}.",
        f"{_HEAD_ZH}：部分负载下{{metric}}更好（{{faster}}）；无实际差异：{{equal}}；"
        "无法判定：{open}；未测量：{missing}。",
    ),
    "effect.slower_throughout": (
        f"{_HEAD_EN}: {{metric}} is worse at every measured load from {{low}} to {{high}} "
        "({slower}).",
        f"{_HEAD_ZH}：从 {{low}} 到 {{high}} 的每个测量负载下{{metric}}都更差（{{slower}}）。",
    ),
    "effect.slower_here": (
        f"{_HEAD_EN}: {{metric}} is worse at the one measured load ({{slower}}).",
        f"{_HEAD_ZH}：在唯一测量的负载下{{metric}}更差（{{slower}}）。",
    ),
    "effect.slower_partly": (
        f"{_HEAD_EN}: {{metric}} is worse at some loads ({{slower}}); no practical difference: "
        "{equal}; not told: {open}; not measured: {missing}.",
        f"{_HEAD_ZH}：部分负载下{{metric}}更差（{{slower}}）；无实际差异：{{equal}}；"
        "无法判定：{open}；未测量：{missing}。",
    ),
    "effect.equal_throughout": (
        f"{_HEAD_EN}: no practical difference in {{metric}} from {{low}} to {{high}} ({{equal}}).",
        f"{_HEAD_ZH}：从 {{low}} 到 {{high}}，{{metric}}无实际差异（{{equal}}）。",
    ),
    "effect.equal_here": (
        f"{_HEAD_EN}: no practical difference in {{metric}} at the one measured load ({{equal}}).",
        f"{_HEAD_ZH}：在唯一测量的负载下{{metric}}无实际差异（{{equal}}）。",
    ),
    "effect.equal_partly": (
        f"{_HEAD_EN}: no practical difference in {{metric}} where it can be told ({{equal}}); "
        "not told: {open}; not measured: {missing}.",
        f"{_HEAD_ZH}：在可判定处{{metric}}无实际差异（{{equal}}）；无法判定：{{open}}；"
        "未测量：{missing}。",
    ),
    "effect.falls": (
        f"{_HEAD_EN}: {{metric}} is better at low load ({{faster}}) and worse at high load "
        "({slower}).",
        f"{_HEAD_ZH}：低负载时{{metric}}更好（{{faster}}），高负载时更差（{{slower}}）。",
    ),
    "effect.rises": (
        f"{_HEAD_EN}: {{metric}} is worse at low load ({{slower}}) and better at high load "
        "({faster}).",
        f"{_HEAD_ZH}：低负载时{{metric}}更差（{{slower}}），高负载时更好（{{faster}}）。",
    ),
    "effect.contradictory": (
        f"{_HEAD_EN}: the loads contradict each other: better at {{faster}}, worse at {{slower}}, "
        "with no single crossing. Measure these loads again before acting on any of them.",
        f"{_HEAD_ZH}：各负载的结果相互矛盾：更好 {{faster}}；更差 {{slower}}，不存在唯一交点。"
        "采取行动前请重新测量这些负载。",
    ),
    "effect.fits_high_load": (
        f"{_HEAD_EN}: fit for high concurrency, not for low latency: {{at_low}}, but {{at_high}}.",
        f"{_HEAD_ZH}：适合高并发，不适合低延迟：{{at_low}}，而 {{at_high}}。",
    ),
    "effect.fits_low_load": (
        f"{_HEAD_EN}: fit for few requests at once, not for high concurrency: {{at_low}}, but "
        "{at_high}.",
        f"{_HEAD_ZH}：适合低并发，不适合高并发：{{at_low}}，而 {{at_high}}。",
    ),
    "effect.trade_off": (
        f"{_HEAD_EN}: {{metric}} and other figures point in opposite directions: {{others}} (these "
        "are not corrected for the number of cells). Choose by the figure that your service needs.",
        f"{_HEAD_ZH}：{{metric}}与其他指标方向相反：{{others}}（后者未按单元数校正）。"
        "请按业务所需指标取舍。",
    ),
    # Effect over length
    "length.not_measured": (
        "Whether the gain holds over input length was not measured: all inputs are of about one "
        "length.",
        "未测量收益是否随输入长度保持：所有输入长度相近。",
    ),
    "length.holds": (
        "{draft} at T={temperature:g}: faster for short and for long input ({per_load}).",
        "{draft}，T={temperature:g}：短输入与长输入均更快（{per_load}）。",
    ),
    "length.grows": (
        "{draft} at T={temperature:g}: the speedup is larger for long input ({per_load}).",
        "{draft}，T={temperature:g}：长输入的加速比更大（{per_load}）。",
    ),
    "length.falls": (
        "{draft} at T={temperature:g}: the speedup is smaller for long input ({per_load}).",
        "{draft}，T={temperature:g}：长输入的加速比更小（{per_load}）。",
    ),
    "length.cannot_tell": (
        "{draft} at T={temperature:g}: it cannot be told whether the speedup changes with input "
        "length ({per_load}).",
        "{draft}，T={temperature:g}：无法判定加速比是否随输入长度变化（{per_load}）。",
    ),
    "length.contradictory": (
        "{draft} at T={temperature:g}: the effect of input length contradicts itself between loads "
        "({per_load}).",
        "{draft}，T={temperature:g}：输入长度的影响在不同负载下相互矛盾（{per_load}）。",
    ),
    "length.depends_on_load": (
        "{draft} at T={temperature:g}: the effect of input length is told at some loads only "
        "({per_load}).",
        "{draft}，T={temperature:g}：仅在部分负载下可判定输入长度的影响（{per_load}）。",
    ),
    # Switch-off load
    "switch_off.at": (
        f"{_HEAD_EN}: switch off from {{load:.3g}} {{unit}} on [{{low:.3g}}, {{high:.3g}}]; it "
        "was measured at {below:g} and {above:g}, the load between is interpolated.",
        f"{_HEAD_ZH}：从 {{load:.3g}} {{unit}} 起关闭 [{{low:.3g}}, {{high:.3g}}]；"
        "实测负载为 {below:g} 与 {above:g}，其间为插值。",
    ),
    "switch_off.on_from": (
        f"{_HEAD_EN}: switch on only from {{load:.3g}} {{unit}} [{{low:.3g}}, {{high:.3g}}]; it "
        "was measured at {below:g} and {above:g}, the load between is interpolated.",
        f"{_HEAD_ZH}：仅从 {{load:.3g}} {{unit}} 起启用 [{{low:.3g}}, {{high:.3g}}]；"
        "实测负载为 {below:g} 与 {above:g}，其间为插值。",
    ),
    "switch_off.tentative": (
        f"{_HEAD_EN}: the speedup seems to cross 1 near {{load:.3g}} {{unit}} "
        "[{low:.3g}, {high:.3g}], but not all of it survives the correction over the sweep's "
        "cells: measure {below:g} and {above:g} with more pairs before you rely on it.",
        f"{_HEAD_ZH}：加速比似乎在 {{load:.3g}} {{unit}} 附近穿过 1 [{{low:.3g}}, {{high:.3g}}]，"
        "但未能完全通过多单元校正：请先以更多配对测量 {below:g} 与 {above:g}。",
    ),
    "switch_off.several": (
        f"{_HEAD_EN}: the speedup crosses 1 more than once (at {{loads}} {{unit}}): no single "
        "switch-off load can be given.",
        f"{_HEAD_ZH}：加速比多次穿过 1（{{loads}} {{unit}}）：无法给出单一关闭负载。",
    ),
    "switch_off.contradictory": (
        f"{_HEAD_EN}: faster and slower loads were found, but no crossing between them: no "
        "switch-off load can be given.",
        f"{_HEAD_ZH}：既有更快也有更慢的负载，但其间没有交点：无法给出关闭负载。",
    ),
    "switch_off.never_pays": (
        f"{_HEAD_EN}: leave it off between {{low_load}} and {{high_load}}: no measured load shows "
        "a gain, and it is slower at {slower}.",
        f"{_HEAD_ZH}：在 {{low_load}} 至 {{high_load}} 之间保持关闭：没有负载显示收益，"
        "且在以下负载更慢：{slower}。",
    ),
    "switch_off.beyond": (
        f"{_HEAD_EN}: still faster at the highest measured load, {{at}}; where it stops paying "
        "was not measured.",
        f"{_HEAD_ZH}：在最高测量负载 {{at}} 下仍更快；何处不再划算未测量。",
    ),
    "switch_off.not_resolved": (
        f"{_HEAD_EN}: faster up to {{last}}; above, up to {{high_load}}, it is not told from no "
        "gain. Until it is, switch off above {last}.",
        f"{_HEAD_ZH}：直至 {{last}} 更快；其上至 {{high_load}} 无法与无收益区分。"
        "在判定之前，请在 {last} 以上关闭。",
    ),
    "switch_off.no_gain": (
        f"{_HEAD_EN}: no switch-off load: no gain was shown between {{low_load}} and "
        "{high_load}.",
        f"{_HEAD_ZH}：没有关闭负载：{{low_load}} 至 {{high_load}} 之间未显示收益。",
    ),
    # Choice of draft and K
    "choice.confirmed": (
        "The best cell, {cell}, was found faster again on prompts not used before: "
        "{again:.2f}x [{again_low:.2f}, {again_high:.2f}] (at first {speedup:.2f}x; the first "
        "figure was chosen for being high, use the second).",
        "最佳单元 {cell} 在全新提示上再次更快：{again:.2f}x [{again_low:.2f}, {again_high:.2f}]"
        "（首次 {speedup:.2f}x；首次数值因高而被选中，请采用第二次）。",
    ),
    "choice.confirmation_open": (
        "The best cell, {cell} ({speedup:.2f}x), was measured again on prompts not used before, "
        "and cannot be told there: {again:.2f}x [{again_low:.2f}, {again_high:.2f}].",
        "最佳单元 {cell}（{speedup:.2f}x）在全新提示上重测后无法判定："
        "{again:.2f}x [{again_low:.2f}, {again_high:.2f}]。",
    ),
    "choice.confirmation_failed": (
        "The best cell, {cell} ({speedup:.2f}x), was NOT confirmed on prompts not used before: "
        "{again:.2f}x [{again_low:.2f}, {again_high:.2f}]. The first figure was luck or depends on "
        "the prompts; do not deploy it.",
        "最佳单元 {cell}（{speedup:.2f}x）在全新提示上未获证实："
        "{again:.2f}x [{again_low:.2f}, {again_high:.2f}]。"
        "首次数值出于偶然或依赖于提示；请勿部署。",
    ),
    "choice.not_confirmed": (
        "The best cell is {cell}, {speedup:.2f}x [{low:.2f}, {high:.2f}]; it was not measured "
        "again on fresh prompts, and the best of many looks better than it is.",
        "最佳单元为 {cell}，{speedup:.2f}x [{low:.2f}, {high:.2f}]；未在全新提示上重测，"
        "而众多单元中的最佳者看上去总比实际更好。",
    ),
    "choice.off": (
        "On {workload} at T={temperature:g} no configuration may be called faster: leave "
        "speculation off ({per_load}).",
        "{workload}，T={temperature:g}：没有任何配置可判为更快：保持关闭（{per_load}）。",
    ),
    "choice.no_leader": (
        "On {workload} at T={temperature:g} no configuration can be told from the baseline, so "
        "none can be chosen yet ({per_load}).",
        "{workload}，T={temperature:g}：没有配置能与基线区分，暂不能选择（{per_load}）。",
    ),
    "choice.one": (
        "On {workload} at T={temperature:g} choose {draft}: it leads at every measured load "
        "({per_load}).",
        "{workload}，T={temperature:g}：选择 {draft}：在每个测量负载下都领先（{per_load}）。",
    ),
    "choice.one_among": (
        "On {workload} at T={temperature:g} {draft} leads at every measured load, but not all "
        "others can be told from it ({per_load}).",
        "{workload}，T={temperature:g}：{draft} 在每个测量负载下领先，但并非都能与其余配置区分"
        "（{per_load}）。",
    ),
    "choice.one_at_some_loads": (
        "On {workload} at T={temperature:g} only {draft} is the leader where any configuration is "
        "faster ({per_load}).",
        "{workload}，T={temperature:g}：凡有配置更快之处，领先者均为 {draft}（{per_load}）。",
    ),
    "choice.by_load": (
        "On {workload} at T={temperature:g} the choice depends on the load ({per_load}).",
        "{workload}，T={temperature:g}：选择取决于负载（{per_load}）。",
    ),
    "choice.length_edge": (
        "The longest speculation length that was measured is the best ({cells}): longer ones may "
        "be better still.",
        "测得的最长投机长度最佳（{cells}）：更长的可能更好。",
    ),
    "choice.length_short": (
        "The shortest speculation length that was measured is the best ({cells}): shorter ones may "
        "be better still.",
        "测得的最短投机长度最佳（{cells}）：更短的可能更好。",
    ),
    # Acceptance
    "acceptance.enough": (
        f"{_HEAD_EN}: more is accepted than is needed to break even in time per token "
        "({per_load}).",
        f"{_HEAD_ZH}：接受的令牌多于单令牌延迟盈亏平衡所需（{{per_load}}）。",
    ),
    "acceptance.too_low": (
        f"{_HEAD_EN}: too little is accepted to break even in time per token ({{per_load}}).",
        f"{_HEAD_ZH}：接受的令牌不足以在单令牌延迟上达到盈亏平衡（{{per_load}}）。",
    ),
    "acceptance.depends": (
        f"{_HEAD_EN}: whether enough is accepted to break even depends on the load ({{per_load}}).",
        f"{_HEAD_ZH}：接受是否足以盈亏平衡取决于负载（{{per_load}}）。",
    ),
    "acceptance.untold": (
        f"{_HEAD_EN}: it cannot be told whether enough is accepted to break even ({{per_load}}).",
        f"{_HEAD_ZH}：无法判定接受是否足以盈亏平衡（{{per_load}}）。",
    ),
    "acceptance.nothing": (
        f"{_HEAD_EN}: none of {{drafted}} drafted tokens was accepted: the draft never agrees, or "
        "the engine's sampler is broken.",
        f"{_HEAD_ZH}：{{drafted}} 个草稿令牌无一被接受：草稿从不一致，或引擎的采样有缺陷。",
    ),
    "acceptance.not_available": (
        f"{_HEAD_EN}: acceptance is not available: the server counts no accepted tokens.",
        f"{_HEAD_ZH}：接受情况不可用：服务器未统计被接受的令牌。",
    ),
    # Quality and stability
    "quality.not_measured": (
        "Not measured: {suites}. Speed says nothing about whether the answers are the same.",
        "未测量：{suites}。速度并不说明输出是否一致。",
    ),
    "suite.held": (
        "{suite}, {draft}: sound in all {cases} cases ({verdict}).",
        "{suite}，{draft}：全部 {cases} 个用例均无问题（{verdict}）。",
    ),
    "suite.held_so_far": (
        "{suite}, {draft}: sound in the {cases} cases that were run ({verdict}); it did not run "
        "to its end.",
        "{suite}，{draft}：已运行的 {cases} 个用例无问题（{verdict}）；套件未运行完毕。",
    ),
    "suite.findings": (
        "{suite}, {draft}: {findings} findings in {cases} cases ({verdict}): {first}.",
        "{suite}，{draft}：{cases} 个用例中发现 {findings} 个问题（{verdict}）：{first}。",
    ),
    "suite.contradictory": (
        "{suite}, {draft}: called {verdict}, and yet {findings} cases differ: {first}. Look at "
        "them before you rely on it.",
        "{suite}，{draft}：结论为 {verdict}，但有 {findings} 个用例不同：{first}。请先查看再采信。",
    ),
    "suite.not_enough": (
        "{suite}, {draft}: not enough evidence in {cases} cases ({verdict}).",
        "{suite}，{draft}：{cases} 个用例证据不足（{verdict}）。",
    ),
    "stability.not_measured": (
        "Behaviour over hours was not measured: {minutes:.1f} minutes in measured blocks, no soak.",
        "未测量长时间行为：测量块合计 {minutes:.1f} 分钟，未做持续压测。",
    ),
    "stability.drift": (
        "In {trials} trials the speedup drifts while it is measured: the figure is an average over "
        "the trial, not what it settles at.",
        "{trials} 个试验中加速比在测量期间漂移：数值是试验平均，而非稳定值。",
    ),
    "stability.failed": (
        "{trials} of {of} trials failed: {classes}.",
        "{of} 个试验中有 {trials} 个失败：{classes}。",
    ),
    "stability.invalid_pairs": (
        "{pairs} of {of} pairs do not count (see their reasons): the machine was not as quiet as "
        "it should be, or an arm did not behave.",
        "{of} 个配对中有 {pairs} 个不计入（见其原因）：机器不够安静，或某一臂行为异常。",
    ),
    # Resources and bottleneck
    "resources.measured": ("{draft}: {facts}.", "{draft}：{facts}。"),
    "resources.nothing": (
        "{draft}: its use of resources was not measured.",
        "{draft}：未测量资源占用。",
    ),
    "bottleneck.decoding": (
        "{workload}: serial decoding dominates the baseline's response time ({per_load}): "
        "speculation can help here, and with at most that part.",
        "{workload}：基线响应时间以串行解码为主（{per_load}）：投机解码可有帮助，但至多针对该部分。",
    ),
    "bottleneck.prefill": (
        "{workload}: the wait for the first token dominates the baseline's response time "
        "({per_load}): speculation cannot shorten it.",
        "{workload}：基线响应时间以首令牌等待为主（{per_load}）：投机解码无法缩短它。",
    ),
    "bottleneck.queue": (
        "{workload}: the queue dominates ({per_load}): fix that first.",
        "{workload}：排队占主导（{per_load}）：请先解决排队。",
    ),
    "bottleneck.depends": (
        "{workload}: what dominates the baseline's response time depends on the load ({per_load}).",
        "{workload}：基线响应时间的主导部分取决于负载（{per_load}）。",
    ),
    "bottleneck.not_known": (
        "{workload}: what the baseline's time goes into was not measured.",
        "{workload}：未测量基线时间的去向。",
    ),
    # Risks
    "risk.simulated": (
        "SIMULATED: the engine is arithmetic; nothing here was measured on a device.",
        "模拟：引擎是算术模型；此处没有任何设备实测。",
    ),
    "risk.no_control": (
        "There is no A/A control: nothing says how far this machine's own noise goes.",
        "没有 A/A 对照：无法说明本机自身噪声的大小。",
    ),
    "risk.below_floor": (
        "Differences no larger than a baseline's from itself ({floor:.3f}x): {cells}.",
        "差异不大于基线与自身之差（{floor:.3f}x）：{cells}。",
    ),
    "risk.wide_control": (
        "The A/A control does not exclude differences beyond the margin on this machine "
        "[{low:.3f}, {high:.3f}]: small effects are not to be read.",
        "A/A 对照未排除本机超出容差的差异 [{low:.3f}, {high:.3f}]：不应解读小的效应。",
    ),
    "risk.few_prompts": (
        "Samples may not be representative: fewer than {least} different prompts in {workloads}.",
        "样本可能不具代表性：{workloads} 的不同提示少于 {least} 个。",
    ),
    "risk.unlike_production": (
        "Input is not your production's ({workloads}): acceptance depends on what is asked. "
        "Measure your own prompts, and begin with a canary.",
        "输入并非来自您的生产环境（{workloads}）：接受率取决于提问内容。"
        "请测量自己的提示，并先灰度发布。",
    ),
    "risk.tied": (
        "Results hold for {device} and {engines}; another device, driver or version needs its own.",
        "结果仅适用于 {device} 与 {engines}；更换设备、驱动或版本须重新测量。",
    ),
    "risk.too_short": (
        "Too short to show leaks or slow-down: the longest trial ran {minutes:.1f} minutes "
        "({measured_minutes:.1f} minutes measured in all).",
        "时间太短，看不出泄漏或变慢：最长试验 {minutes:.1f} 分钟"
        "（共测量 {measured_minutes:.1f} 分钟）。",
    ),
    "risk.not_told": (
        "{cells} of {of} cells could not be told at this noise and number of pairs: that is not "
        "the same as no difference.",
        "{of} 个单元中有 {cells} 个在此噪声与配对数下无法判定：这不等于没有差异。",
    ),
    "risk.sensitive": (
        "The order of the arms or single pairs matter in: {cells}.",
        "两臂顺序或个别配对有影响：{cells}。",
    ),
    "risk.throughput_of_open_loop": (
        "In an open loop below saturation both arms deliver what is offered: throughput is equal "
        "there by construction; judge by latency (measure.metric: speedup_tpot).",
        "开环且未饱和时两臂都交付所提供的负载：吞吐量必然相等；请以延迟判断"
        "（measure.metric: speedup_tpot）。",
    ),
    "risk.modified": (
        "The product's own source was modified (from revision {revision}): others cannot repeat it "
        "exactly.",
        "本产品源码已被修改（基于修订 {revision}）：他人无法完全复现。",
    ),
}
