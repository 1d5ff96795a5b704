"""Description of everything that a root stores, as JSON: it changes whenever a stored format changes.

`formats/format-<number>.json` records the description that belongs to a format number.  A change of a stored format
raises `FORMAT_VERSION`, unless no released version has written the present number, and records its description:

    python -m tests.state.stored_formats
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import obstore
import pyarrow as pa
from obstore.store import MemoryStore

from actors.formats.options import Csv
from actors.sources.event_time import EventTime
from actors.sources.row_key import Key
from actors.sources.source import SourceDefinition
from slackwater.commands import operations
from spark_bridge.operators.group import distinct_set
from state.capabilities.store_record import StoreRecord
from state.clock import ManualClock
from state.epoch import epoch_time, first_epoch_at
from state.lance import handled_files
from state.location import Location
from state.ownership.command import Command
from state.ownership.owner import Owner
from state.tables import stored_rows
from state.tables.catalog import CatalogPipeline, put_pipeline, put_unmatched, put_watermark
from state.tables.delta import DeltaBuilder
from state.tables.epoch_trace import EpochTrace, Span
from state.tables.expectations import ViewExpectations
from state.tables.fingerprint import path_fingerprint, text_fingerprint, version_fingerprint
from state.tables.group_key import GLOBAL_KEY, KEY_COLUMN, group_keys
from state.tables.keys import KeyPart, encode_key
from state.tables.records import SourceWatermark, UnmatchedColumn
from state.tables.tables import FORMAT_VERSION, STATE_SCHEMA
from state.upkeep.branches import FOLDER, branch_tag, dropping_tag
from state.upkeep.pin import PinFile
from state.vnode import vnode_of

FOLDER_OF_FORMATS = Path(__file__).parent / "formats"
_TIME = datetime(2026, 1, 31, 12, 30, 15, 123_456, tzinfo=UTC)


_STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])


def stored_formats() -> dict[str, Any]:
    """The description of all stored formats of this version."""
    return {
        "state.lance": _columns(STATE_SCHEMA),
        "state.lance, rows of the catalog": _catalog_rows(),
        "state.lance, keys": _keys(),
        "state.lance, vnodes": {path: vnode_of(path) for path in ("", "a.csv", "day=1/ü.csv")},
        "state.lance, epochs": {str(first_epoch_at(_TIME)): epoch_time(first_epoch_at(_TIME)).isoformat()},
        "state.lance, fingerprints": _fingerprints(),
        "state.lance, traces": json.loads(
            EpochTrace.of((Span("spark", "v", 0.25, 1.0),), (first_epoch_at(_TIME), 0.5)).to_json()
        ),
        "state.lance, expectations": _fields(ViewExpectations),
        "state.lance, sources": json.loads(_source().to_json()),
        "after.lance": _columns(handled_files.SCHEMA),
        "views, columns": _view_columns(),
        "views, group keys": _group_keys(),
        "owner.json": _fields(Owner),
        "commands": {kind: _fields(command) for kind, command in sorted(_commands().items())},
        "store.json": sorted(json.loads(StoreRecord(_TIME, "0", ()).to_json())),
        "pins": _pin(),
        "branches": [FOLDER, branch_tag("b"), dropping_tag("b")],
    }


def recorded_formats(number: int) -> dict[str, Any]:
    """The recorded description of a format number; empty without a record."""
    path = FOLDER_OF_FORMATS / f"format-{number}.json"
    recorded: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return recorded


def _columns(schema: Iterable[pa.Field]) -> dict[str, str]:
    return {each.name: str(each.type) for each in schema}


def _catalog_rows() -> list[dict[str, Any]]:
    delta = DeltaBuilder()
    put_pipeline(delta, CatalogPipeline("p", ansi=True))
    put_unmatched(delta, UnmatchedColumn("s", "c", "a.csv", 1))
    put_watermark(delta, SourceWatermark("s", 1, 2))
    rows = delta.build().tables["catalog"]
    keys = [key.hex() for key in rows["key"].to_pylist()]
    return [
        {"key": key} | {name: value for name, value in row.items() if value is not None}
        for key, row in zip(keys, rows["row"].to_pylist(), strict=True)
    ]


def _keys() -> dict[str, str]:
    parts: list[tuple[str, KeyPart]] = [
        ("text", "a\0ü"),
        ("bytes", b"\0\xff"),
        ("integer", -7),
        ("number", -1.5),
        ("time", _TIME),
        ("null", None),
    ]
    return {name: encode_key("before", part).hex() for name, part in parts}


def _fingerprints() -> dict[str, str]:
    weak = version_fingerprint('W/"abc"', 7, _TIME)
    return {
        "path": path_fingerprint("s", "day=1/ü.csv").hex(),
        "text": text_fingerprint("AA|1").hex(),
        "version": version_fingerprint('"abc"', 7, _TIME).hex(),
        "version of a weak etag": weak.hex(),
        "version without an etag": version_fingerprint(None, 7, _TIME).hex(),
    }


def _group_keys() -> dict[str, list[str]]:
    values: list[pa.Array] = [
        pa.array(["", "a|b\\", None], pa.string()),
        pa.array([-0.0, float("nan"), 1e300], pa.float64()),
        pa.array([-1, 0, 2**63 - 1], pa.int64()),
        pa.array([True, False, None], pa.bool_()),
        pa.array([b"\0\xff", b"", None], pa.binary()),
        pa.array([0, _TIME, None], pa.timestamp("us", "UTC")),
        pa.array([0, 1, None], pa.date32()),
        pa.array(["1.50", "-0.25", None], pa.string()).cast(pa.decimal128(9, 2)),
        pa.array([["a", None], [], None], pa.list_(pa.string())),
        pa.array(
            [{"a": 1, "b": None}, {"a": None, "b": "|"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])
        ),
    ]
    texts = {str(column.type): group_keys([column]).to_pylist() for column in values}
    return {**texts, "two columns": group_keys([values[0], values[2]]).to_pylist(), "no column": [GLOBAL_KEY]}


def _view_columns() -> dict[str, Any]:
    hidden = [getattr(stored_rows, name) for name in sorted(vars(stored_rows)) if name.endswith("_FIELD")]
    hidden += [distinct_set.COUNT_FIELD, distinct_set.UNTIL_FIELD]
    return {
        "key": KEY_COLUMN,
        "lineage": _columns(stored_rows.LINEAGE),
        "hidden": _columns(hidden),
        "names": [
            stored_rows.stored_rows_path("s", 1),
            stored_rows.stored_rows_name("s"),
            stored_rows.next_name("v"),
            stored_rows.inner_name("v", 1),
        ],
    }


def _pin() -> Any:
    memory = MemoryStore()
    PinFile(Location("s3://lake/root"), ManualClock(_TIME), first_epoch_at(_TIME), memory).create()
    [[pin]] = obstore.list(memory)
    return {
        "folder": pin["path"].partition("/")[0],
        "content": json.loads(bytes(obstore.get(memory, pin["path"]).bytes())),
    }


def _source() -> SourceDefinition:
    return SourceDefinition(
        name="s",
        location=Location("s3://raw/s"),
        format=Csv(),
        pattern="**/*.csv",
        metadata=("path", "row"),
        materialize=True,
        timestamps="truncate",
        key=Key("id", order_by="at", deleted="is_deleted"),
        event_time=EventTime("at"),
    )


def _commands() -> dict[str, type[Command]]:
    own = operations.__name__.partition(".")[0]
    return {kind: each for kind, each in Command.kinds.items() if each.__module__.partition(".")[0] == own}


def _fields(kind: Any) -> dict[str, Any]:
    """The fields of a dataclass that is stored as JSON, with the fields of the dataclasses in it."""
    hints = get_type_hints(kind)
    return {each.name: _described(hints[each.name]) for each in fields(kind)}


def _described(hint: Any) -> Any:
    if is_dataclass(hint):
        return _fields(hint)
    arguments = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(str(_described(each)) for each in arguments if each is not NoneType) + " or null"
    if arguments:
        return f"{getattr(get_origin(hint), '__name__', hint)} of {[_described(each) for each in arguments]}"
    return getattr(hint, "__name__", str(hint))


def main() -> None:
    """Records the formats of this version."""
    FOLDER_OF_FORMATS.mkdir(exist_ok=True)
    text = json.dumps(stored_formats(), indent=1, sort_keys=True, ensure_ascii=False)
    (FOLDER_OF_FORMATS / f"format-{FORMAT_VERSION}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
