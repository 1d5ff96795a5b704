"""A root with stored rows that were written by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from actors.protocol.blocks import StoredBlock
from spark_bridge.datasets.stored_rows import StoredRows
from state.lance.fragment_stager import FragmentStager
from state.location import Location
from state.tables.catalog import CatalogPipeline, put_pipeline, put_source
from state.tables.keys import encode_key
from state.tables.records import CatalogSource
from state.tables.stored_rows import LINEAGE, stored_rows_path, version_number
from tests.slackwater.reading.written_root import RAW_SCHEMA, START, RootWriter


class StoredRoot(RootWriter):
    """The materialized source `flights`, one call of `ingest` an epoch."""

    def __init__(self, root: Location, raw: Location) -> None:
        super().__init__(root, raw)
        definition = {"url": raw.url, "format": {"name": "csv"}, "pattern": "**", "materialize": True}
        put_pipeline(self.delta, CatalogPipeline("flights", ansi=False))
        put_source(self.delta, CatalogSource("flights", json.dumps(definition), RAW_SCHEMA.serialize().to_pybytes()))
        self._path = stored_rows_path("flights", self.epoch)
        self._stager, self._rows = FragmentStager(root.child(self._path)), StoredRows(root, "flights")

    def ingest(self, path: str, positions: Sequence[int], *, rows_read: int, bad: Sequence[int] = ()) -> None:
        """An epoch that stores rows of a file, and says how many of its records were read by then."""
        self.finish(path, rows_read=rows_read, rows_bad=len(bad), etag='"e"', last_modified=START)
        identity = self._identity(path, 100)
        for row in bad:
            self.delta.put("quarantine", self._bad_key(path, row), 1, **self._bad(identity, row))
        schema = pa.schema([*LINEAGE, *RAW_SCHEMA])
        number = version_number(identity["version"])
        rows = [
            {"__sw_path": path, "__sw_version": number, "__sw_row": row, "carrier": f"c{row}", "day": START.date()}
            for row in positions
        ]
        if rows:
            block = StoredBlock(self._path, schema, self._stager.stage(pa.Table.from_pylist(rows, schema)))
            self.views["flights.rows"] = self._rows.apply([block])
        self.commit(files=1, rows=len(rows))

    def forget_bad(self, path: str, row: int) -> None:
        """An epoch that clears a bad record."""
        self.delta.delete("quarantine", self._bad_key(path, row), 1)
        self.commit()

    def _bad_key(self, path: str, row: int) -> bytes:
        identity = self._identity(path, 100)
        return encode_key(identity["source"], path, identity["version"], row)

    def _bad(self, identity: dict[str, object], row: int) -> dict[str, object]:
        kept = {name: identity[name] for name in ("source", "path", "version")}
        return {**kept, "row": row, "raw": b"", "reason": "no date"}
