"use strict";
// Texts come from the state only as text nodes: nothing of it is ever markup.
const EVERY_MS = 2000, EVENTS_SHOWN = 60, TOKEN = "switch-token", LANGUAGE = "switch-language";
const WORDS = {
  en: {
    title: "Switch: live", language: "中文", token: "Operator's token", enter: "Enter",
    token_where: "The file admin.token in the switch's state folder, or a token of your own.",
    wrong: "This token is not one of the switch's operators'.", many: "Too many wrong tokens: wait a little.",
    traffic: "Where callers go", guard: "What the guard says", figures: "Both arms, on live traffic",
    acceptance: "Acceptance by category", near: "How near to an alarm", events: "Events",
    speculative: "speculative", baseline: "baseline", limit: "limit", metric: "", category: "category", requests: "requests",
    whole: "all", unknown: "not known", none: "nothing yet", as_of: "as of {time}", lost: "no answer since {time}: what is shown is old",
    figures_caption: "Of the last minutes, with 95 % intervals. Alarms rest on sequential evidence, not on these intervals.",
    acceptance_caption: "Accepted draft tokens over proposed ones, of the speculative arm, with 95 % intervals.",
    near_note: "0 % is no evidence, 100 % an alarm.",
    healthy: "healthy", breached: "breached", cooling: "cooling down", probing: "probing",
    says_healthy: "Nothing speaks against the speculative arm, since {time}.",
    says_breached: "A limit is broken: all callers get the baseline, since {time}.",
    says_cooling: "All callers get the baseline; a probe begins at {probe}.",
    says_probing: "{share} of the traffic is mirrored to the speculative arm, its answers thrown away, since {time}.",
    policy: "policy", paused: "paused by", closed_by: "held at 0 by", ramp: "ramp", step: "step {step} of {of}, held {held}",
    arms: "arms", up: "answers", down: "DOWN", in_flight: "{count} in flight", load: "load", rate: "{rate} requests/s, {count} in flight",
    blocked: "categories on the baseline", probed: "{category} (probed)", replicas: "replicas", who: "settings", by: "version {version} by {who}: {why}",
    error_rate: "failed requests", repetitive_rate: "repetitive answers", mismatch_rate: "greedy answers that differ",
    evidence: "evidence", category_of: "{category}: ",
    r_acceptance_floor: "acceptance below its floor", r_acceptance_drop: "acceptance fell", r_errors: "failures", r_mismatch: "answers differ",
    r_repetition: "repetition", r_slower_ttft: "TTFT against the baseline", r_slower_tpot: "TPOT against the baseline", r_slower_e2e: "E2E against the baseline",
    said_acceptance_floor: "acceptance {acceptance} is below its floor of {floor}", said_acceptance_drop: "acceptance fell to {acceptance}",
    said_share: "{rule}: {share} of {samples} requests; at most {allowed} are borne", since: "; since about {time}",
  },
  zh: {
    title: "切换器：实时", language: "English", token: "操作员令牌", enter: "进入",
    token_where: "见切换器状态目录中的 admin.token 文件，或使用您自己的令牌。",
    wrong: "该令牌不属于切换器的任何操作员。", many: "错误令牌过多：请稍候。",
    traffic: "请求的去向", guard: "守护的判断", figures: "两个分支的实时数据",
    acceptance: "各类别的接受率", near: "距告警还有多远", events: "事件",
    speculative: "投机", baseline: "基线", limit: "限值", metric: "", category: "类别", requests: "请求数",
    whole: "全部", unknown: "未知", none: "暂无", as_of: "截至 {time}", lost: "自 {time} 起无应答：所示为旧数据",
    figures_caption: "最近几分钟，附 95 % 置信区间。告警依据序贯证据，而非这些区间。",
    acceptance_caption: "投机分支中被接受的草稿令牌占提出的草稿令牌之比，附 95 % 置信区间。",
    near_note: "0 % 表示没有证据，100 % 表示告警。",
    healthy: "正常", breached: "越限", cooling: "冷却中", probing: "探测中",
    says_healthy: "自 {time} 起，没有不利于投机分支的证据。",
    says_breached: "有限值被突破：自 {time} 起所有请求由基线回答。",
    says_cooling: "所有请求由基线回答；探测将于 {probe} 开始。",
    says_probing: "自 {time} 起，{share} 的流量镜像到投机分支，其回答被丢弃。",
    policy: "策略", paused: "已暂停，由", closed_by: "份额归零，原因", ramp: "爬坡", step: "第 {step} 步，共 {of} 步，已保持 {held}",
    arms: "分支", up: "有应答", down: "无应答", in_flight: "{count} 个在途", load: "负载", rate: "每秒 {rate} 个请求，{count} 个在途",
    blocked: "退回基线的类别", probed: "{category}（探测中）", replicas: "副本", who: "设置", by: "第 {version} 版，{who}：{why}",
    error_rate: "失败的请求", repetitive_rate: "重复的回答", mismatch_rate: "不一致的贪心回答",
    evidence: "证据", category_of: "{category}：",
    r_acceptance_floor: "接受率低于下限", r_acceptance_drop: "接受率下降", r_errors: "失败", r_mismatch: "回答不一致",
    r_repetition: "重复", r_slower_ttft: "首令牌延迟对比基线", r_slower_tpot: "单令牌延迟对比基线", r_slower_e2e: "端到端响应时间对比基线",
    said_acceptance_floor: "接受率 {acceptance} 低于下限 {floor}", said_acceptance_drop: "接受率降至 {acceptance}",
    said_share: "{rule}：{samples} 个请求中的 {share}；至多容许 {allowed}", since: "；约自 {time} 起",
  },
};
let language = localStorage.getItem(LANGUAGE) || (navigator.language.startsWith("zh") ? "zh" : "en");
let state = null, events = [], lastEvent = 0, heardAt = null, timer = null;

const $ = id => document.getElementById(id);
const say = (key, values = {}) => (WORDS[language][key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
const clock = seconds => seconds == null ? say("unknown") : new Date(seconds * 1000).toLocaleString(language === "zh" ? "zh-CN" : "en-GB", { hour12: false, month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const percent = (value, digits = 1) => value == null ? "–" : `${(100 * value).toFixed(digits)} %`;
const time = s => s == null ? "–" : s < 1 ? `${(1000 * s).toFixed(s < 0.1 ? 1 : 0)} ms` : `${s.toFixed(2)} s`;
const held = s => s < 90 ? `${Math.round(s)} s` : `${Math.round(s / 60)} min`;
const isTime = name => name.endsWith("_s");
const shown = (name, value) => isTime(name) ? time(value) : name === "acceptance_rate" ? (value == null ? "–" : value.toFixed(3)) : percent(value);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children.filter(child => child != null));
  return made;
}
function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}
function put(id, ...children) {
  const place = $(id), fresh = make("div");
  fresh.append(...children);
  // Untouched while it says the same: selections, focus and open details stay.
  if (fresh.innerHTML !== place.innerHTML) place.replaceChildren(...fresh.childNodes);
}

function label(name) {
  const latency = /^(ttft|tpot|e2e)_p(\d+)_s$/.exec(name);
  return latency ? `${latency[1].toUpperCase()} p${latency[2]}` : say(name);
}
function rule(name) {
  return WORDS[language][`r_${name}`] ?? label(name);
}

// One strip: an interval for each arm on a common scale, the limit as a dashed line.
function strip(rows, limit, largest) {
  const svg = drawn("svg", { viewBox: "0 0 200 40", preserveAspectRatio: "none", "aria-hidden": "true" });
  const x = value => 2 + 196 * Math.min(Math.max(value / largest, 0), 1);
  svg.append(drawn("line", { class: "axis", x1: 2, x2: 198, y1: 39, y2: 39, "vector-effect": "non-scaling-stroke" }));
  if (limit != null && limit <= largest) svg.append(drawn("line", { class: "limit", x1: x(limit), x2: x(limit), y1: 1, y2: 39, "vector-effect": "non-scaling-stroke" }));
  rows.forEach(([arm, figure], index) => {
    if (!figure || figure.value == null) return;
    const y = rows.length === 1 ? 20 : 12 + 16 * index;
    svg.append(drawn("line", { class: arm, x1: x(figure.low ?? figure.value), x2: x(figure.high ?? figure.value), y1: y, y2: y, "stroke-width": 2, "vector-effect": "non-scaling-stroke" }));
    svg.append(drawn("rect", { class: arm, x: x(figure.value) - 1, y: y - 5, width: 2, height: 10, stroke: "none" }));
  });
  return svg;
}
function cell(name, figure, limit) {
  if (!figure || figure.value == null) return make("td", {}, "–");
  const isFloor = name === "acceptance_rate";
  const over = limit != null && (isFloor ? figure.value < limit : figure.value > limit);
  const low = figure.low == null ? "?" : shown(name, figure.low), high = figure.high == null ? "?" : shown(name, figure.high);
  return make("td", over ? { class: "over" } : {}, shown(name, figure.value), make("small", {}, `${low} – ${high}`));
}
function head(...names) {
  return make("thead", {}, make("tr", {}, ...names.map(([text, kind]) => make("th", kind ? { class: kind, scope: "col" } : { scope: "col" }, text))));
}

function showFigures(all) {
  const order = ["ttft_p50_s", "ttft_p95_s", "tpot_p50_s", "tpot_p95_s", "e2e_p50_s", "e2e_p95_s", "error_rate", "repetitive_rate", "mismatch_rate"];
  const body = make("tbody");
  for (const name of order) {
    const of = arm => all.find(one => one.name === name && one.arm === arm);
    const both = of(null), speculative = of("speculative") ?? both, baseline = of("baseline");
    if (!speculative && !baseline) continue;
    const limit = speculative?.limit ?? null;
    const ends = [speculative, baseline].flatMap(one => one ? [one.value, one.high ?? one.value] : []);
    const largest = isTime(name) ? Math.max(...ends, 1e-9) * 1.05 : Math.min(1, Math.max(...ends, limit ?? 0, 0.01) * 1.2);
    body.append(make("tr", {},
      make("th", { scope: "row" }, label(name)),
      cell(name, baseline, null), cell(name, speculative, limit),
      make("td", {}, limit == null ? "–" : shown(name, limit)),
      make("td", { class: "plot" }, strip([["baseline", baseline], ["speculative", speculative]], limit, largest))));
  }
  const titles = head([""], [say("baseline")], [say("speculative")], [say("limit")], ["", "plot"]);
  put("figures", make("caption", {}, body.children.length ? say("figures_caption") : say("none")), ...(body.children.length ? [titles, body] : []));
}

function showAcceptance(all) {
  const body = make("tbody");
  for (const one of all.filter(figure => figure.name === "acceptance_rate")) {
    body.append(make("tr", {},
      make("th", { scope: "row" }, one.category ?? say("whole")),
      cell(one.name, one, one.limit),
      make("td", {}, one.limit == null ? "–" : shown(one.name, one.limit)),
      make("td", {}, String(one.samples)),
      make("td", { class: "plot" }, strip([["speculative", one]], one.limit, 1))));
  }
  const titles = head([say("category")], [say("speculative")], [say("limit")], [say("requests")], ["", "plot"]);
  put("acceptance", make("caption", {}, body.children.length ? say("acceptance_caption") : say("none")), ...(body.children.length ? [titles, body] : []));
}

function showNear(all) {
  const checks = all.filter(one => one.name.startsWith("evidence_") && one.value != null).sort((a, b) => b.value - a.value).slice(0, 12);
  put("near", make("li", { class: "none" }, checks.length ? say("near_note") : say("none")), ...checks.map(one => {
    const name = (one.category ? say("category_of", { category: one.category }) : "") + rule(one.name.slice("evidence_".length));
    const bar = make("i", one.value >= 1 ? { class: "over" } : one.value >= 0.5 ? { class: "high" } : {});
    bar.style.width = `${Math.min(100, 100 * one.value).toFixed(0)}%`;
    return make("li", {}, make("span", {}, percent(Math.min(one.value, 1), 0)), name, make("div", { class: "bar" }, bar));
  }));
}

function reasonText(reason) {
  const seen = reason.evidence ?? {}, acceptance = seen.acceptance_rate?.toFixed(2) ?? "–";
  let text = reason.text;
  if (language !== "en") {
    const key = `said_${reason.rule}`;
    text = WORDS[language][key]
      ? say(key, { acceptance, floor: (1 - seen.allowed).toFixed(2) })
      : say("said_share", { rule: rule(reason.rule), share: percent(seen.share), samples: seen.samples ?? "–", allowed: percent(seen.allowed) });
    if (reason.category) text = say("category_of", { category: reason.category }) + text;
  }
  return text + (seen.began_s ? say("since", { time: clock(seen.began_s) }) : "");
}

function showGuard(guard) {
  $("state").className = `state ${guard.state}`;
  if ($("state").textContent !== say(guard.state)) $("state").textContent = say(guard.state);
  put("verdict", say(`says_${guard.state}`, { time: clock(guard.since_s), probe: clock(guard.probe_at_s), share: percent(guard.probe_share, 0) }));
  put("reasons", ...guard.reasons.map(reason => make("li", {}, reasonText(reason))));
}

function showTraffic() {
  const { share, settings, arms, load, ramp } = state;
  $("shares").firstElementChild.style.width = `${100 * share}%`;
  $("shares").setAttribute("aria-label", `${say("speculative")} ${percent(share)}, ${say("baseline")} ${percent(1 - share)}`);
  put("legend", ...[["speculative", share], ["baseline", 1 - share]].map(([arm, part]) => {
    const one = arms[arm], lives = one.up ? say("up") : say("down");
    return make("li", {}, make("span", { class: `key ${arm}` }), `${say(arm)} `, make("b", {}, percent(part)), ` · ${lives} · ${say("in_flight", { count: one.in_flight })}`);
  }));
  const facts = [[say("policy"), settings.policy.mode]];
  if (state.closed_by.length) facts.push([say("closed_by"), state.closed_by.join(", ")]);
  if (settings.paused) facts.push([say("paused"), settings.who]);
  if (settings.policy.mode === "ramp") facts.push([say("ramp"), say("step", { step: ramp.step + 1, of: ramp.steps.length, held: held(ramp.held_s) })]);
  facts.push([say("load"), say("rate", { rate: load.rps.toFixed(1), count: load.in_flight })]);
  const blocked = Object.entries(state.guard.blocked_categories ?? {});
  if (blocked.length) facts.push([say("blocked"), blocked.map(([category, probe]) => probe > 0 ? say("probed", { category }) : category).join(", ")]);
  facts.push([say("who"), say("by", settings)]);
  put("facts", ...facts.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]));
  $("alarms").hidden = !state.alarms.length;
  put("alarms", ...state.alarms.map(alarm => make("p", {}, alarm)));
}

function showEvents() {
  put("events", ...(events.length ? events.slice(0, EVENTS_SHOWN).map(event => make("li", {},
    make("div", {}, make("b", {}, event.what), event.why),
    make("div", { class: "meta" }, `${clock(event.at_s)} · ${event.who}`),
    Object.keys(event.evidence ?? {}).length ? make("details", {}, make("summary", {}, say("evidence")), make("pre", { tabindex: "0" }, JSON.stringify(event.evidence, null, 1))) : null))
    : [make("li", { class: "none" }, say("none"))]));
}

function show() {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : "en";
  for (const place of document.querySelectorAll("[data-text]")) place.textContent = say(place.dataset.text);
  document.title = state ? `${say(state.guard.state)} · ${percent(state.share, 0)} · ${say("title")}` : say("title");
  $("language").textContent = say("language");
  $("language").lang = language === "zh" ? "en" : "zh-Hans";
  if (!state) return;
  showTraffic();
  showGuard(state.guard);
  showFigures(state.guard.figures);
  showAcceptance(state.guard.figures);
  showNear(state.guard.figures);
}

async function ask(path) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${sessionStorage.getItem(TOKEN)}` }, cache: "no-store" });
  if (answer.status === 401 || answer.status === 429) throw Object.assign(new Error("refused"), { refused: answer.status });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

function atTheDoor(why = "") {
  sessionStorage.removeItem(TOKEN);
  state = null;
  $("door").hidden = false;
  $("room").hidden = true;
  $("state").textContent = $("fresh").textContent = "";
  $("wrong").textContent = why;
  show();
  $("token").focus();
}

async function look() {
  clearTimeout(timer);
  if (!sessionStorage.getItem(TOKEN)) return atTheDoor();
  try {
    state = await ask("/admin/state");
    const fresh = await ask(`/admin/events?after=${lastEvent}&most=1000`);
    heardAt = Date.now() / 1000;
    if (fresh.length) {
      lastEvent = Math.max(...fresh.map(event => event.id));
      events = [...events, ...fresh].sort((a, b) => b.id - a.id).slice(0, 500);
    }
    $("door").hidden = true;
    $("room").hidden = false;
    $("fresh").textContent = say("as_of", { time: clock(state.at_s) });
    show();
    if (fresh.length || !$("events").children.length) showEvents();
  } catch (error) {
    if (error.refused) return atTheDoor(say(error.refused === 429 ? "many" : "wrong"));
    $("fresh").textContent = say("lost", { time: clock(heardAt) });
  }
  // A page that nobody looks at asks nothing.
  if (!document.hidden) timer = setTimeout(look, EVERY_MS);
}

$("door").addEventListener("submit", event => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, $("token").value.trim());
  $("token").value = "";
  look();
});
$("language").addEventListener("click", () => {
  language = language === "zh" ? "en" : "zh";
  localStorage.setItem(LANGUAGE, language);
  show();
  if (state) { showEvents(); $("fresh").textContent = say("as_of", { time: clock(state.at_s) }); }
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
show();
look();
