"""Files after the commit on the screens: `slackwater status`, and the display of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.output import Output
from slackwater.status.text import counted
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.run_status import AfterCommitStatus

_COLUMNS = ("source", "action", "handled", "left", "failed")
_BAD = "bold red"


class RootFilesAfterCommit:
    """The sources whose files are handled after the commit, by the last status of the run."""

    def __init__(self, facts: RootFacts) -> None:
        self._rows = [] if facts.run is None else [asdict(each) for each in facts.run.after_commit]

    def document(self) -> Mapping[str, Any]:
        return {"after_commit": self._rows}

    def show(self, output: Output) -> None:
        if self._rows:
            output.rows(self._rows, _COLUMNS, title="files after the commit, since the last start")
            for line in after_commit_lines(self._rows):
                output.text(line)


def after_commit_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the files of each source wait for, and the reasons of failures.

    Args:
        rows: the fields of each `AfterCommitStatus`.
    """
    lines = [f"source {row['source']}: files wait: {row['waits_for']}" for row in rows if row["waits_for"]]
    return lines + [_said(row["source"], row["action"], row["failed"], row["error"]) for row in rows if row["error"]]


def after_commit_notes(files: Sequence[AfterCommitStatus], most: int) -> list[Text]:
    """Notes on failures on the display of a run, a line for each source.

    Args:
        most: the largest number of lines.
    """
    failed = [each for each in files if each.error is not None][:most]
    said = [visible(_said(each.source, each.action, each.failed, each.error or "")) for each in failed]
    return [Text(text, style=_BAD, no_wrap=True, overflow="ellipsis") for text in said]


def _said(source: str, action: str, failed: int, error: str) -> str:
    which = f"{counted(failed, 'file')}: " if failed else ""
    return f"source {source}, {action}: {which}{' '.join(error.split())}; it is tried again"
