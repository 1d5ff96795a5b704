"""`slackwater doctor`: what is wrong with a machine or a store, and how to mend it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from slackwater.cli.options import Debug, Json, StorageOptions, storage_options
from slackwater.terminal.edge import error_line, reports_errors
from slackwater.terminal.output import Output
from state.clock import SystemClock
from state.location import Location

if TYPE_CHECKING:
    from slackwater.doctor.finding import Finding
    from slackwater.pipeline import Pipeline

diagnosis = typer.Typer()


@diagnosis.command()
@reports_errors
def doctor(
    root: Annotated[str | None, typer.Argument(help="a root to look at, too; by default that of --app")] = None,
    target: Annotated[
        str | None,
        typer.Option("--app", metavar="APP:PIPELINE", help="a pipeline, to look at its sources and root"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="start neither Ray nor Spark")] = False,
    option: StorageOptions = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Is everything here that a run needs?  Exit code 0: nothing is wrong; warnings do not count.

    Looks at Python's packages, Java, memory, disks, Ray, Spark, and, where they are named, a root and the sources of a
    pipeline.  In the root one object is written and deleted again.
    """
    options = storage_options(option)
    from actors.telemetry.logging import configure
    from slackwater.doctor.examination import checks_for, examine
    from slackwater.doctor.finding import State

    configure("error")
    place = None if root is None else Location(root, options)
    pipeline, findings = _loaded(target)
    checks = checks_for(place, pipeline, quick=quick, clock=SystemClock())
    with Console(stderr=True).status("Ray and Spark are tried" if not quick else "looking"):
        findings += examine(checks)
    _print(findings, Output(json))
    if any(finding.state is State.WRONG for finding in findings):
        sys.exit(1)


def _loaded(target: str | None) -> tuple[Pipeline | None, list[Finding]]:
    """The pipeline, or what is wrong with it."""
    if target is None:
        return None, []
    from slackwater.cli.target import load_pipeline
    from slackwater.doctor.finding import Finding

    try:
        return load_pipeline(target), [Finding.ok("application", f"{target} can be loaded")]
    except Exception as error:
        return None, [Finding.wrong("application", error_line(error), f"correct {target}, or what it imports")]


def _print(findings: Sequence[Finding], output: Output) -> None:
    from slackwater.doctor.finding import State

    if output.json:
        document = [{**asdict(finding), "state": finding.state.value} for finding in findings]
        output.document({"ok": all(each.state is not State.WRONG for each in findings), "findings": document})
        return
    rows = [
        {"check": each.name, "state": each.state.value, "found": each.found, "what to do": each.remedy}
        for each in findings
    ]
    output.rows(rows, ["check", "state", "found", "what to do"])
