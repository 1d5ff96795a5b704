"""Check of Ray: a cluster on this machine starts, or the cluster at an address can be reached."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.metadata import version

from slackwater.plugins.doctor.finding import Finding
from slackwater.plugins.doctor.probe import ProbeFailedError, run_probe
from slackwater.settings import RaySettings

_GIB = 1 << 30
_START_S = 90.0
_ADDRESS_VARIABLE = "RAY_ADDRESS"


class RayCheck:
    """Connects to Ray as a run does, in a child process, and runs a task.

    Args:
        settings: the settings of Ray, with its address.
    """

    name = "ray"

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings

    def findings(self) -> Iterator[Finding]:
        address = self._settings.address or os.environ.get(_ADDRESS_VARIABLE)
        where = f"the cluster at {address}" if address else "a cluster on this machine"
        try:
            found = run_probe(
                "slackwater.plugins.doctor.ray_probe",
                self._settings.namespace,
                "fast" if self._settings.fast_start else "plain",
                *([address] if address else []),
                timeout_s=_START_S,
            )
        except ProbeFailedError as error:
            if address:
                remedy = "check the address, the network, and the versions of Python and Ray there (ray status)"
            else:
                remedy = "see memory, shared memory and ray's files; the logs are in /tmp/ray/session_latest/logs"
            yield Finding.wrong(self.name, f"{where} cannot be used: {error}", remedy)
            return
        yield Finding.ok(
            self.name,
            f"Ray {version('ray')}: a task ran on {where} (nodes: {found['nodes']:,.0f}, CPUs: {found['cpus']:,.0f}, "
            f"{found['object_store_memory'] / _GIB:,.1f} GiB for objects)",
        )
