"""A root with a view `v` that holds results back, epoch by epoch, as the coordinator commits it."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pyarrow as pa

from slackwater.reading.store import Store
from state.location import Location
from state.tables.catalog import Catalog, put_expectations, put_source, put_view
from state.tables.expectations import Expectation, ViewExpectations, gate_of, published_after
from state.tables.records import CatalogSource, CatalogView
from tests.slackwater.reading.written_root import RootWriter

POSITIVE = "n is positive"
_SOURCE = json.dumps({"url": "/raw", "format": {"name": "csv"}, "pattern": "**"})


class GatedRoot:
    """Every epoch adds a row to the view.

    Args:
        root: the place.
    """

    def __init__(self, root: Location) -> None:
        self.writer = RootWriter(root, Location("/raw"))
        put_view(self.writer.delta, CatalogView("v", "append", "SELECT", "plan", ("flights",), (), self.writer.epoch))
        put_source(self.writer.delta, CatalogSource("flights", _SOURCE, None))
        self.expected = ViewExpectations("v", "hold", {POSITIVE: Expectation("n > 0")})
        self._numbers: list[int] = []

    @property
    def store(self) -> Store:
        return Store(self.writer.root, self.writer.clock)

    def epoch(self, *numbers: int, files: Mapping[str, int] | None = None, found: str | None = None) -> int:
        """Commits rows, of which those up to 0 violate, and returns the epoch; `found` is of the view as a whole."""
        writer, before = self.writer, Catalog.of(self.writer.store.scan("catalog")).gate
        bad = sum(number <= 0 for number in numbers)
        known = self.expected.expectations[POSITIVE]
        counted = Expectation(known.condition, known.rows + bad, known.accepted, known.came + bad, found=found)
        last, epoch = writer.store.head.epoch, writer.epoch
        expected = ViewExpectations(
            "v", "hold", {POSITIVE: counted}, self.expected.held_since, self.expected.epochs, files or {}
        )
        self.expected = expected.settled(epoch, epoch if bad else None)
        put_expectations(writer.delta, self.expected)
        self._numbers += numbers
        writer.view("v", pa.table({"n": pa.array(self._numbers, pa.int64())}))
        writer.commit(published=published_after(before, gate_of([self.expected]), last=last, epoch=epoch))
        return epoch
