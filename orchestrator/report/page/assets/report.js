// What the page does: draws when a plot comes into view, sorts, filters, downloads, opens details.
"use strict";
(() => {
  const { data, say } = charts;
  const FIRST = 8; // panels of a figure that are drawn before one asks for all
  const context = { metric: data.metric };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { seen.unobserve(entry.target); entry.target.redraw(); }
    }
  }, { rootMargin: "600px" });
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.width && Math.abs(target.width - target.querySelector(".plot").clientWidth) > 4) target.redraw();
    }
  });

  function fill(holder) {
    const panels = data.figures[holder.dataset.figure];
    const shown = holder.dataset.all ? panels : panels.slice(0, FIRST);
    if (panels.length === 1 && panels[0].kind === "machine") holder.classList.add("wide");
    holder.replaceChildren();
    for (const panel of shown) {
      const element = charts.panelElement(panel, { ...context, panels });
      holder.append(element);
      seen.observe(element);
      sized.observe(element);
    }
    if (shown.length < panels.length) {
      const more = document.createElement("button");
      more.type = "button";
      more.className = "show-all";
      more.textContent = say("show_all", { count: panels.length });
      more.addEventListener("click", () => { holder.dataset.all = "yes"; fill(holder); });
      holder.append(more);
    }
  }
  const holders = [...document.querySelectorAll(".panels")];
  holders.forEach(fill);

  const metric = document.getElementById("metric");
  if (metric) {
    metric.value = data.metric;
    metric.addEventListener("change", () => {
      context.metric = metric.value;
      holders.filter((h) => "switchable" in h.dataset).forEach(fill);
    });
  }

  function drawTrial(details) {
    const holder = details.querySelector(".trial-plots");
    if (!holder || holder.childElementCount || !details.open) return;
    const id = holder.dataset.trial;
    const add = (kind, title) => {
      const element = charts.panelElement({ kind, title, summary: title, columns: [], points: [], trial: id }, context);
      holder.append(element);
      element.redraw();
    };
    if (data.trials[id].pairs.some((p) => p[1] != null)) add("pairs", say("ratio_of_pairs"));
    for (const name of Object.keys(data.latencies)) {
      if (!data.trials[id].distribution[name]) continue;
      const element = document.createElement("figure");
      element.className = "panel";
      const caption = document.createElement("figcaption");
      caption.textContent = data.latencies[name];
      const plot = document.createElement("div");
      plot.className = "plot";
      element.append(caption, plot);
      holder.append(element);
      plot.append(charts.finish(charts.latency(id, name, plot.clientWidth), caption.textContent));
    }
  }
  for (const details of document.querySelectorAll("details.trial")) {
    details.addEventListener("toggle", () => drawTrial(details));
  }

  function follow() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
    target.querySelector("summary")?.focus({ preventScroll: true });
  }
  addEventListener("hashchange", follow);
  follow();

  // The table of cells.
  const table = document.getElementById("cell-table");
  const value = (row, column, kind) => {
    const cell = row.cells[column];
    const text = cell.dataset.sort ?? cell.textContent.trim();
    if (kind !== "number") return text;
    const number = parseFloat(text);
    return Number.isNaN(number) ? null : number;
  };
  table.tHead.addEventListener("click", (event) => {
    const heading = event.target.closest("th[data-kind]");
    if (!heading) return;
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const column = heading.cellIndex;
    const rows = [...table.tBodies[0].rows];
    const keyed = rows.map((row) => [value(row, column, heading.dataset.kind), row]);
    keyed.sort(([a], [b]) => {
      if (a === null || b === null) return (a === null) - (b === null); // what is undefined comes last
      const order = typeof a === "number" ? a - b : a.localeCompare(b);
      return down ? -order : order;
    });
    table.tBodies[0].append(...keyed.map(([, row]) => row));
  });
  const filters = ["filter", "filter-verdict", "filter-workload"].map((id) => document.getElementById(id));
  function filter() {
    const [text, verdict, workload] = filters.map((f) => f.value.trim().toLowerCase());
    const wanted = text.split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of table.tBodies[0].rows) {
      const content = row.textContent.toLowerCase();
      row.hidden = !(
        (!verdict || row.dataset.verdict === verdict) &&
        (!workload || row.dataset.workload.toLowerCase() === workload) &&
        wanted.every((word) => content.includes(word))
      );
      count += !row.hidden;
    }
    document.getElementById("shown").textContent = say("shown", { count, all: table.tBodies[0].rows.length });
    document.getElementById("none-shown").hidden = count > 0;
  }
  filters.forEach((f) => f.addEventListener("input", filter));
  document.querySelector(".filters").addEventListener("submit", (event) => event.preventDefault());
  filter();

  // Downloads. A spreadsheet must not take a text from outside for a formula.
  const field = (value) => {
    let text = value === null ? "" : String(value);
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const csv = ({ columns, rows }) => [columns, ...rows].map((row) => row.map(field).join(",")).join("\r\n") + "\r\n";
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => {
      const what = button.dataset.download;
      const whole = { name: data.name, cells: data.cells, pairs: data.pairs, trials: data.trials, levels: data.levels };
      const text = what === "all" ? JSON.stringify(whole) : csv(data[what]);
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: what === "all" ? "application/json" : "text/csv;charset=utf-8" }));
      link.download = `${data.name}-${what}.${button.dataset.format}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
  }

  // Light, dark, print.
  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const pressed = () => theme.setAttribute("aria-pressed", String(dark()));
  theme.addEventListener("click", () => { document.documentElement.dataset.theme = dark() ? "light" : "dark"; pressed(); });
  pressed();
  document.getElementById("print").addEventListener("click", () => print());
  let themeBefore;
  addEventListener("beforeprint", () => {
    themeBefore = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    for (const panel of document.querySelectorAll(".panels .panel")) { seen.unobserve(panel); if (!panel.width) panel.redraw(); }
  });
  addEventListener("afterprint", () => {
    if (themeBefore) document.documentElement.dataset.theme = themeBefore; else delete document.documentElement.dataset.theme;
  });

  // Where one is.
  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const here = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) links.get(target.id)?.classList.toggle("here", isIntersecting);
  }, { rootMargin: "-45% 0px -50% 0px" });
  document.querySelectorAll("main > section").forEach((section) => here.observe(section));
})();
