"""Bad records for other programs: as JSON values, and as a file."""

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

from actors.telemetry.visible_text import visible_json
from state.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
