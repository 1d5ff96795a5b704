"""Files after the commit on the screens: `slackwater status`, and the display of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.output import Output
from slackwater.status.text import counted

if TYPE_CHECKING:
    from slackwater.status.run_status import AfterCommitStatus

_COLUMNS = ("source", "action", "handled", "left", "failed")


class RootFilesAfterCommit:
    """The sources whose files are handled after the commit, by the last status of the run."""

    def __init__(self, facts: RootFacts) -> None:
        self._files = () if facts.run is None else facts.run.after_commit

    def document(self) -> Mapping[str, Any]:
        return {"after_commit": [asdict(each) for each in self._files]}

    def show(self, output: Output) -> None:
        if self._files:
            rows = [asdict(each) for each in self._files]
            output.rows(rows, _COLUMNS, title="files after the commit, since the last start")
            waiting = [f"source {each.source}: files wait: {each.waits_for}" for each in self._files if each.waits_for]
            for line in (*waiting, *after_commit_lines(self._files)):
                output.text(line)


def after_commit_lines(files: Sequence[AfterCommitStatus]) -> list[str]:
    """A line for each source whose files the store refuses to delete, move or tag."""
    return [_said(each, each.error) for each in files if each.error is not None]


def _said(files: AfterCommitStatus, error: str) -> str:
    number = f"{counted(files.failed, 'file')}: " if files.failed else ""
    return f"source {files.source}, {files.action}: {number}{' '.join(error.split())}; it is tried again"
