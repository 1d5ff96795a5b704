"""JSON documents of a root, as the page shows them."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

import slackwater
from actors.telemetry.counted import counters_of
from actors.telemetry.logging import redact
from slackwater.reading.store import Store
from slackwater.reading.tables.file_table import require_status
from slackwater.reading.watching.owner_watch import OwnerWatch
from slackwater.reading.watching.stored_status import source_counts
from slackwater.status.run_status import RunStatus, SourceStatus, ViewStatus
from slackwater.status.text import jsonable, shell_root
from state.clock import Clock
from state.epoch import epoch_time
from state.location import Location
from state.ownership.owner import Owner

_LONGEST_CELL = 500
_LONGEST_RAW = 4096
_LARGEST_NESTED = 64 << 10
_MOST_SAMPLE_BYTES = 32 << 20
_COSTS_OF_EPOCHS = 20


def cell(value: Any) -> Any:
    """A value of a row for the page: a number, a boolean, null, or text; a nested value as JSON text."""
    plain = jsonable(value)
    if isinstance(plain, (dict, list)):
        plain = json.dumps(plain, ensure_ascii=False)
    if isinstance(plain, str) and len(plain) > _LONGEST_CELL:
        return f"{plain[:_LONGEST_CELL]}… ({len(plain):,} characters)"
    return plain


def cells(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column as `cell`; a long one is cut before it becomes an object of Python."""
    kind = column.type
    if kinds.is_string(kind) or kinds.is_large_string(kind):
        begin, lengths = pc.utf8_slice_codeunits(column, 0, _LONGEST_CELL), pc.utf8_length(column)
        return [_cut(text, text, length, "characters") for text, length in _pairs(begin, lengths)]
    if kinds.is_binary(kind) or kinds.is_large_binary(kind):
        begin, lengths = pc.binary_slice(column, 0, _LONGEST_CELL // 2), pc.binary_length(column)
        return [_cut(raw, raw and raw.hex(), length, "bytes") for raw, length in _pairs(begin, lengths)]
    if kinds.is_nested(kind):
        return [_nested(column.slice(row, 1)) for row in range(len(column))]
    return list(map(cell, column.to_pylist()))


def _pairs(first: pa.ChunkedArray, second: pa.ChunkedArray) -> Iterator[tuple[Any, Any]]:
    return zip(first.to_pylist(), second.to_pylist(), strict=True)


def _cut(begin: str | bytes | None, text: str | None, length: int, unit: str) -> str | None:
    return text if begin is None or len(begin) == length else f"{text}… ({length:,} {unit})"


def _nested(row: pa.ChunkedArray) -> Any:
    return cell(row[0].as_py()) if row.nbytes <= _LARGEST_NESTED else f"… ({row.nbytes:,} bytes)"


def raw_text(raw: bytes) -> str:
    r"""The beginning of a record as text, with escapes such as `\xff` for bytes that are not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return decoder.decode(raw[:_LONGEST_RAW], final=len(raw) <= _LONGEST_RAW)


Document = Mapping[str, Any]
"""A value for JSON.  Its texts are the unchanged texts of the root, and none of them is markup."""

_MOST_COLUMNS = 100
_OWNER = ("pipeline", "host", "pid", "since", "renewed_at", "phase", "last_error", "fetchers", "scaling")


class RootDocuments:
    """Reads a root.  Every method blocks, and may be called from any thread.

    Args:
        store: the store of the root.
        clock: the clock that ages are reckoned from.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock
        self._watch = OwnerWatch(clock)
        self._warnings: tuple[str | None, list[str]] | None = None

    def now(self) -> Document:
        """The owner, the status of its run, and the last epoch; cheap enough for every second."""
        owner = self._store.owner()
        life = self._watch.look(owner)
        epoch = self._store.latest_epoch()
        return _plain(
            {
                "root": self._store.root,
                "argument": shell_root(Location(self._store.root)),
                "version": slackwater.__version__,
                "now": self._clock.now(),
                "state": life.state,
                "runs": life.runs,
                "owner": None if owner is None else _owner(owner),
                "warnings": self._warnings_at(owner),
                "status": _status(owner),
                "columns": {"sources": page_columns(SourceStatus), "views": page_columns(ViewStatus)},
                "epoch": epoch or None,
                "committed_at": epoch_time(epoch) if epoch else None,
            }
        )

    def _warnings_at(self, owner: Owner | None) -> list[str]:
        """The warnings about the root; only a start of a run changes them."""
        run_id = None if owner is None else owner.run_id
        if self._warnings is None or self._warnings[0] != run_id:
            self._warnings = run_id, self._store.warnings()
        return self._warnings[1]

    def epochs(self, before: int | None, limit: int) -> list[Document]:
        """The last epochs before one, the oldest first, with the names of the views that each changed."""
        earlier: dict[str, tuple[str, int]] = {}
        found = []
        for row in self._store.epochs(before=before, limit=limit + 1).to_pylist():
            views = {view["name"]: (view["path"], view["version"]) for view in row.pop("views")}
            changed = sorted(name for name, version in views.items() if earlier and earlier.get(name) != version)
            earlier = views
            found.append(_plain({**row, "changed": changed}))
        return found[-limit:]

    def epoch_numbers(self) -> list[int]:
        """Every retained epoch, the oldest first."""
        numbers: list[int] = self._store.epoch_times()["epoch"].to_pylist()
        return numbers

    def sources(self) -> Document:
        """The sources, with the number of their files in each status."""
        sources = self._store.ledger.sources().to_pylist()
        files = self._store.ledger.count_files()
        for source in sources:
            name = source["name"]
            counts = source_counts(files, name)
            source["files"] = {row["status"]: row["files"] for row in files.to_pylist() if row["source"] == name}
            source["rows"], source["rows_bad"] = counts.rows, counts.rows_bad
        return _plain({"sources": sources})

    def views(self) -> Document:
        """The views with inputs, lag in seconds, cost and error; their internal views; backfills."""
        latest = self._store.latest_epoch()
        views = self._store.views.table().to_pylist()
        costs = self._store.views.costs(_COSTS_OF_EPOCHS)
        expectations = self._store.views.expectations().to_pylist()
        for view in views:
            cost = costs.get(view["name"])
            view["cost"] = None if cost is None else asdict(cost)
            reflects = view["reflects_epoch"]
            behind = None if reflects is None else (epoch_time(latest) - epoch_time(reflects)).total_seconds()
            view["behind_s"] = behind
            view["error"] = redact(view["error"])
            view["expectations"] = [row for row in expectations if row["view"] == view["name"]]
        return _plain(
            {
                "epoch": latest or None,
                "views": views,
                "backfills": self._store.views.backfills().to_pylist(),
                "internal_views": self._store.views.internal().to_pylist(),
            }
        )

    def sample(self, view: str, limit: int) -> Document:
        """The first rows of a view at the last epoch; fewer than `limit` if they are large."""
        snapshot = self._store.snapshot()
        shown = snapshot.view(view)
        schema = shown.schema
        rows = shown.head(limit, columns=schema.names[:_MOST_COLUMNS], max_bytes=_MOST_SAMPLE_BYTES)
        columns = [{"name": field.name, "type": str(field.type)} for field in rows.schema]
        # A row is a list: a column name may equal a built-in property of JavaScript objects.
        sample = zip(*map(cells, rows.columns), strict=True)
        return _plain(
            {
                "view": view,
                "epoch": snapshot.epoch,
                "rows": shown.count_rows(),
                "columns": columns,
                "left_out": len(schema.names) - len(columns),
                "sample": list(sample),
            }
        )

    def files(self, text: str, source: str | None, status: str | None, after: str | None, limit: int) -> Document:
        """A page of the ledger."""
        page = self._store.ledger.find_files(
            text, source=source, status=require_status(status), after=after, limit=limit
        )
        return _plain({"matches": page.matches, "after": page.after, "files": page.rows.to_pylist()})

    def file_history(self, path: str) -> Document:
        """The history of one object, and the views that have its rows; not the failed ones that lack some of them."""
        history = self._store.ledger.why(path)
        views = [
            view["name"]
            for view in self._store.views.table().to_pylist()
            if history.source in view["sources"]
            and history.path not in view["missing"]
            and view["name"] not in history.lacking_views
        ]
        return _plain({**asdict(history), "views": views})

    def quarantine(self, source: str | None, after: str | None, limit: int) -> Document:
        """A page of the bad records."""
        page = self._store.ledger.find_bad_records(source, after=after, limit=limit)
        records = []
        for record in page.rows.to_pylist():
            raw = record.pop("raw") or b""
            records.append({**record, "raw": raw_text(raw), "raw_bytes": len(raw)})
        return _plain({"matches": page.matches, "after": page.after, "records": records})


def page_columns(kind: type[SourceStatus] | type[ViewStatus]) -> list[Document]:
    """The described numbers that the page shows, each with its name, title and unit."""
    return [
        {"name": name, "title": each.page, "unit": each.unit} for name, each in counters_of(kind).items() if each.page
    ]


def _owner(owner: Owner) -> Document:
    return {**{name: getattr(owner, name) for name in _OWNER}, "last_error": redact(owner.last_error)}


def _status(owner: Owner | None) -> Document | None:
    """The status that the run last wrote; None if this version cannot read it."""
    status = RunStatus.of_owner(owner)
    if status is None:
        return None
    edges = [{**asdict(edge), "is_full": edge.is_full} for edge in status.edges]
    views = {name: {**asdict(view), "error": redact(view.error)} for name, view in status.views.items()}
    publications = [{**asdict(each), "error": redact(each.error)} for each in status.publications]
    told = {"edges": edges, "views": views, "publications": publications, "message": redact(status.message)}
    return {**status.to_json(), **told}


def _plain(document: Mapping[str, Any]) -> Document:
    plain: Document = jsonable(document)
    return plain
