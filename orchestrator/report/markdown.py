"""The report in Markdown: the table first, then what it rests on, then what went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import TrialResult
from orchestrator.plan.trial import Protocol
from orchestrator.report.cost_text import cost_section
from orchestrator.report.deploy_text import deploy_section
from orchestrator.report.efficiency_text import efficiency_sentence
from orchestrator.report.ladder_text import ladder_section
from orchestrator.report.language import Words
from orchestrator.report.map_text import map_section
from orchestrator.report.row import (
    ENGLISH,
    WITHHELD,
    load_heading,
    rows,
    speedup_text,
    trial_label,
    verdict_name,
    withheld_sentence,
)
from orchestrator.report.search_text import reused_section, search_section
from orchestrator.report.stage_text import stage_section
from orchestrator.report.suite_text import suite_sections
from orchestrator.report.what_if_text import what_if_section
from orchestrator.report.words import control_sentence, preconditions


def markdown_report(result: SweepResult, words: Words = ENGLISH) -> str:
    """The whole report as one text."""
    return "\n".join(_lines(result, words)) + "\n"


def _lines(result: SweepResult, words: Words) -> Iterator[str]:
    yield f"# {result.name}" + (f" — {words('report.simulated')}" if result.simulated else "")
    description = result.manifest["experiment"].get("description")
    if description:
        yield ""
        yield str(description)
    yield ""
    if result.only_suites:
        yield preconditions(result, words)
        yield ""
        yield from suite_sections(result, words)
    else:
        yield from _of_the_trials(result, words)
    yield from _notes(result, words)
    yield from _left_out(result, words)
    yield from _how_to_read(result, words)


def _of_the_trials(result: SweepResult, words: Words) -> Iterator[str]:
    """The verdicts and what they rest on, with what the suites found between them."""
    shown = rows(result, words)
    yield f"## {words('section.verdicts')}"
    yield ""
    yield from _table(
        (
            words("heading.method"),
            words("heading.k"),
            words("heading.workload"),
            load_heading(result, words),
            words("heading.temperature"),
            words("heading.speedup_interval"),
            words("heading.acceptance_length"),
            words("heading.pairs"),
            words("heading.verdict"),
            words("heading.records"),
        ),
        [
            (
                r.method,
                r.speculation_length,
                r.workload,
                r.load,
                r.temperature,
                r.speedup,
                r.acceptance_length,
                r.pairs,
                r.verdict + WITHHELD * r.withheld,
                f"[{r.trial_id}]({r.trial_id}/)",
            )
            for r in shown
        ],
    )
    yield ""
    if sentence := withheld_sentence(shown, words):
        yield sentence.replace(WITHHELD, rf"\{WITHHELD}")
        yield ""
    yield control_sentence(result, words)
    yield ""
    yield preconditions(result, words)
    yield ""
    if sentence := efficiency_sentence(result.efficiency, words):
        yield sentence
        yield ""
    yield from reused_section(result, words)
    yield from search_section(result, words)
    yield from _best(result, words)
    yield from deploy_section(result, words)
    yield from ladder_section(result, words)
    yield from suite_sections(result, words)
    yield from _all_speedups(result, words)
    yield from _figures(result, words)
    yield from cost_section(result, words)
    yield from stage_section(result, words)
    yield from map_section(result, words)
    yield from what_if_section(result, words)
    yield from _failures(result, words)
    yield from _invalid(result, words)


def _table(head: Sequence[str], body: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for line in body:
        yield "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"


def best_sentences(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """The best cell and what it did on prompts not used before; or that there is none."""
    if result.best is None:
        yield words("report.no_cell_faster")
    for chosen in result.chosen:
        speedup = speedup_text(result.decision(chosen))
        if chosen is result.best:
            label = trial_label(chosen.trial, words)
            yield words("report.best_cell", cell=label, speedup=speedup)
        else:
            yield words("search.best_again", speedup=speedup)
        yield from _confirmed(result, chosen, words)


def _confirmed(result: SweepResult, chosen: TrialResult, words: Words) -> Iterator[str]:
    for confirmation in result.confirmations:
        trial = confirmation.trial
        if trial.cell == chosen.trial.cell and trial.pair == chosen.trial.pair:
            again = confirmation.headline
            yield words(
                "report.confirmed",
                speedup=speedup_text(again),
                verdict=words(verdict_name(again.verdict)),
            )


def _best(result: SweepResult, words: Words) -> Iterator[str]:
    yield " ".join(best_sentences(result, words))
    yield ""


def _all_speedups(result: SweepResult, words: Words) -> Iterator[str]:
    names = ("speedup_throughput", "speedup_tpot", "speedup_e2e", "speedup_ttft")
    yield f"## {words('section.every_speedup')}"
    yield ""
    yield words("report.every_speedup")
    yield ""
    yield from _table(
        (words("heading.cell"), *(words(f"figure.{name}") for name in names)),
        [
            (
                trial_label(trial.trial, words),
                *(speedup_text(trial.decisions[name]) for name in names),
            )
            for trial in result.every
            if trial.pairs
        ],
    )
    yield ""


FIGURES = (
    ("output_tok_per_s", "heading.tok_per_s", 1.0, 1),
    ("ttft_mean_s", "heading.ttft_ms", 1e3, 0),
    ("ttft_p95_s", "heading.ttft_p95_ms", 1e3, 0),
    ("tpot_mean_s", "heading.tpot_ms", 1e3, 1),
    ("e2e_mean_s", "heading.e2e_ms", 1e3, 0),
    ("process_rss_max_bytes", "heading.engine_gib", 1 / 1024**3, 2),
)
"""(figure, heading, factor to what a person reads, digits)"""


def _figures(result: SweepResult, words: Words) -> Iterator[str]:
    yield f"## {words('section.both_arms')}"
    yield ""
    yield words("report.both_arms")
    yield ""
    body = []
    for trial in result.every:
        if not trial.valid_pairs:
            continue
        line = [trial_label(trial.trial, words)]
        for name, _, scale, digits in FIGURES:
            values = [trial.figures[arm].get(name) for arm in ("baseline", "speculative")]
            shown = ["–" if v is None else f"{v * scale:.{digits}f}" for v in values]
            line.append(" → ".join(shown))
        rate = trial.acceptance_rate
        line.append("–" if rate is None else f"{rate:.2f}")
        body.append(line)
    headings = ["heading.cell", *(key for _, key, _, _ in FIGURES), "heading.acceptance_rate"]
    yield from _table([words(key) for key in headings], body)
    yield ""


def _failures(result: SweepResult, words: Words) -> Iterator[str]:
    failed = [trial for trial in result.every if trial.failed]
    if not failed:
        return
    yield f"## {words('section.failed_trials')}"
    yield ""
    for trial in failed:
        assert trial.outcome is not None
        failure = words.sentence(str(trial.outcome.failure))
        cause = words.sentence(str(trial.outcome.cause))
        yield f"- {trial_label(trial.trial, words)}: {failure}: {cause}"
        if trial.outcome.log_tail:
            yield ""
            yield "  ```"
            yield from (f"  {line}" for line in trial.outcome.log_tail.splitlines()[-15:])
            yield "  ```"
    yield ""


def invalid_pairs(result: SweepResult, words: Words = ENGLISH) -> list[tuple[str, str]]:
    """(trial id, sentence) for every reason why a pair does not count."""
    return [
        (
            trial.trial.id,
            words(
                "report.pair",
                cell=trial_label(trial.trial, words),
                index=pair.index,
                reason=words.sentence(reason),
            ),
        )
        for trial in result.every
        for pair in trial.pairs
        for reason in pair.why_invalid()
    ]


def notes(result: SweepResult, words: Words = ENGLISH) -> list[str]:
    """What a reader should know before believing the verdicts."""
    found = [
        f"{trial_label(trial.trial, words)}: {words.sentence(note)}"
        for trial in result.every
        for note in result.decision(trial).notes
    ]
    found += [
        words(
            "report.nothing_accepted",
            cell=trial_label(trial.trial, words),
            tokens=f"{trial.figures['speculative']['draft_tokens']:.0f}",
        )
        for trial in result.every
        if trial.acceptance_rate == 0
    ]
    return [*found, *(words.sentence(str(n)) for n in result.manifest.get("notices", []))]


def left_out(result: SweepResult, words: Words = ENGLISH) -> list[str]:
    """Cells of the grid that were not run because they cannot work, or say nothing."""
    return [
        f"{words.label(str(cell['cell']))}: {words.sentence(str(cell['reason']))}"
        for cell in result.manifest.get("skipped", [])
    ]


def _invalid(result: SweepResult, words: Words) -> Iterator[str]:
    yield from _listed("section.invalid_pairs", [t for _, t in invalid_pairs(result, words)], words)


def _notes(result: SweepResult, words: Words) -> Iterator[str]:
    yield from _listed("section.notes", notes(result, words), words)


def _left_out(result: SweepResult, words: Words) -> Iterator[str]:
    yield from _listed("section.left_out", left_out(result, words), words)


def _listed(section: str, sentences: Sequence[str], words: Words) -> Iterator[str]:
    if sentences:
        yield f"## {words(section)}"
        yield ""
        yield from (f"- {sentence}" for sentence in sentences)
        yield ""


def how_to_read(result: SweepResult, words: Words = ENGLISH) -> Iterator[str]:
    """What the verdicts mean, and how to measure the same again."""
    protocol: Protocol | None = next((t.trial.protocol for t in result.every), None)
    if protocol is None:
        return
    yield words(
        "report.how_to_read",
        min=protocol.pairs_min,
        max=protocol.pairs_max,
        confidence=f"{protocol.confidence:.0%}",
        above=f"{1 + protocol.margin:g}",
        below=f"{1 / (1 + protocol.margin):.3f}",
    )
    product = (result.manifest.get("environment") or {}).get("product") or {}
    yield words(
        "report.run_again_modified" if product.get("modified") else "report.run_again",
        file=str(result.manifest.get("file", "FILE")),
        version=str(product.get("version")),
        revision=str(product.get("revision")),
    )


def _how_to_read(result: SweepResult, words: Words) -> Iterator[str]:
    paragraphs = list(how_to_read(result, words))
    if paragraphs:
        yield f"## {words('section.how_to_read')}"
        yield ""
        yield "\n\n".join(paragraphs)
