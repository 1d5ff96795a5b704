"""Sources with a key in a run: upserts and deletions from files in any order, late ones, corrected ones, bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import slackwater as sw
from tests.real.event_pipeline import FAST, ONE_FETCHER

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("session")]

_ORDERS = "id bigint, customer bigint, amount bigint, at bigint, op string"
BY_CITY = (
    "SELECT c.city, count(*) AS n, sum(o.amount) AS amount FROM orders o JOIN customers c ON c.id = o.customer "
    "GROUP BY c.city"
)


def _order(id: int | None, customer: int, amount: int, at: int | None, op: str = "U") -> dict[str, Any]:
    return {"id": id, "customer": customer, "amount": amount, "at": at, "op": op}


def _orders(place: Path, name: str, *rows: dict[str, Any]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows)), place / "orders" / f"{name}.parquet.tmp")
    (place / "orders" / f"{name}.parquet.tmp").rename(place / "orders" / f"{name}.parquet")


def _customers(place: Path, name: str, *changes: tuple[str, int, str, int]) -> None:
    lines = []
    for op, id, city, lsn in changes:
        row = {"id": id, "city": city}
        before, after = (row, None) if op == "d" else (None, row)
        lines.append(json.dumps({"before": before, "after": after, "op": op, "source": {"lsn": lsn, "db": "shop"}}))
    (place / "customers" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def _made(place: Path, *, materialize: bool = True) -> sw.Pipeline:
    pipeline = sw.Pipeline("shop", place / "root", settings=ONE_FETCHER)
    pipeline.source(
        "orders", place / "orders", format="parquet", pattern="*.parquet", schema=_ORDERS, discovery=FAST,
        key=sw.Key("id", order_by="at", deleted="op = 'D'"), materialize=materialize,
        on_change="replace" if materialize else "ignore",
    )  # fmt: skip
    pipeline.source(
        "customers", place / "customers", format="debezium", discovery=FAST, key=sw.Key("id", order_by="__source_lsn")
    )
    pipeline.view("current", "SELECT id, customer, amount FROM orders")
    pipeline.view("by_city", BY_CITY)
    return pipeline


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("orders", "customers"):
        (tmp_path / name).mkdir()
    _orders(tmp_path, "b", _order(1, 7, 10, 1), _order(2, 7, 20, 1), _order(2, 8, 21, 1))
    _orders(tmp_path, "a", _order(1, 8, 11, 2), _order(3, 8, 30, 1), _order(3, 8, 0, 2, "D"))
    _customers(tmp_path, "1", ("c", 7, "Ulm", 1), ("c", 8, "Bonn", 2), ("u", 7, "Kiel", 3))
    return tmp_path


def _rows(place: Path, view: str) -> set[tuple[Any, ...]]:
    rows = sw.open(place / "root").snapshot().view(view).to_arrow().to_pylist()
    return {tuple(row.values()) for row in rows}


@pytest.mark.more
@pytest.mark.parametrize("materialize", [True, pytest.param(False, marks=pytest.mark.long)], ids=["stored", "unstored"])
def test_views_see_the_last_row_of_each_key(place: Path, materialize: bool) -> None:
    pipeline = _made(place, materialize=materialize)
    with pipeline.start() as run:
        run.wait(until="caught_up")
        # Order 2 has two rows of one time: the later one in the file counts.  Order 3 is deleted.
        assert _rows(place, "current") == {(1, 8, 11), (2, 8, 21)}
        assert _rows(place, "by_city") == {("Bonn", 2, 32)}
        first = sw.open(place / "root").snapshot().epoch
        # A late file has an older version of order 1, a newer one of order 2, and rows without a key or an order.
        _orders(place, "0-late", _order(1, 7, 9, 0), _order(2, 7, 22, 3), _order(None, 7, 1, 1), _order(5, 7, 1, None))
        _customers(place, "0-late", ("u", 7, "Rom", 2), ("d", 8, "Bonn", 4))
        run.wait(until="caught_up")
        assert _rows(place, "current") == {(1, 8, 11), (2, 7, 22)}
        assert _rows(place, "by_city") == {("Kiel", 1, 22)}
        store = sw.open(place / "root")
        bad = store.ledger.quarantine("orders").sort_by("row").to_pylist()
        assert [(each["row"], each["reason"].partition(",")[0]) for each in bad] == [
            (2, "column id is null"),
            (3, "column at is null"),
        ]
        if materialize:
            # The newest row of order 2 goes, and the one before it is back.
            assert run.forget(str(place / "orders" / "0-late.parquet")) == 1
            assert _rows(place, "current") == {(1, 8, 11), (2, 8, 21)}
    assert sw.verify(store, pipeline=pipeline).all_equal
    checks = {each.view: each for each in sw.verify(store, pipeline=pipeline, epoch=first).views}
    assert all(each.outcome == "equal" for each in checks.values())
    assert checks["current"].engine == "duckdb" and checks["by_city"].engine == "spark"


@pytest.mark.long
def test_another_key_is_another_source(place: Path) -> None:
    _made(place).run(until="caught_up")
    again = sw.Pipeline("shop", place / "root", settings=ONE_FETCHER)
    again.source("orders", place / "orders", format="parquet", pattern="*.parquet", schema=_ORDERS, key="customer")
    again.view("current", "SELECT id, customer, amount FROM orders")
    with pytest.raises(
        sw.errors.DefinitionChangedError, match=r'source orders: .*key was \["id"\], and is now \["customer"\]'
    ):
        again.run(until="caught_up")


def test_a_key_that_a_source_does_not_have_is_refused(place: Path) -> None:
    pipeline = sw.Pipeline("shop", place / "root", settings=ONE_FETCHER)
    pipeline.source("orders", place / "orders", format="parquet", schema=_ORDERS, key="order_id")
    pipeline.view("current", "SELECT id FROM orders")
    with pytest.raises(
        sw.errors.SchemaError, match="source orders: key names the column order_id, which it does not have"
    ):
        pipeline.run(until="caught_up")
