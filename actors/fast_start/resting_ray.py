"""A Ray that rests while its run does: its own periodic work comes less often, or not at all.

By Ray's documented settings, in its system configuration and in the environment of its agent.  The checks for dead
processes and nodes, and for a full memory, keep their intervals, and so do the metrics of a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_SYSTEM_CONFIG: Mapping[str, bool | int] = {
    # Times of handlers, for Ray's own logs.
    "event_stats": False,
    # Without a dashboard the states of calls are not read.
    "task_events_report_interval_ms": 0,
    # Probes of event loops, for a metric of Ray.
    "io_context_monitor_probe_interval_ms": 10_000,
    # For other nodes, which this Ray never has.
    "gcs_pull_resource_loads_period_milliseconds": 10_000,
    "object_manager_timer_freq_ms": 1_000,
    "report_worker_backlog_interval_ms": 10_000,
    # Looks at a full object store and disk, and at idle workers: a second is soon enough.
    "raylet_check_gc_period_milliseconds": 1_000,
    "local_fs_monitor_interval_ms": 1_000,
    "kill_idle_workers_interval_ms": 1_000,
}
_AGENT_ENVIRONMENT: Mapping[str, str] = {
    # A check of the agent's event loop.
    "RAY_DASHBOARD_AGGREGATOR_AGENT_CHECK_MAIN_THREAD_LIVENESS_INTERVAL_SECONDS": "10",
    # Events for the dashboard, which is not there.
    "SCAN_EVENT_DIR_INTERVAL_SECONDS": "60",
    "EVENT_AGENT_REPORT_INTERVAL_SECONDS": "10",
    # The load of the machine, among Ray's own metrics.
    "REPORTER_UPDATE_INTERVAL_MS": "30000",
}


def resting_config() -> dict[str, bool | int]:
    """Ray's system configuration; a variable of the environment wins."""
    return {name: value for name, value in _SYSTEM_CONFIG.items() if f"RAY_{name}" not in os.environ}


@contextmanager
def resting_agent() -> Iterator[None]:
    """Within it Ray's agent starts with long intervals, unless the environment has others."""
    added = {name: value for name, value in _AGENT_ENVIRONMENT.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)
