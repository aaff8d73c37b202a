"""The page: what it says and shows, put into its template."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import orjson
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup, escape

from orchestrator.decide.conclusions import conclusions
from orchestrator.decide.ladders import ladders
from orchestrator.decide.sweep_result import SweepResult
from orchestrator.decide.trial_result import slo_bounds
from orchestrator.report.cost_text import cost_basis, cost_views
from orchestrator.report.deploy_text import deploy_view
from orchestrator.report.ladder_text import ladder_sentences
from orchestrator.report.language import Words
from orchestrator.report.markdown import (
    best_sentences,
    how_to_read,
    invalid_pairs,
    left_out,
    notes,
)
from orchestrator.report.page.acceptance_panels import acceptance_figures
from orchestrator.report.page.conclusion_view import groups, statement
from orchestrator.report.page.decision_view import advice_text, dimensions, scenarios
from orchestrator.report.page.details import MARKS, details
from orchestrator.report.page.embedded import cell_table, levels, pair_table, trial_data
from orchestrator.report.page.facts import environment_rows, prompt_rows
from orchestrator.report.page.load_panels import load_figures
from orchestrator.report.page.map_panels import map_figures
from orchestrator.report.page.panel import Figure
from orchestrator.report.page.soak_panels import has_soak, soak_figure
from orchestrator.report.page.speedup_panels import speedup_figures
from orchestrator.report.page.stage_panels import stage_figure
from orchestrator.report.page.suite_view import suite_views
from orchestrator.report.row import load_heading, trial_label, verdict_key
from orchestrator.report.words import control_sentence, preconditions

SCRIPTS = ("vendor/d3.min.js", "vendor/plot.umd.min.js", "charts.js", "report.js")


def html_report(result: SweepResult, words: Words) -> str:
    """The whole page as one text. Needs no network; everything in it comes from the records."""
    scripts = [_asset(name) for name in SCRIPTS]
    figures = [*sections(result, words)]
    context = {
        "w": words,
        "result": result,
        "headline": _headline(result, words),
        "counts": _counts(result, words),
        "conclusions": groups(conclusions(result), result, words),
        "advice": advice_text(result, words),
        "deploy": deploy_view(result, words),
        "cost_basis": cost_basis(result, words),
        "cost_views": cost_views(result, words),
        "marked": marked,
        "judged": [
            ("score-card", words("page.score_card"), dimensions(result, words)),
            ("scenarios", words("page.scenarios"), scenarios(result, words)),
        ],
        "best": list(best_sentences(result, words)),
        "control": control_sentence(result, words),
        "control_failed": (c := result.control()) is not None and c.trustworthy is False,
        "preconditions": preconditions(result, words),
        "sections": figures,
        "ladders": [
            (ladder.label, list(ladder_sentences(ladder, words)))
            for ladder in ladders(result.trials)
        ],
        "details": details(result, words),
        "marks": MARKS,
        "load_heading": load_heading(result, words),
        "suites": suite_views(result, words),
        "failed": [trial for trial in result.every if trial.failed],
        "invalid": invalid_pairs(result, words),
        "notes": notes(result, words),
        "left_out": left_out(result, words),
        "how_to_read": [marked(text) for text in how_to_read(result, words)],
        "environment": environment_rows(result, words),
        "prompts": prompt_rows(result, words),
        "glossary": _glossary(words),
        "style": Markup(_asset("report.css")),
        "scripts": [Markup(script) for script in scripts],
        "policy": _policy(scripts),
        "data": embedded_json(_data(result, figures, words)),
        "label": lambda trial: trial_label(trial.trial, words),
    }
    return _environment().get_template("report.html.j2").render(context)


@dataclass(frozen=True)
class Section:
    """Figures under one heading."""

    id: str
    heading: str
    figures: tuple[Figure, ...]


def sections(result: SweepResult, words: Words) -> Iterator[Section]:
    """Every figure of the page, under its headings, in order."""
    speedup = tuple(speedup_figures(result, words))
    yield Section("effect", words("page.effect"), speedup)
    yield Section("acceptance", words("page.acceptance"), tuple(acceptance_figures(result, words)))
    latency, pareto, pairs, machine = load_figures(result, words)
    yield Section("service", words("page.service"), (latency, pareto))
    soaked = [soak_figure(result, words)] if has_soak(result.suite_runs) else []
    yield Section("stability", words("page.stability"), (pairs, machine, *soaked))
    stages = (stage_figure(result, words), *map_figures(result, words))
    yield Section("stage", words("page.stage"), stages)


def _headline(result: SweepResult, words: Words) -> Any:
    labels = {trial.trial.id: trial_label(trial.trial, words) for trial in result.every}
    return statement(conclusions(result)[0], labels, words)


def _counts(result: SweepResult, words: Words) -> list[dict[str, Any]]:
    """How many comparisons came to which verdict; every kind that occurs, best first."""
    order = (*MARKS, "unfinished")
    found = Counter(
        key if key in MARKS else "unfinished"
        for trial in result.trials
        for key in [verdict_key(trial, result.decision(trial)).removeprefix("verdict.")]
    )
    names = {"failed": "verdict.short_failed"}
    return [
        {
            "css": key,
            "mark": MARKS.get(key, "–"),
            "text": words(names.get(key, f"verdict.{key}")),
            "count": found[key],
            "share": 100 * found[key] / max(1, len(result.trials)),
        }
        for key in order
        if found[key]
    ]


def _glossary(words: Words) -> list[tuple[str, str]]:
    names = (
        "speculative_decoding", "draft_model", "acceptance_length", "acceptance_rate",
        "break_even", "speculation_length", "ttft", "tpot", "throughput", "pair", "control",
        "interval", "knee", "goodput",
    )  # fmt: skip
    return [(words(f"term.{name}"), words(f"definition.{name}")) for name in names]


def _data(result: SweepResult, sections: list[Section], words: Words) -> Mapping[str, Any]:
    protocol = result.every[0].trial.protocol if result.every else None
    return {
        "name": result.name,
        "figures": {
            figure.id: [panel.as_plain() for panel in figure.panels]
            for section in sections
            for figure in section.figures
        },
        "trials": trial_data(result),
        "levels": levels(),
        "slo": _slo(result),
        "metric": protocol.metric if protocol else "speedup_throughput",
        "words": {
            key.removeprefix("script."): words(key)
            for key in words.all_keys
            if key.startswith("script.")
        },
        "verdicts": {
            key: [MARKS.get(key, "–"), words(f"verdict.{key}")]
            for key in (
                "faster", "slower", "no_practical_difference", "cannot_tell", "not_finished",
                "not_run", "not_run_yet",
            )
        }
        | {"failed": [MARKS["failed"], words("verdict.short_failed")]},
        "latencies": {
            name: words(f"figure.{name}") for name in ("ttft_s", "tpot_s", "e2e_s")
        },
        "cells": cell_table(result),
        "pairs": pair_table(result),
    }  # fmt: skip


def _slo(result: SweepResult) -> dict[str, float | None]:
    """Bounds on a single request, in seconds."""
    bounds = slo_bounds(result.manifest["experiment"].get("slo") or {})
    return {"ttft_s": bounds.ttft_s, "tpot_s": bounds.tpot_s, "e2e_s": bounds.e2e_s}


def embedded_json(value: Any) -> Markup:
    """JSON that may stand in a `<script>`: no text in it can end the element."""
    text = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)


def marked(text: str) -> Markup:
    """`*emphasis*` and `` `code` `` of our own sentences; everything else is escaped."""
    parts = []
    for index, part in enumerate(text.split("`")):
        if index % 2:
            parts.append(Markup("<code>{}</code>").format(part))
            continue
        for inner, word in enumerate(part.split("*")):
            parts.append(Markup("<em>{}</em>").format(word) if inner % 2 else escape(word))
    return Markup("").join(parts)


def _policy(scripts: list[str]) -> str:
    """Content-Security-Policy: these scripts and no others, no network at all."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
        for script in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def _asset(name: str) -> str:
    text = files("orchestrator.report.page").joinpath("assets", name).read_text(encoding="utf-8")
    return text.strip() + "\n"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("orchestrator.report.page"),
        autoescape=select_autoescape(default_for_string=True, default=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
