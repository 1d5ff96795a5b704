"""Files after the commit on the screens: `slackwater status`, and the display of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.text import Text

from slackwater.status.text import counted
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.run_status import AfterCommitStatus
    from state.ownership.owner import Owner

COLUMNS = ("source", "action", "handled", "left", "failed")
_BAD = "bold red"


def after_commit_rows(owner: Owner | None) -> list[Mapping[str, Any]]:
    """One row for each source whose files are handled after the commit, by the last word of the run."""
    from slackwater.status.run_status import RunStatus

    status = None if owner is None or owner.status is None else RunStatus.of_json(owner.status)
    return [] if status is None else [asdict(each) for each in status.after_commit]


def after_commit_lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """What the files of each source wait for, and the reasons of failures.

    Args:
        rows: see `after_commit_rows`.
    """
    lines = [f"source {row['source']}: files wait: {row['waits_for']}" for row in rows if row["waits_for"]]
    return lines + [_said(row["source"], row["action"], row["failed"], row["error"]) for row in rows if row["error"]]


def after_commit_notes(files: Sequence[AfterCommitStatus], most: int) -> list[Text]:
    """Notes on failures on the display of a run, a line for each source.

    Args:
        files: of the run.
        most: the largest number of lines.
    """
    failed = [each for each in files if each.error is not None][:most]
    said = [visible(_said(each.source, each.action, each.failed, each.error or "")) for each in failed]
    return [Text(text, style=_BAD, no_wrap=True, overflow="ellipsis") for text in said]


def _said(source: str, action: str, failed: int, error: str) -> str:
    which = f"{counted(failed, 'file')}: " if failed else ""
    return f"source {source}, {action}: {which}{' '.join(error.split())}; it is tried again"
