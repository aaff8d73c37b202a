"""From a deployment to what the simulated engine runs; every fault of the parameters at once.

    engine:
      max_num_seqs: 64
      simulated: {profile: llama-8b-h100, acceptance: 0.7, speculative: {faults: {crash_at_s: 30}}}

`baseline: {…}` and `speculative: {…}` hold overrides for one arm; everything else counts for both.
"""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from orchestrator.adapters.simulated.defects import Defect
from orchestrator.adapters.simulated.faults import Drifts, Faults
from orchestrator.adapters.simulated.profile import PROFILES, Drafting, SimulatedModel
from orchestrator.errors import Fault, SpecError
from orchestrator.plan.deployment import SCHEDULE_OPTION, WHAT_IF, Deployment, Speculation

PLACE = "engine.simulated"
Schedule = tuple[tuple[int, int, int], ...]

_GROUPS = frozenset({"faults", "drifts", "baseline", "speculative"})
_RATES = frozenset({"acceptance", "acceptance_by_category"})
_TEXTS = {
    "drafting": get_args(Drafting),
    "start_failure": ("out_of_memory", "start_failed"),
    "leak_when": ("always", "speculating", "not_speculating"),
}
_WHOLE = frozenset(
    {"kv_capacity_tokens", "error_on_request", "error_mid_stream_on_request", "seed"}
)
_SIGNED = frozenset(
    {"seed", "acceptance_decay_per_hour", "acceptance_decay_by_category", "step_growth_per_hour"}
)
_SHARES = frozenset({"draft_kv_fraction", "lookup_verify_fraction"})


@dataclass(frozen=True)
class Limits:
    """The scheduler's limits, under vLLM's names and with its defaults."""

    max_num_seqs: int = 256
    max_num_batched_tokens: int = 8192
    enable_chunked_prefill: bool = True
    max_model_len: int = 131_072


@dataclass(frozen=True)
class EngineConfiguration:
    """Everything that determines a simulated engine, except its noise's seed sequence."""

    model: SimulatedModel
    limits: Limits = field(default_factory=Limits)
    method: str | None = None
    speculation_length: int = 0
    schedule: Schedule = ()
    faults: Faults = field(default_factory=Faults)
    drifts: Drifts = field(default_factory=Drifts)
    seed: int = 0
    served_name: str = "simulated"
    adapters: tuple[str, ...] = ()
    """Names of LoRA adapters, served as models."""

    @property
    def kv_capacity_tokens(self) -> int:
        """Tokens the cache holds in this arm; the draft's share is taken off."""
        if self.speculation_length == 0:
            return self.model.kv_capacity_tokens
        return int(self.model.kv_capacity_tokens * (1 - self.model.draft_kv_fraction))

    def in_life(self, index: int) -> EngineConfiguration:
        """This configuration for the index-th start (from 0)."""
        if index == 0 or not self.faults.first_life_only:
            return self
        return dataclasses.replace(self, faults=Faults())

    def lengths_by_batch(self) -> tuple[int, ...]:
        """Speculation length for every batch size; index = running sequences, 0 unused.

        A gap carries the last length forward and none exceeds `speculation_length`, as in vLLM.
        """
        full = self.speculation_length
        dense, current = [full], full
        for batch in range(1, self.limits.max_num_seqs + 1):
            for low, high, length in self.schedule:
                if low <= batch <= high:
                    current = min(full, length)
            dense.append(current)
        return tuple(dense)


def configure(deployment: Deployment) -> EngineConfiguration:
    """Raises: SpecError with every unknown key (and its nearest name) and every bad value."""
    faults: list[Fault] = []
    raw = deployment.engine.get("simulated", {})
    if not isinstance(raw, Mapping):
        raise SpecError([_fault("", "must be a mapping", raw)])
    given = dict(raw)
    arm = "baseline" if deployment.speculation is None else "speculative"
    overrides = {name: given.pop(name, {}) for name in ("baseline", "speculative")}
    for name, part in overrides.items():
        if not isinstance(part, Mapping):
            faults.append(_fault(name, "must be a mapping", part))
            continue
        # The other arm's overrides are checked too: a typo there must not wait for its engine.
        merged = _merge(given, part)
        result = _values(merged, f"{name}." if part else "", faults)
        if name == arm:
            model, planted, drifts, seed = result
    limits = _limits(deployment.engine, faults)
    schedule = _schedule(deployment.speculation, faults)
    if faults:
        raise SpecError(list(dict.fromkeys(faults)))
    speculation = deployment.speculation
    if speculation is not None and speculation.method == WHAT_IF:
        model = _supposed(model, speculation.options)
    return EngineConfiguration(
        model=model,
        limits=limits,
        method=speculation.method if speculation else None,
        speculation_length=speculation.speculation_length if speculation else 0,
        schedule=schedule,
        faults=planted,
        drifts=drifts,
        seed=seed,
        served_name=deployment.target,
        adapters=_adapters(deployment.engine),
    )


def _supposed(model: SimulatedModel, options: Mapping[str, Any]) -> SimulatedModel:
    """The same target with a draft of which all is supposed."""
    return dataclasses.replace(
        model,
        acceptance=(float(options["acceptance"]),),
        acceptance_by_category={},
        drafting="per_token",
        draft_kv_s=0.0,
        draft_token_s=0.0,
        draft_fixed_s=float(options["draft_cost_s"]),
        draft_kv_fraction=0.0,
    )


def _merge(common: Mapping[str, Any], part: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**common, **part}
    for group in ("faults", "drifts"):
        if isinstance(common.get(group), Mapping) and isinstance(part.get(group), Mapping):
            merged[group] = {**common[group], **part[group]}
    return merged


def _values(
    given: Mapping[str, Any], prefix: str, faults: list[Fault]
) -> tuple[SimulatedModel, Faults, Drifts, int]:
    model_names = {f.name for f in dataclasses.fields(SimulatedModel)} - {"name"}
    _check_names(given, model_names | _GROUPS | {"profile", "seed"}, prefix, faults)
    name = given.get("profile", "fast")
    profile = PROFILES.get(name) if isinstance(name, str) else None
    if profile is None:
        hint = _nearest(str(name), PROFILES) or f"use one of {', '.join(PROFILES)}"
        faults.append(_fault(f"{prefix}profile", "must be a known profile", name, hint))
        profile = PROFILES["fast"]
    changes = _checked({k: v for k, v in given.items() if k in model_names}, prefix, faults)
    seed = _checked({"seed": given.get("seed", 0)}, prefix, faults).get("seed", 0)
    parts = []
    for group, kind in (("faults", Faults), ("drifts", Drifts)):
        values = given.get(group, {})
        if not isinstance(values, Mapping):
            faults.append(_fault(f"{prefix}{group}", "must be a mapping", values))
            values = {}
        names = {f.name for f in dataclasses.fields(kind)}
        _check_names(values, names, f"{prefix}{group}.", faults)
        kept = {k: v for k, v in values.items() if k in names}
        parts.append(kind(**_checked(kept, f"{prefix}{group}.", faults)))
    planted, drifts = parts
    assert isinstance(planted, Faults) and isinstance(drifts, Drifts)
    return dataclasses.replace(profile, **changes), planted, drifts, seed


def _checked(values: Mapping[str, Any], prefix: str, faults: list[Fault]) -> dict[str, Any]:
    """The values in their types; a bad one becomes a fault and is left out."""
    kept: dict[str, Any] = {}
    for key, value in values.items():
        try:
            kept[key] = _reader(key)(value)
        except (TypeError, ValueError) as error:
            faults.append(_fault(f"{prefix}{key}", str(error), value))
    return kept


def _reader(key: str) -> Callable[[Any], Any]:
    if key == "acceptance":
        return _rates
    if key in ("acceptance_by_category", "acceptance_decay_by_category"):
        one = _rates if key in _RATES else lambda v: _number(v, signed=True)
        return lambda value: _by_name(value, one)
    if key in _TEXTS:
        return lambda value: _one_of(value, _TEXTS[key])
    if key in ("garbage_output", "first_life_only", "cured_by_flush"):
        return _flag
    if key == "defects":
        return _defects
    if key in _SHARES:
        return lambda value: _number(value, high=1.0)
    return lambda value: _number(value, signed=key in _SIGNED, whole=key in _WHOLE)


def _number(
    value: Any, *, signed: bool = False, whole: bool = False, high: float | None = None
) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("must be a number")
    if not -1e300 < value < 1e300:
        raise ValueError("must be finite")
    if whole and value != int(value):
        raise ValueError("must be a whole number")
    if not signed and value < 0:
        raise ValueError("must be >= 0")
    if high is not None and value > high:
        raise ValueError(f"must be <= {high:g}")
    return int(value) if whole else float(value)


def _rates(value: Any) -> tuple[float, ...]:
    rates = value if isinstance(value, list | tuple) else [value]
    if not rates:
        raise ValueError("must name at least one position")
    return tuple(float(_number(rate, high=1.0)) for rate in rates)


def _by_name(value: Any, one: Callable[[Any], Any]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError("must be a mapping from category to value")
    return {str(name): one(item) for name, item in value.items()}


def _one_of(value: Any, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    return str(value)


def _defects(value: Any) -> tuple[Defect, ...]:
    if not isinstance(value, list | tuple):
        raise TypeError("must be a list of names")
    return tuple(Defect(_one_of(name, list(Defect))) for name in value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError("must be true or false")
    return value


def _adapters(engine: Mapping[str, Any]) -> tuple[str, ...]:
    modules = engine.get("lora_modules") or ()
    return tuple(str(module["name"]) for module in modules)


def _limits(engine: Mapping[str, Any], faults: list[Fault]) -> Limits:
    values: dict[str, Any] = {}
    for limit in dataclasses.fields(Limits):
        if (value := engine.get(limit.name)) is None:
            continue
        if limit.name == "enable_chunked_prefill":
            if not isinstance(value, bool):
                faults.append(_fault(limit.name, "must be true or false", value, place="engine"))
            values[limit.name] = bool(value)
        elif isinstance(value, bool) or not isinstance(value, int) or value < 1:
            faults.append(_fault(limit.name, "must be a whole number >= 1", value, place="engine"))
        else:
            values[limit.name] = value
    return Limits(**values)


def _schedule(speculation: Speculation | None, faults: list[Fault]) -> Schedule:
    if speculation is None or (raw := speculation.options.get(SCHEDULE_OPTION)) is None:
        return ()
    place = {"place": "speculation"}
    if not isinstance(raw, list | tuple) or not raw:
        faults.append(_fault(SCHEDULE_OPTION, "must be a list of [low, high, K]", raw, **place))
        return ()
    rows: list[tuple[int, int, int]] = []
    for row in raw:
        whole = isinstance(row, list | tuple) and len(row) == 3
        if not whole or not all(isinstance(n, int) for n in row) or not 0 < row[0] <= row[1]:
            faults.append(
                _fault(SCHEDULE_OPTION, "needs [low, high, K] with 0 < low <= high", row, **place)
            )
            return ()
        rows.append((row[0], row[1], row[2]))
    rows.sort()
    overlap = any(a[1] >= b[0] for a, b in itertools.pairwise(rows))
    if rows[0][0] != 1 or overlap or any(row[2] < 0 for row in rows):
        rule = "ranges must start at 1, not overlap, and have K >= 0"
        faults.append(_fault(SCHEDULE_OPTION, rule, raw, **place))
    return tuple(rows)


def _check_names(
    given: Mapping[str, Any], known: set[str] | frozenset[str], prefix: str, faults: list[Fault]
) -> None:
    for key in given:
        if key not in known:
            hint = _nearest(str(key), known) or f"known keys: {', '.join(sorted(known))}"
            faults.append(_fault(f"{prefix}{key}", "unknown key", None, hint))


def _nearest(word: str, known: Mapping[str, Any] | set[str] | frozenset[str]) -> str | None:
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _fault(key: str, rule: str, value: Any, hint: str | None = None, place: str = PLACE) -> Fault:
    name = f"{place}.{key}" if key else place
    return Fault("deployment", None, name, rule, None if value is None else repr(value), hint)
