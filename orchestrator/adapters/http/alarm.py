"""Wake-ups on a monotonic clock with microseconds, not milliseconds.

libuv and asyncio both round timers to a millisecond, which is as much as the error this product
allows itself altogether. Linux has `timerfd`; elsewhere the loop's own timer is used.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable
from typing import Protocol

_HAS_TIMERFD = sys.platform.startswith("linux")
_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = 0o4000
_TFD_CLOEXEC = 0o2000000
_TFD_TIMER_ABSTIME = 1


class Alarm(Protocol):
    """Calls back once at or after the time set last; setting again replaces it."""

    def set(self, at_s: float) -> None:
        """`at_s` on `time.monotonic()`'s clock; a time in the past fires at once."""

    def close(self) -> None: ...


def make_alarm(loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> Alarm:
    """The most precise alarm this machine has. Must be called inside the running loop."""
    return TimerFdAlarm(loop, ring) if _HAS_TIMERFD else LoopAlarm(loop, ring)


class _TimeSpec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _TimeSpec), ("value", _TimeSpec))


class TimerFdAlarm:
    """`timerfd_create(2)`; Python has it only from 3.13 on, hence ctypes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._loop, self._ring = loop, ring
        self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create failed")
        loop.add_reader(self._fd, self._readable)

    def set(self, at_s: float) -> None:
        # All zero would disarm the timer, so a time in the past becomes the first nanosecond.
        nanoseconds = max(1, round(at_s * 1e9))
        spec = _TimerSpec(_TimeSpec(0, 0), _TimeSpec(*divmod(nanoseconds, 1_000_000_000)))
        failed = self._libc.timerfd_settime(self._fd, _TFD_TIMER_ABSTIME, ctypes.byref(spec), None)
        if failed:
            raise OSError(ctypes.get_errno(), "timerfd_settime failed")

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1

    def _readable(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return  # set again between the expiry and this call
        self._ring()


class LoopAlarm:
    """The event loop's own timer: late by up to a millisecond or two."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ring: Callable[[], None]) -> None:
        self._loop, self._ring = loop, ring
        self._handle: asyncio.TimerHandle | None = None

    def set(self, at_s: float) -> None:
        self.close()
        self._handle = self._loop.call_at(at_s, self._ring)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
