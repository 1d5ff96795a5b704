"""The blocks of files on `slackwater status`: columns that files and sources do not share, quarantine, bad records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slackwater.cli.display.root_facts import RootFacts
from slackwater.cli.terminal.output import Output

_COLUMNS = ("source", "column", "path")
_SHOWN_QUARANTINED = 10


class RootColumns:
    """The ignored columns of files, the columns that files lack, and the renamed columns."""

    def __init__(self, facts: RootFacts) -> None:
        self._left_out = _columns(facts, "left_out")
        self._missing = _columns(facts, "missing")
        self._renamed = _columns(facts, "renamed")

    def document(self) -> Mapping[str, Any]:
        return {"left_out": self._left_out, "missing": self._missing, "renamed": self._renamed}

    def show(self, output: Output) -> None:
        if self._left_out:
            output.rows(self._left_out, _COLUMNS, title="ignored columns, and their first files")
        if self._missing:
            title = "columns that files lack, null in their rows, and the first of these files"
            output.rows(self._missing, _COLUMNS, title=title)
            output.text('Schema(evolution="strict") quarantines files that lack a column of their source')
        if self._renamed:
            title = "columns with a name that a source cannot have, and their first files"
            output.rows(self._renamed, ("source", "column", "in_file", "path"), title=title)


class RootQuarantine:
    """The quarantined files, and the bad records of each source with the first one."""

    def __init__(self, facts: RootFacts) -> None:
        quarantined = facts.store.ledger.files(status="quarantined")
        self._root = facts.root
        self._files = quarantined.select(["source", "path", "status", "error"]).to_pylist()
        self._records = [found for row in facts.sources if (found := _bad_records(row["name"], facts)) is not None]

    def document(self) -> Mapping[str, Any]:
        return {"quarantined": self._files, "bad_records": self._records}

    def show(self, output: Output) -> None:
        if self._files:
            shown = self._files[:_SHOWN_QUARANTINED]
            output.rows(shown, ("source", "path", "error"), title=f"quarantined: {len(self._files):,}")
            output.text(f"`slackwater files {self._root} --status quarantined` shows all of them")
        if self._records:
            title = "bad records, and the first of each source, its row counted from 0"
            output.rows(self._records, list(self._records[0]), title=title)
            output.text(f"`slackwater quarantine {self._root}` shows all of them")


def _columns(facts: RootFacts, kind: str) -> list[Mapping[str, Any]]:
    return [{"source": row["name"], **column} for row in facts.sources for column in row[kind]]


def _bad_records(source: str, facts: RootFacts) -> Mapping[str, Any] | None:
    """The first bad record of a source, and the numbers of records and files; None without a bad record."""
    from slackwater.reading.watching.stored_status import source_counts

    records = source_counts(facts.files, source).rows_bad
    if not records:
        return None
    found = facts.store.ledger.find_bad_records(source, limit=1).rows.to_pylist()
    return {
        "source": source,
        "records": records,
        "files": sum(row["files_bad"] for row in facts.files.to_pylist() if row["source"] == source),
        "path": found[0]["path"] if found else "",
        "first": facts.store.ledger.why(found[0]["path"]).first_bad if found else "their content is cleared",
    }
