"""Operated by people: who may change what, what is remembered, who agrees."""

from __future__ import annotations

import argparse
import json
import sqlite3
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from orchestrator.adapters.switch_client import SwitchClient, token_of
from orchestrator.cli import switch as verb
from orchestrator.errors import SpecError, StoreError, SwitchUnreachable
from orchestrator.serving.switch.admin import operators_of
from orchestrator.serving.switch.board import Board
from orchestrator.serving.switch.keeper import Keeper
from orchestrator.serving.switch.store import SwitchStore
from orchestrator.switch.guarding import Breach, GuardView, Permissive
from orchestrator.switch.keys import TOKEN_FILE, key_hash
from orchestrator.switch.observation import Observation
from tests.serving.switch.room import (
    OPERATOR,
    Engine,
    Switch,
    ask,
    config_for,
    question,
    switch,
    wait_for,
)

pytestmark = pytest.mark.slow  # a switch and two engines, on real time


class Ordered(Permissive):
    """A guard that says what it is told to."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []
        self.view = GuardView("healthy", True)

    def observe(self, seen: Observation) -> None:
        self.seen.append(seen)

    def evaluate(self, now_s: float) -> GuardView:
        return self.view


def test_a_change_is_obeyed_without_restart_and_stands_in_the_log(
    front: Switch, folder: Path
) -> None:
    front.set(mode="off")
    assert ask(front.port, question()).arm == "baseline"
    front.set(mode="fixed", share=1.0)
    wait_for(lambda: ask(front.port, question()).arm == "speculative")

    status, events = front.admin("GET", "/admin/events")
    changes = [one for one in events if one["what"] == "policy"]
    assert status == 200
    assert changes[-1]["who"] == "olga"
    assert changes[-1]["why"] == "a test"
    assert changes[-1]["evidence"]["policy"] == {"mode": "fixed", "share": 1.0}
    assert changes[-1]["evidence"]["before"] == {"mode": "off"}
    assert front.admin("GET", f"/admin/events?after={events[-2]['id']}")[1] == events[-1:]


def test_the_same_again_is_no_change(front: Switch) -> None:
    front.set(mode="off")
    before = len(front.keeper.store.events(most=1000))
    front.set(mode="off")
    assert len(front.keeper.store.events(most=1000)) == before


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ({"policy": {"mode": "fixed"}, "why": "x"}, "mode: fixed"),
        ({"policy": {"mode": "fixed", "share": 2}, "why": "x"}, "less than or equal to 1"),
        ({"policy": {"mode": "of"}, "why": "x"}, "policy.mode"),
        ({"policy": {"mode": "off"}}, "why: must say why"),
        ({"policy": {"mode": "off"}, "why": " "}, "why: must say why"),
        (["x"], "must be a JSON object"),
    ],
)
def test_a_wrong_change_is_refused_with_its_rule(said: Any, rule: str, front: Switch) -> None:
    status, answer = front.admin("POST", "/admin/policy", said)
    assert status == 400
    assert rule in answer["error"]["message"]


def test_the_admin_api_needs_a_token_and_is_not_on_the_public_port(
    arms: dict[str, Engine], folder: Path
) -> None:
    with switch(folder / "tokens") as one:
        assert one.admin("GET", "/admin/state", token="sk-switch-" + "cd" * 32)[0] == 401
        assert one.admin("POST", "/admin/pause", {"why": "x"}, token="")[0] == 401
        assert ask(one.admin_port, method="GET", path="/metrics").status == 401
        for path in ("/admin/state", "/metrics", "/orchestrator/facts", "/v1/load_lora_adapter"):
            assert ask(one.port, method="GET", path=path).status == 404
        statuses = {one.admin("GET", "/admin/state", token=f"{n:064x}")[0] for n in range(40)}
        assert statuses == {401, 429}
        assert one.admin("GET", "/admin/state")[0] == 200, "a right token is let in all the same"


def test_a_token_is_made_once_and_only_its_owner_can_read_it(folder: Path) -> None:
    config = config_for(folder / "made")
    Path(config.state).mkdir()

    first, again = operators_of(config), operators_of(config)

    path = Path(config.state) / TOKEN_FILE
    assert first == again == [("operator", key_hash(path.read_text().strip()))]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_settings_verdict_and_log_outlive_the_switch(arms: dict[str, Engine], folder: Path) -> None:
    place = folder / "again"
    guard = Ordered()
    with switch(place, guard) as one:
        one.set(mode="ramp", ramp={"steps": [0.1, 1.0], "hold_s": 0.2})
        wait_for(lambda: one.keeper.verdict.share == 1.0)
        one.admin("POST", "/admin/pause", {"why": "lunch"})
        wait_for(lambda: one.keeper.verdict.paused)
        events = one.keeper.store.events()
    # The state folder is all that a new switch has; the file's policy does not come back.
    with switch(place, policy={"mode": "off"}) as two:
        state = two.admin("GET", "/admin/state")[1]
        assert two.keeper.store.events()[: len(events)] == events
        assert state["settings"]["paused"] and state["settings"]["why"] == "lunch"
        assert state["ramp"]["step"] == 1
        assert ask(two.port, question()).arm == "baseline"
        two.admin("POST", "/admin/resume", {"why": "back"})
        wait_for(lambda: two.keeper.verdict.share == 1.0)
        wait_for(lambda: ask(two.port, question()).arm == "speculative")


def test_the_log_is_only_added_to(folder: Path) -> None:
    store = SwitchStore(folder / "log")
    store.note("fallback", "because", {"n": 1}, at_s=1.0)
    direct = sqlite3.connect(folder / "log" / "switch.db")
    for order in ("DELETE FROM audit", "UPDATE audit SET who = 'nobody'"):
        with pytest.raises(sqlite3.IntegrityError, match="only added to"):
            direct.execute(order)
    direct.close()
    store.close()
    assert stat.S_IMODE((folder / "log" / "switch.db").stat().st_mode) == 0o600


def test_two_replicas_and_one_keeper_agree(arms: dict[str, Engine], folder: Path) -> None:
    with switch(folder / "two", replicas=2) as one:
        other = Board(one.config)
        other.name = "other"
        names = [f"user-{n}" for n in range(300)]
        for share in (0.3, 0.0, 1.0):
            one.set(mode="fixed", share=share)
            other._look()
            assert other.settings == one.board.settings
            assert other.standing() == one.board.standing()
        other.callers = 5
        other._tell()
        wait_for(lambda: one.keeper.state()["load"]["in_flight"] == 5)
        assert names
        other.store.close()


def test_a_breach_turns_everybody_to_the_baseline_with_its_evidence(
    arms: dict[str, Engine], folder: Path
) -> None:
    guard = Ordered()
    with switch(folder / "breach", guard) as one:
        wait_for(lambda: ask(one.port, question(stream=True)).arm == "speculative")
        wait_for(lambda: any(seen.arm == "speculative" for seen in guard.seen))
        reason = Breach(1.0, "acceptance", "acceptance is 0.1, the floor 0.4", "code", {"low": 0.1})
        guard.view = GuardView("breached", False, (reason,))
        took_s = wait_for(lambda: ask(one.port, question()).arm == "baseline")
        state = one.admin("GET", "/admin/state")[1]
        events = {event.what: event for event in one.keeper.store.events()}
        page = ask(
            one.admin_port,
            method="GET",
            path="/metrics",
            headers={"Authorization": "Bearer sk-switch-" + "ab" * 32},
        ).body.decode()

    assert took_s < 2
    assert state["closed_by"] == ["guard"]
    assert events["guard_breached"].why == reason.text
    assert events["guard_breached"].evidence["reasons"][0]["evidence"] == {"low": 0.1}  # type: ignore[index]
    assert events["fallback"].evidence["share_before"] == 1.0
    assert 'switch_closed_by{by="guard"} 1.0' in page
    assert "switch_share 0.0" in page
    assert 'switch_arm_up{arm="baseline"} 1.0' in page


def test_what_is_observed_of_a_stream(arms: dict[str, Engine], folder: Path) -> None:
    guard = Ordered()
    with switch(folder / "seen", guard, tenants=[]) as one:
        wait_for(lambda: one.board.standing().share == 1.0)
        ask(one.port, question(stream=True), headers={"X-Prompt-Category": "code"})
        ask(one.port, question("unary"))
        ask(one.port, question(temperature=-1))
        wait_for(lambda: len([s for s in guard.seen if s.e2e_s or s.error]) >= 2)
        stream, whole = [seen for seen in guard.seen if seen.e2e_s is not None][:2]

    assert (stream.arm, stream.category, stream.output_tokens) == ("speculative", "code", 8)
    assert stream.ttft_s is not None and stream.tpot_s is not None
    assert 0 < stream.ttft_s <= stream.e2e_s  # type: ignore[operator]
    assert (whole.ttft_s, whole.tpot_s, whole.output_tokens) == (None, None, 8)
    assert all(seen.error is None for seen in guard.seen), "a caller's own fault is no error"


def test_the_engines_counters_become_observations(arms: dict[str, Engine], folder: Path) -> None:
    """The simulated engine does not tell drafts per request, so its counters are read."""
    guard = Ordered()
    keeper = Keeper(config_for(folder / "counters"), guard)
    from orchestrator.adapters.http.prometheus import read_page

    def read() -> None:
        page = ask(folder / "speculative.sock", method="GET", path="/metrics").body.decode()
        keeper._count(read_page(page, at_unix_s=10.0))

    read()
    ask(folder / "speculative.sock", question(max_tokens=30, ignore_eos=True))
    read()
    keeper.judge()
    keeper.store.close()

    (seen,) = guard.seen
    assert (seen.arm, seen.e2e_s) == ("speculative", None)
    assert seen.drafts and seen.draft_tokens == 3 * seen.drafts
    assert seen.accepted_tokens is not None and 0 <= seen.accepted_tokens <= seen.draft_tokens


def test_unwatched_means_baseline(arms: dict[str, Engine], folder: Path) -> None:
    health = {"period_s": 0.8, "keeper_silent_s": 0.4}
    with switch(folder / "unwatched", health=health) as one:
        wait_for(lambda: ask(one.port, question()).arm == "speculative")
        one._judge = lambda: None  # type: ignore[method-assign]
        judge, one.keeper.judge = one.keeper.judge, lambda: one.keeper.verdict  # type: ignore[method-assign]
        wait_for(lambda: ask(one.port, question()).arm == "baseline")
        one.keeper.judge = judge  # type: ignore[method-assign]
        wait_for(lambda: ask(one.port, question()).arm == "speculative")


def test_a_state_folder_that_cannot_be_used_says_what_to_do() -> None:
    with TemporaryDirectory() as name:
        (Path(name) / "switch.db").write_text("this is no database at all, and long enough")
        with pytest.raises(StoreError, match="cannot be opened"):
            SwitchStore(Path(name))


def test_records_hold_no_text_unless_told_to(arms: dict[str, Engine], folder: Path) -> None:
    for texts in (False, True):
        place = folder / f"records-{texts}"
        with switch(place, records={"texts": texts}) as one:
            ask(one.port, question("a secret"), headers={"X-Session-Id": "me"})
        lines = [
            json.loads(line)
            for path in (place / "requests").glob("*.jsonl")
            for line in path.read_text().splitlines()
        ]
        assert len(lines) == 1
        assert lines[0]["output_tokens"] == 8 and lines[0]["status"] == 200
        assert ("a secret" in json.dumps(lines)) == texts


def test_the_verb_steers_a_switch(
    front: Switch, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    token = tmp_path / "token"
    token.write_text(OPERATOR + "\n")

    def run(*words: str) -> str:
        where = ["--admin", f"http://127.0.0.1:{front.admin_port}", "--token-file", str(token)]
        assert verb.run(parser.parse_args([words[0], *where, *words[1:]])) == 0
        return capsys.readouterr().out

    version = run("set", "--share", "0.25", "--why", "by hand").split()[-1]
    wait_for(lambda: front.keeper.verdict.settings == int(version))
    status = run("status")
    assert "25% of callers" in status
    assert f"version {version}, by olga: by hand" in status
    assert json.loads(run("status", "--json"))["share"] == 0.25
    run("pause", "--why", "lunch")
    wait_for(lambda: front.keeper.verdict.paused)
    assert "held at 0 by: paused" in run("status")
    run("resume", "--why", "back")
    lines = run("history", "--most", "20").splitlines()
    assert [line.split()[3] for line in lines if "olga" in line][-3:] == [
        "policy",
        "pause",
        "resume",
    ]

    token.write_text("sk-switch-" + "0" * 64)
    with pytest.raises(SpecError, match="operator's token"):
        run("status")
    with pytest.raises(SwitchUnreachable, match="does not answer"):
        SwitchClient("http://127.0.0.1:9", "x").get("/admin/state")
    with pytest.raises(SpecError, match="--token-file"):
        token_of(None, None)
