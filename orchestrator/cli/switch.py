"""`switch`: what the canary switch does, who told it to, and how to tell it otherwise.

Exit status: 0 · 2 refused, or no token · 3 the switch does not answer.
"""

from __future__ import annotations

import argparse
import getpass
import json
import secrets
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from orchestrator.errors import Fault, SpecError

ADMIN = "http://127.0.0.1:8001"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    acts = parser.add_subparsers(metavar="ACT", required=True)

    status = _act(acts, "status", "shares, arms, guard and alarms as they stand", _status)
    status.add_argument("--json", action="store_true", help="for machines")

    change = _act(acts, "set", "change the policy; obeyed within a second, without restart", _set)
    kind = change.add_mutually_exclusive_group(required=True)
    kind.add_argument("--off", action="store_true", help="everybody gets the baseline")
    kind.add_argument("--share", type=float, metavar="0..1", help="a fixed share of callers")
    kind.add_argument(
        "--ramp", metavar="0.01,0.05,…", nargs="?", const="", help="shares in turn, each held"
    )
    kind.add_argument("--shadow", type=float, metavar="0..1", help="mirror only; nobody is sent")
    kind.add_argument("--policy", type=Path, metavar="YAML", help="a whole policy, or - for stdin")
    change.add_argument("--hold", type=float, metavar="S", help="of each step of --ramp")
    change.add_argument("--why", required=True, help="for the audit log")

    for name, text in (
        ("pause", "everybody gets the baseline until resumed; a ramp keeps its place"),
        ("resume", "go on where it was paused"),
    ):
        act = _act(acts, name, text, _pause_or_resume)
        act.set_defaults(order=name)
        act.add_argument("--why", required=True, help="for the audit log")

    history = _act(acts, "history", "the audit log: who, what, when, why", _history)
    history.add_argument("--most", type=int, default=50, metavar="N")
    history.add_argument("--json", action="store_true", help="with the evidence")

    key = acts.add_parser("key", help="make a key or token: itself on stderr, its hash on stdout")
    key.set_defaults(act=_key)

    export = acts.add_parser("export", help="recorded requests as a sweep's workload")
    export.add_argument("--state", type=Path, required=True, metavar="DIR")
    export.add_argument("--trace", type=Path, required=True, metavar="CSV", help="for load.trace")
    export.add_argument(
        "--prompts", type=Path, metavar="JSONL", help="texts, where the records hold them"
    )
    export.set_defaults(act=_export)


def _act(acts: Any, name: str, text: str, act: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = acts.add_parser(name, help=text)
    parser.add_argument("--admin", default=ADMIN, metavar="URL", help=f"default: {ADMIN}")
    parser.add_argument("--state", type=Path, metavar="DIR", help="of a switch on this machine")
    parser.add_argument("--token-file", type=Path, metavar="FILE", help="an operator's token")
    parser.set_defaults(act=act)
    return parser


def run(args: argparse.Namespace) -> int:
    return int(args.act(args))


def _client(args: argparse.Namespace) -> Any:
    from orchestrator.adapters.switch_client import SwitchClient, token_of

    state = None if args.state is None else args.state.expanduser()
    return SwitchClient(args.admin, token_of(args.token_file, state))


def _status(args: argparse.Namespace) -> int:
    state = _client(args).get("/admin/state")
    print(json.dumps(state, indent=1) if args.json else status_text(state))
    return 0


def status_text(state: dict[str, Any]) -> str:
    """What a person wants to see first."""
    settings, ramp = state["settings"], state["ramp"]
    policy = settings["policy"]
    lines = [
        f"share      {state['share']:.0%} of callers to the speculative arm"
        + (f" (held at 0 by: {', '.join(state['closed_by'])})" if state["closed_by"] else ""),
        f"policy     {json.dumps(policy)}",
        f"           version {settings['version']}, by {settings['who']}: {settings['why']}",
    ]
    if policy["mode"] == "ramp":
        lines.append(
            f"ramp       step {ramp['step'] + 1} of {len(ramp['steps'])}, "
            f"healthy for {ramp['held_s']:.0f} s there"
        )
    for name, arm in state["arms"].items():
        lines.append(
            f"{name:<11}{'up' if arm['up'] else 'DOWN'}, {arm['in_flight']} requests, "
            f"{arm['address']}"
        )
    lines.append(f"guard      {state['guard']['state']}")
    lines += [f"           {reason['text']}" for reason in state["guard"]["reasons"]]
    load = state["load"]
    lines.append(f"load       {load['in_flight']} in flight, {load['rps']:.1f} requests/s")
    lines += [f"ALARM      {alarm}" for alarm in state["alarms"]]
    return "\n".join(lines)


def _set(args: argparse.Namespace) -> int:
    answer = _client(args).post("/admin/policy", {"policy": policy_of(args), "why": args.why})
    print(f"settings are now version {answer['version']}")
    return 0


def policy_of(args: argparse.Namespace) -> dict[str, Any]:
    """Raises: SpecError for flags that are no numbers or do not belong together."""
    if args.hold is not None and args.ramp is None:
        raise SpecError([Fault("--hold", None, "", "belongs to --ramp")])
    if args.off:
        return {"mode": "off"}
    if args.share is not None:
        return {"mode": "fixed", "share": args.share}
    if args.shadow is not None:
        return {"mode": "shadow", "shadow": {"share": args.shadow}}
    if args.ramp is not None:
        ramp: dict[str, Any] = {} if args.hold is None else {"hold_s": args.hold}
        try:
            steps = [float(step) for step in args.ramp.split(",") if step.strip()]
        except ValueError:
            raise SpecError(
                [Fault("--ramp", None, "", "must be shares with commas", repr(args.ramp))]
            ) from None
        return {"mode": "ramp", "ramp": {**ramp, **({"steps": steps} if steps else {})}}
    from orchestrator.spec.document import parse

    name = str(args.policy)
    try:
        text = sys.stdin.read() if name == "-" else args.policy.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError([Fault(name, None, "", f"cannot be read ({error.strerror})")]) from None
    document = parse(text, name)
    if document.faults or not isinstance(document.value, dict):
        raise SpecError(list(document.faults) or [Fault(name, 1, "", "must be a mapping")])
    return document.value


def _pause_or_resume(args: argparse.Namespace) -> int:
    answer = _client(args).post(f"/admin/{args.order}", {"why": args.why})
    print(f"settings are now version {answer['version']}")
    return 0


def _history(args: argparse.Namespace) -> int:
    events = _client(args).get(f"/admin/events?most={args.most}")
    if args.json:
        print(json.dumps(events, indent=1))
        return 0
    for event in events:
        at = datetime.fromtimestamp(event["at_s"], UTC).strftime("%Y-%m-%d %H:%M:%S")
        print(f"{at}Z  {event['who']:<12} {event['what']:<18} {event['why']}")
    return 0


def _key(args: argparse.Namespace) -> int:
    from orchestrator.switch.keys import key_from, key_hash

    key = key_from(secrets.token_bytes(32))
    print(f"the key, shown once, made by {getpass.getuser()}: {key}", file=sys.stderr)
    print(key_hash(key))
    return 0


def _export(args: argparse.Namespace) -> int:
    from orchestrator.switch.export import prompts, trace_csv, usable

    lines = _recorded(args.state.expanduser() / "requests")
    found = usable(lines)
    if not found:
        raise SpecError(
            [
                Fault(
                    str(args.state),
                    None,
                    "",
                    "must hold requests whose tokens were counted",
                    f"{len(lines)} records, none of them usable",
                    "streams are counted with `watch_usage: true`",
                )
            ]
        )
    args.trace.write_text(trace_csv(lines), encoding="utf-8")
    print(f"{args.trace}: {len(found)} arrivals of {len(lines)} records")
    if args.prompts is not None:
        rows = prompts(lines)
        if not rows:
            raise SpecError(
                [
                    Fault(
                        "--prompts",
                        None,
                        "",
                        "needs records that hold texts",
                        hint="`records: {texts: true}` keeps them from then on",
                    )
                ]
            )
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        args.prompts.write_text(text, encoding="utf-8")
        print(f"{args.prompts}: {len(rows)} prompts")
    return 0


def _recorded(folder: Path) -> list[dict[str, Any]]:
    """Every whole line; the last one of a file that is being written may be half."""
    lines: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.jsonl")):
        text = path.read_text(encoding="utf-8")
        whole, _, _ = text.rpartition("\n")
        lines += [json.loads(line) for line in whole.splitlines() if line]
    return lines
