"""The command line: one file a verb. This module only dispatches and turns errors into exits.

Exit status: 0 ok · 2 bad specification · 3 deployment failed · 4 finished with failed trials ·
5 measurement invalid · 6 missing extra · 70 a bug of ours · 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from orchestrator.errors import OrchestratorError

VERBS = {
    "sweep": "run an experiment: every trial paired, recorded and judged (resumable)",
    "plan": "print what an experiment would run, and what cannot work; starts nothing",
    "serve": "bring deployments up side by side and keep them until Ctrl-C",
    "switch": "watch and steer the canary switch: status, set, pause, resume, history, export",
    "report": "write the report of a sweep from its stored records",
    "compare": "two sweeps, or a sweep and a decision, cell by cell; 1 on a regression",
    "check": "test whether the facts that a decision rests on still hold here; 1 if not",
    "ui": "open MLflow's UI on the tracking store",
    "track": "rebuild a sweep's MLflow runs from its stored records",
    "draft": "train a draft for a target, on text that the target writes itself",
    "models": "list and prepare local models and drafts",
    "doctor": "say what this machine can run, what is missing, and how to mend it",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; returns the exit status and never lets a traceback reach the user."""
    parser = _parser()
    arguments = list(sys.argv[1:] if argv is None else argv)
    verb = next((word for word in arguments if not word.startswith("-")), None)
    if verb in VERBS:
        # Only the verb that runs is imported: `plan` must not pay for ray, nor need it.
        module = importlib.import_module(f"orchestrator.cli.{verb}")
        module.add_arguments(parser.verbs[verb])
        args = parser.parse_args(arguments)
        return _guarded(lambda: int(module.run(args)))
    parser.parse_args(arguments)
    parser.print_help()
    return 2


class _Parser(argparse.ArgumentParser):
    verbs: dict[str, argparse.ArgumentParser]


def _parser() -> _Parser:
    parser = _Parser(
        prog="python -m orchestrator",
        description="Paired experiments: whether, where and when speculative decoding pays.",
        epilog=(__doc__ or "").partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    group = parser.add_subparsers(metavar="VERB", parser_class=argparse.ArgumentParser)
    parser.verbs = {
        name: group.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        for name, text in VERBS.items()
    }
    return parser


def _guarded(run: Callable[[], int]) -> int:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _as_interrupt)
    try:
        return run()
    except OrchestratorError as error:
        _say(f"error: {error}")
        tail = getattr(error, "log_tail", "")
        if tail:
            _say("  the end of its log:\n" + "\n".join(f"    {line}" for line in tail.splitlines()))
        return error.exit_status
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        # The reader of our output (`| head`) went away: not an error of this command.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: reported, never hidden
        handle, name = tempfile.mkstemp(prefix="orchestrator-bug-", suffix=".log")
        os.close(handle)
        Path(name).write_text(traceback.format_exc(), encoding="utf-8")
        _say(
            f"bug: {type(error).__name__}: {error}\n"
            f"  this is a defect of ours; the traceback is in {name}, please report it with that"
        )
        return 70


def _as_interrupt(number: int, frame: object) -> None:
    """A scheduler's SIGTERM ends like Ctrl-C: engines stopped, records whole."""
    raise KeyboardInterrupt


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
