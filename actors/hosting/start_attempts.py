"""Attempts to start a Ray on this machine, each with more patience than the attempt before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import ray
import structlog

from actors.telemetry.machine_load import machine_load
from actors.telemetry.text import first_line
from state.errors import RayNotStartedError

PATIENCE_S = (60.0, 120.0, 240.0)
"""Seconds that each of Ray's servers has in the first attempt, in the second, and in the third."""
_SERVERS = frozenset({"gcs_server", "raylet"})
_END_S = 10.0
_FATAL = " C "
_log = structlog.get_logger(actor="run")


def start_with_patience(start: Callable[[float], None], patience_s: Sequence[float] = PATIENCE_S) -> None:
    """Starts a Ray; tries again after an attempt that failed on a machine that may only have been too busy.

    Args:
        start: an attempt; takes the seconds that each of Ray's servers has.
        patience_s: of the attempts.

    Raises:
        RayNotStartedError: the last attempt failed.
        ValueError, TypeError, ImportError, OSError: of the first attempt; a further attempt would fail, too.
    """
    for number, each_s in enumerate(patience_s, 1):
        earlier = _servers()
        try:
            start(each_s)
            return
        except (ValueError, TypeError, ImportError):
            _end(earlier)
            raise
        except Exception as error:  # Ray raises this very class, and no narrower one
            reason, machine = f"{first_line(error)}{_end(earlier)}", machine_load()
            if isinstance(error, OSError) and not isinstance(error, TimeoutError | ConnectionError):
                raise
            if number == len(patience_s):
                raise RayNotStartedError(
                    f"Ray did not start on this machine in {number} attempts ({machine}): {reason}; end other "
                    "processes, give this one more processors, or start Ray before the run, by ray start --head and "
                    'RAY_ADDRESS="auto"'
                ) from error
            _log.warning("Ray did not start, and is started again", attempt=number, reason=reason, machine=machine)
        except BaseException:
            _end(earlier)
            raise


def _servers() -> set[psutil.Process]:
    """Ray's servers that this process has started."""
    servers = set()
    for each in psutil.Process().children():
        with suppress(psutil.Error):  # one that ends just now
            if each.name() in _SERVERS:
                servers.add(each)
    return servers


def _end(earlier: set[psutil.Process]) -> str:
    """Ends the processes of a failed attempt.  Returns what its logs say, for a message.

    Args:
        earlier: the servers from before the attempt.
    """
    started = _servers() - earlier
    logs = next((log for each in started if (log := _log_directory(each)) is not None), None)
    ray.shutdown()
    for each in started:
        with suppress(psutil.Error):
            each.kill()
    psutil.wait_procs(list(started), _END_S)
    return "" if logs is None else f"; Ray's logs are in {logs}{_last_words(logs)}"


def _log_directory(server: psutil.Process) -> Path | None:
    with suppress(psutil.Error):
        for each in server.cmdline():
            name, _, value = each.partition("=")
            if name == "--log_dir":
                return Path(value)
    return None


def _last_words(logs: Path) -> str:
    """Why the raylet has ended, in its own words; empty if it has not."""
    with suppress(OSError):
        for line in (logs / "raylet.err").read_text(errors="replace").splitlines():
            if _FATAL in line:
                return f" ({line.rpartition('Check failed: ')[2].strip()})"
    return ""
