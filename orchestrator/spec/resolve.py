"""References between files: relative ones are relative to the file that holds them."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

from orchestrator.spec.document import MAX_BYTES, Path, parse
from orchestrator.spec.engine import FROM
from orchestrator.spec.goals import SCENARIO_FILES
from orchestrator.spec.nearest import nearest
from orchestrator.spec.translate import Finding, shown
from orchestrator.spec.workload import BUNDLED, SOURCES

_MODEL_DIRECTORIES = ("./", "../", "/", "~/")


def resolve(raw: dict[str, Any], base: FilePath) -> tuple[dict[str, Any], list[Finding]]:
    """The experiment with every file reference absolute and `engine.from` filled in.

    Only what is there and of the right shape is looked at: the rest is the models' to refuse.
    """
    found: list[Finding] = []
    result = dict(raw)
    if isinstance(raw.get("engine"), dict) and FROM in raw["engine"]:
        result["engine"] = _with_base(raw["engine"], base, found)
    if isinstance(raw.get("target"), str):
        result["target"] = _model(raw["target"], base, ("target",), found)
    if isinstance(raw.get("workloads"), list):
        result["workloads"] = [
            _workload(entry, base, ("workloads", index), found)
            for index, entry in enumerate(raw["workloads"])
        ]
    sweep = raw.get("sweep")
    if isinstance(sweep, dict) and isinstance(sweep.get("speculation"), list):
        entries = [
            _drafts(entry, base, ("sweep", "speculation", index), found)
            for index, entry in enumerate(sweep["speculation"])
        ]
        result["sweep"] = sweep | {"speculation": entries}
    load = raw.get("load")
    if isinstance(load, dict) and isinstance(load.get("trace"), str):
        result["load"] = load | {"trace": _file(load["trace"], base, ("load", "trace"), found)}
    if isinstance(raw.get("scenarios"), list):
        result["scenarios"] = [
            _file(name, base, ("scenarios", index), found)
            if isinstance(name, str) and name.endswith(SCENARIO_FILES)
            else name
            for index, name in enumerate(raw["scenarios"])
        ]
    attach = raw.get("attach")
    if isinstance(attach, dict) and isinstance(attach.get("tls_ca_file"), str):
        file = _file(attach["tls_ca_file"], base, ("attach", "tls_ca_file"), found)
        result["attach"] = attach | {"tls_ca_file": file}
    return result, found


def _workload(entry: Any, base: FilePath, path: Path, found: list[Finding]) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("prompts"), str):
        return entry
    prompts = entry["prompts"]
    if not prompts or prompts.startswith(SOURCES):
        scheme, _, name = prompts.partition(":")
        if scheme == "bundled" and name and name not in BUNDLED:
            close = nearest(name, BUNDLED)
            found.append(
                Finding(
                    (*path, "prompts"),
                    f"must name a bundled set: {', '.join(BUNDLED)}",
                    f"'{prompts}'",
                    f"did you mean 'bundled:{close}'?" if close else None,
                )
            )
        return entry
    return entry | {"prompts": _file(prompts, base, (*path, "prompts"), found)}


def _drafts(entry: Any, base: FilePath, path: Path, found: list[Finding]) -> Any:
    if not isinstance(entry, dict):
        return entry
    draft = entry.get("draft")
    if isinstance(draft, str):
        return entry | {"draft": _model(draft, base, (*path, "draft"), found)}
    if isinstance(draft, list):
        names = [
            _model(name, base, (*path, "draft", index), found) if isinstance(name, str) else name
            for index, name in enumerate(draft)
        ]
        return entry | {"draft": names}
    return entry


def _model(name: str, base: FilePath, path: Path, found: list[Finding]) -> str:
    """A name that begins like a path is one; others are catalogue names or Hugging Face ids."""
    if not name.startswith(_MODEL_DIRECTORIES):
        return name
    folder = _absolute(name, base)
    if not folder.exists():
        found.append(Finding(path, "the model's folder must exist", f"'{name}'", f"no {folder}"))
    return str(folder)


def _file(name: str, base: FilePath, path: Path, found: list[Finding]) -> str:
    file = _absolute(name, base)
    if not file.is_file():
        found.append(
            Finding(
                path,
                "the file must exist",
                f"'{name}'",
                f"no {file}; bundled:NAME and hf:OWNER/DATASET name other sources"
                if path[-1] == "prompts"
                else f"no {file}",
            )
        )
    return str(file)


def _absolute(name: str, base: FilePath) -> FilePath:
    return (base / FilePath(name).expanduser()).resolve()


def _with_base(engine: dict[str, Any], base: FilePath, found: list[Finding]) -> dict[str, Any]:
    """The engine arguments of a Ray Serve config file, overridden by the keys given here."""
    own = {name: value for name, value in engine.items() if name != FROM}
    path: Path = ("engine", FROM)
    reference = engine[FROM]
    if not isinstance(reference, str) or not reference:
        found.append(Finding(path, "must be a file, or file#application", shown(reference)))
        return own
    name, _, application = reference.partition("#")
    file = _absolute(name, base)
    if not file.is_file():
        found.append(Finding(path, "the file must exist", f"'{reference}'", f"no {file}"))
        return own
    if file.stat().st_size > MAX_BYTES:
        found.append(Finding(path, f"the file must be at most {MAX_BYTES} bytes", f"'{name}'"))
        return own
    try:
        document = parse(file.read_text(encoding="utf-8"), name)
    except UnicodeDecodeError:
        found.append(Finding(path, "the file must be UTF-8 text", f"'{name}'"))
        return own
    if document.faults:
        found.extend(Finding(path, f"cannot be used: {fault}") for fault in document.faults)
        return own
    taken = _engine_of(document.value, application, path, reference, found)
    return taken | own


def _engine_of(
    config: Any, application: str, path: Path, reference: str, found: list[Finding]
) -> dict[str, Any]:
    applications = config.get("applications") if isinstance(config, dict) else None
    named = [app for app in applications or [] if isinstance(app, dict)]
    if not named:
        found.append(Finding(path, "the file must have applications", f"'{reference}'"))
        return {}
    names = [str(app.get("name")) for app in named]
    if application and application not in names:
        close = nearest(application, names)
        found.append(
            Finding(
                path,
                f"the application must be one of {', '.join(names)}",
                f"'{application}'",
                f"did you mean '{close}'?" if close else None,
            )
        )
        return {}
    chosen = named[names.index(application)] if application else named[0]
    arguments = chosen.get("args")
    engine = arguments.get("engine") if isinstance(arguments, dict) else None
    if not isinstance(engine, dict):
        found.append(
            Finding(path, "the application must have args.engine, a mapping", f"'{reference}'")
        )
        return {}
    return engine
