"""The signals that end a run in the foreground: the first after a last epoch, the second at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from tests.cases import few
from tests.repository import REPOSITORY

# What a run does between its start and its stop does not matter to who waits for it.
_PROGRAM = """
import signal, sys, threading
from actors.telemetry.logging import configure_default
from slackwater.running.foreground import run_in_foreground

configure_default()

class Endless:
    _news = 0
    def __init__(self):
        signal.signal(signal.SIGUSR1, lambda *_: print("heard", flush=True))
        try:
            print("starting", flush=True)
            if sys.argv[1] == "slow":
                sys.stdin.readline()
                return
            if sys.argv[1] in ("start", "stuck"): threading.Event().wait()
        finally:
            print("root given back", flush=True)
            if sys.argv[1] == "stuck": threading.Event().wait()
    def _abandon(self): return "begun" in sys.argv
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def _wait_since_start(self, until, timeout_s):
        print("waiting", flush=True)
        return threading.Event().wait(timeout_s)
    def status(self): return None
    def stop(self):
        print("last epoch", flush=True)
        if "hangs" in sys.argv: threading.Event().wait()
        return "report"

print(run_in_foreground(Endless, None), flush=True)
"""


def started(*arguments: str, line: str = "waiting") -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    while process.stdout.readline() != f"{line}\n":
        assert process.poll() is None
    return process


@pytest.mark.parametrize("number", few([signal.SIGINT, signal.SIGTERM], "SIGTERM"))
def test_a_signal_is_a_graceful_stop(number: signal.Signals) -> None:
    process = started("")
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out.splitlines()[-2:]) == (0, ["last epoch", "report"])
    assert f"signal={number.name}" in err and "Traceback" not in err


@pytest.mark.parametrize("where", few(["start", "stuck", "begun"], "begun"))
def test_a_signal_during_the_start_ends_the_process_at_once_and_says_so(where: str) -> None:
    process = started(where, line="waiting" if where == "begun" else "starting")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "error: interrupted during the start; no epoch was committed"
    assert "last epoch" not in out and "Traceback" not in err
    assert ("root given back" in out) == (where != "begun")


def test_a_signal_that_the_program_handles_itself_does_not_end_the_start() -> None:
    process = started("slow", line="starting")
    process.send_signal(signal.SIGUSR1)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=4)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    while process.stdout.readline() != "waiting\n":
        assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err


def test_a_second_signal_ends_the_process_at_once() -> None:
    process = started("hangs")
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    while process.stdout.readline() != "last epoch\n":
        pass
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.splitlines()[-1].startswith("error: interrupted; committed epochs are kept")


def test_outside_of_the_main_thread_signals_stay_whose_they_were() -> None:
    from slackwater.running.foreground import run_in_foreground

    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    class Over:
        _news = 0

        def __enter__(self) -> Over:
            return self

        def __exit__(self, *_: object) -> None: ...

        def _wait_since_start(self, until: str | None, timeout_s: float) -> bool:
            seen.append(signal.getsignal(signal.SIGTERM))
            return True

        def status(self) -> None: ...

        def _complete_publications(self) -> None: ...

        def stop(self) -> str:
            return "report"

    thread = threading.Thread(target=lambda: seen.append(run_in_foreground(Over, "caught_up")))  # type: ignore[arg-type]
    thread.start()
    thread.join(30)
    assert seen == [before, "report"]
