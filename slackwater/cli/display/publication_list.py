"""The publications of a run on the screens: `slackwater status`, and the display of a run."""

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
    from slackwater.status.run_status import PublicationStatus

_SHORT = ("view", "table", "epoch", "behind_epochs", "behind_s")


class RootPublications:
    """The tables that follow views, by the last status of the run; their lags are those of now."""

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
