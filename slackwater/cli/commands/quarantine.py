"""`slackwater quarantine`: what was kept of bad records and messages, on a terminal or in a file; and clearing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.cli.commands.bad_record_file import as_values, export
from slackwater.cli.commands.commands import carry_out
from slackwater.cli.terminal.output import Output
from slackwater.reading.store import open as open_store
from slackwater.status.counted import counted
from state.ownership.command import ClearQuarantineCommand

_COLUMNS = ("source", "path", "row", "reason", "raw", "epoch")
_SHOWN_CHARACTERS = 60


def print_quarantine(root: str, options: Mapping[str, str], source: str | None, output: Output) -> None:
    """Prints the bad records of a root; on a terminal with the beginning of each."""
    records = open_store(root, options or None).quarantine(source)
    if output.json:
        output.document(list(as_values(records)))
        return
    shown = [{**record, "raw": _beginning(record["raw"], output.console.is_terminal)} for record in records.to_pylist()]
    output.rows(shown, _COLUMNS, title=_title(records))


def export_quarantine(
    root: str,
    options: Mapping[str, str],
    source: str | None,
    output: Output,
    *,
    file: Path | None,
    clear: bool,
    timeout_s: float,
) -> None:
    """Writes the bad records of a root into a file, or clears them, or first the one and then the other.

    Args:
        root: of the pipeline.
        options: to reach it.
        source: only this source's.
        output: where to say what was done.
        file: as `export` takes it; None for none.
        clear: has them cleared by the root's owner: those that were exported, and no later ones.
        timeout_s: seconds to wait for the owner's answer.

    Raises:
        UsageError: the file cannot be written; nothing is cleared.
        SlackwaterError: as `slackwater.commands.ask.ask`.
    """
    records = open_store(root, options or None).quarantine(source)
    said: dict[str, object] = {}
    if file is not None:
        export(records, file)
        said = {"exported": records.num_rows, "file": str(file)}
        output.text(f"{counted(records.num_rows, 'bad record')} exported to {file}")
    if clear and records.num_rows:
        command = ClearQuarantineCommand(epoch=pc.max(records["epoch"]).as_py(), source=source)
        answer = carry_out(root, options, command, timeout_s=timeout_s)
        said = {**said, "cleared": answer.values["records"]}
        output.text(answer.text)
    elif clear:
        said = {**said, "cleared": 0}
        output.text("nothing to clear")
    if output.json:
        output.document(said)


def _title(records: pa.Table) -> str:
    messages = records["row"].null_count
    poison = f", {messages:,} of them poison messages, without a row" if messages else ""
    return f"bad records: {records.num_rows:,}{poison}; `row` is the position in the file, from 0"


def _beginning(raw: bytes, is_short: bool) -> str:
    text = raw.decode("utf-8", "replace")
    return f"{text[:_SHOWN_CHARACTERS]}…" if is_short and len(text) > _SHOWN_CHARACTERS else text
