"""Sampling while a block runs: what is read, that it ends, and that it survives its subjects."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from orchestrator.adapters.local.combined_telemetry import CombinedTelemetry
from orchestrator.adapters.local.process_tree import with_descendants
from orchestrator.adapters.local.sampling import SamplingRun
from orchestrator.adapters.local.telemetry import HostReader, HostTelemetry
from orchestrator.ports import Endpoint
from orchestrator.records import Sample

SPIN = "print(1, flush=True)\nwhile True: pass"
CHILD = (
    "import subprocess, sys, time\n"
    "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "print(p.pid, flush=True)\ntime.sleep(60)"
)


@pytest.fixture
def engine() -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True)
    yield process
    for pid in with_descendants([process.pid]):
        os.kill(pid, 9)
    process.wait()


def child_of(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


class TestSamplingRun:
    def test_readings_come_until_the_stop_and_none_after(self) -> None:
        three = threading.Event()
        readings: list[int] = []

        def read() -> dict[str, float]:
            readings.append(1)
            if len(readings) >= 3:
                three.set()
            return {"n": float(len(readings))}

        run = SamplingRun(read, period_s=0.005)
        assert three.wait(30)
        samples = run.stop()
        assert [sample.values["n"] for sample in samples] == [
            float(n) for n in range(1, len(samples) + 1)
        ]
        assert [sample.at_s for sample in samples] == sorted(sample.at_s for sample in samples)
        assert run.stop() == samples

    def test_a_block_shorter_than_a_period_has_one_reading(self) -> None:
        # 0.25 periods have passed at the stop; the thread still waits for the first.
        now = [100.0]
        run = SamplingRun(lambda: {"x": 1.0}, period_s=3600, clock=lambda: now[0])
        now[0] = 100.0 + 900
        assert run.stop() == (Sample(900.0, {"x": 1.0}),)

    def test_a_reading_that_breaks_is_raised_at_the_stop(self) -> None:
        broke = threading.Event()

        def read() -> dict[str, float]:
            broke.set()
            raise RuntimeError("sensor gone")

        run = SamplingRun(read, period_s=0.001)
        assert broke.wait(30)
        with pytest.raises(RuntimeError, match="sensor gone"):
            run.stop()


class TestHostReader:
    def test_without_pids_nothing_is_said_of_processes(self) -> None:
        reader = HostReader(())
        time.sleep(0.05)
        values = reader.read()
        assert values["host_memory_used_bytes"] > 0
        assert not {"process_rss_bytes", "process_cpu_fraction", "host_foreign_cpu_fraction"} & set(
            values
        )

    def test_the_engines_children_count_as_the_engine(self, engine: subprocess.Popen[str]) -> None:
        child = child_of(engine)
        assert with_descendants([engine.pid]) == {engine.pid, child}
        both, alone = HostReader([engine.pid]), HostReader([child])
        time.sleep(0.05)
        rss = [reader.read()["process_rss_bytes"] for reader in (both, alone)]
        assert rss[0] > rss[1] > 0

    def test_a_process_that_ends_is_no_error(self, engine: subprocess.Popen[str]) -> None:
        child = child_of(engine)
        reader = HostReader([engine.pid, child, 2**22 - 3])
        os.kill(child, 9)
        engine.kill()
        engine.wait()
        time.sleep(0.05)
        values = reader.read()
        assert values["process_rss_bytes"] == 0
        assert 0 <= values["process_cpu_fraction"] <= 1

    def test_work_of_the_engine_is_seen(self) -> None:
        spinner = subprocess.Popen([sys.executable, "-c", SPIN], stdout=subprocess.PIPE, text=True)
        try:
            assert spinner.stdout is not None
            spinner.stdout.readline()
            reader = HostReader([spinner.pid])
            deadline = time.monotonic() + 30
            used = 0.0
            while used == 0.0 and time.monotonic() < deadline:
                time.sleep(0.2)
                used = reader.read()["process_cpu_fraction"]
            assert 0 < used <= 1
        finally:
            spinner.kill()
            spinner.wait()

    def test_foreign_is_what_is_left_of_the_hosts_time(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Two cores for one second: 1.5 s busy of 2.0; engine 0.6, client 0.2: 0.7 cores foreign.
        import orchestrator.adapters.local.telemetry as module

        host = iter([(10.0, 100.0), (11.5, 102.0)])
        monkeypatch.setattr(module, "_host_times", lambda: next(host))
        monkeypatch.setattr(module.psutil, "cpu_count", lambda: 2)
        used = iter([0.0, 0.0, 0.6, 0.2])
        monkeypatch.setattr(HostReader, "_used_s", lambda self, processes: next(used))
        now = [5.0]
        reader = HostReader([os.getpid()], clock=lambda: now[0])
        now[0] = 6.0
        values = reader.read()
        assert values["host_cpu_fraction"] == pytest.approx(0.75)
        assert values["process_cpu_fraction"] == pytest.approx(0.3)
        assert values["host_foreign_cpu_fraction"] == pytest.approx(0.7)


def endpoint(*pids: int) -> Endpoint:
    return Endpoint("baseline", "http://127.0.0.1:1", "m", pids=pids)


class _Fixed:
    def __init__(self, *samples: Sample, breaks: bool = False) -> None:
        self.samples, self.breaks, self.stopped = samples, breaks, 0

    def start(self, endpoint: Endpoint) -> _Fixed:
        return self

    def stop(self) -> tuple[Sample, ...]:
        self.stopped += 1
        if self.breaks:
            raise RuntimeError("broke")
        return self.samples


class TestCombined:
    def test_samples_of_all_parts_in_order_of_time(self) -> None:
        one = _Fixed(Sample(0.1, {"a": 1.0}), Sample(0.3, {"a": 2.0}))
        two = _Fixed(Sample(0.2, {"b": 3.0}))
        samples = CombinedTelemetry(one, two).start(endpoint()).stop()
        assert [(sample.at_s, sample.values) for sample in samples] == [
            (0.1, {"a": 1.0}),
            (0.2, {"b": 3.0}),
            (0.3, {"a": 2.0}),
        ]

    def test_one_part_that_breaks_stops_the_others_and_is_raised(self) -> None:
        broken, sound = _Fixed(breaks=True), _Fixed()
        run = CombinedTelemetry(broken, sound).start(endpoint())
        with pytest.raises(RuntimeError, match="broke"):
            run.stop()
        assert sound.stopped == 1

    def test_a_part_that_does_not_start_stops_those_before_it(self) -> None:
        class NoStart:
            def start(self, endpoint: Endpoint) -> _Fixed:
                raise RuntimeError("no driver")

        sound = _Fixed()
        with pytest.raises(RuntimeError, match="no driver"):
            CombinedTelemetry(sound, NoStart()).start(endpoint())
        assert sound.stopped == 1


def test_host_telemetry_samples_a_live_process() -> None:
    run = HostTelemetry(period_s=0.02).start(endpoint(os.getpid()))
    time.sleep(0.1)
    samples = run.stop()
    assert samples
    for sample in samples:
        assert 0 <= sample.values["host_cpu_fraction"] <= 1
        assert sample.values["process_rss_bytes"] > 2**20


def test_what_runs_alongside_counts_with_the_client_and_its_children_do_not() -> None:
    # Named alongside, the parent alone is added: not all that descends from it.
    reader = HostReader([], alongside=[os.getppid()])
    assert os.getppid() in reader._client
    apart = HostReader([])
    assert set(reader._client) - set(apart._client) == {os.getppid()}
