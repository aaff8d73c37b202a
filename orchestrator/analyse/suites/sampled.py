"""Above temperature 0: do the arms answer with one distribution, and does the baseline itself?"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orchestrator.analyse.losslessness import Losslessness
from orchestrator.analyse.permutation import permutations_needed
from orchestrator.analyse.suites.recorded import answers, asked_in, cases_of
from orchestrator.analyse.suites.reproduction import reproduction
from orchestrator.analyse.two_sample import (
    SameDistribution,
    TwoSampleReport,
    embedding_test,
    token_frequency_test,
)
from orchestrator.analyse.words import words
from orchestrator.run.suites.embedding import NOT_AVAILABLE, unpacked
from orchestrator.run.suites.losslessness import SAMPLED
from orchestrator.run.suites.record import CaseResult, CaseStatus, Subject, SuiteRecord

TOKENS, EMBEDDINGS = "token frequencies", "sentence embeddings"
_STATUS = {
    Losslessness.LOSSLESS: CaseStatus.PASS,
    Losslessness.NOT_LOSSLESS: CaseStatus.FAIL,
    Losslessness.CANNOT_TELL: CaseStatus.CANNOT_TELL,
}
Test = Callable[[Subject], TwoSampleReport]
LEVEL = 0.001
"""Chance of calling a right sampler wrong, over all tests of one pair of engines. Strict: a sweep
judges many pairs, and the defects of samplers that are known are seen at this level with the
samples that a suite takes anyway (`docs/suites.md`)."""
SCREENING, DOUBT = 499, 0.1
"""Permutations of the first stage, and the p-value above which there is no second."""
LABELS_MAX = 30_000_000
"""Permutations x samples: bounds memory (a byte each, and four for a moment)."""


@dataclass
class Sampled:
    """What the samples of every temperature say."""

    verdicts: dict[str, Losslessness] = field(default_factory=dict)
    """By case; LOSSLESS stands for "no difference found": sameness itself cannot be shown."""
    cases: list[CaseResult] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def judge_samples(record: SuiteRecord, *, level: float = LEVEL) -> Sampled:
    """Two tests a temperature: per-position token frequencies, and a kernel test on embeddings.

    The level is shared out over all tests (Bonferroni), and within each over the prompts
    (`two_sample`): a right sampler is called wrong with chance `level` at most, over everything.
    Where the baseline differs from itself relaunched, too, nothing can be told.
    """
    tests: list[tuple[str, str, Test]] = []
    sampled = Sampled()
    cases = cases_of(record, SAMPLED)
    embedded = record.extra.get("embeddings", {})
    number = len(cases) + sum(case in embedded for case in cases)
    for case in cases:
        arms = _Samples(record, case, level / number)
        tests.append((case, TOKENS, arms.token_test))
        if case in embedded:
            tests.append((case, EMBEDDINGS, arms.kernel_test))
        else:
            sampled.cases.append(_not_run(case))
    has_floor = any(one.subject == "baseline_again" for one in record.asked)
    for case, name, test in tests:
        _judge(record, sampled, case, name, test, has_floor)
    for case in cases:
        drafted = record.extra.get("drafting", {}).get(case, {})
        if drafted.get("drafts") and drafted.get("accepted_tokens") == 0:
            sampled.notes.append(f"{case}: not one of the drafted tokens was accepted")
    return sampled


class _Samples:
    """The continuations of one case, by subject and prompt."""

    def __init__(self, record: SuiteRecord, case: str, level: float) -> None:
        self._record, self._case, self._level = record, case, level
        subjects: tuple[Subject, ...] = ("baseline", "speculative", "baseline_again")
        given = {subject: answers(record, case, subject) for subject in subjects}
        ids = all(a.token_ids is not None for found in given.values() for a in found)
        self._tokens: dict[Subject, dict[str, list[Sequence[Hashable]]]] = {}
        for subject, found in given.items():
            by_prompt = self._tokens.setdefault(subject, {})
            for answer in found:
                units = answer.token_ids if ids else None
                by_prompt.setdefault(answer.prompt_id, []).append(
                    words(answer.text) if units is None else units
                )

    def token_test(self, subject: Subject) -> TwoSampleReport:
        return self._staged(
            lambda permutations: token_frequency_test(
                self._tokens["baseline"],
                self._tokens[subject],
                self._rng(subject, TOKENS),
                level=self._level,
                permutations=permutations,
            )
        )

    def kernel_test(self, subject: Subject) -> TwoSampleReport:
        return self._staged(
            lambda permutations: embedding_test(
                self._vectors("baseline"),
                self._vectors(subject),
                self._rng(subject, EMBEDDINGS),
                level=self._level,
                permutations=permutations,
            )
        )

    def _staged(self, test: Callable[[int], TwoSampleReport]) -> TwoSampleReport:
        """A few permutations first; all of them only where those leave a doubt. It rejects only by
        the whole test, so its level is that test's."""
        prompts = self._tokens["baseline"]
        screened = test(max(SCREENING, 20 * len(prompts)))
        if screened.p_value is None or screened.p_value > DOUBT:
            return screened
        samples = 2 * max(map(len, prompts.values()), default=1)
        wanted = permutations_needed(len(prompts), self._level)
        return test(max(SCREENING, math.ceil(4 / self._level), min(wanted, LABELS_MAX // samples)))

    def _vectors(self, subject: Subject) -> dict[str, NDArray[np.float64]]:
        packed: Mapping[str, str] = self._record.extra["embeddings"][self._case].get(subject, {})
        counts = {prompt: len(found) for prompt, found in self._tokens[subject].items()}
        return {p: unpacked(text, counts[p]) for p, text in packed.items() if counts.get(p)}

    def _rng(self, subject: Subject, test: str) -> np.random.Generator:
        """The same record gives the same p-value, whenever it is judged."""
        key = f"{self._record.pair_key} {self._case} {subject} {test}"
        return np.random.default_rng(zlib.crc32(key.encode()))


def _judge(
    record: SuiteRecord, sampled: Sampled, case: str, name: str, test: Test, has_floor: bool
) -> None:
    report = test("speculative")
    floor = test("baseline_again") if has_floor else None
    verdict = _verdict(report, floor)
    full = f"{case}: {name}"
    sampled.verdicts[full] = verdict
    beside = "" if floor is None else f"; baseline against itself: {floor.reason}"
    shift = report.detectable_shift
    power = "" if shift is None else f"; a shift of {shift:.1%} of the tokens would be noticed"
    worst = report.offending[0].prompt_id if report.offending else None
    sampled.cases.append(
        CaseResult(
            case=full,
            status=_STATUS[verdict],
            must="the baseline's distribution",
            seen=f"{report.verdict.value}: {report.reason}{power}{beside}",
            reproduce=_reproduce(record, case, worst) if verdict is Losslessness.NOT_LOSSLESS
            else None,
            evidence={
                "test": report.test,
                "level": report.level,
                "p_value": report.p_value,
                "p_value_baseline_again": None if floor is None else floor.p_value,
                "detectable_shift": shift,
                "offending": [
                    {"prompt": one.prompt_id, "p_value": one.p_value, "holm": one.holm}
                    for one in report.offending
                ],
            },
        )
    )  # fmt: skip
    key = f"{case.removeprefix(SAMPLED)}_{'tokens' if name == TOKENS else 'embeddings'}"
    if report.p_value is not None:
        sampled.metrics[f"sampled_p_value_t{key}"] = report.p_value
    if floor is not None and floor.p_value is not None:
        sampled.metrics[f"sampled_p_value_again_t{key}"] = floor.p_value
    if shift is not None:
        sampled.metrics[f"detectable_shift_t{key}"] = shift


def _verdict(report: TwoSampleReport, floor: TwoSampleReport | None) -> Losslessness:
    if report.verdict is SameDistribution.CANNOT_TELL:
        return Losslessness.CANNOT_TELL
    if report.verdict is SameDistribution.NO_DIFFERENCE_FOUND:
        return Losslessness.LOSSLESS
    if floor is not None and floor.verdict is SameDistribution.DIFFERENT:
        return Losslessness.CANNOT_TELL
    return Losslessness.NOT_LOSSLESS


def _reproduce(record: SuiteRecord, case: str, prompt: str | None) -> str | None:
    """A request to repeat with many seeds; one answer alone shows nothing."""
    sent = asked_in(record, case, "speculative")
    chosen = next((one for one in sent if prompt is None or one.part == prompt), None)
    return None if chosen is None else reproduction(chosen)


def _not_run(case: str) -> CaseResult:
    return CaseResult(
        case=f"{case}: {EMBEDDINGS}",
        status=CaseStatus.NOT_RUN,
        must="the baseline's distribution",
        seen=NOT_AVAILABLE,
    )
