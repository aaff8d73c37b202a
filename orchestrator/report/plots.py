"""The report's plots as pictures, for places that show no script: MLflow, a wiki, an e-mail.

Drawn by matplotlib from the page's own panels, in English: a picture carries the fonts of the
machine that draws it, and few have Chinese ones. One file a figure, with at most `SHOWN` panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.report.page.embedded import LATENCIES, levels, trial_data
from orchestrator.report.page.page import sections
from orchestrator.report.page.panel import Figure, Panel
from orchestrator.report.row import ENGLISH
from orchestrator.report.tracked_note import PLOTS
from orchestrator.store.atomic import write_atomically

SHOWN = 6
_COLOURS = ("#0067a3", "#c05200", "#00795a", "#a03f7c", "#8a6d00", "#2f7fb8", "#7a4a1e", "#4b4ba8")
_BASELINE = "#6b6862"
_STAGES = (_COLOURS[1], _COLOURS[0], _COLOURS[2], _BASELINE)
_MARKS = "osD^vPX*"
_TWO = 0.5, 2.0

Plain = Mapping[str, Any]


@dataclass(frozen=True)
class Drawn:
    """What panels refer to."""

    trials: Plain
    """By trial id: distributions and pairs (`page.embedded.trial_data`)."""
    metric: str
    """The speedup that is shown: the headline."""


Draw = Callable[[Any, Panel, Drawn], None]


def write_plots(result: SweepResult, folder: Path) -> list[Path]:
    """Write `plots/*.png` into the sweep's folder; only figures that have something to show.

    Raises: StoreError.
    """
    if not result.every:
        return []
    drawn = Drawn(trial_data(result), result.every[0].trial.protocol.metric)
    written = []
    for figure in figures_of(result):
        path = folder / PLOTS / f"{figure.id}.png"
        path.parent.mkdir(exist_ok=True)
        _write(figure, drawn, f"{result.name}: {figure.heading}", path, result.simulated)
        written.append(path)
    return written


def figures_of(result: SweepResult) -> Iterator[Figure]:
    for section in sections(result, ENGLISH):
        yield from (figure for figure in section.figures if figure.panels)


def _write(figure: Figure, drawn: Drawn, title: str, path: Path, simulated: bool) -> None:
    # Not at the top: whoever only makes the page need not wait for it.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    panels = figure.panels[:SHOWN]
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    canvas = Canvas(figsize=(4.4 * columns, 3.2 * rows + 0.5), layout="constrained")
    FigureCanvasAgg(canvas)
    for index, panel in enumerate(panels):
        axes = canvas.add_subplot(rows, columns, index + 1)
        axes.set_title(panel.title, fontsize=9, loc="left")
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        _DRAW[panel.kind](axes, panel, drawn)
    left_out = len(figure.panels) - len(panels)
    more = f" (and {left_out} more in the report)" if left_out else ""
    mark = " - SIMULATED, not measured" if simulated else ""
    canvas.suptitle(title + more + mark, fontsize=11)
    write_atomically(path, lambda file: canvas.savefig(file, format="png", dpi=110))


def _series(panel: Panel) -> Iterator[tuple[str, str, str, list[Plain]]]:
    """(name, colour, mark, points) of every deployment of a panel."""
    for name, slot in panel.options["series"]:
        colour = _BASELINE if slot < 0 else _COLOURS[slot % len(_COLOURS)]
        mark = _MARKS[(slot + 1) % len(_MARKS)]
        yield name, colour, mark, [p for p in panel.points if p.get("deployment") == name]


def _speedup(axes: Any, panel: Panel, drawn: Drawn) -> None:
    if panel.options["control"]:
        axes.axhspan(*panel.options["control"], color="#8a857a", alpha=0.2, lw=0)
    axes.axhline(1, color="black", lw=1)
    margin = 1 + panel.options["margin"]
    for line in (margin, 1 / margin):
        axes.axhline(line, color="black", lw=0.7, ls=":")
    for index, (name, colour, mark, points) in enumerate(_series(panel)):
        told = [(p, p["m"][drawn.metric]) for p in points]
        found = sorted((p["x"], m) for p, m in told if m[0] is not None)
        if not found:
            continue
        # A little aside, so that intervals at one load do not cover each other.
        at = [x * 1.03**index for x, _ in found]
        axes.plot(at, [m[0] for _, m in found], color=colour, lw=0.8, alpha=0.6)
        for x, (value, low, high, verdict) in zip(at, (m for _, m in found), strict=True):
            if low is not None and high is not None:
                axes.plot([x, x], [low, high], color=colour, lw=1.4)
            hollow = verdict in ("cannot_tell", "failed")
            axes.plot(x, value, mark, color=colour, mfc="white" if hollow else colour, ms=5)
        axes.plot([], [], mark, color=colour, label=name)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, _TWO[0]), max(high, _TWO[1]))
    ticks = sorted({p["x"] for p in panel.points})
    axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}x")
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _heat(axes: Any, panel: Panel, drawn: Drawn) -> None:
    signs = {"faster": "▲", "slower": "▼", "no_practical_difference": "=", "cannot_tell": "?"}
    cells = []
    for p in panel.points:
        value, _, _, verdict = p["m"][drawn.metric]
        if value is not None:
            text = f"{value:.2f} {signs.get(verdict, '-')}"
            cells.append((p["x"], p["k"], math.log2(value), text))
    _map(axes, panel, cells, reach=1.2)


def _grid(axes: Any, panel: Panel, _: Drawn) -> None:
    values = [p["value"] for p in panel.points]
    centre = panel.options["centre"]
    centre = min(values) if centre is None else centre
    cells = [
        (p["x"], p["k"], p["value"] - centre, format(p["value"], panel.options["format"]))
        for p in panel.points
    ]
    _map(axes, panel, cells, reach=max(1e-9, *(abs(cell[2]) for cell in cells)))


def _map(
    axes: Any, panel: Panel, cells: Sequence[tuple[float, int, float, str]], *, reach: float
) -> None:
    """(x, K, value, text) of every cell; 0 is the middle of the colours, `reach` their ends."""
    xs, ys = panel.options["xs"], panel.options["ys"]
    grid = [[math.nan] * len(xs) for _ in ys]
    for x, k, value, text in cells:
        row, column = ys.index(k), xs.index(x)
        grid[row][column] = value
        axes.text(column, row, text, ha="center", va="center", fontsize=8)
    axes.imshow(grid, cmap=_heat_colours(), vmin=-reach, vmax=reach, aspect="auto", origin="lower",
                alpha=0.75)  # fmt: skip
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_yticks(range(len(ys)), [f"K={k}" for k in ys])
    axes.set_xlabel(panel.options["x"], fontsize=8)


def _heat_colours() -> Any:
    """The page's own: orange is slower, blue is faster."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list(
        "speedup", ["#b3470a", "#e7b58f", "#efece4", "#92bfdc", "#0067a3"]
    )


def _needed(axes: Any, panel: Panel, _: Drawn) -> None:
    for row, p in enumerate(reversed(panel.points)):
        if p["low"] is not None and p["high"] is not None:
            axes.plot([p["low"], p["high"]], [row, row], color="#8a857a", lw=4, alpha=0.5)
        axes.plot(p["needed"], row, "|", color="black", ms=12)
        axes.plot(p["measured"], row, "o", color=_COLOURS[0], ms=5)
    axes.set_yticks(range(len(panel.points)), [p["cell"] for p in reversed(panel.points)],
                    fontsize=7)  # fmt: skip
    axes.set_xlabel(f"{panel.options['x']} (dot), needed (tick)", fontsize=8)


def _position(axes: Any, panel: Panel, _: Drawn) -> None:
    for name, colour, mark, points in _series(panel):
        ordered = sorted((p["position"], p["rate"]) for p in points)
        axes.plot(*zip(*ordered, strict=True), marker=mark, color=colour, lw=1, ms=4, label=name)
    axes.set_ylim(0, 1)
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.set_ylabel(panel.options["y"], fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _category(axes: Any, panel: Panel, _: Drawn) -> None:
    ordered = sorted(panel.points, key=lambda p: float(p["tokens"]))
    axes.barh([p["category"] for p in ordered], [p["tokens"] for p in ordered], color=_COLOURS[0])
    axes.axvline(1, color="black", lw=0.8)
    axes.set_xlabel(panel.options["x"], fontsize=8)


def _pareto(axes: Any, panel: Panel, _: Drawn) -> None:
    slo = panel.options["slo"]
    for name, colour, mark, points in _series(panel):
        ordered = sorted(points, key=lambda p: float(p["order"]))
        axes.plot([p["x"] for p in ordered], [p["y"] for p in ordered], marker=mark, color=colour,
                  lw=1, ms=5, label=name)  # fmt: skip
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    if slo is not None:
        axes.axvspan(slo, max(axes.get_xlim()[1], slo), color=_COLOURS[2], alpha=0.1, lw=0)
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.set_ylabel(panel.options["y"], fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _distribution(axes: Any, panel: Panel, drawn: Drawn) -> None:
    """End-to-end latency; where none was measured the first that was."""
    both = drawn.trials[panel.options["trial"]]["distribution"]
    name = next((n for n in reversed(LATENCIES) if n in both), None)
    if name is None:
        return
    for values, colour, arm in zip(both[name], (_BASELINE, _COLOURS[0]), ("baseline",
                                   "speculative"), strict=True):  # fmt: skip
        if values is not None:
            axes.plot(values, levels(), color=colour, lw=1.4, label=arm)
    axes.set_ylim(0, 1)
    axes.set_xlabel(f"{ENGLISH('figure.' + name)}, ms", fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _pairs(axes: Any, panel: Panel, drawn: Drawn) -> None:
    found = drawn.trials[panel.options["trial"]]
    _, low, high = found["speedup"]
    if low is not None and high is not None:
        axes.axhspan(low, high, color="#8a857a", alpha=0.2, lw=0)
    axes.axhline(1, color="black", lw=1)
    counted = [(index, ratio) for index, ratio, valid in found["pairs"] if ratio and valid]
    if counted:
        axes.plot(*zip(*counted, strict=True), "o-", color=_COLOURS[0], lw=0.8, ms=4)
    left = [(index, ratio) for index, ratio, valid in found["pairs"] if ratio and not valid]
    if left:
        axes.plot(*zip(*left, strict=True), "x", color="#9c1f4a", ms=6)
    axes.set_xlabel("pair", fontsize=8)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}x")


def _machine(axes: Any, panel: Panel, _: Drawn) -> None:
    axes.axhline(1, color="black", lw=1)
    axes.plot([p["minutes"] for p in panel.points], [p["level"] for p in panel.points], "o",
              color=_BASELINE, ms=4)  # fmt: skip
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.set_ylabel(panel.options["y"], fontsize=8)


def _soak(axes: Any, panel: Panel, _: Drawn) -> None:
    for arm, colour in zip(panel.options["arms"], (_BASELINE, _COLOURS[0]), strict=True):
        points = [(p["hours"], p["value"]) for p in panel.points if p["arm"] == arm]
        if points:
            axes.plot(*zip(*points, strict=True), "o-", color=colour, lw=0.8, ms=2, label=arm)
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.set_ylabel(panel.options["y"], fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def _stages(axes: Any, panel: Panel, _: Drawn) -> None:
    cells = list(dict.fromkeys(p["cell"] for p in reversed(panel.points)))
    left = dict.fromkeys(cells, 0.0)
    for index, stage in enumerate(panel.options["stages"]):
        found = {p["cell"]: p["ms"] for p in panel.points if p["stage"] == stage}
        widths = [found.get(cell, 0.0) for cell in cells]
        axes.barh(cells, widths, left=list(left.values()), label=stage, color=_STAGES[index])
        left = {cell: left[cell] + width for cell, width in zip(cells, widths, strict=True)}
    axes.tick_params(axis="y", labelsize=6)
    axes.set_xlabel(panel.options["x"], fontsize=8)
    axes.legend(fontsize=7, frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.4, -0.2))


_DRAW: Mapping[str, Draw] = {
    "speedup": _speedup,
    "heat": _heat,
    "grid": _grid,
    "needed": _needed,
    "position": _position,
    "category": _category,
    "pareto": _pareto,
    "distribution": _distribution,
    "pairs": _pairs,
    "machine": _machine,
    "stages": _stages,
    "soak": _soak,
}
