// Draws the panels of the page with Observable Plot. Every text comes from the embedded data as
// text, never as markup. Colours are CSS variables, so that light, dark and print need no redrawing.
"use strict";
const charts = (() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const SYMBOLS = ["circle", "square", "triangle", "diamond", "star", "hexagon", "wye", "cross"];
  const say = (name, values = {}) =>
    data.words[name].replace(/\{(\w+)\}/g, (_, key) => values[key] ?? "");
  const colour = (slot) => (slot < 0 ? "var(--c-1)" : `var(--c${slot % 8})`);
  const symbol = (slot) => (slot < 0 ? "circle" : SYMBOLS[slot % SYMBOLS.length]);
  const times = (value) => `${d3.format(value < 10 ? ".2f" : ".3r")(value)}x`;
  const short = d3.format(".3~s");
  const tell = (m) => {
    if (!m || m[0] == null) return "–";
    const span = m[1] == null || m[2] == null ? "" : ` [${m[1].toFixed(2)}, ${m[2].toFixed(2)}]`;
    return `${times(m[0])}${span} ${(data.verdicts[m[3]] ?? ["", m[3]]).join(" ")}`;
  };

  const base = (width, height, more) => ({
    width, height, marginLeft: 46, marginRight: 14, marginTop: 14, marginBottom: 38,
    style: { background: "transparent", color: "var(--soft)", fontFamily: "inherit", overflow: "visible" },
    ...more,
  });
  const scales = (panel) => ({
    color: { type: "ordinal", domain: panel.series.map((s) => s[0]), range: panel.series.map((s) => colour(s[1])) },
    symbol: { domain: panel.series.map((s) => s[0]), range: panel.series.map((s) => symbol(s[1])) },
  });
  const tip = (points, channels, text) =>
    Plot.tip(points, Plot.pointer({
      ...channels, title: text, fill: "var(--raised)", stroke: "var(--line)", fontSize: 12, lineWidth: 24,
    }));
  const axisX = (label, more = {}) => Plot.axisX({ label, labelArrow: "none", labelAnchor: "center", labelOffset: 34, tickSize: 0, tickPadding: 6, ...more });
  const axisY = (label, more = {}) => Plot.axisY({ label, labelArrow: "none", tickSize: 0, ...more });

  // Ticks of a logarithmic axis of ratios that a person would choose.
  function ratioTicks([low, high]) {
    if (high / low < 1.8) return d3.ticks(low, high, 5);
    const good = high / low < 4
      ? [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4]
      : [0.1, 0.2, 0.33, 0.5, 0.7, 1, 1.4, 2, 3, 4, 6, 8, 12];
    return good.filter((t) => t >= low && t <= high);
  }
  // All panels of a figure share their axis, so that they can be compared at a glance. An interval
  // that reaches far beyond every estimate is cut, and the cut is marked.
  function ratioDomain(panels, metric) {
    const all = panels.flatMap((p) => p.points.map((d) => d.m[metric])).filter((m) => m && m[0] != null);
    const values = all.map((m) => m[0]);
    const ends = all.flatMap((m) => [m[1] ?? m[0], m[2] ?? m[0]]);
    const low = Math.max(d3.min(ends), d3.min(values) / 1.5, 1e-3);
    const high = Math.min(d3.max(ends), d3.max(values) * 1.5);
    return [Math.min(low, 0.95) * 0.98, Math.max(high, 1.05) * 1.02];
  }

  const draw = {
    speedup(panel, width, { metric, panels }) {
      const domain = ratioDomain(panels, metric);
      const middle = (panel.series.length - 1) / 2;
      const rank = new Map(panel.series.map((s, i) => [s[0], i - middle]));
      const xs = panel.points.map((d) => d.x);
      const wide = d3.max(xs) / d3.min(xs) > 3;
      const spread = wide ? Math.log(d3.max(xs) / d3.min(xs)) : d3.max(xs) - d3.min(xs) || d3.max(xs);
      const step = (spread * 0.085) / Math.max(1, panel.series.length);
      const shift = (d) => (wide ? d.x * Math.exp(step * rank.get(d.deployment)) : d.x + step * rank.get(d.deployment));
      const points = panel.points.filter((d) => d.m[metric] && d.m[metric][0] != null)
        .map((d) => ({ ...d, at: shift(d), v: d.m[metric] }));
      const held = points.filter((d) => d.v[1] != null && d.v[2] != null);
      const cut = held.flatMap((d) => [
        ...(d.v[1] < domain[0] ? [{ ...d, y: domain[0], sign: "↓" }] : []),
        ...(d.v[2] > domain[1] ? [{ ...d, y: domain[1], sign: "↑" }] : []),
      ]);
      const control = panel.control && metric === data.metric ? [panel.control] : [];
      const margin = [1 + panel.margin, 1 / (1 + panel.margin)];
      const pad = wide ? [d3.min(xs) / 1.18, d3.max(xs) * 1.18] : [d3.min(xs) - spread * 0.12, d3.max(xs) + spread * 0.12];
      return Plot.plot(base(width, 250, {
        x: { type: wide ? "log" : "linear", domain: pad }, y: { type: "log", domain }, ...scales(panel),
        marks: [
          Plot.rect(control, { y1: (d) => d[0], y2: (d) => d[1], fill: "var(--band)", clip: true }),
          Plot.gridY(ratioTicks(domain)),
          Plot.ruleY([1], { stroke: "var(--ink)", strokeWidth: 1.2 }),
          Plot.ruleY(margin.filter((m) => m > domain[0] && m < domain[1]), { stroke: "var(--soft)", strokeDasharray: "2 3" }),
          axisX(panel.x, { ticks: [...new Set(xs)], tickFormat: (t) => short(t) }),
          axisY(null, { ticks: ratioTicks(domain), tickFormat: (t) => `${+t.toFixed(2)}x` }),
          Plot.line(points, { x: "at", y: (d) => d.v[0], z: "deployment", stroke: "deployment", strokeOpacity: 0.55, sort: "x" }),
          Plot.ruleX(held, { x: "at", y1: (d) => Math.max(d.v[1], domain[0]), y2: (d) => Math.min(d.v[2], domain[1]), stroke: "deployment", strokeWidth: 1.6 }),
          Plot.text(cut, { x: "at", y: "y", text: "sign", fill: "deployment", fontSize: 13 }),
          Plot.dot(points.filter((d) => d.v[3] !== "cannot_tell"), { x: "at", y: (d) => d.v[0], fill: "deployment", stroke: "var(--paper)", symbol: "deployment", r: 5, href: (d) => `#t-${d.id}`, title: (d) => `${d.label}: ${tell(d.v)}` }),
          Plot.dot(points.filter((d) => d.v[3] === "cannot_tell"), { x: "at", y: (d) => d.v[0], fill: "var(--paper)", stroke: "deployment", strokeWidth: 1.8, symbol: "deployment", r: 4.5, href: (d) => `#t-${d.id}`, title: (d) => `${d.label}: ${tell(d.v)}` }),
          tip(points, { x: "at", y: (d) => d.v[0] }, (d) => `${d.label}\n${tell(d.v)}`),
        ],
      }));
    },

    heat(panel, width, { metric, panels }) {
      const all = panels.flatMap((p) => p.points.map((d) => d.m[metric])).filter((m) => m && m[0] != null);
      const most = Math.max(0.1, d3.max(all, (m) => Math.abs(Math.log(m[0]))));
      const shade = (m) => {
        const part = Math.log(m[0]) / most;
        const strength = Math.round(8 + 40 * Math.min(1, Math.abs(part)));
        return `color-mix(in oklab, var(${part >= 0 ? "--d4" : "--d0"}) ${strength}%, var(--d2))`;
      };
      const points = panel.points.filter((d) => d.m[metric] && d.m[metric][0] != null).map((d) => ({ ...d, v: d.m[metric] }));
      const many = panel.xs.length > 7;
      return Plot.plot(base(width, Math.max(110, 34 * panel.ys.length + 56), {
        x: { type: "band", domain: panel.xs, padding: 0.04 }, y: { type: "band", domain: [...panel.ys].reverse(), padding: 0.06 },
        color: { type: "identity" },
        marks: [
          axisX(panel.x, { tickFormat: (t) => short(t) }), axisY(null, { tickFormat: (t) => `K=${t}` }),
          Plot.cell(points, { x: "x", y: "k", fill: (d) => shade(d.v), rx: 2, href: (d) => `#t-${d.id}`, title: (d) => `${d.label}: ${tell(d.v)}` }),
          Plot.text(points, { x: "x", y: "k", text: (d) => `${many ? d.v[0].toFixed(1) : d.v[0].toFixed(2)} ${(data.verdicts[d.v[3]] ?? [""])[0]}`, fill: "var(--ink)", fontSize: 12, pointerEvents: "none" }),
          tip(points, { x: "x", y: "k" }, (d) => `${d.label}\n${tell(d.v)}`),
        ],
      }));
    },

    grid(panel, width) {
      // Shaded by how far a value is from the centre, on its side; without a centre by its size.
      const values = panel.points.map((d) => d.value);
      const centre = panel.centre ?? d3.min(values);
      const most = Math.max(1e-9, d3.max(values, (v) => Math.abs(v - centre)));
      const shade = (v) => {
        const strength = Math.round(8 + 40 * Math.min(1, Math.abs(v - centre) / most));
        const side = panel.centre == null ? "--d3" : v >= centre ? "--d4" : "--d0";
        return `color-mix(in oklab, var(${side}) ${strength}%, var(--d2))`;
      };
      const write = d3.format(panel.format);
      const text = (d) => `${d.label}\n${panel.value}: ${write(d.value)}`;
      return Plot.plot(base(width, Math.max(110, 34 * panel.ys.length + 56), {
        x: { type: "band", domain: panel.xs, padding: 0.04 }, y: { type: "band", domain: [...panel.ys].reverse(), padding: 0.06 },
        color: { type: "identity" },
        marks: [
          axisX(panel.x, { tickFormat: (t) => short(t) }), axisY(null, { tickFormat: (t) => `K=${t}` }),
          Plot.cell(panel.points, { x: "x", y: "k", fill: (d) => shade(d.value), rx: 2, href: (d) => `#t-${d.id}`, title: text }),
          Plot.text(panel.points, { x: "x", y: "k", text: (d) => write(d.value), fill: "var(--ink)", fontSize: 12, pointerEvents: "none" }),
          tip(panel.points, { x: "x", y: "k" }, text),
        ],
      }));
    },

    needed(panel, width, { panels }) {
      const values = panels.flatMap((p) => p.points.flatMap((d) => [d.measured, d.needed]));
      const domain = [Math.min(d3.min(values), 1) * 0.96, d3.max(values) * 1.06];
      const state = (d) => (d.low == null || (d.low <= d.measured && d.measured <= d.high) ? "var(--open)" : d.measured > d.high ? "var(--faster)" : "var(--slower)");
      const rows = panel.points;
      const left = Math.min(width * 0.45, 8 + 6.1 * d3.max(rows, (d) => d.cell.length));
      const text = (d) => `${d.label}\n${panel.columns[1][1]} ${d.measured.toFixed(2)}, ${panel.columns[2][1]} ${d.needed.toFixed(2)}${d.low == null ? "" : ` [${d.low.toFixed(2)}, ${d.high.toFixed(2)}]`}`;
      return Plot.plot(base(width, 24 * rows.length + 56, {
        marginLeft: left, x: { domain }, y: { type: "band", domain: rows.map((d) => d.cell) }, color: { type: "identity" },
        marks: [
          Plot.gridX(), axisX(panel.x, { ticks: Math.max(3, width / 90) }), axisY(null, { lineWidth: left / 11.5, textOverflow: "ellipsis" }),
          Plot.ruleY(rows.filter((d) => d.low != null), { y: "cell", x1: (d) => Math.max(d.low, domain[0]), x2: (d) => Math.min(d.high, domain[1]), stroke: "var(--soft)", strokeWidth: 5, strokeOpacity: 0.3 }),
          Plot.tickX(rows, { y: "cell", x: "needed", stroke: "var(--ink)", strokeWidth: 2, inset: 3 }),
          Plot.dot(rows, { y: "cell", x: "measured", fill: state, r: 5, href: (d) => `#t-${d.id}`, title: text }),
          tip(rows, { y: "cell", x: "measured" }, text),
        ],
      }));
    },

    position(panel, width) {
      const text = (d) => `${d.deployment}\n${panel.x} ${d.position}: ${d3.format(".0%")(d.rate)}`;
      return Plot.plot(base(width, 220, {
        x: { domain: [0.7, d3.max(panel.points, (d) => d.position) + 0.3] }, y: { domain: [0, 1] }, ...scales(panel),
        marks: [
          Plot.gridY({ ticks: 5 }), Plot.ruleY([0]),
          axisX(panel.x, { ticks: d3.range(1, d3.max(panel.points, (d) => d.position) + 1), tickFormat: "d" }),
          axisY(null, { ticks: 5, tickFormat: "%" }),
          Plot.line(panel.points, { x: "position", y: "rate", z: "deployment", stroke: "deployment" }),
          Plot.dot(panel.points, { x: "position", y: "rate", fill: "deployment", stroke: "var(--paper)", symbol: "deployment", r: 4.5, href: (d) => `#t-${d.id}`, title: text }),
          tip(panel.points, { x: "position", y: "rate" }, text),
        ],
      }));
    },

    category(panel, width, { panels }) {
      const rows = [...panel.points].sort((a, b) => b.tokens - a.tokens);
      const left = Math.min(width * 0.42, 8 + 6.6 * d3.max(rows, (d) => d.category.length));
      const text = (d) => `${d.category}: ${d.tokens.toFixed(2)} (${d.requests})`;
      return Plot.plot(base(width, 22 * rows.length + 56, {
        marginLeft: left, marginRight: 40, x: { domain: [0, d3.max(panels.flatMap((p) => p.points), (d) => d.tokens)] }, y: { type: "band", domain: rows.map((d) => d.category), padding: 0.28 },
        marks: [
          axisX(panel.x, { ticks: Math.max(3, width / 90) }), axisY(null, { lineWidth: left / 11.5, textOverflow: "ellipsis" }),
          Plot.barX(rows, { y: "category", x: "tokens", fill: "var(--c0)", href: (d) => `#t-${d.id}`, title: text }),
          Plot.ruleX([1], { stroke: "var(--paper)" }), Plot.ruleX([0], { stroke: "var(--ink)" }),
          Plot.text(rows, { y: "category", x: "tokens", text: (d) => d.tokens.toFixed(2), dx: 6, textAnchor: "start", fill: "var(--ink)" }),
        ],
      }));
    },

    pareto(panel, width) {
      const text = (d) => `${d.label} · ${d.load}\n${panel.x} ${short(d.x)}\n${panel.y} ${short(d.y)}`;
      const xMax = d3.max(panel.points, (d) => d.x) * 1.08;
      const yMax = d3.max(panel.points, (d) => d.y) * 1.08;
      const area = panel.slo != null && panel.slo < xMax ? [panel.slo] : [];
      return Plot.plot(base(width, 260, {
        marginLeft: 52, x: { domain: [0, xMax] }, y: { domain: [0, yMax] }, ...scales(panel),
        marks: [
          Plot.rect(area, { x1: (d) => d, x2: xMax, y1: 0, y2: yMax, fill: "var(--wash-faster)" }),
          Plot.ruleX(area, { stroke: "var(--faster)", strokeDasharray: "4 3" }),
          Plot.text(area, { x: (d) => d, y: yMax, text: () => panel.slo_label, textAnchor: "start", dx: 5, dy: 8, fill: "var(--faster)" }),
          Plot.gridY({ ticks: 5 }), axisX(panel.x, { ticks: Math.max(3, width / 80) }), axisY(panel.y, { ticks: 5, tickFormat: "~s" }),
          Plot.line(panel.points, { x: "x", y: "y", z: "deployment", stroke: "deployment", sort: "order", strokeDasharray: null }),
          Plot.dot(panel.points, { x: "x", y: "y", fill: "deployment", stroke: "var(--paper)", symbol: "deployment", r: 4.5, href: (d) => `#t-${d.id}`, title: text }),
          tip(panel.points, { x: "x", y: "y" }, text),
        ],
      }));
    },

    distribution(panel, width) {
      const box = document.createElement("div");
      for (const name of Object.keys(data.latencies)) {
        const plot = latency(panel.trial, name, width);
        if (plot) box.append(plot);
      }
      return box;
    },

    pairs(panel, width) {
      const { pairs, speedup } = data.trials[panel.trial];
      const points = pairs.filter((p) => p[1] != null).map(([index, ratio, valid]) => ({ index, ratio, valid }));
      const ends = [...points.map((d) => d.ratio), 0.97, 1.03];
      const domain = [d3.min(ends) * 0.98, d3.max(ends) * 1.02];
      const band = speedup[1] == null ? [] : [[Math.max(speedup[1], domain[0]), Math.min(speedup[2], domain[1])]];
      const text = (d) => `${say("pair")} ${d.index}: ${times(d.ratio)}${d.valid ? "" : ` (${say("invalid")})`}`;
      return Plot.plot(base(width, 170, {
        x: { domain: [-0.5, d3.max(points, (d) => d.index) + 0.5] }, y: { type: "log", domain },
        marks: [
          Plot.rect(band, { y1: (d) => d[0], y2: (d) => d[1], fill: "var(--band)" }),
          Plot.ruleY([1], { stroke: "var(--ink)" }),
          Plot.ruleY(speedup[0] == null ? [] : [speedup[0]], { stroke: "var(--c0)", strokeDasharray: "4 3", clip: true }),
          axisX(say("pair"), { ticks: Math.min(8, points.length), tickFormat: (t) => (Number.isInteger(t) ? String(t) : "") }),
          axisY(null, { ticks: ratioTicks(domain), tickFormat: (t) => `${+t.toFixed(2)}x` }),
          Plot.line(points.filter((d) => d.valid), { x: "index", y: "ratio", stroke: "var(--c0)", strokeOpacity: 0.5 }),
          Plot.dot(points.filter((d) => d.valid), { x: "index", y: "ratio", fill: "var(--c0)", r: 4 }),
          Plot.dot(points.filter((d) => !d.valid), { x: "index", y: "ratio", stroke: "var(--failed)", symbol: "times", strokeWidth: 2, r: 5 }),
          tip(points, { x: "index", y: "ratio" }, text),
        ],
      }));
    },

    machine(panel, width) {
      const off = Math.max(0.05, d3.max(panel.points, (d) => Math.abs(d.level - 1)) * 1.15);
      const text = (d) => `${d.cell}\n${d.label}\n${d3.format("+.1%")(d.level - 1)}`;
      return Plot.plot(base(width, 230, {
        x: { domain: [0, d3.max(panel.points, (d) => d.minutes) * 1.02 || 1] }, y: { domain: [1 - off, 1 + off] },
        marks: [
          Plot.gridY({ ticks: 5 }), Plot.ruleY([1], { stroke: "var(--ink)" }),
          axisX(panel.x, { ticks: Math.max(3, width / 90) }), axisY(panel.y, { ticks: 5, tickFormat: (t) => d3.format("+.0%")(t - 1) }),
          Plot.dot(panel.points, { x: "minutes", y: "level", fill: "var(--c-1)", fillOpacity: 0.8, r: 3.6, href: (d) => `#t-${d.id}`, title: text }),
          tip(panel.points, { x: "minutes", y: "level" }, text),
        ],
      }));
    },

    soak(panel, width) {
      const range = ["var(--c-1)", "var(--c0)"];
      const text = (d) => `${d.arm}\n${d.hours.toPrecision(3)} h\n${d3.format(".4~s")(d.value)}`;
      return Plot.plot(base(width, 230, {
        x: { domain: [0, d3.max(panel.points, (d) => d.hours) * 1.02 || 1] }, y: { zero: false, nice: true },
        color: { type: "ordinal", domain: panel.arms, range },
        marks: [
          Plot.gridY({ ticks: 5 }), axisX(panel.x, { ticks: Math.max(3, width / 90) }), axisY(panel.y, { ticks: 5, tickFormat: "~s" }),
          Plot.lineY(panel.points, { x: "hours", y: "value", stroke: "arm", strokeOpacity: 0.45 }),
          Plot.dot(panel.points, { x: "hours", y: "value", fill: "arm", r: 2.2, title: text }),
          tip(panel.points, { x: "hours", y: "value" }, text),
        ],
      }));
    },

    stages(panel, width) {
      const rows = [...new Set(panel.points.map((d) => d.cell))];
      const left = Math.min(width * 0.45, 8 + 6.1 * d3.max(rows, (d) => d.length));
      const text = (d) => `${d.cell} · ${d.stage}: ${d.ms.toPrecision(3)} ms`;
      return Plot.plot(base(width, 26 * rows.length + 56, {
        marginLeft: left, y: { type: "band", domain: rows, padding: 0.25 },
        color: { type: "ordinal", domain: panel.stages, range: ["var(--c1)", "var(--c0)", "var(--c2)", "var(--c-1)"] },
        marks: [
          axisX(panel.x, { ticks: Math.max(3, width / 90) }), axisY(null, { lineWidth: left / 11.5, textOverflow: "ellipsis" }),
          Plot.barX(panel.points, Plot.stackX({ order: panel.stages, y: "cell", x: "ms", fill: "stage", z: "stage", href: (d) => `#t-${d.id}`, title: text, insetLeft: 1 })),
        ],
      }));
    },
  };

  // One latency of one trial: the share of requests (across) that were at most so slow, both arms.
  function latency(trial, name, width) {
    const both = (data.trials[trial] ?? {}).distribution?.[name];
    if (!both) return null;
    const arms = [say("baseline"), say("speculative")];
    const points = both.flatMap((quantiles, arm) => (quantiles ?? []).map((ms, i) => ({ arm: arms[arm], ms, level: data.levels[i] })));
    const text = (d) => `${d.arm}: ${d3.format(".0%")(d.level)} ≤ ${d.ms.toPrecision(3)} ms`;
    const marked = points.filter((d) => d.level === 0.5 || d.level === 0.95);
    const bound = data.slo[name] == null ? [] : [data.slo[name] * 1e3];
    return Plot.plot(base(width, 150, {
      ariaLabel: `${data.latencies[name]} ms`, marginBottom: 36, y: { domain: [0, 1] },
      color: { type: "ordinal", domain: arms, range: ["var(--c-1)", "var(--c0)"] },
      marks: [
        Plot.gridY({ ticks: [0, 0.5, 0.95] }), Plot.ruleX(bound, { stroke: "var(--faster)", strokeDasharray: "4 3" }),
        axisX(`${data.latencies[name]}, ms`, { ticks: Math.max(3, width / 80), tickFormat: ",~r" }), axisY(null, { ticks: [0, 0.5, 0.95], tickFormat: "%" }),
        Plot.line(points, { x: "ms", y: "level", z: "arm", stroke: "arm", strokeWidth: 1.8 }),
        Plot.dot(marked, { x: "ms", y: "level", fill: "arm", r: 3, symbol: "arm" }),
        tip(points, { x: "ms", y: "level" }, text),
      ],
    }));
  }

  const LEGENDS = {
    distribution: () => [[say("baseline"), "var(--c-1)", "circle"], [say("speculative"), "var(--c0)", "cross"]],
    soak: (panel) => panel.arms.map((name, i) => [name, ["var(--c-1)", "var(--c0)"][i], "circle"]),
    stages: (panel) => panel.stages.map((name, i) => [name, ["var(--c1)", "var(--c0)", "var(--c2)", "var(--c-1)"][i], "square"]),
  };
  const SHAPES = { circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, diamond: d3.symbolDiamond, star: d3.symbolStar, hexagon: d3.symbolCircle, wye: d3.symbolWye, cross: d3.symbolCross };

  function legend(panel) {
    const entries = LEGENDS[panel.kind]?.(panel) ?? (panel.series ?? []).map(([name, slot]) => [name, colour(slot), symbol(slot)]);
    if (entries.length < 2) return null;
    const list = document.createElement("ul");
    list.className = "legend";
    for (const [name, fill, shape] of entries) {
      const item = document.createElement("li");
      const svg = d3.create("svg").attr("viewBox", "-6 -6 12 12").attr("aria-hidden", "true");
      svg.append("path").attr("d", d3.symbol(SHAPES[shape], 52)()).attr("fill", fill);
      item.append(svg.node(), name);
      list.append(item);
    }
    return list;
  }

  // Links get a name; what Plot calls its groups is no name that a screen reader may use.
  function finish(node, summary) {
    for (const svg of node.matches("svg") ? [node] : node.querySelectorAll("svg")) {
      for (const group of svg.querySelectorAll("g[aria-label], g[aria-description]")) {
        group.dataset.mark = group.getAttribute("aria-label") ?? "";
        group.removeAttribute("aria-label");
        group.removeAttribute("aria-description");
      }
      for (const link of svg.querySelectorAll("a")) {
        const title = link.querySelector("title");
        if (title) { link.setAttribute("aria-label", title.textContent); title.remove(); }
      }
      svg.setAttribute("role", "group");
      svg.setAttribute("aria-label", svg.getAttribute("aria-label") ?? summary);
    }
    return node;
  }

  function table(panel, metric) {
    const element = document.createElement("table");
    element.className = "compact";
    const head = element.createTHead().insertRow();
    for (const [, heading] of panel.columns) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = heading;
      head.append(cell);
    }
    const body = element.createTBody();
    for (const point of panel.points) {
      const row = body.insertRow();
      panel.columns.forEach(([name], i) => {
        const cell = row.insertCell();
        const value = name === "m" ? tell(point.m[metric]) : point[name];
        const shown = typeof value === "number" ? String(+value.toPrecision(4)) : value ?? "–";
        if (i === 0 && point.id) {
          const link = document.createElement("a");
          link.href = `#t-${point.id}`;
          link.textContent = shown;
          cell.append(link);
        } else cell.textContent = shown;
      });
    }
    return element;
  }

  function panelElement(panel, context) {
    const figure = document.createElement("figure");
    figure.className = "panel";
    const caption = document.createElement("figcaption");
    caption.textContent = panel.title;
    const key = legend(panel);
    const plot = document.createElement("div");
    plot.className = "plot";
    figure.append(caption, ...(key ? [key] : []), plot);
    if (panel.columns.length) {
      const details = document.createElement("details");
      const summary = document.createElement("summary");
      summary.textContent = say("as_table");
      const box = document.createElement("div");
      box.className = "scroll";
      box.tabIndex = 0;
      box.setAttribute("role", "region");
      box.setAttribute("aria-label", panel.summary);
      details.append(summary, box);
      details.addEventListener("toggle", () => box.replaceChildren(table(panel, context.metric)));
      figure.append(details);
    }
    figure.redraw = () => {
      const width = plot.clientWidth;
      if (width) plot.replaceChildren(finish(draw[panel.kind](panel, width, context), panel.summary));
      figure.width = width;
    };
    return figure;
  }

  return { data, say, panelElement, latency, finish, draw };
})();
