"""Runs a soak: offers the load, closes windows, lets things go wrong, keeps what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.errors import ClientFailed, DeploymentError, StoreError
from orchestrator.ports import NO_LOAD, Endpoint, LoadStream, OfferedLoad
from orchestrator.records import ARMS, Arm, FailureClass
from orchestrator.run.soak.controls import flushed
from orchestrator.run.soak.events import Recent, row_of
from orchestrator.run.soak.incidents import Incidents
from orchestrator.run.soak.profile import Profile
from orchestrator.run.soak.state import SoakState, state_of
from orchestrator.run.soak.tools import SoakKeeper, SoakTools
from orchestrator.run.soak.watch import Instruments, OpenWindow
from orchestrator.run.soak.window import Latencies
from orchestrator.run.suites.after_case import warm_up
from orchestrator.run.suites.record import SuiteRecord
from orchestrator.run.suites.suite import Bench

TICK_S = 5.0
DEAD_S = 3.0
"""An arm of which every request has failed for so long is asked for its health …"""
SILENT_S = 10.0
"""… and one of which none has ended for so long, too: a gateway may hold what it cannot hand on."""
DRAIN_S = 60.0
SETTLE_S = 5.0
"""After a control, before its windows count."""


class Conductor:
    """One run of a soak, or what is left of it."""

    def __init__(
        self, bench: Bench, tools: SoakTools, keeper: SoakKeeper, settings: Mapping[str, Any]
    ) -> None:
        if tools.in_turn:
            raise DeploymentError(
                FailureClass.BAD_CONFIGURATION,
                "a soak loads both arms side by side, and here they take turns on one device "
                "(placement.strategy: in_turn); use separate, or shared",
            )
        self._bench, self._tools, self._keeper = bench, tools, keeper
        self._settings = settings
        self._state: SoakState = state_of(settings, keeper.earlier())
        self._profile = Profile(settings)
        self._injector = tools.faults()
        self._recent = Recent()
        self._totals = {arm: Latencies() for arm in ARMS}
        self._failing_since: dict[Arm, float | None] = dict.fromkeys(ARMS)
        self._heard_s: dict[Arm, float] = dict.fromkeys(ARMS, 0.0)
        self._kept_s = 0.0
        self._offered: OfferedLoad | None = None
        self._stream: LoadStream
        self._offset_s = 0.0
        self._simulated = False
        self._incidents = Incidents(
            bench,
            tools.requests,
            self._injector,
            self._profile,
            self._state,
            self._recent,
            self._now_s,
        )

    def run(self) -> SuiteRecord:
        """Raises: StoreError when the end cannot be recorded; KeyboardInterrupt, once what there
        is has been kept."""
        complete = False
        try:
            self._open()
            try:
                self._soak()
                self._controls()
            finally:
                self._leave()
            complete = True
        except DeploymentError as error:
            self._note(f"it ended early: {error.cause}")
        except ClientFailed as error:
            self._note(f"it ended early: {error}")
        except KeyboardInterrupt:
            self._checkpoint()
            raise
        finally:
            self._injector.close()
        return self._record(complete=complete)

    def _open(self) -> None:
        for arm in ARMS:
            self._bench.say(f"soak: warming up {arm}")
            warm_up(self._bench, arm)
        self._simulated = any(self._bench.subjects.endpoint(arm).simulated for arm in ARMS)
        self._state.sessions += 1
        self._stream = self._tools.open_stream(
            {arm: self._way_to(arm) for arm in ARMS},
            self._tools.requests,
            first_index=self._state.next_index,
            timeouts=self._tools.timeouts,
        )
        self._offset_s = self._state.elapsed_s - self._stream.now_s()
        self._heard_s = dict.fromkeys(ARMS, self._now_s())
        self._window = self._new_window()

    def _leave(self) -> None:
        """However it ended: the load stops, and what this session saw is summed up."""
        self._window.abandon()
        self._incidents.end(self._now_s())
        self._state.next_index = max(self._state.next_index, self._stream.next_index())
        self._stream.close()
        self._state.totals.append({arm: self._totals[arm].quantiles() for arm in ARMS})

    def _soak(self) -> None:
        duration_s = float(self._settings["duration"])
        while self._now_s() < duration_s:
            self._tick("soak", duration_s)
        if self._now_s() - self._window.began_s >= self._settings["window_s"] / 2:
            self._close_window("soak")
        self._incidents.end(self._now_s())

    def _controls(self) -> None:
        state, control_s = self._state, float(self._settings["control_s"])
        for control, phase in (("flush", "flushed"), ("restart", "restarted")):
            done = any(row["phase"] == phase for row in state.windows)
            if not self._settings[f"{control}_control"] or done:
                continue
            self._bench.say(f"soak: {control} control")
            self._quiet()
            why = flushed(self._bench) if control == "flush" else self._restart_both()
            if why is not None:
                state.unavailable[control] = why
                continue
            self._stretch(None, SETTLE_S)
            self._window = self._new_window()
            self._stretch(phase, control_s)
            self._checkpoint()

    def _stretch(self, phase: str | None, seconds: float) -> None:
        until_s = self._now_s() + seconds
        while self._now_s() < until_s:
            self._tick(phase, until_s)

    def _tick(self, phase: str | None, until_s: float) -> None:
        """A few seconds of load. Without a phase nothing of it is kept."""
        now_s = self._now_s()
        if phase == "soak":
            self._incidents.due(now_s, self._window)
            now_s = self._now_s()
        base = self._profile.at(now_s if phase == "soak" else 0.0)
        if base != self._offered:
            self._stream.offer(base)
            self._offered = base
        ends = [now_s + TICK_S, until_s]
        if phase is not None:
            ends.append(self._window.began_s + self._settings["window_s"])
        if phase == "soak":
            ends.append(self._incidents.next_s(now_s))
        end_s = max(now_s + 0.01, min(ends))
        seen = self._stream.run_until(end_s - self._offset_s)
        now_s, before_s = self._now_s(), now_s
        for arm in ARMS:
            records = seen.get(arm, ())
            self._window.add(arm, records, self._totals[arm])
            rows = [row for one in records if (row := row_of(one, self._offset_s)) is not None]
            self._recent.add(arm, rows)
            self._incidents.add(arm, rows)
            if rows:
                failed = all(row[4] is not None for row in rows)
                since = self._failing_since[arm]
                self._failing_since[arm] = (since or before_s) if failed else None
                self._heard_s[arm] = now_s
        self._window.passed(now_s - before_s, base.level)
        self._revive(now_s)
        if phase is not None and now_s >= self._window.began_s + self._settings["window_s"] - 0.01:
            self._close_window(phase)

    def _revive(self, now_s: float) -> None:
        """Starts dead engines again, once no fault is meant to hold them down."""
        suspects = [
            arm
            for arm, since in self._failing_since.items()
            if (since is not None and now_s - since >= DEAD_S)
            or now_s - self._heard_s[arm] >= SILENT_S
        ]
        if not suspects or self._incidents.holds:
            return
        for arm in suspects:
            self._heard_s[arm] = now_s  # not asked again at once
        dead = [arm for arm in ARMS if not self._bench.subjects.healthy(arm)]
        if not dead:
            return
        if not self._tools.can_restart:
            for arm in dead:
                self._failing_since[arm] = now_s  # asked again in a while: its owner may start it
                if not self._incidents.died(arm):
                    self._note(f"the attached {arm} server did not answer for a while")
            return
        self._bench.say(f"soak: {' and '.join(dead)} died; starting again")
        self._window.abandon()
        # One lease holds both: whatever is dead is started, at the same time.
        self._bench.subjects.restart(dead[0])
        for arm in dead:
            warm_up(self._bench, arm)
            self._state.life[arm] += 1
            self._failing_since[arm] = None
            self._heard_s[arm] = self._now_s()
            if not self._incidents.died(arm):
                self._note(f"the {arm} engine died after {self._now_s() / 60:.3g} min")
        self._redirect()
        self._window = self._new_window()
        self._window.fault = True

    def _restart_both(self) -> str | None:
        """Why it cannot be done; None: it was."""
        if not self._tools.can_restart:
            return "servers that somebody else started are not restarted from here"
        try:
            for arm in ARMS:
                self._bench.subjects.restart(arm)
                warm_up(self._bench, arm)
                self._state.life[arm] += 1
        except DeploymentError as error:
            return error.cause
        self._redirect()
        return None

    def _redirect(self) -> None:
        for arm in ARMS:
            self._stream.redirect(arm, self._way_to(arm))

    def _quiet(self) -> None:
        """Until nothing is in flight, as far as that comes soon."""
        self._window.abandon()
        self._stream.offer(NO_LOAD)
        self._offered = NO_LOAD
        until_s = self._stream.now_s() + DRAIN_S
        while self._stream.now_s() < until_s:
            self._stream.run_until(self._stream.now_s() + 1.0)
            if not self._stream.in_flight():
                return

    def _close_window(self, phase: str) -> None:
        now_s = self._now_s()
        window, state = self._window, self._state
        row = window.close(now_s, phase, state.life)
        state.windows.append(row)
        if phase == "soak":
            state.elapsed_s = min(now_s, float(self._settings["duration"]))
        state.next_index = max(state.next_index, self._stream.next_index())
        try:
            for arm in ARMS:
                self._keeper.raw(len(state.windows), arm, window.samples[arm].records())
        except StoreError as error:
            self._not_kept(error)
        self._say(row)
        if now_s - self._kept_s >= self._settings["checkpoint"]:
            self._kept_s = now_s
            self._checkpoint()
        self._window = self._new_window()

    def _checkpoint(self) -> None:
        """A full disk does not end a soak: what is not written now is written the next time."""
        try:
            self._keeper.checkpoint(self._record(complete=False))
        except StoreError as error:
            self._not_kept(error)

    def _not_kept(self, error: StoreError) -> None:
        self._note(f"a checkpoint could not be written: {error}")

    def _note(self, text: str) -> None:
        if text not in self._state.notes:
            self._state.notes.append(text)

    def _record(self, *, complete: bool) -> SuiteRecord:
        extra = {"soak": self._state.as_plain()}
        record = self._bench.record(
            "soak", complete=complete, notes=tuple(self._state.notes), extra=extra
        )
        return replace(record, simulated=self._simulated)

    def _say(self, row: Mapping[str, Any]) -> None:
        duration_s = float(self._settings["duration"])
        parts = [f"soak: {self._state.elapsed_s / 60:.3g} of {duration_s / 60:.3g} min"]
        for arm in ARMS:
            figures = row["arms"][arm]
            speed = figures.get("output_tok_per_s")
            failed = figures.get("errors", 0.0)
            text = "no tokens" if speed is None else f"{speed:.3g} tok/s"
            parts.append(f"{arm} {text}" + (f", {failed:.0f} failed" if failed else ""))
        self._bench.say(" · ".join(parts))

    def _new_window(self) -> OpenWindow:
        instruments = Instruments(
            self._bench.subjects.endpoint, self._bench.probe, self._tools.telemetry
        )
        return OpenWindow(instruments, self._now_s())

    def _way_to(self, arm: Arm) -> Endpoint:
        kinds = [fault["kind"] for fault in self._settings["faults"]]
        return self._injector.way_to(arm, self._bench.subjects.endpoint(arm), kinds)

    def _now_s(self) -> float:
        return self._stream.now_s() + self._offset_s
