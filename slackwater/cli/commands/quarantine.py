"""Bad records on the command line: printed, exported to a file, and cleared."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from slackwater.cli.commands.asking import carry_out
from slackwater.cli.display.expectation_list import quarantine_lines
from slackwater.cli.options import open_store
from slackwater.cli.terminal.output import Output
from slackwater.commands.operations import ClearQuarantineCommand
from slackwater.status.text import counted, shell_root
from state.errors import UsageError
from state.location import Location
from state.removal.local_files import new_file
from state.visible import visible_json

_COLUMNS = ("source", "path", "row", "reason", "raw", "epoch")
_MAX_SHOWN_CHARACTERS = 60


def as_values(records: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yields each record with `raw` as text; bytes that are not UTF-8 come as `raw_base64`."""
    for record in records.to_pylist():
        raw = record.pop("raw")
        try:
            yield {**record, "raw": raw.decode(), "raw_base64": None}
        except UnicodeDecodeError:
            yield {**record, "raw": None, "raw_base64": base64.b64encode(raw).decode()}


def export(records: pa.Table, path: Path) -> None:
    """Writes records into a new file, and returns when they are on the disk.

    Args:
        records: a table of `Ledger.quarantine`.
        path: a file that does not exist: an earlier export may be the only copy of cleared records.  The suffix gives
            the format: `.parquet` with the columns of `records`; `.csv`, or `.json` and `.jsonl` with one object per
            line, with those of `as_values`.

    Raises:
        UsageError: the suffix is not known, or the file exists or cannot be written.
    """
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"{path} cannot be written: its name must end in one of {', '.join(_WRITERS)}")
    with ExitStack() as stack:
        try:
            file = stack.enter_context(new_file(path))
        except FileExistsError:
            raise UsageError(f"{path} exists, and is not overwritten: name another file") from None
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}; name another place") from error
        write(records, file)
        file.flush()
        os.fsync(file.fileno())


def _write_parquet(records: pa.Table, file: BinaryIO) -> None:
    pq.write_table(records, file)


def _write_csv(records: pa.Table, file: BinaryIO) -> None:
    names = [name for name in records.column_names if name != "raw"]
    schema = pa.schema(
        [*(records.schema.field(name) for name in names), ("raw", pa.string()), ("raw_base64", pa.string())]
    )
    arrow_csv.write_csv(pa.Table.from_pylist(list(as_values(records)), schema), file)


def _write_json(records: pa.Table, file: BinaryIO) -> None:
    for values in as_values(records):
        # As text: an epoch does not fit the numbers of every reader.
        line = json.dumps({**values, "epoch": str(values["epoch"])}, ensure_ascii=False)
        file.write(visible_json(line).encode() + b"\n")


_WRITERS: Mapping[str, Callable[[pa.Table, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".json": _write_json,
    ".jsonl": _write_json,
}


def print_quarantine(root: str, options: Mapping[str, str], source: str | None, output: Output) -> None:
    """Prints the bad records of a root; on a terminal only the first characters of each."""
    store = open_store(root, options).frozen()
    records = store.ledger.quarantine(source)
    if output.json:
        output.document(list(as_values(records)))
        return
    shown = [{**record, "raw": _beginning(record["raw"], output.console.is_terminal)} for record in records.to_pylist()]
    output.rows(shown, _COLUMNS, title=_title(records))
    for line in quarantine_lines(store.views.expectations().to_pylist(), shell_root(Location(store.root))):
        output.text(line)


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
    """Exports the bad records of a root, clears them, or does both in this order.

    Args:
        root: the root of the pipeline.
        source: only records of this source.
        file: as `export`; None for no export.
        clear: have the owner clear exactly these records.
        timeout_s: seconds to wait for the owner's answer.

    Raises:
        UsageError: the file cannot be written; nothing is cleared.
        SlackwaterError: as `slackwater.commands.ask.ask`.
    """
    records = open_store(root, options).ledger.quarantine(source)
    report: dict[str, object] = {}
    if file is not None:
        export(records, file)
        report = {"exported": records.num_rows, "file": str(file)}
        output.text(f"{counted(records.num_rows, 'bad record')} exported to {file}")
    if clear and records.num_rows:
        command = ClearQuarantineCommand(epoch=pc.max(records["epoch"]).as_py(), source=source)
        answer = carry_out(root, options, command, timeout_s=timeout_s)
        report = {**report, "cleared": answer.values["records"]}
        output.paragraph(answer.text)
    elif clear:
        report = {**report, "cleared": 0}
        output.text("nothing to clear")
    if output.json:
        output.document(report)


def _title(records: pa.Table) -> str:
    others = records["row"].null_count
    poison = f", {others:,} of them poison messages or skipped names, without a row" if others else ""
    return f"bad records: {records.num_rows:,}{poison}; `row` is the position in the file, from 0"


def _beginning(raw: bytes, is_short: bool) -> str:
    text = raw.decode("utf-8", "replace")
    return f"{text[:_MAX_SHOWN_CHARACTERS]}…" if is_short and len(text) > _MAX_SHOWN_CHARACTERS else text
