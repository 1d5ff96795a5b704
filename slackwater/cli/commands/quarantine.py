"""The commands about bad records."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from actors.telemetry.text import visible_json
from state.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


import pyarrow.compute as pc

from slackwater.cli.commands.steering import carry_out
from slackwater.reading.store import open as open_store
from slackwater.status.text import counted
from slackwater.terminal.output import Output
from state.ownership.command import ClearQuarantineCommand


def as_values(records: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yields each record with `raw` as text, or, where its bytes are no UTF-8, `raw_base64` instead."""
    for record in records.to_pylist():
        raw = record.pop("raw")
        try:
            yield {**record, "raw": raw.decode(), "raw_base64": None}
        except UnicodeDecodeError:
            yield {**record, "raw": None, "raw_base64": base64.b64encode(raw).decode()}


def export(records: pa.Table, path: Path) -> None:
    """Writes all of the records into a file, and returns when they are on the disk.

    Args:
        records: as `Store.quarantine` has them.
        path: of a file that is not there yet: what was exported and cleared before may be nowhere else.  The suffix
            says how it is written: `.parquet` as it is; `.csv`, and `.json` or `.jsonl` with one object a line, as
            `as_values` has it.

    Raises:
        UsageError: the suffix is another one, or the file is there or cannot be written.
    """
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"{path} cannot be written: its name must end in one of {', '.join(_WRITERS)}")
    try:
        file = path.open("xb")
    except FileExistsError:
        raise UsageError(f"{path} is there already, and is not written over: name another file") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}; name another place") from error
    try:
        with file:
            write(records, file)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise


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
        # As text, since an epoch does not fit the numbers of every reader.
        line = json.dumps({**values, "epoch": str(values["epoch"])}, ensure_ascii=False)
        file.write(visible_json(line).encode() + b"\n")


_WRITERS: Mapping[str, Callable[[pa.Table, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".json": _write_json,
    ".jsonl": _write_json,
}

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
