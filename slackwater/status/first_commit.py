"""The last steps of a start: from the first listing to the first commit of files."""

from __future__ import annotations

from typing import Literal, TypeAlias

from actors.protocol.run_state import RunState

FirstCommitStep: TypeAlias = Literal["first listing", "first files", "views of the first epoch", "first commit", ""]

_STEPS: dict[str, FirstCommitStep] = {"spark": "views of the first epoch", "commit": "first commit"}


def first_commit_step(state: RunState) -> FirstCommitStep | None:
    """The step that a run is at.

    Returns:
        None if the start is over: files are committed, or the first listing has found no file to read.  The empty text
        during a pause.
    """
    if state.totals.files or state.totals.rows or state.phase in ("stopping", "stopped"):
        return None
    if state.phase != "running":
        return ""
    if not all(each.listings for each in state.lists):
        return "first listing"
    is_sent = not any(each.held or each.unsettled for each in state.lists)
    if not state.files_in_flight and is_sent:
        return None
    is_read = is_sent and not any(each.backlog for each in state.fetchers)
    # Before the files are read, an epoch has only their names.
    oldest = state.in_flight[0].phase if state.in_flight and is_read else "align"
    return _STEPS.get(oldest, "first files")
