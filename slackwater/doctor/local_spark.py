"""Whether Spark starts."""

from __future__ import annotations

from collections.abc import Iterator

from slackwater.doctor.finding import Finding
from slackwater.doctor.probe import ProbeFailedError, run_probe

_START_S = 120.0


class LocalSparkCheck:
    """Starts a Spark in one JVM, in a process of its own, and runs a job."""

    name = "spark"

    def findings(self) -> Iterator[Finding]:
        try:
            found = run_probe("slackwater.doctor.spark_probe", timeout_s=_START_S)
        except ProbeFailedError as error:
            yield Finding.wrong(self.name, f"it does not start: {error}", "mend java, packages and memory first")
            return
        yield Finding.ok(
            self.name, f"Spark {found['version']}: a job ran in a local session, after {found['seconds']:,.0f} s"
        )
