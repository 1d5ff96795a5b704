"""The optional parts of a run on both screens: its publications, and its files after the commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_duration
from slackwater.status.text import counted

if TYPE_CHECKING:
    from slackwater.status.run_status import AfterCommitStatus, PublicationStatus

_SHORT = ("view", "table", "epoch", "behind_epochs", "behind_s")
_AFTER_COMMIT = ("source", "action", "handled", "left", "failed")


class RootPublications:
    """The tables that follow views, by the last status of the run; the lags are as of now."""

    def __init__(self, facts: RootFacts) -> None:
        epochs = facts.epochs.to_pylist()
        publications = () if facts.run is None else facts.run.publications
        self._publications = [_of_now(each, epochs, facts.now) for each in publications]
        self._is_over = facts.is_over

    def document(self) -> Mapping[str, Any]:
        return {"publications": [asdict(each) for each in self._publications]}

    def show(self, output: Output) -> None:
        rows = [asdict(each) for each in self._publications]
        if rows:
            output.rows(rows, list(rows[0]), title="publications", short=_SHORT)
            for line in publication_lines(self._publications, is_over=self._is_over):
                output.text(line)


def publication_lines(publications: Sequence[PublicationStatus], *, is_over: bool = False) -> list[str]:
    """A line for each publication that has failed, with the next step.

    Args:
        is_over: no run is alive on the root: then also for each publication that is behind.
    """
    follows = "the next run goes on" if is_over else "it is tried again"
    return [
        f"{_said(each)}; {follows}"
        for each in publications
        if each.error is not None or (is_over and each.behind_epochs)
    ]


def _of_now(publication: PublicationStatus, epochs: Sequence[Mapping[str, Any]], now: datetime) -> PublicationStatus:
    if publication.epoch is not None:
        later = [each["committed_at"] for each in epochs if each["epoch"] > publication.epoch]
        behind_s = max(0.0, (now - later[0]).total_seconds()) if later else 0.0
        publication = replace(publication, behind_epochs=len(later), behind_s=behind_s)
    return replace(publication, behind_s=round(publication.behind_s, 1))


def _said(publication: PublicationStatus) -> str:
    """The lag of a table and the reason of its failure, in one line."""
    table, epochs = publication.table, publication.behind_epochs
    reason = " ".join((publication.error or "").split())
    subject = reason if table in reason else f"{table}{': ' if reason else ''}{reason}"
    lag = f" ({counted(epochs, 'epoch')}, {human_duration(publication.behind_s)} behind)" if epochs else ""
    return f"view {publication.view}{lag}: {subject}"


class RootFilesAfterCommit:
    """The sources whose files are handled after the commit, by the last status of the run."""

    def __init__(self, facts: RootFacts) -> None:
        self._files = () if facts.run is None else facts.run.after_commit

    def document(self) -> Mapping[str, Any]:
        return {"after_commit": [asdict(each) for each in self._files]}

    def show(self, output: Output) -> None:
        if self._files:
            rows = [asdict(each) for each in self._files]
            output.rows(rows, _AFTER_COMMIT, title="files after the commit, since the last start")
            waiting = [f"source {each.source}: files wait: {each.waits_for}" for each in self._files if each.waits_for]
            for line in (*waiting, *after_commit_lines(self._files)):
                output.text(line)


def after_commit_lines(files: Sequence[AfterCommitStatus]) -> list[str]:
    """A line for each source whose files the store refuses to delete, move or tag."""
    return [_refused(each, each.error) for each in files if each.error is not None]


def _refused(files: AfterCommitStatus, error: str) -> str:
    number = f"{counted(files.failed, 'file')}: " if files.failed else ""
    return f"source {files.source}, {files.action}: {number}{' '.join(error.split())}; it is tried again"
