"""Draws `run.svg`: a moment of the demo's pipeline as `slackwater run` shows it.

python docs/images/run.py
"""

from __future__ import annotations

import io
import os
import re
import tempfile
from pathlib import Path

from rich.console import Console

from slackwater.cli.display.run_display import RunDisplay
from slackwater.plugins.demo.flights import day_files
from slackwater.plugins.demo.flights_pipeline import flights
from slackwater.status.run_status import RunStatus
from state.clock import SystemClock

_WIDTH, _HEIGHT = 120, 30
_EPOCHS = 8  # the first ones wait for Spark
_PICTURE = Path(__file__).with_suffix(".svg")
# Without the fonts of another server: a picture in a page asks for nothing.
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def _moment(directory: Path) -> RunStatus:
    """The run when about half of the files are done and epochs are in flight."""
    for file in (files := list(day_files())):
        path = directory / "raw" / file.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.body)
    os.environ |= {"SLACKWATER_DEMO_RAW": str(directory / "raw"), "SLACKWATER_DEMO_ROOT": str(directory / "root")}
    with flights().start() as run:
        while True:
            status = run.status()
            done = sum(source.done for source in status.sources.values())
            phases = {epoch.phase for epoch in status.in_flight}
            if 2 * done >= len(files) and status.epochs >= _EPOCHS and "spark" in phases:
                return status
            if status.caught_up:
                return status
            SystemClock().sleep(0.05)


def main() -> None:
    """Runs the pipeline and draws it."""
    with tempfile.TemporaryDirectory() as directory:
        status = _moment(Path(directory))
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(RunDisplay("flights", "root").render(status, _WIDTH, _HEIGHT), "")
    picture = console.export_svg(title="slackwater run app.py:flights", unique_id="run")
    _PICTURE.write_text(_FONTS.sub("", picture), encoding="utf-8")


if __name__ == "__main__":
    main()
