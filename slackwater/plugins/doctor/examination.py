"""Examination: the choice of the checks, and their run side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from actors.telemetry.logging import redact
from slackwater.plugins.doctor.access import SourceAccessCheck, StoreAccessCheck
from slackwater.plugins.doctor.finding import Check, Finding
from slackwater.plugins.doctor.java_and_spark import JavaCheck, LocalSparkCheck
from slackwater.plugins.doctor.machine import DiskSpaceCheck, MachineCheck
from slackwater.plugins.doctor.packages import PackagesCheck
from slackwater.plugins.doctor.ray_cluster import RayCheck
from slackwater.plugins.doctor.ray_token import RayTokenCheck
from slackwater.settings import RaySettings
from state.clock import Clock
from state.errors import SlackwaterError
from state.location import Location

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline


def checks_for(root: Location | None, pipeline: Pipeline | None, *, quick: bool, clock: Clock) -> tuple[Check, ...]:
    """The checks of this machine, of a root, and of a pipeline.

    Args:
        root: the root to check; None takes the root of the pipeline.
        pipeline: the pipeline whose sources and settings are checked; None for none.
        quick: True starts neither Ray nor Spark.
        clock: the clock to compare with the store's.
    """
    settings = RaySettings() if pipeline is None else pipeline.settings.ray
    place = pipeline.root if root is None and pipeline is not None else root
    checks: list[Check] = [PackagesCheck(), JavaCheck(), MachineCheck(), DiskSpaceCheck(place), RayTokenCheck()]
    if not quick:
        checks += [RayCheck(settings), LocalSparkCheck()]
    if place is not None:
        checks.append(StoreAccessCheck(place, clock))
    if pipeline is not None:
        checks += [
            SourceAccessCheck(source, pipeline.root, clock)
            for source in pipeline.sources.values()
            if source.table != "frame"
        ]
    return tuple(checks)


def examine(checks: Sequence[Check]) -> Iterator[Finding]:
    """Yields the findings in the order of the checks, each as soon as it is known."""
    with ThreadPoolExecutor(len(checks) or 1, thread_name_prefix="doctor") as threads:
        for found in threads.map(_found, checks):
            yield from found


def _found(check: Check) -> list[Finding]:
    try:
        return [_redacted(finding) for finding in check.findings()]
    except Exception as error:
        kind = "" if isinstance(error, SlackwaterError) else f"{type(error).__name__}: "
        said = " ".join(str(error).split())
        failed = Finding.wrong(
            check.name, f"the check itself failed: {kind}{said}", "fix the named cause, and try again"
        )
        return [_redacted(failed)]


def _redacted(finding: Finding) -> Finding:
    return replace(finding, found=redact(finding.found), remedy=redact(finding.remedy))
