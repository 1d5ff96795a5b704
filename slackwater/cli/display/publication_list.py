"""The publications of a run on the screens: `slackwater status`, and the display of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.text import Text

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.output import Output
from slackwater.status.quantities import human_duration
from slackwater.status.text import counted
from state.visible import visible

if TYPE_CHECKING:
    from slackwater.status.run_status import PublicationStatus

_SHORT = ("view", "table", "epoch", "behind_epochs", "behind_s")
_BAD = "bold red"


class RootPublications:
    """The tables that follow views, by the last status of the run; their lags are those of now."""

    def __init__(self, facts: RootFacts) -> None:
        epochs = facts.epochs.to_pylist()
        publications = () if facts.run is None else facts.run.publications
        self._rows = [_row(each, epochs, facts.now) for each in publications]
        self._is_over = facts.is_over

    def document(self) -> Mapping[str, Any]:
        return {"publications": self._rows}

    def show(self, output: Output) -> None:
        if self._rows:
            output.rows(self._rows, list(self._rows[0]), title="publications", short=_SHORT)
            for line in publication_lines(self._rows, is_over=self._is_over):
                output.text(line)


def publication_lines(rows: Sequence[Mapping[str, Any]], *, is_over: bool) -> list[str]:
    """A line for each publication that is behind or has failed, with what follows.

    Args:
        rows: the fields of each `PublicationStatus`.
        is_over: no run is alive on the root.
    """
    follows = "the next run goes on" if is_over else "it is tried again"
    return [
        f"{_said(row['view'], row['table'], row['error'], row['behind_epochs'], row['behind_s'])}; {follows}"
        for row in rows
        if row["error"] is not None or (is_over and row["behind_epochs"])
    ]


def publication_notes(publications: Sequence[PublicationStatus], most: int) -> list[Text]:
    """Notes on failed publications on the display of a run, a line for each.

    Args:
        most: the largest number of lines.
    """
    failed = [each for each in publications if each.error is not None]
    shown = failed if len(failed) <= most else failed[: most - 1]
    notes = [
        Text(
            visible(_said(each.view, each.table, each.error, each.behind_epochs, each.behind_s)),
            style=_BAD,
            no_wrap=True,
            overflow="ellipsis",
        )
        for each in shown
    ]
    if others := len(failed) - len(shown):
        notes.append(Text(f"{counted(others, 'other publication')} failed; see `slackwater status`", style=_BAD))
    return notes


def _row(publication: PublicationStatus, epochs: Sequence[Mapping[str, Any]], now: datetime) -> Mapping[str, Any]:
    if publication.epoch is not None:
        later = [each["committed_at"] for each in epochs if each["epoch"] > publication.epoch]
        behind_s = max(0.0, (now - later[0]).total_seconds()) if later else 0.0
        publication = replace(publication, behind_epochs=len(later), behind_s=behind_s)
    return asdict(replace(publication, behind_s=round(publication.behind_s, 1)))


def _said(view: str, table: str, error: str | None, epochs: int, seconds: float) -> str:
    """The lag of a table and the reason of its failure, in one line."""
    reason = " ".join((error or "").split())
    subject = reason if table in reason else f"{table}{': ' if reason else ''}{reason}"
    lag = f" ({counted(epochs, 'epoch')}, {human_duration(seconds)} behind)" if epochs else ""
    return f"view {view}{lag}: {subject}"
