"""The report in Markdown: the table first, then what it rests on, then what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.plan.trial import Protocol
from orchestrator.report.ladder_text import ladder_section
from orchestrator.report.row import load_heading, rows, speedup_text
from orchestrator.report.words import control_sentence, preconditions


def markdown_report(result: SweepResult) -> str:
    """The whole report as one text."""
    return "\n".join(_lines(result)) + "\n"


def _lines(result: SweepResult) -> Iterator[str]:
    yield f"# {result.name}" + (" — SIMULATED, not measured" if result.simulated else "")
    description = result.manifest["experiment"].get("description")
    if description:
        yield ""
        yield str(description)
    yield ""
    yield "## Verdicts"
    yield ""
    yield from _table(
        ("method", "K", "workload", load_heading(result), "T", "speedup [interval]", "AL", "pairs",
         "verdict", "records"),
        [
            (r.method, r.speculation_length, r.workload, r.load, r.temperature, r.speedup,
             r.acceptance_length, r.pairs, r.verdict, f"[{r.trial_id}]({r.trial_id}/)")
            for r in rows(result)
        ],
    )  # fmt: skip
    yield ""
    yield control_sentence(result)
    yield ""
    yield preconditions(result)
    yield ""
    yield from _best(result)
    yield from ladder_section(result)
    yield from _all_speedups(result)
    yield from _figures(result)
    yield from _failures(result)
    yield from _invalid(result)
    yield from _notes(result)
    yield from _left_out(result)
    yield from _how_to_read(result)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in body:
        yield "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"


def _best(result: SweepResult) -> Iterator[str]:
    if result.best is None:
        yield "No cell may be called faster."
        yield ""
        return
    best = result.best
    yield f"Best cell: {best.trial.cell.label()}, {speedup_text(result.decision(best))}."
    for confirmation in result.confirmations:
        if confirmation.trial.cell == best.trial.cell:
            again = confirmation.headline
            yield (
                f"Measured again on prompts not used before: {speedup_text(again)} "
                f"({again.verdict}). The first figure was chosen for being high; "
                "the second was not: use the second."
            )
    yield ""


def _all_speedups(result: SweepResult) -> Iterator[str]:
    names = ("speedup_throughput", "speedup_tpot", "speedup_e2e", "speedup_ttft")
    yield "## Every speedup"
    yield ""
    yield "Above 1 speculation is better. Uncorrected; the verdict rests on the first that counts."
    yield ""
    yield from _table(
        ("cell", *names),
        [
            (trial.trial.label(), *(speedup_text(trial.decisions[name]) for name in names))
            for trial in result.every
            if trial.pairs
        ],
    )
    yield ""


_FIGURES = (
    ("output_tok_per_s", "tok/s", 1.0, 1),
    ("ttft_mean_s", "TTFT ms", 1e3, 0),
    ("ttft_p95_s", "TTFT p95 ms", 1e3, 0),
    ("tpot_mean_s", "TPOT ms", 1e3, 1),
    ("e2e_mean_s", "E2E ms", 1e3, 0),
    ("process_rss_max_bytes", "engine GiB", 1 / 1024**3, 2),
)


def _figures(result: SweepResult) -> Iterator[str]:
    yield "## Both arms"
    yield ""
    yield "Means over valid pairs, baseline → speculative."
    yield ""
    body = []
    for trial in result.every:
        if not trial.valid_pairs:
            continue
        line = [trial.trial.label()]
        for name, _, scale, digits in _FIGURES:
            values = [trial.figures[arm].get(name) for arm in ("baseline", "speculative")]
            shown = ["–" if v is None else f"{v * scale:.{digits}f}" for v in values]
            line.append(" → ".join(shown))
        rate = trial.acceptance_rate
        line.append("–" if rate is None else f"{rate:.2f}")
        body.append(line)
    yield from _table(("cell", *(title for _, title, _, _ in _FIGURES), "acceptance rate"), body)
    yield ""


def _failures(result: SweepResult) -> Iterator[str]:
    failed = [trial for trial in result.every if trial.failed]
    if not failed:
        return
    yield "## Failed trials"
    yield ""
    for trial in failed:
        assert trial.outcome is not None
        yield f"- {trial.trial.label()}: {trial.outcome.failure}: {trial.outcome.cause}"
        if trial.outcome.log_tail:
            yield ""
            yield "  ```"
            yield from (f"  {line}" for line in trial.outcome.log_tail.splitlines()[-15:])
            yield "  ```"
    yield ""


def _invalid(result: SweepResult) -> Iterator[str]:
    found = [
        f"- {trial.trial.label()}, pair {pair.index}: {reason}"
        for trial in result.every
        for pair in trial.pairs
        for reason in pair.why_invalid()
    ]
    if not found:
        return
    yield "## Pairs that do not count"
    yield ""
    yield from found
    yield ""


def _notes(result: SweepResult) -> Iterator[str]:
    found = [
        f"- {trial.trial.label()}: {note}"
        for trial in result.every
        for note in result.decision(trial).notes
    ]
    found += [
        f"- {trial.trial.label()}: none of {trial.figures['speculative']['draft_tokens']:.0f} "
        "drafted tokens was accepted: the draft never agrees, or the engine's sampler is broken"
        for trial in result.every
        if trial.acceptance_rate == 0
    ]
    found += [f"- {notice}" for notice in result.manifest.get("notices", [])]
    if not found:
        return
    yield "## To know before believing it"
    yield ""
    yield from found
    yield ""


def _left_out(result: SweepResult) -> Iterator[str]:
    skipped = result.manifest.get("skipped", [])
    if not skipped:
        return
    yield "## Cells left out"
    yield ""
    for cell in skipped:
        yield f"- {cell['cell']}: {cell['reason']}"
    yield ""


def _how_to_read(result: SweepResult) -> Iterator[str]:
    protocol: Protocol | None = next((t.trial.protocol for t in result.every), None)
    if protocol is None:
        return
    yield "## How to read it"
    yield ""
    yield (
        f"A trial is {protocol.pairs_min} to {protocol.pairs_max} pairs of blocks, A B B A; both "
        "blocks of a pair send the same prompts with the same seeds. The ratio is taken pair by "
        f"pair. *faster*: the whole {protocol.confidence:.0%} interval lies above "
        f"{1 + protocol.margin:g}; *slower*: below {1 / (1 + protocol.margin):.3f}; *no practical "
        "difference*: between the two; otherwise *cannot tell*. AL is the acceptance length "
        "(tokens per step, the bonus token included). Nothing is claimed outside the cells above."
    )
    yield ""
    environment = result.manifest.get("environment") or {}
    product = environment.get("product") or {}
    yield (
        f"To run it again: `python -m orchestrator sweep {result.manifest.get('file', 'FILE')}` "
        f"(product {product.get('version')}, revision {product.get('revision')}"
        f"{', modified' if product.get('modified') else ''}). "
        "Raw records: the folder of each trial (Parquet and JSON)."
    )
