"""The block of the owner of a root and of its last epoch, on `slackwater status`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.display.view_block import utc
from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_duration

if TYPE_CHECKING:
    from state.ownership.owner import Owner


class RootOwner:
    """The warnings about a root, its owner, and the last epoch."""

    def __init__(self, facts: RootFacts) -> None:
        self._owner, self._now = facts.owner, facts.now
        self._warnings = facts.store.warnings()
        status = facts.run_files.status
        self._start = ", ".join(
            f"{step.name} {human_duration(step.seconds)}"
            for step in (status.startup if status else ())
            if not step.done
        )
        self._last: Mapping[str, Any] | None = next(iter(facts.store.epochs(limit=1).to_pylist()), None)

    def document(self) -> Mapping[str, Any]:
        owner = asdict(self._owner) if self._owner else None
        return {"warnings": self._warnings, "owner": owner, "epoch": self._last}

    def show(self, output: Output) -> None:
        for warning in self._warnings:
            output.text(f"warning: {warning}")
        owner, last = self._owner, self._last
        if owner is None:
            output.text("owner: none")
        else:
            error = f"; last error: {owner.last_error}" if owner.last_error else ""
            process = f"process {owner.pid} on {owner.host}, pipeline {owner.pipeline}{error}"
            output.text(f"owner: {_phase(owner, self._now)}, {process}")
            if start := self._start:
                output.text(f"start: {start}")
            if owner.fetchers and not owner.released:
                output.text(f"fetch actors: {owner.fetchers}{f' ({owner.scaling})' if owner.scaling else ''}")
        output.text(
            "epoch: none yet" if last is None else f"epoch: {last['epoch']}, committed at {utc(last['committed_at'])}"
        )


def _phase(owner: Owner, now: datetime) -> str:
    """The phase that a process wrote last, with the doubts about it."""
    from slackwater.reading.watching.owner_watch import SILENT_S

    if owner.released:
        return owner.phase
    if owner.is_dead():
        return f"gone (the process died while {owner.phase})"
    silent_s = (now - owner.renewed_at).total_seconds()
    return f"{owner.phase} (no sign of life for {human_duration(silent_s)})" if silent_s >= SILENT_S else owner.phase
