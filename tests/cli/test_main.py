"""Every end has its exit status and a message that is enough to act on."""

from __future__ import annotations

import types
from pathlib import Path

import pytest

import orchestrator.cli as cli
from orchestrator.errors import (
    DeploymentError,
    Fault,
    MeasurementInvalid,
    MissingExtra,
    SpecError,
    StoreError,
    TrialsFailed,
)


def verb_that(
    monkeypatch: pytest.MonkeyPatch, raised: BaseException | None, status: int = 0
) -> None:
    def run(args: object) -> int:
        if raised is not None:
            raised_now: BaseException = raised
            raise raised_now
        return 0

    module = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
    monkeypatch.setattr(cli.importlib, "import_module", lambda name: module)


@pytest.mark.parametrize(
    ("raised", "status", "said"),
    [
        (SpecError([Fault("x.yaml", 3, "sweep", "is wrong", "1", "mend it")]), 2, "x.yaml:3 sweep"),
        (DeploymentError("out_of_memory", "no room", "the log's end", "/l"), 3, "the log's end"),
        (TrialsFailed("2 trials failed"), 4, "2 trials failed"),
        (MeasurementInvalid("nothing valid"), 5, "nothing valid"),
        (MissingExtra("datasets", "hub", "hf:x"), 6, "[hub]"),
        (StoreError("disk full"), 70, "disk full"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_exit_status_and_message(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    status: int,
    said: str,
) -> None:
    verb_that(monkeypatch, raised)
    assert cli.main(["doctor"]) == status
    assert said in capsys.readouterr().err


def test_a_bug_leaves_its_traceback_in_a_file_and_none_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verb_that(monkeypatch, ZeroDivisionError("oops"))
    assert cli.main(["doctor"]) == 70
    said = capsys.readouterr().err
    assert "Traceback" not in said
    path = next(word.rstrip(",") for word in said.split() if "orchestrator-bug-" in word)
    assert "ZeroDivisionError: oops" in Path(path).read_text(encoding="utf-8")


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert all(verb in shown for verb in cli.VERBS)


def test_no_verb_shows_the_help_and_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "VERB" in capsys.readouterr().out


def test_an_unknown_verb_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["swep"])
    assert ended.value.code == 2
    assert "swep" in capsys.readouterr().err
