"""`slackwater doctor`: problems of a machine, a store or a pipeline, each with its remedy."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from slackwater.cli.application import command
from slackwater.cli.options import Json, StorageOptions, storage_options
from slackwater.cli.terminal.edge import error_line
from slackwater.cli.terminal.output import Output
from slackwater.cli.terminal.safe_console import SafeConsole
from state.clock import SystemClock
from state.location import Location

if TYPE_CHECKING:
    from slackwater.pipeline import Pipeline
    from slackwater.plugins.doctor.finding import Finding

_OF_A_PIPELINE = re.compile(r"\.py:\w+$")


@command()
def doctor(
    root: Annotated[str | None, typer.Argument(help="a root, or APP.py:PIPELINE as by --app")] = None,
    target: Annotated[
        str | None,
        typer.Option("--app", metavar="APP:PIPELINE", help="a pipeline; its sources and its root are checked"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="start neither Ray nor Spark")] = False,
    option: StorageOptions = None,
    json: Json = False,
) -> None:
    """Check a machine, a root and a pipeline.  Exit code 0: no errors; warnings do not count.

    Prints a remedy for each problem.  Checks Python packages, Java, memory, disks, Ray, Spark, the root, and the
    sources of --app.  It writes one object into the root and deletes it.
    """
    options = storage_options(option)
    if root is not None and target is None and _OF_A_PIPELINE.search(root):
        root, target = None, root
    from actors.telemetry.logging import configure
    from slackwater.plugins.doctor.examination import checks_for, examine
    from slackwater.plugins.doctor.finding import State

    configure("error")
    place = None if root is None else Location(root, options)
    pipeline, findings = _loaded(target)
    checks = checks_for(place, pipeline, quick=quick, clock=SystemClock())
    with SafeConsole(stderr=True).status("checking, with Ray and Spark" if not quick else "checking"):
        findings += examine(checks)
    _print(findings, Output(json))
    if any(finding.state is State.WRONG for finding in findings):
        sys.exit(1)


def _loaded(target: str | None) -> tuple[Pipeline | None, list[Finding]]:
    """The pipeline, or the problem that prevents loading it."""
    if target is None:
        return None, []
    from slackwater.cli.target import load_pipeline
    from slackwater.plugins.doctor.finding import Finding

    try:
        return load_pipeline(target), [Finding.ok("application", f"{target} can be loaded")]
    except Exception as error:
        return None, [Finding.wrong("application", error_line(error), f"correct {target} or its imports")]


def _print(findings: Sequence[Finding], output: Output) -> None:
    from slackwater.plugins.doctor.finding import State

    if output.json:
        document = [{**asdict(finding), "state": finding.state.value} for finding in findings]
        output.document({"ok": all(each.state is not State.WRONG for each in findings), "findings": document})
        return
    rows = [
        {"check": each.name, "state": each.state.value, "found": each.found, "what to do": each.remedy}
        for each in findings
    ]
    output.rows(rows, ["check", "state", "found", "what to do"])
